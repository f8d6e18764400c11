"""One small graph written in every format the readers know, by other means than the readers' own."""

from __future__ import annotations

import csv
import gzip
from dataclasses import dataclass
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import scipy.io
import scipy.sparse

from spam_gnn.data.graph_files import read_graph_file
from spam_gnn.data.reading import Reading
from spam_gnn.data.tables import TableColumns, TableFormats, read_pair

TABLES = ("csv", "tsv", "csv.gz", "parquet")
WITH_TABLE = ("edges", "mtx")  # edges alone, beside a node table in CSV
WHOLE = ("npz", "graphml", "gexf", "ogb")
FORMATS = (*TABLES, *WITH_TABLE, *WHOLE)


@dataclass(frozen=True)
class Small:
    """Nodes and edges as plain lists; label None = unknown, split "" = none."""

    ids: list[str]
    labels: list[str | None]
    splits: list[str]
    features: list[list[float]]
    edges: list[tuple[int, int]]
    directed: bool = False
    weights: list[float] | None = None  # one per edge

    @property
    def frame(self) -> pd.DataFrame:
        frame = pd.DataFrame({"id": self.ids, "label": self.labels, "split": self.splits})
        for place in range(len(self.features[0])):
            frame[f"f{place}"] = [row[place] for row in self.features]
        return frame

    @property
    def ends(self) -> pd.DataFrame:
        pairs = [(self.ids[a], self.ids[b]) for a, b in self.edges]
        frame = pd.DataFrame(pairs, columns=pd.Index(["source", "target"]))
        return frame if self.weights is None else frame.assign(weight=self.weights)


SMALL = Small(
    ids=["n0", "n1", "n2", "n3", "n4", "n5"], labels=["2", "7", "2", None, "7", "2"],
    splits=["train", "train", "val", "", "test", "train"],
    features=[[0.5, 3], [-1.25, 0], [2, 1], [0, 0], [1e-3, 4], [7, 5]], edges=[(0, 1), (1, 2), (2, 4), (3, 0), (5, 4)],
)  # fmt: skip


def write(form: str, folder: Path, small: Small = SMALL) -> Path:
    """The graph in `folder`; the path is that of the node table, the graph file or the folder."""
    if form in (*TABLES, *WITH_TABLE):
        return _tables(form, folder, small)
    return {"npz": _npz, "graphml": _xml, "gexf": _xml, "ogb": _ogb}[form](form, folder, small)


def read(
    form: str, folder: Path, columns: TableColumns | None = None, *, directed: bool = False, header: bool = True
) -> Reading:
    """Read what `write` wrote there, or what has become of it."""
    columns, formats = columns or TableColumns(), TableFormats(header=header)
    if form in WHOLE:
        path = folder / "ogb" if form == "ogb" else folder / f"graph.{form}"
        return read_graph_file(path, None, columns, directed=directed)
    nodes = "csv" if form in WITH_TABLE else form
    return read_pair(folder / f"nodes.{nodes}", folder / f"edges.{form}", columns, formats, directed=directed)


def _tables(form: str, folder: Path, small: Small) -> Path:
    nodes = "csv" if form in WITH_TABLE else form
    if form == "parquet":
        for name, frame in (("nodes", small.frame), ("edges", small.ends)):  # plain, so that a changed byte is a changed cell
            frame.to_parquet(folder / f"{name}.parquet", index=False, compression=None)
        return folder / "nodes.parquet"
    separator = "\t" if form == "tsv" else ","
    small.frame.to_csv(folder / f"nodes.{nodes}", index=False, sep=separator)
    if form == "edges":
        lines = ["# two ids per line", *(" ".join(map(str, row)) for row in small.ends.itertuples(index=False))]
        (folder / "edges.edges").write_text("\n".join(lines) + "\n")
    elif form == "mtx":
        n = len(small.ids)
        ends = np.array(small.edges, dtype=np.int64).reshape(-1, 2).T
        values = np.ones(ends.shape[1]) if small.weights is None else np.array(small.weights)
        matrix = scipy.sparse.coo_array((values, (ends[0], ends[1])), shape=(n, n))
        scipy.io.mmwrite(folder / "edges.mtx", matrix, symmetry="general")
    else:
        small.ends.to_csv(folder / f"edges.{form}", index=False, sep=separator)
    return folder / f"nodes.{nodes}"


def _npz(form: str, folder: Path, small: Small) -> Path:
    masks = {f"{part}_mask": np.array([s == part for s in small.splits]) for part in ("train", "val", "test")}
    y = np.array([-1 if label is None else int(label) for label in small.labels])
    weights = {} if small.weights is None else {"edge_weight": np.array(small.weights)}
    path = folder / "graph.npz"
    np.savez(path, x=np.array(small.features), edge_index=np.array(small.edges, dtype=np.int64).reshape(-1, 2).T, y=y,
             node_id=np.array(small.ids), **weights, **masks)  # fmt: skip
    return path


def _xml(form: str, folder: Path, small: Small) -> Path:
    graph = nx.DiGraph() if small.directed else nx.Graph()
    for place, name in enumerate(small.ids):
        values = {f"f{i}": float(v) for i, v in enumerate(small.features[place])}
        known = {} if small.labels[place] is None else {"class": small.labels[place]}
        graph.add_node(name, **known, split=small.splits[place], **values)
    for place, (a, b) in enumerate(small.edges):
        graph.add_edge(small.ids[a], small.ids[b], **({} if small.weights is None else {"weight": small.weights[place]}))
    path = folder / f"graph.{form}"
    (nx.write_graphml if form == "graphml" else nx.write_gexf)(graph, path)
    return path


def _ogb(form: str, folder: Path, small: Small) -> Path:
    raw, split = folder / "ogb" / "raw", folder / "ogb" / "split" / "time"
    raw.mkdir(parents=True)
    split.mkdir(parents=True)

    def put(path: Path, rows: list) -> None:
        with gzip.open(path, "wt", newline="", compresslevel=1) as file:
            csv.writer(file, lineterminator="\n").writerows(rows)

    put(raw / "edge.csv.gz", small.edges)
    put(raw / "node-feat.csv.gz", small.features)
    put(raw / "node-label.csv.gz", [["nan" if label is None else label] for label in small.labels])
    put(raw / "num-node-list.csv.gz", [[len(small.ids)]])
    put(raw / "num-edge-list.csv.gz", [[len(small.edges)]])
    for part, name in (("train", "train"), ("val", "valid"), ("test", "test")):
        put(split / f"{name}.csv.gz", [[i] for i, s in enumerate(small.splits) if s == part])
    return folder / "ogb"
