"""CSV and TSV: rows known to be whole, or one line that says what is wrong.

The checks run on the bytes, before pandas sees them: pandas pads short rows, renames repeated columns and takes an
extra field for an index without a word, and by then the line number of the defect is lost.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from spam_gnn.data.readers.ahead import in_order
from spam_gnn.data.readers.content import text_pieces
from spam_gnn.data.readers.numbers_of_bytes import plain_numbers
from spam_gnn.data.readers.records import first_records, records_of, whole_rows
from spam_gnn.data.readers.rows_of_bytes import NEWLINE, count_of, has_blanks
from spam_gnn.data.readers.table import HEADER, Block, Table, defect, listed, numbers, shown

Pieces = Callable[[], Iterator[bytes]]
_ZERO, _POINT = 48, 46


class DelimitedTable(Table):
    """Text in which a delimiter stands between fields and a line feed between rows.

    Args:
        file: its name as the user gave it.
        pieces: opens the text anew, as `text_pieces` does.
        delimiter: one character.
        names: the columns, or None where the first row names them.
    """

    def __init__(self, file: str, pieces: Pieces, delimiter: str, names: Sequence[str] | None = None) -> None:
        self.file, self._pieces, self._delimiter, self._headed = file, pieces, delimiter, names is None
        first = first_records(file, pieces(), delimiter)
        if first is None and names is None:
            raise defect(file, "the file is empty; give a header line and one row per line")
        self._header_line = int(first.lines[0]) if first is not None else 1
        self._lines: list[np.ndarray] = []
        if names is not None:
            self.columns = tuple(names)
            return
        assert first is not None
        header = first.data[int(first.starts[0]) : first.after_first].decode().strip("\n")
        self.columns = tuple(name.strip() for name in _fields(header, delimiter))

    def place(self, row: int) -> int | None:
        if row == HEADER:
            return self._header_line
        for lines in self._lines:
            if row < len(lines):
                return int(lines[row])
            row -= len(lines)
        raise IndexError(row)

    def blocks(self, text: Sequence[str] = (), number: Sequence[str] = (), key: Sequence[str] = ()) -> Iterator[Block]:
        self._lines = []
        jobs = (partial(self._read, data, line, text, number, key) for data, line in whole_rows(self._pieces()))
        for lines, block in in_order(jobs):
            if block.rows:
                self._lines.append(lines)
                yield block

    def _read(
        self, data: bytes, line: int, text: Sequence[str], number: Sequence[str], key: Sequence[str]
    ) -> tuple[np.ndarray, Block]:
        """The line of each row in `data`, which begins on `line`, and what the rows hold; the header is none of them."""
        records = records_of(self.file, data, self._delimiter, line)
        body, starts, lines, fields = data, records.starts, records.lines, records.fields
        if self._headed and len(lines) and lines[0] == self._header_line:
            body, starts = body[records.after_first :], starts[1:] - records.after_first
            lines, fields = lines[1:], fields[1:]
        self._check_whole(fields, lines)
        return lines, self._parse(body, starts, text, number, key)

    def _check_whole(self, fields: np.ndarray, lines: np.ndarray) -> None:
        ragged = np.flatnonzero(fields != len(self.columns))
        if len(ragged):
            count, width = int(fields[ragged[0]]), len(self.columns)
            whose = "the header has" if self._headed else "there should be"
            raise defect(
                self.file,
                f"found {count} field{'s' * (count != 1)} where {whose} {width} ({len(ragged)} such rows); "
                f"mend the row, and put quotes around a field that contains {_spelled(self._delimiter)}",
                int(lines[ragged[0]]),
            )

    def _parse(self, body: bytes, starts: np.ndarray, text: Sequence[str], number: Sequence[str], key: Sequence[str]) -> Block:
        rows = len(starts)
        if not rows or not (text or number or key):
            return Block(rows)
        plain, rest, columns = self._plain(body, starts, number)
        doubtful = [name for name in number if name not in plain]
        found = plain | (_numbers(self._frame(body, self.columns, doubtful, ()), doubtful) if doubtful else {})
        if not (text or key):
            return Block(rows, number=found)
        guessed = key if _plainly_spelt(rest) else ()
        frame = self._frame(rest, columns, [*text, *key], [name for name in (*text, *key) if name not in guessed])
        keys = {name: frame[name] for name in key}
        # 7.0, True, 10 ** 20: what was guessed to be neither a whole number nor text has lost its spelling.
        odd = [name for name in guessed if keys[name].dtype == object or keys[name].dtype.kind in "ufb"]
        if odd:
            again = self._frame(rest, columns, odd, odd)
            keys |= {name: again[name] for name in odd}
        # Stripping is slow and seldom of use: without blanks, and without line breaks inside quotes, there is nothing to strip.
        padded = has_blanks(rest, self._delimiter) or count_of(rest, NEWLINE) != rows
        assert len(frame) == rows, "pandas found other rows than the check of the bytes"
        return Block(
            rows, text={name: _stripped(frame[name], padded) for name in text}, number=found,
            key={name: k.to_numpy(np.int64) if k.dtype.kind == "i" else _stripped(k, padded) for name, k in keys.items()},
        )  # fmt: skip

    def _plain(
        self, body: bytes, starts: np.ndarray, number: Sequence[str]
    ) -> tuple[dict[str, np.ndarray], bytes, Sequence[str]]:
        """The columns of `number` whose cells are all plainly spelt; the text of the other columns, and their names."""
        if not number:
            return {}, body, self.columns
        places = [self.columns.index(name) for name in number]
        read = plain_numbers(body, starts, len(self.columns), places, self._delimiter)
        taken = set(number)
        plain = {name: read.values[:, k] for k, name in enumerate(number) if read.plain[k]}
        return plain, read.rest, [name for name in self.columns if name not in taken]

    def _frame(self, body: bytes, columns: Sequence[str], wanted: Sequence[str], as_text: Sequence[str]) -> pd.DataFrame:
        """Those wanted of the columns of a text, in the type pandas finds for them or as the text they are."""
        places = {columns.index(name): name for name in wanted}
        kinds: Any = {place: object for place, name in places.items() if name in as_text}
        frame = pd.read_csv(
            io.BytesIO(body), sep=self._delimiter, header=None, names=list(range(len(columns))),
            usecols=list(places), dtype=kinds, keep_default_na=False, na_filter=False, index_col=False,
            skip_blank_lines=len(columns) == len(self.columns),  # what is left of a row may well be one empty cell
            encoding="utf-8", low_memory=False,  # low memory would guess the type of each chunk on its own
        )  # fmt: skip
        return frame.rename(columns=places)


def open_delimited(path: Path, *, header: bool = True, tabs: bool = False) -> DelimitedTable:
    """A CSV or TSV file (gzip by extension) whose header has been checked; without one, columns are called 1, 2, ..."""
    file = str(path)

    def pieces() -> Iterator[bytes]:
        return text_pieces(path)

    first = _first_line(pieces())
    if first is None:
        raise defect(file, "the file is empty; give a header line and one row per line")
    delimiter = "\t" if tabs else most_frequent(first)
    if header:
        table = DelimitedTable(file, pieces, delimiter)
        _check_header(table, delimiter)
        return table
    record = first_records(file, pieces(), delimiter)
    assert record is not None, "the first line that is not blank is a row"
    names = [str(place + 1) for place in range(int(record.fields[0]))]
    table = DelimitedTable(file, pieces, delimiter, names)
    if len(names) == 1:
        raise _one_column(table, first.decode(errors="replace"), delimiter)
    return table


def _first_line(pieces: Iterator[bytes]) -> bytes | None:
    """The first line that is not blank, as far as it lies in one piece."""
    for piece in pieces:
        text = piece.lstrip(b" \n")
        if text:
            return text.split(b"\n", 1)[0]
    return None


def most_frequent(line: bytes) -> str:
    """Whichever of comma, semicolon and tab a line has most of, the first of them on a tie."""
    bare = re.sub(rb'"[^"]*"', b"", line)
    return max(",;\t", key=lambda candidate: bare.count(candidate.encode()))


def _plainly_spelt(body: bytes) -> bool:
    """Whether a whole number read from this text has no other spelling there: no 007, no +7, no -0."""
    if b"+" in body or b"-0" in body:
        return False
    raw = np.frombuffer(b"\n" + body, dtype=np.uint8)
    digit = (raw - _ZERO) < 10  # unsigned, so that what is below zero wraps around to a large number
    leading = (raw[1:-1] == _ZERO) & digit[2:] & ~digit[:-2] & (raw[:-2] != _POINT)
    return not leading.any()


def _numbers(frame: pd.DataFrame, columns: Sequence[str]) -> dict[str, np.ndarray]:
    """The columns that hold finite numbers only, as views of one float32 array."""
    kinds = {name: kind.kind for name, kind in zip(frame.columns, frame.dtypes, strict=True)}
    numeric = [name for name in columns if kinds[name] in "iuf"]
    with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite, and the column is left out
        values = frame[numeric].to_numpy(np.float32)
    finite = np.asarray(np.isfinite(values).all(axis=0))
    return {name: values[:, place] for place, name in enumerate(numeric) if finite[place]}


def _stripped(cells: Any, padded: bool) -> np.ndarray:
    values = cells.to_numpy(dtype=object)
    if padded:
        return np.array([value.strip() for value in values], dtype=object)
    return values


def _fields(line: str, delimiter: str) -> list[str]:
    """The names in the header."""
    try:
        return next(csv.reader(io.StringIO(line, newline=""), delimiter=delimiter), [""])
    except csv.Error:  # a name longer than the csv module allows
        return [part.strip('"') for part in line.split(delimiter)]


def _check_header(table: Table, delimiter: str) -> None:
    columns = table.columns
    if len(columns) == 1:
        raise _one_column(table, columns[0], delimiter)
    if "" in columns:
        raise table.defect(
            f"column {columns.index('') + 1} has no name; name it in the header or delete it (an index that pandas "
            "wrote: to_csv(index=False))"
        )
    repeated = [name for name in columns if columns.count(name) > 1] if len(set(columns)) < len(columns) else []
    if repeated:
        raise table.defect(f"found {columns.count(repeated[0])} columns of this name; rename all but one", repeated[0])
    if not np.isnan(numbers(np.array(columns, dtype=object))).any():
        found = f"the first line ({listed(columns, 4)}) looks like data"
        raise table.defect(f"{found}; put a line of names above it, or add --no-header")


def _one_column(table: Table, first: str, delimiter: str) -> Exception:
    return table.defect(
        f"found one column only, {shown(first)}, reading with {_spelled(delimiter)} between fields; "
        "separate fields by comma, semicolon or tab (a file named .tsv by tabs)"
    )


def _spelled(delimiter: str) -> str:
    return {",": "a comma", ";": "a semicolon", "\t": "a tab", " ": "a blank"}[delimiter]
