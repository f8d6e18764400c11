"""Two CSV files as a graph: exact values on good files, one exact line on bad ones, and a random round trip."""

from __future__ import annotations

import csv
import gzip
import io
import tempfile
import zipfile
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spam_gnn.data.readers.formats import open_table
from spam_gnn.data.splits import random_split
from spam_gnn.data.tables import TableColumns, read_tables
from spam_gnn.errors import BadInput
from spam_gnn.graph import Graph

NODES = "id,label,age,colour\n007,ham,1.5,red\nb,spam,2,blue\nc,,-3e1,red\n"
EDGES = "source,target\n007,b\nb,c\n"


@pytest.fixture(autouse=True)
def _in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # so that messages name the files as given, 'nodes.csv'


def read(nodes=NODES, edges=EDGES, names=("nodes.csv", "edges.csv"), directed=False, **roles) -> Graph:
    for name, content in zip(names, (nodes, edges), strict=True):
        Path(name).write_bytes(content.encode() if isinstance(content, str) else content)
    return read_tables(Path(names[0]), Path(names[1]), TableColumns(**roles), directed=directed)


def check_plain(graph: Graph) -> None:
    """The graph of NODES and EDGES, whatever the files looked like."""
    assert graph.node_names == ("007", "b", "c")
    assert graph.class_names == ("ham", "spam")
    assert graph.y.tolist() == [0, 1, -1]
    assert graph.x.dtype == torch.float32
    assert graph.x.tolist() == [[1.5, 0, 1], [2, 1, 0], [-30, 0, 1]]  # age, colour=blue, colour=red
    assert graph.edge_index.tolist() == [[1, 0, 2, 1], [0, 1, 1, 2]]
    assert not graph.directed
    assert not (graph.train_mask | graph.val_mask | graph.test_mask).any()
    assert graph.name == "nodes"
    assert graph.notes == ("column 'colour' one-hot encoded: 'blue', 'red'",)


@pytest.mark.parametrize(
    "dress",
    [
        lambda text: text,
        lambda text: "\ufeff" + text,
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", "\r"),
        lambda text: text.rstrip("\n"),
        lambda text: "\n" + text.replace("\n", "\n\n  \n"),
        lambda text: text.replace(",", ";"),
        lambda text: text.replace(",", "\t"),
        lambda text: text.replace(",", " , ").replace("\n", "\t\n"),
        lambda text: "\n".join(",".join(f'"{cell}"' for cell in row.split(",")) for row in text.splitlines()),
    ],
    ids=["plain", "mark", "crlf", "cr", "no-end", "blank-lines", "semicolon", "tabs", "spaces", "quoted"],
)
def test_the_same_graph_from_every_dress_of_csv(dress):
    check_plain(read(dress(NODES), dress(EDGES)))


def test_tsv_and_gzip_by_extension():
    def tabs(text):
        return text.replace(",", "\t")

    check_plain(read(tabs(NODES), tabs(EDGES), ("nodes.tsv", "edges.TAB")))
    check_plain(read(gzip.compress(NODES.encode()), gzip.compress(EDGES.encode()), ("nodes.csv.gz", "e.CSV.GZ")))
    check_plain(read(gzip.compress(tabs(NODES).encode()), EDGES, ("nodes.tsv.gz", "edges")))
    # The extension decides: commas in a header of tabs are part of the names.
    assert open_table_columns("a,b,c\td\n", "x.tsv") == ("a,b,c", "d")
    assert open_table_columns('"a;b;c",d\n', "x.csv") == ("a;b;c", "d")


def open_table_columns(text: str, name: str) -> tuple[str, ...]:
    Path(name).write_text(text)
    return open_table(Path(name)).columns


def test_quoted_delimiters_quotes_and_line_breaks_in_cells():
    nodes = 'id,label,kind\n"a,1",x,"say ""hi"", now"\n"b\n2","y",plain\nc,y,plain\n'
    graph = read(nodes, 'source,target\n"b\n2","a,1"\n', directed=True)
    assert graph.node_names == ("a,1", "b\n2", "c")
    assert graph.x.tolist() == [[0, 1], [1, 0], [1, 0]]
    assert graph.edge_index.tolist() == [[1], [0]]
    assert graph.notes[-1] == "column 'kind' one-hot encoded: 'plain', 'say \"hi\", now'"


@pytest.mark.parametrize(
    ("labels", "names", "y"),
    [
        (["10", "9", "-2", "9"], ("-2", "9", "10"), [2, 1, 0, 1]),
        (["10", "9", "x", ""], ("10", "9", "x"), [0, 1, 2, -1]),
        (["1.5", "1", "01", ""], ("01", "1", "1.5"), [2, 1, 0, -1]),
        (["True", "False", "", "True"], ("False", "True"), [1, 0, -1, 1]),
        (["é", "z", "ü", "z"], ("z", "é", "ü"), [1, 0, 2, 0]),
    ],
)
def test_class_names_are_sorted_numerically_where_all_are_numbers(labels, names, y):
    graph = read("id,y,f\n" + "".join(f"{i},{label},1\n" for i, label in enumerate(labels)), "s,t\n0,1\n")
    assert graph.class_names == names
    assert graph.y.tolist() == y
    assert graph.num_classes == len(names)


def test_columns_by_name_by_convention_and_by_place():
    nodes = "Node_ID,Class,f,label2\n1,a,0,u\n2,b,1,v\n"
    assert read(nodes, "To,FROM,w\n1,2,9\n", directed=True).edge_index.tolist() == [[1], [0]]
    chosen = read(nodes, "p,q,r\n9,1,2\n", directed=True, label="label2", source="r", target="q", id="Node_ID")
    assert chosen.edge_index.tolist() == [[1], [0]]
    assert chosen.class_names == ("u", "v")
    assert chosen.x.tolist() == [[1, 0, 0], [0, 1, 1]]  # Class=a, Class=b, f
    assert chosen.notes[-1] == "edge columns ignored: p"
    guessed = read("who,label,f\n1,a,0\n2,b,1\n", "u,v,date\n1,2,x\n")
    assert guessed.notes == (
        "node ids taken from the first column, 'who' (--id names another)",
        "edge sources taken from column 'u' (--source names another)",
        "edge targets taken from column 'v' (--target names another)",
        "edge columns ignored: date",
    )
    assert read(nodes, "u,target\n1,2\n", directed=True).edge_index.tolist() == [[0], [1]]


def test_split_column_in_every_spelling():
    words = ["train", "VAL", "valid", "Validation", "test", "", "none", "Training"]
    rows = "".join(f"{i},{i % 2},{word},1\n" for i, word in enumerate(words))
    graph = read("id,label,split,f\n" + rows, "source,target\n0,1\n")
    assert graph.train_mask.nonzero().flatten().tolist() == [0, 7]
    assert graph.val_mask.nonzero().flatten().tolist() == [1, 2, 3]
    assert graph.test_mask.nonzero().flatten().tolist() == [4]
    assert graph.num_features == 1
    named = read("id,label,fold,f\n" + rows, "source,target\n0,1\n", split="fold")
    assert torch.equal(named.train_mask, graph.train_mask)


def test_directed_edges_stay_as_they_are_and_loops_and_repeats_are_counted():
    graph = read(NODES, "source,target\n007,b\n007,b\nb,007\nc,c\n", directed=True)
    assert graph.edge_index.tolist() == [[1, 0], [0, 1]]
    assert graph.notes[:2] == ("1 self-loops dropped (the layer has its own self term)", "1 duplicate edges merged")
    assert graph.directed


def test_an_edge_file_without_rows_is_a_graph_without_edges():
    graph = read(NODES, "source,target\n\n")
    assert graph.edge_index.shape == (2, 0)
    assert graph.notes[-1] == "edges.csv has no rows: a graph without edges"


@pytest.mark.parametrize("directed", [False, True])
def test_without_features_the_degree_describes_a_node(directed):
    nodes = "id,label\n" + "".join(f"{i},{i % 2}\n" for i in range(9))
    graph = read(nodes, "source,target\n" + "".join(f"0,{i}\n" for i in range(1, 8)), directed=directed)
    expected = torch.zeros(9, 9)
    expected[0, 0], expected[1:8, 0] = torch.tensor(8.0).log(), torch.tensor(2.0).log()
    expected[0, 1 + 3] = expected[1:8, 1 + 1] = expected[8, 1 + 0] = 1  # degrees 7, 1 and 0
    torch.testing.assert_close(graph.x, expected)
    assert "no feature columns" in graph.notes[-1]


def test_mixed_columns():
    """True and False, empty cells among texts, big and padded numbers, and numbers that are few among texts."""
    nodes = "id,label,flag,word,big,mix\na,0,True,,99999999999999999999999, 1\nb,1,False,NA,+2.,x\nc,1,True,w,1e-3,x\n"
    graph = read(nodes, "source,target\na,b\n")
    flag, word, big, mix = graph.x.split([2, 3, 1, 2], dim=1)
    assert flag.tolist() == [[0, 1], [1, 0], [0, 1]]
    assert word.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    torch.testing.assert_close(big.flatten(), torch.tensor([1e23, 2, 1e-3]))
    assert mix.tolist() == [[1, 0], [0, 1], [0, 1]]
    assert graph.notes[0] == "1 isolated node kept, predicted without neighbours"
    assert len(graph.notes) == 4
    fifty = read("id,label,f\n" + "".join(f"{i},{i % 2},t{i:02d}\n" for i in range(50)), "source,target\n0,1\n")
    assert torch.equal(fifty.x, torch.eye(50))


def test_a_class_that_may_mean_unlabelled_is_noted():
    graph = read("id,label,f\na,0,1\nb,1,1\nc,-1,1\n", "source,target\na,b\n")
    assert graph.class_names == ("-1", "0", "1")
    assert graph.notes[1:] == ("'-1' is taken for a class; leave the label empty where it is unknown",)
    assert read("id,label,f\na,1,1\nb,-1,1\n", "source,target\na,b\n").notes == ()  # two classes, -1 and +1
    assert "'NaN' is taken" in read("id,label,f\na,1,1\nb,NaN,1\n", "source,target\na,b\n").notes[0]


def test_identity_and_split_do_not_depend_on_the_order_of_rows():
    header, *rows = ["id,label,f", *(f"n{i},{i % 3},{i}" for i in range(60))]
    edges = "source,target\nn0,n1\n"
    first = random_split(read("\n".join([header, *rows]), edges), 3)
    second = random_split(read("\n".join([header, *reversed(rows)]), edges), 3)
    assert torch.equal(first.identity, second.identity.flip(0))
    assert torch.equal(first.train_mask, second.train_mask.flip(0))
    assert len(set(first.identity.tolist())) == 60


def rows_of(*cells: str) -> str:
    """A node table of 40 rows, number 10 + i on line i + 2, in which the first rows are replaced."""
    values = [*cells, *(str(10 + i) for i in range(40 - len(cells)))]
    return "id,label,f\n" + "".join(f"{i},{i % 2},{value}\n" for i, value in enumerate(values))


def zipped(name: str) -> bytes:
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as archive:
        archive.writestr(name, "x")
    return memory.getvalue()


def case(name: str, message: str, *more: str, nodes: str | bytes = NODES, edges: str | bytes = EDGES, **roles: str):
    return pytest.param(nodes, edges, roles, message, more, id=name)


@pytest.mark.parametrize(
    ("nodes", "edges", "roles", "message", "more"),
    [
        case("empty", "nodes.csv: the file is empty;", nodes=""),
        case("blank", "edges.csv: the file is empty;", edges=" \n\n"),
        case("header-only", "nodes.csv:1: found a header and no rows;", nodes="id,label\n"),
        case("no-column", "nodes.csv:1:lable: no such column for --label;", "did you mean 'label'?",
             "id, label, age, colour", label="lable"),
        case("no-id", "nodes.csv:1:ID: no such column for --id; did you mean 'id'?", id="ID"),
        case("no-split", "nodes.csv:1:fold: no such column for --split-column; the columns are id,", split="fold"),
        case("no-source", "edges.csv:1:sorce: no such column for --source; did you mean 'source'?", source="sorce"),
        case("no-target", "edges.csv:1:zzz: no such column for --target; the columns are source, target",
             target="zzz"),
        case("no-label", "nodes.csv:1: found no label column among id, a, b;", "--label", nodes="id,a,b\n1,2,3\n"),
        case("many-columns", "nodes.csv:1: found no label column among", "c19 and 10 more;",
             nodes=",".join(f"c{i}" for i in range(30)) + "\n"),
        case("first-is-label", "nodes.csv:1: found no id column among label, f;", nodes="label,f\n1,2\n"),
        case("one-role", "nodes.csv:1:label: found one column for both --id and --label;", id="label"),
        case("one-end", "edges.csv:1:source: found one column for both --source and --target;", target="source"),
        case("repeated-column", "nodes.csv:1:f: found 2 columns of this name;", nodes="id,f,label,f\n1,2,3,4\n"),
        case("nameless", "nodes.csv:1: column 1 has no name;", "index=False", nodes=",id,label\n0,a,b\n"),
        case("one-column", "edges.csv:1: found one column only, '# 1 2',", "comma, semicolon or tab",
             edges="# 1 2\n3 4\n"),
        case("no-header", "edges.csv:1: the first line (1, 2) looks like data;", edges="1,2\n3,4\n"),
        case("edge-header", "edges.csv:1: the first line ('b', 'c') looks like an edge;", edges="b,c\n007,b\n"),
        case("repeated-id", "nodes.csv:4:id: found id 'a' again, it is on line 2 already (1 such rows);",
             nodes="id,label\na,0\nb,1\na,1\n"),
        case("empty-id", "nodes.csv:5:id: the id is empty (1 such rows);", nodes="id,label\na,0\nb,1\n\n ,1\n"),
        case("unknown-id", "edges.csv:3:target: found 'zz', which is no id in nodes.csv; add",
             edges="source,target\n007,b\nb,zz\n"),
        case("other-form", "edges.csv:2:source: found '7', which is no id in nodes.csv (2 such end points);",
             "did you mean '007'?", edges="source,target\n7,b\n7,c\n"),
        case("empty-end", "edges.csv:3:target: the end point is empty;", edges="source,target\n007,b\nb,\n"),
        case("short-row", "nodes.csv:3: found 2 fields where the header has 4 (1 such rows);",
             nodes="id,label,f,g\na,0,1,1\nb,1\nc,1,1,1\n"),
        case("long-row", "edges.csv:2: found 3 fields where the header has 2", "a comma",
             edges="source,target\n007,b,c\n"),
        case("line-after-quoted-break", "nodes.csv:4: found 1 field where", nodes='id,label\n"a\nx",0\nb\n'),
        case("stray-quote", "nodes.csv:3: found a quote mark where no field", nodes='id,label\na,0\nb,5" pipe\nc,1\n'),
        case("open-quote", "nodes.csv:3: found a quote mark that is never closed;", nodes='id,label\na,0\nb,"1\nc,1\n'),
        case("text-in-number", "nodes.csv:4:f: found 'x1' in a column of numbers (1 such cell); write",
             nodes=rows_of("1", "2", "x1")),
        case("texts-in-number", "nodes.csv:2:f: found 'x' in a column of numbers (2 such cells);",
             nodes=rows_of("x", "", "y")),
        case("missing", "nodes.csv:3:f: found an empty cell in a column of numbers (2 such cells); fill it in",
             nodes=rows_of("1", "", "NA")),
        case("nan", "nodes.csv:2:f: found 'NaN' in a column of numbers (1 such cell); fill", nodes=rows_of("NaN")),
        case("mostly-missing", "nodes.csv:2:f: found 'n/a' in a column of numbers (2 such cells); fill",
             nodes="id,label,f\na,0,n/a\nb,1,\nc,1,3\n"),
        case("inf", "nodes.csv:4:f: found '-inf' in a column of numbers (1 such cell), infinite",
             nodes=rows_of("1", "2", "-inf")),
        case("float32", "nodes.csv:3:f: found '1e39' in a column of numbers (1 such cell), infinite or too large",
             nodes=rows_of("1", "1e39")),
        case("empty-column", "nodes.csv:1:f: every cell is empty;", nodes="id,label,f\na,0,\nb,1,NA\n"),
        case("decimal-comma", "nodes.csv:2:f: found '1,5', a number with a comma;", "decimal point",
             nodes="id;label;f\na;0;1,5\nb;1;2,5\n"),
        case("many-texts", "nodes.csv:1:f: found 51 different texts (first: 't0'), more than 50;",
             nodes="id,label,f\n" + "".join(f"{i},{i % 2},t{i}\n" for i in range(51))),
        case("no-labels", "nodes.csv:1:label: every label is empty;", nodes="id,label\na,\nb, \n"),
        case("one-class", "nodes.csv:1:label: found one class only, 'x';", nodes="id,label\na,x\nb,\nc,x\n"),
        case("labels-distinct", "nodes.csv:1:label: found 21 different labels on 21 nodes (first: '0')", "regression",
             nodes="id,label\n" + "".join(f"a{i},{i}\n" for i in range(21))),
        case("labels-measured", "nodes.csv:1:label: found 30 different labels on 31 nodes", "regression",
             nodes="id,label\n" + "".join(f"a{i},{max(i, 1) / 8}\n" for i in range(31))),
        case("split-word", "nodes.csv:3:split: found 'trian'; did you mean 'train'? use train, val, test",
             nodes="id,label,split\na,0,train\nb,1,trian\n"),
        case("split-number", "nodes.csv:2:split: found '0.3'; use train", "feature", nodes="id,label,split\na,0,0.3\n"
             "b,1,0.1\n"),
        case("split-unlabelled", "nodes.csv:3:split: found 'Train' for a node without a label (1 such rows);",
             nodes="id,label,split\na,0,train\nb,,Train\nc,1,\n"),
        case("split-no-train", "nodes.csv:1:split: no node is marked train;", "random split",
             nodes="id,label,split\na,0,test\nb,1,\n"),
        case("latin1", "nodes.csv:2: byte 0xe9 at offset 11 is not UTF-8;", "iconv", nodes=b"id,label\nb,\xe9\n"),
        case("latin1-cr", "nodes.csv:2: byte 0xe9 at offset 14 is", nodes=b"\xef\xbb\xbfid,label\rb,\xe9\r"),
        case("nul", "edges.csv:2: found a NUL byte at offset 14:", edges="source,target\n\0,b\n"),
        case("utf16", "nodes.csv: this looks like UTF-16, not text; save it as UTF-8", nodes=NODES.encode("utf-16")),
        case("zip", "nodes.csv: this looks like a zip file, not text; unzip", nodes=zipped("nodes.txt")),
        case("xlsx", "nodes.csv: this looks like an Excel or other workbook", nodes=zipped("xl/workbook.xml")),
        case("parquet", "edges.csv: this looks like a Parquet file", "--edge-format parquet", edges=b"PAR1\x15\x04"),
        case("gzip-unnamed", "nodes.csv: this looks like a gzip file", "add .gz", nodes=gzip.compress(b"id,label\n")),
        case("web-page", "nodes.csv: this looks like a web page", nodes="<!DOCTYPE html><p>Not found"),
        case("one-line-always", "nodes.csv:1:a b: found 2 columns of this name;", nodes='"a\nb","a\nb"\n1,2\n'),
        case("escape-codes", "nodes.csv:3:split: found ' [31mred';", nodes="id,label,split\na,0,\nb,1,\x1b[31mred\n"),
        case("long-cell", f"edges.csv:2:source: found '{'x' * 37}...', which", edges=f"source,target\n{'x' * 999},b\n"),
    ],
)  # fmt: skip
def test_defects(nodes, edges, roles, message, more):
    with pytest.raises(BadInput) as caught:
        read(nodes, edges, **roles)
    check_message(caught, message, *more)


def check_message(caught: pytest.ExceptionInfo[BadInput], start: str, *more: str) -> None:
    text = str(caught.value)
    assert type(caught.value) is BadInput
    assert text.startswith(start)
    assert all(part in text for part in more), text
    assert text.isprintable()  # one line, and nothing a terminal would act on
    assert ";" in text  # what was found; what to do


def test_defects_of_the_file_itself(tmp_path, monkeypatch):
    read()
    (tmp_path / "bad.csv.gz").write_bytes(b"id,label\n")
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(NODES.encode())[:-9])
    (tmp_path / "folder").mkdir()
    for name, start in {
        "node.csv": "node.csv: no such file; did you mean nodes.csv?",
        "qqqqqq": "qqqqqq: no such file; check the name and the folder '.'",
        "away/nodes.csv": "away/nodes.csv: no such file: there is no folder 'away';",
        "folder": "folder: found a folder;",
        "bad.csv.gz": "bad.csv.gz: the name ends in .gz but the file is damaged or not gzip at all;",
        "cut.csv.gz": "cut.csv.gz: the name ends in .gz but the file is cut short;",
        "nodes.csv/x": "nodes.csv/x: ",
    }.items():
        with pytest.raises(BadInput) as caught:
            read_tables(Path(name), Path("edges.csv"))
        check_message(caught, start)

    def denied(self: Path, mode: str) -> bytes:  # chmod does not stop root, who runs tests in containers
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", denied)
    with pytest.raises(BadInput) as caught:
        read_tables(Path("nodes.csv"), Path("edges.csv"))
    check_message(caught, "nodes.csv: no permission to read this file;")


def test_the_same_file_for_both():
    read()
    for name, missing in {"nodes.csv": "no source and no target column;", "edges.csv": "no target"}.items():
        roles = TableColumns(label="target", target="missing") if name == "edges.csv" else TableColumns()
        with pytest.raises(BadInput) as caught:
            read_tables(Path(name), Path.cwd() / name, roles)
        check_message(caught, f"{name}:1: the same file is given for nodes and for edges, and it has {missing}")
    Path("both.csv").write_text("id,label,source,target,f\na,0,a,b,1\nb,1,b,a,2\n")
    assert read_tables(Path("both.csv"), Path("both.csv"), TableColumns(label="label")).num_edges == 2


CELL = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\0"), min_size=1, max_size=6)
LINE_END = st.sampled_from(["\n", "\r\n"])
NAME = CELL.filter(lambda s: s == s.strip() and s not in ("source", "target"))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_written_graph_reads_back_equal(data):
    names = data.draw(st.lists(NAME, min_size=3, max_size=8, unique=True))
    n = len(names)
    numbers = st.floats(width=32, allow_nan=False, allow_infinity=False)
    x = torch.tensor(data.draw(st.lists(st.lists(numbers, min_size=2, max_size=2), min_size=n, max_size=n)))
    y = torch.tensor([0, 1, 2, *data.draw(st.lists(st.integers(-1, 2), min_size=n - 3, max_size=n - 3))])
    node = st.integers(0, n - 1)
    ends = torch.tensor(data.draw(st.lists(st.tuples(node, node), max_size=12)), dtype=torch.int64).reshape(-1, 2).T
    directed = data.draw(st.booleans())
    form = {"delimiter": data.draw(st.sampled_from(",;\t")), "lineterminator": data.draw(LINE_END)}
    classes = ("1e1", "11", "300")
    graph = Graph.build(x, ends, y, directed=directed, class_names=classes, node_names=names)

    with tempfile.TemporaryDirectory() as folder:
        nodes, edges = Path(folder, "nodes.csv"), Path(folder, "edges.csv")
        with nodes.open("w", encoding="utf-8", newline="") as file:
            labels = ["" if c < 0 else classes[c] for c in y.tolist()]
            rows = zip(names, x[:, 0].tolist(), labels, x[:, 1].tolist(), strict=True)
            csv.writer(file, **form).writerows([("id", "a", "label", "b"), *rows])
        with edges.open("w", encoding="utf-8", newline="") as file:
            rows = [(names[i], names[j]) for i, j in ends.T.tolist()]
            csv.writer(file, **form).writerows([("source", "target"), *rows])
        again = read_tables(nodes, edges, directed=directed)

    for part in ("x", "y", "edge_index", "train_mask"):
        torch.testing.assert_close(getattr(again, part), getattr(graph, part), rtol=0, atol=0)
    assert (again.node_names, again.class_names, again.directed) == (graph.node_names, graph.class_names, directed)


PIECE = st.sampled_from([*',;\n\r"\t 0', "nan", "é", "\x85", "id"])


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 70), st.integers(0, 3), PIECE)), st.booleans())
def test_whatever_is_in_a_file_there_is_a_graph_or_one_line(cuts, in_nodes):
    broken = NODES if in_nodes else EDGES
    for place, length, put in cuts:
        broken = broken[:place] + put + broken[place + length :]
    message, graph = "", None
    try:
        graph = read(broken, EDGES) if in_nodes else read(NODES, broken)
    except BadInput as error:
        message = str(error)
    if graph is None:
        assert message.isprintable()
        assert message.startswith("nodes.csv:" if in_nodes else "edges.csv:") or "no id in nodes.csv" in message
    else:
        assert graph.num_nodes == len(graph.node_names or ()) == len(graph.y) == len(graph.x)
