"""A CSV or TSV file as a `Table` of text whose every row is known to be whole, or one line that says what is wrong.

The checks run on the bytes, before pandas sees them: pandas pads short rows, renames repeated columns and takes an
extra field for an index without a word, and by then the line number of the defect is lost.
"""

from __future__ import annotations

import csv
import difflib
import gzip
import io
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from spam_gnn.errors import BadInput

HEADER = -1
_NEWLINE, _QUOTE, _SPACE = 10, 34, 32
_INK = bytes(set(range(0x21, 0x7F)) - {_QUOTE} | {_NEWLINE})  # a file of these alone has no blanks around a cell
_EXPORT = "save the sheet as 'CSV UTF-8' and give that file"
# First bytes of the files people hand over in place of a CSV: what it looks like, what to do.
_MAGIC: tuple[tuple[bytes, str, str], ...] = (
    (b"PAR1", "a Parquet file", "write it as CSV first (pandas: read_parquet, then to_csv(index=False))"),
    (b"ARROW1", "an Arrow or Feather file", "write it as CSV first (pandas: read_feather, then to_csv(index=False))"),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook (.xls)", _EXPORT),
    (b"\x1f\x8b", "a gzip file", "add .gz to its name, or unpack it"),
    (b"BZh", "a bzip2 file", "unpack it first"),
    (b"\xfd7zXZ", "an xz file", "unpack it first"),
    (b"\x28\xb5\x2f\xfd", "a zstd file", "unpack it first"),
    (b"\x89HDF", "an HDF5 file", "write it as CSV first"),
    (b"SQLite format 3", "an SQLite database", "export the table as CSV first"),
    (b"%PDF", "a PDF document", "give the table itself, as CSV"),
    (b"\xff\xfe", "UTF-16 text", "save it as UTF-8"),
    (b"\xfe\xff", "UTF-16 text", "save it as UTF-8"),
    (b"<!DOCTYPE", "a web page", "download the CSV file itself"),
    (b"<html", "a web page", "download the CSV file itself"),
)

_CONVENTIONAL = {
    "id": ("id", "node", "node_id"),
    "label": ("label", "class", "y", "target"),
    "source": ("source", "src", "from"),
    "target": ("target", "dst", "to"),
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
class Table:
    """A delimited file whose rows all have as many fields as the header.

    Args:
        file: its name as the user gave it.
        columns: the names in the header, distinct and not empty.
        lines: (1 + rows,), the line of the file (from 1) that the header and each row begin on.
        body: what follows the header, UTF-8, lines ending in a line feed.
        delimiter: one of comma, semicolon, tab.
    """

    file: str
    columns: tuple[str, ...]
    lines: np.ndarray
    body: bytes
    delimiter: str

    @property
    def num_rows(self) -> int:
        return len(self.lines) - 1

    def defect(self, found: str, column: str | None = None, row: int = HEADER) -> BadInput:
        """An error at a row (from 0) of this table, or at its header."""
        return defect(self.file, found, int(self.lines[row + 1]), column)

    def cells(self, columns: Sequence[str]) -> list[np.ndarray]:
        """Columns as text exactly as written, apart from blanks around a cell; each an object array of (rows,)."""
        frame = self.inferred(columns, as_text=True)
        if self.body.translate(None, _INK + self.delimiter.encode()):  # stripping is slow, and seldom of use
            return [frame[name].str.strip().to_numpy(dtype=object) for name in columns]
        return [frame[name].to_numpy(dtype=object) for name in columns]

    def inferred(self, columns: Sequence[str], *, as_text: bool = False) -> pd.DataFrame:
        """Columns in the type pandas finds for them; a column with one cell that is no number stays text."""
        if self.num_rows == 0 or not columns:
            return pd.DataFrame({name: pd.Series(dtype=str) for name in columns}, index=range(self.num_rows))
        places = [self.columns.index(name) for name in columns]
        frame = pd.read_csv(
            io.BytesIO(self.body), sep=self.delimiter, header=None, names=list(range(len(self.columns))),
            usecols=places, dtype=str if as_text else None, keep_default_na=False, na_filter=False, index_col=False,
            encoding="utf-8", low_memory=False,  # low memory would guess the type of each chunk on its own
        )  # fmt: skip
        return frame.rename(columns=dict(zip(places, columns, strict=True)))

    def find(self, wanted: str | None, role: str) -> str | None:
        """The column of a role: the one the user named, else one with a conventional name, else None."""
        if wanted is not None:
            return wanted if wanted in self.columns else None
        folded = [name.casefold() for name in self.columns]
        return next((self.columns[folded.index(name)] for name in _CONVENTIONAL[role] if name in folded), None)

    def named(self, wanted: str | None, role: str) -> str | None:
        """As `find`, but a column that the user named must be there."""
        found = self.find(wanted, role)
        if wanted is not None and found is None:
            hint = suggestion(wanted, self.columns)
            raise self.defect(f"no such column for --{role}; {hint}the columns are {listed(self.columns)}", wanted)
        return found


def open_table(path: Path) -> Table:
    """Read a CSV or TSV file (gzip by extension) and check everything that does not need its columns' meaning."""
    file = str(path)
    data = _checked_text(file, _content(path))
    delimiter = _delimiter(path, data)
    starts, lines, fields = _records(file, data, delimiter)
    after = len(data) if len(starts) == 1 else int(starts[1])
    header = data[int(starts[0]) : after].decode().strip("\n")
    columns = tuple(name.strip() for name in next(csv.reader(io.StringIO(header, newline=""), delimiter=delimiter)))
    table = Table(file, columns, lines, data[after:], delimiter)
    _check_header(table)
    ragged = np.flatnonzero(fields[1:] != len(columns))
    if len(ragged):
        row = int(ragged[0])
        count = int(fields[row + 1])
        raise table.defect(
            f"found {count} field{'s' * (count != 1)} where the header has {len(columns)} ({len(ragged)} such rows); "
            f"mend the row, and put quotes around a field that contains {_spelled(delimiter)}",
            row=row,
        )
    return table


def _content(path: Path) -> bytes:
    """The bytes of the file, unpacked; every way in which a file cannot be read has its own sentence."""
    file = str(path)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        if not path.parent.is_dir():
            raise defect(file, f"no such file: there is no folder '{path.parent}'; check the path") from None
        near = difflib.get_close_matches(path.name, sorted(p.name for p in path.parent.iterdir()), n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else f"check the name and the folder '{path.parent}'"
        raise defect(file, f"no such file; {hint}") from None
    except IsADirectoryError:
        raise defect(file, "found a folder; give the CSV file inside it") from None
    except PermissionError:
        raise defect(file, "no permission to read this file; change its permissions or copy it") from None
    except OSError as error:
        raise defect(file, f"the file cannot be read ({error.strerror or error}); check the path and disk") from None
    if path.suffix.lower() != ".gz":
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        what = "is cut short" if isinstance(error, EOFError) else "is damaged or not gzip at all"
        raise defect(file, f"the name ends in .gz but the file {what}; copy or download it again") from None


def _checked_text(file: str, data: bytes) -> bytes:
    """UTF-8 without its mark, lines ending in one line feed."""
    for magic, looks_like, advice in _MAGIC:
        if data.startswith(magic):
            raise defect(file, f"this looks like {looks_like}, not CSV; {advice}")
    if data.startswith(b"PK\x03\x04"):
        workbook = b"xl/workbook" in data or b"opendocument.spreadsheet" in data
        looks_like, advice = ("an Excel or other workbook", _EXPORT) if workbook else ("a zip file", "unzip it first")
        raise defect(file, f"this looks like {looks_like}, not CSV; {advice}")
    text = data.removeprefix(b"\xef\xbb\xbf")
    if not text.strip():
        raise defect(file, "the file is empty; give a header line and one row per line")
    null = data.find(b"\0")
    if null >= 0:
        found = f"found a NUL byte at offset {null}: a binary file or UTF-16"
        raise defect(file, f"{found}; save it as UTF-8 CSV", _line_of(data, null))
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        found = f"byte 0x{data[error.start]:02x} at offset {error.start} is not UTF-8"
        advice = "save the file as UTF-8 (if it is Latin-1: iconv -f LATIN1 -t UTF-8)"
        raise defect(file, f"{found}; {advice}", _line_of(data, error.start)) from None
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return text if text.endswith(b"\n") else text + b"\n"


def _line_of(data: bytes, offset: int) -> int:
    return max(data.count(b"\n", 0, offset), data.count(b"\r", 0, offset)) + 1


def _delimiter(path: Path, data: bytes) -> str:
    """Tab by extension, otherwise whichever of comma, semicolon and tab the header line has most of."""
    suffixes = [s.lower() for s in path.suffixes[-2:] if s.lower() != ".gz"]
    if suffixes and suffixes[-1] in (".tsv", ".tab"):
        return "\t"
    header = re.sub(rb'"[^"]*"', b"", data.lstrip(b" \n").split(b"\n", 1)[0])
    return max(",;\t", key=lambda candidate: header.count(candidate.encode()))  # the first of them on a tie


def _records(file: str, data: bytes, delimiter: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where each row that is not blank starts, on which line, and how many fields it has; the header is row 0."""
    raw = np.frombuffer(data, dtype=np.uint8)
    newline, separator = raw == _NEWLINE, raw == ord(delimiter)
    breaks = newline
    if _QUOTE in data:
        quoted = np.logical_xor.accumulate(raw == _QUOTE)  # a doubled quote leaves the field and enters it again
        _check_quotes(file, data, raw, quoted, delimiter)
        breaks, separator = newline & ~quoted, separator & ~quoted
    starts = np.concatenate([[0], np.flatnonzero(breaks)[:-1] + 1])
    lines = np.searchsorted(np.flatnonzero(newline), starts) + 1
    fields = np.add.reduceat(separator, starts, dtype=np.int32) + 1
    filled = np.add.reduceat((raw != _SPACE) & ~newline, starts, dtype=np.int32) > 0
    return starts[filled], lines[filled], fields[filled]


def _check_quotes(file: str, data: bytes, raw: np.ndarray, quoted: np.ndarray, delimiter: str) -> None:
    """A quote may only stand where a field begins or ends, or doubled inside one; else rows would run together."""
    marks = np.flatnonzero(raw == _QUOTE)
    opening = quoted[marks]
    beside = np.where(opening, np.where(marks > 0, raw[marks - 1], _NEWLINE), raw[np.minimum(marks + 1, len(raw) - 1)])
    stray = marks[~np.isin(beside, [_NEWLINE, _QUOTE, ord(delimiter)])]
    if len(stray):
        advice = 'close the quotes before it, or write the field as "5"" pipe"'
        line = _line_of(data, int(stray[0]))
        raise defect(file, f"found a quote mark where no field begins or ends; {advice}", line)
    if quoted[-1]:
        line = _line_of(data, int(marks[opening][-1]))
        raise defect(file, "found a quote mark that is never closed; close it at the end of its field", line)


def _check_header(table: Table) -> None:
    columns = table.columns
    if len(columns) == 1:
        raise table.defect(
            f"found one column only, {shown(columns[0])}, reading with {_spelled(table.delimiter)} between fields; "
            "separate fields by comma, semicolon or tab (a file named .tsv by tabs)"
        )
    if "" in columns:
        raise table.defect(
            f"column {columns.index('') + 1} has no name; name it in the header or delete it (an index that pandas "
            "wrote: to_csv(index=False))"
        )
    repeated = [name for name in columns if columns.count(name) > 1] if len(set(columns)) < len(columns) else []
    if repeated:
        raise table.defect(f"found {columns.count(repeated[0])} columns of this name; rename all but one", repeated[0])
    if not np.isnan(numbers(np.array(columns, dtype=object))).any():
        raise table.defect(f"the first line ({listed(columns, 4)}) looks like data; put a line of names above it")


def _spelled(delimiter: str) -> str:
    return {",": "a comma", ";": "a semicolon", "\t": "a tab"}[delimiter]
