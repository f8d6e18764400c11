"""Compiled draws of edge signs: the hash of `randomness.edge_uniforms` and its comparison in one pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spam_gnn.kernels.compiled import array, compiled, over_range
from spam_gnn.kernels.memory import fresh

_GOLDEN, _MIX_1, _MIX_2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S12, _S27, _S30, _S31 = np.uint64(12), np.uint64(27), np.uint64(30), np.uint64(31)
_COST = 40  # multiply-adds that an edge is worth, for a few samples


@compiled
def splitmix(x: Any) -> Any:
    x = x + _GOLDEN
    x = (x ^ (x >> _S30)) * _MIX_1
    x = (x ^ (x >> _S27)) * _MIX_2
    return x ^ (x >> _S31)


@compiled
def _draw(begin: int, end: int, first: Any, second: Any, seeds: Any, low: Any, high: Any, signs: Any) -> None:
    words = np.empty_like(seeds)
    for k in range(seeds.size):
        words[k] = splitmix(seeds[k])
    for e in range(begin, end):
        pair = splitmix(splitmix(first[e]) ^ (second[e] * _MIX_2))
        for k in range(seeds.size):
            uniform = ((splitmix(pair ^ words[k]) >> _S12) + 0.5) * 2.0**-52
            signs[e, k] = (1 if uniform > high[e] else 0) - (1 if uniform <= low[e] else 0)


@compiled
def _along(begin: int, end: int, table: Any, of_edge: Any, signs: Any) -> None:
    for e in range(begin, end):
        for k in range(table.shape[1]):
            signs[e, k] = table[of_edge[e], k]


@compiled
def _indicators(begin: int, end: int, table: Any, of_edge: Any, negative: Any, positive: Any) -> None:
    for e in range(begin, end):
        for k in range(table.shape[1]):
            sign = table[of_edge[e], k]
            negative[k, e], positive[k, e] = sign < 0, sign > 0


def _on_threads(loop: Callable[..., None], count: int, *operands: Any) -> None:
    """loop(begin, end, ...) over parts of `count` edges: each edge has its own draws, whoever makes them."""
    over_range(count, _COST * count, lambda thread, begin, end: loop(begin, end, *operands))  # noqa: ARG005


def draw_table(first: Tensor, second: Tensor, seeds: list[int], low: Tensor, high: Tensor) -> Tensor:
    """(p, K) int8: -1 where u <= low, +1 where u > high, else 0, u the uniform of `edge_uniforms`.

    Args:
        first, second: (p,) identities of the two ends.
        seeds: one per sample.
        low, high: (p,) float64, p(z = -1) and p(z <= 0).
    """
    signs = torch.empty(first.numel(), len(seeds), dtype=torch.int8)
    ends = [array(t).view(np.uint64) for t in (first, second)]
    _on_threads(_draw, first.numel(), *ends, np.array(seeds, dtype=np.uint64), array(low), array(high), signs.numpy())
    return signs


def draw_signs(first: Tensor, second: Tensor, seeds: list[int], low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """(K, p) booleans: which draws of :func:`draw_table` are negative, which positive."""
    signs = draw_table(first, second, seeds, low, high).t()
    return signs < 0, signs > 0


def signs_along(table: Tensor, of_edge: Tensor) -> Tensor:
    """Draws (p, K) and which of them each edge reads (m,) -> the signs of the edges, (m, K) int8."""
    signs = torch.empty(of_edge.numel(), table.shape[1], dtype=torch.int8)
    _on_threads(_along, of_edge.numel(), table.numpy(), array(of_edge), signs.numpy())
    return signs


def indicators_along(table: Tensor, of_edge: Tensor, like: Tensor) -> tuple[Tensor, Tensor]:
    """The same as two tables of numbers, z- and z+, (K, m) each, of the type of `like`."""
    shape = (table.shape[1], of_edge.numel())
    negative, positive = fresh(*shape, like=like), fresh(*shape, like=like)
    _on_threads(_indicators, of_edge.numel(), table.numpy(), array(of_edge), negative.numpy(), positive.numpy())
    return negative, positive
