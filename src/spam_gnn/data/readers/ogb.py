"""A folder as the Open Graph Benchmark lays it out for node classification, read without its package.

raw/edge.csv.gz (two positions per line), raw/node-label.csv.gz, raw/node-feat.csv.gz (may be absent),
raw/num-node-list.csv.gz and raw/num-edge-list.csv.gz (checked where present), split/<name>/train, valid, test.csv.gz.
Each file may also be there without .gz.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from spam_gnn.data.columns import RowBuffer
from spam_gnn.data.readers.content import missing, text_pieces
from spam_gnn.data.readers.delimited import DelimitedTable
from spam_gnn.data.readers.records import first_records
from spam_gnn.data.readers.table import defect, is_finite_number, listed, shown

PARTS = {"train": "train", "val": "valid", "test": "test"}


@dataclass(frozen=True, eq=False)
class OgbFolder:
    """The arrays of one folder.

    Args:
        x: (n, d) float32, or None.
        ends: (2, m) int64 positions.
        label_table, labels: the label file and its (n,) texts, "" where the label is missing.
        parts: train, val, test positions, or empty where there is no split.
        ignored: files of raw/ that were not read.
    """

    x: np.ndarray | None
    ends: np.ndarray
    label_table: DelimitedTable
    labels: np.ndarray
    parts: dict[str, np.ndarray]
    ignored: list[str]


def read_ogb(folder: Path) -> OgbFolder:
    """Read and check every file of the folder."""
    raw = folder / "raw"
    if not raw.is_dir():
        raise defect(str(folder), "found no folder raw in it; give the folder that holds raw/edge.csv.gz and split/")
    label_table = _open(_needed(raw, "node-label"))
    if len(label_table.columns) != 1:
        found = f"found {len(label_table.columns)} labels per node"
        raise label_table.defect(f"{found}; a graph with one label per node is needed")
    labels = label_table.texts(["1"])[0]
    labels = np.array(["" if cell.casefold() == "nan" else cell for cell in labels], dtype=object)
    n = len(labels)
    _check_count(raw, "num-node-list", n, label_table.file)
    features = _file(raw, "node-feat")
    x = None if features is None else _features(_open(features), n, label_table.file)
    edge_table = _open(_needed(raw, "edge"))
    if len(edge_table.columns) != 2:
        raise edge_table.defect(f"found {len(edge_table.columns)} fields; give two positions per line")
    ends = _positions(edge_table, n, label_table.file)
    _check_count(raw, "num-edge-list", ends.shape[1], edge_table.file)
    read = ("edge", "node-label", "node-feat", "num-node-list", "num-edge-list")
    ignored = sorted(p.name for p in raw.iterdir() if p.name.split(".", 1)[0] not in read)
    return OgbFolder(x, ends, label_table, labels, _split(folder, n, label_table.file), ignored)


def _file(folder: Path, stem: str) -> Path | None:
    return next((folder / name for name in (f"{stem}.csv.gz", f"{stem}.csv") if (folder / name).is_file()), None)


def _needed(folder: Path, stem: str) -> Path:
    path = _file(folder, stem)
    if path is None:
        raise missing(folder / f"{stem}.csv.gz")
    return path


def _open(path: Path) -> DelimitedTable:
    """A table without a header; its columns are called 1, 2, ..."""

    def pieces() -> Iterator[bytes]:
        return text_pieces(path)

    first = first_records(str(path), pieces(), ",")
    if first is None:
        raise defect(str(path), "the file is empty; download it again")
    return DelimitedTable(str(path), pieces, ",", [str(i + 1) for i in range(int(first.fields[0]))])


def _features(table: DelimitedTable, n: int, labels_file: str) -> np.ndarray:
    buffer, row = RowBuffer(len(table.columns), np.float32), 0
    for block in table.blocks(number=table.columns):
        rows = buffer.extend(block.rows)
        for place, name in enumerate(table.columns):
            if name not in block.number:
                raise _first_bad(table, name)
            rows[:, place] = block.number[name]
        row += block.rows
        del rows  # a view would keep the buffer from growing in place
    if row != n:
        raise table.defect(f"found {row} rows for the {n} nodes in {labels_file}; give one row per node")
    return buffer.finished()


def _first_bad(table: DelimitedTable, column: str) -> Exception:
    for row, cell in enumerate(table.texts([column])[0]):
        if not is_finite_number(cell):
            return table.defect(f"found {shown(cell)}; give a finite number", column, row)
    return table.defect("found a column that is not numeric throughout; give finite numbers", column)


def _positions(table: DelimitedTable, n: int, labels_file: str) -> np.ndarray:
    """(columns, rows) whole numbers from 0 to n - 1."""
    parts, first = [np.empty((len(table.columns), 0), dtype=np.int64)], 0
    for block in table.blocks(key=table.columns):
        for name in table.columns:
            keys = block.key[name]
            good = np.array([k.isascii() and k.isdigit() and len(k) < 19 for k in keys]) if keys.dtype == object else keys >= 0
            good = good & (np.where(good, keys, 0).astype(np.int64) < n)
            if not good.all():
                row = int(np.argmin(good))
                found = f"found {shown(str(keys[row]))}, no position among the {n} nodes of {labels_file}"
                raise table.defect(f"{found}; use 0 to {n - 1}", name, first + row)
        parts.append(np.stack([block.key[name].astype(np.int64) for name in table.columns]))
        first += block.rows
    return np.concatenate(parts, axis=1)


def _check_count(raw: Path, stem: str, found: int, where: str) -> None:
    path = _file(raw, stem)
    if path is None:
        return
    table = _open(path)
    cells = table.texts(["1"])[0]
    if len(cells) != 1:
        raise table.defect(f"found {len(cells)} graphs; a folder with one graph is needed")
    if cells[0] != str(found):
        raise table.defect(f"found {shown(cells[0])} where {where} has {found} rows; download the files again", row=0)


def _split(folder: Path, n: int, labels_file: str) -> dict[str, np.ndarray]:
    base = folder / "split"
    kinds = sorted(p for p in base.iterdir() if p.is_dir()) if base.is_dir() else []
    if not kinds:
        return {}
    if len(kinds) > 1:
        raise defect(str(base), f"found {len(kinds)} splits, {listed([p.name for p in kinds])}; keep the folder of one")
    parts = {}
    for part, stem in PARTS.items():
        table = _open(_needed(kinds[0], stem))
        if len(table.columns) != 1:
            raise table.defect(f"found {len(table.columns)} fields; give one position per line")
        parts[part] = _positions(table, n, labels_file)[0]
    return parts
