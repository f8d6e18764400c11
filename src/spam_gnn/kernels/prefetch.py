"""Ask for a row of a table before it is needed: neighbours lie anywhere in memory, and a loop would mostly wait for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

AHEAD = 32  # messages between asking for a row and using it: more than most neighbourhoods, fewer than a cache holds
_LINE, _LINES = 64, 4  # bytes that travel together, and how many of these are asked for in one turn of a loop


def _ask_for_row(typing: Any, table: Any, row: Any, width: Any) -> Any:  # noqa: ARG001 - numba's calling convention
    """ask_for_row(table, row, width): start loading that many entries of a row; no effect on results."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        held = context.make_array(signature.args[0])(context, builder, arguments[0])
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        offset = builder.mul(arguments[1], cgutils.unpack_tuple(builder, held.strides)[0])
        start = builder.gep(builder.bitcast(held.data, byte), [offset], source_etype=ir.IntType(8))
        size = builder.mul(arguments[2], held.itemsize)
        fetch = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(ir.VoidType(), [byte, word, word, word]), "llvm.prefetch.p0"
        )
        whole = builder.and_(size, size.type(-_LINES * _LINE))
        for begin, end, lines in ((size.type(0), whole, _LINES), (whole, size, 1)):
            with cgutils.for_range_slice(builder, begin, end, size.type(lines * _LINE), size.type) as (at, _):
                for place in range(lines):
                    line = builder.gep(start, [builder.add(at, at.type(place * _LINE))], source_etype=ir.IntType(8))
                    builder.call(fetch, [line, word(0), word(3), word(1)])
        return context.get_dummy_value()

    return types.void(table, types.intp, types.intp), emit


ask_for_row: Callable[..., None] = intrinsic(_ask_for_row)
