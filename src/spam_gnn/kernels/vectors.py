"""Two products of one row with many, written for vector registers: a tile of the row stays in them while the others pass by.

Compiled from plain loops the row would be stored and loaded again for every few neighbours, which takes longer than the sums. A
tile is eight registers wide: so many sums are under way at once that none waits for the one before. Registers of single numbers
have 32 bytes, in which a row of 64 fills a tile, or 64 where rows are twice as long (`Rows.widest`). What is left of a row is
for plain loops (`rows`).
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_REGISTERS, MATHS = 8, ("reassoc", "contract")
_TOGETHER = 4  # rows whose inner products are summed up together
WIDE = 64 if get_host_cpu_features().get("avx512f", False) else 32  # bytes of a register of double numbers; of single ones: 32


class Rows:
    """The numbers of a 2D C array (or of one row, 1D), seen as rows of vectors."""

    def __init__(self, context: Any, builder: Any, kind: Any, value: Any) -> None:
        self.builder, held = builder, context.make_array(kind)(context, builder, value)
        self.data, self.width = held.data, cgutils.unpack_tuple(builder, held.shape)[-1]
        self.number = context.get_value_type(kind.dtype)
        self.number_bytes = kind.dtype.bitwidth // 8
        self._in_registers_of(WIDE if self.number_bytes == 8 else 32, _REGISTERS)

    def _in_registers_of(self, size: int, registers: int) -> None:
        self.registers, self.lanes = registers, size // self.number_bytes
        self.vector = ir.VectorType(self.number, self.lanes)

    def widest(self) -> Rows:
        """The same in the widest registers there are, as many."""
        rows = copy(self)
        rows._in_registers_of(WIDE, _REGISTERS)
        return rows

    def fewest(self) -> Rows:
        """The same tiles in the widest registers there are, and so in fewer of them."""
        rows = copy(self)
        rows._in_registers_of(WIDE, self.registers * self.lanes * self.number_bytes // WIDE)
        return rows

    def tile(self, row: Any, column: Any) -> list[Any]:
        """Addresses of the vectors of a tile that begins at (row, column)."""
        start = self.builder.add(self.builder.mul(row, self.width), column)
        place = [self.builder.add(start, start.type(self.lanes * r)) for r in range(self.registers)]
        cells = [self.builder.gep(self.data, [p], source_etype=self.number) for p in place]
        return [self.builder.bitcast(cell, self.vector.as_pointer()) for cell in cells]

    def loaded(self, addresses: list[Any]) -> list[Any]:
        return [self.builder.load(a, align=self.number_bytes, typ=self.vector) for a in addresses]


def each_tile(builder: Any, rows: Rows, work: Callable[[Any], None], start: Any | None = None) -> Any:
    """work(first column) of each whole tile from column `start` on; returns how many columns are covered up to the last."""
    size = rows.width.type(rows.registers * rows.lanes)
    start = size.type(0) if start is None else start
    tiles = builder.udiv(builder.sub(rows.width, start), size)
    covered = builder.add(start, builder.mul(tiles, size))
    with cgutils.for_range_slice(builder, start, covered, size, covered.type) as (column, _):
        work(column)
    return covered


def _entry(context: Any, builder: Any, kind: Any, value: Any, place: Any) -> Any:
    """One entry of a 1D C array."""
    held = context.make_array(kind)(context, builder, value)
    number = context.get_value_type(kind.dtype)
    return builder.load(builder.gep(held.data, [place], source_etype=number), typ=number)


def _add_tiles(
    typing: Any, out: Any, place: Any, values: Any, nodes: Any, start: Any, weights: Any, begin: Any, count: Any,  # noqa: ARG001
    scale: Any,
) -> Any:  # fmt: skip
    """add_tiles(out, place, values, nodes, start, weights, begin, count, scale): out_place += scale sum_e weight_{begin + e} v
    of node start + e, in whole tiles; returns how many columns were done."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        into, rows = (Rows(context, builder, signature.args[i], arguments[i]).fewest() for i in (0, 2))

        def tile(column: Any) -> None:
            addresses = into.tile(arguments[1], column)
            sums = [cgutils.alloca_once(builder, into.vector) for _ in addresses]
            for total, start in zip(sums, into.loaded(addresses), strict=True):
                builder.store(start, total)
            with cgutils.for_range(builder, arguments[7]) as loop:
                node = _entry(context, builder, signature.args[3], arguments[3], builder.add(arguments[4], loop.index))
                weight = _entry(context, builder, signature.args[5], arguments[5], builder.add(arguments[6], loop.index))
                spread = broadcast(builder, builder.fmul(weight, arguments[8], flags=MATHS), into.vector)
                for total, vector in zip(sums, rows.loaded(rows.tile(node, column)), strict=True):
                    product = builder.fmul(spread, vector, flags=MATHS)
                    builder.store(builder.fadd(builder.load(total, typ=into.vector), product, flags=MATHS), total)
            for total, address in zip(sums, addresses, strict=True):
                builder.store(builder.load(total, typ=into.vector), address, align=into.number_bytes)

        return each_tile(builder, into, tile)

    return types.intp(out, types.intp, values, nodes, types.intp, weights, types.intp, types.intp, scale), emit


def _dot_tiles(
    typing: Any, table: Any, place: Any, values: Any, nodes: Any, count: Any, out: Any, begin: Any  # noqa: ARG001
) -> Any:
    """dot_tiles(table, place, values, nodes, count, out, begin): out_{begin + e} = table_place . v of each listed node, in
    whole tiles; returns how many columns were done. Where there is no whole tile, `out` stays as it was."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        fixed, rows = (Rows(context, builder, signature.args[i], arguments[i]).fewest() for i in (0, 2))
        result = context.make_array(signature.args[5])(context, builder, arguments[5])
        count, four = arguments[4], ir.VectorType(fixed.number, _TOGETHER)
        grouped = builder.and_(count, count.type(-_TOGETHER))

        def tile(column: Any) -> None:
            held = fixed.loaded(fixed.tile(arguments[1], column))
            first = builder.icmp_unsigned("==", column, column.type(0))

            def partial_sums(e: Any) -> Any:
                vectors = rows.loaded(rows.tile(_entry(context, builder, signature.args[3], arguments[3], e), column))
                return _added(builder, [builder.fmul(a, b, flags=MATHS) for a, b in zip(held, vectors, strict=True)])

            def add(e: Any, totals: Any) -> None:
                cell = builder.gep(result.data, [builder.add(arguments[6], e)], source_etype=fixed.number)
                cell = builder.bitcast(cell, totals.type.as_pointer())
                before = builder.load(cell, align=fixed.number_bytes, typ=totals.type)
                none = ir.Constant(totals.type, -0.0 if totals.type == fixed.number else [-0.0] * _TOGETHER)
                builder.store(
                    builder.fadd(totals, builder.select(first, none, before), flags=MATHS), cell, align=fixed.number_bytes
                )

            with cgutils.for_range_slice(builder, count.type(0), grouped, count.type(_TOGETHER), count.type) as (e, _):
                add(e, _sums_of_four(builder, [partial_sums(builder.add(e, e.type(x))) for x in range(_TOGETHER)], four))
            with cgutils.for_range_slice(builder, grouped, count, count.type(1), count.type) as (e, _):
                add(e, _sum_of(builder, partial_sums(e)))

        return each_tile(builder, fixed, tile)

    return types.intp(table, types.intp, values, nodes, types.intp, out, types.intp), emit


def _added(builder: Any, vectors: list[Any]) -> Any:
    """The sum of vectors, as a tree."""
    while len(vectors) > 1:
        half = len(vectors) // 2
        vectors = [builder.fadd(a, b, flags=MATHS) for a, b in zip(vectors[:half], vectors[half:], strict=True)]
    return vectors[0]


def _sum_of(builder: Any, vector: Any) -> Any:
    """The sum of the numbers of one vector."""
    kind = vector.type
    name = f"llvm.vector.reduce.fadd.v{kind.count}{'f32' if kind.element == ir.FloatType() else 'f64'}"
    reduce = cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind.element, [kind.element, kind]), name)
    return builder.call(reduce, [ir.Constant(kind.element, -0.0), vector], fastmath=MATHS)


def _sums_of_four(builder: Any, vectors: list[Any], four: ir.VectorType) -> Any:
    """The sums of the numbers of each of four vectors: halves are added side by side, in a third of the steps."""
    lanes = vectors[0].type.count

    def picked(a: Any, b: Any, places: list[int]) -> Any:
        return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(ir.IntType(32), len(places)), places))

    size = lanes  # numbers of each of the four that are left
    while len(vectors) > 1:
        size //= 2
        begins = range(0, 2 * lanes, 2 * size)
        low, high = ([begin + way + x for begin in begins for x in range(size)] for way in (0, size))
        pairs = zip(vectors[::2], vectors[1::2], strict=True)
        vectors = [builder.fadd(picked(a, b, low), picked(a, b, high), flags=MATHS) for a, b in pairs]
    (left,) = vectors
    while size > 1:
        size //= 2
        left = builder.fadd(left, picked(left, left, [x ^ size for x in range(lanes)]), flags=MATHS)
    return picked(left, left, [x * lanes // four.count for x in range(four.count)])


def broadcast(builder: Any, number: Any, vector: ir.VectorType) -> Any:
    first = builder.insert_element(ir.Constant(vector, ir.Undefined), number, ir.IntType(32)(0))
    mask = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), [0] * vector.count)
    return builder.shuffle_vector(first, ir.Constant(vector, ir.Undefined), mask)


add_tiles: Callable[..., int] = intrinsic(_add_tiles)
dot_tiles: Callable[..., int] = intrinsic(_dot_tiles)
