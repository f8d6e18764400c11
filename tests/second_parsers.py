"""Every format read a second time by other means than the readers' own, and a graph held against the result.

Each parser ends in a `Plain`: ids, labels, splits, feature columns as texts, pairs. `agree` compares all of it with a `Graph`.
"""

from __future__ import annotations

import csv
import io
import math
import re
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pyarrow.parquet as pq
from numpy.lib import format as npy

from spam_gnn.graph import Graph

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
ROLES = {
    "id": ("id", "node", "node_id"), "label": ("label", "class", "y", "target"),
    "source": ("source", "src", "from"), "target": ("target", "dst", "to"),
}  # fmt: skip
SPLITS = {
    **dict.fromkeys(("train", "training"), "train"), **dict.fromkeys(("val", "valid", "validation"), "val"),
    **dict.fromkeys(("test", "testing"), "test"), **dict.fromkeys(("", "none", "other", "unused"), ""),
}  # fmt: skip
Rows = list[list[str]]


@dataclass(frozen=True)
class Plain:
    """A graph as texts: "" is an unknown label or no split; ids None where nodes are known by their place alone."""

    ids: list[str] | None
    labels: list[str]
    splits: list[str]
    pairs: list[tuple[int, int]]
    columns: dict[str, list[str]] = field(default_factory=dict)
    matrix: np.ndarray | None = None  # features that are numbers already
    directed: bool = False

    def edges(self) -> set[tuple[int, int]]:
        pairs = {(a, b) for a, b in self.pairs if a != b}
        return pairs if self.directed else pairs | {(b, a) for a, b in pairs}

    def features(self) -> np.ndarray:
        """Numbers as they are, any other column one-hot in the order of its sorted texts; degrees where there is none."""
        n = len(self.labels)
        blocks = [np.empty((n, 0))] if self.matrix is None else [np.asarray(self.matrix, dtype=np.float64).reshape(n, -1)]
        for cells in self.columns.values():
            if all(NUMBER.fullmatch(cell) for cell in cells):
                blocks.append(np.array([[float(cell)] for cell in cells]))
            else:
                texts = sorted(set(cells))
                blocks.append(np.array([[float(cell == text) for text in texts] for cell in cells]))
        joined = np.concatenate(blocks, axis=1)
        return joined if joined.shape[1] else self._degrees()

    def _degrees(self) -> np.ndarray:
        edges = self.edges()
        met = [sum(b == i or (self.directed and a == i) for a, b in edges) for i in range(len(self.labels))]
        rows = [[math.log(1 + d), *(float(min(int(math.log2(1 + d)), 7) == k) for k in range(8))] for d in met]
        return np.array(rows)


def agree(graph: Graph, plain: Plain) -> None:
    """Ids, labels, splits, edges and every feature value."""
    assert plain.ids is None or list(graph.node_names or ()) == plain.ids
    assert ["" if c < 0 else graph.class_names[c] for c in graph.y.tolist()] == plain.labels
    for part in ("train", "val", "test"):
        assert getattr(graph, f"{part}_mask").tolist() == [split == part for split in plain.splits], part
    assert graph.directed == plain.directed
    assert {tuple(edge) for edge in graph.edge_index.T.tolist()} == plain.edges()
    expected = plain.features()
    assert tuple(graph.x.shape) == expected.shape, plain.columns
    np.testing.assert_allclose(graph.x.to_dense().numpy(), expected, rtol=1e-6, atol=1e-38)


def decoded(data: bytes) -> str:
    return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")


def csv_rows(data: bytes, delimiter: str) -> Rows:
    rows = csv.reader(io.StringIO(decoded(data), newline=""), delimiter=delimiter, strict=True)
    return [[cell.strip() for cell in row] for row in rows if row and (len(row) > 1 or row[0].strip(" "))]


def delimiter_of(data: bytes, width: int, tabs: bool) -> str:
    return "\t" if tabs else next(d for d in ",;\t" if len(csv_rows(data, d)[0]) == width)


def parquet_rows(path: Path) -> Rows:
    """Whole floats as whole numbers, since a column of them with gaps is stored as floats."""
    table = pq.read_table(path)

    def text(value: object) -> str:
        if value is None or value != value:
            return ""
        if isinstance(value, float):
            return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
        return str(value).strip()

    return [list(table.column_names), *([text(row[name]) for name in table.column_names] for row in table.to_pylist())]


def edge_list_rows(data: bytes) -> Rows:
    """With a header; for texts without quotes, which may join lines."""
    lines = [line for line in decoded(data).split("\n") if line.strip(" \t") and line.lstrip(" \t")[0] not in "#%"]
    separator = next((d for d in ",;" if lines and d in lines[0]), None)
    # split() alone would part at any blank of Unicode
    parted = [re.split(r"[ \t]+", line.strip(" \t")) if separator is None else line.split(separator) for line in lines]
    rows = [[cell.strip() for cell in row] for row in parted]
    headed = bool(rows) and rows[0][0].casefold() in ROLES["source"] and rows[0][1].casefold() in ROLES["target"]
    return rows if headed else [["source", "target"], *rows]


def _role(names: list[str], role: str) -> str | None:
    return next((name for known in ROLES[role] for name in names if name.casefold() == known), None)


def of_tables(nodes: Rows, edges: Rows | None, places: list[tuple[int, int]] | None = None) -> Plain:
    """Two tables with a header each; or a node table and positions."""
    names, body = nodes[0], nodes[1:]
    columns = {name: [row[i] for row in body] for i, name in enumerate(names)}
    node_id, label = _role(names, "id") or names[0], _role(names, "label")
    assert label is not None
    split = "split" if "split" in names else None
    if edges is not None:
        heads = edges[0]
        source, target = _role(heads, "source"), _role(heads, "target")
        source = source or next(name for name in heads if name != target)
        target = target or next(name for name in heads if name != source)
        place = {name: i for i, name in enumerate(columns[node_id])}
        places = [(place[row[heads.index(source)]], place[row[heads.index(target)]]) for row in edges[1:]]
    return Plain(
        columns[node_id], columns[label], [SPLITS[w.casefold()] for w in columns[split]] if split else [""] * len(body),
        places or [], {name: cells for name, cells in columns.items() if name not in (node_id, label, split)},
    )  # fmt: skip


def matrix_pairs(data: bytes) -> list[tuple[int, int]]:
    """Not by scipy.io.mmread, which ends the whole process on some damaged files; `test_readers` has it for good ones."""
    text = decoded(data)
    banner = text.split("\n", 1)[0].casefold().split()
    size, *rows = [line.split() for line in text.split("\n") if line.strip(" \t") and line.lstrip(" \t")[0] not in "%#"]
    assert len(rows) == int(size[2])
    pairs = [(int(row[0]) - 1, int(row[1]) - 1) for row in rows if banner[3] == "pattern" or float(row[2]) != 0]
    return pairs + ([(b, a) for a, b in pairs] if banner[4] != "general" else [])


def of_npz(path: Path) -> Plain:
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        arrays = {}
        for name in archive.namelist():
            with archive.open(name) as member:
                arrays[name.removesuffix(".npy")] = npy.read_array(member, allow_pickle=False)
    y = arrays["y"].reshape(-1)

    def label(value: object) -> str:
        if isinstance(value, str | bool):
            return str(value).strip()
        number = float(value)  # pyright: ignore[reportArgumentType]
        return "" if number != number or number < 0 else str(int(number)) if number.is_integer() else repr(number)

    masks = {part: arrays.get(f"{part}_mask", np.zeros(len(y))) for part in ("train", "val", "test")}
    splits = [next((part for part, mask in masks.items() if mask[i]), "") for i in range(len(y))]
    ids = [str(v).strip() for v in arrays["node_id"].tolist()] if "node_id" in arrays else None
    pairs = [(int(a), int(b)) for a, b in arrays["edge_index"].T.tolist()]
    return Plain(ids, [label(v) for v in y.tolist()], splits, pairs, matrix=_features(arrays, len(y)))


def _features(arrays: dict[str, np.ndarray], n: int) -> np.ndarray | None:
    if "x_data" not in arrays:
        return arrays.get("x")
    dense, starts = np.zeros(tuple(arrays["x_shape"].reshape(-1).tolist())), arrays["x_indptr"].tolist()
    for row in range(n):
        for at in range(starts[row], starts[row + 1]):
            dense[row, arrays["x_indices"][at]] += arrays["x_data"][at]
    return dense


def of_xml(data: bytes, form: str) -> Plain:
    root = ElementTree.fromstring(data)
    elements = [(e.tag.rpartition("}")[2], e) for e in root.iter()]
    graph = next(e for tag, e in elements if tag == "graph")
    nodes = [e for tag, e in elements if tag == "node"]
    declared = _graphml_keys(root) if form == "graphml" else _gexf_keys(root)
    values = [{declared[key][0]: _typed(text, declared[key][1]) for key, text in _given(node, form)} for node in nodes]
    names = dict.fromkeys([name for row in values for name in row])
    raw = [node.get("id", "") for node in nodes]
    place = {name: i for i, name in enumerate(raw)}
    edges = [e for tag, e in elements if tag == "edge"]
    pairs = [(place[e.get("source", "")], place[e.get("target", "")]) for e in edges]
    pairs += [(b, a) for (a, b), e in zip(pairs, edges, strict=True) if e.get("type") == "mutual"]
    body = [[name.strip(), *(row.get(key, "") for key in names)] for name, row in zip(raw, values, strict=True)]
    plain = of_tables([["id", *names], *body], None, pairs)
    kind = graph.get("edgedefault" if form == "graphml" else "defaultedgetype")
    return Plain(plain.ids, plain.labels, plain.splits, pairs, plain.columns, directed=kind == "directed")


def _given(node: ElementTree.Element, form: str) -> list[tuple[str, str]]:
    inside = [(e.tag.rpartition("}")[2], e) for e in node.iter()]
    if form == "graphml":
        return [(e.get("key", ""), e.text or "") for tag, e in inside if tag == "data"]
    return [(e.get("for", ""), e.get("value", "")) for tag, e in inside if tag == "attvalue"]


def _graphml_keys(root: ElementTree.Element) -> dict[str, tuple[str, str]]:
    keys = [e for e in root.iter() if e.tag.rpartition("}")[2] == "key"]
    return {e.get("id", ""): (e.get("attr.name", ""), e.get("attr.type", "string")) for e in keys}


def _gexf_keys(root: ElementTree.Element) -> dict[str, tuple[str, str]]:
    groups = [e for e in root.iter() if e.tag.rpartition("}")[2] == "attributes" and e.get("class") == "node"]
    return {e.get("id", ""): (e.get("title", ""), e.get("type", "")) for group in groups for e in group}


def _typed(text: str, kind: str) -> str:
    """The text a table cell of this type and value would hold."""
    if kind in ("float", "double", "int", "integer", "long"):
        assert NUMBER.fullmatch(text.strip()), text
        number = float(text)
        return str(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(number)
    if kind == "boolean":
        return {"true": "True", "1": "True", "false": "False", "0": "False"}[text.lower()]
    return text.strip()


def of_ogb(folder: Path) -> Plain:
    """An unpacked folder."""
    raw = folder / "raw"
    labels = ["" if row[0].casefold() == "nan" else row[0] for row in csv_rows((raw / "node-label.csv").read_bytes(), ",")]
    splits = [""] * len(labels)
    for part, stem in (("train", "train"), ("val", "valid"), ("test", "test")):
        for row in csv_rows((folder / "split" / "time" / f"{stem}.csv").read_bytes(), ","):
            splits[int(row[0])] = part
    pairs = [(int(a), int(b)) for a, b in csv_rows((raw / "edge.csv").read_bytes(), ",")]
    matrix = [[float(cell) for cell in row] for row in csv_rows((raw / "node-feat.csv").read_bytes(), ",")]
    return Plain(None, labels, splits, pairs, matrix=np.array(matrix))
