"""Compiled loops of a sparse signed layer whose gradient nobody asks for, on signed graphs that were drawn.

An edge is there or not, so absent ones are left out altogether and all present ones share a step size. The output weights of
supporting messages are applied to the nodes beforehand: `table` (2 n, d) holds v_j in row 2 j and v_j W+ in row 2 j + 1.
Opposing messages are fewer: their sum goes through W- where there are any.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spam_gnn.kernels.combine import scales_of
from spam_gnn.kernels.compiled import compiled, inlined
from spam_gnn.kernels.elementary import exp, log
from spam_gnn.kernels.few import FEW, code_few
from spam_gnn.kernels.half_empty import add_product
from spam_gnn.kernels.ista import SMALLEST
from spam_gnn.kernels.neighbourhood import longest_row
from spam_gnn.kernels.prefetch import AHEAD, ask_for_row
from spam_gnn.kernels.rows import add_rows, fill, load, row_dots

BLOCK = 16  # nodes whose products are made together: of one weight after the other, each of which fits the nearest cache


@inlined
def products(first: int, last: int, hidden: Any, weights: Any, out: Any, start: int, stride: int) -> None:
    """Row start + stride b of `out` += h_(first + b) W, for b = 0 .. last - first - 1."""
    for j in range(first, last):
        add_product(out, start + stride * (j - first), hidden, j, weights)


@compiled
def project_rows(first: int, last: int, hidden: Any, to_value: Any, to_support: Any, table: Any, squares: Any) -> None:
    """Rows 2 j and 2 j + 1 of the table, h_j W_v and h_j W_v W+, and |v_j|^2, for j = first .. last - 1."""
    zero = table.dtype.type(0.0)
    for begin in range(first, last, BLOCK):
        end = min(begin + BLOCK, last)
        for r in range(2 * begin, 2 * end):
            for x in range(table.shape[1]):
                table[r, x] = zero
        products(begin, end, hidden, to_value, table, 2 * begin, 2)
        products(begin, end, hidden, to_support, table, 2 * begin + 1, 2)
        for j in range(begin, end):
            total = zero
            for x in range(table.shape[1]):
                total += table[2 * j, x] * table[2 * j, x]
            squares[j] = total


@inlined
def hears(pointer: Any, signs: Any, sample: int, samples: int, i: int) -> bool:
    """Whether one of the samples has a message to node i."""
    for e in range(pointer[i], pointer[i + 1]):
        for k in range(sample, sample + samples):
            if signs[e, k] != 0:
                return True
    return False


@inlined
def own_products(
    begin: int, end: int, pointer: Any, signs: Any, sample: int, samples: int, hidden: Any, to_target: Any, to_self: Any,
    bias: Any, steps: int, bases: Any, targets: Any,
) -> None:  # fmt: skip
    """What a layer makes of each node by itself, nodes begin .. end - 1: b + h W_self, and h W_t where it hears somebody."""
    zero = targets.dtype.type(0.0)
    for b in range(end - begin):
        for x in range(bias.size):
            bases[b, x] = bias[x]
    if to_self.shape[0] > 0:
        products(begin, end, hidden, to_self, bases, 0, 1)
    if steps > 0:
        for i in range(begin, end):
            if hears(pointer, signs, sample, samples, i):
                for x in range(targets.shape[1]):
                    targets[i - begin, x] = zero
                add_product(targets, i - begin, hidden, i, to_target)


@inlined
def look_ahead(
    pointer: Any, source: Any, signs: Any, sample: int, samples: int, i: int, edges: Any, slot: int, table: Any
) -> int:  # fmt: skip
    """List the messages to node i that one of the samples has, and ask for the rows of the first of them."""
    kept = 0
    for e in range(pointer[i], pointer[i + 1]):
        there = signs[e, sample]
        for k in range(sample + 1, sample + samples):
            there |= signs[e, k]
        edges[slot, kept] = e
        kept += 1 if there != 0 else 0
    for q in range(min(kept, AHEAD)):
        ask_for_row(table, 2 * source[edges[slot, q]], 2 * table.shape[1])
    return kept


@inlined
def list_present(
    signs: Any, k: int, edges: Any, slot: int, rows: Any, all_near: Any, all_dots: Any, heard: int, listed: Any, sign: Any,
    near: Any, dots: Any,
) -> int:  # fmt: skip
    """Of the messages that some sample has, those that sample k has: their rows, signs, |v_j|^2 and t . v_j."""
    count = 0
    for q in range(heard):
        s = signs[edges[slot, q], k]
        listed[count], sign[count], near[count], dots[count] = rows[q], s, all_near[q], all_dots[q]
        count += 1 if s != 0 else 0
    return count


@inlined
def code_present(
    t: Any, table: Any, listed: Any, near: Any, dots: Any, count: int, penalty: Any, steps: int, a: Any, down: Any,
    residual: Any, gram: Any,
) -> None:  # fmt: skip
    """The steps of `ista.code` where every neighbour is present; `dots` holds t . v_j on entry."""
    kind = a.dtype.type
    zero, bound = kind(0.0), kind(0.0)
    for q in range(count):
        bound += near[q]
    step = kind(1.0) / max(bound, kind(SMALLEST))
    h = kind(0.5) * penalty * step
    if count <= FEW:
        code_few(table, listed, near, dots, count, step, h, steps, a, gram)
        return
    for q in range(count):
        x = dots[q] * step
        a[q] = x - h if x > h else (x + h if x < -h else zero)
    for _ in range(1, steps):
        for q in range(count):
            down[q] = -a[q]
        for x in range(t.size):
            residual[x] = t[x]
        add_rows(residual, table, listed, down, count)
        row_dots(residual, table, listed, count, dots)
        for q in range(count):
            x = dots[q] * step + a[q]
            a[q] = x - h if x > h else (x + h if x < -h else zero)


@inlined
def part_present(
    listed: Any, sign: Any, a: Any, count: int, steps: int, some: Any, some_weights: Any, others: Any, other_weights: Any
) -> tuple[int, int, Any, Any]:  # fmt: skip
    """Rows of v W+ and weights of those that support, rows of v and weights of those that oppose; counts and masses."""
    kind = a.dtype.type
    zero, supporting, opposing, plus_mass, minus_mass = kind(0.0), 0, 0, kind(0.0), kind(0.0)
    for q in range(count):
        weight = a[q] if steps > 0 else kind(1.0)
        size, up = abs(weight), sign[q] > 0
        plus_mass, minus_mass = plus_mass + (size if up else zero), minus_mass + (zero if up else size)
        some[supporting], some_weights[supporting] = listed[q] + 1, weight
        others[opposing], other_weights[opposing] = listed[q], size
        supporting += 1 if up and size != zero else 0
        opposing += 1 if not up and size != zero else 0
    return supporting, opposing, plus_mass, minus_mass


@inlined
def add_opposing(
    row: Any, table: Any, others: Any, weights: Any, count: int, scale: Any, minus: Any, to_oppose: Any, order: Any
) -> None:  # fmt: skip
    """row += (scale sum_q w_q v_q) W-."""
    for q in range(count):
        weights[q] *= scale
    fill(minus, row.dtype.type(0.0))
    add_rows(minus, table, others, weights, count)
    add_rows(row, to_oppose, order, minus, row.size)


@inlined
def start_row(row: Any, base: Any, scale: Any, table: Any, r: int) -> None:
    """row = base + scale table_r."""
    for x in range(row.size):
        row[x] = base[x] + scale * table[r, x]


@inlined
def rectify(row: Any) -> None:
    """relu, in place."""
    for x in range(row.size):
        row[x] = max(row[x], row.dtype.type(0.0))


@inlined
def log_softmax(logits: Any, bias: Any, out: Any, k: int, i: int) -> None:
    """out_(k, i) = log softmax(logits + b); x - x is there so that what is not a number stays none."""
    top = logits[0] + bias[0]
    for c in range(bias.size):
        logits[c] += bias[c]
        top = max(top, logits[c])
    total = top - top
    for c in range(bias.size):
        total += exp(logits[c] - top) + (logits[c] - logits[c])
    top += log(total) + (total - total)
    for c in range(bias.size):
        out[k, i, c] = logits[c] - top


@compiled
def layer_rows(
    first: int, last: int, pointer: Any, source: Any, signs: Any, sample: int, hidden: Any, table: Any, squares: Any,
    to_target: Any, to_self: Any, bias: Any, to_oppose: Any, penalty: Any, own: Any, gamma: Any, steps: int,
    to_class: Any, class_bias: Any, out: Any,
) -> None:  # fmt: skip
    """relu of the layer for rows first .. last - 1, into `out` (K, n, d), in K samples from `sample` on with the same operands.

    `to_target` and `to_self` have no rows where a layer has none. With `to_class` (C, d), the classifier transposed, `out`
    (K, n, C) gets log p instead.
    """
    longest, width, kind, samples = longest_row(pointer, first, last), table.shape[1], table.dtype, out.shape[0]
    edges, lists = np.empty((2, longest), np.int64), np.empty((4, longest), np.int64)
    order = np.arange(max(width, class_bias.size))
    rows, listed, some, others = lists[0], lists[1], lists[2], lists[3]
    numbers, sign = np.empty((8, longest + FEW), kind), np.empty(longest, np.int8)
    all_near, all_dots, near, dots = numbers[0], numbers[1], numbers[2], numbers[3]
    a, down, some_weights, other_weights = numbers[4], numbers[5], numbers[6], numbers[7]
    vectors, logits = np.empty((5, width), kind), np.empty(class_bias.size, kind)
    t, base, residual, minus, row = vectors[0], vectors[1], vectors[2], vectors[3], vectors[4]
    bases, targets, gram = np.empty((BLOCK, width), kind), np.empty((BLOCK, width), kind), np.empty(FEW * FEW, kind)
    ahead = look_ahead(pointer, source, signs, sample, samples, first, edges, first & 1, table) if first < last else 0
    for i in range(first, last):
        slot, heard, b = i & 1, ahead, (i - first) % BLOCK
        if b == 0:
            end = min(i + BLOCK, last)
            own_products(i, end, pointer, signs, sample, samples, hidden, to_target, to_self, bias, steps, bases, targets)
        if i + 1 < last:
            ahead = look_ahead(pointer, source, signs, sample, samples, i + 1, edges, 1 - slot, table)
        load(base, bases, b)
        for q in range(heard):
            j = source[edges[slot, q]]
            rows[q], all_near[q] = 2 * j, squares[j]
        if steps > 0 and heard > 0:
            load(t, targets, b)
            row_dots(t, table, rows, heard, all_dots)
        for k in range(samples):
            count = list_present(
                signs, sample + k, edges, slot, rows, all_near, all_dots, heard, listed, sign, near, dots
            )
            if steps > 0:
                code_present(t, table, listed, near, dots, count, penalty, steps, a, down, residual, gram)
            supporting, opposing, plus_mass, minus_mass = part_present(
                listed, sign, a, count, steps, some, some_weights, others, other_weights
            )
            support, oppose = scales_of(plus_mass, minus_mass, own, gamma)
            for q in range(supporting):
                some_weights[q] *= support
            start_row(row, base, own * support, table, 2 * i + 1)
            add_rows(row, table, some, some_weights, supporting)
            if opposing > 0:
                add_opposing(row, table, others, other_weights, opposing, gamma * oppose, minus, to_oppose, order)
            rectify(row)
            if to_class.shape[0] > 0:
                row_dots(row, to_class, order, class_bias.size, logits)
                log_softmax(logits, class_bias, out, k, i)
            else:
                for x in range(width):
                    out[k, i, x] = row[x]
