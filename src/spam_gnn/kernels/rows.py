"""Compiled products of one row with many: what every loop of this package spends its time in.

Vectors are loops and matrices are indexed by two numbers: array expressions and slices would cost more than the sums.
"""

from __future__ import annotations

from typing import Any

from spam_gnn.kernels.compiled import compiled, inlined


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
def load(row: Any, table: Any, j: int) -> None:
    """row = table_j."""
    for x in range(row.size):
        row[x] = table[j, x]


@inlined
def row_dots(row: Any, values: Any, nodes: Any, count: int, out: Any) -> None:
    """out_e = row . v of each listed node, four at a time so that the row is read once for all of them."""
    width, e = row.size, 0
    while e + 4 <= count:
        i, j, k, m = nodes[e], nodes[e + 1], nodes[e + 2], nodes[e + 3]
        a = b = c = d = row.dtype.type(0.0)
        for x in range(width):
            r = row[x]
            a += r * values[i, x]
            b += r * values[j, x]
            c += r * values[k, x]
            d += r * values[m, x]
        out[e], out[e + 1], out[e + 2], out[e + 3] = a, b, c, d
        e += 4
    while e < count:
        j, a = nodes[e], row.dtype.type(0.0)
        for x in range(width):
            a += row[x] * values[j, x]
        out[e] = a
        e += 1


@inlined
def add_rows(row: Any, values: Any, nodes: Any, weights: Any, count: int) -> None:
    """row += sum_e weight_e v of the listed nodes."""
    width, e = row.size, 0
    while e + 4 <= count:
        i, j, k, m = nodes[e], nodes[e + 1], nodes[e + 2], nodes[e + 3]
        a, b, c, d = weights[e], weights[e + 1], weights[e + 2], weights[e + 3]
        for x in range(width):
            row[x] += a * values[i, x] + b * values[j, x] + c * values[k, x] + d * values[m, x]
        e += 4
    while e < count:
        j, a = nodes[e], weights[e]
        for x in range(width):
            row[x] += a * values[j, x]
        e += 1


@inlined
def gather_rows(out: Any, values: Any, nodes: Any, count: int) -> None:
    """out_e = v of each listed node: rows that lie side by side are quicker to go over many times."""
    width = values.shape[1]
    for e in range(count):
        j = nodes[e]
        for x in range(width):
            out[e, x] = values[j, x]


@inlined
def scatter_rows(values: Any, nodes: Any, rows: Any, count: int) -> None:
    """v of each listed node += row_e."""
    width = values.shape[1]
    for e in range(count):
        j = nodes[e]
        for x in range(width):
            values[j, x] += rows[e, x]


@inlined
def nonzero(nodes: Any, weights: Any, count: int, to_nodes: Any, to_weights: Any) -> int:
    """Copy the entries whose weight is not zero; returns how many. Signs are drawn at random, so no branch could be foretold."""
    kept = 0
    for e in range(count):
        to_nodes[kept], to_weights[kept] = nodes[e], weights[e]
        kept += 1 if weights[e] != 0 else 0
    return kept
