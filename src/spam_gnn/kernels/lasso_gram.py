"""The quick solver of one node's LASSO: a small working set, its Gram matrix, and a check that what came out is the solution.

A working set takes in the columns that violate their condition most; coordinate descent on its Gram matrix (a step costs
its size, not d) finds signs; a Cholesky factor of the Gram matrix then solves for the coefficients. Whatever comes out is
held against the optimality conditions of *all* columns, computed from the columns themselves, to the tolerance of the
careful solver. Where columns are so alike that the Gram matrix cannot be trusted it gives up, and that solver takes over.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spam_gnn.kernels.compiled import compiled
from spam_gnn.kernels.lasso_settle import Floats, Integers, Scratch
from spam_gnn.kernels.rows import add_rows, copy, dot, row_dots

_ROUNDS = 60  # of letting columns in; ten are usual
_SWEEPS = 4  # of coordinate descent after columns came in
_SWEEPS_FIRST, _SWEEPS_AGAIN = 12, 3  # before a factorisation
_WALKS = 40  # from one set of signs to the next; three are usual
_EVERYONE = 40  # so few columns are all let in at once
_SHARES = (0.25, 0.4, 0.55, 0.7, 0.85)  # of the worst violation; otherwise columns beyond the first share that lets in
_AT_ONCE = 24  # columns or fewer: each costs an inner product with every member
_PIVOT = 1e-7  # of a Cholesky step over the column's square: below, columns are too alike for the Gram matrix


class Working(NamedTuple):
    """The working set, by position; c = twice the width, or all columns if they are fewer."""

    member: Integers  # (c,) local column
    node: Integers  # (c,) its node
    gram: Floats  # (c, c)
    factor: Floats  # (c, c) Cholesky factor, below its diagonal
    inverse: Floats  # (c,) one over the diagonal of the factor
    done: Integers  # (1,) rows of the factor that still belong to the members at their positions
    per_square: Floats  # (c,) one over the square of the column
    code: Floats  # (c,)
    goal: Floats  # (c,) v . t
    slope: Floats  # (c,) v . r
    step: Floats  # (c,)
    negated: Floats  # (c,) minus the code
    kept: Integers  # (c,) positions that stay
    goals: Floats  # (p,) v . t of every column
    slopes: Floats  # (p,) v . r of every column


@compiled
def working_set(largest: int, width: int) -> Working:
    """Buffers for columns of `width`, at most `largest` of them."""
    c = min(largest, 2 * width)
    whole, real, squares = np.empty((3, c), np.int64), np.empty((7, c)), np.empty((2, c, c))
    all_columns = np.empty((2, largest))
    return Working(whole[0], whole[1], squares[0], squares[1], real[5], np.zeros(1, np.int64), real[6], real[0], real[1],
                   real[2], real[3], real[4], whole[2], all_columns[0], all_columns[1])  # fmt: skip


@compiled
def _bar(half: float, work: Scratch, ws: Working, count: int, worst: float) -> float:
    """The violation from which columns come in: a share of the worst, so large that not too many come at once."""
    for share in _SHARES:
        many = 0
        for j in range(count):
            if work.code[j] == 0.0 and abs(ws.slopes[j]) - half >= share * worst:
                many += 1
        if many <= _AT_ONCE:
            return share * worst
    return worst


@compiled
def _let_in(values: Floats, half: float, work: Scratch, ws: Working, count: int, size: int) -> int:
    """Append columns that violate their condition to the `size` members; returns how many there are then."""
    worst = 0.0
    for j in range(count):
        if work.code[j] == 0.0:
            excess = abs(ws.slopes[j]) - half
            if excess > work.slack[j] and excess > worst:
                worst = excess
    if worst == 0.0:
        return size
    bar = 0.0 if count <= _EVERYONE else _bar(half, work, ws, count, worst)
    for j in range(count):
        if size < ws.member.size and work.code[j] == 0.0:
            excess = abs(ws.slopes[j]) - half
            if excess > work.slack[j] and excess >= bar:
                ws.member[size], ws.node[size] = j, work.node[j]
                ws.code[size], ws.goal[size], ws.slope[size] = 0.0, ws.goals[j], ws.slopes[j]
                row_dots(values[work.node[j]], values, ws.node, size, ws.gram[size])
                for a in range(size):
                    ws.gram[a, size] = ws.gram[size, a]
                ws.gram[size, size], ws.per_square[size] = work.square[j], 1.0 / work.square[j]
                size += 1
    return size


@compiled
def _descend(half: float, ws: Working, size: int, sweeps: int) -> None:
    """Sweeps of coordinate descent over the members."""
    for _ in range(sweeps):
        for a in range(size):
            square, old = ws.gram[a, a], ws.code[a]
            full = ws.slope[a] + old * square
            new = np.copysign(max(abs(full) - half, 0.0), full) * ws.per_square[a]
            if new != old:
                ws.code[a] = new
                change = old - new
                for b in range(size):
                    ws.slope[b] += change * ws.gram[a, b]


@compiled
def _first_gap(ws: Working, kept: int) -> int:
    """The first position whose member changes."""
    for a in range(kept):
        if ws.kept[a] != a:
            return a
    return kept


@compiled
def _compact(work: Scratch, ws: Working, size: int) -> int:
    """Members whose coefficient is zero leave; the others keep their order. The code of every column follows."""
    kept = 0
    for a in range(size):
        work.code[ws.member[a]] = ws.code[a]
        if ws.code[a] != 0.0:
            ws.kept[kept] = a
            kept += 1
    if kept == size:
        return size
    ws.done[0] = min(ws.done[0], _first_gap(ws, kept))
    for a in range(kept):
        old = ws.kept[a]
        ws.member[a], ws.node[a], ws.code[a], ws.goal[a] = ws.member[old], ws.node[old], ws.code[old], ws.goal[old]
        ws.slope[a], ws.per_square[a] = ws.slope[old], ws.per_square[old]
        for b in range(kept):
            ws.gram[a, b] = ws.gram[old, ws.kept[b]]
    return kept


@compiled
def _factorise(ws: Working, size: int) -> bool:
    """G = L L^T of the members, from the first row that is not done yet; False where a column is nearly dependent."""
    for a in range(ws.done[0], size):
        for b in range(a):
            total = ws.gram[a, b]
            for c in range(b):
                total -= ws.factor[a, c] * ws.factor[b, c]
            ws.factor[a, b] = total * ws.inverse[b]
        pivot = ws.gram[a, a]
        for c in range(a):
            pivot -= ws.factor[a, c] * ws.factor[a, c]
        if not pivot > _PIVOT * ws.gram[a, a]:
            return False
        ws.inverse[a] = 1.0 / np.sqrt(pivot)
    ws.done[0] = size
    return True


@compiled
def _substitute(ws: Working, size: int) -> None:
    """step <- G^-1 step, by the factor."""
    for a in range(size):
        total = ws.step[a]
        for b in range(a):
            total -= ws.factor[a, b] * ws.step[b]
        ws.step[a] = total * ws.inverse[a]
    for a in range(size - 1, -1, -1):
        ws.step[a] *= ws.inverse[a]
        for b in range(a):
            ws.step[b] -= ws.step[a] * ws.factor[a, b]


@compiled
def _walk(half: float, ws: Working, size: int) -> bool:
    """Go to the minimum over the members, signs held, or to where the first of them reaches zero; True if all the way."""
    for a in range(size):
        ws.step[a] = ws.goal[a] - np.copysign(half, ws.code[a])
    _substitute(ws, size)
    crossing, reach = -1, 1.0
    for a in range(size):
        if ws.step[a] * ws.code[a] <= 0.0:
            share = ws.code[a] / (ws.code[a] - ws.step[a])
            if crossing < 0 or share < reach:
                crossing, reach = a, share
    for a in range(size):
        ws.code[a] += reach * (ws.step[a] - ws.code[a])
    if crossing >= 0:
        ws.code[crossing] = 0.0
    return crossing < 0


@compiled
def _solve_members(half: float, work: Scratch, ws: Working, size: int, sweeps: int) -> int:
    """Minimise over the members; those that reach zero leave. Returns who stays, -1 for giving up."""
    for _ in range(_WALKS):
        _descend(half, ws, size, sweeps)
        size = _compact(work, ws, size)
        if not _factorise(ws, size):
            return -1
        if _walk(half, ws, size):
            for a in range(size):
                work.code[ws.member[a]] = ws.code[a]
            return size
        size = _compact(work, ws, size)
        for a in range(size):  # the slopes where it stopped
            ws.slope[a] = ws.goal[a] - dot(ws.gram[a], ws.code, size)
    return -1


@compiled
def _hold(half: float, work: Scratch, ws: Working, size: int) -> bool:
    """Whether every member meets its condition, v . r = half sign(a)."""
    for a in range(size):
        j = ws.member[a]
        if not abs(ws.slopes[j] - np.copysign(half, ws.code[a])) <= work.slack[j]:
            return False
    return True


@compiled
def _refine(half: float, work: Scratch, ws: Working, size: int) -> bool:
    """One step of iterative refinement from the slopes as they are; False if a sign would change."""
    for a in range(size):
        ws.step[a] = ws.slopes[ws.member[a]] - np.copysign(half, ws.code[a])
    _substitute(ws, size)
    for a in range(size):
        if not (ws.code[a] + ws.step[a]) * ws.code[a] > 0.0:
            return False
        ws.code[a] += ws.step[a]
        work.code[ws.member[a]] = ws.code[a]
    return True


@compiled
def solve_quickly(target: Floats, values: Floats, half: float, work: Scratch, ws: Working, count: int) -> bool:
    """Code one node over its `count` local columns into `work.code`; False means that nothing there can be used."""
    size, exact, sweeps, refined = np.int64(0), False, _SWEEPS_FIRST, 0
    ws.done[0] = 0
    for j in range(count):
        work.code[j] = 0.0
    row_dots(target, values, work.node, count, ws.goals)
    copy(ws.slopes, 1.0, ws.goals, count)
    for _ in range(_ROUNDS):
        before = size
        size = _let_in(values, half, work, ws, count, size)
        if size > before:
            for a in range(before):
                ws.slope[a] = ws.slopes[ws.member[a]]
            _descend(half, ws, size, _SWEEPS)
            size, exact = _compact(work, ws, size), False
        elif exact:
            if _hold(half, work, ws, size):
                return True
            if refined == 2 or not _refine(half, work, ws, size):
                return False
            refined += 1
        if refined == 0 and (size - before <= 4 or count <= _EVERYONE):
            size = _solve_members(half, work, ws, size, sweeps)
            exact, sweeps = True, _SWEEPS_AGAIN
            if size < 0:
                return False
        copy(work.residual, 1.0, target, target.size)
        for a in range(size):
            ws.negated[a] = -ws.code[a]
        add_rows(work.residual, values, ws.node, ws.negated, size)
        row_dots(work.residual, values, work.node, count, ws.slopes)
    return False
