"""Plain edge lists: two ids per line, perhaps a weight, between blanks, tabs, commas or semicolons; # and % start comments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from spam_gnn.data.readers.content import text_pieces
from spam_gnn.data.readers.delimited import DelimitedTable
from spam_gnn.data.readers.table import defect, shown

_COMMENT = re.compile(rb"^[ \t]*[#%][^\n]*", re.MULTILINE)
_BLANKS, _LINE_ENDS = re.compile(rb"[ \t]+"), re.compile(rb"^ | $", re.MULTILINE)
_SOURCES, _TARGETS = ("source", "src", "from"), ("target", "dst", "to")


def open_edge_list(path: Path) -> DelimitedTable:
    """The edge list as a table of source, target and, where there is a third field, weight."""
    first = next((line for piece in line_pieces(path, " ") for line in piece.split(b"\n") if line), b"")
    delimiter = next((d for d in ",;" if d.encode() in first), " ")

    def pieces() -> Iterator[bytes]:
        return line_pieces(path, delimiter)

    fields = [field.strip(' "') for field in first.decode().split(delimiter)] if first else ["", ""]
    if len(fields) < 2:
        found = f"found one field only on the first line, {shown(fields[0])}"
        raise defect(str(path), f"{found}; give two ids per line, a blank, tab or comma between them")
    if fields[0].casefold() in _SOURCES and fields[1].casefold() in _TARGETS:
        return DelimitedTable(str(path), pieces, delimiter)
    more = [] if len(fields) == 2 else ["weight"] if len(fields) == 3 else [str(i) for i in range(3, len(fields) + 1)]
    return DelimitedTable(str(path), pieces, delimiter, ["source", "target", *more])


def line_pieces(path: Path, delimiter: str) -> Iterator[bytes]:
    """The text without comments; where blanks are the delimiter, one blank between fields and none around a line.

    Lines keep their numbers: a comment becomes an empty line.
    """
    tail = b""
    for piece in text_pieces(path):
        data = tail + piece
        cut = data.rfind(b"\n") + 1
        tail, data = data[cut:], data[:cut]
        if data:
            yield _cleaned(data, delimiter)
    if tail:
        yield _cleaned(tail + b"\n", delimiter)


def _cleaned(data: bytes, delimiter: str) -> bytes:
    if b"#" in data or b"%" in data:
        data = _COMMENT.sub(b"", data)
    if delimiter != " ":
        return data
    if b"\t" in data or b"  " in data:
        data = _BLANKS.sub(b" ", data)
    if b" \n" in data or b"\n " in data or data.startswith(b" "):
        data = _LINE_ENDS.sub(b"", data)
    return data
