"""Compiled loop of a sparse signed layer on drawn graphs, in one sample: layers after the first, where samples hold different
rows."""

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


@inlined
def look_ahead(
    pointer: Any, source: Any, signs: Any, column: int, leads: bool, i: int, at: Any, each: int, members: Any, their_signs: Any,
    heard: Any, table: Any,
) -> None:  # fmt: skip
    """List those whom node i hears, with their signs, and ask for the rows of the first of them; none where another sample has
    said what there is to say."""
    kept, slot = 0, i & (LEAD - 1)
    for e in range(pointer[i], pointer[i + 1] if leads else pointer[i]):
        s = signs[e, column]
        members[slot, kept], their_signs[slot, kept] = at[source[e]], s
        kept += 1 if s != 0 else 0
    for q in range(min(kept, AHEAD)):
        ask_for_row(table, each * members[slot, q], 2 * table.shape[1])
    heard[slot] = kept


@inlined
def meet(
    heard: int, members: Any, their_signs: Any, slot: int, each: int, squares: Any, rows: Any, sign: Any, near: Any
) -> None:  # fmt: skip
    """Rows of the table, signs and |v|^2 of those whom a node hears."""
    for q in range(heard):
        r = members[slot, q]
        rows[q], sign[q], near[q] = each * r, their_signs[slot, q], squares[r]


@compiled
def apart_rows(
    first: int, last: int, each: int, pointer: Any, source: Any, signs: Any, column: int, k: int, leader: Any, to: Any, at: Any,
    hidden: Any, members: Any, table: Any, squares: Any, to_own: Any, bias: Any, to_oppose: Any, penalty: Any, own: Any,
    gamma: Any, steps: int, to_class: Any, class_bias: Any, out: Any,
) -> None:  # fmt: skip
    """As `infer_shared.shared_rows`, in sample k alone, whose signs are in the given column."""
    longest, width, kind = longest_row(pointer, first, last), table.shape[1], table.dtype
    heard_by, signs_by = np.empty((LEAD, longest), np.uint32), np.empty((LEAD, longest), np.int8)
    order, whose, counts = np.arange(max(width, class_bias.size)), np.empty((3, WAITING), np.int64), np.zeros(LEAD, np.int64)
    lists, numbers, sign = np.empty((3, longest + 1), np.int64), np.empty((6, longest + FEW), kind), np.empty(longest, np.int8)
    rows, some, others = lists[0], lists[1], lists[2]
    near, dots, a, down, some_weights, other_weights = (
        numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5],
    )  # fmt: skip
    residual, relu, logits = np.empty(width, kind), np.empty(width, kind), np.empty(class_bias.size, kind)
    made, gram = np.empty((2 * BLOCK, width), kind), np.empty(FEW * FEW, kind)
    sums, tops, totals = np.empty((WAITING, width), kind), np.empty(BLOCK, kind), np.empty(BLOCK, kind)
    waiting = 0
    for i in range(first, min(first + LEAD - 1, last)):
        look_ahead(pointer, source, signs, column, leader[i, k] == k, i, at, each, heard_by, signs_by, counts, table)
    for i in range(first, last):
        slot, b, then = i & (LEAD - 1), (i - first) % BLOCK, i + LEAD - 1
        if b == 0:
            own_products(i, min(i + BLOCK, last), k, 1, leader, hidden, members, to_own, made)
        heard = counts[slot]
        if leader[i, k] == k:
            meet(heard, heard_by, signs_by, slot, each, squares, rows, sign, near)
            if steps > 0:
                dots_with(made, 2 * b + 1, table, rows, heard, dots, 0)
                code_present(made, 2 * b + 1, table, rows, near, dots, heard, penalty, steps, a, down, residual, gram)
            supporting, opposing, plus_mass, minus_mass = part_present(
                rows, sign, a, heard, steps, each, each * at[i], own, some, some_weights, others, other_weights
            )
            support, oppose = scales_of(plus_mass, minus_mass, own, gamma)
            add_row_of(made, 2 * b, table, some, some_weights, 0, supporting, support)
            waiting = end_row(
                waiting, made, 2 * b, opposing, gamma * oppose, each, table, others, other_weights, i, k, sums, whose,
                to_oppose, bias, to, to_class, class_bias, order, relu, logits, out,
            )  # fmt: skip
        if then < last:
            look_ahead(pointer, source, signs, column, leader[then, k] == k, then, at, each, heard_by, signs_by, counts, table)
        if b == BLOCK - 1 or i == last - 1:
            finish_waiting(waiting, made, sums, whose, to_oppose, bias, to, to_class, class_bias, order, relu, logits, out)
            waiting = 0
            classes_of_block(class_bias.size, leader, i - b, i + 1, k, 1, tops, totals, out)
