"""Parts of the compiled loops of a sparse signed layer whose gradient nobody asks for, on signed graphs that were drawn.

An edge is there or not, so absent ones are left out altogether and all present ones share a step size. The output weights of
supporting messages are applied to the nodes beforehand: `table` holds of each row h of what nodes hold v = h W_v and v W+, in
rows `each` r and `each` r + 1. Opposing messages are fewer: their sum goes through W- where there are any, or, where many nodes
hear some (`each` is 3 then, else 2), v W- is the third row.

What nodes hold is the same in all samples (`infer_shared`) or differs between them (`infer_apart`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spam_gnn.kernels.compiled import compiled, inlined
from spam_gnn.kernels.few import FEW, code_few
from spam_gnn.kernels.half_empty import product
from spam_gnn.kernels.infer_ends import finish_row, finish_waiting
from spam_gnn.kernels.ista import SMALLEST
from spam_gnn.kernels.prefetch import ask_for_row
from spam_gnn.kernels.rows import add_row_of, add_rows, fill_row, row_dots
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
    begin: int, end: int, here: int, samples: int, leader: Any, hidden: Any, members: Any, to_own: Any, made: Any
) -> None:
    """What a layer makes of each node by itself, nodes begin .. end - 1 of which there is something to say: h W_self in row
    2 (i - begin) of `made`, and h W_t in the next."""
    for i in range(end, min(end + BLOCK, members.size)):
        ask_for_row(hidden, members[i], hidden.shape[1])
    for i in range(begin, end):
        if to_own.shape[0] == 0:
            fill_row(made, 2 * (i - begin), made.dtype.type(0.0))
            fill_row(made, 2 * (i - begin) + 1, made.dtype.type(0.0))
        elif leads(leader, i, here, samples):
            product(made, 2 * (i - begin), hidden, members[i], to_own)


@inlined
def code_present(
    made: Any, target: int, table: Any, listed: Any, near: Any, dots: Any, count: int, penalty: Any, steps: int, a: Any,
    down: Any, residual: Any, gram: Any,
) -> None:  # fmt: skip
    """The steps of `ista.code` where every neighbour is present; t is a row of `made`, `dots` holds t . v_j on entry."""
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
        for x in range(residual.size):
            residual[x] = made[target, x]
        add_rows(residual, table, listed, down, count)
        row_dots(residual, table, listed, count, dots)
        for q in range(count):
            x = dots[q] * step + a[q]
            a[q] = x - h if x > h else (x + h if x < -h else zero)


@inlined
def part_present(
    listed: Any, sign: Any, a: Any, count: int, steps: int, each: int, itself: int, own: Any, some: Any, some_weights: Any,
    others: Any, other_weights: Any,
) -> tuple[int, int, Any, Any]:  # fmt: skip
    """Rows of v W+ and weights of those that support, the node itself with weight s first; rows of v, or of v W-, and weights
    of those that oppose; counts and masses."""
    kind = a.dtype.type
    zero, supporting, opposing, plus_mass, minus_mass = kind(0.0), 1, 0, kind(0.0), kind(0.0)
    some[0], some_weights[0] = itself + 1, own
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
def end_row(
    waiting: int, rows: Any, place: int, opposing: int, scale: Any, each: int, table: Any, others: Any, other_weights: Any,
    i: int, k: int, sums: Any, whose: Any, to_oppose: Any, bias: Any, to: Any, to_class: Any, class_bias: Any, order: Any,
    relu: Any, logits: Any, out: Any,
) -> int:  # fmt: skip
    """Add those who oppose to a row and finish it, or let it wait for their product with W-; how many wait now."""
    if opposing > 0 and each == 2:
        fill_row(sums, waiting, sums.dtype.type(0.0))
        add_row_of(sums, waiting, table, others, other_weights, 0, opposing, scale)
        whose[0, waiting], whose[1, waiting], whose[2, waiting] = i, k, place
        if waiting + 1 < WAITING:
            return waiting + 1
        finish_waiting(WAITING, rows, sums, whose, to_oppose, bias, to, to_class, class_bias, order, relu, logits, out)
        return 0
    if opposing > 0:
        add_row_of(rows, place, table, others, other_weights, 0, opposing, scale)
    finish_row(rows, place, bias, i, k, to, to_class, class_bias, order, relu, logits, out)
    return waiting
