"""Defects of every format but CSV (see test_tables.py): one line each that names file, row and column and says what to do."""

from __future__ import annotations

import gzip
import io
import pickle
import re
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spam_gnn.data.graph_files import read_graph_file
from spam_gnn.data.tables import TableColumns, TableFormats, read_pair
from spam_gnn.errors import BadInput
from written import SMALL, read, write


def text(name, old, new):
    """Replace a text in a file, which must be there."""

    def change(folder: Path) -> None:
        path = folder / name
        content = gzip.decompress(path.read_bytes()) if name.endswith(".gz") else path.read_bytes()
        assert re.search(old.encode(), content), (old, content)
        content = re.sub(old.encode(), new.encode(), content, count=1)
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)

    return change


def put(name, content):
    def change(folder: Path) -> None:
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())

    return change


def arrays(**changed):
    """Arrays of the .npz replaced, or taken out with None."""

    def change(folder: Path) -> None:
        with np.load(folder / "graph.npz") as stored:
            kept = {**stored, **changed}
        np.savez(folder / "graph.npz", **{name: value for name, value in kept.items() if value is not None})

    return change


def column(name, values, which="nodes"):
    """A column of a Parquet table replaced."""

    def change(folder: Path) -> None:
        frame = pq.read_table(folder / f"{which}.parquet")
        place = frame.schema.names.index(name) if name in frame.schema.names else None
        array = values if isinstance(values, pa.Array) else pa.array(values)
        frame = frame.append_column(name, array) if place is None else frame.set_column(place, name, array)
        pq.write_table(frame, folder / f"{which}.parquet")

    return change


def truncated(name, keep):
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:keep])


def gone(name):
    return lambda folder: (folder / name).unlink()


def second_split(folder: Path) -> None:
    (folder / "ogb" / "split" / "random").mkdir()


def member_twice(folder: Path) -> None:
    memory = io.BytesIO()
    np.save(memory, np.zeros(3))
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(folder / "graph.npz", "a") as archive:
        archive.writestr("y.npy", memory.getvalue())


def cut_member(folder: Path) -> None:
    memory = io.BytesIO()
    np.save(memory, np.zeros(3))
    with zipfile.ZipFile(folder / "graph.npz", "w") as archive:
        archive.writestr("y.npy", memory.getvalue()[:-8])


def single_array(folder: Path) -> None:
    with (folder / "graph.npz").open("wb") as file:
        np.save(file, np.zeros(3))


CSR = {"x": None, "x_data": np.ones(2), "x_indices": np.array([0, 1]), "x_indptr": np.array([0, 1, 2, 2, 2, 2, 2]),
       "x_shape": np.array([6, 2])}  # fmt: skip
RAW, SPLIT = "ogb/raw", "ogb/split/time"

DEFECTS = {
    # name: (format, damage, start of the message after the folder, something more it says)
    "npz empty": ("npz", put("graph.npz", ""), "graph.npz: the file is empty", "numpy.savez"),
    "npz no zip": ("npz", put("graph.npz", "hello"), "graph.npz: this is no .npz file", "savez"),
    "npz one array": ("npz", single_array, "graph.npz: found a single array", ""),
    "npz pickle": ("npz", put("graph.npz", pickle.dumps({"x": 1})), "graph.npz: found a pickle", "no pickle is ever loaded"),
    "npz objects": ("npz", arrays(y=np.array(["a", None], dtype=object)),
        "graph.npz:y: found an array of Python objects", "astype(str)"),
    "npz cut": ("npz", truncated("graph.npz", 400), "graph.npz: this is no .npz file or a damaged one", "write it again"),
    "npz cut member": ("npz", cut_member, "graph.npz:y: found 16 bytes where the header", "needs 24"),
    "npz name twice": ("npz", member_twice, "graph.npz:y: found two arrays of this name", "keep one"),
    "npz no edges": ("npz", arrays(edge_index=None), "graph.npz: found no array 'edge_index' among x", "savez"),
    "npz no labels": ("npz", arrays(y=None), "graph.npz: found no array 'y'", "savez"),
    "npz labels shape": ("npz", arrays(y=np.zeros((6, 2))), "graph.npz:y: found shape (6, 2)", "one label per node"),
    "npz labels type": ("npz", arrays(y=np.zeros(6, dtype=complex)),
        "graph.npz:y: found shape (6,) of complex", "numbers or texts"),
    "npz one class": ("npz", arrays(y=np.zeros(6, dtype=int)), "graph.npz:y: found one class only, '0'", "at least two"),
    "npz x rows": ("npz", arrays(x=np.zeros((5, 2))), "graph.npz:x: found 5 rows for 6 labels", "one row per node"),
    "npz x shape": ("npz", arrays(x=np.zeros(6)), "graph.npz:x: found shape (6,)", "(n, d)"),
    "npz x nan": ("npz", arrays(x=np.array([[1.0]] * 4 + [[np.nan], [1]])),
        "graph.npz:4:x: found nan (1 such values)", "impute"),
    "npz x texts": ("npz", arrays(x=np.array([["a"]] * 6)), "graph.npz:x: found shape (6, 1) of <U1", "numbers"),
    "npz x twice": ("npz", arrays(x_data=np.ones(1)), "graph.npz:x: found x and x_data together", "keep"),
    "npz csr partly": ("npz", arrays(x=None, x_data=np.ones(1)), "graph.npz: found x_data without x_indices", "all four"),
    "npz csr pointer": ("npz", arrays(**CSR | {"x_indptr": np.array([0, 5])}),
        "graph.npz:x_indptr: found a CSR matrix", "save it again"),
    "npz csr shape": ("npz", arrays(**CSR | {"x_shape": np.array([6])}), "graph.npz:x_shape: found [6]", "two whole numbers"),
    "npz csr indices": ("npz", arrays(**CSR | {"x_indices": np.array([0, 7])}),
        "graph.npz:x_indptr: found a CSR matrix", "save"),
    "npz csr float": ("npz", arrays(**CSR | {"x_indices": np.array([0.0, 1])}),
        "graph.npz:x_indices: found shape (2,) of float", "whole"),
    "npz edges shape": ("npz", arrays(edge_index=np.zeros((5, 2), int)),
        "graph.npz:edge_index: found shape (5, 2)", "(2, edges)"),
    "npz edges float": ("npz", arrays(edge_index=np.zeros((2, 5))),
        "graph.npz:edge_index: found shape (2, 5) of float64", "whole"),
    "npz edges outside": ("npz", arrays(edge_index=np.array([[0, 1], [1, 6]])),
        "graph.npz:1:edge_index: found edge 1 -> 6", "0 to 5"),
    "npz weights": ("npz", arrays(edge_weight=np.ones(3)), "graph.npz:edge_weight: found shape (3,) for 5 edges", "per edge"),
    "npz mask shape": ("npz", arrays(train_mask=np.ones((6, 3), bool)),
        "graph.npz:train_mask: found shape (6, 3)", "one split"),
    "npz mask values": ("npz", arrays(val_mask=np.arange(6)), "graph.npz:val_mask: found shape (6,) of int64", "True or False"),
    "npz mask unlabelled": ("npz", arrays(test_mask=np.arange(6) == 3),
        "graph.npz:3:test_mask: selects a node without", "leave"),
    "npz masks meet": ("npz", arrays(val_mask=np.arange(6) == 0),
        "graph.npz:0:train_mask: found a node in two masks", "one purpose"),
    "npz no training": ("npz", arrays(train_mask=np.zeros(6, bool)),
        "graph.npz:train_mask: found masks and no training", "mark some"),
    "npz ids": ("npz", arrays(node_id=np.arange(5)), "graph.npz:node_id: found shape (5,)", "give 6"),
    "npz ids twice": ("npz", arrays(node_id=np.zeros(6, int)), "graph.npz:1:node_id: found id '0' again", "one row per node"),
    "parquet empty": ("parquet", put("nodes.parquet", ""), "nodes.parquet: the file is empty", "to_parquet"),
    "parquet text": ("parquet", put("nodes.parquet", "id,label\n"),
        "nodes.parquet: this is no Parquet file or a damaged", "again"),
    "parquet cut": ("parquet", truncated("edges.parquet", 300), "edges.parquet: this is no Parquet file or a damaged", "again"),
    "parquet id twice": ("parquet", column("id", ["a", "b", "c", "a", "d", "e"]),
        "nodes.parquet:4:id: found id 'a' again", "line 1"),
    "parquet id null": ("parquet", column("id", ["a", "b", None, "d", "e", "f"]),
        "nodes.parquet:3:id: the id is empty", "every node"),
    "parquet null number": ("parquet", column("f1", [1.0, None, 3, 4, 5, 6]),
        "nodes.parquet:2:f1: found an empty cell", "fill"),
    "parquet inf": ("parquet", column("f1", [1.0, np.inf, 3, 4, 5, 6]), "nodes.parquet:2:f1: found 'inf'", "finite"),
    "parquet list": ("parquet", column("f1", [[1], [2], [3], [4], [5], [6]]),
        "nodes.parquet:f1: found a column of type 'list<", "spread"),
    "parquet bytes": ("parquet", column("f1", [b"1"] * 6), "nodes.parquet:f1: found a column of type 'binary'", "spread"),
    "parquet no label": ("parquet", lambda f: pd.DataFrame({"id": [1], "f": [2]}).to_parquet(f / "nodes.parquet"),
                         "nodes.parquet: found no label column among id, f", "--label"),
    "parquet one column": ("parquet", lambda f: pd.DataFrame({"id": [1]}).to_parquet(f / "nodes.parquet"),
                           "nodes.parquet: found 1 column", "at least two"),
    "parquet unknown end": ("parquet", column("target", ["n1", "n2", "n9", "n0", "n4"], "edges"),
                            "edges.parquet:3:target: found 'n9', which is no id", "add the node"),
    "parquet empty end": ("parquet", column("source", ["n1", None, "n2", "n0", "n4"], "edges"),
                          "edges.parquet:2:source: the end point is empty", "delete the row"),
    "edges one field": ("edges", put("edges.edges", "n1\nn2\n"),
        "edges.edges: found one field only on the first line, 'n1'", "two ids"),
    "edges ragged": ("edges", put("edges.edges", "# c\nn1 n2\nn0 n1 4\n"),
        "edges.edges:3: found 3 fields where there should be 2", "a blank"),
    "edges unknown": ("edges", put("edges.edges", "# c\nn1 n2\n\nn0 x\n"),
        "edges.edges:4:target: found 'x', which is no id", "add"),
    "edges binary": ("edges", put("edges.edges", b"n1 n2\nn\0 n2\n"), "edges.edges:2: found a NUL byte", "UTF-8"),
    "mtx banner": ("mtx", text("edges.mtx", "%%MatrixMarket", "%%MatrixMarked"),
        "edges.mtx:1: found '%%MatrixMarked", "begins with"),
    "mtx dense": ("mtx", text("edges.mtx", "coordinate", "array"), "edges.mtx:1: found 'array' form", "coordinate"),
    "mtx complex": ("mtx", text("edges.mtx", "real", "complex"), "edges.mtx:1: found 'complex' values", "weight"),
    "mtx symmetry": ("mtx", text("edges.mtx", "general", "hermitian"), "edges.mtx:1: found 'hermitian' symmetry", "general"),
    "mtx size": ("mtx", text("edges.mtx", "6 6 5", "6 6 5 1"), "edges.mtx:3: found '6 6 5 1'", "rows columns entries"),
    "mtx no size": ("mtx", put("edges.mtx", "%%MatrixMarket matrix coordinate real general\n"),
        "edges.mtx: found no size line", "write"),
    "mtx not square": ("mtx", text("edges.mtx", "6 6 5", "6 7 5"), "edges.mtx: found a 6 x 7 matrix for 6 nodes", "per node"),
    "mtx count": ("mtx", text("edges.mtx", "6 6 5", "6 6 9"),
        "edges.mtx: found 5 entries where the size line promises 9", "cut short"),
    "mtx outside": ("mtx", text("edges.mtx", "\n2 3 ", "\n0 3 "),
        "edges.mtx:5:row: found 0 in a matrix of 6 rows", "from 1 to 6"),
    "mtx text": ("mtx", text("edges.mtx", "\n2 3 ", "\n2 x "), "edges.mtx:5:column: found 'x'", "whole number from 1"),
    "mtx value": ("mtx", text("edges.mtx", r"\n2 3 \S*", "\n2 3 nan"), "edges.mtx:5:value: found 'nan'", "finite"),
    "graphml empty": ("graphml", put("graph.graphml", " "), "graph.graphml: the file is empty", "write_graphml"),
    "graphml broken": ("graphml", text("graph.graphml", "</node>", "</nod>"),
        "graph.graphml:", "no well-formed XML (mismatched tag)"),
    "graphml entities": ("graphml", text("graph.graphml", "<graphml", '<!DOCTYPE a [<!ENTITY b "c">]><graphml'),
                         "graph.graphml:2: found a <!DOCTYPE declaration", "delete that line"),
    "graphml id twice": ("graphml", text("graph.graphml", 'node id="n1"', 'node id="n0"'),
        "graph.graphml:", "found node 'n0' again"),
    "graphml no id": ("graphml", text("graph.graphml", 'node id="n1"', "node"), "graph.graphml:", "found a node without an id"),
    "graphml unknown": ("graphml", text("graph.graphml", 'target="n1"', 'target="x"'),
        "graph.graphml:", "'x' is no node of the file"),
    "graphml no end": ("graphml", text("graph.graphml", ' target="n1"', ""),
        "graph.graphml:", "found an edge without a target"),
    "graphml number": ("graphml", text("graph.graphml", ">0.5<", ">half<"),
        "graph.graphml:", "found 'half' for an attribute of type double; write a number"),
    "graphml underscore": ("graphml", text("graph.graphml", ">0.5<", ">1_0<"),
        "graph.graphml:", "found '1_0' for an attribute of type double; write a number"),
    "graphml value twice": ("graphml", text("graph.graphml", "(<data key=.d2.>0.5</data>)", r"\1\1"),
        "graph.graphml:", "f0: found a second value of this attribute, the first is on line"),
    "graphml declared twice": ("graphml", text("graph.graphml", "(<key id=.d2.[^>]*/>)", r"\1\1"),
        "graph.graphml:", "found attribute 'd2' declared again; keep one declaration"),
    "graphml direction": ("graphml", text("graph.graphml", '"undirected"', '"both"'),
        "graph.graphml:", "found edgedefault 'both'; write directed or undirected"),
    "gexf direction": ("gexf", text("graph.gexf", 'defaultedgetype="undirected"', 'defaultedgetype="un"'),
        "graph.gexf:", "found defaultedgetype 'un'; write directed or undirected or mutual"),
    "gexf number": ("gexf", text("graph.gexf", 'value="0.5"', 'value="0_5"'), "graph.gexf:", "found '0_5' for an attribute of"),
    "graphml no nodes": ("graphml", put("graph.graphml", "<graphml><graph edgedefault='directed'/></graphml>"),
        "graph.graphml: found no nodes", ""),
    "graphml no graph": ("graphml", put("graph.graphml", "<graphml/>"),
        "graph.graphml: found no <graph> elements", "one graph"),
    "graphml no label": ("graphml", text("graph.graphml", 'attr.name="class"', 'attr.name="klass"'),
        "graph.graphml: found no label column", "--label"),
    "graphml encoding": ("graphml", text("graph.graphml", "encoding='utf-8'", "encoding='utf-77'"), "graph.graphml", "XML"),
    "gexf entities": ("gexf", text("graph.gexf", "<gexf", '<!DOCTYPE a SYSTEM "file:///x"><gexf'), "graph.gexf:", "DOCTYPE"),
    "gexf without a value": ("gexf", text("graph.gexf", 'value="7"', 'vblue="7"'), "graph.gexf:", "without a value"),
    "gexf version": ("gexf", text("graph.gexf", "<gexf [^>]*>", "<gexf>"),
        "graph.gexf: networkx cannot read this as gexf", "write_gexf"),
    "ogb no raw": ("ogb", lambda f: (f / "ogb" / "raw").rename(f / "ogb" / "rar"), "ogb: found no folder raw", "edge.csv.gz"),
    "ogb no edges": ("ogb", gone(f"{RAW}/edge.csv.gz"), f"{RAW}/edge.csv.gz: no such file", ""),
    "ogb no labels": ("ogb", gone(f"{RAW}/node-label.csv.gz"), f"{RAW}/node-label.csv.gz: no such file", ""),
    "ogb many labels": ("ogb", text(f"{RAW}/node-label.csv.gz", "2", "2,1"),
        f"{RAW}/node-label.csv.gz:1: found 2 labels per node", "one label"),
    "ogb position": ("ogb", text(f"{RAW}/edge.csv.gz", "2,4", "2,6"),
        f"{RAW}/edge.csv.gz:3:2: found '6', no position", "0 to 5"),
    "ogb text": ("ogb", text(f"{RAW}/node-feat.csv.gz", "-1.25", "x"), f"{RAW}/node-feat.csv.gz:2:1: found 'x'", "finite"),
    "ogb rows": ("ogb", text(f"{RAW}/node-feat.csv.gz", "2,1\n", ""),
        f"{RAW}/node-feat.csv.gz:1: found 5 rows for the 6 nodes", "per node"),
    "ogb count": ("ogb", text(f"{RAW}/num-node-list.csv.gz", "6", "7"),
        f"{RAW}/num-node-list.csv.gz:1: found '7' where", "again"),
    "ogb edges count": ("ogb", text(f"{RAW}/num-edge-list.csv.gz", "5", "4"),
        f"{RAW}/num-edge-list.csv.gz:1: found '4'", "again"),
    "ogb gzip": ("ogb", put(f"{RAW}/edge.csv.gz", "0,1\n"), f"{RAW}/edge.csv.gz: the name ends in .gz but", "not gzip"),
    "ogb two splits": ("ogb", second_split, "ogb/split: found 2 splits, random, time", "keep the folder of one"),
    "ogb no valid": ("ogb", gone(f"{SPLIT}/valid.csv.gz"), f"{SPLIT}/valid.csv.gz: no such file", ""),
    "ogb split position": ("ogb", text(f"{SPLIT}/test.csv.gz", "4", "-4"), f"{SPLIT}/test.csv.gz:1:1: found '-4'", "0 to 5"),
    "ogb split meets": ("ogb", text(f"{SPLIT}/test.csv.gz", "4", "0"),
        "ogb:0:train_mask: found a node in two masks", "one purpose"),
    "ogb split unlabelled": ("ogb", text(f"{SPLIT}/test.csv.gz", "4", "3"),
        "ogb: the test split holds a node without a label", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", DEFECTS)
def test_defects(name, tmp_path, monkeypatch):
    form, damage, start, more = DEFECTS[name]
    monkeypatch.chdir(tmp_path)
    write(form, tmp_path)
    damage(Path())
    with pytest.raises(BadInput) as caught:
        read(form, Path())
    check(str(caught.value), start, more)
    assert caught.value.exit_code == 2


def check(message: str, start: str, more: str = "") -> None:
    assert message.startswith(start), message
    assert more in message, message
    assert message.isprintable()  # one line, and nothing a terminal would act on
    assert "; " in message  # what was found; what to do


def test_there_are_at_least_sixty_beside_those_of_csv():
    assert len(DEFECTS) >= 60
    assert len({(entry[0], entry[2], entry[3]) for entry in DEFECTS.values()}) == len(DEFECTS)


@pytest.mark.parametrize(
    ("nodes", "edges", "formats", "start"),
    [
        ("model.pt", "edges.csv", {}, "model.pt: found a .pt file, which only pickle can open; a pickle can run any code"),
        ("nodes.csv", "edges.pkl", {}, "edges.pkl: found a .pkl file, which only pickle"),
        ("graph.npz", "edges.csv", {}, "graph.npz: found a .npz file for --nodes; give it as --graph"),
        ("edges.mtx", "edges.csv", {}, "edges.mtx: found a .mtx file for --nodes; give it as --edges"),
        ("nodes.csv", "graph.gexf", {}, "graph.gexf: found a .gexf file for --edges; a whole graph is given as --graph"),
        ("nodes.csv", "edges.csv", {"nodes": "cvs"}, "--format: found 'cvs'; did you mean 'csv'?"),
        ("nodes.csv", "edges.csv", {"edges": "mxt"}, "--edge-format: found 'mxt'; did you mean 'mtx'?"),
        ("nodes.csv", "edges.csv", {"nodes": "parquet"}, "nodes.csv: this is no Parquet file"),
    ],
)
def test_formats_that_do_not_fit(nodes, edges, formats, start, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("csv", tmp_path)
    with pytest.raises(BadInput) as caught:
        read_pair(Path(nodes), Path(edges), formats=TableFormats(**formats))
    check(str(caught.value), start)


@pytest.mark.parametrize(
    ("path", "start"),
    [
        ("graph.pth", "graph.pth: found a .pth file, which only pickle can open"),
        ("nodes.csv", "nodes.csv: the name does not say which graph format this is; give tables as --nodes and --edges"),
        ("notes.doc", "notes.doc: the name does not say which graph format this is; name it with --format"),
        ("gone.npz", "gone.npz: no such file"),
        (".", ".: found no folder raw in it"),
    ],
)
def test_graph_files_that_do_not_fit(path, start, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("csv", tmp_path)
    Path("notes.doc").write_text("x")
    with pytest.raises(BadInput) as caught:
        read_graph_file(Path(path))
    check(str(caught.value), start)


@pytest.mark.parametrize(
    ("columns", "start"),
    [
        ({"text": ("titel",)}, "nodes.csv:1:titel: no such column for --text;"),
        ({"text": ("label",)}, "nodes.csv:1:label: found one column for both --label and --text;"),
        ({"text": ("f0",)}, "nodes.csv:1:f0: found no word of two or more letters;"),
        ({"weight": "w"}, "edges.csv:1:w: no such column for --weight;"),
        ({"weight": "source"}, "edges.csv:1:source: found one column for both --weight and --source;"),
        ({"split": "label"}, "nodes.csv:1:label: found one column for both --label and --split-column;"),
    ],
)
def test_columns_that_do_not_fit(columns, start, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("csv", tmp_path)
    Path("nodes.csv").write_text(Path("nodes.csv").read_text().replace("0.5", "5").replace("-1.25", "1").replace("0.001", "2"))
    Path("nodes.csv").write_text(re.sub(r"(\d)\.0", r"\1", Path("nodes.csv").read_text()))
    with pytest.raises(BadInput) as caught:
        read_pair(Path("nodes.csv"), Path("edges.csv"), TableColumns(**columns))
    check(str(caught.value), start)


def test_pyarrow_missing_is_said(tmp_path, monkeypatch):
    write("parquet", tmp_path)
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.parquet", None)
    with pytest.raises(BadInput, match=r"reading Parquet needs pyarrow; pip install 'spam-gnn\[parquet\]'"):
        read("parquet", tmp_path)
    assert SMALL.ids
