"""Figures of a graph as measured, to be held against what its spec expects and what the paper prints."""

from __future__ import annotations

import math

import torch

from spam_gnn.data.spec import Figures, RawGraph
from spam_gnn.graph import Graph
from spam_gnn.homophily import Homophily, homophily

COUNTS = ("nodes", "edges", "features", "classes", "unlabelled", "self_loops")
MEASURES = ("edge", "node", "class_insensitive", "adjusted")
TOLERANCE = 0.0051  # published measures have two or three decimals, measured ones are written down with four


def measure(raw: RawGraph, graph: Graph) -> Figures:
    """Counts of what is stored, measures of the graph that is trained on."""
    source, target = raw.edge_index
    labelled = raw.y[raw.y >= 0]
    shares = torch.bincount(labelled, minlength=graph.num_classes).double() / max(labelled.numel(), 1)
    values = raw.x.values() if raw.x.layout == torch.sparse_csr else raw.x
    return Figures(
        nodes=raw.x.shape[0], edges=raw.edge_index.shape[1], features=raw.x.shape[1], classes=graph.num_classes,
        unlabelled=int((raw.y < 0).sum()), self_loops=int((source == target).sum()), homophily=homophily(graph),
        degree_gini=degree_gini(graph), density=int((values != 0).sum()) / max(raw.x.shape[0] * raw.x.shape[1], 1),
        class_shares=tuple(shares.tolist()),
    )  # fmt: skip


def degrees(graph: Graph) -> torch.Tensor:
    """(n,): neighbours of each node; in plus out where edges are directed."""
    ends = graph.edge_index.flatten() if graph.directed else graph.edge_index[1]
    return torch.bincount(ends, minlength=graph.num_nodes)


def degree_gini(graph: Graph) -> float:
    """0 when all degrees are equal, towards 1 when few nodes hold all edges."""
    ordered = degrees(graph).double().sort().values
    n, total = ordered.numel(), float(ordered.sum())
    if total == 0.0:
        return 0.0
    rank = torch.arange(1, n + 1, dtype=torch.float64)
    return float((2.0 * (rank * ordered).sum()) / (n * total) - (n + 1) / n)


def disagreements(found: Figures, expected: Figures) -> list[str]:
    """What was found where something else was expected; an expectation that is not known cannot be missed."""
    wrong = []
    for name in COUNTS:
        wanted = getattr(expected, name)
        unchecked = wanted is None or (expected.origin == "published" and name in ("unlabelled", "self_loops"))
        if not unchecked and getattr(found, name) != wanted:
            wrong.append(f"{name.replace('_', '-')} {getattr(found, name)}, expected {wanted}")
    for name in MEASURES:
        here, wanted = measure_of(found.homophily, name), measure_of(expected.homophily, name)
        if here is not None and wanted is not None and abs(here - wanted) > TOLERANCE:
            wrong.append(f"{name} homophily {here:.4f}, expected {wanted:.4f}")
    return wrong


def measure_of(value: Homophily | None, name: str) -> float | None:
    """One reading, None where it is not known."""
    reading = math.nan if value is None else float(getattr(value, name))
    return None if math.isnan(reading) else reading
