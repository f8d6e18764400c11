"""Compiled loops of code-and-aggregate: per node and sample, T steps of the coder over its neighbours, then the signed sums.

    plus_i = sum z+_j a_j v_j,  minus_i = sum z-_j |a_j| v_j,  and the same sums of |a_j| without v_j (masses),

a_j the coefficients of `ista`. Nothing of size (messages x width) is made. All samples read the same operands: what they have
in common is done once. With `halves` the sums go through the aggregation rule (`combine`) before the row is left.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spam_gnn.kernels.combine import halves_back, keep_halves, scales_of
from spam_gnn.kernels.compiled import compiled, inlined
from spam_gnn.kernels.ista import code, step_sizes
from spam_gnn.kernels.neighbourhood import PACKED, choose, in_any, longest_row, meet, part
from spam_gnn.kernels.prefetch import ask_for_row
from spam_gnn.kernels.rows import add_rows, add_scaled_rows, clear_rows, fill, load, row_dots, scatter_rows
from spam_gnn.kernels.signed_back import bounds_back, codes_back, keep_row, signs_back, spread, terms_of


@compiled
def row_squares(values: Any, out: Any) -> None:
    """out_j = |v_j|^2."""
    for j in range(values.shape[0]):
        total = values.dtype.type(0.0)
        for x in range(values.shape[1]):
            total += values[j, x] * values[j, x]
        out[j] = total


@inlined
def signed_sums(
    k: int, begin: int, place: Any, v: Any, listed: Any, count: int, positive: Any, negative: Any, codes: Any, s: int,
    plus: Any, minus: Any, some: Any, some_weights: Any, others: Any, other_weights: Any,
) -> tuple[Any, Any]:  # fmt: skip
    """Fill plus and minus; returns the two masses."""
    supporting, opposing, plus_mass, minus_mass = part(
        positive, negative, k, begin, place, listed, count, codes, s, some, some_weights, others, other_weights
    )
    fill(plus, plus.dtype.type(0.0))
    add_rows(plus, v, some, some_weights, supporting)
    fill(minus, minus.dtype.type(0.0))
    add_rows(minus, v, others, other_weights, opposing)
    return plus_mass, minus_mass


@compiled
def forward(
    first: int, last: int, origin: int, pointer: Any, source: Any, target: Any, values: Any, squares: Any, positive: Any,
    negative: Any, penalty: Any, own: Any, gamma: Any, codes: Any, sums: Any, masses: Any, steps: int, keep: bool, halves: bool,
) -> None:  # fmt: skip
    """Rows first .. last - 1. With `keep` all coefficients go to `codes` (K, T, m), in a row's part in the order of `choose`;
    without, absent messages are skipped.

    `target` (rows, d) and `sums` (K, rows, 2, d) begin with row `origin`, `values` (n, d) and `masses` (K, 2, n) with row 0.
    """
    longest, width, kind = longest_row(pointer, first, last), values.shape[1], values.dtype
    numbers, lists = np.empty((9, longest), kind), np.empty((6, longest), np.int64)
    all_near, all_dots, near, dots, presence = numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]
    step, weight, some_weights, other_weights = numbers[5], numbers[6], numbers[7], numbers[8]
    nodes, rows, place, listed, some, others = lists[0], lists[1], lists[2], lists[3], lists[4], lists[5]
    pack, found = np.empty((PACKED, width), kind), np.empty((max(steps, 1), longest), kind)
    t, plus, minus = np.empty(width, kind), np.empty(width, kind), np.empty(width, kind)
    one = own / own
    for i in range(first, last):
        begin, degree = pointer[i], pointer[i + 1] - pointer[i]
        v = pack if meet(source, begin, degree, values, squares, nodes, rows, all_near, pack) else values
        if steps > 0:
            load(t, target, i - origin)
            row_dots(t, v, rows, degree, all_dots)
        for k in range(positive.shape[0]):
            here = choose(positive, negative, k, begin, degree, rows, all_near, all_dots, place, listed, presence, near, dots)
            count = degree if keep else here
            if steps > 0:
                step_sizes(presence, near, here, count, step)
                code(t, v, listed, here, count, presence, step, penalty, found, steps, dots, weight, plus)
            if keep:
                for s in range(steps):
                    for q in range(count):
                        codes[k, s, begin + q] = found[s, q]
            plus_mass, minus_mass = signed_sums(
                k, begin, place, v, listed, here, positive, negative, found, steps - 1, plus, minus,
                some, some_weights, others, other_weights,
            )  # fmt: skip
            masses[k, 0, i], masses[k, 1, i] = plus_mass, minus_mass
            if halves:
                support, oppose = scales_of(plus_mass, minus_mass, own, gamma)
                keep_halves(plus, minus, values, i, own, support, gamma * oppose, sums, k, i - origin)
            else:
                keep_halves(plus, minus, values, i, own - own, one, one, sums, k, i - origin)


@inlined
def make_ready(
    positive: Any, negative: Any, begin: int, degree: int, nodes: Any, packs: bool, own_share: Any, used: Any, inflow: Any,
    to_values: Any,
) -> None:  # fmt: skip
    """Room for the gradients of a neighbourhood, empty; rows that will be added to are asked for."""
    for q in range(degree):
        own_share[q] = 0.0
    in_any(positive, negative, begin, degree, used)
    if packs:
        clear_rows(inflow, degree)
        for q in range(degree):
            if used[q] != 0:
                ask_for_row(to_values, nodes[q], to_values.shape[1])


@inlined
def read_codes(codes: Any, k: int, begin: int, degree: int, steps: int, found: Any) -> None:
    """The coefficients of a neighbourhood as `forward` kept them."""
    for s in range(steps):
        for q in range(degree):
            found[s, q] = codes[k, s, begin + q]


@inlined
def given_flows(flows: Any, k: int, place: int, plus: Any, minus: Any) -> None:
    """The gradients of the two sums, where they are what was asked for."""
    for x in range(plus.size):
        plus[x], minus[x] = flows[k, place, 0, x], flows[k, place, 1, x]


@compiled
def backward(
    first: int, last: int, origin: int, pointer: Any, source: Any, target: Any, values: Any, squares: Any, positive: Any,
    negative: Any, penalty: Any, own: Any, gamma: Any, codes: Any, sums: Any, masses: Any, flows: Any, to_masses: Any,
    steps: int, halves: bool, to_target: Any, to_values: Any, to_positive: Any, to_negative: Any, to_scalars: Any,
) -> None:  # fmt: skip
    """Gradients of rows first .. last - 1; `to_values` and `to_scalars` (s, gamma, lambda) are the calling thread's own.

    `flows` (K, rows, 2, d) holds the gradient of what `forward` made; with `halves` these are made again in `sums`.
    """
    longest, width, kind, terms = longest_row(pointer, first, last), values.shape[1], values.dtype, terms_of(steps)
    numbers, lists = np.empty((14, longest), kind), np.empty((6, longest), np.int64)
    near, dots, more_dots, presence, step, weight = numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5]
    to_code, to_bound, to_presence, own_share = numbers[6], numbers[7], numbers[8], numbers[9]
    some_weights, other_weights, all_near, used = numbers[10], numbers[11], numbers[12], numbers[13]
    nodes, rows, some, others, place, listed = lists[0], lists[1], lists[2], lists[3], lists[4], lists[5]
    pack, inflow, share = np.empty((PACKED, width), kind), np.empty((PACKED, width), kind), np.empty(terms * longest, kind)
    found, basis = np.empty((max(steps, 1), longest), kind), np.empty((terms, width), kind)
    t, plus, minus, order = np.empty(width, kind), np.empty(width, kind), np.empty(width, kind), np.arange(terms)
    for i in range(first, last):
        begin, degree = pointer[i], pointer[i + 1] - pointer[i]
        packs = meet(source, begin, degree, values, squares, nodes, rows, all_near, pack)
        v, into = (pack, inflow) if packs else (values, to_values)
        make_ready(positive, negative, begin, degree, nodes, packs, own_share, used, inflow, to_values)
        if steps > 0:
            load(t, target, i - origin)
        for k in range(positive.shape[0]):
            read_codes(codes, k, begin, degree, steps, found)
            here = choose(positive, negative, k, begin, degree, rows, all_near, all_near, place, listed, presence, near, dots)
            up_mass, down_mass = to_masses[k, 0, i], to_masses[k, 1, i]
            if halves:
                signed_sums(
                    k, begin, place, v, listed, here, positive, negative, found, steps - 1, plus, minus,
                    some, some_weights, others, other_weights,
                )  # fmt: skip
                more = halves_back(plus, minus, flows, sums, k, i - origin, values, i, masses[k, 0, i], masses[k, 1, i],
                                   own, gamma, to_values, to_scalars)  # fmt: skip
                up_mass, down_mass = up_mass + more[0], down_mass + more[1]
            else:
                given_flows(flows, k, i - origin, plus, minus)
            keep_row(basis, 0, plus)
            keep_row(basis, 1, minus)
            row_dots(plus, v, listed, degree, dots)
            row_dots(minus, v, listed, degree, more_dots)
            signs_back(
                k, begin, place, degree, positive, negative, found, steps, up_mass, down_mass, dots, more_dots, to_code,
                share, terms, to_positive, to_negative,
            )  # fmt: skip
            if steps > 0:
                to_scalars[2] += codes_back(
                    t, v, listed, here, degree, presence, near, penalty, found, steps, to_code, to_bound, to_presence, step,
                    weight, dots, plus, share, terms, basis, to_target, i - origin,
                )  # fmt: skip
                bounds_back(
                    k, begin, place, here, degree, presence, near, to_bound, to_presence, own_share, to_positive, to_negative
                )
            spread(into, listed, here, share, terms, basis, order)
        if packs:
            scatter_rows(to_values, nodes, inflow, own_share, pack, rows, used, degree)
        else:
            add_scaled_rows(to_values, nodes, own_share, values, degree)
