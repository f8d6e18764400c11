"""Compiled parts that look at one node's neighbours: which they are, where their rows lie, which of them a sample has.

The rows of a neighbourhood are copied side by side once (`pack`) and stay in the cache through all passes over them; only of a
hub with more neighbours than that they are read from the table itself. `listed` numbers the rows wherever they are.
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
def meet(
    source: Any, begin: int, degree: int, values: Any, squares: Any, nodes: Any, listed: Any, near: Any, pack: Any
) -> bool:
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
def choose(
    positive: Any, negative: Any, k: int, begin: int, degree: int, rows: Any, all_near: Any, all_dots: Any,
    place: Any, listed: Any, presence: Any, near: Any, dots: Any,
) -> int:  # fmt: skip
    """All messages, those that the sample has first; returns how many these are. Sums over neighbours stop there, as the
    others would add zero; only gradients ask for the coefficients of absent messages, which lie from the end backwards.

    Signs are random, so no branch could be foretold: the place is computed.
    """
    here, end = 0, degree - 1
    for q in range(degree):
        p = positive[k, begin + q] + negative[k, begin + q]
        present = 1 if p != 0 else 0
        at = here if present else end
        place[at], listed[at], presence[at], near[at], dots[at] = q, rows[q], p, all_near[q], all_dots[q]
        here, end = here + present, end - 1 + present
    return here


@inlined
def in_any(positive: Any, negative: Any, begin: int, degree: int, found: Any) -> None:
    """found_q is 0 where no sample has the message: then its neighbour's values get no gradient from here."""
    for q in range(degree):
        found[q] = 0.0
    for k in range(positive.shape[0]):
        for q in range(degree):
            found[q] += positive[k, begin + q] + negative[k, begin + q]


@inlined
def part(
    positive: Any, negative: Any, k: int, begin: int, place: Any, listed: Any, count: int, codes: Any, s: int,
    plus: Any, plus_weights: Any, minus: Any, minus_weights: Any,
) -> tuple[int, int, Any, Any]:  # fmt: skip
    """Those that support with z+ a and those that oppose with z- |a|; how many, and the masses. s < 0: every a is 1."""
    kind = plus_weights.dtype.type
    supporting, opposing, plus_mass, minus_mass = 0, 0, kind(0.0), kind(0.0)
    for q in range(count):
        up, down = positive[k, begin + place[q]], negative[k, begin + place[q]]
        a = codes[s, q] if s >= 0 else kind(1.0)
        size = abs(a)
        plus_mass, minus_mass = plus_mass + up * size, minus_mass + down * size
        plus[supporting], plus_weights[supporting] = listed[q], up * a
        minus[opposing], minus_weights[opposing] = listed[q], down * size
        supporting += 1 if up * size != 0 else 0
        opposing += 1 if down * size != 0 else 0
    return supporting, opposing, plus_mass, minus_mass
