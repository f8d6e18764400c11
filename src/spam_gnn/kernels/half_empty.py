"""The product of a row that is half zeros with a matrix, for compiled loops: what relu put out is not multiplied.

Which of 64 entries are not zero is one word of bits, found by comparing whole vectors; the loop takes the lowest bit that is
left until there is none. A list of places and numbers, filled entry by entry, took half as long as the product itself.
"""

from __future__ import annotations

from collections.abc import Callable
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
    x from `column` on, or = where it begins `anew`, in whole tiles of the output; returns how many of its columns were done."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        into, by, rows = (Rows(context, builder, signature.args[i], arguments[i]) for i in (0, 2, 3))
        bits = _bits_of(builder, rows, arguments[4], arguments[5])
        start = builder.add(builder.mul(arguments[4], rows.width), arguments[5])

        def tile(first: Any) -> None:
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

        return each_tile(builder, into, tile)

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
def add_product(out: Any, o: int, table: Any, r: int, weights: Any) -> None:
    """out_o += table_r W, for W (d_in, d); what does not fill words and tiles is for plain loops."""
    whole, done = table.shape[1] // WORD * WORD, 0
    for column in range(0, whole, WORD):
        done = add_word(out, o, weights, table, r, column, False)
    for y in range(whole if done == out.shape[1] else 0, table.shape[1]):
        a = table[r, y]
        if a != 0:
            for x in range(done if y < whole else 0, out.shape[1]):
                out[o, x] += a * weights[y, x]


@inlined
def product(out: Any, o: int, table: Any, r: int, weights: Any) -> None:
    """out_o = table_r W: as `add_product`, into what need not be cleared first."""
    if table.shape[1] >= WORD and add_word(out, o, weights, table, r, 0, True) == out.shape[1]:
        whole = table.shape[1] // WORD * WORD
        for column in range(WORD, whole, WORD):
            add_word(out, o, weights, table, r, column, False)
        for y in range(whole, table.shape[1]):
            a = table[r, y]
            for x in range(out.shape[1] if a != 0 else 0):
                out[o, x] += a * weights[y, x]
    else:
        for x in range(out.shape[1]):
            out[o, x] = out.dtype.type(0.0)
        add_product(out, o, table, r, weights)


@inlined
def add_outer(into: Any, table: Any, others: Any, r: int) -> None:
    """into += table_r^T others_r, an outer product, for whole words and tiles alone."""
    for column in range(0, table.shape[1], WORD):
        add_word_outer(into, table, others, r, column)
