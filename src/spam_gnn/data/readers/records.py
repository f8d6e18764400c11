"""A delimited text cut between its rows, and where each row begins, on which line, with how many fields."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from spam_gnn.data.readers.rows_of_bytes import NEWLINE, QUOTE, Rows, count_of, rows_of
from spam_gnn.data.readers.table import defect

_BLANKS = (32, 9)


@dataclass(frozen=True, eq=False)
class Records:
    """Some whole rows of a text: where each that is not blank starts, on which line, how many fields it has."""

    data: bytes
    starts: np.ndarray
    lines: np.ndarray
    fields: np.ndarray

    @property
    def after_first(self) -> int:
        return len(self.data) if len(self.starts) == 1 else int(self.starts[1])


def first_records(file: str, pieces: Iterator[bytes], delimiter: str) -> Records | None:
    """The first rows of a text that are not all blank; None if there are none."""
    blocks = (records_of(file, data, delimiter, line) for data, line in whole_rows(pieces))
    return next((records for records in blocks if len(records.starts)), None)


def whole_rows(pieces: Iterator[bytes]) -> Iterator[tuple[bytes, int]]:
    """The text cut between rows, and the line each part begins on. A row longer than a piece waits until as much again has
    been read. Little is done here, so that several threads can each look at a part in earnest."""
    parts: list[bytes] = []
    size, least, line = 0, 0, 1
    for piece in pieces:
        parts.append(piece)
        size += len(piece)
        if size < least:
            continue
        data = b"".join(parts)
        used = _end_of_rows(data)
        if used:
            rows = data[:used]
            yield rows, line
            line += count_of(rows, NEWLINE)
        parts, size = [data[used:]], len(data) - used
        least = 0 if used else 2 * size
    data = b"".join(parts)
    if data:
        yield data if data.endswith(b"\n") else data + b"\n", line


def _end_of_rows(data: bytes) -> int:
    """How many bytes are whole rows: up to the last line feed that no open quote comes before."""
    end = data.rfind(b"\n")
    quotes = count_of(data[: end + 1], QUOTE)
    while quotes % 2:
        before = data.rfind(b"\n", 0, end)
        quotes -= data.count(b'"', before + 1, end)
        end = before
    return end + 1


def records_of(file: str, data: bytes, delimiter: str, line: int) -> Records:
    """The rows of a text that was cut between rows and begins on `line`."""
    rows = rows_of(data, delimiter)
    ends, fields = rows.ends, rows.fields
    _check_quotes(file, data, rows, line)
    starts = np.append(0, ends + 1)[:-1]
    lines = line + np.append(0, rows.feeds)[:-1]
    raw = np.frombuffer(data, dtype=np.uint8)
    filled = ends > starts
    for row in np.flatnonzero(filled & (fields == 1) & (np.isin(raw[starts], _BLANKS) if len(starts) else False)):
        filled[row] = data[starts[row] : ends[row]].strip(b" \t") != b""  # as pandas sees it
    return Records(data, starts[filled], lines[filled], fields[filled])


def _check_quotes(file: str, data: bytes, rows: Rows, line: int) -> None:
    """A quote may only stand where a field begins or ends, or doubled inside one; else rows would run together."""
    if rows.stray >= 0:
        advice = 'close the quotes before it, or write the field as "5"" pipe"'
        at = line + data.count(b"\n", 0, rows.stray)
        raise defect(file, f"found a quote mark where no field begins or ends; {advice}", at)
    if rows.open >= 0:
        at = line + data.count(b"\n", 0, rows.open)
        raise defect(file, "found a quote mark that is never closed; close it at the end of its field", at)
