"""Compiled draws of edge signs: the hash of `randomness.edge_uniforms` and its comparison in one pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from spam_gnn.kernels.compiled import array, compiled

_GOLDEN, _MIX_1, _MIX_2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S12, _S27, _S30, _S31 = np.uint64(12), np.uint64(27), np.uint64(30), np.uint64(31)


@compiled
def splitmix(x: Any) -> Any:
    x = x + _GOLDEN
    x = (x ^ (x >> _S30)) * _MIX_1
    x = (x ^ (x >> _S27)) * _MIX_2
    return x ^ (x >> _S31)


@compiled
def _draw(first: Any, second: Any, seeds: Any, low: Any, high: Any, negative: Any, positive: Any) -> None:
    for k in range(seeds.size):
        word = splitmix(seeds[k])
        for e in range(first.size):
            pair = splitmix(splitmix(first[e]) ^ (second[e] * _MIX_2))
            uniform = ((splitmix(pair ^ word) >> _S12) + 0.5) * 2.0**-52
            negative[k, e] = uniform <= low[e]
            positive[k, e] = uniform > high[e]


def draw_signs(first: Tensor, second: Tensor, seeds: list[int], low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """(K, p) booleans: u <= low is a negative edge, u > high a positive one, u the uniform of `edge_uniforms`.

    Args:
        first, second: (p,) identities of the two ends.
        seeds: one per sample.
        low, high: (p,) float64, p(z = -1) and p(z <= 0).
    """
    shape = (len(seeds), first.numel())
    negative, positive = torch.empty(shape, dtype=torch.bool), torch.empty(shape, dtype=torch.bool)
    ends = [array(t).view(np.uint64) for t in (first, second)]
    words = np.array(seeds, dtype=np.uint64)
    _draw(*ends, words, array(low), array(high), negative.numpy(), positive.numpy())
    return negative, positive
