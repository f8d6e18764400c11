"""A converted graph: a folder of plain arrays that are mapped into memory and read where they are touched.

| file | content |
|---|---|
| `graph.json` | sizes, names, notes; written last, so that a folder with it is whole |
| `pointer.npy`, `edges.npy` | CSR pointer (n + 1,) and (2, m) int64 ends, sorted by (target, source) |
| `cosine.npy`, `sign.npy` | (m,) float32 feature similarity of the ends of each edge; int8 true signs where they are known |
| `mirrored-*.npy` | the same with every edge in both directions; of directed graphs |
| `x.npy`, or `x-pointer.npy`, `x-columns.npy`, `x-values.npy` | (n, d) float32 features, dense or CSR |
| `y.npy`, `identity.npy`, `train.npy`, `val.npy`, `test.npy` | (n,) labels, identities and masks |
| `names.txt` | one node name per line, where the source has names |
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spam_gnn.data.facts import FACTS, FORM, FolderFacts, read_facts
from spam_gnn.data.reading import ColumnFact, Reading
from spam_gnn.errors import BadInput, DiskError
from spam_gnn.features import edge_cosines
from spam_gnn.files import TEMPORARY, sync_folder, write_json
from spam_gnn.graph import Graph

_NODE_ARRAYS = {"y": "y", "identity": "identity", "train": "train_mask", "val": "val_mask", "test": "test_mask"}


def write_converted(reading: Reading, path: Path) -> FolderFacts:
    """Write a graph and what is known of its columns; the folder is whole or absent, whatever happens meanwhile."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise BadInput(f"{path}: exists and is not an empty folder; choose another --out")
    temporary = path.with_name(f"{TEMPORARY}{uuid.uuid4().hex}-{path.name}")
    try:
        temporary.mkdir(parents=True)
        facts = _write_all(reading, temporary)
        if path.exists():
            path.rmdir()
        temporary.rename(path)
        sync_folder(path.parent)
    except OSError as error:
        raise DiskError(f"{path}: cannot be written ({error.strerror}); free space or choose another folder") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return facts


def _write_all(reading: Reading, folder: Path) -> FolderFacts:
    graph = reading.graph
    _write_edges(graph, folder, "")
    if graph.directed:
        _write_edges(graph.as_undirected(), folder, "mirrored-")
    sparse = graph.x.layout == torch.sparse_csr
    if sparse:
        parts = {"pointer": graph.x.crow_indices(), "columns": graph.x.col_indices(), "values": graph.x.values()}
        for name, part in parts.items():
            _save(folder / f"x-{name}.npy", part)
    else:
        _save(folder / "x.npy", graph.x)
    for name, attribute in _NODE_ARRAYS.items():
        _save(folder / f"{name}.npy", getattr(graph, attribute))
    if graph.node_names is not None:
        (folder / "names.txt").write_text("\n".join(json.dumps(name) for name in graph.node_names))
    facts = FolderFacts(
        FORM, graph.name, graph.num_nodes, graph.num_edges, graph.as_undirected().num_edges, graph.num_features,
        graph.x.values().numel() if sparse else graph.x.numel(), sparse, graph.directed, graph.class_names, graph.notes,
        graph.node_names is not None, tuple(asdict(column) for column in reading.columns),
        int(graph.train_mask.sum()), int(graph.val_mask.sum()),
    )  # fmt: skip
    write_json(folder / FACTS, asdict(facts))
    return facts


def _write_edges(graph: Graph, folder: Path, prefix: str) -> None:
    _save(folder / f"{prefix}pointer.npy", graph.pointer)
    _save(folder / f"{prefix}edges.npy", graph.edge_index)
    _save(folder / f"{prefix}cosine.npy", edge_cosines(graph.x, graph.edge_index))
    if graph.edge_sign is not None:
        _save(folder / f"{prefix}sign.npy", graph.edge_sign)


def _save(path: Path, tensor: Tensor) -> None:
    with path.open("wb") as file:
        np.save(file, tensor.numpy(), allow_pickle=False)
        file.flush()
        os.fsync(file.fileno())


def open_converted(path: Path) -> Reading:
    """The graph, its arrays mapped: opening costs nothing, and nothing is read before it is used."""
    facts = read_facts(path)
    x = _sparse(path, facts) if facts.sparse else _map(path / "x.npy")
    common: dict[str, Any] = {attribute: _map(path / f"{name}.npy") for name, attribute in _NODE_ARRAYS.items()}
    names = None
    if facts.named:
        names = tuple(json.loads(line) for line in (path / "names.txt").read_text().split("\n"))
    common |= {"x": x, "num_classes": len(facts.class_names), "class_names": tuple(facts.class_names), "name": facts.name,
               "notes": tuple(facts.notes), "node_names": names}  # fmt: skip
    graph = _with_edges(path, "", directed=facts.directed, **common)
    if facts.directed:
        graph.__dict__["_mirrored"] = _with_edges(path, "mirrored-", directed=False, **common)
    columns = tuple(ColumnFact(**{**column, "values": tuple(column["values"])}) for column in facts.columns)
    return Reading(graph, columns)


def _sparse(path: Path, facts: FolderFacts) -> Tensor:
    pointer, columns, values = (_map(path / f"x-{name}.npy") for name in ("pointer", "columns", "values"))
    return torch.sparse_csr_tensor(pointer, columns, values, (facts.nodes, facts.features), check_invariants=False)


def _with_edges(path: Path, prefix: str, **rest: Any) -> Graph:
    sign = path / f"{prefix}sign.npy"
    graph = Graph(edge_index=_map(path / f"{prefix}edges.npy"), edge_sign=_map(sign) if sign.exists() else None, **rest)
    graph.__dict__.update(pointer=_map(path / f"{prefix}pointer.npy"), feature_cosine=_map(path / f"{prefix}cosine.npy"))
    return graph


def _map(path: Path) -> Tensor:
    try:
        with warnings.catch_warnings():  # shared, read-only pages, which cost no memory of our own; nobody writes to a graph
            warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
            return torch.from_numpy(np.load(path, mmap_mode="r", allow_pickle=False))
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: cannot be mapped ({error}); convert the graph again") from None
