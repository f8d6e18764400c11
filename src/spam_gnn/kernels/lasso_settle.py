"""The careful solver of one node's LASSO: slow steps that end at the solution whatever the columns.

Coordinate descent finds most of the active set quickly but ends slowly when neighbours are alike. So a few sweeps come
first; then the problem of the active set and its signs is solved outright (orthogonal factorisation, the step cut where
a coefficient would change sign), and columns that violate their condition enter one at a time until none does. Every
step lowers the objective and active sets are finitely many, so this ends at the solution. If columns are dependent
(equal nodes are common) it is not unique: the one kept has independent columns, hence at most d, and so a derivative.

Counts start at np.int64(0): literal types would double the seconds of the first compilation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spam_gnn.kernels.compiled import compiled
from spam_gnn.kernels.rows import add_scaled, copy, dot

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

OPTIMAL = 1e-10  # tolerated violation of a condition over |v_j| |t|, the scale of the rounding in v_j . r
# A column this close (relative to its norm) to the span of others is their combination. Below OPTIMAL: one left out
# for this already meets its condition.
_DEPENDENT = 1e-11
_SWEEPS = 12  # before the first exact solve: best on random, correlated and rectified columns (d = 64, degree 80)
_ENTRANTS = 10  # per neighbour; less than one is usual, this only bounds the work where rounding hides the solution


class Scratch(NamedTuple):
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
def allocate(largest: int, width: int) -> Scratch:
    cap = min(largest, width)
    whole, real, pair = np.empty((3, largest), np.int64), np.empty((4, largest)), np.empty((2, cap + 1))
    rows = (np.arange(largest), whole[0], whole[1], whole[2], real[0], real[1], real[2], real[3])
    return Scratch(*rows, np.empty(width), np.empty((cap, width)), np.empty((cap, cap)), pair[0], pair[1])


@compiled
def factor_column(column: Floats, rank: int, work: Scratch, dependent: float) -> bool:
    """Add `column` to a factorisation of `rank` columns; False if it depends on them, with its coordinates in `first`.

    Gram-Schmidt in the buffer `residual`, repeated if it cancelled most of the column, so that rows stay orthonormal.
    """
    width, rest = column.size, work.residual
    copy(rest, 1.0, column, width)
    for k in range(rank):
        work.first[k] = 0.0
    norm = np.sqrt(dot(column, column, width))
    before, after = norm, norm
    for _ in range(3):
        for k in range(rank):
            amount = dot(work.basis[k], rest, width)
            work.first[k] += amount
            add_scaled(rest, -amount, work.basis[k], width)
        after = np.sqrt(dot(rest, rest, width))
        if after > 0.1 * before or after <= dependent * norm:
            break
        before = after
    if rank == work.basis.shape[0] or not after > dependent * norm:
        return False
    copy(work.factor[rank], 1.0, work.first, rank)
    work.factor[rank, rank] = after
    copy(work.basis[rank], 1.0 / after, rest, width)
    return True


@compiled
def _unfactor_column(work: Scratch, gone: int, rank: int) -> None:
    """Take column `gone` out of a factorisation of `rank` columns: Givens rotations make the rest triangular again."""
    cosine, sine = work.first, work.second
    for k in range(gone, rank - 1):
        row, bottom = work.factor[k], work.factor[k + 1, k + 1]
        copy(row, 1.0, work.factor[k + 1], k + 1)
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
def solve_upper(work: Scratch, rank: int, vector: Floats) -> None:
    """vector <- R^-1 vector."""
    for k in range(rank - 1, -1, -1):
        vector[k] /= work.factor[k, k]
        add_scaled(vector, -vector[k], work.factor[k], k)


@compiled
def solve_lower(work: Scratch, rank: int, vector: Floats) -> None:
    """vector <- R^-T vector."""
    for k in range(rank):
        vector[k] = (vector[k] - dot(work.factor[k], vector, k)) / work.factor[k, k]


@compiled
def _sweep(values: Floats, half: float, work: Scratch, order: Integers, count: int) -> int:
    """One pass of coordinate descent over `order`; lists what is nonzero in `active` (which `order` may be)."""
    width, size = values.shape[1], 0
    for position in range(count):
        j = order[position]
        column, old = values[work.node[j]], work.code[j]
        full = dot(column, work.residual, width) + old * work.square[j]
        new = np.copysign(max(abs(full) - half, 0.0), full) / work.square[j]
        if new != old:
            work.code[j] = new
            add_scaled(work.residual, old - new, column, width)
        if new != 0.0:
            work.active[size], work.sign[size] = j, np.copysign(1.0, new)
            size += 1
    return size


@compiled
def _move(work: Scratch, size: int, step: Floats, limit: float) -> int:
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
def _settle(target: Floats, values: Floats, half: float, work: Scratch, rank: int, size: int) -> int:
    """Minimise over `size` active columns, `rank` of them factorised, signs held; zeros leave. Returns who stays."""
    width = values.shape[1]
    while True:
        while rank < size and factor_column(values[work.node[work.active[rank]]], rank, work, _DEPENDENT):
            rank += 1
        step = work.first
        if rank < size:
            # v_rank = sum_k w_k v_k: along (w, -1) the fit stands still, so walk where the penalty does not grow.
            solve_upper(work, rank, step)
            step[rank] = -1.0
            if dot(step, work.sign, rank + 1) > 0.0:
                copy(step, -1.0, step, rank + 1)
            gone = _move(work, rank + 1, step, np.inf)
        else:
            # R^T R a = V^T t - half sign, with V = Q R.
            copy(work.second, half, work.sign, size)
            solve_lower(work, size, work.second)
            for k in range(size):
                step[k] = dot(work.basis[k], target, width) - work.second[k]
            solve_upper(work, size, step)
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
    copy(work.residual, 1.0, target, width)
    for k in range(size):
        add_scaled(work.residual, -work.code[work.active[k]], values[work.node[work.active[k]]], width)
    return size


@compiled
def _admit(values: Floats, half: float, work: Scratch, count: int, size: int) -> bool:
    """Append the column that violates its condition most to the active set; False if all of them hold."""
    worst, entrant, side = 1.0, -1, 0.0
    for j in range(count):
        if work.code[j] == 0.0:
            slope = dot(values[work.node[j]], work.residual, values.shape[1])
            excess = (abs(slope) - half) / work.slack[j]
            if excess > worst:
                worst, entrant, side = excess, j, np.copysign(1.0, slope)
    if entrant >= 0:
        work.active[size], work.sign[size] = entrant, side
    return entrant >= 0


@compiled
def solve_carefully(target: Floats, values: Floats, half: float, work: Scratch, count: int) -> None:
    """Code one node over its `count` local columns (nonzero, finite), leaving the result in `work.code`."""
    for j in range(count):
        work.code[j] = 0.0
    copy(work.residual, 1.0, target, target.size)
    size = _sweep(values, half, work, work.everyone, count)
    for _ in range(_SWEEPS):
        size = _sweep(values, half, work, work.active, size)
    size = _settle(target, values, half, work, np.int64(0), size)
    for _ in range(_ENTRANTS * count):
        if not _admit(values, half, work, count, size):
            break
        size = _settle(target, values, half, work, size, size + 1)
