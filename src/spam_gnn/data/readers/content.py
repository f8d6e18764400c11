"""The bytes of a file: opened, unpacked, known to be text. Every way in which that can fail has its own sentence."""

from __future__ import annotations

import contextlib
import difflib
import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from spam_gnn.data.readers.table import defect

PIECE = 1 << 23
_FIRST = 1 << 20  # enough for the header, which is looked at before everything else
_MARK = b"\xef\xbb\xbf"
_EXPORT = "save the sheet as 'CSV UTF-8' and give that file"
# First bytes of the files people hand over in place of a text: what it looks like, what to do.
_MAGIC: tuple[tuple[bytes, str, str], ...] = (
    (b"PAR1", "a Parquet file", "name it .parquet, or add --format parquet (--edge-format parquet)"),
    (b"ARROW1", "an Arrow or Feather file", "write it as Parquet or CSV first (pandas: read_feather, then to_parquet)"),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook (.xls)", _EXPORT),
    (b"\x1f\x8b", "a gzip file", "add .gz to its name, or unpack it"),
    (b"BZh", "a bzip2 file", "unpack it first"),
    (b"\xfd7zXZ", "an xz file", "unpack it first"),
    (b"\x28\xb5\x2f\xfd", "a zstd file", "unpack it first"),
    (b"\x89HDF", "an HDF5 file", "write it as CSV first"),
    (b"SQLite format 3", "an SQLite database", "export the table as CSV first"),
    (b"%PDF", "a PDF document", "give the table itself, as CSV"),
    (b"\xff\xfe", "UTF-16", "save it as UTF-8"),
    (b"\xfe\xff", "UTF-16", "save it as UTF-8"),
    (b"<!DOCTYPE", "a web page", "download the CSV file itself"),
    (b"<html", "a web page", "download the CSV file itself"),
)


@contextlib.contextmanager
def opened(path: Path, *, unpack: bool = True) -> Iterator[IO[bytes]]:
    """The file for reading, unpacked where its name ends in .gz; any failure to read it is one line."""
    file = str(path)
    packed = unpack and path.suffix.lower() == ".gz"
    try:
        with path.open("rb") as plain, gzip.open(plain) if packed else plain as handle:
            yield handle  # pyright: ignore[reportReturnType]  (a GzipFile reads like any other)
    except FileNotFoundError:
        raise missing(path) from None
    except IsADirectoryError:
        raise defect(file, "found a folder; give the file inside it") from None
    except PermissionError:
        raise defect(file, "no permission to read this file; change its permissions or copy it") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        what = "is cut short" if isinstance(error, EOFError) else "is damaged or not gzip at all"
        raise defect(file, f"the name ends in .gz but the file {what}; copy or download it again") from None
    except OSError as error:
        raise defect(file, f"the file cannot be read ({error.strerror or error}); check the path and disk") from None


def missing(path: Path) -> Exception:
    """The error for a path where nothing is, with the nearest name in its folder."""
    if not path.parent.is_dir():
        return defect(str(path), f"no such file: there is no folder '{path.parent}'; check the path")
    near = difflib.get_close_matches(path.name, sorted(p.name for p in path.parent.iterdir()), n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else f"check the name and the folder '{path.parent}'"
    return defect(str(path), f"no such file; {hint}")


def whole(path: Path) -> bytes:
    """All bytes at once, for formats that cannot be read in pieces."""
    with opened(path) as handle:
        return handle.read()


def text_pieces(path: Path, size: int = PIECE) -> Iterator[bytes]:
    """UTF-8 without its mark, lines ending in one line feed, in pieces cut anywhere but inside a character."""
    file, offset, held = str(path), 0, b""
    with opened(path) as handle:
        while True:
            read = handle.read(size if offset else min(size, _FIRST))
            if offset == 0:
                _check_magic(file, read)
            data = held + read
            start = offset - len(held)
            # A character or a CR LF may be cut in two at the end of what was read: its first half waits.
            keep = _unfinished(data) if read else 0
            held = data[len(data) - keep :]
            data = data[: len(data) - keep]
            _check_text(path, data, start)
            if start == 0:
                data = data.removeprefix(_MARK)
            if b"\r" in data:
                data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            if data:
                yield data
            offset += len(read)
            if not read:
                return


def _unfinished(data: bytes) -> int:
    """How many bytes at the end may belong together with the next ones."""
    if data.endswith(b"\r"):
        return 1
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte < 0x80:
            return 0
        if byte >= 0xC0:  # the first byte of a character of two to four
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return back if back < needed else 0
    return 0


def _check_magic(file: str, data: bytes) -> None:
    for magic, looks_like, advice in _MAGIC:
        if data.startswith(magic):
            raise defect(file, f"this looks like {looks_like}, not text; {advice}")
    if data.startswith(b"PK\x03\x04"):
        workbook = b"xl/workbook" in data or b"opendocument.spreadsheet" in data
        looks_like, advice = ("an Excel or other workbook", _EXPORT) if workbook else ("a zip file", "unzip it first")
        raise defect(file, f"this looks like {looks_like}, not text; {advice}")


def _check_text(path: Path, data: bytes, start: int) -> None:
    null = data.find(b"\0")
    if null >= 0:
        found = f"found a NUL byte at offset {start + null}: a binary file or UTF-16"
        raise defect(str(path), f"{found}; save it as UTF-8 text", _line_at(path, start + null))
    if data.isascii():
        return
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        found = f"byte 0x{data[error.start]:02x} at offset {start + error.start} is not UTF-8"
        advice = "save the file as UTF-8 (if it is Latin-1: iconv -f LATIN1 -t UTF-8)"
        raise defect(str(path), f"{found}; {advice}", _line_at(path, start + error.start)) from None


def _line_at(path: Path, offset: int) -> int:
    """The line of an offset, counted only when there is something to say about it."""
    feeds = returns = 0
    with opened(path) as handle:
        while offset > 0 and (read := handle.read(min(offset, PIECE))):
            feeds, returns, offset = feeds + read.count(b"\n"), returns + read.count(b"\r"), offset - len(read)
    return max(feeds, returns) + 1
