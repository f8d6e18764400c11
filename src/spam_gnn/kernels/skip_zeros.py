"""Products with a matrix that relu and dropout left mostly zeros: X W and X^T G, without the products that are zero.

In training a quarter of a hidden state is left, and of the gradient that comes back through it. A dense product of torch goes
over the rest as well.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from spam_gnn.kernels.compiled import array, compiled
from spam_gnn.kernels.half_empty import WORD, add_outer, add_product

MOSTLY = 0.45  # share of entries that are not zero up to which leaving the others out is quicker
_LOOKED_AT, _ROWS = 64, 256  # rows by which the share is judged; rows whose sum is made before it is added to the others


def mostly_zeros(x: Tensor, *widths: int) -> bool:
    """Whether zeros of (..., rows, d_in) are worth leaving out of products of these widths: judged by a few rows, and only
    where rows fill the registers of the loops."""
    if any(width % WORD or width == 0 for width in (x.shape[-1], *widths)):
        return False
    rows = x.reshape(-1, x.shape[-1])
    step = max(1, rows.shape[0] // _LOOKED_AT)
    return _entries(array(rows), step) <= MOSTLY * -(-rows.shape[0] // step) * rows.shape[1]


@compiled
def _entries(x: Any, step: int) -> int:
    """How many entries of every so-manieth row are not zero."""
    count = 0
    for i in range(0, x.shape[0], step):
        for c in range(x.shape[1]):
            count += 1 if x[i, c] != 0.0 else 0
    return count


def times(
    x: Tensor, weight: Tensor, *, few: bool, out: Tensor | None = None, start: Tensor | None = None
) -> Tensor:  # fmt: skip
    """x W, or start + x W, in `out` if given; (rows, d_in) and (d_in, d), x `mostly_zeros` (`few` entries are not) or not."""
    out = x.new_empty(x.shape[0], weight.shape[1]) if out is None else out
    if not few:
        return torch.mm(x, weight, out=out) if start is None else torch.addmm(start, x, weight, out=out)
    if start is not out:
        out.zero_() if start is None else out.copy_(start)
    _times(array(x), array(weight), out.numpy())
    return out


def add_transposed(into: Tensor, x: Tensor, other: Tensor, *, few: bool) -> None:
    """into += x^T G; (rows, d_in) and (rows, d), x `mostly_zeros` or not."""
    if few:
        _add_transposed(into.numpy(), array(x), array(other))
    else:
        into.addmm_(x.t(), other)


@compiled
def _times(x: Any, weight: Any, out: Any) -> None:
    for i in range(x.shape[0]):
        add_product(out, i, x, i, weight)


@compiled
def _add_transposed(into: Any, x: Any, other: Any) -> None:
    """Sums of some rows are added up: one sum of a million rows would lose two digits."""
    part = np.zeros(into.shape, into.dtype)
    for begin in range(0, x.shape[0], _ROWS):
        for i in range(begin, min(begin + _ROWS, x.shape[0])):
            add_outer(part, x, other, i)
        for y in range(into.shape[0]):
            for z in range(into.shape[1]):
                into[y, z] += part[y, z]
                part[y, z] = 0.0
