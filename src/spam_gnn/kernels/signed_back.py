"""Compiled gradients of code-and-aggregate on one neighbourhood.

What reaches a neighbour's row is a sum of few vectors: the gradients of the two sums, the residuals, and what flows back
through each step. Their coefficients are collected (`share`), the vectors too (`basis`), and `spread` adds each neighbour's sum
once. |v_j|^2 in the step sizes adds a multiple of v_j itself, collected over the samples in `own_share`.

Messages come as `choose` lists them, the `here` present ones first. An absent one has a gradient of its sign, by the
coefficient that it would have had, and none of its neighbour's row.
"""

from __future__ import annotations

from typing import Any

from spam_gnn.kernels.compiled import inlined
from spam_gnn.kernels.ista import residual_of, step_back, step_sizes
from spam_gnn.kernels.rows import add_basis, add_rows, fill, row_dots


@inlined
def signs_back(
    k: int, begin: int, place: Any, count: int, positive: Any, negative: Any, codes: Any, steps: int, up_mass: Any,
    down_mass: Any, up_dots: Any, down_dots: Any, to_code: Any, share: Any, terms: int, to_positive: Any, to_negative: Any,
) -> None:  # fmt: skip
    """Through the sums: gradients of z+, z- and a_T from those of plus, minus (as dots with v) and the masses."""
    kind = to_code.dtype.type
    zero, one = kind(0.0), kind(1.0)
    for q in range(count):
        e = begin + place[q]
        up, down = positive[k, e], negative[k, e]
        a = codes[steps - 1, q] if steps > 0 else one
        size = abs(a)
        sign = one if a > zero else (-one if a < zero else zero)
        to_positive[k, e] = a * up_dots[q] + size * up_mass
        to_negative[k, e] = size * (down_dots[q] + down_mass)
        to_code[q] = up * (up_dots[q] + sign * up_mass) + down * sign * (down_dots[q] + down_mass)
        share[terms * q], share[terms * q + 1] = up * a, down * size


@inlined
def place_of(s: int, flow: bool) -> int:
    """Which row of `basis` holds the residual of step s, or what flows back through it (none through the first)."""
    return 1 + 2 * s if flow else 2 + 2 * s


@inlined
def keep_row(basis: Any, place: int, row: Any) -> None:
    """basis_place = row."""
    for x in range(row.size):
        basis[place, x] = row[x]


@inlined
def codes_back(
    target: Any, v: Any, listed: Any, here: int, count: int, presence: Any, near: Any, penalty: Any, codes: Any, steps: int,
    to_code: Any, to_bound: Any, to_presence: Any, step: Any, weight: Any, dots: Any, row: Any,
    share: Any, terms: int, basis: Any, to_target: Any, at: int,
) -> Any:  # fmt: skip
    """Through the steps, last to first; adds to row `at` of `to_target` and returns the gradient of lambda."""
    kind = presence.dtype.type
    bound, to_penalty = step_sizes(presence, near, here, here, step), kind(0.0)
    for q in range(count):
        to_bound[q], to_presence[q] = kind(0.0), kind(0.0)
    keep_row(basis, place_of(0, False), target)
    for s in range(1, steps):
        residual_of(target, v, listed, here, presence, codes, s - 1, weight, row)
        keep_row(basis, place_of(s, False), row)
    for s in range(steps - 1, -1, -1):
        to_penalty += step_back(s, here, presence, step, penalty, near, bound, codes, to_code, to_bound, to_presence, weight)
        fill(row, kind(0.0))
        add_rows(row, v, listed, weight, here)
        for x in range(row.size):
            to_target[at, x] += row[x]
        for q in range(here):
            share[terms * q + place_of(s, False)] = weight[q]
        if s > 0:
            keep_row(basis, place_of(s, True), row)
            row_dots(row, v, listed, count, dots)
            for q in range(count):
                earlier, p = codes[s - 1, q], presence[q]
                to_code[q] -= p * dots[q]
                to_presence[q] -= earlier * dots[q]
            for q in range(here):
                share[terms * q + place_of(s, True)] = -presence[q] * codes[s - 1, q]
    return to_penalty


@inlined
def bounds_back(
    k: int, begin: int, place: Any, here: int, count: int, presence: Any, near: Any, to_bound: Any, to_presence: Any,
    own_share: Any, to_positive: Any, to_negative: Any,
) -> None:  # fmt: skip
    """Through L_j: to |v_j|^2, whose gradient is a multiple of v_j itself (`own_share`), and to each message's presence."""
    kind = presence.dtype.type
    whole = kind(0.0)
    for q in range(here):
        whole += to_bound[q]
    for q in range(here):
        own_share[place[q]] += kind(2.0) * ((kind(1.0) - presence[q]) * to_bound[q] + presence[q] * whole)
    for q in range(count):
        extra = to_presence[q] + whole * near[q]
        to_positive[k, begin + place[q]] += extra
        to_negative[k, begin + place[q]] += extra


@inlined
def spread(into: Any, listed: Any, here: int, share: Any, terms: int, basis: Any, order: Any) -> None:
    """into of each present neighbour += sum_b share_b basis_b."""
    for q in range(here):
        add_basis(into, listed[q], basis, order, share, terms * q, terms)


@inlined
def terms_of(steps: int) -> int:
    """How many vectors a neighbour's gradient is made of: those of the two sums, T residuals, T - 1 flows."""
    return max(2 * steps + 1, 2)
