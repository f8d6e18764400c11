"""Two tables, one of nodes and one of edges, as a `Graph`.

Every column of the node table that is not the id, the label or the split is a feature: numbers as they are, texts
one-hot. Whatever was guessed, encoded or ignored on the way is said in `Graph.notes`; whatever cannot be used raises
`BadInput` naming the file, the line and the column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from pandas.util import hash_array
from torch import Tensor

from spam_gnn.data.table_checks import Table, listed, numbers, open_table, shown, suggestion
from spam_gnn.graph import Graph

MOST_CATEGORIES = 50
_MOSTLY = 0.9  # share of numbers from which a text among them is a slip rather than a category
_FEW_CLASSES = 20  # up to here a label column may well have one node per class
_DEGREE_BUCKETS = 8
_MISSING = frozenset(["", "na", "n/a", "#n/a", "<na>", "nan", "-nan", "null", "none", "?", "."])
_DOUBTFUL_CLASSES = _MISSING | {"-1", "unknown", "unlabelled", "unlabeled"}
_TRAIN, _VAL, _TEST, _NONE = range(4)
_SPLIT_WORDS = {
    "train": _TRAIN, "training": _TRAIN, "val": _VAL, "valid": _VAL, "validation": _VAL, "test": _TEST,
    "testing": _TEST, "": _NONE, "none": _NONE, "other": _NONE, "unused": _NONE,
}  # fmt: skip


@dataclass(frozen=True)
class TableColumns:
    """Which column means what; None takes the conventional name, or the first columns for ids and end points."""

    id: str | None = None
    label: str | None = None
    source: str | None = None
    target: str | None = None
    split: str | None = None


_GUESS_ALL = TableColumns()


def read_tables(nodes: Path, edges: Path, columns: TableColumns = _GUESS_ALL, *, directed: bool = False) -> Graph:
    """Read a node table and an edge table (CSV, TSV, gzip) as one checked graph.

    Args:
        nodes: one row per node: an id, a label (empty where unknown), features, perhaps a split column.
        edges: one row per edge: two ids of the node table; further columns are ignored.
        columns: which column means what.
        directed: whether a row means only source -> target.

    Returns:
        The graph, named after the node file, its masks empty unless there is a split column. A node's identity is a
        hash of its id, so that draws and splits do not depend on the order of the rows.
    """
    node_table, edge_table = open_table(nodes), open_table(edges)
    if nodes.samefile(edges):
        _check_one_file_for_both(node_table, columns)
    notes: list[str] = []
    id_column, label_column, split_column = _node_columns(node_table, columns, notes)
    cells = node_table.cells([c for c in (id_column, label_column, split_column) if c is not None])
    ids = _checked_ids(node_table, id_column, cells[0])
    labels, class_names = _labels(node_table, label_column, cells[1], notes)
    masks = _masks(node_table, split_column, cells[2], labels) if split_column is not None else [None, None, None]
    features = [c for c in node_table.columns if c not in (id_column, label_column, split_column)]
    x = _features(node_table, features, notes)
    ends = _edges(edge_table, columns, ids, node_table.file, notes)
    graph = Graph.build(
        torch.from_numpy(x), torch.from_numpy(ends), torch.from_numpy(labels),
        train_mask=masks[0], val_mask=masks[1], test_mask=masks[2], directed=directed, num_classes=len(class_names),
        identity=torch.from_numpy(_identity(ids)),
        class_names=class_names, node_names=ids.tolist(), name=Path(nodes.name.removesuffix(".gz")).stem,
    )  # fmt: skip
    if not features:
        graph = replace(graph, x=_structural_features(graph))
        notes.append(
            f"no feature columns: each node is described by its degree alone, log(1 + degree) and {_DEGREE_BUCKETS} "
            "degree buckets"
        )
    return replace(graph, notes=(*graph.notes, *notes))


def _check_one_file_for_both(table: Table, columns: TableColumns) -> None:
    wanted = {"label": columns.label, "source": columns.source, "target": columns.target}
    missing = [role for role, name in wanted.items() if table.find(name, role) is None]
    if missing:
        raise table.defect(
            f"the same file is given for nodes and for edges, and it has no {' and no '.join(missing)} column; give "
            "one file with a row per node and another with a row per edge"
        )


def _node_columns(table: Table, columns: TableColumns, notes: list[str]) -> tuple[str, str, str | None]:
    label = table.named(columns.label, "label")
    if label is None:
        raise table.defect(
            f"found no label column among {listed(table.columns)}; name it with --label, or call it 'label'"
        )
    split = "split" if columns.split is None and "split" in table.columns else columns.split
    if split is not None:
        table.named(split, "split")
    node_id = table.named(columns.id, "id")
    if node_id is None:
        node_id = table.columns[0]
        if node_id in (label, split):
            raise table.defect(f"found no id column among {listed(table.columns)}; name it with --id, or call it 'id'")
        notes.append(f"node ids taken from the first column, '{node_id}' (--id names another)")
    roles = {"--id": node_id, "--label": label, "--split": split}
    for first, second in (("--id", "--label"), ("--id", "--split"), ("--label", "--split")):
        if roles[first] == roles[second]:
            raise table.defect(f"found one column for both {first} and {second}; name two", roles[first])
    return node_id, label, split


def _checked_ids(table: Table, column: str, ids: np.ndarray) -> np.ndarray:
    if table.num_rows == 0:
        raise table.defect("found a header and no rows; give one row per node")
    empty = np.flatnonzero(ids == "")
    if len(empty):
        raise table.defect(f"the id is empty ({len(empty)} such rows); give every node an id", column, int(empty[0]))
    again = np.flatnonzero(pd.Series(ids).duplicated())
    if len(again):
        row = int(again[0])
        first = int(table.lines[1 + np.flatnonzero(ids == ids[row])[0]])
        raise table.defect(
            f"found id {shown(ids[row])} again, it is on line {first} already ({len(again)} such rows); keep one row "
            "per node",
            column,
            row,
        )
    return ids


def _identity(ids: np.ndarray) -> np.ndarray:
    """(n,) int64 hash of each id, so that a node keeps its draws when rows are reordered, added or taken away."""
    return hash_array(ids, categorize=False).view(np.int64)  # pyright: ignore[reportCallIssue]  (pandas loads it lazily)


def _labels(table: Table, column: str, cells: np.ndarray, notes: list[str]) -> tuple[np.ndarray, list[str]]:
    """(n,) int64 labels, -1 where the cell is empty, and the class names in ascending order."""
    known = cells != ""
    codes, names = pd.factorize(cells[known])
    if len(names) == 0:
        raise table.defect("every label is empty; label at least a few nodes of each class", column)
    if len(names) == 1:
        raise table.defect(f"found one class only, {shown(names[0])}; at least two are needed to tell apart", column)
    number = numbers(names)
    numeric = bool(np.isfinite(number).all())
    fractional = numeric and bool((number != np.floor(number)).any())
    if len(names) > _FEW_CLASSES and (len(names) == len(codes) or (fractional and 2 * len(names) > len(codes))):
        raise table.defect(
            f"found {len(names)} different labels on {len(codes)} nodes (first: {shown(names[0])}), so this is an id "
            "or a measurement; name a column of classes with --label (regression is not supported)",
            column,
        )
    order = sorted(range(len(names)), key=lambda c: (number[c] if numeric else 0.0, names[c]))
    place = np.empty(len(names), dtype=np.int64)
    place[order] = np.arange(len(names))
    labels = np.full(len(cells), -1, dtype=np.int64)
    labels[known] = place[codes]
    doubtful = [name for name in names if name.casefold() in _DOUBTFUL_CLASSES and (name != "-1" or len(names) > 2)]
    notes.extend(f"'{name}' is taken for a class; leave the label empty where it is unknown" for name in doubtful)
    return labels, [names[c] for c in order]


def _masks(table: Table, column: str, cells: np.ndarray, labels: np.ndarray) -> list[Tensor | None]:
    """The train, validation and test mask that the words of the split column say."""
    codes, words = pd.factorize(cells)
    for code, word in enumerate(words):
        if word.casefold() not in _SPLIT_WORDS:
            hint = suggestion(word, ("train", "val", "test"))
            advice = f"{hint}use train, val, test, or leave the cell empty (rename the column if it is a feature)"
            raise table.defect(f"found {shown(word)}; {advice}", column, int(np.argmax(codes == code)))
    part = np.array([_SPLIT_WORDS[word.casefold()] for word in words])[codes]
    unlabelled = np.flatnonzero((labels < 0) & (part != _NONE))
    if len(unlabelled):
        row = int(unlabelled[0])
        found = f"found {shown(cells[row])} for a node without a label ({len(unlabelled)} such rows)"
        raise table.defect(f"{found}; label the node or leave its split empty", column, row)
    if not (part == _TRAIN).any():
        raise table.defect("no node is marked train; mark some, or delete the column for a random split", column)
    return [torch.from_numpy(part == name) for name in (_TRAIN, _VAL, _TEST)]


def _edges(table: Table, columns: TableColumns, ids: np.ndarray, nodes_file: str, notes: list[str]) -> np.ndarray:
    """(2, rows) int64 positions in the node table."""
    source, target = table.named(columns.source, "source"), table.named(columns.target, "target")
    if source is None:
        source = next(name for name in table.columns if name != target)
        notes.append(f"edge sources taken from column '{source}' (--source names another)")
    if target is None:
        target = next(name for name in table.columns if name != source)
        notes.append(f"edge targets taken from column '{target}' (--target names another)")
    if source == target:
        raise table.defect("found one column for both --source and --target; name two", source)
    ignored = [name for name in table.columns if name not in (source, target)]
    if ignored:
        notes.append(f"edge columns ignored: {listed(ignored)}")
    known = pd.Index(ids, dtype=object)
    if source in known and target in known:
        raise table.defect(
            f"the first line ({shown(source)}, {shown(target)}) looks like an edge; put a line of column names above it"
        )
    if table.num_rows == 0:
        notes.append(f"{table.file} has no rows: a graph without edges")
    ends = [_positions(table, name, cells, known, nodes_file)
            for name, cells in zip((source, target), table.cells([source, target]), strict=True)]  # fmt: skip
    return np.stack(ends)


def _positions(table: Table, column: str, cells: np.ndarray, known: pd.Index, nodes_file: str) -> np.ndarray:
    places = known.get_indexer(pd.Index(cells, dtype=object))
    unknown = np.flatnonzero(places < 0)
    if len(unknown) == 0:
        return places.astype(np.int64)
    row = int(unknown[0])
    if cells[row] == "":
        raise table.defect("the end point is empty; give the id of a node or delete the row", column, row)
    # Ids are text: a spreadsheet that turned '007' into '7' or a data frame that wrote '7.0' is the usual reason.
    form = _plain_form(cells[row])
    twin = next((name for name in known if _plain_form(name) == form), None)
    advice = "add the node there or delete the edge" if twin is None else f"did you mean {shown(twin)}? ids are text"
    count = "" if len(unknown) == 1 else f" ({len(unknown)} such end points)"
    raise table.defect(f"found {shown(cells[row])}, which is no id in {nodes_file}{count}; {advice}", column, row)


def _plain_form(name: str) -> str:
    return name.casefold().removesuffix(".0").lstrip("0")


def _features(table: Table, columns: Sequence[str], notes: list[str]) -> np.ndarray:
    """(n, d) float32, column by column in the order of the file; a text column becomes one column per category."""
    frame = table.inferred(columns)
    blocks: dict[str, np.ndarray] = {}
    for column in columns:
        if frame[column].dtype.kind in "iuf":
            with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite, and is reported as such
                values = frame[column].to_numpy(np.float32)
            if np.isfinite(values).all():
                blocks[column] = values[:, None]
    # Only what is not plainly numeric is read again as text: texts take ten times the memory of numbers.
    doubtful = [column for column in columns if column not in blocks]
    for column, cells in zip(doubtful, table.cells(doubtful), strict=True):
        blocks[column] = _feature_of_text(table, column, cells, notes)
    none = np.empty((table.num_rows, 0), dtype=np.float32)
    return np.concatenate([none, *(blocks[column] for column in columns)], axis=1)


def _feature_of_text(table: Table, column: str, cells: np.ndarray, notes: list[str]) -> np.ndarray:
    """(n, columns) of a column that is not plainly numeric; raises where a cell or two keep it from being so."""
    codes, texts = pd.factorize(cells, sort=True)  # each distinct text is looked at once
    with np.errstate(over="ignore"):
        values = numbers(texts).astype(np.float32)
    is_missing = np.array([text.casefold() in _MISSING for text in texts])
    is_text = np.isnan(values) & ~is_missing
    parsed, text = int((~np.isnan(values))[codes].sum()), int(is_text[codes].sum())
    if is_missing.all():
        raise table.defect("every cell is empty; fill the column or delete it", column)
    if text and parsed < _MOSTLY * (parsed + text):
        _check_categories(table, column, cells, len(texts), is_text[codes])
        notes.append(f"column '{column}' one-hot encoded: {listed([shown(t) for t in texts], 5)}")
        return np.eye(len(texts), dtype=np.float32)[codes]
    bad = is_text[codes] if text else ~np.isfinite(values)[codes]
    if not bad.any():
        return values[codes][:, None]
    row, count = int(np.argmax(bad)), int(bad.sum())
    what = shown(cells[row]) if cells[row] else "an empty cell"
    found = f"found {what} in a column of numbers ({count} such cell{'s' * (count != 1)})"
    if text:
        raise table.defect(f"{found}; write a number", column, row)
    if is_missing[codes[row]]:
        raise table.defect(f"{found}; fill it in (perhaps with the column's mean) or delete the column", column, row)
    raise table.defect(f"{found}, infinite or too large for float32; write a finite number", column, row)


def _check_categories(table: Table, column: str, cells: np.ndarray, count: int, is_text: np.ndarray) -> None:
    """Text that is to be one-hot encoded must not be numbers in another notation, nor different in every row."""
    row = int(np.argmax(is_text))
    with_point = numbers(np.array([text.replace(",", ".") for text in pd.unique(cells[is_text])], dtype=object))
    if np.isfinite(with_point).mean() >= _MOSTLY:
        found = f"found {shown(cells[row])}, a number with a comma"
        raise table.defect(f"{found}; write it with a decimal point, as 1234.5", column, row)
    if count > MOST_CATEGORIES:
        found = f"found {count} different texts (first: {shown(cells[row])}), more than {MOST_CATEGORIES}"
        raise table.defect(f"{found}; turn the column into numbers, merge rare texts, or delete it", column)


def _structural_features(graph: Graph) -> Tensor:
    """(n, 9): log(1 + degree), and which of [0], [1, 2], [3 .. 6], [7 .. 14], ... the degree lies in."""
    ends = graph.edge_index.flatten() if graph.directed else graph.edge_index[1]
    degree = torch.bincount(ends, minlength=graph.num_nodes).double()
    bucket = torch.log2(1 + degree).floor().long().clamp(max=_DEGREE_BUCKETS - 1)
    return torch.cat([torch.log1p(degree)[:, None], torch.eye(_DEGREE_BUCKETS)[bucket]], dim=1).float()
