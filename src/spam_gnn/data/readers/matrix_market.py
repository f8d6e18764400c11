"""MatrixMarket (.mtx): a square adjacency matrix in coordinate form; its rows are the rows of the node table, in order.

Read by the machinery of the text tables rather than by `scipy.io.mmread`, so that a defect has its line; the tests compare
the two.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from spam_gnn.data.readers.content import text_pieces
from spam_gnn.data.readers.delimited import DelimitedTable
from spam_gnn.data.readers.edge_list import line_pieces
from spam_gnn.data.readers.table import Block, defect, is_finite_number, shown

_BANNER = "%%MatrixMarket matrix coordinate pattern|real|integer general|symmetric|skew-symmetric"


class MatrixEdges:
    """An opened .mtx file: entry (i, j) is an edge from row i to row j of the node table."""

    def __init__(self, path: Path) -> None:
        self.file = str(path)
        self._pattern, self._symmetric = _banner(self.file, path)
        number, self._size = _size_line(self.file, path)
        names = ["row", "column"] if self._pattern else ["row", "column", "value"]

        def body() -> Iterator[bytes]:
            """Without the size line, which has another number of fields."""
            skipped = False
            for piece in line_pieces(path, " "):
                if not skipped:
                    before, after = piece.split(b"\n", number)[:number], piece.split(b"\n", number)[number]
                    piece, skipped = b"\n".join([*before[:-1], b"", after]), True
                yield piece

        self._table = DelimitedTable(self.file, body, " ", names)

    def ends(self, nodes: int, nodes_file: str, notes: list[str]) -> np.ndarray:
        """(2, edges) int64; entries that are zero are no edges."""
        rows, columns, entries = self._size
        if rows != columns or rows != nodes:
            found = f"found a {rows} x {columns} matrix for {nodes} nodes in {nodes_file}"
            raise defect(self.file, f"{found}; give one row and one column per node, in the order of the node table")
        parts, zeros, count = [np.empty((2, 0), dtype=np.int64)], 0, 0
        values = [] if self._pattern else ["value"]
        for block in self._table.blocks(number=values, key=("row", "column")):
            ends = np.stack([self._positions(block, name, nodes, count) for name in ("row", "column")])
            count += block.rows
            if values:
                kept = self._values(block, count - block.rows) != 0
                zeros += int((~kept).sum())
                ends = ends[:, kept]
            parts.append(ends)
        if count != entries:
            raise defect(self.file, f"found {count} entries where the size line promises {entries}; the file may be cut short")
        if zeros:
            notes.append(f"{zeros} entries of {self.file} are zero: no edges")
        if not self._pattern:
            notes.append(f"the values in {self.file} are taken as edge weights, accepted and not used")
        listed = np.concatenate(parts, axis=1)
        return np.concatenate([listed, listed[::-1]], axis=1) if self._symmetric else listed

    def _positions(self, block: Block, name: str, nodes: int, first: int) -> np.ndarray:
        keys = block.key[name]
        if keys.dtype == object:  # one cell is no whole number, or some are spelt 007: look at each
            good = np.array([k.isascii() and k.isdigit() and len(k) < 19 for k in keys])
            if not good.all():
                row = int(np.argmin(good))
                raise self._table.defect(f"found {shown(keys[row])}; give a whole number from 1 to {nodes}", name, first + row)
            keys = keys.astype(np.int64)
        outside = (keys < 1) | (keys > nodes)
        if outside.any():
            row = int(np.argmax(outside))
            found = f"found {keys[row]} in a matrix of {nodes} rows"
            raise self._table.defect(f"{found}; number rows and columns from 1 to {nodes}", name, first + row)
        return keys - 1

    def _values(self, block: Block, first: int) -> np.ndarray:
        if "value" in block.number:
            return block.number["value"]
        cells = self._table.texts(["value"])[0][first : first + block.rows]
        for row, cell in enumerate(cells):
            if not is_finite_number(cell):
                raise self._table.defect(f"found {shown(cell)}; give a finite number", "value", first + row)
        return np.array([float(cell) for cell in cells])


def _banner(file: str, path: Path) -> tuple[bool, bool]:
    """Whether entries have no values, and whether only one triangle is listed."""
    first = next(text_pieces(path), b"").split(b"\n", 1)[0].decode(errors="replace")
    words = first.casefold().split()
    if words[:2] != ["%%matrixmarket", "matrix"] or len(words) != 5:
        raise defect(file, f"found {shown(first)}; a MatrixMarket file begins with '{_BANNER}'", 1)
    form, field, symmetry = words[2:]
    if form != "coordinate":
        advice = "write the matrix in coordinate form (scipy.io.mmwrite of a sparse one)"
        raise defect(file, f"found {shown(form)} form; {advice}", 1)
    if field not in ("pattern", "real", "integer"):
        raise defect(file, f"found {shown(field)} values; an edge has none (pattern) or a real or integer weight", 1)
    if symmetry not in ("general", "symmetric", "skew-symmetric"):
        raise defect(file, f"found {shown(symmetry)} symmetry; use general, symmetric or skew-symmetric", 1)
    return field == "pattern", symmetry != "general"


def _size_line(file: str, path: Path) -> tuple[int, tuple[int, int, int]]:
    """The number of the line that says rows, columns and entries, and what it says."""
    lines = next(line_pieces(path, " "), b"").split(b"\n")
    number = next((i for i, line in enumerate(lines, 1) if line), 0)
    if not number:
        raise defect(file, "found no size line; after the comments, write: rows columns entries")
    words = lines[number - 1].decode().split()
    if len(words) != 3 or not all(word.isascii() and word.isdigit() and len(word) < 19 for word in words):
        found = f"found {shown(lines[number - 1].decode())}"
        raise defect(file, f"{found}; the line after the comments must be three whole numbers: rows columns entries", number)
    rows, columns, entries = map(int, words)
    return number, (rows, columns, entries)
