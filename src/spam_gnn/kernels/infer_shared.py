"""Compiled loop of a sparse signed layer on drawn graphs, where nodes hold the same in all samples: the first layer.

What a node hears in any sample is met once; the few neighbours that most nodes have are coded in all samples at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spam_gnn.kernels.combine import scales_of
from spam_gnn.kernels.compiled import compiled, inlined
from spam_gnn.kernels.few import FEW
from spam_gnn.kernels.infer_ends import classes_of_block, finish_waiting
from spam_gnn.kernels.infer_loops import BLOCK, LEAD, WAITING, code_present, end_row, own_products, part_present
from spam_gnn.kernels.neighbourhood import longest_row
from spam_gnn.kernels.prefetch import AHEAD, ask_for_row
from spam_gnn.kernels.rows import add_row_of, dots_with
from spam_gnn.kernels.side_by_side import LANES, hear_side_by_side

TOGETHER = 3  # samples from which on it is quicker to take them side by side


@inlined
def look_ahead(
    pointer: Any, source: Any, signs: Any, sample: int, samples: int, i: int, at: Any, each: int, edges: Any,
    heard: Any, table: Any,
) -> None:  # fmt: skip
    """List the messages to node i that one of the samples has, and ask for the rows of the first of them."""
    kept, slot = 0, i & (LEAD - 1)
    for e in range(pointer[i], pointer[i + 1]):
        there = signs[e, sample]
        for k in range(sample + 1, sample + samples):
            there |= signs[e, k]
        edges[slot, kept] = e
        kept += 1 if there != 0 else 0
    for q in range(min(kept, AHEAD)):
        ask_for_row(table, each * at[source[edges[slot, q]]], 2 * table.shape[1])
    heard[slot] = kept


@inlined
def meet_all(
    heard: int, edges: Any, slot: int, source: Any, at: Any, each: int, squares: Any, table: Any, steps: int, made: Any,
    target: int, rows: Any, near: Any, dots: Any,
) -> None:  # fmt: skip
    """Of all that a node hears in some sample: rows of the table and |v|^2, and where there are steps t . v."""
    for q in range(heard):
        r = at[source[edges[slot, q]]]
        rows[q], near[q] = each * r, squares[r]
    if steps > 0:
        dots_with(made, target, table, rows, heard, dots, 0)


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
def signs_in_lanes(signs: Any, first: int, samples: int, edges: Any, slot: int, heard: int, lanes: Any) -> None:
    """Signs of what a node hears, in `samples` columns from the first on; none in lanes beyond them."""
    for q in range(heard):
        for k in range(LANES):
            lanes[q * LANES + k] = signs[edges[slot, q], first + min(k, samples - 1)] if k < samples else 0


@inlined
def opposers_in_lane(
    rows: Any, sizes: Any, k: int, heard: int, mass: Any, each: int, others: Any, other_weights: Any
) -> int:  # fmt: skip
    """Rows and weights of those who oppose in one lane; how many."""
    opposing = 0
    for q in range(heard if mass > 0 else 0):
        others[opposing], other_weights[opposing] = rows[q] + (each - 1 & 2), sizes[q * LANES + k]
        opposing += 1 if sizes[q * LANES + k] != 0 else 0
    return opposing


@inlined
def copy_row(rows: Any, place: int, made: Any, base: int) -> None:
    """row_place = made_base."""
    for x in range(rows.shape[1]):
        rows[place, x] = made[base, x]


@inlined
def row_of_lane(
    rows: Any, place: int, made: Any, base: int, scale: Any, sums: Any, k: int, own: Any, table: Any, r: int
) -> None:  # fmt: skip
    """row_place = made_base + scale (sum_k + s table_r)."""
    for x in range(rows.shape[1]):
        rows[place, x] = made[base, x] + scale * (sums[k, x] + own * table[r, x])


@compiled
def shared_rows(
    first: int, last: int, each: int, pointer: Any, source: Any, signs: Any, sample: int, samples: int, leader: Any, to: Any,
    at: Any, hidden: Any, members: Any, table: Any, squares: Any, to_own: Any, bias: Any, to_oppose: Any, penalty: Any,
    own: Any, gamma: Any, steps: int, to_class: Any, class_bias: Any, out: Any,
) -> None:  # fmt: skip
    """relu of the layer for nodes first .. last - 1 in all samples, whose signs are in columns from `sample` on: one row of
    `out` (1, variants, d) for each variant, in place `to`.

    Node i holds hidden row members_i, and row at_i of the table is made of it. `to_own` holds W_self, and W_t beside it if
    there are steps. With `to_class` (C, d), the classifier transposed, `out` (K, n, C) gets log p instead, of every sample.
    """
    longest, width, kind = longest_row(pointer, first, last), table.shape[1], table.dtype
    edges, all_heard = np.empty((LEAD, longest), np.int64), np.zeros(LEAD, np.int64)
    lists, numbers, sign = np.empty((4, longest + 1), np.int64), np.empty((8, longest + FEW), kind), np.empty(longest, np.int8)
    order, whose, waiting = np.arange(max(width, class_bias.size)), np.empty((3, WAITING), np.int64), 0
    rows, listed, some, others = lists[0], lists[1], lists[2], lists[3]
    all_near, all_dots, near, dots = numbers[0], numbers[1], numbers[2], numbers[3]
    a, down, some_weights, other_weights = numbers[4], numbers[5], numbers[6], numbers[7]
    residual, relu, logits = np.empty(width, kind), np.empty(width, kind), np.empty(class_bias.size, kind)
    made, gram = np.empty((2 * BLOCK, width), kind), np.empty(FEW * FEW, kind)
    results, sums = np.empty((WAITING, width), kind), np.empty((WAITING, width), kind)
    codes, sizes, masses = np.empty(FEW * LANES, kind), np.empty(FEW * LANES, kind), np.empty(2 * LANES, kind)
    present, together = np.empty(FEW * LANES, np.int8), np.empty((LANES, width), kind)
    tops, totals = np.empty(BLOCK, kind), np.empty(BLOCK, kind)
    for i in range(first, min(first + LEAD - 1, last)):
        look_ahead(pointer, source, signs, sample, samples, i, at, each, edges, all_heard, table)
    for i in range(first, last):
        slot, b = i & (LEAD - 1), (i - first) % BLOCK
        heard, itself = all_heard[slot], each * at[i]
        if b == 0:
            own_products(i, min(i + BLOCK, last), 0, samples, leader, hidden, members, to_own, made)
        if i + LEAD - 1 < last:
            look_ahead(pointer, source, signs, sample, samples, i + LEAD - 1, at, each, edges, all_heard, table)
        meet_all(heard, edges, slot, source, at, each, squares, table, steps, made, 2 * b + 1, rows, all_near, all_dots)
        few = samples >= TOGETHER and 0 < heard <= FEW
        for k in range(samples):
            lane = k % LANES
            if few and lane == 0:
                signs_in_lanes(signs, sample + k, min(LANES, samples - k), edges, slot, heard, present)
                hear_side_by_side(
                    table, rows, all_near, all_dots, present, heard, penalty, steps, gram, codes, sizes, masses, together
                )
            if leader[i, k] != k:
                continue
            if few:
                support, oppose = scales_of(masses[lane], masses[LANES + lane], own, gamma)
                row_of_lane(results, waiting, made, 2 * b, support, together, lane, own, table, itself + 1)
                opposing = opposers_in_lane(rows, sizes, lane, heard, masses[LANES + lane], each, others, other_weights)
            else:
                count = list_present(signs, sample + k, edges, slot, rows, all_near, all_dots, heard, listed, sign, near, dots)
                if steps > 0:
                    code_present(made, 2 * b + 1, table, listed, near, dots, count, penalty, steps, a, down, residual, gram)
                supporting, opposing, plus_mass, minus_mass = part_present(
                    listed, sign, a, count, steps, each, itself, own, some, some_weights, others, other_weights
                )
                support, oppose = scales_of(plus_mass, minus_mass, own, gamma)
                copy_row(results, waiting, made, 2 * b)
                add_row_of(results, waiting, table, some, some_weights, 0, supporting, support)
            waiting = end_row(
                waiting, results, waiting, opposing, gamma * oppose, each, table, others, other_weights, i, k, sums, whose,
                to_oppose, bias, to, to_class, class_bias, order, relu, logits, out,
            )  # fmt: skip
        if b == BLOCK - 1 or i == last - 1:
            finish_waiting(waiting, results, sums, whose, to_oppose, bias, to, to_class, class_bias, order, relu, logits, out)
            waiting = 0
            classes_of_block(class_bias.size, leader, i - b, i + 1, 0, samples, tops, totals, out)
