"""Where the rows of `infer_loops` end: through relu to their place, or as log p of the classes."""

from __future__ import annotations

from typing import Any

from spam_gnn.kernels.compiled import inlined
from spam_gnn.kernels.elementary import exp, log
from spam_gnn.kernels.half_empty import add_product
from spam_gnn.kernels.rows import row_dots


@inlined
def finish_row(
    rows: Any, place: int, bias: Any, i: int, k: int, to: Any, to_class: Any, class_bias: Any, order: Any, relu: Any,
    logits: Any, out: Any,
) -> None:  # fmt: skip
    """relu of b plus a row that is complete, of node i in sample k, or the logits of its classes, go where they belong."""
    zero = rows.dtype.type(0.0)
    if to_class.shape[0] > 0:
        for x in range(rows.shape[1]):  # not in place: compiled to stores under a mask, which the loads behind them wait for
            relu[x] = max(rows[place, x] + bias[x], zero)
        row_dots(relu, to_class, order, class_bias.size, logits)
        for c in range(class_bias.size):
            out[k, i, c] = logits[c] + class_bias[c]
    else:
        r = to[i, k]
        for x in range(rows.shape[1]):
            out[0, r, x] = max(rows[place, x] + bias[x], zero)


@inlined
def finish_waiting(
    count: int, rows: Any, sums: Any, whose: Any, to_oppose: Any, bias: Any, to: Any, to_class: Any, class_bias: Any,
    order: Any, relu: Any, logits: Any, out: Any,
) -> None:  # fmt: skip
    """What opposes goes through W-, and the rows that waited for it are complete."""
    for p in range(count):
        add_product(rows, whose[2, p], sums, p, to_oppose)
    for p in range(count):
        finish_row(rows, whose[2, p], bias, whose[0, p], whose[1, p], to, to_class, class_bias, order, relu, logits, out)


@inlined
def classes_of_block(
    classes: int, leader: Any, first: int, last: int, here: int, samples: int, tops: Any, totals: Any, out: Any
) -> None:
    """log p of nodes first .. last - 1 from their logits, if there are classes; those of samples that agree with an earlier one
    are copied."""
    for i in range(first, last if classes > 0 else first):
        for k in range(here, here + samples):
            same = leader[i, k]
            if same != k:
                for c in range(classes):
                    out[k, i, c] = out[same, i, c]
    for k in range(here, here + samples if classes > 0 else here):
        log_softmax_rows(out, k, first, last, tops, totals)


@inlined
def log_softmax_rows(out: Any, k: int, first: int, last: int, tops: Any, totals: Any) -> None:
    """out_(k, i) = log softmax(out_(k, i)) of a block of nodes side by side; x - x is there so that what is not a number
    stays none."""
    zero, count = out.dtype.type(0.0), last - first
    for b in range(count):
        tops[b], totals[b] = out[k, first + b, 0], zero
    for c in range(1, out.shape[2]):
        for b in range(count):
            tops[b] = max(tops[b], out[k, first + b, c])
    for c in range(out.shape[2]):
        for b in range(count):
            x = out[k, first + b, c]
            totals[b] += exp(x - tops[b]) + (x - x)
    for b in range(count):
        tops[b] += log(totals[b]) + (totals[b] - totals[b])
    for c in range(out.shape[2]):
        for b in range(count):
            out[k, first + b, c] -= tops[b]
