"""`Table`: what every table format gives, whatever the file looks like, and the wording of its errors.

A table is read in blocks of rows, never as a whole, so that a wide file takes the memory of its numbers and no more. Each
column is asked for in one of three forms: its text, its number, or as a key (a whole number where every cell is one in its
plain spelling, text otherwise), because turning twenty million ids into Python texts is what makes readers slow.
"""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from spam_gnn.errors import BadInput

HEADER = -1
_CONVENTIONAL = {
    "id": ("id", "node", "node_id"),
    "label": ("label", "class", "y", "target"),
    "source": ("source", "src", "from"),
    "target": ("target", "dst", "to"),
    "weight": ("weight", "edge_weight", "w"),
}


def defect(file: str, found: str, row: int | None = None, column: str | None = None) -> BadInput:
    """The error `file:row:column: found; what to do`, on one line whatever names and cells contain."""
    where = ":".join([file, *([] if row is None else [str(row)]), *([] if column is None else [column])])
    # Line breaks would split the message, and escape sequences out of a file would reach the terminal.
    return BadInput("".join(c if c.isprintable() else " " for c in f"{where}: {found}"))


def shown(value: str) -> str:
    """A cell as a message quotes it: short enough to leave the message readable."""
    return f"'{value}'" if len(value) <= 40 else f"'{value[:37]}...'"


def listed(names: Sequence[str], most: int = 20) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def suggestion(value: str, allowed: Sequence[str]) -> str:
    """`did you mean 'x'? ` where something is near, otherwise nothing."""
    folded = {name.casefold(): name for name in allowed}
    near = difflib.get_close_matches(value.casefold(), folded, n=1)
    return f"did you mean '{folded[near[0]]}'? " if near else ""


def numbers(cells: np.ndarray | pd.Index) -> np.ndarray:
    """(n,) float64, NaN where the text is no number."""
    return np.asarray(pd.to_numeric(cells, errors="coerce"), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Block:
    """Some rows of a table, in the forms asked for.

    Args:
        rows: how many.
        text: by column, (rows,) object array of texts, blanks around them taken away; "" where there is none.
        number: by column, (rows,) float32, all finite; a column that is not plainly that in this block is left out.
        key: by column, (rows,) int64, or an object array of texts.
    """

    rows: int
    text: dict[str, np.ndarray] = field(default_factory=dict)
    number: dict[str, np.ndarray] = field(default_factory=dict)
    key: dict[str, np.ndarray] = field(default_factory=dict)


class Table(ABC):
    """Named columns of equally many cells in one file."""

    file: str
    columns: tuple[str, ...]

    @abstractmethod
    def blocks(
        self, text: Sequence[str] = (), number: Sequence[str] = (), key: Sequence[str] = ()
    ) -> Iterator[Block]:
        """The rows in order; may be called more than once. Defects of the file itself are raised on the way."""

    @abstractmethod
    def place(self, row: int) -> int | None:
        """What a message calls a row (from 0; `HEADER` for the names): a line of the file, or a row counted from 1."""

    def defect(self, found: str, column: str | None = None, row: int = HEADER) -> BadInput:
        """An error at a row (from 0) of this table, or at its header."""
        return defect(self.file, found, self.place(row), column)

    def texts(self, columns: Sequence[str]) -> list[np.ndarray]:
        """Whole columns as text, each an object array of (rows,)."""
        parts = [block.text for block in self.blocks(text=columns)]
        empty = np.empty(0, dtype=object)
        return [np.concatenate([empty, *(part[name] for part in parts)]) for name in columns]

    def find(self, wanted: str | None, role: str) -> str | None:
        """The column of a role: the one the user named, else one with a conventional name, else None."""
        if wanted is not None:
            return wanted if wanted in self.columns else None
        folded = [name.casefold() for name in self.columns]
        return next((self.columns[folded.index(name)] for name in _CONVENTIONAL[role] if name in folded), None)

    def named(self, wanted: str | None, role: str) -> str | None:
        """As `find`, but a column that the user named must be there."""
        if wanted is not None and wanted not in self.columns:
            hint = suggestion(wanted, self.columns)
            raise self.defect(f"no such column for --{role}; {hint}the columns are {listed(self.columns)}", wanted)
        return self.find(wanted, role)


def is_finite_number(cell: str) -> bool:
    """Whether a text is a number that float32 can hold."""
    try:
        return abs(float(cell)) <= float(np.finfo(np.float32).max)  # false for NaN too
    except ValueError:
        return False


def finite_float32(values: np.ndarray) -> np.ndarray | None:
    """Numbers as float32, or None where one is missing, infinite or too large for it."""
    with np.errstate(over="ignore"):
        narrow = values.astype(np.float32)
    return narrow if np.isfinite(narrow).all() else None
