"""At least 2,000 damaged files per reader: one line or a graph, never a traceback, and what loads equals a second parser.

What loads is compared in ids, labels, splits, edges and every feature value (`second_parsers.agree`); of tables also every
cell, weights among them, in each of the forms a reader gives it.
"""

from __future__ import annotations

import gzip
import io
import math
import zipfile
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mutations import CHANGES, EXAMPLES, many, mutated
from second_parsers import (
    NUMBER,
    Rows,
    agree,
    csv_rows,
    delimiter_of,
    edge_list_rows,
    matrix_pairs,
    of_npz,
    of_ogb,
    of_tables,
    of_xml,
    parquet_rows,
)  # fmt: skip
from spam_gnn.data.ends import NodePlaces
from spam_gnn.data.readers.delimited import open_delimited
from spam_gnn.data.readers.edge_list import open_edge_list
from spam_gnn.data.readers.frame import FrameTable
from spam_gnn.data.readers.matrix_market import MatrixEdges
from spam_gnn.data.readers.parquet import ParquetTable
from spam_gnn.data.readers.table import Table
from spam_gnn.data.tables import TableColumns, assemble
from spam_gnn.errors import SpamError
from spam_gnn.graph import Graph
from written import SMALL, read, write

READERS = ("delimited", "parquet", "npz", "edges", "mtx", "graphml", "gexf", "ogb")
DELIMITED = ("csv", "tsv", "csv.gz")
WEIGHTED = replace(SMALL, weights=[0.5, 1.0, 2.0, 3.5, 0.25])
NODES = csv_rows(SMALL.frame.to_csv(index=False).encode(), ",")
ran: Counter[str] = Counter()
loaded: Counter[str] = Counter()


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One folder per format with the good files; what a test damages it writes again."""
    made = {}
    for form in (*DELIMITED, *READERS[1:]):
        made[form] = tmp_path_factory.mktemp(form)
        write(form, made[form], WEIGHTED)
    for packed in made["ogb"].rglob("*.gz"):
        packed.with_suffix("").write_bytes(gzip.decompress(packed.read_bytes()))
        packed.unlink()
    return made


def outcome(reader: str, call: Callable[[], Any]) -> Any:
    """The result, or None where the reader refused with one printable line that says what to do."""
    ran[reader] += 1
    refused = None
    try:
        result = call()
    except SpamError as error:
        refused = error
    if refused is not None:
        assert refused.exit_code in (2, 3)
        assert str(refused).isprintable(), refused
        assert "; " in str(refused), refused
        return None
    loaded[reader] += 1
    return result


def cells(table: Table) -> Rows:
    """Names and every cell, in the three forms, which must agree with each other."""
    rows = [list(row) for row in zip(*table.texts(table.columns), strict=True)]
    done = 0
    for block, other in zip(table.blocks(number=table.columns), list(table.blocks(key=table.columns)), strict=True):
        for place, name in enumerate(table.columns):
            texts = [row[place] for row in rows[done : done + block.rows]]
            keys = other.key[name]
            assert (keys.astype(str).astype(object) if keys.dtype != object else keys).tolist() == texts
            if name in block.number:
                values = block.number[name].tolist()
                assert all(math.isclose(float(t), v, rel_tol=1e-6, abs_tol=1e-38) for t, v in zip(texts, values, strict=True))
            elif texts and all(NUMBER.fullmatch(t) and abs(float(t)) < 1e30 for t in texts):
                assert any(len(t) > 17 for t in texts), (name, texts)  # only a giant may be left for the slow path
        done += block.rows
    assert done == len(rows)
    return [list(table.columns), *rows]


def beside_nodes(edges: Table | MatrixEdges) -> Graph:
    """The graph of an edge file and a node table that is in memory already."""
    columns = {name: [row[place] for row in NODES[1:]] for place, name in enumerate(NODES[0])}
    return assemble(FrameTable("nodes", columns, range(len(SMALL.ids))), edges, TableColumns(), directed=False, name="g").graph


class Damaged:
    """One file changed for a while: the folder is as it was when the block ends."""

    def __init__(self, path: Path, data: bytes) -> None:
        self._path, self._data, self._good = path, data, path.read_bytes()

    def __enter__(self) -> None:
        self._path.write_bytes(self._data)

    def __exit__(self, *_: object) -> None:
        self._path.write_bytes(self._good)


@many
@given(changes=CHANGES, form=st.sampled_from(DELIMITED), which=st.sampled_from(["nodes", "edges"]))
def test_delimited(form, which, changes, folders):
    folder, tabs = folders[form], form == "tsv"
    path = folder / f"{which}.{form}"
    packed = form.endswith(".gz")
    good = gzip.decompress(path.read_bytes()) if packed else path.read_bytes()
    data = mutated(good, changes, b"\t" if tabs else b",")
    with Damaged(path, gzip.compress(data, 1) if packed else data):
        result = outcome("delimited", lambda: (cells(open_delimited(path, tabs=tabs)), read(form, folder).graph))
        if result is None:
            return
        rows, graph = result
        assert rows == csv_rows(data, delimiter_of(data, len(rows[0]), tabs))
        other = folder / f"{'edges' if which == 'nodes' else 'nodes'}.{form}"
        untouched = csv_rows(gzip.decompress(other.read_bytes()) if packed else other.read_bytes(), "\t" if tabs else ",")
        agree(graph, of_tables(*((rows, untouched) if which == "nodes" else (untouched, rows))))


@many
@given(changes=CHANGES, which=st.sampled_from(["nodes", "edges"]))
def test_parquet(changes, which, folders):
    folder = folders["parquet"]
    path = folder / f"{which}.parquet"
    with Damaged(path, mutated(path.read_bytes(), changes)):
        result = outcome("parquet", lambda: (cells(ParquetTable(path)), read("parquet", folder).graph))
        if result is not None:
            assert result[0] == parquet_rows(path)
            agree(result[1], of_tables(parquet_rows(folder / "nodes.parquet"), parquet_rows(folder / "edges.parquet")))


def with_a_member_changed(path: Path, changes: list, place: int) -> bytes:
    """The archive with one of its arrays damaged and the checksums right, as a faulty writer would leave it."""
    packed = io.BytesIO()
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(packed, "w") as copy:
        names = archive.namelist()
        for i, name in enumerate(names):
            data = archive.read(name)
            copy.writestr(name, mutated(data, changes) if i == place % len(names) else data)
    return packed.getvalue()


@many
@given(changes=CHANGES, place=st.integers(-3, 20))
def test_npz(changes, place, folders):
    path = folders["npz"] / "graph.npz"
    data = mutated(path.read_bytes(), changes) if place < 0 else with_a_member_changed(path, changes, place)
    with Damaged(path, data):
        graph = outcome("npz", lambda: read("npz", folders["npz"]).graph)
        if graph is not None:
            agree(graph, of_npz(path))


@many
@given(changes=CHANGES)
def test_edge_list(changes, folders):
    path = folders["edges"] / "edges.edges"
    data = mutated(path.read_bytes(), changes, b" ")
    with Damaged(path, data):
        result = outcome("edges", lambda: beside_nodes(open_edge_list(path)))
        if result is None or b'"' in data:  # quotes may join lines; test_delimited has those
            return
        rows, table = edge_list_rows(data), open_edge_list(path)
        assert [list(row) for row in zip(*table.texts(table.columns), strict=True)] == rows[1:]
        agree(result, of_tables(NODES, rows))


@many
@given(changes=CHANGES)
def test_matrix(changes, folders):
    path = folders["mtx"] / "edges.mtx"
    data = mutated(path.read_bytes(), changes, b" ")
    with Damaged(path, data):
        graph = outcome("mtx", lambda: beside_nodes(MatrixEdges(path)))
        if graph is not None and b'"' not in data:
            agree(graph, of_tables(NODES, None, matrix_pairs(data)))


@pytest.mark.parametrize("form", ["graphml", "gexf"])
@many
@given(changes=CHANGES)
def test_xml(form, changes, folders):
    path = folders[form] / f"graph.{form}"
    data = mutated(path.read_bytes(), changes, b" ")
    with Damaged(path, data):
        graph = outcome(form, lambda: read(form, folders[form]).graph)
        if graph is not None:
            agree(graph, of_xml(data, form))


@many
@given(changes=CHANGES, which=st.sampled_from(["raw/edge", "raw/node-feat", "raw/node-label", "split/time/valid"]))
def test_ogb(changes, which, folders):
    folder = folders["ogb"] / "ogb"
    path = folder / f"{which}.csv"
    with Damaged(path, mutated(path.read_bytes(), changes)):
        graph = outcome("ogb", lambda: read("ogb", folders["ogb"]).graph)
        if graph is not None:
            agree(graph, of_ogb(folder))


def test_enough_was_run_and_not_everything_refused():
    """Were every damaged file refused, nothing above would have been compared; skipped where the tests run apart."""
    if len(ran) < len(READERS):
        pytest.skip("the tests of this file ran in several processes")
    assert set(ran) == set(READERS)
    assert min(ran.values()) >= EXAMPLES, ran
    assert min(loaded[reader] for reader in READERS) >= 20, loaded


def test_ids_are_found_by_text_and_by_number():
    places = NodePlaces(np.array(["5", "0", "12"], dtype=object), "nodes")
    assert places.find(np.array([12, 5, 7, -1, 10**12])).tolist() == [2, 0, -1, -1, -1]
    assert places.find(np.array(["12", "05", "5"], dtype=object)).tolist() == [2, -1, 0]
