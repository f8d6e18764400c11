"""The quick solver of one node's LASSO: a small working set, its Gram matrix, and a check that what came out is the solution.

A working set takes in the columns that violate their condition most; coordinate descent on its Gram matrix (a step costs
its size, not d) finds signs; a Cholesky factor of the Gram matrix then solves for the coefficients. Whatever comes out is
held against the optimality conditions of *all* columns, computed from the columns themselves, to the tolerance of the
careful solver. Where columns are so alike that the Gram matrix cannot be trusted it gives up, and that solver takes over.

Parts take the arrays they use one by one: taking an array out of a tuple counts a reference with an atomic instruction, also
where parts count none (`compiled.py`), and those took a tenth of all time and more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spam_gnn.kernels.cholesky import factorise, substitute
from spam_gnn.kernels.compiled import compiled, inlined
from spam_gnn.kernels.lasso_settle import Floats, Integers, Scratch
from spam_gnn.kernels.rows import add_rows, copy, load, row_dots

_ROUNDS = 60  # of letting columns in; ten are usual
_SWEEPS = 4  # of coordinate descent after columns came in
_SWEEPS_FIRST, _SWEEPS_AGAIN = 12, 3  # before a factorisation
_WALKS = 40  # from one set of signs to the next; three are usual
_EVERYONE = 40  # so few columns are all let in at once
_SHARES = (0.25, 0.4, 0.55, 0.7, 0.85)  # of the worst violation; otherwise columns beyond the first share that lets in
_AT_ONCE, _PER_COLUMN = 24, 12  # columns or fewer, or one of so many: each costs an inner product with every member
_APART = 8  # further entries in a row: rows of a power of two would compete for the same few lines of the cache


class Working(NamedTuple):
    """The working set, by position; c = twice the width, or all columns if they are fewer."""

    member: Integers  # (c,) local column
    node: Integers  # (c,) its node
    gram: Floats  # (c, more than c)
    factor: Floats  # (c, more than c) Cholesky factor, below its diagonal
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
    whole, real, squares = np.empty((3, c), np.int64), np.empty((7, c)), np.empty((2, c, c + _APART))
    all_columns = np.empty((2, largest))
    return Working(whole[0], whole[1], squares[0], squares[1], real[5], np.zeros(1, np.int64), real[6], real[0], real[1],
                   real[2], real[3], real[4], whole[2], all_columns[0], all_columns[1])  # fmt: skip


@inlined
def _bar(half: float, codes: Floats, slopes: Floats, count: int, worst: float) -> float:
    """The violation from which columns come in: a share of the worst, so large that not too many come at once."""
    for share in _SHARES:
        many = 0
        for j in range(count):
            if codes[j] == 0.0 and abs(slopes[j]) - half >= share * worst:
                many += 1
        if many <= max(_AT_ONCE, count // _PER_COLUMN):
            return share * worst
    return worst


@inlined
def _let_in(
    values: Floats, half: float, codes: Floats, slack: Floats, squares: Floats, nodes: Integers, goals: Floats, slopes: Floats,
    count: int, member: Integers, node: Integers, gram: Floats, per_square: Floats, code: Floats, goal: Floats, slope: Floats,
    row: Floats, column: Floats, size: int,
) -> int:  # fmt: skip
    """Append columns that violate their condition to the `size` members; returns how many there are then."""
    worst = 0.0
    for j in range(count):
        if codes[j] == 0.0:
            excess = abs(slopes[j]) - half
            if excess > slack[j] and excess > worst:
                worst = excess
    if worst == 0.0:
        return size
    bar = 0.0 if count <= _EVERYONE else _bar(half, codes, slopes, count, worst)
    for j in range(count):
        if size < member.size and codes[j] == 0.0:
            excess = abs(slopes[j]) - half
            if excess > slack[j] and excess >= bar:
                member[size], node[size] = j, nodes[j]
                code[size], goal[size], slope[size] = 0.0, goals[j], slopes[j]
                load(column, values, nodes[j])
                row_dots(column, values, node, size, row)
                for a in range(size):
                    gram[a, size] = row[a]
                    gram[size, a] = row[a]
                gram[size, size], per_square[size] = squares[j], 1.0 / squares[j]
                size += 1
    return size


@inlined
def _descend(
    half: float, gram: Floats, per_square: Floats, code: Floats, slope: Floats, size: int, sweeps: int
) -> None:  # fmt: skip
    """Sweeps of coordinate descent over the members."""
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
def _first_gap(stay: Integers, kept: int) -> int:
    """The first position whose member changes."""
    for a in range(kept):
        if stay[a] != a:
            return a
    return kept


@inlined
def _compact(
    codes: Floats, member: Integers, node: Integers, gram: Floats, per_square: Floats, code: Floats, goal: Floats,
    slope: Floats, stay: Integers, done: Integers, size: int,
) -> int:  # fmt: skip
    """Members whose coefficient is zero leave; the others keep their order. The code of every column follows."""
    kept = 0
    for a in range(size):
        codes[member[a]] = code[a]
        if code[a] != 0.0:
            stay[kept] = a
            kept += 1
    if kept == size:
        return size
    done[0] = min(done[0], _first_gap(stay, kept))
    for a in range(kept):
        old = stay[a]
        member[a], node[a], code[a], goal[a] = member[old], node[old], code[old], goal[old]
        slope[a], per_square[a] = slope[old], per_square[old]
        for b in range(kept):
            gram[a, b] = gram[old, stay[b]]
    return kept


@inlined
def _walk(
    half: float, factor: Floats, inverse: Floats, code: Floats, goal: Floats, step: Floats, size: int
) -> bool:  # fmt: skip
    """Go to the minimum over the members, signs held, or to where the first of them reaches zero; True if all the way."""
    for a in range(size):
        step[a] = goal[a] - np.copysign(half, code[a])
    substitute(factor, inverse, step, size)
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
def _solve_members(
    half: float, codes: Floats, member: Integers, node: Integers, gram: Floats, factor: Floats, inverse: Floats,
    per_square: Floats, code: Floats, goal: Floats, slope: Floats, step: Floats, stay: Integers, done: Integers, size: int,
    sweeps: int,
) -> int:  # fmt: skip
    """Minimise over the members; those that reach zero leave. Returns who stays, -1 for giving up."""
    for _ in range(_WALKS):
        _descend(half, gram, per_square, code, slope, size, sweeps)
        size = _compact(codes, member, node, gram, per_square, code, goal, slope, stay, done, size)
        if not factorise(gram, factor, inverse, done, size):
            return -1
        if _walk(half, factor, inverse, code, goal, step, size):
            for a in range(size):
                codes[member[a]] = code[a]
            return size
        size = _compact(codes, member, node, gram, per_square, code, goal, slope, stay, done, size)
        for a in range(size):  # the slopes where it stopped
            total = goal[a]
            for b in range(size):
                total -= gram[a, b] * code[b]
            slope[a] = total
    return -1


@inlined
def _hold(half: float, slack: Floats, member: Integers, slopes: Floats, code: Floats, size: int) -> bool:
    """Whether every member meets its condition, v . r = half sign(a)."""
    for a in range(size):
        j = member[a]
        if not abs(slopes[j] - np.copysign(half, code[a])) <= slack[j]:
            return False
    return True


@inlined
def _refine(
    half: float, codes: Floats, member: Integers, factor: Floats, inverse: Floats, slopes: Floats, code: Floats, step: Floats,
    size: int,
) -> bool:  # fmt: skip
    """One step of iterative refinement from the slopes as they are; False if a sign would change."""
    for a in range(size):
        step[a] = slopes[member[a]] - np.copysign(half, code[a])
    substitute(factor, inverse, step, size)
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
    codes, nodes, squares, slack, residual = work.code, work.node, work.square, work.slack, work.residual
    member, node, gram, factor, inverse, done, per_square, code, goal, slope, step, negated, stay, goals, slopes = ws
    done[0] = 0
    for j in range(count):
        codes[j] = 0.0
    row_dots(target, values, nodes, count, goals)
    copy(slopes, 1.0, goals, count)
    for _ in range(_ROUNDS):
        before = size
        size = _let_in(
            values, half, codes, slack, squares, nodes, goals, slopes, count, member, node, gram, per_square, code, goal,
            slope, negated, residual, size,
        )  # fmt: skip
        if size > before:
            for a in range(before):
                slope[a] = slopes[member[a]]
            _descend(half, gram, per_square, code, slope, size, _SWEEPS)
            size = _compact(codes, member, node, gram, per_square, code, goal, slope, stay, done, size)
            exact = False
        elif exact:
            if _hold(half, slack, member, slopes, code, size):
                return True
            if refined == 2 or not _refine(half, codes, member, factor, inverse, slopes, code, step, size):
                return False
            refined += 1
        if refined == 0 and (size - before <= 4 or count <= _EVERYONE):
            size = _solve_members(
                half, codes, member, node, gram, factor, inverse, per_square, code, goal, slope, step, stay, done, size, sweeps
            )
            exact, sweeps = True, _SWEEPS_AGAIN
            if size < 0:
                return False
        copy(residual, 1.0, target, target.size)
        for a in range(size):
            negated[a] = -code[a]
        add_rows(residual, values, node, negated, size)
        row_dots(residual, values, nodes, count, slopes)
    return False
