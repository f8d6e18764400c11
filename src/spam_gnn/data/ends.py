"""From the ids in an edge table to positions in the node table."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pandas as pd

from spam_gnn.data.readers.table import Table, shown

_TENS = np.array([10**power for power in range(1, 19)], dtype=np.uint64)  # the least numbers of 2, 3, ... 19 digits


class NodePlaces:
    """Where each id stands in the node table. Ids are text: '7' and '007' are two nodes."""

    def __init__(self, ids: np.ndarray, file: str) -> None:
        self._ids, self._file = ids, file

    @cached_property
    def texts(self) -> pd.Index:
        return pd.Index(self._ids, dtype=object)

    @cached_property
    def _whole(self) -> np.ndarray | None:
        """The ids as whole numbers, where all are in their plain spelling; None otherwise."""
        values = np.asarray(pd.to_numeric(self._ids, errors="coerce"))
        if values.dtype.kind != "i":
            return None
        # 007, +7 and -0 are longer than the plain spelling, and nothing else is read as the same number
        lengths = np.fromiter(map(len, self._ids), dtype=np.int64, count=len(self._ids))
        return values if (lengths == _plain_lengths(values)).all() else None

    @cached_property
    def _table(self) -> np.ndarray | None:
        """position by id, where ids lie close together from 0 on; a look-up is then one read of memory."""
        whole = self._whole
        if whole is None or whole.min() < 0 or whole.max() >= 4 * len(whole) + 1024:
            return None
        table = np.full(int(whole.max()) + 1, -1, dtype=np.int64)
        table[whole] = np.arange(len(whole))
        return table

    @cached_property
    def _index(self) -> pd.Index:
        return pd.Index(self._whole)

    def find(self, keys: np.ndarray) -> np.ndarray:
        """(rows,) int64 positions, -1 where there is no such node; keys are whole numbers or texts."""
        if keys.dtype == object:
            return self.texts.get_indexer(pd.Index(keys, dtype=object)).astype(np.int64)
        if self._whole is None:
            return self.find(keys.astype(str).astype(object))
        if self._table is None:
            return self._index.get_indexer(pd.Index(keys)).astype(np.int64)
        inside = (keys >= 0) & (keys < len(self._table))
        if inside.all():
            return self._table[keys]
        return np.where(inside, self._table[np.where(inside, keys, 0)], -1)

    def positions(self, table: Table, column: str, keys: np.ndarray, first_row: int) -> np.ndarray:
        """As `find`, but a key that is no id is an error at its row."""
        places = self.find(keys)
        unknown = np.flatnonzero(places < 0)
        if len(unknown) == 0:
            return places
        row = int(unknown[0])
        cell = str(keys[row])
        if cell == "":
            raise table.defect("the end point is empty; give the id of a node or delete the row", column, first_row + row)
        # Ids are text: a spreadsheet that turned '007' into '7' or a data frame that wrote '7.0' is the usual reason.
        form = _plain_form(cell)
        twin = next((name for name in self._ids if _plain_form(name) == form), None)
        advice = "add the node there or delete the edge" if twin is None else f"did you mean {shown(twin)}? ids are text"
        count = "" if len(unknown) == 1 else f" ({len(unknown)} such end points)"
        found = f"found {shown(cell)}, which is no id in {self._file}{count}"
        raise table.defect(f"{found}; {advice}", column, first_row + row)


def _plain_lengths(values: np.ndarray) -> np.ndarray:
    """How many characters whole numbers have when spelt plainly."""
    negative = values < 0
    size = np.where(negative, -values.astype(np.uint64), values.astype(np.uint64))
    return 1 + np.searchsorted(_TENS, size, side="right") + negative


def _plain_form(name: str) -> str:
    return name.casefold().removesuffix(".0").lstrip("0")
