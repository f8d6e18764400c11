"""Where the rows of a delimited text end, how many fields each has, where its quotes go wrong.

Loops over single bytes that branch would be slower than the parser itself; these count or compare long runs, which the
processor does many at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spam_gnn.kernels.compiled import compiled

NEWLINE, QUOTE = 10, 34


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows that end within a text, line feeds between quotes not counted as ends.

    Args:
        ends: (rows,) the place of the line feed after each.
        fields: (rows,) one more than the delimiters in each, those between quotes left out.
        feeds: (rows,) line feeds up to and with each end.
        stray: the first quote that stands neither where a field begins or ends nor doubled inside one; -1 if none does.
        open: the last quote, where it is never closed; -1 otherwise.
    """

    ends: NDArray[np.int64]
    fields: NDArray[np.int64]
    feeds: NDArray[np.int64]
    stray: int
    open: int


def rows_of(data: bytes, delimiter: str) -> Rows:
    """Odd quotes open and even ones close; a doubled one closes and opens again."""
    raw, nowhere = np.frombuffer(data, dtype=np.uint8), np.empty(0, dtype=np.int64)
    breaks = np.flatnonzero(raw == NEWLINE)
    marks = np.flatnonzero(raw == QUOTE) if b'"' in data else nowhere
    ends, fields, feeds = (np.empty_like(breaks) for _ in range(3))
    rows = _fill(raw, breaks, marks, ord(delimiter), ends, fields, feeds)
    stray = _first_stray(raw, marks, ord(delimiter))
    return Rows(ends[:rows], fields[:rows], feeds[:rows], stray, int(marks[-1]) if len(marks) % 2 else -1)


def count_of(data: bytes, byte: int) -> int:
    """As `bytes.count`, which is ten times slower."""
    return int(np.count_nonzero(np.frombuffer(data, dtype=np.uint8) == byte))


def has_blanks(data: bytes, delimiter: str) -> bool:
    """Whether anything but visible ASCII, the delimiter and line feeds is in a text."""
    return bool(_has_blanks(np.frombuffer(data, dtype=np.uint8), ord(delimiter)))


@compiled
def _fill(raw: Any, breaks: Any, marks: Any, delimiter: int, ends: Any, fields: Any, feeds: Any) -> int:
    row = start = mark = hidden = 0
    for line in range(breaks.size):
        end = breaks[line]
        while mark < marks.size and marks[mark] < end:
            if mark % 2 == 1:  # what stands between two quotes separates nothing
                hidden += _count(raw, marks[mark - 1], marks[mark], delimiter)
            mark += 1
        if mark % 2 == 0:
            ends[row], feeds[row] = end, line + 1
            fields[row] = 1 + _count(raw, start, end, delimiter) - hidden
            row, start, hidden = row + 1, end + 1, 0
    return row


@compiled
def _count(raw: Any, start: int, end: int, byte: int) -> int:
    total = 0
    for place in range(start, end):
        total += raw[place] == byte
    return total


@compiled
def _first_stray(raw: Any, marks: Any, delimiter: int) -> int:
    for mark in range(marks.size):
        beside = min(marks[mark] + 1, raw.size - 1) if mark % 2 else marks[mark] - 1
        neighbour = raw[beside] if beside >= 0 else NEWLINE
        if neighbour != NEWLINE and neighbour != QUOTE and neighbour != delimiter:
            return marks[mark]
    return -1


@compiled
def _has_blanks(raw: Any, delimiter: int) -> int:
    found = 0
    for place in range(raw.size):
        byte = raw[place]
        found |= ((byte < 0x21) | (byte > 0x7E)) & (byte != NEWLINE) & (byte != delimiter)
    return found
