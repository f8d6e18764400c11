"""Which reader a file gets: by its extension, or by the format the user names."""

from __future__ import annotations

from pathlib import Path

from spam_gnn.data.readers.delimited import open_delimited
from spam_gnn.data.readers.edge_list import open_edge_list
from spam_gnn.data.readers.matrix_market import MatrixEdges
from spam_gnn.data.readers.parquet import ParquetTable
from spam_gnn.data.readers.table import Table, defect
from spam_gnn.errors import one_of

TABLE_FORMATS = ("csv", "tsv", "parquet")
EDGE_FORMATS = (*TABLE_FORMATS, "edges", "mtx")
GRAPH_FORMATS = ("npz", "graphml", "gexf", "ogb")
_EXTENSIONS = {
    "csv": "csv", "tsv": "tsv", "tab": "tsv", "parquet": "parquet", "pq": "parquet", "edges": "edges", "edgelist": "edges",
    "el": "edges", "mtx": "mtx", "npz": "npz", "graphml": "graphml", "gexf": "gexf",
}  # fmt: skip
_PICKLES = ("pt", "pth", "pkl", "pickle", "joblib")
_CONVERT = (
    "a pickle can run any code, so none is ever loaded; open it in your own Python and hand the PyG Data to "
    "SpaMClassifier.fit, or save its arrays with numpy.savez (x, edge_index, y, train_mask, val_mask, test_mask)"
)


def extension(path: Path) -> str:
    """The last part of the name that says what is in the file, without .gz."""
    return Path(path.name.lower().removesuffix(".gz")).suffix.removeprefix(".")


def format_of(path: Path, named: str | None, allowed: tuple[str, ...], option: str) -> str | None:
    """The format of a file; None where neither the user nor the name says."""
    if named is not None:
        return one_of(named, allowed, option)
    ending = extension(path)
    if ending in _PICKLES:
        raise defect(str(path), f"found a .{ending} file, which only pickle can open; {_CONVERT}")
    return _EXTENSIONS.get(ending)


def is_matrix(path: Path, named: str | None) -> bool:
    """Whether a file is a MatrixMarket matrix, which needs a node table beside it."""
    return (named or _EXTENSIONS.get(extension(path))) == "mtx"


def open_table(path: Path, named: str | None = None, *, header: bool = True) -> Table:
    """A node table; a file whose name says nothing is read as CSV."""
    form = format_of(path, named, TABLE_FORMATS, "--format") or "csv"
    if form not in TABLE_FORMATS:
        advice = "give it as --graph" if form in GRAPH_FORMATS else "give it as --edges, and a table as --nodes"
        raise defect(str(path), f"found a .{extension(path)} file for --nodes; {advice}")
    if form == "parquet":
        return ParquetTable(path)
    return open_delimited(path, header=header, tabs=form == "tsv")


def open_edges(path: Path, named: str | None = None, *, header: bool = True) -> Table | MatrixEdges:
    """An edge table, an edge list or a matrix; a file whose name says nothing is read as CSV, a .txt as an edge list."""
    form = format_of(path, named, EDGE_FORMATS, "--edge-format") or ("edges" if extension(path) == "txt" else "csv")
    if form in GRAPH_FORMATS:
        raise defect(str(path), f"found a .{extension(path)} file for --edges; a whole graph is given as --graph")
    if form == "edges":
        return open_edge_list(path)
    if form == "mtx":
        return MatrixEdges(path)
    return open_table(path, form, header=header)
