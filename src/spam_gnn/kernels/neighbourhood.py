"""Compiled parts that look at one node's neighbours: which they are, where their rows lie, which of them a sample has.

The rows of a neighbourhood are copied side by side once (`pack`) and stay in the cache through all passes over them; only of a hub
with more neighbours than that they are read from the table itself. `listed` numbers the rows wherever they are.
"""

from __future__ import annotations

from typing import Any

from spam_gnn.kernels.compiled import inlined
from spam_gnn.kernels.prefetch import AHEAD, ask_for_row
from spam_gnn.kernels.rows import gather_rows

PACKED = 1024  # neighbours up to which their rows are copied: 256 KiB at width 64, half of a usual second-level cache


@inlined
def longest_row(pointer: Any, first: int, last: int) -> int:
    """The most messages that arrive at one of the nodes first .. last - 1, at least 1."""
    longest = 1
    for i in range(first, last):
        longest = max(longest, pointer[i + 1] - pointer[i])
    return longest


@inlined
def meet(source: Any, begin: int, degree: int, values: Any, squares: Any, nodes: Any, listed: Any, near: Any, pack: Any) -> bool:
    """List the neighbours, their |v|^2 and their rows; says whether the rows were packed."""
    packs = degree <= PACKED
    for q in range(degree):
        ask_for_row(values, source[min(begin + q + AHEAD, source.size - 1)], values.shape[1])
        nodes[q] = source[begin + q]
        near[q] = squares[nodes[q]]
        listed[q] = q if packs else nodes[q]
    if packs:
        gather_rows(pack, values, nodes, degree)
    return packs


@inlined
def present_ones(positive: Any, negative: Any, k: int, begin: int, degree: int, every: bool, place: Any, presence: Any) -> int:
    """Which messages take part, those drawn present or every one, and their presence; returns how many."""
    kept = 0
    for q in range(degree):
        p = positive[k, begin + q] + negative[k, begin + q]
        place[kept], presence[kept] = q, p
        kept += 1 if every or p != 0 else 0
    return kept


@inlined
def signed_weights(signs: Any, k: int, begin: int, place: Any, codes: Any, s: int, count: int, sized: bool, out: Any) -> Any:
    """out_q = z a (or z |a|) of the chosen messages; s < 0 means that every a is 1. Returns sum z |a|."""
    kind = out.dtype.type
    mass = kind(0.0)
    for q in range(count):
        z, a = signs[k, begin + place[q]], codes[s, q] if s >= 0 else kind(1.0)
        size = abs(a)
        mass += z * size
        out[q] = z * size if sized else z * a
    return mass
