"""A sparse matrix times a narrow dense one, on the compiled loops: several times as fast as torch's CSR product."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from spam_gnn.kernels import chosen
from spam_gnn.kernels.compiled import array, compiled, over_rows
from spam_gnn.kernels.memory import fresh
from spam_gnn.kernels.rows import add_row_of


@compiled
def _product_rows(first: int, last: int, pointer: Any, columns: Any, values: Any, weight: Any, out: Any) -> None:
    zero = out.dtype.type(0.0)
    for i in range(first, last):
        for x in range(out.shape[1]):
            out[i, x] = zero
        add_row_of(out, i, weight, columns, values, pointer[i], pointer[i + 1] - pointer[i], weight.dtype.type(1.0))


def sparse_product(rows: Tensor, columns: Tensor, values: Tensor, weight: Tensor) -> Tensor | None:
    """CSR arrays of X (n, d) and weight (d, h) -> X @ weight (n, h), without gradient; None where the loops do not run."""
    if chosen("auto", weight.device) != "fused" or values.dtype != weight.dtype:
        return None
    out = fresh(rows.numel() - 1, weight.shape[1], like=weight)
    pointer, operands, into = array(rows), [array(t) for t in (columns, values, weight)], out.numpy()

    def work(thread: int, first: int, last: int) -> None:  # noqa: ARG001 - threads share nothing here
        _product_rows(first, last, pointer, *operands, into)

    over_rows(pointer, values.numel() * weight.shape[1], work)
    return out
