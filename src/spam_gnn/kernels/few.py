"""The unrolled coder on a handful of neighbours: codes, thresholds and inner products of all of them in one vector each.

Most nodes have few neighbours, and of those a drawn graph has fewer. Loops so short cost more to begin than to run. So the
inner products of the neighbours with each other are made once, and a step needs no residual:
r . v_q = t . v_q - sum_r a_r v_r . v_q.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from spam_gnn.kernels.compiled import inlined
from spam_gnn.kernels.rows import dots_with
from spam_gnn.kernels.vectors import MATHS, broadcast

FEW = 8  # neighbours that fit; arrays of codes and products need room for so many


def _refine(typing: Any, gram: Any, dots: Any, count: Any, step: Any, limit: Any, steps: Any, codes: Any) -> Any:  # noqa: ARG001
    """refine(gram, dots, count, step, limit, steps, codes): a_1 = S(step dots, limit), then
    a = S(a + step (dots - sum_r a_r gram_r), limit), `steps` steps in all. Of entries beyond `count` nothing is meant."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        arrays = [context.make_array(signature.args[i])(context, builder, arguments[i]) for i in (0, 1, 6)]
        number = context.get_value_type(signature.args[1].dtype)
        size, vector = signature.args[1].dtype.bitwidth // 8, ir.VectorType(number, FEW)
        products, first, out = (held.data for held in arrays)
        step, limit = (broadcast(builder, arguments[i], vector) for i in (3, 4))
        none = ir.Constant(vector, [0.0] * FEW)

        def at(data: Any, place: Any) -> Any:
            return builder.bitcast(builder.gep(data, [place], source_etype=number), vector.as_pointer())

        def shrunk(x: Any) -> Any:
            above, below = builder.fsub(x, limit, flags=MATHS), builder.fadd(x, limit, flags=MATHS)
            low = builder.select(builder.fcmp_ordered("<", below, none), below, none)
            return builder.select(builder.fcmp_ordered(">", above, none), above, low)

        origin = arguments[2].type(0)
        dots = builder.load(at(first, origin), align=size, typ=vector)
        builder.store(shrunk(builder.fmul(dots, step, flags=MATHS)), at(out, origin), align=size)
        with cgutils.for_range_slice(builder, origin.type(1), arguments[5], origin.type(1), origin.type):
            left = cgutils.alloca_once(builder, vector)
            builder.store(dots, left)
            with cgutils.for_range(builder, arguments[2]) as loop:
                weight = builder.load(builder.gep(out, [loop.index], source_etype=number), typ=number)
                row = builder.load(at(products, builder.mul(loop.index, origin.type(FEW))), align=size, typ=vector)
                taken = builder.fmul(broadcast(builder, weight, vector), row, flags=MATHS)
                builder.store(builder.fsub(builder.load(left, typ=vector), taken, flags=MATHS), left)
            before = builder.load(at(out, origin), align=size, typ=vector)
            moved = builder.fadd(before, builder.fmul(builder.load(left, typ=vector), step, flags=MATHS), flags=MATHS)
            builder.store(shrunk(moved), at(out, origin), align=size)
        return context.get_dummy_value()

    return types.void(gram, dots, types.intp, step, limit, types.intp, codes), emit


refine: Callable[..., None] = intrinsic(_refine)


@inlined
def gram_of(table: Any, listed: Any, near: Any, count: int, gram: Any) -> None:
    """gram_(q, r) = v_q . v_r of at most `FEW` neighbours, rows of `FEW`; `near` holds |v_q|^2."""
    for q in range(count):
        dots_with(table, listed[q], table, listed, q, gram, FEW * q)
        gram[FEW * q + q] = near[q]
        for r in range(q):
            gram[FEW * r + q] = gram[FEW * q + r]


@inlined
def code_few(
    table: Any, listed: Any, near: Any, dots: Any, count: int, step: Any, limit: Any, steps: int, a: Any, gram: Any
) -> None:  # fmt: skip
    """a_T of at most `FEW` present neighbours; `near` holds |v_q|^2, `dots` t . v_q, `gram` (FEW * FEW,) is scratch."""
    if steps > 1:
        gram_of(table, listed, near, count, gram)
    refine(gram, dots, count, step, limit, steps, a)
