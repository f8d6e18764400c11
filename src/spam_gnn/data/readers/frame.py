"""`FrameTable`: columns that are in memory already, as values of Python; what the XML formats are turned into."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from spam_gnn.data.readers.parquet import whole_float
from spam_gnn.data.readers.table import HEADER, Block, Table, finite_float32


class FrameTable(Table):
    """Cells are numbers, truth values, texts or None.

    Args:
        file: the file they came from.
        columns: name to cells, all equally many.
        lines: the line of the file that each row stands on.
    """

    def __init__(self, file: str, columns: Mapping[str, Sequence[Any]], lines: Sequence[int]) -> None:
        self.file, self.columns = file, tuple(columns)
        self._cells, self._lines = columns, lines

    def place(self, row: int) -> int | None:
        return None if row == HEADER else self._lines[row]

    def blocks(
        self, text: Sequence[str] = (), number: Sequence[str] = (), key: Sequence[str] = ()
    ) -> Iterator[Block]:
        values = {name: _number(self._cells[name]) for name in number}
        yield Block(
            len(self._lines), text={name: _text(self._cells[name]) for name in text},
            number={name: value for name, value in values.items() if value is not None},
            key={name: _text(self._cells[name]) for name in key},
        )  # fmt: skip


def _number(cells: Sequence[Any]) -> np.ndarray | None:
    if not all(type(cell) in (int, float) for cell in cells):  # True is no number here, as it is none in a CSV file
        return None
    try:
        return finite_float32(np.array(cells, dtype=np.float64))
    except OverflowError:  # a whole number of hundreds of digits
        return None


def _text(cells: Sequence[Any]) -> np.ndarray:
    texts = ["" if c is None else whole_float(c) if isinstance(c, float) else str(c).strip() for c in cells]
    return np.array(texts, dtype=object)
