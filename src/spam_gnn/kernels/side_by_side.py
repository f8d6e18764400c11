"""Several samples of one node at once, where its few neighbours say the same in all of them: a sample is a lane of a vector.

What differs is who is present, with which sign. So the inner products of the neighbours with each other are made once, each of
their rows is read once for all samples, and nothing depends on how many are present in which.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from spam_gnn.kernels.compiled import inlined
from spam_gnn.kernels.few import FEW, gram_of
from spam_gnn.kernels.ista import SMALLEST
from spam_gnn.kernels.vectors import MATHS, WIDE, Rows, broadcast, each_tile

LANES = 8  # samples at once
_SAMPLES = 4 if WIDE == 64 else 1  # whose sums stay in registers while the neighbours pass by


class _Lanes:
    """Places of an array of (neighbours, LANES) numbers, and of one number per neighbour, in the code that is being built."""

    def __init__(self, context: Any, builder: Any, kind: Any, value: Any) -> None:
        self.builder, self.data = builder, context.make_array(kind)(context, builder, value).data
        self.number = context.get_value_type(kind.dtype)
        self.bytes, self.vector = kind.dtype.bitwidth // 8, ir.VectorType(self.number, LANES)

    def _at(self, place: Any) -> Any:
        return self.builder.gep(self.data, [place], source_etype=self.number)

    def _lanes_at(self, q: Any) -> Any:
        return self.builder.bitcast(self._at(self.builder.mul(q, q.type(LANES))), self.vector.as_pointer())

    def one(self, place: Any) -> Any:
        """An entry in all lanes."""
        return broadcast(self.builder, self.builder.load(self._at(place), typ=self.number), self.vector)

    def load(self, q: Any) -> Any:
        return self.builder.load(self._lanes_at(q), align=self.bytes, typ=self.vector)

    def store(self, q: Any, lanes: Any) -> None:
        self.builder.store(lanes, self._lanes_at(q), align=self.bytes)


def _code_lanes(
    typing: Any, gram: Any, near: Any, dots: Any, signs: Any, count: Any, penalty: Any, steps: Any, codes: Any, before: Any  # noqa: ARG001
) -> Any:  # fmt: skip
    """code_lanes(gram, near, dots, signs, count, penalty, steps, codes, before): the steps of `ista.code` in each sample, on
    those of `count` neighbours that have a sign there; no step: 1 for all of them. Absent ones get 0."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        gram, near, dots, signs, codes, before = (
            _Lanes(context, builder, signature.args[i], arguments[i]) for i in (0, 1, 2, 3, 7, 8)
        )
        count, vector = arguments[4], codes.vector
        none, ones = (ir.Constant(vector, [x] * LANES) for x in (0.0, 1.0))
        first = count.type(0)

        def present(q: Any) -> Any:
            return builder.icmp_signed("!=", signs.load(q), ir.Constant(signs.vector, [0] * LANES))

        def shrunk(x: Any, limit: Any, q: Any) -> Any:
            above, below = builder.fsub(x, limit, flags=MATHS), builder.fadd(x, limit, flags=MATHS)
            low = builder.select(builder.fcmp_ordered("<", below, none), below, none)
            return builder.select(present(q), builder.select(builder.fcmp_ordered(">", above, none), above, low), none)

        total = cgutils.alloca_once(builder, vector)
        builder.store(none, total)
        with cgutils.for_range(builder, count) as loop:
            heard = builder.select(present(loop.index), near.one(loop.index), none)
            builder.store(builder.fadd(builder.load(total, typ=vector), heard, flags=MATHS), total)
            codes.store(loop.index, builder.select(present(loop.index), ones, none))
        bound, least = builder.load(total, typ=vector), ir.Constant(vector, [SMALLEST] * LANES)
        step = builder.fdiv(ones, builder.select(builder.fcmp_ordered(">", bound, least), bound, least))
        half = builder.fmul(broadcast(builder, arguments[5], vector), ir.Constant(vector, [0.5] * LANES), flags=MATHS)
        limit = builder.fmul(half, step, flags=MATHS)
        with builder.if_then(builder.icmp_signed(">", arguments[6], first)), cgutils.for_range(builder, count) as loop:
            codes.store(loop.index, shrunk(builder.fmul(dots.one(loop.index), step, flags=MATHS), limit, loop.index))
        with cgutils.for_range_slice(builder, first.type(1), arguments[6], first.type(1), first.type):
            with cgutils.for_range(builder, count) as loop:
                before.store(loop.index, codes.load(loop.index))
            with cgutils.for_range(builder, count) as loop:
                left = cgutils.alloca_once(builder, vector)
                builder.store(dots.one(loop.index), left)
                row = builder.mul(loop.index, first.type(FEW))
                with cgutils.for_range(builder, count) as other:
                    taken = builder.fmul(before.load(other.index), gram.one(builder.add(row, other.index)), flags=MATHS)
                    builder.store(builder.fsub(builder.load(left, typ=vector), taken, flags=MATHS), left)
                moved = builder.fmul(builder.load(left, typ=vector), step, flags=MATHS)
                moved = builder.fadd(before.load(loop.index), moved, flags=MATHS)
                codes.store(loop.index, shrunk(moved, limit, loop.index))
        return context.get_dummy_value()

    whole = types.intp
    return types.void(gram, near, dots, signs, whole, penalty, whole, codes, before), emit


def _part_lanes(typing: Any, signs: Any, codes: Any, count: Any, others: Any, masses: Any) -> Any:  # noqa: ARG001
    """part_lanes(signs, codes, count, others, masses): codes of those who support stay, sizes of those who oppose go to
    `others`; the sums of sizes of the ones and the others are the two rows of `masses`."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        signs, codes, others, masses = (_Lanes(context, builder, signature.args[i], arguments[i]) for i in (0, 1, 3, 4))
        zero, none = arguments[2].type(0), ir.Constant(codes.vector, [0.0] * LANES)
        sums = [cgutils.alloca_once(builder, codes.vector) for _ in range(2)]
        for total in sums:
            builder.store(none, total)
        with cgutils.for_range(builder, arguments[2]) as loop:
            up = builder.icmp_signed(">", signs.load(loop.index), ir.Constant(signs.vector, [0] * LANES))
            code = codes.load(loop.index)
            size = builder.select(builder.fcmp_ordered("<", code, none), builder.fneg(code), code)
            halves = [builder.select(up, size, none), builder.select(up, none, size)]
            for total, half in zip(sums, halves, strict=True):
                builder.store(builder.fadd(builder.load(total, typ=codes.vector), half, flags=MATHS), total)
            codes.store(loop.index, builder.select(up, code, none))
            others.store(loop.index, halves[1])
        for place, total in enumerate(sums):
            masses.store(zero.type(place), builder.load(total, typ=codes.vector))
        return context.get_dummy_value()

    return types.void(signs, codes, types.intp, others, masses), emit


def _sum_tiles(typing: Any, out: Any, table: Any, listed: Any, codes: Any, count: Any) -> Any:  # noqa: ARG001
    """sum_tiles(out, table, listed, codes, count): out_k = sum_q codes_(q, k) of row listed_q + 1 of the table, for all lanes
    k, in whole tiles; returns how many columns were done."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        into, rows = (Rows(context, builder, signature.args[i], arguments[i]).fewest() for i in (0, 1))
        listed, codes = (context.make_array(signature.args[i])(context, builder, arguments[i]).data for i in (2, 3))
        count, whole = arguments[4], context.get_value_type(types.intp)

        def tile(column: Any) -> None:
            for first in range(0, LANES, _SAMPLES):
                sums = [[cgutils.alloca_once(builder, into.vector) for _ in range(into.registers)] for _ in range(_SAMPLES)]
                for total in [total for each in sums for total in each]:
                    builder.store(ir.Constant(into.vector, [0.0] * into.lanes), total)
                with cgutils.for_range(builder, count) as loop:
                    row = builder.load(builder.gep(listed, [loop.index], source_etype=whole), typ=whole)
                    said = rows.loaded(rows.tile(builder.add(row, whole(1)), column))
                    place = builder.mul(loop.index, whole(LANES))
                    for k, each in enumerate(sums):
                        cell = builder.gep(codes, [builder.add(place, whole(first + k))], source_etype=into.number)
                        spread = broadcast(builder, builder.load(cell, typ=into.number), into.vector)
                        for total, vector in zip(each, said, strict=True):
                            product = builder.fmul(spread, vector, flags=MATHS)
                            builder.store(builder.fadd(builder.load(total, typ=into.vector), product, flags=MATHS), total)
                for k, each in enumerate(sums):
                    for total, address in zip(each, into.tile(whole(first + k), column), strict=True):
                        builder.store(builder.load(total, typ=into.vector), address, align=into.number_bytes)

        return each_tile(builder, into, tile)

    return types.intp(out, table, listed, codes, types.intp), emit


code_lanes: Callable[..., None] = intrinsic(_code_lanes)
part_lanes: Callable[..., None] = intrinsic(_part_lanes)
sum_tiles: Callable[..., int] = intrinsic(_sum_tiles)


@inlined
def hear_side_by_side(
    table: Any, rows: Any, near: Any, dots: Any, signs: Any, count: int, penalty: Any, steps: int, gram: Any, codes: Any,
    others: Any, masses: Any, sums: Any,
) -> None:  # fmt: skip
    """sums_k = sum of a_j v_j W+ over those who support in sample k, `others` |a_j| of those who oppose, `masses` both sums of
    |a_j|; `near` holds |v_q|^2, `dots` t . v_q, `signs` (FEW * LANES,) those of the samples; the rest is scratch."""
    if steps > 1:
        gram_of(table, rows, near, count, gram)
    code_lanes(gram, near, dots, signs, count, penalty, steps, codes, others)
    part_lanes(signs, codes, count, others, masses)
    done = sum_tiles(sums, table, rows, codes, count)
    for x in range(done, sums.shape[1]):
        for k in range(LANES):
            sums[k, x] = sums.dtype.type(0.0)
        for q in range(count):
            for k in range(LANES):
                sums[k, x] += codes[q * LANES + k] * table[rows[q] + 1, x]
