"""What a graph looks like before anyone trains on it: counts, classes, homophily, components, degrees, splits."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.sparse
import torch
from scipy.sparse.csgraph import connected_components

from spam_gnn.data.reading import Reading
from spam_gnn.data.suspicions import suspicions
from spam_gnn.graph import Graph
from spam_gnn.homophily import homophily


@dataclass(frozen=True)
class Inspection:
    """Everything `spam-gnn inspect` prints.

    Args:
        facts: name to value, in the order of printing.
        columns: per column of the node table: name, kind, width.
        notes: what reading guessed, encoded, dropped or merged.
        warnings: what looks wrong, most serious first.
    """

    facts: dict[str, Any]
    columns: list[dict[str, Any]]
    notes: list[str]
    warnings: list[str]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def inspect_reading(reading: Reading) -> Inspection:
    """Measure a graph as it was read."""
    graph = reading.graph
    degree = degrees(graph)
    labelled = graph.y >= 0
    counts = torch.bincount(graph.y[labelled], minlength=graph.num_classes).tolist()
    components, sizes = _components(graph)
    facts: dict[str, Any] = {
        "name": graph.name,
        "nodes": graph.num_nodes,
        "edges": graph.num_edges if graph.directed else graph.num_edges // 2,
        "directed": graph.directed,
        "features": graph.num_features,
        "classes": dict(zip(graph.class_names, counts, strict=True)),
        "unlabelled": int((~labelled).sum()),
        "split": {
            part: int(mask.sum()) for part, mask in
            (("train", graph.train_mask), ("val", graph.val_mask), ("test", graph.test_mask))
        },
        "homophily": {name: _number(value) for name, value in asdict(homophily(graph)).items()},
        "components": components,
        "largest component": int(sizes.max()),
        "isolated": int((degree == 0).sum()),
        "degree": {
            "mean": round(float(degree.mean()), 3), "median": float(np.median(degree)), "max": int(degree.max()),
            "gini": round(gini(degree), 3),
        },
    }  # fmt: skip
    kinds = [asdict(column) for column in reading.columns]
    return Inspection(facts, kinds, list(graph.notes), suspicions(reading, degree))


def degrees(graph: Graph) -> np.ndarray:
    """(n,) how many edges touch each node, whatever their direction."""
    ends = graph.edge_index.flatten() if graph.directed else graph.edge_index[1]
    return torch.bincount(ends, minlength=graph.num_nodes).numpy()


def gini(degree: np.ndarray) -> float:
    """0 where all degrees are equal, near 1 where a few nodes hold all edges."""
    total = float(degree.sum())
    if total == 0:
        return 0.0
    rank = np.arange(1, len(degree) + 1)
    return float(2 * (rank * np.sort(degree)).sum() / (len(degree) * total) - (len(degree) + 1) / len(degree))


def column_summary(columns: list[dict[str, Any]]) -> list[str]:
    """'12 numbers', 'one-hot: colour (3)', ...: what became of the columns, short whatever their number."""
    kinds = Counter(column["kind"] for column in columns)
    lines = [f"{role}: {next(c['name'] for c in columns if c['kind'] == role)}" for role in ("id", "label", "split")
             if kinds[role]]  # fmt: skip
    lines += [f"{kinds['number']} numbers"] if kinds["number"] else []
    for kind in ("one-hot", "words", "degree"):
        named = [f"{c['name']} ({c['width']})" for c in columns if c["kind"] == kind]
        if named:
            lines.append(f"{kind}: {', '.join(named[:8])}{f' and {len(named) - 8} more' if len(named) > 8 else ''}")
    return lines


def _components(graph: Graph) -> tuple[int, np.ndarray]:
    source, target = graph.edge_index.numpy()
    ones, shape = np.ones(len(source), dtype=np.int8), (graph.num_nodes, graph.num_nodes)
    count, member = connected_components(scipy.sparse.csr_array((ones, (source, target)), shape=shape), directed=False)
    return int(count), np.bincount(member)


def _number(value: float) -> float | None:
    return round(value, 4) if math.isfinite(value) else None
