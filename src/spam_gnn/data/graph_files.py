"""A whole graph in one file or folder: `.npz`, GraphML, GEXF, an OGB folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from spam_gnn.data.facts import is_converted
from spam_gnn.data.folder import open_converted
from spam_gnn.data.labels import checked_ids, encoded_labels, identity_of
from spam_gnn.data.readers.content import missing
from spam_gnn.data.readers.formats import GRAPH_FORMATS, format_of
from spam_gnn.data.readers.frame import FrameTable
from spam_gnn.data.readers.npz import MASKS, feature_matrix, read_arrays
from spam_gnn.data.readers.ogb import read_ogb
from spam_gnn.data.readers.table import defect, listed
from spam_gnn.data.readers.xml_graph import open_xml
from spam_gnn.data.reading import ColumnFact, ColumnPlan, Reading
from spam_gnn.data.tables import TableColumns, assemble, finished
from spam_gnn.features import csr_tensor
from spam_gnn.graph import Graph

_GUESS_ALL = TableColumns()


def read_graph_file(
    path: Path,
    form: str | None = None,
    columns: TableColumns = _GUESS_ALL,
    *,
    directed: bool = False,
    plan: ColumnPlan | None = None,
) -> Reading:
    """Read a graph by its extension or named format; a folder is one that `convert` wrote, or one of OGB's.

    `columns` name attributes of GraphML and GEXF, whose own direction holds unless `directed` asks for one. With a
    `plan`, attributes line up with a trained model's by name; the features of `.npz` and OGB have no names.
    """
    if form is None and is_converted(path):
        return open_converted(path)
    form = format_of(path, form, GRAPH_FORMATS, "--format") or ("ogb" if path.is_dir() else None)
    if not path.exists():
        raise missing(path)
    if form not in GRAPH_FORMATS:
        advice = "give tables as --nodes and --edges" if form else f"name it with --format: {', '.join(GRAPH_FORMATS)}"
        raise defect(str(path), f"the name does not say which graph format this is; {advice}")
    name = Path(path.name.removesuffix(".gz")).stem
    if form == "npz":
        return _npz(path, name, directed, () if plan is None else plan.classes)
    if form == "ogb":
        return _ogb(path, name, directed, () if plan is None else plan.classes)
    return _xml(path, form, name, columns, directed, plan)


def _xml(path: Path, form: str, name: str, columns: TableColumns, directed: bool, plan: ColumnPlan | None) -> Reading:
    # GEXF's own 'label' is a node's display name, most often its id: a class only where the user says so.
    display = form == "gexf" and "label" not in (columns.label, *columns.text)
    nodes, edges, has_direction = open_xml(path, form, leave_out=("label",) if display else ())
    columns = replace(columns, id="id", source="source", target="target")
    return assemble(nodes, edges, columns, directed=directed or has_direction, name=name, plan=plan)


def _npz(path: Path, name: str, directed: bool, known: Sequence[str]) -> Reading:
    file, (arrays, others) = str(path), read_arrays(path)
    notes = [f"arrays ignored: {listed(others)}"] if others else []
    for needed in ("edge_index", "y"):
        if needed not in arrays:
            found = f"found no array '{needed}' among {listed([*arrays, *others]) or 'none'}"
            raise defect(file, f"{found}; save it as numpy.savez(file, x=..., edge_index=..., y=...)")
    y = arrays["y"].reshape(-1) if arrays["y"].ndim == 2 and 1 in arrays["y"].shape else arrays["y"]
    n = len(y) if y.ndim == 1 else -1
    if n < 1 or y.dtype.kind not in "iufUb":
        raise defect(file, f"found shape {y.shape} of {y.dtype}; give one label per node: (n,) numbers or texts", column="y")
    matrix = feature_matrix(file, arrays)
    rows = n if matrix is None else int((matrix.shape or (0,))[0])
    if rows != n:
        raise defect(file, f"found {rows} rows for {n} labels in y; give one row per node", column="x")
    label_table = FrameTable(file, {"y": _label_cells(y)}, range(n))
    labels, classes = encoded_labels(label_table, "y", label_table.texts(["y"])[0], notes, known)
    x = torch.empty(n, 0) if matrix is None else csr_tensor(matrix) if scipy.sparse.issparse(matrix) else (
        torch.from_numpy(np.ascontiguousarray(matrix)))  # fmt: skip
    if "edge_weight" in arrays:
        notes.append("edge weights in 'edge_weight' accepted and not used: how far an edge is believed is learned")
    ids = _npz_ids(file, arrays, n)
    masks = [_mask(file, part, arrays.get(part), labels) for part in MASKS]
    _check_disjoint(file, masks)
    graph = Graph.build(
        x, _npz_ends(file, arrays, n), labels, train_mask=masks[0], val_mask=masks[1], test_mask=masks[2],
        directed=directed, num_classes=len(classes), class_names=classes, name=name,
        identity=None if ids is None else identity_of(ids), node_names=None if ids is None else ids.tolist(),
    )  # fmt: skip
    facts = (*([] if ids is None else [ColumnFact("node_id", "id")]), ColumnFact("y", "label"))
    width = [ColumnFact(f"x[{i}]", "number", 1) for i in range(graph.num_features)]
    return finished(graph, (*facts, *width), notes)


def _label_cells(y: np.ndarray) -> list[object]:
    """Labels as Python values, None where unknown: a negative number, NaN, an empty text."""
    if y.dtype.kind in "iu":
        return [None if label < 0 else label for label in y.tolist()]
    if y.dtype.kind == "f":
        return [None if label < 0 else label for label in y.tolist()]  # NaN becomes an empty text further on
    return [label or None if isinstance(label, str) else label for label in y.tolist()]


def _npz_ends(file: str, arrays: dict[str, np.ndarray], n: int) -> Tensor:
    ends = arrays["edge_index"]
    if ends.ndim != 2 or ends.shape[0] != 2 or ends.dtype.kind not in "iu":
        found = f"found shape {ends.shape} of {ends.dtype}"
        raise defect(file, f"{found}; give whole numbers, sources above targets: (2, edges)", column="edge_index")
    if "edge_weight" in arrays and arrays["edge_weight"].shape != (ends.shape[1],):
        found = f"found shape {arrays['edge_weight'].shape} for {ends.shape[1]} edges"
        raise defect(file, f"{found}; give one weight per edge", column="edge_weight")
    outside = (ends < 0) | (ends >= n)
    if outside.any():
        place = int(np.argmax(outside.any(axis=0)))
        found = f"found edge {ends[0, place]} -> {ends[1, place]} in a graph of {n} nodes"
        raise defect(file, f"{found}; number nodes from 0 to {n - 1}", place, "edge_index")
    return torch.from_numpy(ends.astype(np.int64))


def _npz_ids(file: str, arrays: dict[str, np.ndarray], n: int) -> np.ndarray | None:
    if "node_id" not in arrays:
        return None
    ids = arrays["node_id"]
    if ids.shape != (n,) or ids.dtype.kind not in "iuU":
        raise defect(file, f"found shape {ids.shape} of {ids.dtype}; give {n} whole numbers or texts", column="node_id")
    texts = np.array([str(value) for value in ids.tolist()], dtype=object)
    return checked_ids(FrameTable(file, {"node_id": texts.tolist()}, range(n)), "node_id", texts)


def _mask(file: str, name: str, mask: np.ndarray | None, labels: Tensor) -> Tensor | None:
    if mask is None:
        return None
    if mask.shape != tuple(labels.shape) or mask.dtype.kind not in "biu" or ((mask != 0) & (mask != 1)).any():
        found = f"found shape {mask.shape} of {mask.dtype}"
        raise defect(file, f"{found}; give one True or False per node, one split per file", column=name)
    unknown = np.flatnonzero((mask != 0) & (labels.numpy() < 0))
    if len(unknown):
        found = f"selects a node without a label ({len(unknown)} such nodes)"
        raise defect(file, f"{found}; leave unlabelled nodes out of every mask", int(unknown[0]), name)
    return torch.from_numpy(mask != 0)


def _check_disjoint(file: str, masks: list[Tensor | None]) -> None:
    total = sum(mask.long() for mask in masks if mask is not None)
    if isinstance(total, Tensor) and bool((total > 1).any()):
        row = int((total > 1).nonzero()[0])
        raise defect(file, "found a node in two masks; each node may serve only one purpose", row, "train_mask")
    if isinstance(total, Tensor) and (masks[0] is None or not bool(masks[0].any())):
        raise defect(file, "found masks and no training node; mark some, or leave all masks out", column="train_mask")


def _ogb(path: Path, name: str, directed: bool, known: Sequence[str]) -> Reading:
    folder = read_ogb(path)
    notes = [f"files ignored: {listed(folder.ignored)}"] if folder.ignored else []
    labels, classes = encoded_labels(folder.label_table, "1", folder.labels, notes, known)
    n = len(folder.labels)
    masks: list[Tensor | None] = [None, None, None]
    if folder.parts:
        masks = [torch.zeros(n, dtype=torch.bool) for _ in range(3)]
        for mask, (part, places) in zip(masks, folder.parts.items(), strict=True):
            assert mask is not None
            mask[torch.from_numpy(places)] = True
            if bool((mask & (labels < 0)).any()):
                raise defect(str(path), f"the {part} split holds a node without a label; leave it out, or label it")
        _check_disjoint(str(path), masks)
    x = torch.empty(n, 0) if folder.x is None else torch.from_numpy(folder.x)
    graph = Graph.build(
        x, torch.from_numpy(folder.ends), labels, train_mask=masks[0], val_mask=masks[1], test_mask=masks[2],
        directed=directed, num_classes=len(classes), class_names=classes, name=name,
    )  # fmt: skip
    width = [ColumnFact(f"node-feat {i + 1}", "number", 1) for i in range(graph.num_features)]
    return finished(graph, (ColumnFact("node-label", "label"), *width), notes)
