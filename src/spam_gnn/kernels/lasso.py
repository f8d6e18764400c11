"""The exact local LASSO (paper Eq. local-lasso) of every node in every sampled graph, and its implicit derivative.

For node i with target t (d,), columns v_j of its present neighbours and h = lambda / 2, the optimality conditions are

    v_j . r = h sign(a_j)  where a_j != 0,      |v_j . r| <= h  where a_j = 0,      r = t - sum_j a_j v_j.

Coordinate descent finds most of the active set quickly but ends slowly when neighbours are alike. So a few sweeps come
first; then the problem of the active set and its signs is solved outright (orthogonal factorisation, the step cut where
a coefficient would change sign), and columns that violate their condition enter one at a time until none does. Every
step lowers the objective and active sets are finitely many, so this ends at the solution. If columns are dependent
(equal nodes are common) it is not unique: the one kept has independent columns, hence at most d, and so a derivative.

Work is float64 and independent per (sample, node): rows may be shared out over threads and no result depends on how.
Scratch is one (d x d) factor and O(largest degree) per call. All compiled code is in this one file because numba's disk
cache notices a change only in the file of the function it is asked for. Vectors are loops and counts start at
np.int64(0): array expressions and literal types would double the ten seconds of the first compilation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spam_gnn.kernels.compiled import compiled

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

_OPTIMAL = 1e-10  # tolerated violation of a condition over |v_j| |t|, the scale of the rounding in v_j . r
# A column this close (relative to its norm) to the span of others is their combination. Below _OPTIMAL: one left out
# for this already meets its condition. For the derivative the bar is higher: float32 copies of one vector differ by
# 1e-7, and the inverse Gram matrix of two such columns would multiply the gradient by 1e14.
_DEPENDENT, _DEPENDENT_IN_GRADIENT = 1e-11, 1e-6
_SWEEPS = 12  # before the first exact solve: best on random, correlated and rectified columns (d = 64, degree 80)
_ENTRANTS = 10  # per neighbour; less than one is usual, this only bounds the work where rounding hides the solution


class _Scratch(NamedTuple):
    """Buffers of one call. p = largest degree, c = min(p, d); local columns number the usable neighbours of a node."""

    everyone: Integers  # (p,) 0, 1, 2, ...: the order of a full pass
    node: Integers  # (p,) local column -> node
    message: Integers  # (p,) local column -> message
    active: Integers  # (p,) local columns of the active set
    sign: Floats  # (p,) by position in `active`
    code: Floats  # (p,) the coefficients
    square: Floats  # (p,) |v|^2
    slack: Floats  # (p,) tolerated violation of the optimality condition
    residual: Floats  # (d,)
    basis: Floats  # (c, d) orthonormal rows Q of the active columns
    factor: Floats  # (c, c) R transposed: row k holds the coordinates of active column k in `basis`
    first: Floats  # (c + 1,)
    second: Floats  # (c + 1,)


@compiled
def _allocate(largest: int, width: int) -> _Scratch:
    cap = min(largest, width)
    whole, real, pair = np.empty((3, largest), np.int64), np.empty((4, largest)), np.empty((2, cap + 1))
    rows = (np.arange(largest), whole[0], whole[1], whole[2], real[0], real[1], real[2], real[3])
    return _Scratch(*rows, np.empty(width), np.empty((cap, width)), np.empty((cap, cap)), pair[0], pair[1])


@compiled
def _dot(left: Floats, right: Floats, length: int) -> float:
    total = 0.0
    for index in range(length):
        total += left[index] * right[index]
    return total


@compiled
def _copy(out: Floats, scale: float, vector: Floats, length: int) -> None:
    for index in range(length):
        out[index] = scale * vector[index]


@compiled
def _add_scaled(out: Floats, scale: float, vector: Floats, length: int) -> None:
    for index in range(length):
        out[index] += scale * vector[index]


@compiled
def _factor_column(column: Floats, rank: int, work: _Scratch, dependent: float) -> bool:
    """Add `column` to a factorisation of `rank` columns; False if it depends on them, with its coordinates in `first`.

    Gram-Schmidt in the buffer `residual`, repeated if it cancelled most of the column, so that rows stay orthonormal.
    """
    width, rest = column.size, work.residual
    _copy(rest, 1.0, column, width)
    for k in range(rank):
        work.first[k] = 0.0
    norm = np.sqrt(_dot(column, column, width))
    before, after = norm, norm
    for _ in range(3):
        for k in range(rank):
            amount = _dot(work.basis[k], rest, width)
            work.first[k] += amount
            _add_scaled(rest, -amount, work.basis[k], width)
        after = np.sqrt(_dot(rest, rest, width))
        if after > 0.1 * before or after <= dependent * norm:
            break
        before = after
    if rank == work.basis.shape[0] or not after > dependent * norm:
        return False
    _copy(work.factor[rank], 1.0, work.first, rank)
    work.factor[rank, rank] = after
    _copy(work.basis[rank], 1.0 / after, rest, width)
    return True


@compiled
def _unfactor_column(work: _Scratch, gone: int, rank: int) -> None:
    """Take column `gone` out of a factorisation of `rank` columns: Givens rotations make the rest triangular again."""
    cosine, sine = work.first, work.second
    for k in range(gone, rank - 1):
        row, bottom = work.factor[k], work.factor[k + 1, k + 1]
        _copy(row, 1.0, work.factor[k + 1], k + 1)
        for j in range(gone, k):
            upper, lower = row[j], row[j + 1]
            row[j], row[j + 1] = cosine[j] * upper + sine[j] * lower, cosine[j] * lower - sine[j] * upper
        length = np.hypot(row[k], bottom)
        cosine[k], sine[k] = row[k] / length, bottom / length
        row[k] = length
        for axis in range(work.basis.shape[1]):
            upper, lower = work.basis[k, axis], work.basis[k + 1, axis]
            work.basis[k, axis] = cosine[k] * upper + sine[k] * lower
            work.basis[k + 1, axis] = cosine[k] * lower - sine[k] * upper


@compiled
def _solve_upper(work: _Scratch, rank: int, vector: Floats) -> None:
    """vector <- R^-1 vector."""
    for k in range(rank - 1, -1, -1):
        vector[k] /= work.factor[k, k]
        _add_scaled(vector, -vector[k], work.factor[k], k)


@compiled
def _solve_lower(work: _Scratch, rank: int, vector: Floats) -> None:
    """vector <- R^-T vector."""
    for k in range(rank):
        vector[k] = (vector[k] - _dot(work.factor[k], vector, k)) / work.factor[k, k]


@compiled
def _sweep(values: Floats, half: float, work: _Scratch, order: Integers, count: int) -> int:
    """One pass of coordinate descent over `order`; lists what is nonzero in `active` (which `order` may be)."""
    width, size = values.shape[1], 0
    for position in range(count):
        j = order[position]
        column, old = values[work.node[j]], work.code[j]
        full = _dot(column, work.residual, width) + old * work.square[j]
        new = np.copysign(max(abs(full) - half, 0.0), full) / work.square[j]
        if new != old:
            work.code[j] = new
            _add_scaled(work.residual, old - new, column, width)
        if new != 0.0:
            work.active[size], work.sign[size] = j, np.copysign(1.0, new)
            size += 1
    return size


@compiled
def _move(work: _Scratch, size: int, step: Floats, limit: float) -> int:
    """Add `limit` steps to the active coefficients, or less if one reaches zero first: its position, otherwise -1."""
    crossing, reach = -1, limit
    for k in range(size):
        toward_zero = -step[k] * work.sign[k]
        if toward_zero > 0.0:
            distance = max(work.code[work.active[k]] * work.sign[k], 0.0)
            if distance < reach * toward_zero:
                crossing, reach = k, distance / toward_zero
    for k in range(size):
        work.code[work.active[k]] += reach * step[k]
    if crossing >= 0:
        work.code[work.active[crossing]] = 0.0
    return crossing


@compiled
def _settle(target: Floats, values: Floats, half: float, work: _Scratch, rank: int, size: int) -> int:
    """Minimise over `size` active columns, `rank` of them factorised, signs held; zeros leave. Returns who stays."""
    width = values.shape[1]
    while True:
        while rank < size and _factor_column(values[work.node[work.active[rank]]], rank, work, _DEPENDENT):
            rank += 1
        step = work.first
        if rank < size:
            # v_rank = sum_k w_k v_k: along (w, -1) the fit stands still, so walk where the penalty does not grow.
            _solve_upper(work, rank, step)
            step[rank] = -1.0
            if _dot(step, work.sign, rank + 1) > 0.0:
                _copy(step, -1.0, step, rank + 1)
            gone = _move(work, rank + 1, step, np.inf)
        else:
            # R^T R a = V^T t - half sign, with V = Q R.
            _copy(work.second, half, work.sign, size)
            _solve_lower(work, size, work.second)
            for k in range(size):
                step[k] = _dot(work.basis[k], target, width) - work.second[k]
            _solve_upper(work, size, step)
            for k in range(size):
                step[k] -= work.code[work.active[k]]
            gone = _move(work, size, step, 1.0)
        if gone < 0:
            break
        size -= 1
        for k in range(gone, size):
            work.active[k], work.sign[k] = work.active[k + 1], work.sign[k + 1]
        if gone < rank:
            _unfactor_column(work, gone, rank)
            rank -= 1
    _copy(work.residual, 1.0, target, width)
    for k in range(size):
        _add_scaled(work.residual, -work.code[work.active[k]], values[work.node[work.active[k]]], width)
    return size


@compiled
def _admit(values: Floats, half: float, work: _Scratch, count: int, size: int) -> bool:
    """Append the column that violates its condition most to the active set; False if all of them hold."""
    worst, entrant, side = 1.0, -1, 0.0
    for j in range(count):
        if work.code[j] == 0.0:
            slope = _dot(values[work.node[j]], work.residual, values.shape[1])
            excess = (abs(slope) - half) / work.slack[j]
            if excess > worst:
                worst, entrant, side = excess, j, np.copysign(1.0, slope)
    if entrant >= 0:
        work.active[size], work.sign[size] = entrant, side
    return entrant >= 0


@compiled
def _solve_row(target: Floats, values: Floats, half: float, work: _Scratch, count: int) -> None:
    """Code one node over its `count` local columns (nonzero, finite), leaving the result in `work.code`."""
    scale = _OPTIMAL * np.sqrt(_dot(target, target, target.size))
    for j in range(count):
        work.code[j] = 0.0
        work.slack[j] = scale * np.sqrt(work.square[j])
    _copy(work.residual, 1.0, target, target.size)
    size = _sweep(values, half, work, work.everyone, count)
    for _ in range(_SWEEPS):
        size = _sweep(values, half, work, work.active, size)
    size = _settle(target, values, half, work, np.int64(0), size)
    for _ in range(_ENTRANTS * count):
        if not _admit(values, half, work, count, size):
            break
        size = _settle(target, values, half, work, size, size + 1)


@compiled
def solve_rows(
    start: int, stride: int, largest: int, pointer: Integers, source: Integers,
    target: Floats, values: Floats, present: Flags, half: float, codes: Floats,
) -> None:  # fmt: skip
    """Solve problems start, start + stride, ... of the K n problems (sample-major), writing into `codes` (K, m).

    largest = the largest degree; pointer (n + 1,), source (m,) as in `Messages`; target, values (K or 1, n, d);
    present (K, m); half = lambda / 2. Absent messages and zero columns get 0. A node that sees a number which is not
    finite gets NaN, never a silent 0.
    """
    nodes, width = pointer.size - 1, target.shape[2]
    work = _allocate(largest, width)
    for problem in range(start, present.shape[0] * nodes, stride):
        k, i = problem // nodes, problem % nodes
        goal, columns = target[k if target.shape[0] > 1 else 0, i], values[k if values.shape[0] > 1 else 0]
        count, size = np.int64(0), _dot(goal, goal, width)
        for message in range(pointer[i], pointer[i + 1]):
            codes[k, message] = 0.0
            if present[k, message]:
                column = columns[source[message]]
                square = _dot(column, column, width)
                size += square
                if square != 0.0:
                    work.node[count], work.message[count], work.square[count] = source[message], message, square
                    count += 1
        if np.isfinite(size):
            _solve_row(goal, columns, half, work, count)
        else:
            _copy(work.code, np.nan, work.square, count)
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
    work = _allocate(largest, width)
    for problem in range(start, codes.shape[0] * nodes, stride):
        k, i = problem // nodes, problem % nodes
        columns, rank = values[k if values.shape[0] > 1 else 0], np.int64(0)
        _copy(residual[k, i], 1.0, target[k if target.shape[0] > 1 else 0, i], width)
        for message in range(pointer[i], pointer[i + 1]):
            if codes[k, message] != 0.0:
                column = columns[source[message]]
                _add_scaled(residual[k, i], -codes[k, message], column, width)
                if _factor_column(column, rank, work, _DEPENDENT_IN_GRADIENT):
                    work.message[rank] = message
                    rank += 1
        solution = work.first
        for a in range(rank):
            solution[a] = gradient[k, work.message[a]]
        _solve_lower(work, rank, solution)
        for a in range(rank):
            _add_scaled(fit[k, i], solution[a], work.basis[a], width)
        _solve_upper(work, rank, solution)
        for a in range(rank):
            multiplier[k, work.message[a]] = solution[a]
