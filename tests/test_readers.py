"""Every format gives the same graph; options, rules and notes; round trips."""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spam_gnn.data.graph_files import read_graph_file
from spam_gnn.data.readers.ahead import in_order
from spam_gnn.data.readers.content import text_pieces
from spam_gnn.data.readers.delimited import DelimitedTable
from spam_gnn.data.readers.numbers_of_bytes import plain_numbers
from spam_gnn.data.tables import TableColumns, TableFormats, read_pair
from spam_gnn.errors import BadInput, TooLarge
from spam_gnn.graph import Graph
from spam_gnn.source import DataSource
from written import FORMATS, SMALL, WHOLE, Small, read, write


def check(graph: Graph, small: Small, form: str) -> None:
    """The graph equals what was written, as far as the format can hold it."""
    expected = Graph.build(
        torch.tensor(small.features, dtype=torch.float32),
        torch.tensor(small.edges, dtype=torch.int64).reshape(-1, 2).T, directed=small.directed,
    )  # fmt: skip
    torch.testing.assert_close(graph.x.to_dense(), expected.x, rtol=0, atol=0)
    torch.testing.assert_close(graph.edge_index, expected.edge_index, rtol=0, atol=0)
    assert graph.directed == small.directed
    assert [None if c < 0 else graph.class_names[c] for c in graph.y.tolist()] == small.labels
    for part in ("train", "val", "test"):
        assert getattr(graph, f"{part}_mask").tolist() == [s == part for s in small.splits], part
    if form != "ogb":
        assert list(graph.node_names or ()) == small.ids


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_gives_the_same_graph(form, tmp_path):
    write(form, tmp_path)
    reading = read(form, tmp_path)
    check(reading.graph, SMALL, form)
    assert sum(column.width for column in reading.columns) == reading.graph.num_features
    assert "label" in [column.kind for column in reading.columns]


@pytest.mark.parametrize("form", [form for form in FORMATS if form not in WHOLE])
def test_the_same_draws_whatever_the_table_format(form, tmp_path):
    """A node's identity is its id, so the same nodes get the same split and the same signs."""
    write("csv", tmp_path)
    write(form, tmp_path)
    assert torch.equal(read(form, tmp_path).graph.identity, read("csv", tmp_path).graph.identity)


NUMBER = st.floats(width=32, allow_nan=False, allow_infinity=False, allow_subnormal=False)
WORD = st.text("abcdefgh0123456789_", min_size=1, max_size=5)


@st.composite
def smalls(draw: st.DrawFn) -> Small:
    ids = draw(st.lists(WORD.map(lambda w: f"n{w}"), min_size=4, max_size=7, unique=True))
    n = len(ids)
    labels = ["0", "1", *draw(st.lists(st.sampled_from([None, "0", "1", "2"]), min_size=n - 2, max_size=n - 2))]
    labels = [label if label != "2" or "1" in labels else "1" for label in labels]
    part = st.sampled_from(["train", "val", "test", ""])
    splits = ["train", *("" if label is None else draw(part) for label in labels[1:])]
    if not all(part in splits for part in ("val", "test")):  # OGB's folder needs all three files to have a row
        splits = ["train", "val" if labels[1] else "", *splits[2:]]
        place = next((i for i in range(2, n) if labels[i] is not None), None)
        if place is None:
            labels[2], place = "0", 2
        splits[place] = "test"
    node = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(node, node).filter(lambda e: e[0] != e[1]), min_size=1, max_size=8, unique_by=frozenset))
    return Small(ids, labels, splits, draw(st.lists(st.tuples(NUMBER, NUMBER).map(list), min_size=n, max_size=n)), edges)


@pytest.mark.parametrize("form", FORMATS)
@settings(max_examples=15, deadline=None, derandomize=True)
@given(small=smalls())
def test_round_trips(form, small):
    with tempfile.TemporaryDirectory() as name:
        write(form, Path(name), small)
        check(read(form, Path(name)).graph, small, form)


@pytest.mark.parametrize("form", ["csv", "tsv", "csv.gz"])
def test_without_a_header_columns_are_numbers(form, tmp_path):
    separator = "\t" if form == "tsv" else ","
    SMALL.frame.to_csv(tmp_path / f"nodes.{form}", index=False, header=False, sep=separator)
    SMALL.ends.to_csv(tmp_path / f"edges.{form}", index=False, header=False, sep=separator)
    columns = TableColumns(label="2", split="3")
    check(read(form, tmp_path, columns, header=False).graph, SMALL, form)
    with pytest.raises(BadInput, match="found no label column among 1, 2, 3, 4, 5; name it with --label"):
        read(form, tmp_path, header=False)


def test_edge_lists_in_every_dress(tmp_path):
    write("csv", tmp_path)
    pairs = list(SMALL.ends.itertuples(index=False))
    for text in (
        "".join(f"{a}\t{b}\n" for a, b in pairs),
        "".join(f"  {a}   {b} \r\n" for a, b in pairs),
        "% comment\n\n" + "".join(f"{a},{b}\n# between\n" for a, b in pairs),
        "".join(f"{a} ; {b}\n" for a, b in pairs).rstrip("\n"),
        "".join(f"{a} {b} 0.5\n" for a, b in pairs),
        "".join(f"{a} {b} {{'weight': 3}}\n" for a, b in pairs),
        "source target\n" + "".join(f"{a} {b}\n" for a, b in pairs),
    ):
        (tmp_path / "list.txt").write_bytes(text.encode())
        check(read_pair(tmp_path / "nodes.csv", tmp_path / "list.txt").graph, SMALL, "edges")
    (tmp_path / "list.txt").write_text("# nothing\n")
    assert read_pair(tmp_path / "nodes.csv", tmp_path / "list.txt").graph.num_edges == 0
    check(read_pair(tmp_path / "nodes.csv", tmp_path / "edges.csv", formats=TableFormats(edges="csv")).graph, SMALL, "csv")


def test_matrices(tmp_path):
    write("mtx", tmp_path)
    matrix = scipy.sparse.coo_array(([1.0, 0.0, 2.5], ([0, 1, 4], [1, 2, 2])), shape=(6, 6))
    scipy.io.mmwrite(tmp_path / "edges.mtx", matrix)
    graph = read("mtx", tmp_path, directed=True).graph
    assert graph.edge_index.tolist() == [[0, 4], [1, 2]]
    assert any("1 entries" in note and "zero" in note for note in graph.notes)
    scipy.io.mmwrite(tmp_path / "edges.mtx", matrix + matrix.T, symmetry="symmetric")
    assert read("mtx", tmp_path, directed=True).graph.edge_index.tolist() == [[1, 0, 4, 2], [0, 1, 2, 4]]
    source = DataSource(graph=str(tmp_path / "edges.mtx"), nodes=str(tmp_path / "nodes.csv"))
    assert source.read().graph.num_edges == 4
    assert DataSource.from_json(json.loads(json.dumps(source.to_json()))) == source


def test_npz_forms(tmp_path):
    path, edges = tmp_path / "graph.npz", np.array([[0, 1], [1, 2]])
    dense = np.array([[0, 2.0], [1, 0], [0, 0]])
    sparse = scipy.sparse.csr_array(dense)
    features = {"x_data": sparse.data, "x_indices": sparse.indices, "x_indptr": sparse.indptr, "x_shape": np.array([3, 2])}
    np.savez_compressed(path, edge_index=edges, y=np.array(["a", "b", ""]), edge_weight=np.ones(2), other=dense, **features)
    graph = read_graph_file(path).graph
    assert graph.x.layout == torch.sparse_csr
    assert graph.x.to_dense().tolist() == dense.tolist()
    assert (graph.class_names, graph.y.tolist()) == (("a", "b"), [0, 1, -1])
    assert any("'edge_weight' accepted and not used" in note for note in graph.notes)
    assert "arrays ignored: other" in graph.notes
    np.savez(path, edge_index=edges, y=np.array([1.0, np.nan, 5.0]), x=np.asfortranarray(dense))
    graph = read_graph_file(path).graph
    assert (graph.class_names, graph.y.tolist(), graph.x.tolist()) == (("1", "5"), [0, -1, 1], dense.tolist())
    np.savez(path, edge_index=edges, y=np.array([[1], [-1], [5]]))
    graph = read_graph_file(path).graph
    assert (graph.y.tolist(), graph.num_features) == ([0, -1, 1], 9)  # no x: degrees


def test_an_npz_that_would_not_fit_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    write("npz", tmp_path)
    monkeypatch.setattr("spam_gnn.data.readers.npz.available_memory_mb", lambda: 0.0)
    with pytest.raises(TooLarge, match="MiB unpacked"):
        read("npz", tmp_path)


def test_graphml_types_direction_and_gexf_display_labels(tmp_path):
    g = nx.DiGraph()
    g.add_node("a", y=1, big=True, size=3, label="Anna")
    g.add_node("b", y=2, big=False, size=4, label="Bob")
    g.add_node("c", big=True, size=5, label="Cleo")
    g.add_edge("a", "b", weight=2.0)
    nx.write_graphml(g, tmp_path / "g.graphml")
    reading = read_graph_file(tmp_path / "g.graphml", columns=TableColumns(label="y", text=("label",)))
    assert reading.graph.directed
    assert (reading.graph.class_names, reading.graph.y.tolist()) == (("1", "2"), [0, 1, -1])
    assert {c.name: c.kind for c in reading.columns} == {
        "id": "id", "y": "label", "big": "one-hot", "size": "number", "label": "words",
    }  # fmt: skip
    assert any("'weight' accepted and not used" in note for note in reading.graph.notes)
    nx.write_gexf(g, tmp_path / "g.gexf")
    assert "label" not in {c.name for c in read_graph_file(tmp_path / "g.gexf").columns}
    g.nodes["c"]["y"] = 1
    nx.write_gexf(g, tmp_path / "g.gexf")
    named = read_graph_file(tmp_path / "g.gexf", columns=TableColumns(label="label")).graph
    assert named.class_names == ("Anna", "Bob", "Cleo")


def test_parquet_types(tmp_path):
    frame = pd.DataFrame({
        "id": [10, 11, 12], "label": [1.0, None, 3.0], "kind": pd.Categorical(["x", "y", "x"]), "flag": [True, False, True],
        "count": pd.array([1, 2, 3], dtype="uint8"), "size": [1.5, 2.5, -3.0],
    })  # fmt: skip
    frame.to_parquet(tmp_path / "nodes.pq")
    pd.DataFrame({"source": [10, 12], "target": [11, 10], "when": pd.to_datetime(["2020-01-01", "2021-01-01"])}).to_parquet(
        tmp_path / "edges.pq")  # fmt: skip
    graph = read_pair(tmp_path / "nodes.pq", tmp_path / "edges.pq", directed=True).graph
    assert (graph.class_names, graph.y.tolist(), graph.node_names) == (("1", "3"), [0, -1, 1], ("10", "11", "12"))
    assert graph.x.tolist() == [[1, 0, 0, 1, 1, 1.5], [0, 1, 1, 0, 2, 2.5], [1, 0, 0, 1, 3, -3]]
    assert graph.edge_index.tolist() == [[2, 0], [0, 1]]
    frame.to_csv(tmp_path / "nodes.csv", index=False)
    again = read_pair(tmp_path / "nodes.csv", tmp_path / "edges.pq", directed=True).graph
    assert torch.equal(again.x, graph.x)


def test_a_text_column_as_a_bag_of_words(tmp_path):
    texts = ["Deep nets, deep!", "graph nets", "", "a graph"]
    nodes = pd.DataFrame({"id": list("abcd"), "label": [0, 1, 0, 1], "n": [1.0, 2, 3, 4], "title": texts})
    nodes.to_csv(tmp_path / "nodes.csv", index=False)
    (tmp_path / "edges.csv").write_text("source,target\na,b\n")
    reading = read_pair(tmp_path / "nodes.csv", tmp_path / "edges.csv", TableColumns(text=("title",)))
    assert reading.graph.x.to_dense().tolist() == [[1, 2, 0, 1], [2, 0, 1, 1], [3, 0, 0, 0], [4, 0, 1, 0]]  # deep, graph, nets
    assert [(c.kind, c.width) for c in reading.columns[2:]] == [("number", 1), ("words", 3)]
    assert any("column 'title' counted as 3 words" in n and "1 nodes have none" in n for n in reading.graph.notes)


def test_rows_and_types_across_pieces(tmp_path):
    """Pieces of any size give the same cells: a cut may fall inside a quote, a character or a line end."""
    path = tmp_path / "t.csv"
    path.write_bytes('id,a,b\r\n1,"x\r\n,""y""",2\r\nü€𝄞,q,3\r\n\r\n007,r,x4\r\n'.encode())
    whole = list(zip(*DelimitedTable("t", lambda: text_pieces(path), ",").texts(["id", "a", "b"]), strict=True))
    assert whole == [("1", 'x\n,"y"', "2"), ("ü€𝄞", "q", "3"), ("007", "r", "x4")]
    for size in range(1, 60):
        table = DelimitedTable("t", lambda size=size: text_pieces(path, size), ",")
        assert list(zip(*table.texts(["id", "a", "b"]), strict=True)) == whole, size
        assert [table.place(row) for row in range(3)] == [2, 4, 6]
        doubtful = [set(block.number) for block in table.blocks(number=["b"])]
        assert set() in doubtful  # the block with x4


def test_a_row_of_blanks_alone_is_no_row():
    text = b"a\n1\n \n\t\n \t \n\n2\n"
    table = DelimitedTable("f", lambda: iter([text]), ",")
    assert table.texts(["a"])[0].tolist() == ["1", "2"]
    assert [table.place(row) for row in range(2)] == [2, 7]


def test_blocks_come_in_order_and_a_defect_after_what_stands_before_it():
    def jobs():
        yield from ((lambda k=k: time.sleep(0.02 * (4 - k)) or k) for k in range(4))
        raise BadInput("the text goes wrong here")

    seen = []
    with pytest.raises(BadInput, match="goes wrong"):
        seen.extend(in_order(jobs()))
    for result in (results := in_order(iter([lambda: 1, lambda: 1 // 0, lambda: 3]))):
        seen.append(result)
        with pytest.raises(ZeroDivisionError):
            next(results)
        break
    assert seen == [0, 1, 2, 3, 1]


def test_whole_numbers_are_looked_up_by_their_spelling(tmp_path):
    (tmp_path / "nodes.csv").write_text("id,label,f\n7,a,1\n8,b,2\n-3,a,0\n")
    for good in ("7,8\n", '"7", 8\n', "-3,8\n"):
        (tmp_path / "edges.csv").write_text(f"source,target\n{good}")
        assert read_pair(tmp_path / "nodes.csv", tmp_path / "edges.csv").graph.num_edges == 2
    for bad in ("007", "+7", "7.0", "-03", "7e0", "99999999999999999999"):
        (tmp_path / "edges.csv").write_text(f"source,target\n8,7\n{bad},8\n")
        with pytest.raises(BadInput, match=f"edges.csv:3:source: found '{bad.replace('+', '.')}', which is no id"):
            read_pair(tmp_path / "nodes.csv", tmp_path / "edges.csv")
    (tmp_path / "edges.csv").write_text("source,target\n9000000000,8\n")
    with pytest.raises(BadInput, match="found '9000000000'"):
        read_pair(tmp_path / "nodes.csv", tmp_path / "edges.csv")


def test_self_loops_duplicates_isolated_and_weights_are_counted(tmp_path):
    (tmp_path / "nodes.csv").write_text("id,label,f\na,0,1\nb,1,2\nc,0,3\nd,1,3\n")
    (tmp_path / "edges.csv").write_text("source,target,weight,when\na,b,1,x\na,b,2,x\nb,a,0,x\nc,c,1,x\n")
    graph = read_pair(tmp_path / "nodes.csv", tmp_path / "edges.csv").graph
    assert graph.num_edges == 2
    assert graph.notes == (
        "1 self-loops dropped (the layer has its own self term)", "1 duplicate edges merged",
        "2 isolated nodes kept, predicted without neighbours",
        "edge weights in column 'weight' accepted and not used: how far an edge is believed is learned",
        "edge columns ignored: when",
    )  # fmt: skip


GRAPHML = """<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="a" for="node" attr.name="class" attr.type="string"/>
<key id="b" for="node" attr.name="size" attr.type="double"><default>2.5</default></key>
<graph edgedefault="undirected">
<node id="u"><data key="a">x</data></node><node id="v"><data key="a">y</data><data key="b">7</data></node>
<edge source="u" target="v"/></graph></graphml>"""
GEXF = """<gexf xmlns="http://www.gexf.net/1.2draft" version="1.2"><graph defaultedgetype="directed">
<attributes class="node"><attribute id="0" title="class" type="string"/><attribute id="1" title="size" type="double">
<default>2.5</default></attribute></attributes>
<nodes><node id="u"><attvalues><attvalue for="0" value="x"/></attvalues></node>
<node id="v"><attvalues><attvalue for="0" value="y"/><attvalue for="1" value="7"/></attvalues></node></nodes>
<edges><edge id="0" source="u" target="v" type="mutual"/></edges></graph></gexf>"""


@pytest.mark.parametrize(("form", "content"), [("graphml", GRAPHML), ("gexf", GEXF)])
def test_declared_defaults_fill_the_gaps_and_mutual_edges_have_both_directions(form, content, tmp_path):
    """networkx reads defaults and does not apply them; a mutual edge of a directed GEXF file is two."""
    (tmp_path / f"graph.{form}").write_text(content)
    graph = read_graph_file(tmp_path / f"graph.{form}").graph
    assert graph.x.tolist() == [[2.5], [7.0]]
    assert graph.edge_index.tolist() == [[1, 0], [0, 1]]


PLAIN = st.one_of(
    st.integers(-(10**6), 10**6).map(str),
    st.floats(-1e6, 1e6).map(lambda value: f"{value:.4f}"),
    st.floats(1e-15, 1e20).map(lambda value: f"{value:.6e}"),
    st.sampled_from(["+5", "5.", ".5", "-0", "007", "1E3", "9007199254740992", "1e-22", "-.25e+2"]),
)
ODD = ("", "nan", "inf", " 1", "1 ", '"1"', '"1,2"', "0x10", "1e", "-", ".", "1_0", "9007199254740993", "1e23", "é")


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["a", "", '"x,\n""y"""']), PLAIN, PLAIN | st.sampled_from(ODD)), min_size=1))
def test_plain_numbers_are_those_python_reads_and_others_are_left_alone(rows):
    """The nearest float64 of the decimal text, then float32; a column with one cell that is not plain is said to be so."""
    lines = [f"{text},{sure},{other}\n".encode() for text, sure, other in rows]
    starts = np.cumsum([0, *map(len, lines)])[:-1]
    read = plain_numbers(b"".join(lines), starts, 3, [2, 1], ",")
    assert read.values[:, 1].tolist() == [np.float32(float(sure)) for _, sure, _ in rows]
    assert read.rest.decode() == "".join(f"{text}\n" for text, _, _ in rows)
    odd = set(ODD) & {other for _, _, other in rows}
    assert read.plain.tolist() == [not odd, True]
    if not odd:
        assert read.values[:, 0].tolist() == [np.float32(float(other)) for _, _, other in rows]
