"""Compiled steps of the unrolled coder on one neighbourhood, forward and backward.

For a node with target t and neighbours v_j, presence p_j = z+_j + z-_j, step s_j = 1 / L_j, threshold h_j = lambda s_j / 2:

    x_1 = s_j (t . v_j),                a_1 = S(x_1, h),      r_1 = t - sum_j p_j a_1j v_j,
    x_2 = p_j a_1j + s_j (r_1 . v_j),   a_2 = S(x_2, h),      ...  up to a_T; with T = 0 every a_j is 1.

L_j is the sum of |v|^2 over the present neighbours; an absent one counts itself in. `v` and `listed` say where the rows of the
`count` neighbours are: copied side by side, or in the table of all nodes where they are too many to stay in the cache. The
first `here` of them are the present ones: the rest add nothing to any sum.
"""

from __future__ import annotations

from typing import Any

from spam_gnn.kernels.compiled import inlined
from spam_gnn.kernels.rows import add_rows, row_dots

SMALLEST = 1e-8  # of a Lipschitz bound


@inlined
def step_sizes(presence: Any, squares: Any, here: int, count: int, step: Any) -> float:
    """1 / L_j from |v_j|^2; returns the bound that all present neighbours share."""
    kind = presence.dtype.type
    one, smallest, bound = kind(1.0), kind(SMALLEST), kind(0.0)
    for q in range(here):
        bound += presence[q] * squares[q]
    for q in range(count):
        step[q] = one / max(bound + (one - presence[q]) * squares[q], smallest)
    return bound


@inlined
def residual_of(target: Any, v: Any, listed: Any, here: int, presence: Any, codes: Any, s: int, weight: Any, out: Any) -> None:
    """out = t - sum_j p_j a_sj v_j, what step s + 1 looks at."""
    for x in range(target.size):
        out[x] = target[x]
    for q in range(here):
        weight[q] = -presence[q] * codes[s, q]
    add_rows(out, v, listed, weight, here)


@inlined
def shrink(dots: Any, step: Any, penalty: Any, presence: Any, codes: Any, s: int, count: int) -> None:
    """a_s = S(p a_{s-1} + s_j dot_j, h_j) of all neighbours."""
    kind = dots.dtype.type
    zero, half = kind(0.0), kind(0.5) * penalty
    for q in range(count):
        x, h = dots[q] * step[q], half * step[q]
        if s > 0:
            x += presence[q] * codes[s - 1, q]
        codes[s, q] = x - h if x > h else (x + h if x < -h else zero)


@inlined
def code(
    target: Any, v: Any, listed: Any, here: int, count: int, presence: Any, step: Any, penalty: Any, codes: Any, steps: int,
    dots: Any, weight: Any, residual: Any,
) -> None:  # fmt: skip
    """Fill codes (T, count); `dots` holds t . v_j on entry."""
    for s in range(steps):
        if s > 0:
            residual_of(target, v, listed, here, presence, codes, s - 1, weight, residual)
            row_dots(residual, v, listed, count, dots)
        shrink(dots, step, penalty, presence, codes, s, count)


@inlined
def step_back(
    s: int, here: int, presence: Any, step: Any, penalty: Any, squares: Any, bound: Any, codes: Any,
    to_code: Any, to_bound: Any, to_presence: Any, weight: Any,
) -> Any:  # fmt: skip
    """From a_s to what made it: `weight` gets the gradient of r . v_j, `to_code` becomes that of a_{s-1}; returns lambda's.

    Of the `here` present messages: to the coefficient of an absent one nothing flows back.
    """
    kind = presence.dtype.type
    zero, one, smallest, to_penalty = kind(0.0), kind(1.0), kind(SMALLEST), kind(0.0)
    half = kind(0.5) * penalty
    for q in range(here):
        a, p, size = codes[s, q], presence[q], step[q]
        g = to_code[q] if a != zero else zero  # below the threshold nothing moves
        earlier = codes[s - 1, q] if s > 0 else zero
        sign = one if a > zero else -one
        to_penalty -= sign * g * size * kind(0.5)
        dot = (a + sign * half * size - p * earlier) / size
        moves = bound + (one - p) * squares[q] > smallest
        to_bound[q] -= g * (dot - sign * half) * size * size if moves else zero
        weight[q], to_code[q] = g * size, g * p
        to_presence[q] += g * earlier
    return to_penalty
