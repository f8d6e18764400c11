"""A node table and an edge table, whatever their formats, as one checked `Graph`.

Every column of the node table that is not the id, the label or the split is a feature. Whatever was guessed, encoded or
ignored on the way is said in `Graph.notes`; whatever cannot be used raises `BadInput` naming the file, the row and the column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from spam_gnn.data.columns import RowBuffer, read_columns
from spam_gnn.data.ends import NodePlaces
from spam_gnn.data.labels import checked_ids, encoded_labels, identity_of, masks_of
from spam_gnn.data.readers.formats import open_edges, open_table
from spam_gnn.data.readers.matrix_market import MatrixEdges
from spam_gnn.data.readers.table import Table, listed, shown
from spam_gnn.data.reading import ColumnFact, ColumnPlan, Reading
from spam_gnn.graph import Graph

_DEGREE_BUCKETS = 8


@dataclass(frozen=True)
class TableColumns:
    """Which column means what; None takes the conventional name, or the first columns for ids and end points.

    Args:
        text: columns of the node table to be taken as bags of words.
        weight: the edge table's weight column, which is accepted and not used.
    """

    id: str | None = None
    label: str | None = None
    source: str | None = None
    target: str | None = None
    split: str | None = None
    text: tuple[str, ...] = ()
    weight: str | None = None


@dataclass(frozen=True)
class TableFormats:
    """How two files are to be read: formats by name (None goes by the extension), and whether a first line names columns."""

    nodes: str | None = None
    edges: str | None = None
    header: bool = True


_GUESS_ALL = TableColumns()
_BY_EXTENSION = TableFormats()


def read_tables(nodes: Path, edges: Path, columns: TableColumns = _GUESS_ALL, *, directed: bool = False) -> Graph:
    """Read a node table and an edge table as one checked graph; see :func:`read_pair`."""
    return read_pair(nodes, edges, columns, directed=directed).graph


def read_pair(
    nodes: Path,
    edges: Path,
    columns: TableColumns = _GUESS_ALL,
    formats: TableFormats = _BY_EXTENSION,
    *,
    directed: bool = False,
    plan: ColumnPlan | None = None,
) -> Reading:
    """Read two files as one checked graph.

    Args:
        nodes: CSV, TSV or Parquet, one row per node: an id, a label (empty where unknown), features, perhaps a split column.
        edges: the same formats or an edge list, one row per edge: two ids of the node table; or a MatrixMarket file.
        columns: which column means what.
        formats: how to read the files, where their names do not say.
        directed: whether a row means only source -> target.
        plan: the columns of a trained model, which these files are to line up with; labels may then be absent.

    Returns:
        The graph, named after the node file, its masks empty unless there is a split column. A node's identity is a
        hash of its id, so that draws and splits do not depend on the order of the rows.
    """
    node_table = open_table(nodes, formats.nodes, header=formats.header)
    edge_table = open_edges(edges, formats.edges, header=formats.header)
    if isinstance(edge_table, Table) and nodes.samefile(edges):
        _check_one_file_for_both(node_table, columns)
    name = Path(nodes.name.removesuffix(".gz")).stem
    return assemble(node_table, edge_table, columns, directed=directed, name=name, plan=plan)


def assemble(
    nodes: Table, edges: Table | MatrixEdges, columns: TableColumns, *, directed: bool, name: str,
    plan: ColumnPlan | None = None,
) -> Reading:  # fmt: skip
    """The graph of two opened tables."""
    notes: list[str] = []
    roles = _node_columns(nodes, columns, notes, needs_label=plan is None)
    features = [c for c in nodes.columns if c not in roles]
    if plan is not None:
        features = _planned(nodes, features, plan, notes)
    cells = read_columns(nodes, list(roles), features, columns.text if plan is None else (), notes,
                         {} if plan is None else plan.features)  # fmt: skip
    by_role = {role: (column, cells.texts[column]) for column, role in roles.items()}
    ids = checked_ids(nodes, *by_role["id"])
    label, label_cells = by_role.get("label", ("", np.full(len(ids), "", dtype=object)))
    labels, class_names = encoded_labels(nodes, label, label_cells, notes, () if plan is None else plan.classes)
    masks = masks_of(nodes, *by_role["split"], labels) if "split" in by_role else [None, None, None]
    places = NodePlaces(ids, nodes.file)
    ends = edges.ends(len(ids), nodes.file, notes) if isinstance(edges, MatrixEdges) else _ends(edges, columns, places, notes)
    graph = Graph.build(
        cells.x, torch.from_numpy(ends), labels,
        train_mask=masks[0], val_mask=masks[1], test_mask=masks[2], directed=directed, num_classes=len(class_names),
        identity=identity_of(ids), class_names=class_names, node_names=ids.tolist(), name=name,
    )  # fmt: skip
    facts = tuple(ColumnFact(c, role) for c, role in roles.items())  # pyright: ignore[reportArgumentType]
    return finished(graph, (*facts, *cells.facts), notes)


def finished(graph: Graph, columns: tuple[ColumnFact, ...], notes: list[str]) -> Reading:
    """What every reader ends with: degrees where there are no features, isolated nodes counted, notes in order."""
    if graph.num_features == 0:
        graph = replace(graph, x=_structural_features(graph))
        columns = (*columns, ColumnFact("degree", "degree", graph.num_features))
        notes.append(
            f"no feature columns: each node is described by its degree alone, log(1 + degree) and {_DEGREE_BUCKETS} "
            "degree buckets"
        )
    met = torch.zeros(graph.num_nodes, dtype=torch.bool)
    met[graph.edge_index[0]] = met[graph.edge_index[1]] = True
    isolated = int((~met).sum())
    alone = [f"{isolated} isolated node{'s' * (isolated != 1)} kept, predicted without neighbours"] if isolated else []
    return Reading(replace(graph, notes=(*graph.notes, *alone, *notes)), columns)


def _check_one_file_for_both(table: Table, columns: TableColumns) -> None:
    wanted = {"label": columns.label, "source": columns.source, "target": columns.target}
    missing = [role for role, name in wanted.items() if table.find(name, role) is None]
    if missing:
        raise table.defect(
            f"the same file is given for nodes and for edges, and it has no {' and no '.join(missing)} column; give "
            "one file with a row per node and another with a row per edge"
        )


def _planned(table: Table, present: Sequence[str], plan: ColumnPlan, notes: list[str]) -> list[str]:
    """The feature columns of a trained model, in its order; columns it has never seen are left out."""
    missing = [name for name in plan.features if name not in present]
    if missing:
        found = f"found no column {listed([shown(name) for name in missing])}, which the model was trained on"
        raise table.defect(f"{found}; add it (the columns here are {listed(table.columns)})")
    unknown = [name for name in present if name not in plan.features]
    if unknown:
        notes.append(f"columns ignored, the model was not trained on them: {listed(unknown)}")
    return list(plan.features)


def _node_columns(table: Table, columns: TableColumns, notes: list[str], *, needs_label: bool) -> dict[str, str]:
    """Column to role: an id, perhaps a split, and a label unless that may be absent."""
    label = table.named(columns.label, "label") if needs_label else table.find(columns.label, "label")
    if label is None and needs_label:
        raise table.defect(
            f"found no label column among {listed(table.columns)}; name it with --label, or call it 'label'"
        )
    split = "split" if columns.split is None and "split" in table.columns else columns.split
    if split is not None and columns.split is not None and split not in table.columns:
        table.named(split, "split-column")
    node_id = table.named(columns.id, "id")
    if node_id is None:
        node_id = table.columns[0]
        if node_id in (label, split):
            raise table.defect(f"found no id column among {listed(table.columns)}; name it with --id, or call it 'id'")
        notes.append(f"node ids taken from the first column, '{node_id}' (--id names another)")
    for words in columns.text if needs_label else ():
        table.named(words, "text")
    roles = {"--id": [node_id], "--label": [label] if label else [], "--split-column": [split] if split else [],
             "--text": columns.text}  # fmt: skip
    taken: dict[str, str] = {}
    for option, names in roles.items():
        for name in names:
            if name in taken:
                raise table.defect(f"found one column for both {taken[name]} and {option}; name two", name)
            taken[name] = option
    return {node_id: "id", **({label: "label"} if label else {}), **({split: "split"} if split else {})}


def _ends(table: Table, columns: TableColumns, places: NodePlaces, notes: list[str]) -> np.ndarray:
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
    weight = table.named(columns.weight, "weight")
    if weight in (source, target):
        raise table.defect(f"found one column for both --weight and --{'source' if weight == source else 'target'}; name two",
                           weight)  # fmt: skip
    ignored = [name for name in table.columns if name not in (source, target, weight)]
    if weight is not None:
        notes.append(f"edge weights in column '{weight}' accepted and not used: how far an edge is believed is learned")
    if ignored:
        notes.append(f"edge columns ignored: {listed(ignored)}")
    if source in places.texts and target in places.texts:
        found = f"the first line ({shown(source)}, {shown(target)}) looks like an edge"
        raise table.defect(f"{found}; put a line of column names above it, or add --no-header")
    buffer, row = RowBuffer(2, np.int64), 0
    for block in table.blocks(key=(source, target)):
        rows = buffer.extend(block.rows)
        for place, name in enumerate((source, target)):
            rows[:, place] = places.positions(table, name, block.key[name], row)
        row += block.rows
        del rows  # a view would keep the buffer from growing in place
    if row == 0:
        notes.append(f"{table.file} has no rows: a graph without edges")
    return buffer.finished().T


def _structural_features(graph: Graph) -> Tensor:
    """(n, 9): log(1 + degree), and which of [0], [1, 2], [3 .. 6], [7 .. 14], ... the degree lies in."""
    ends = graph.edge_index.flatten() if graph.directed else graph.edge_index[1]
    degree = torch.bincount(ends, minlength=graph.num_nodes).double()
    bucket = torch.log2(1 + degree).floor().long().clamp(max=_DEGREE_BUCKETS - 1)
    return torch.cat([torch.log1p(degree)[:, None], torch.eye(_DEGREE_BUCKETS)[bucket]], dim=1).float()
