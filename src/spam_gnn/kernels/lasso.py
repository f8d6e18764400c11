"""The exact local LASSO (paper Eq. local-lasso) of every node in every sampled graph, and its implicit derivative.

For node i with target t (d,), columns v_j of its present neighbours and h = lambda / 2, the optimality conditions are

    v_j . r = h sign(a_j)  where a_j != 0,      |v_j . r| <= h  where a_j = 0,      r = t - sum_j a_j v_j.

`lasso_gram` solves most problems quickly; what it gives up on goes to `lasso_settle`, which is slower and always ends.
Work is float64 and independent per (sample, node): rows may be shared out over threads and no result depends on how.
Scratch is a few (d x d) matrices and O(largest degree) per call.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spam_gnn.kernels.compiled import compiled, inlined
from spam_gnn.kernels.lasso_gram import Working, solve_quickly, working_set
from spam_gnn.kernels.lasso_settle import (
    OPTIMAL,
    Floats,
    Integers,
    Scratch,
    allocate,
    factor_column,
    solve_carefully,
    solve_lower,
    solve_upper,
)
from spam_gnn.kernels.rows import add_scaled, copy, dot

Flags = NDArray[np.bool_]

# How close to the span of others a column may be (relative to its norm) and still have a derivative: float32 copies of one
# vector differ by 1e-7, and the inverse Gram matrix of two such columns would multiply the gradient by 1e14.
DEPENDENT_IN_GRADIENT = 1e-6


@inlined
def _solve_row(target: Floats, values: Floats, half: float, work: Scratch, quick: Working, count: int) -> None:
    """Code one node over its `count` local columns (nonzero, finite), leaving the result in `work.code`."""
    scale = OPTIMAL * np.sqrt(dot(target, target, target.size))
    for j in range(count):
        work.slack[j] = scale * np.sqrt(work.square[j])
    if not solve_quickly(target, values, half, work, quick, count):
        solve_carefully(target, values, half, work, count)


@compiled
def solve_rows(
    start: int, stride: int, largest: int, pointer: Integers, source: Integers,
    target: Floats, values: Floats, squares: Floats, present: Flags, half: float, codes: Floats,
) -> None:  # fmt: skip
    """Solve problems start, start + stride, ... of the K n problems (sample-major), writing into `codes` (K, m).

    largest = the largest degree; pointer (n + 1,), source (m,) as in `Messages`; target, values (K or 1, n, d); squares
    (K or 1, n) of the values; present (K, m); half = lambda / 2. Absent messages and zero columns get 0. A node that sees
    a number which is not finite gets NaN, never a silent 0.
    """
    nodes, width = pointer.size - 1, target.shape[2]
    work, quick = allocate(largest, width), working_set(largest, width)
    for problem in range(start, present.shape[0] * nodes, stride):
        k, i = problem // nodes, problem % nodes
        ks = k if values.shape[0] > 1 else 0
        goal, columns = target[k if target.shape[0] > 1 else 0, i], values[ks]
        count, size = np.int64(0), dot(goal, goal, width)
        for message in range(pointer[i], pointer[i + 1]):
            codes[k, message] = 0.0
            if present[k, message]:
                square = squares[ks, source[message]]
                size += square
                if square != 0.0:
                    work.node[count], work.message[count], work.square[count] = source[message], message, square
                    count += 1
        if np.isfinite(size):
            _solve_row(goal, columns, half, work, quick, count)
        else:
            copy(work.code, np.nan, work.square, count)
        for j in range(count):
            codes[k, work.message[j]] = work.code[j]


@compiled
def differentiate_rows(
    start: int, stride: int, largest: int, pointer: Integers, source: Integers, target: Floats, values: Floats,
    codes: Floats, gradient: Floats, multiplier: Floats, fit: Floats, residual: Floats,
) -> None:  # fmt: skip
    """The implicit derivative on the active set A of each problem; `gradient` (K, m) is that of the loss in the codes.

    With G = V_A^T V_A: writes u = G^-1 g_A into `multiplier` (K, m), V_A u into `fit` (K, n, d), both zero before, and
    r = t - V a into `residual` (K, n, d). The loss then has the derivatives V_A u in t_i, sum_i u_ij r_i - a_ij V_A u
    in v_j, and -1/2 sum sign(a) u in lambda. Redundant columns of A are held still (u = 0): solutions are not unique
    there, and a ridge in place of this would return a gradient as large as its inverse.
    """
    nodes, width = pointer.size - 1, target.shape[2]
    work = allocate(largest, width)
    for problem in range(start, codes.shape[0] * nodes, stride):
        k, i = problem // nodes, problem % nodes
        columns, rank = values[k if values.shape[0] > 1 else 0], np.int64(0)
        copy(residual[k, i], 1.0, target[k if target.shape[0] > 1 else 0, i], width)
        for message in range(pointer[i], pointer[i + 1]):
            if codes[k, message] != 0.0:
                column = columns[source[message]]
                add_scaled(residual[k, i], -codes[k, message], column, width)
                if factor_column(column, rank, work, DEPENDENT_IN_GRADIENT):
                    work.message[rank] = message
                    rank += 1
        solution = work.first
        for a in range(rank):
            solution[a] = gradient[k, work.message[a]]
        solve_lower(work, rank, solution)
        for a in range(rank):
            add_scaled(fit[k, i], solution[a], work.basis[a], width)
        solve_upper(work, rank, solution)
        for a in range(rank):
            multiplier[k, work.message[a]] = solution[a]
