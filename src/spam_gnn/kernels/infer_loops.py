"""Compiled loops of a sparse signed layer whose gradient nobody asks for, on signed graphs that were drawn.

An edge is there or not, so absent ones are left out altogether and all present ones share a step size. The output weights of
supporting messages are applied to the nodes beforehand: `table` holds of each row h of what nodes hold v = h W_v and v W+, in
rows `each` r and `each` r + 1. Opposing messages are fewer: their sum goes through W- where there are any, or, where many nodes
hear some (`each` is 3 then, else 2), v W- is the third row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spam_gnn.kernels.combine import scales_of
from spam_gnn.kernels.compiled import compiled, inlined
from spam_gnn.kernels.few import FEW, code_few
from spam_gnn.kernels.half_empty import add_product, product
from spam_gnn.kernels.infer_ends import classes_of_block, finish_row, finish_waiting
from spam_gnn.kernels.ista import SMALLEST
from spam_gnn.kernels.neighbourhood import longest_row
from spam_gnn.kernels.prefetch import AHEAD, ask_for_row
from spam_gnn.kernels.rows import add_row_of, add_rows, fill_row, load, row_dots
from spam_gnn.kernels.variants import leads

LEAD = 4  # nodes between asking for the rows of a node's neighbours and using them, a power of 2
# Nodes whose products are made together, and results that wait for theirs with W-: weights come to the nearest cache once for
# all of them.
BLOCK, WAITING = 64, 32


@compiled
def project_rows(
    first: int, last: int, each: int, hidden: Any, members: Any, new: Any, at: Any, to_said: Any, to_oppose: Any, table: Any,
    squares: Any,
) -> None:  # fmt: skip
    """The rows of the table from `each` at_i on and |v|^2, of hidden row members_i, for those nodes first .. last - 1 that are
    new."""
    nodes, i, zero = np.empty(BLOCK, np.int64), first, table.dtype.type(0.0)
    while i < last:
        count = 0
        while i < last and count < BLOCK:
            nodes[count] = i
            count += 1 if new[i] else 0
            i += 1
        for b in range(count):
            product(table, each * at[nodes[b]], hidden, members[nodes[b]], to_said)
        for b in range(count if each > 2 else 0):
            product(table, each * at[nodes[b]] + 2, hidden, members[nodes[b]], to_oppose)
        for b in range(count):
            r, total = at[nodes[b]], zero
            for x in range(table.shape[1]):
                total += table[each * r, x] * table[each * r, x]
            squares[r] = total


@inlined
def own_products(
    begin: int, end: int, here: int, samples: int, leader: Any, hidden: Any, members: Any, to_own: Any, bias: Any, made: Any
) -> None:
    """What a layer makes of each node by itself, nodes begin .. end - 1 of which there is something to say: b + h W_self in row
    2 (i - begin) of `made`, and h W_t in the next."""
    for i in range(end, min(end + BLOCK, members.size)):
        ask_for_row(hidden, members[i], hidden.shape[1])
    for i in range(begin, end):
        for x in range(bias.size):
            made[2 * (i - begin), x], made[2 * (i - begin) + 1, x] = bias[x], bias.dtype.type(0.0)
    for i in range(begin, end if to_own.shape[0] > 0 else begin):
        if leads(leader, i, here, samples):
            add_product(made, 2 * (i - begin), hidden, members[i], to_own)


@inlined
def look_ahead(
    pointer: Any, source: Any, signs: Any, sample: int, here: int, samples: int, leader: Any, i: int, at: Any, each: int,
    edges: Any, heard: Any, table: Any,
) -> None:  # fmt: skip
    """List the messages to node i that one of the samples has, and ask for the rows of the first of them; none where other
    samples have said what there is to say."""
    kept, slot, now = 0, i & (LEAD - 1), sample + here
    if not leads(leader, i, here, samples):
        heard[slot] = 0
        return
    for e in range(pointer[i], pointer[i + 1]):
        there = signs[e, now]
        for k in range(now + 1, now + samples):
            there |= signs[e, k]
        edges[slot, kept] = e
        kept += 1 if there != 0 else 0
    for q in range(min(kept, AHEAD)):
        ask_for_row(table, each * at[source[edges[slot, q]]], 2 * table.shape[1])
    heard[slot] = kept


@inlined
def meet_all(
    heard: int, edges: Any, slot: int, source: Any, at: Any, each: int, squares: Any, table: Any, steps: int, made: Any,
    target: int, t: Any, rows: Any, near: Any, dots: Any,
) -> None:  # fmt: skip
    """Of all that a node hears in some sample: rows of the table and |v|^2, and where there are steps t . v."""
    for q in range(heard):
        r = at[source[edges[slot, q]]]
        rows[q], near[q] = each * r, squares[r]
    if heard > 0 and steps > 0:
        load(t, made, target)
        row_dots(t, table, rows, heard, dots)


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
    listed: Any, sign: Any, a: Any, count: int, steps: int, each: int, some: Any, some_weights: Any, others: Any,
    other_weights: Any,
) -> tuple[int, int, Any, Any]:  # fmt: skip
    """Rows of v W+ and weights of those that support, rows of v, or of v W-, and weights of those that oppose; counts and
    masses."""
    kind = a.dtype.type
    zero, supporting, opposing, plus_mass, minus_mass = kind(0.0), 0, 0, kind(0.0), kind(0.0)
    for q in range(count):
        weight = a[q] if steps > 0 else kind(1.0)
        size, up = abs(weight), sign[q] > 0
        plus_mass, minus_mass = plus_mass + (size if up else zero), minus_mass + (zero if up else size)
        some[supporting], some_weights[supporting] = listed[q] + 1, weight
        others[opposing], other_weights[opposing] = listed[q] + (each - 1 & 2), size
        supporting += 1 if up and size != zero else 0
        opposing += 1 if not up and size != zero else 0
    return supporting, opposing, plus_mass, minus_mass


@inlined
def add_scaled_to(out: Any, place: int, table: Any, listed: Any, weights: Any, count: int, scale: Any) -> None:
    """out_place += scale sum_q w_q table_q over the rows listed; the weights are scaled in place."""
    for q in range(count):
        weights[q] *= scale
    add_row_of(out, place, table, listed, weights, 0, count)


@inlined
def start_row(rows: Any, place: int, made: Any, base: int, scale: Any, table: Any, r: int) -> None:
    """row_place = made_base + scale table_r."""
    for x in range(rows.shape[1]):
        rows[place, x] = made[base, x] + scale * table[r, x]


@compiled
def layer_rows(
    first: int, last: int, each: int, pointer: Any, source: Any, signs: Any, sample: int, here: int, samples: int, leader: Any,
    to: Any, at: Any, hidden: Any, members: Any, table: Any, squares: Any, to_own: Any, bias: Any, to_oppose: Any,
    penalty: Any, own: Any, gamma: Any, steps: int, to_class: Any, class_bias: Any, out: Any,
) -> None:  # fmt: skip
    """relu of the layer for nodes first .. last - 1 in samples k = here .. here + samples - 1, whose signs are in column
    `sample` + k: one row of `out` (1, variants, d) for each variant, in place `to`.

    In these samples node i holds hidden row members_i, and row at_i of the table is made of it. `to_own` holds W_self, and W_t
    beside it if there are steps. With `to_class` (C, d), the classifier transposed, `out` (K, n, C) gets log p instead, of
    every sample.
    """
    longest, width, kind = longest_row(pointer, first, last), table.shape[1], table.dtype
    edges, lists, all_heard = np.empty((LEAD, longest), np.int64), np.empty((4, longest), np.int64), np.zeros(LEAD, np.int64)
    order, whose, waiting = np.arange(max(width, class_bias.size)), np.empty((2, WAITING), np.int64), 0
    rows, listed, some, others = lists[0], lists[1], lists[2], lists[3]
    numbers, sign = np.empty((8, longest + FEW), kind), np.empty(longest, np.int8)
    all_near, all_dots, near, dots = numbers[0], numbers[1], numbers[2], numbers[3]
    a, down, some_weights, other_weights = numbers[4], numbers[5], numbers[6], numbers[7]
    t, residual, logits = np.empty(width, kind), np.empty(width, kind), np.empty(class_bias.size, kind)
    made, gram = np.empty((2 * BLOCK, width), kind), np.empty(FEW * FEW, kind)
    results, sums = np.empty((WAITING, width), kind), np.empty((WAITING, width), kind)
    tops, totals = np.empty(BLOCK, kind), np.empty(BLOCK, kind)
    for i in range(first, min(first + LEAD - 1, last)):
        look_ahead(pointer, source, signs, sample, here, samples, leader, i, at, each, edges, all_heard, table)
    for i in range(first, last):
        slot, b = i & (LEAD - 1), (i - first) % BLOCK
        heard = all_heard[slot]
        if b == 0:
            own_products(i, min(i + BLOCK, last), here, samples, leader, hidden, members, to_own, bias, made)
        if i + LEAD - 1 < last:
            look_ahead(pointer, source, signs, sample, here, samples, leader, i + LEAD - 1, at, each, edges, all_heard, table)
        meet_all(heard, edges, slot, source, at, each, squares, table, steps, made, 2 * b + 1, t, rows, all_near, all_dots)
        for k in range(here, here + samples):
            if leader[i, k] != k:
                continue
            count = list_present(signs, sample + k, edges, slot, rows, all_near, all_dots, heard, listed, sign, near, dots)
            if steps > 0:
                code_present(t, table, listed, near, dots, count, penalty, steps, a, down, residual, gram)
            supporting, opposing, plus_mass, minus_mass = part_present(
                listed, sign, a, count, steps, each, some, some_weights, others, other_weights
            )
            support, oppose = scales_of(plus_mass, minus_mass, own, gamma)
            start_row(results, waiting, made, 2 * b, own * support, table, each * at[i] + 1)
            add_scaled_to(results, waiting, table, some, some_weights, supporting, support)
            if opposing > 0 and each == 2:
                fill_row(sums, waiting, sums.dtype.type(0.0))
                add_scaled_to(sums, waiting, table, others, other_weights, opposing, gamma * oppose)
                whose[0, waiting], whose[1, waiting] = i, k
                waiting += 1
            else:
                add_scaled_to(results, waiting, table, others, other_weights, opposing, gamma * oppose)
                finish_row(results, waiting, i, k, to, to_class, class_bias, order, logits, out)
            if waiting == WAITING:
                finish_waiting(waiting, results, sums, whose, to_oppose, to, to_class, class_bias, order, logits, out)
                waiting = 0
        if b == BLOCK - 1 or i == last - 1:
            finish_waiting(waiting, results, sums, whose, to_oppose, to, to_class, class_bias, order, logits, out)
            waiting = 0
            classes_of_block(class_bias.size, leader, i - b, i + 1, here, samples, tops, totals, out)
