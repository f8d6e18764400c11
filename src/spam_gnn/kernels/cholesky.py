"""Compiled Cholesky factor of a small Gram matrix, made row by row as columns join, and what is solved with it."""

from __future__ import annotations

import numpy as np

from spam_gnn.kernels.compiled import inlined
from spam_gnn.kernels.lasso_settle import Floats, Integers

PIVOT = 1e-7  # of a step over the column's square: below, columns are too alike for the Gram matrix to be trusted


@inlined
def factorise(gram: Floats, factor: Floats, inverse: Floats, done: Integers, size: int) -> bool:
    """G = L L^T of the members, from the first row that is not done yet; False where a column is nearly dependent."""
    ready = done[0]
    for b in range(size):  # column by column: the sums of a column do not wait for one another, those of a row do
        if b >= ready:
            pivot = gram[b, b]
            for c in range(b):
                pivot -= factor[b, c] * factor[b, c]
            if not pivot > PIVOT * gram[b, b]:
                return False
            inverse[b] = 1.0 / np.sqrt(pivot)
        for a in range(max(b + 1, ready), size):
            total = gram[a, b]
            for c in range(b):
                total -= factor[a, c] * factor[b, c]
            factor[a, b] = total * inverse[b]
    done[0] = size
    return True


@inlined
def substitute(factor: Floats, inverse: Floats, step: Floats, size: int) -> None:
    """step <- G^-1 step, by the factor."""
    for a in range(size):
        total = step[a]
        for b in range(a):
            total -= factor[a, b] * step[b]
        step[a] = total * inverse[a]
    for a in range(size - 1, -1, -1):
        step[a] *= inverse[a]
        for b in range(a):
            step[b] -= step[a] * factor[a, b]
