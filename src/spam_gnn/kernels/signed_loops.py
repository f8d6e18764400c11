"""Compiled loops of code-and-aggregate: per node and sample, T steps of ISTA over the present neighbours, then the signed sums.

For node i of sample k, presence p_j = z+_j + z-_j, step s_j = 1 / L_j, threshold h_j = lambda s_j / 2, residual r_0 = t:

    x_1 = s_j (t . v_j),                a_1 = S(x_1, h),      r_1 = t - sum_j p_j a_1j v_j,
    x_2 = p_j a_1j + s_j (r_1 . v_j),   a_2 = S(x_2, h),      ...  up to a_T; with T = 0 every a_j is 1,
    plus_i = sum z+_j a_j v_j,  minus_i = sum z-_j |a_j| v_j,  and the same sums of |a_j| without v_j (masses).

A node's neighbours stay in cache through all passes over them, and nothing of size (messages x width) is made. The backward
pass rebuilds the residuals from the stored coefficients; what flows to v_j is scattered into a buffer of the calling thread.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spam_gnn.kernels.compiled import compiled
from spam_gnn.kernels.rows import add_rows, nonzero, row_dots, scatter

SMALLEST = 1e-8  # of a Lipschitz bound


@compiled
def _longest(pointer: Any, first: int, last: int) -> int:
    longest = 1
    for i in range(first, last):
        longest = max(longest, pointer[i + 1] - pointer[i])
    return longest


@compiled
def _steps(presence: Any, squares: Any, nodes: Any, count: int, smallest: float, out: Any) -> float:
    """Step sizes 1 / L_j, L_j the sum of |v|^2 over present neighbours (an absent one counts itself in); returns the sum."""
    one, bound = presence.dtype.type(1.0), presence.dtype.type(0.0)
    for e in range(count):
        bound += presence[e] * squares[nodes[e]]
    for e in range(count):
        out[e] = one / max(bound + (one - presence[e]) * squares[nodes[e]], smallest)
    return bound


@compiled
def forward(
    first: int, last: int, pointer: Any, source: Any, target: Any, values: Any, squares: Any, positive: Any, negative: Any,
    penalty: float, codes: Any, plus: Any, minus: Any, plus_mass: Any, minus_mass: Any, coder_steps: int, keep: bool,
) -> None:  # fmt: skip
    """Rows first .. last - 1. With `keep` all coefficients go to `codes` (T, K, m); without, absent messages are skipped."""
    kind = values.dtype.type
    samples, width, longest = positive.shape[0], values.shape[2], _longest(pointer, first, last)
    half, smallest, zero = penalty * kind(0.5), kind(SMALLEST), kind(0.0)
    residual = np.empty(width, values.dtype)
    place, nodes, some_nodes = np.empty(longest, np.int64), np.empty(longest, np.int64), np.empty(longest, np.int64)
    presence, step, code = np.empty(longest, values.dtype), np.empty(longest, values.dtype), np.ones(longest, values.dtype)
    dots, some_weights = np.empty(longest, values.dtype), np.empty(longest, values.dtype)
    shared, first_dots = values.shape[0] == 1 and target.shape[0] == 1 and samples > 1, np.empty(longest, values.dtype)
    for i in range(first, last):
        if shared and coder_steps > 0:  # the first step looks at t . v, which then is the same in every sample
            row_dots(target[0, i], values[0], source[pointer[i] : pointer[i + 1]], pointer[i + 1] - pointer[i], first_dots)
        for k in range(samples):
            v, t = values[k if values.shape[0] > 1 else 0], target[k if target.shape[0] > 1 else 0, i]
            count = 0
            for e in range(pointer[i], pointer[i + 1]):
                p = positive[k, e] + negative[k, e]
                if keep or p != zero:
                    place[count], nodes[count], presence[count] = e, source[e], p
                    count += 1
            if coder_steps > 0:
                _steps(presence, squares[k if squares.shape[0] > 1 else 0], nodes, count, smallest, step)
            for s in range(coder_steps):
                for c in range(width):
                    residual[c] = t[c]
                if s > 0:
                    for q in range(count):
                        dots[q] = -presence[q] * code[q]
                    if keep:
                        some = nonzero(nodes, dots, count, some_nodes, some_weights)
                        add_rows(residual, v, some_nodes, some_weights, some)
                    else:
                        add_rows(residual, v, nodes, dots, count)
                if s == 0 and shared:
                    for q in range(count):
                        dots[q] = first_dots[place[q] - pointer[i]]
                else:
                    row_dots(residual, v, nodes, count, dots)
                for q in range(count):
                    x, h = dots[q] * step[q], half * step[q]
                    if s > 0:
                        x += presence[q] * code[q]
                    code[q] = x - h if x > h else (x + h if x < -h else zero)
                    if keep:
                        codes[s, k, place[q]] = code[q]
            for sign in range(2):
                total, mass = (plus[k, i], zero) if sign == 0 else (minus[k, i], zero)
                for c in range(width):
                    total[c] = zero
                for q in range(count):
                    z = positive[k, place[q]] if sign == 0 else negative[k, place[q]]
                    size = abs(code[q])
                    mass += z * size
                    dots[q] = z * code[q] if sign == 0 else z * size
                some = nonzero(nodes, dots, count, some_nodes, some_weights)
                add_rows(total, v, some_nodes, some_weights, some)
                if sign == 0:
                    plus_mass[k, i] = mass
                else:
                    minus_mass[k, i] = mass


@compiled
def backward(
    first: int, last: int, pointer: Any, source: Any, target: Any, values: Any, squares: Any, positive: Any, negative: Any,
    penalty: float, codes: Any, to_plus: Any, to_minus: Any, to_plus_mass: Any, to_minus_mass: Any, coder_steps: int,
    to_target: Any, to_values: Any, to_squares: Any, to_positive: Any, to_negative: Any, to_penalty: Any,
) -> None:  # fmt: skip
    """Gradients of rows first .. last - 1; `to_values` and `to_squares` are the calling thread's own and are added to."""
    kind = values.dtype.type
    samples, width, longest = positive.shape[0], values.shape[2], _longest(pointer, first, last)
    half, smallest, zero, one = penalty * kind(0.5), kind(SMALLEST), kind(0.0), kind(1.0)
    residuals, flow = np.empty((max(coder_steps, 1), width), values.dtype), np.empty(width, values.dtype)
    some_nodes, some_weights = np.empty(longest, np.int64), np.empty(longest, values.dtype)
    up_dots, down_dots = np.empty(longest, values.dtype), np.empty(longest, values.dtype)
    presence, step, weight = np.empty(longest, values.dtype), np.empty(longest, values.dtype), np.empty(longest, values.dtype)
    to_code, to_presence = np.empty(longest, values.dtype), np.empty(longest, values.dtype)
    to_bound = np.empty(longest, values.dtype)
    for i in range(first, last):
        begin = pointer[i]
        count = pointer[i + 1] - begin
        nodes = source[begin : begin + count]
        for k in range(samples):
            kv, kt = k if values.shape[0] > 1 else 0, k if target.shape[0] > 1 else 0
            v, square, into = values[kv], squares[kv], to_values[kv]
            up_mass, down_mass = to_plus_mass[k, i], to_minus_mass[k, i]
            row_dots(to_plus[k, i], v, nodes, count, up_dots)
            row_dots(to_minus[k, i], v, nodes, count, down_dots)
            for q in range(count):
                up, down = positive[k, begin + q], negative[k, begin + q]
                code = codes[coder_steps - 1, k, begin + q] if coder_steps > 0 else one
                size = abs(code)
                sign = one if code > zero else (-one if code < zero else zero)
                presence[q], to_presence[q], to_bound[q] = up + down, zero, zero
                to_positive[k, begin + q] = code * up_dots[q] + size * up_mass
                to_negative[k, begin + q] = size * (down_dots[q] + down_mass)
                to_code[q] = up * (up_dots[q] + sign * up_mass) + down * sign * (down_dots[q] + down_mass)
                up_dots[q], down_dots[q] = up * code, down * size
            scatter(into, nodes, count, up_dots, to_plus[k, i], down_dots, to_minus[k, i])
            if coder_steps == 0:
                continue
            bound = _steps(presence, square, nodes, count, smallest, step)
            for s in range(coder_steps):  # residuals[s] is what step s + 1 looked at
                for c in range(width):
                    residuals[s, c] = target[kt, i, c]
                if s > 0:
                    for q in range(count):
                        weight[q] = -presence[q] * codes[s - 1, k, begin + q]
                    some = nonzero(nodes, weight, count, some_nodes, some_weights)
                    add_rows(residuals[s], v, some_nodes, some_weights, some)
            for s in range(coder_steps - 1, -1, -1):
                for q in range(count):
                    code, g = codes[s, k, begin + q], to_code[q]
                    weight[q], to_code[q] = zero, zero
                    if code == zero or g == zero:  # below the threshold nothing moves
                        continue
                    earlier = codes[s - 1, k, begin + q] if s > 0 else zero
                    sign, p = one if code > zero else -one, presence[q]
                    dot = (code + sign * half * step[q] - p * earlier) / step[q]
                    to_penalty[0] -= sign * g * step[q] * kind(0.5)
                    if bound + (one - p) * square[nodes[q]] > smallest:
                        to_bound[q] -= g * (dot - sign * half) * step[q] * step[q]
                    weight[q], to_code[q] = g * step[q], g * p
                    to_presence[q] += g * earlier
                some = nonzero(nodes, weight, count, some_nodes, some_weights)
                for c in range(width):
                    flow[c] = zero
                add_rows(flow, v, some_nodes, some_weights, some)
                for c in range(width):
                    to_target[kt, i, c] += flow[c]
                for q in range(count):
                    down_dots[q] = zero
                if s > 0:
                    row_dots(flow, v, nodes, count, up_dots)
                    for q in range(count):
                        earlier = codes[s - 1, k, begin + q]
                        to_code[q] -= presence[q] * up_dots[q]
                        to_presence[q] -= earlier * up_dots[q]
                        down_dots[q] = -presence[q] * earlier
                scatter(into, nodes, count, weight, residuals[s], down_dots, flow)
            whole = zero
            for q in range(count):
                whole += to_bound[q]
            for q in range(count):
                to_squares[kv, nodes[q]] += (one - presence[q]) * to_bound[q] + presence[q] * whole
                extra = to_presence[q] + whole * square[nodes[q]]
                to_positive[k, begin + q] += extra
                to_negative[k, begin + q] += extra
