"""Compiled draws of edge signs: the hash of `randomness.edge_uniforms` and its comparison in one pass; their gradient."""

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
def _draw(begin: int, end: int, first: Any, second: Any, seeds: Any, probability: Any, signs: Any) -> None:
    words = np.empty_like(seeds)
    for k in range(seeds.size):
        words[k] = splitmix(seeds[k])
    for e in range(begin, end):
        pair = splitmix(splitmix(first[e]) ^ (second[e] * _MIX_2))
        low = np.float64(probability[e, 0])
        high = low + np.float64(probability[e, 1])
        for k in range(seeds.size):
            uniform = ((splitmix(pair ^ words[k]) >> _S12) + 0.5) * 2.0**-52
            signs[e, k] = (1 if uniform > high else 0) - (1 if uniform <= low else 0)


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


@compiled
def _to_log_prob(
    begin: int, end: int, probability: Any, edge: Any, mirror: Any, to_negative: Any, to_positive: Any, out: Any
) -> None:  # fmt: skip
    """Rows of `out` (m, 3) of both edges of draws begin .. end - 1: p times what comes from the two indicators."""
    zero = out.dtype.type(0.0)
    for q in range(begin, end):
        e = edge[q] if edge.size > 0 else q
        low, high = to_negative[e], to_positive[e]
        if mirror.size > 0:
            r = mirror[q]
            low, high = low + to_negative[r], high + to_positive[r]
            out[r, 0] = out[r, 1] = out[r, 2] = zero
        out[e, 0], out[e, 1], out[e, 2] = probability[q, 0] * low, zero, probability[q, 2] * high


def _on_threads(loop: Callable[..., None], count: int, *operands: Any) -> None:
    """loop(begin, end, ...) over parts of `count` edges: each edge has its own draws, whoever makes them."""
    over_range(count, _COST * count, lambda thread, begin, end: loop(begin, end, *operands))  # noqa: ARG005


def draw_table(first: Tensor, second: Tensor, seeds: list[int], probability: Tensor) -> Tensor:
    """(p, K) int8: -1 where u <= p(z = -1), +1 where u > p(z <= 0), else 0, u the uniform of `edge_uniforms`.

    Args:
        first, second: (p,) identities of the two ends.
        seeds: one per sample.
        probability: (p, 3) of z = -1, 0, +1.
    """
    signs = torch.empty(first.numel(), len(seeds), dtype=torch.int8)
    ends = [array(t).view(np.uint64) for t in (first, second)]
    _on_threads(_draw, first.numel(), *ends, np.array(seeds, dtype=np.uint64), array(probability), signs.numpy())
    return signs


def draw_signs(first: Tensor, second: Tensor, seeds: list[int], probability: Tensor) -> tuple[Tensor, Tensor]:
    """(K, p) booleans: which draws of :func:`draw_table` are negative, which positive."""
    signs = draw_table(first, second, seeds, probability).t()
    return signs < 0, signs > 0


def signs_along(table: Tensor, of_edge: Tensor) -> Tensor:
    """Draws (p, K) and which of them each edge reads (m,) -> the signs of the edges, (m, K) int8."""
    signs = torch.empty(of_edge.numel(), table.shape[1], dtype=torch.int8)
    table = table.contiguous()
    fits = table.shape[1] % 8 == 0 and table.storage_offset() % 8 == 0
    words = torch.int64 if fits else torch.int8  # eight signs at a time
    _on_threads(_along, of_edge.numel(), table.view(words).numpy(), array(of_edge), signs.view(words).numpy())
    return signs


def indicators_along(table: Tensor, of_edge: Tensor, like: Tensor) -> tuple[Tensor, Tensor]:
    """The same as two tables of numbers, z- and z+, (K, m) each, of the type of `like`."""
    shape = (table.shape[1], of_edge.numel())
    negative, positive = fresh(*shape, like=like), fresh(*shape, like=like)
    _on_threads(_indicators, of_edge.numel(), table.numpy(), array(of_edge), negative.numpy(), positive.numpy())
    return negative, positive


def gradient_of_draws(
    probability: Tensor, edge: Tensor, mirror: Tensor, to_negative: Tensor, to_positive: Tensor
) -> Tensor:  # fmt: skip
    """The gradient (m, 3) of log p where the indicators z- and z+ of sign s carry that of p_s: straight through the draw.

    Args:
        probability: (p, 3) of the draws.
        edge, mirror: (p,) the two stored edges of each draw; empty where every edge has a draw of its own.
        to_negative, to_positive: (m,) gradients of the indicators, added up over samples. What comes to the mirror counts for
            the edge that stands for the pair.
    """
    out = fresh(to_negative.numel(), 3, like=probability)
    given = [array(t) for t in (probability, edge, mirror, to_negative, to_positive)]
    _on_threads(_to_log_prob, len(probability), *given, out.numpy())
    return out
