"""Compiled loops of code-and-aggregate: per node and sample, T steps of the coder over its neighbours, then the signed sums.

    plus_i = sum z+_j a_j v_j,  minus_i = sum z-_j |a_j| v_j,  and the same sums of |a_j| without v_j (masses),

a_j the coefficients of `ista`. Nothing of size (messages x width) is made. All samples read the same operands: what they have in
common is done once. With `halves` the sums go through the aggregation rule (`combine`) before the row is left.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spam_gnn.kernels.combine import halves_back, to_halves
from spam_gnn.kernels.compiled import compiled, inlined
from spam_gnn.kernels.ista import code, step_sizes
from spam_gnn.kernels.neighbourhood import PACKED, longest_row, meet, present_ones, signed_weights
from spam_gnn.kernels.prefetch import ask_for_row
from spam_gnn.kernels.rows import add_rows, fill, load, nonzero, row_dots, scatter_rows
from spam_gnn.kernels.signed_back import bounds_back, codes_back, signs_back, spread


@compiled
def row_squares(values: Any, out: Any) -> None:
    """out_j = |v_j|^2."""
    for j in range(values.shape[0]):
        total = values.dtype.type(0.0)
        for x in range(values.shape[1]):
            total += values[j, x] * values[j, x]
        out[j] = total


@inlined
def sum_up(total: Any, row: Any, at: int, v: Any, listed: Any, weight: Any, count: int, some: Any, some_weights: Any) -> None:
    """row[at:] = sum_q weight_q v_q, over those whose weight is not zero."""
    fill(total, total.dtype.type(0.0))
    add_rows(total, v, some, some_weights, nonzero(listed, weight, count, some, some_weights))
    for x in range(total.size):
        row[at + x] = total[x]


@inlined
def signed_sums(
    k: int, begin: int, place: Any, v: Any, listed: Any, count: int, positive: Any, negative: Any, codes: Any, s: int,
    row: Any, total: Any, weight: Any, some: Any, some_weights: Any,
) -> tuple[Any, Any]:  # fmt: skip
    """row = [plus | minus]; returns the two masses."""
    plus_mass = signed_weights(positive, k, begin, place, codes, s, count, False, weight)
    sum_up(total, row, 0, v, listed, weight, count, some, some_weights)
    minus_mass = signed_weights(negative, k, begin, place, codes, s, count, True, weight)
    sum_up(total, row, total.size, v, listed, weight, count, some, some_weights)
    return plus_mass, minus_mass


@compiled
def forward(
    first: int, last: int, origin: int, pointer: Any, source: Any, target: Any, values: Any, squares: Any, positive: Any, negative: Any,
    penalty: Any, own: Any, gamma: Any, codes: Any, sums: Any, masses: Any, steps: int, keep: bool, halves: bool,
) -> None:  # fmt: skip
    """Rows first .. last - 1. With `keep` all coefficients go to `codes` (K, T, m); without, absent messages are skipped.

    `target` (rows, d) and `sums` (K, rows, 2 d) begin with row `origin`; `values` (n, d) and `masses` (K, 2, n) with the first.
    """
    longest, width, kind = longest_row(pointer, first, last), values.shape[1], values.dtype
    numbers, lists = np.empty((8, longest), kind), np.empty((5, longest), np.int64)
    all_near, all_dots, near, dots = numbers[0], numbers[1], numbers[2], numbers[3]
    presence, step, weight, some_weights = numbers[4], numbers[5], numbers[6], numbers[7]
    nodes, rows, place, listed, some = lists[0], lists[1], lists[2], lists[3], lists[4]
    pack, found = np.empty((PACKED, width), kind), np.empty((max(steps, 1), longest), kind)
    t, vector = np.empty(width, kind), np.empty(width, kind)
    for i in range(first, last):
        begin, degree = pointer[i], pointer[i + 1] - pointer[i]
        v = pack if meet(source, begin, degree, values, squares, nodes, rows, all_near, pack) else values
        if steps > 0:
            load(t, target, i - origin)
            row_dots(t, v, rows, degree, all_dots)
        for k in range(positive.shape[0]):
            count = present_ones(positive, negative, k, begin, degree, keep, place, presence)
            for q in range(count):
                listed[q] = rows[place[q]]
            if steps > 0:
                for q in range(count):
                    near[q], dots[q] = all_near[place[q]], all_dots[place[q]]
                step_sizes(presence, near, count, step)
                code(t, v, listed, count, presence, step, penalty, found, steps, dots, weight, vector)
            if keep:
                for s in range(steps):
                    for q in range(count):
                        codes[k, s, begin + q] = found[s, q]
            row = sums[k, i - origin]
            masses[k, 0, i], masses[k, 1, i] = signed_sums(
                k, begin, place, v, listed, count, positive, negative, found, steps - 1, row, vector, weight, some, some_weights
            )
            if halves:
                to_halves(row, values, i, masses[k, 0, i], masses[k, 1, i], own, gamma)


@compiled
def backward(
    first: int, last: int, origin: int, pointer: Any, source: Any, target: Any, values: Any, squares: Any, positive: Any, negative: Any,
    penalty: Any, own: Any, gamma: Any, codes: Any, sums: Any, masses: Any, flows: Any, to_masses: Any, steps: int, halves: bool,
    to_target: Any, to_values: Any, to_positive: Any, to_negative: Any, to_scalars: Any,
) -> None:  # fmt: skip
    """Gradients of rows first .. last - 1; `to_values` and `to_scalars` (s, gamma, lambda) are the calling thread's own.

    `flows` (K, rows, 2 d) holds the gradient of what `forward` made; with `halves` that becomes the gradient of the sums, and the
    halves themselves, which were not kept, are made again in `sums`.
    """
    longest, width, kind = longest_row(pointer, first, last), values.shape[1], values.dtype
    numbers, lists = np.empty((11, longest), kind), np.empty((4, longest), np.int64)
    near, up_dots, down_dots, presence, step, weight = numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5]
    to_code, to_bound, to_presence, own_share, some_weights = numbers[6], numbers[7], numbers[8], numbers[9], numbers[10]
    nodes, rows, place, some = lists[0], lists[1], lists[2], lists[3]
    pack, inflow, found = np.empty((PACKED, width), kind), np.empty((PACKED, width), kind), np.empty((max(steps, 1), longest), kind)
    share, basis = np.empty((2 * steps + 2, longest), kind), np.empty((2 * steps + 2, width), kind)
    t, vector, other = np.empty(width, kind), np.empty(width, kind), np.empty(width, kind)
    for q in range(longest):
        place[q] = q
    for i in range(first, last):
        begin, degree = pointer[i], pointer[i + 1] - pointer[i]
        packs = meet(source, begin, degree, values, squares, nodes, rows, near, pack)
        v, into = (pack, inflow) if packs else (values, to_values)
        if packs:
            for q in range(degree):
                ask_for_row(to_values, nodes[q], width)
                for x in range(width):
                    inflow[q, x] = 0.0
        if steps > 0:
            load(t, target, i - origin)
        for k in range(positive.shape[0]):
            for s in range(steps):
                for q in range(degree):
                    found[s, q] = codes[k, s, begin + q]
            flow, up_mass, down_mass = flows[k, i - origin], to_masses[k, 0, i], to_masses[k, 1, i]
            if halves:
                row = sums[k, i - origin]
                signed_sums(
                    k, begin, place, v, rows, degree, positive, negative, found, steps - 1, row, vector, weight, some, some_weights
                )
                more = halves_back(row, flow, values, i, masses[k, 0, i], masses[k, 1, i], own, gamma, to_values, to_scalars)
                up_mass, down_mass = up_mass + more[0], down_mass + more[1]
            for x in range(width):
                vector[x], other[x] = flow[x], flow[width + x]
                basis[0, x], basis[1, x] = flow[x], flow[width + x]
            row_dots(vector, v, rows, degree, up_dots)
            row_dots(other, v, rows, degree, down_dots)
            signs_back(
                k, begin, degree, positive, negative, found, steps, up_mass, down_mass, up_dots, down_dots, presence, to_code,
                share, to_positive, to_negative,
            )  # fmt: skip
            if steps > 0:
                to_scalars[2] += codes_back(
                    t, v, rows, degree, presence, near, penalty, found, steps, to_code, to_bound, to_presence, step, weight,
                    up_dots, vector, share, basis, to_target, i - origin,
                )  # fmt: skip
                bounds_back(k, begin, degree, presence, near, to_bound, to_presence, own_share, to_positive, to_negative)
            spread(into, rows, degree, share, basis, steps, v, rows, own_share)
        if packs:
            scatter_rows(to_values, nodes, inflow, degree)
