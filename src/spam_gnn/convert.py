"""Graphs from and to the forms people have: PyG `Data`, networkx, scipy sparse with arrays, pandas frames."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import scipy.sparse
import torch
from torch import Tensor
from torch_geometric.data import Data

from spam_gnn.errors import BadInput
from spam_gnn.features import csr_tensor
from spam_gnn.graph import Graph


def as_graph(data: Graph | Data, split: int | None = None) -> Graph:
    """A `Graph` as it is, or a PyG `Data`; what every front door calls first."""
    if isinstance(data, Graph):
        return data
    if isinstance(data, Data):
        return from_pyg(data, split=split)
    raise BadInput(f"data: found {type(data).__name__}; give a spam_gnn.Graph or a torch_geometric.data.Data")


def from_pyg(data: Data, *, split: int | None = None, directed: bool | None = None, name: str = "graph") -> Graph:
    """`Data(x, edge_index, y, *_mask)`, masks (n,) or (n, splits). Several splits need `split`; an edge_weight is ignored."""
    if data.x is None or data.edge_index is None:
        raise BadInput("data: found no x or no edge_index; a graph needs features and edges")
    x, y = data.x, data.y
    masks = {part: _one_split(getattr(data, f"{part}_mask", None), split, f"{part}_mask") for part in
             ("train", "val", "test")}  # fmt: skip
    labels = y if isinstance(y, Tensor) else None
    if labels is not None:  # PyG marks unknown labels with any negative number
        labels = torch.where(labels.reshape(-1) < 0, -1, labels.reshape(-1))
    return Graph.build(
        x, data.edge_index, labels, train_mask=masks["train"], val_mask=masks["val"], test_mask=masks["test"],
        directed=directed, name=name,
    )  # fmt: skip


def _one_split(mask: Any, split: int | None, name: str) -> Tensor | None:
    if mask is None or mask.ndim == 1:
        return mask
    count = mask.shape[1]
    if split is None:
        raise BadInput(f"{name}: found {count} splits; say which with split=0 to {count - 1}")
    if not 0 <= split < count:
        raise BadInput(f"split: found {split}; this data has splits 0 to {count - 1}")
    return mask[:, split]


def to_pyg(graph: Graph) -> Data:
    """A `Data` with x, edge_index, y and the three masks, undirected edges in both directions."""
    return Data(
        x=graph.x, edge_index=graph.edge_index, y=graph.y, train_mask=graph.train_mask, val_mask=graph.val_mask,
        test_mask=graph.test_mask,
    )  # fmt: skip


def from_networkx(g: nx.Graph, features: str = "x", label: str = "y", split: str = "split") -> Graph:
    """Node attributes `features` (a list of numbers), `label` (any value, missing = unknown), `split` (train/val/test)."""
    names = list(g.nodes)
    position = {node: i for i, node in enumerate(names)}
    rows = []
    for node in names:
        if features not in g.nodes[node]:
            raise BadInput(f"node {node!r}: has no attribute '{features}'; give every node its features")
        rows.append(np.asarray(g.nodes[node][features], dtype=np.float32).reshape(-1))
    if len({row.size for row in rows}) > 1:
        raise BadInput(f"attribute '{features}': nodes have different numbers of features; give every node the same")
    y, classes = _encode([g.nodes[node].get(label) for node in names])
    parts = [g.nodes[node].get(split) for node in names]
    pairs = [(position[a], position[b]) for a, b in g.edges()]
    edges = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).t()
    masks = {part: torch.tensor([p == part for p in parts]) for part in ("train", "val", "test")}
    return Graph.build(
        torch.from_numpy(np.stack(rows)), edges, y, train_mask=masks["train"], val_mask=masks["val"],
        test_mask=masks["test"], directed=g.is_directed(), class_names=classes, node_names=[str(n) for n in names],
    )  # fmt: skip


def to_networkx(graph: Graph) -> nx.Graph:
    """The inverse of :func:`from_networkx`, nodes named as in the graph."""
    g = nx.DiGraph() if graph.directed else nx.Graph()
    names = graph.node_names or tuple(str(i) for i in range(graph.num_nodes))
    dense = graph.features.to_dense().numpy()
    for i, name in enumerate(names):
        g.add_node(name, x=dense[i].tolist())
        if int(graph.y[i]) >= 0:
            g.nodes[name]["y"] = graph.class_names[int(graph.y[i])]
        for part, mask in (("train", graph.train_mask), ("val", graph.val_mask), ("test", graph.test_mask)):
            if bool(mask[i]):
                g.nodes[name]["split"] = part
    g.add_edges_from((names[a], names[b]) for a, b in graph.edge_index.t().tolist())
    return g


def from_scipy(adjacency: Any, features: Any, y: Any = None, *, directed: bool | None = None) -> Graph:
    """`adjacency` (n, n) scipy sparse, entry (i, j) an edge i -> j; `features` dense or scipy sparse; y with -1 unknown."""
    matrix = scipy.sparse.coo_array(adjacency)
    shape = tuple(matrix.shape or ())
    if shape != (features.shape[0], features.shape[0]):
        raise BadInput(f"adjacency: found shape {shape} for {features.shape[0]} rows of features; give (n, n)")
    edges = torch.from_numpy(np.stack([matrix.coords[0], matrix.coords[1]]).astype(np.int64))
    sparse = scipy.sparse.issparse(features)
    x = csr_tensor(features) if sparse else torch.tensor(np.asarray(features, dtype=np.float32))
    return Graph.build(x, edges, None if y is None else torch.from_numpy(np.asarray(y)), directed=directed)


def to_scipy(graph: Graph) -> tuple[scipy.sparse.csr_array, np.ndarray, np.ndarray]:
    """Adjacency (entry (i, j) is an edge i -> j), dense features, labels with -1 unknown: what :func:`from_scipy` takes."""
    source, target = graph.edge_index.numpy()
    shape = (graph.num_nodes, graph.num_nodes)
    adjacency = scipy.sparse.csr_array((np.ones(graph.num_edges, dtype=np.float32), (source, target)), shape=shape)
    return adjacency, graph.features.to_dense().numpy(), graph.y.numpy()


def to_pandas(graph: Graph) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Nodes (id, label, one column x0, x1, ... per feature) and edges (source, target; an undirected edge once)."""
    names = np.array(graph.node_names or [str(i) for i in range(graph.num_nodes)], dtype=object)
    dense = graph.features.to_dense().numpy()
    nodes = pd.DataFrame(dense, columns=pd.Index([f"x{i}" for i in range(dense.shape[1])]))
    nodes.insert(0, "id", names)
    nodes.insert(1, "label", [None if c < 0 else graph.class_names[c] for c in graph.y.tolist()])
    listed = graph.edge_index if graph.directed else graph.edge_index[:, graph.edge_index[0] < graph.edge_index[1]]
    return nodes, pd.DataFrame({"source": names[listed[0].numpy()], "target": names[listed[1].numpy()]})


def from_pandas(
    nodes: pd.DataFrame,
    edges: pd.DataFrame,
    *,
    id: str = "id",  # noqa: A002 - the column's own name
    label: str = "label",
    source: str = "source",
    target: str = "target",
    directed: bool = False,
) -> Graph:
    """One row per node (an id, a label that may be missing, the rest numeric features) and one row per edge."""
    wanted = ((nodes, "nodes", id), (nodes, "nodes", label), (edges, "edges", source), (edges, "edges", target))
    for frame, which, column in wanted:
        if column not in frame.columns:
            raise BadInput(f"{which}: no column '{column}'; found {', '.join(map(str, frame.columns))}")
    index = pd.Index(nodes[id])
    if not index.is_unique:
        raise BadInput(f"nodes: id {index[index.duplicated()][0]!r} appears twice; give every node its own id")
    ends = [index.get_indexer(pd.Index(edges[column])) for column in (source, target)]
    for place, column in zip(ends, (source, target), strict=True):
        if (place < 0).any():
            raise BadInput(f"edges: row {int(np.argmax(place < 0))}, column '{column}': no node has that id")
    rest = nodes.drop(columns=[id, label])
    try:
        x = torch.tensor(rest.to_numpy(dtype=np.float32))
    except (TypeError, ValueError) as error:
        raise BadInput(f"nodes: a feature column is not numeric ({error}); encode it first, or use read_tables") from None
    y, classes = _encode([None if pd.isna(v) else v for v in nodes[label]])
    return Graph.build(
        x, torch.from_numpy(np.stack(ends)), y, directed=directed, class_names=classes,
        node_names=[str(v) for v in nodes[id]],
    )  # fmt: skip


def _encode(labels: list[Any]) -> tuple[Tensor, list[str]]:
    """Labels of any type (None = unknown) to 0 .. C-1 in sorted order, and the class names."""
    known = {v for v in labels if v is not None}
    try:
        order = sorted(known)
    except TypeError:
        order = sorted(known, key=str)
    place = {value: i for i, value in enumerate(order)}
    return torch.tensor([-1 if v is None else place[v] for v in labels]), [str(v) for v in order]
