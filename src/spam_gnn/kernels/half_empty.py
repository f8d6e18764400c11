"""The product of a row that is half zeros with a matrix, for compiled loops: what relu put out is not multiplied.

Which of 64 entries are not zero is one word of bits, found by comparing whole vectors; the loop takes the lowest bit that is
left until there is none. A list of places and numbers, filled entry by entry, took half as long as the product itself.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from spam_gnn.kernels.compiled import inlined
from spam_gnn.kernels.vectors import MATHS, Rows, broadcast, each_tile

WORD = 64  # entries whose zeros are looked for at once


def _bits_of(builder: Any, rows: Rows, row: Any, column: Any) -> Any:
    """Bit x: entry column + x of the row is not zero."""
    block = ir.VectorType(rows.number, WORD)
    at = builder.gep(rows.data, [builder.add(builder.mul(row, rows.width), column)], source_etype=rows.number)
    entries = builder.load(builder.bitcast(at, block.as_pointer()), align=rows.number_bytes, typ=block)
    return builder.bitcast(builder.fcmp_unordered("!=", entries, ir.Constant(block, [0.0] * WORD)), ir.IntType(WORD))


def _each_bit(builder: Any, bits: Any, work: Callable[[Any], None]) -> None:
    """work(place) of each bit that is set, lowest first."""
    left = cgutils.alloca_once_value(builder, bits)
    again, inside, done = (builder.append_basic_block(f"bits.{part}") for part in ("again", "inside", "done"))
    builder.branch(again)
    builder.position_at_end(again)
    now = builder.load(left, typ=bits.type)
    builder.cbranch(builder.icmp_unsigned("!=", now, bits.type(0)), inside, done)
    builder.position_at_end(inside)
    lowest = builder.cttz(now, ir.IntType(1)(1))
    builder.store(builder.and_(now, builder.sub(now, bits.type(1))), left)
    work(lowest)
    builder.branch(again)
    builder.position_at_end(done)


def _add_word(
    typing: Any, out: Any, place: Any, weights: Any, table: Any, row: Any, column: Any, anew: Any  # noqa: ARG001
) -> Any:
    """add_word(out, place, weights, table, row, column, anew): out_place += sum of table_(row, x) weights_x over the 64 entries
    x from `column` on, or = where it begins `anew`, in whole tiles of the weights' columns; returns how many were done."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        out, weights, rows = (Rows(context, builder, signature.args[i], arguments[i]) for i in (0, 2, 3))
        bits = _bits_of(builder, rows, arguments[4], arguments[5])
        start = builder.add(builder.mul(arguments[4], rows.width), arguments[5])

        def tile(into: Rows, by: Rows, first: Any) -> None:
            addresses = into.tile(arguments[1], first)
            sums = [cgutils.alloca_once(builder, into.vector) for _ in addresses]
            for total, value in zip(sums, into.loaded(addresses), strict=True):
                none = ir.Constant(into.vector, [0.0] * into.lanes)
                builder.store(builder.select(builder.trunc(arguments[6], ir.IntType(1)), none, value), total)

            def add(x: Any) -> None:
                entry = builder.load(builder.gep(rows.data, [builder.add(start, x)], source_etype=rows.number), typ=rows.number)
                spread = broadcast(builder, entry, into.vector)
                for total, vector in zip(sums, by.loaded(by.tile(builder.add(arguments[5], x), first)), strict=True):
                    product = builder.fmul(spread, vector, flags=MATHS)
                    builder.store(builder.fadd(builder.load(total, typ=into.vector), product, flags=MATHS), total)

            _each_bit(builder, bits, add)
            for total, address in zip(sums, addresses, strict=True):
                builder.store(builder.load(total, typ=into.vector), address, align=into.number_bytes)

        wide = partial(tile, out.widest(), weights.widest())
        done = each_tile(builder, weights.widest(), wide)
        return each_tile(builder, weights, partial(tile, out, weights), done)

    return types.intp(out, types.intp, weights, table, types.intp, types.intp, types.boolean), emit


def _add_word_outer(typing: Any, into: Any, table: Any, others: Any, row: Any, column: Any) -> Any:  # noqa: ARG001
    """add_word_outer(into, table, others, row, column): into_x += table_(row, x) others_row for the 64 entries x from `column`
    on, in whole tiles of `others`; returns how many of its columns were done."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        out, rows, added = (Rows(context, builder, signature.args[i], arguments[i]) for i in range(3))
        bits = _bits_of(builder, rows, arguments[3], arguments[4])
        start = builder.add(builder.mul(arguments[3], rows.width), arguments[4])

        def tile(first: Any) -> None:
            held = added.loaded(added.tile(arguments[3], first))

            def add(x: Any) -> None:
                entry = builder.load(builder.gep(rows.data, [builder.add(start, x)], source_etype=rows.number), typ=rows.number)
                spread = broadcast(builder, entry, out.vector)
                addresses = out.tile(builder.add(arguments[4], x), first)
                sums = [
                    builder.fadd(before, builder.fmul(spread, vector, flags=MATHS), flags=MATHS)
                    for before, vector in zip(out.loaded(addresses), held, strict=True)
                ]
                for total, address in zip(sums, addresses, strict=True):
                    builder.store(total, address, align=out.number_bytes)

            _each_bit(builder, bits, add)

        return each_tile(builder, added, tile)

    return types.intp(into, table, others, types.intp, types.intp), emit


add_word: Callable[..., int] = intrinsic(_add_word)
add_word_outer: Callable[..., int] = intrinsic(_add_word_outer)


@inlined
def _add_multiple(out: Any, o: int, a: Any, weights: Any, y: int, first: int) -> None:
    """out_o += a W_y, from column `first` of W on."""
    width = out.shape[1]
    for way in range(weights.shape[1] // width):
        for x in range(max(first - way * width, 0), width):
            out[o + way, x] += a * weights[y, way * width + x]


@inlined
def add_product(out: Any, o: int, table: Any, r: int, weights: Any) -> None:
    """out_o += table_r W, for W (d_in, d); what does not fill words and tiles is for plain loops.

    W may be several matrices side by side, each as wide as `out`: the second result is added to the row after the first, and
    so on. A row goes through two of width 64 in the time of one, where registers are wide.
    """
    whole, done = table.shape[1] // WORD * WORD, 0
    for column in range(0, whole, WORD):
        done = add_word(out, o, weights, table, r, column, False)
    for y in range(whole if done == weights.shape[1] else 0, table.shape[1]):
        if table[r, y] != 0:
            _add_multiple(out, o, table[r, y], weights, y, done if y < whole else 0)


@inlined
def product(out: Any, o: int, table: Any, r: int, weights: Any) -> None:
    """out_o = table_r W: as `add_product`, into what need not be cleared first."""
    if table.shape[1] >= WORD and add_word(out, o, weights, table, r, 0, True) == weights.shape[1]:
        whole = table.shape[1] // WORD * WORD
        for column in range(WORD, whole, WORD):
            add_word(out, o, weights, table, r, column, False)
        for y in range(whole, table.shape[1]):
            if table[r, y] != 0:
                _add_multiple(out, o, table[r, y], weights, y, 0)
    else:
        for way in range(weights.shape[1] // out.shape[1]):
            for x in range(out.shape[1]):
                out[o + way, x] = out.dtype.type(0.0)
        add_product(out, o, table, r, weights)


@inlined
def add_outer(into: Any, table: Any, others: Any, r: int) -> None:
    """into += table_r^T others_r, an outer product, for whole words and tiles alone."""
    for column in range(0, table.shape[1], WORD):
        add_word_outer(into, table, others, r, column)
