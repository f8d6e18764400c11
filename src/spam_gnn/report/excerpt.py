"""Which part of the graph travels inside the page, and in what form.

A page of a large graph holds an excerpt: first every edge the tables list, then whole neighbourhoods, taken in turn
from the most suspicious edges, the most opposing edges and the nodes in most doubt. Nothing is drawn at random.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spam_gnn.report.content import EdgeTable, NodeTable, ReportContent
from spam_gnn.report.markup import clean, finite

MAX_EDGES = 3000
MAX_NODES = 6000
TABLE_ROWS = 50
# Seeds beyond this add neighbourhoods nobody will look for, and make ranking a large graph slow.
_SEEDS = 4000
# A start node with more neighbours than this makes a crowded first picture.
_START_DEGREE = 24

Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Excerpt:
    """Stored edges and nodes (indices into the content, ascending), and each stored node's position in the page."""

    edges: Indices
    nodes: Indices
    position: dict[int, int]
    degree: NDArray[np.int64]
    start: int


def ranked(values: NDArray[np.floating], rows: int) -> Indices:
    """The indices of the `rows` highest finite values, highest first, ties by index."""
    known = np.flatnonzero(np.isfinite(values))
    return known[np.argsort(-values[known], kind="stable")[:rows]]


def take_excerpt(content: ReportContent) -> Excerpt:
    """Choose at most MAX_EDGES edges and about MAX_NODES nodes."""
    edges, nodes = content.edges, content.nodes
    if not edges.judged:  # nothing to show around a node
        none = np.zeros(0, dtype=np.intp)
        return Excerpt(none, none, {}, np.zeros(nodes.count, dtype=np.int64), -1)
    ends = np.concatenate([edges.source, edges.target]).astype(np.intp)
    degree = np.bincount(ends, minlength=nodes.count)
    order = np.argsort(ends, kind="stable")
    pointer = np.concatenate([[0], degree.cumsum()])

    stored = np.zeros(edges.count, dtype=bool)
    if edges.count <= MAX_EDGES:
        stored[:] = True
    else:
        stored[ranked(edges.p_absent, TABLE_ROWS)] = True
        stored[ranked(edges.p_negative, TABLE_ROWS)] = True
        room = MAX_EDGES - int(stored.sum())
        for node in _seeds(edges, nodes):
            incident = order[pointer[node] : pointer[node + 1]] % edges.count
            fresh = np.unique(incident[~stored[incident]])
            # A hub that does not fit whole is left out rather than shown in a misleading part.
            if len(fresh) <= room:
                stored[fresh] = True
                room -= len(fresh)
    chosen = np.flatnonzero(stored)
    kept = _stored_nodes(edges, nodes, chosen)
    position = {int(node): place for place, node in enumerate(kept)}
    return Excerpt(chosen, kept, position, degree, _start(edges, nodes, chosen, kept, degree))


def _seeds(edges: EdgeTable, nodes: NodeTable) -> list[int]:
    """Nodes in the order their neighbourhoods are taken: three rankings in turn."""
    suspicious = ranked(edges.p_absent, _SEEDS)
    opposing = ranked(edges.p_negative, _SEEDS)
    doubtful = ranked(nodes.structural, _SEEDS)
    queue: dict[int, None] = {}
    for rank in range(_SEEDS):
        for ranking in (suspicious, opposing):
            if rank < len(ranking):
                queue[int(edges.source[ranking[rank]])] = None
                queue[int(edges.target[ranking[rank]])] = None
        if rank < len(doubtful):
            queue[int(doubtful[rank])] = None
    return list(queue)


def _stored_nodes(edges: EdgeTable, nodes: NodeTable, chosen: Indices) -> Indices:
    """The ends of the stored edges, the doubtful nodes of the table, then others by doubt while there is room."""
    touched = np.zeros(nodes.count, dtype=bool)
    touched[edges.source[chosen]] = True
    touched[edges.target[chosen]] = True
    touched[ranked(nodes.structural, TABLE_ROWS)] = True
    room = max(0, MAX_NODES - int(touched.sum()))
    others = np.flatnonzero(~touched)
    touched[others[np.argsort(-np.nan_to_num(nodes.structural[others]), kind="stable")[:room]]] = True
    return np.flatnonzero(touched)


def _start(edges: EdgeTable, nodes: NodeTable, chosen: Indices, kept: Indices, degree: NDArray[np.int64]) -> int:
    """The position of the node to show first: whole in the excerpt, not crowded, with the most kinds of edges."""
    kinds: dict[int, set[int]] = {}
    seen = np.zeros(nodes.count, dtype=np.int64)
    for edge in chosen:
        for node in (int(edges.source[edge]), int(edges.target[edge])):
            kinds.setdefault(node, set()).add(int(edges.verdict[edge]))
            seen[node] += 1

    def interest(place: int) -> tuple[bool, int, float, int]:
        node = int(kept[place])
        readable = bool(degree[node] == seen[node] and degree[node] <= _START_DEGREE)
        doubt = float(np.nan_to_num(nodes.structural[node]))
        return readable, len(kinds.get(node, ())), doubt, -place

    return max(range(len(kept)), key=interest, default=-1)


def payload(content: ReportContent, excerpt: Excerpt) -> dict[str, Any]:
    """What the page's script reads: columns rather than records, which is about a third of the size."""
    edges, nodes = content.edges, content.nodes
    kept, chosen = excerpt.nodes, excerpt.edges
    return {
        "directed": bool(edges.directed),
        "start": excerpt.start,
        "classes": [clean(name) for name in content.class_names],
        "nodes": {
            "name": [clean(nodes.names[node]) for node in kept],
            "prediction": [int(value) for value in nodes.prediction[kept]],
            "label": [int(value) for value in nodes.label[kept]],
            "confidence": finite(nodes.confidence[kept]),
            "total": finite(nodes.total[kept]),
            "structural": finite(nodes.structural[kept]),
            "degree": [int(value) for value in excerpt.degree[kept]],
        },
        "edges": {
            "source": [excerpt.position[int(value)] for value in edges.source[chosen]],
            "target": [excerpt.position[int(value)] for value in edges.target[chosen]],
            "opposes": finite(edges.p_negative[chosen]),
            "noise": finite(edges.p_absent[chosen]),
            "helps": finite(edges.p_positive[chosen]),
            "verdict": [int(value) for value in edges.verdict[chosen]],
            "truth": None if edges.truth is None else [int(value) for value in edges.truth[chosen]],
        },
    }
