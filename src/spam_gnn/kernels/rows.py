"""Compiled products of one row with many: what every loop of this package spends its time in.

Vectors are loops and matrices are indexed by two numbers: array expressions and slices would cost more than the sums. The two
products of a row with many others use vector registers (`vectors`) and leave what does not fill them to plain loops.
"""

from __future__ import annotations

from typing import Any

from spam_gnn.kernels.compiled import compiled, inlined
from spam_gnn.kernels.vectors import add_tiles, dot_tiles


@compiled
def dot(left: Any, right: Any, length: int) -> Any:
    """The inner product of the first `length` entries."""
    total = left.dtype.type(0.0)
    for x in range(length):
        total += left[x] * right[x]
    return total


@compiled
def copy(out: Any, scale: Any, vector: Any, length: int) -> None:
    """out = scale vector."""
    for x in range(length):
        out[x] = scale * vector[x]


@compiled
def add_scaled(out: Any, scale: Any, vector: Any, length: int) -> None:
    """out += scale vector."""
    for x in range(length):
        out[x] += scale * vector[x]


@inlined
def fill(row: Any, value: Any) -> None:
    """row = value, everywhere."""
    for x in range(row.size):
        row[x] = value


@inlined
def fill_row(rows: Any, place: int, value: Any) -> None:
    """row_place = value, everywhere."""
    for x in range(rows.shape[1]):
        rows[place, x] = value


@inlined
def clear_rows(rows: Any, count: int) -> None:
    """The first `count` rows = 0."""
    for e in range(count):
        for x in range(rows.shape[1]):
            rows[e, x] = 0.0


@inlined
def load(row: Any, table: Any, j: int) -> None:
    """row = table_j."""
    for x in range(row.size):
        row[x] = table[j, x]


@inlined
def row_dots(row: Any, values: Any, nodes: Any, count: int, out: Any) -> None:
    """out_e = row . v of each listed node."""
    done = dot_tiles(row, 0, values, nodes, count, out, 0)
    if done < row.size:
        for e in range(count):
            j, total = nodes[e], out[e] if done > 0 else row.dtype.type(0.0)
            for x in range(done, row.size):
                total += row[x] * values[j, x]
            out[e] = total


@inlined
def dots_with(table: Any, r: int, values: Any, nodes: Any, count: int, out: Any, begin: int) -> None:
    """out_{begin + e} = table_r . v of each listed node."""
    done = dot_tiles(table, r, values, nodes, count, out, begin)
    if done < table.shape[1]:
        for e in range(count):
            j, total = nodes[e], out[begin + e] if done > 0 else table.dtype.type(0.0)
            for x in range(done, table.shape[1]):
                total += table[r, x] * values[j, x]
            out[begin + e] = total


@inlined
def add_rows(row: Any, values: Any, nodes: Any, weights: Any, count: int) -> None:
    """row += sum_e weight_e v of the listed nodes."""
    done = add_tiles(row, 0, values, nodes, 0, weights, 0, count, row.dtype.type(1.0))
    if done < row.size:
        for e in range(count):
            j, a = nodes[e], weights[e]
            for x in range(done, row.size):
                row[x] += a * values[j, x]


@inlined
def add_row_of(out: Any, i: int, values: Any, nodes: Any, weights: Any, begin: int, count: int, scale: Any) -> None:
    """out_i += scale sum_e weight_{begin + e} v of the nodes listed from `begin` on: a row of a sparse product."""
    done = add_tiles(out, i, values, nodes, begin, weights, begin, count, scale)
    if done < out.shape[1]:
        for e in range(begin, begin + count):
            j, a = nodes[e], weights[e] * scale
            for x in range(done, out.shape[1]):
                out[i, x] += a * values[j, x]


@inlined
def add_basis(rows: Any, j: int, basis: Any, order: Any, share: Any, begin: int, count: int) -> None:
    """rows_j += sum_r share_{begin + r} basis_r; `order` counts 0, 1, 2, ..."""
    done = add_tiles(rows, j, basis, order, 0, share, begin, count, basis.dtype.type(1.0))
    if done < basis.shape[1]:
        for r in range(count):
            a = share[begin + r]
            for x in range(done, basis.shape[1]):
                rows[j, x] += a * basis[r, x]


@inlined
def gather_rows(out: Any, values: Any, nodes: Any, count: int) -> None:
    """out_e = v of each listed node: rows that lie side by side are quicker to go over many times."""
    width = values.shape[1]
    for e in range(count):
        j = nodes[e]
        for x in range(width):
            out[e, x] = values[j, x]


@inlined
def scatter_rows(values: Any, nodes: Any, rows: Any, scales: Any, others: Any, listed: Any, wanted: Any, count: int) -> None:
    """v of each wanted node += row_e + scale_e other_e."""
    width = values.shape[1]
    for e in range(count):
        if wanted[e] == 0:
            continue
        j, a, o = nodes[e], scales[e], listed[e]
        for x in range(width):
            values[j, x] += rows[e, x] + a * others[o, x]


@inlined
def add_scaled_rows(out: Any, nodes: Any, scales: Any, values: Any, count: int) -> None:
    """out of each listed node += scale_e v of the same."""
    for e in range(count):
        j, a = nodes[e], scales[e]
        for x in range(values.shape[1]):
            out[j, x] += a * values[j, x]
