"""The quick solver of one node's LASSO: a small working set, its Gram matrix, and a check that what came out is the solution.

A working set takes in the columns that violate their condition most; coordinate descent on its Gram matrix (a step costs
its size, not d) finds signs; a Cholesky factor of the Gram matrix then solves for the coefficients. Whatever comes out is
held against the optimality conditions of *all* columns, computed from the columns themselves, to the tolerance of the
careful solver. Where columns are so alike that the Gram matrix cannot be trusted it gives up, and that solver takes over.

Functions name the arrays they use before they loop: taking one out of a tuple counts a reference with an atomic instruction,
which inside of loops was a quarter of all time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spam_gnn.kernels.compiled import compiled, inlined
from spam_gnn.kernels.lasso_settle import Floats, Integers, Scratch
from spam_gnn.kernels.rows import add_rows, copy, row_dots

_ROUNDS = 60  # of letting columns in; ten are usual
_SWEEPS = 4  # of coordinate descent after columns came in
_SWEEPS_FIRST, _SWEEPS_AGAIN = 12, 3  # before a factorisation
_WALKS = 40  # from one set of signs to the next; three are usual
_EVERYONE = 40  # so few columns are all let in at once
_SHARES = (0.25, 0.4, 0.55, 0.7, 0.85)  # of the worst violation; otherwise columns beyond the first share that lets in
_AT_ONCE, _PER_COLUMN = 24, 12  # columns or fewer, or one of so many: each costs an inner product with every member
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
    negated: Floats  # (c,) minus the code, or the row of the Gram matrix that comes in
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


@inlined
def _bar(half: float, work: Scratch, ws: Working, count: int, worst: float) -> float:
    """The violation from which columns come in: a share of the worst, so large that not too many come at once."""
    code, slopes = work.code, ws.slopes
    for share in _SHARES:
        many = 0
        for j in range(count):
            if code[j] == 0.0 and abs(slopes[j]) - half >= share * worst:
                many += 1
        if many <= max(_AT_ONCE, count // _PER_COLUMN):
            return share * worst
    return worst


@inlined
def _let_in(values: Floats, half: float, work: Scratch, ws: Working, count: int, size: int) -> int:
    """Append columns that violate their condition to the `size` members; returns how many there are then."""
    codes, slack, squares, nodes, slopes = work.code, work.slack, work.square, work.node, ws.slopes
    worst = 0.0
    for j in range(count):
        if codes[j] == 0.0:
            excess = abs(slopes[j]) - half
            if excess > slack[j] and excess > worst:
                worst = excess
    if worst == 0.0:
        return size
    bar = 0.0 if count <= _EVERYONE else _bar(half, work, ws, count, worst)
    member, node, gram, row = ws.member, ws.node, ws.gram, ws.negated
    for j in range(count):
        if size < member.size and codes[j] == 0.0:
            excess = abs(slopes[j]) - half
            if excess > slack[j] and excess >= bar:
                member[size], node[size] = j, nodes[j]
                ws.code[size], ws.goal[size], ws.slope[size] = 0.0, ws.goals[j], slopes[j]
                row_dots(values[nodes[j]], values, node, size, row)
                for a in range(size):
                    gram[a, size] = row[a]
                    gram[size, a] = row[a]
                gram[size, size], ws.per_square[size] = squares[j], 1.0 / squares[j]
                size += 1
    return size


@inlined
def _descend(half: float, ws: Working, size: int, sweeps: int) -> None:
    """Sweeps of coordinate descent over the members."""
    gram, code, slope, per_square = ws.gram, ws.code, ws.slope, ws.per_square
    for _ in range(sweeps):
        for a in range(size):
            old = code[a]
            full = slope[a] + old * gram[a, a]
            new = np.copysign(max(abs(full) - half, 0.0), full) * per_square[a]
            if new != old:
                code[a] = new
                change = old - new
                for b in range(size):
                    slope[b] += change * gram[a, b]


@inlined
def _first_gap(ws: Working, kept: int) -> int:
    """The first position whose member changes."""
    stay = ws.kept
    for a in range(kept):
        if stay[a] != a:
            return a
    return kept


@inlined
def _compact(work: Scratch, ws: Working, size: int) -> int:
    """Members whose coefficient is zero leave; the others keep their order. The code of every column follows."""
    kept, codes, member, node, code, stay = 0, work.code, ws.member, ws.node, ws.code, ws.kept
    for a in range(size):
        codes[member[a]] = code[a]
        if code[a] != 0.0:
            stay[kept] = a
            kept += 1
    if kept == size:
        return size
    ws.done[0] = min(ws.done[0], _first_gap(ws, kept))
    goal, slope, per_square, gram = ws.goal, ws.slope, ws.per_square, ws.gram
    for a in range(kept):
        old = stay[a]
        member[a], node[a], code[a], goal[a] = member[old], node[old], code[old], goal[old]
        slope[a], per_square[a] = slope[old], per_square[old]
        for b in range(kept):
            gram[a, b] = gram[old, stay[b]]
    return kept


@inlined
def _factorise(ws: Working, size: int) -> bool:
    """G = L L^T of the members, from the first row that is not done yet; False where a column is nearly dependent."""
    gram, factor, inverse = ws.gram, ws.factor, ws.inverse
    for a in range(ws.done[0], size):
        pivot = gram[a, a]
        for b in range(a):
            total = gram[a, b]
            for c in range(b):
                total -= factor[a, c] * factor[b, c]
            total *= inverse[b]
            factor[a, b] = total
            pivot -= total * total
        if not pivot > _PIVOT * gram[a, a]:
            return False
        inverse[a] = 1.0 / np.sqrt(pivot)
    ws.done[0] = size
    return True


@inlined
def _substitute(ws: Working, size: int) -> None:
    """step <- G^-1 step, by the factor."""
    step, factor, inverse = ws.step, ws.factor, ws.inverse
    for a in range(size):
        total = step[a]
        for b in range(a):
            total -= factor[a, b] * step[b]
        step[a] = total * inverse[a]
    for a in range(size - 1, -1, -1):
        step[a] *= inverse[a]
        for b in range(a):
            step[b] -= step[a] * factor[a, b]


@inlined
def _walk(half: float, ws: Working, size: int) -> bool:
    """Go to the minimum over the members, signs held, or to where the first of them reaches zero; True if all the way."""
    step, goal, code = ws.step, ws.goal, ws.code
    for a in range(size):
        step[a] = goal[a] - np.copysign(half, code[a])
    _substitute(ws, size)
    crossing, reach = -1, 1.0
    for a in range(size):
        if step[a] * code[a] <= 0.0:
            share = code[a] / (code[a] - step[a])
            if crossing < 0 or share < reach:
                crossing, reach = a, share
    for a in range(size):
        code[a] += reach * (step[a] - code[a])
    if crossing >= 0:
        code[crossing] = 0.0
    return crossing < 0


@inlined
def _solve_members(half: float, work: Scratch, ws: Working, size: int, sweeps: int) -> int:
    """Minimise over the members; those that reach zero leave. Returns who stays, -1 for giving up."""
    codes, member, code, gram, slope, goal = work.code, ws.member, ws.code, ws.gram, ws.slope, ws.goal
    for _ in range(_WALKS):
        _descend(half, ws, size, sweeps)
        size = _compact(work, ws, size)
        if not _factorise(ws, size):
            return -1
        if _walk(half, ws, size):
            for a in range(size):
                codes[member[a]] = code[a]
            return size
        size = _compact(work, ws, size)
        for a in range(size):  # the slopes where it stopped
            total = goal[a]
            for b in range(size):
                total -= gram[a, b] * code[b]
            slope[a] = total
    return -1


@inlined
def _hold(half: float, work: Scratch, ws: Working, size: int) -> bool:
    """Whether every member meets its condition, v . r = half sign(a)."""
    slack, member, slopes, code = work.slack, ws.member, ws.slopes, ws.code
    for a in range(size):
        j = member[a]
        if not abs(slopes[j] - np.copysign(half, code[a])) <= slack[j]:
            return False
    return True


@inlined
def _refine(half: float, work: Scratch, ws: Working, size: int) -> bool:
    """One step of iterative refinement from the slopes as they are; False if a sign would change."""
    codes, member, slopes, code, step = work.code, ws.member, ws.slopes, ws.code, ws.step
    for a in range(size):
        step[a] = slopes[member[a]] - np.copysign(half, code[a])
    _substitute(ws, size)
    for a in range(size):
        if not (code[a] + step[a]) * code[a] > 0.0:
            return False
        code[a] += step[a]
        codes[member[a]] = code[a]
    return True


@inlined
def solve_quickly(target: Floats, values: Floats, half: float, work: Scratch, ws: Working, count: int) -> bool:
    """Code one node over its `count` local columns into `work.code`; False means that nothing there can be used."""
    size, exact, sweeps, refined = np.int64(0), False, _SWEEPS_FIRST, 0
    codes, nodes, residual, goals, slopes = work.code, work.node, work.residual, ws.goals, ws.slopes
    member, node, code, slope, negated = ws.member, ws.node, ws.code, ws.slope, ws.negated
    ws.done[0] = 0
    for j in range(count):
        codes[j] = 0.0
    row_dots(target, values, nodes, count, goals)
    copy(slopes, 1.0, goals, count)
    for _ in range(_ROUNDS):
        before = size
        size = _let_in(values, half, work, ws, count, size)
        if size > before:
            for a in range(before):
                slope[a] = slopes[member[a]]
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
        copy(residual, 1.0, target, target.size)
        for a in range(size):
            negated[a] = -code[a]
        add_rows(residual, values, node, negated, size)
        row_dots(residual, values, nodes, count, slopes)
    return False
