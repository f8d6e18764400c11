"""The graphs that models are checked on: three to learn from, and a dozen awkward ones."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import torch
from torch import Tensor

from spam_gnn.data.synthetic import csbm
from spam_gnn.graph import Graph
from spam_gnn.randomness import stream


def easy_graph() -> Graph:
    """60 nodes whose features and edges both give the class away."""
    return csbm(nodes=60, feature_strength=2.0, noise=0.0, homophily=0.9, seed=0)


def structure_graph() -> Graph:
    """90 nodes whose features say nothing and whose edges all join equal classes."""
    return csbm(nodes=90, feature_strength=0.0, noise=0.0, homophily=1.0, degree=12.0, seed=0)


def noise_graph() -> Graph:
    """90 nodes whose features give the class away and whose few edges are random."""
    return csbm(nodes=90, feature_strength=5.0, noise=1.0, degree=2.0, seed=0)


def small_graph() -> Graph:
    """36 nodes, a third of them labelled but outside every mask, some of each class in every part."""
    graph = csbm(nodes=36, classes=3, degree=4.0, features=6, seed=1)
    place = torch.zeros(36, dtype=torch.int64)
    for c in range(3):  # deal the nodes of each class to train, validation, test and nothing in turn
        members = torch.nonzero(graph.y == c).reshape(-1)
        place[members] = torch.arange(members.numel()) % 4
    return replace(graph.with_masks(place == 0, place == 1, place == 2), edge_sign=None)


def hand_made(
    n: int, edges: list[tuple[int, int]], *, classes: int = 3, d: int = 5, directed: bool = False, x: Tensor | None = None,
    y: Tensor | None = None,
) -> Graph:  # fmt: skip
    """A graph from a list of edges: random features, classes in turn, two thirds of the nodes for training."""
    labels = torch.arange(n) % classes if y is None else y
    features = torch.randn(n, d, generator=stream(0, "checks")) if x is None else x
    place = torch.arange(n) // classes % 3
    known = labels >= 0
    index = torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).t()
    return Graph.build(
        features, index, labels, train_mask=(place != 1) & known, val_mask=(place == 1) & known, directed=directed,
        num_classes=classes,
    )  # fmt: skip


def ring(n: int) -> list[tuple[int, int]]:
    return [(i, (i + 1) % n) for i in range(n)]


@cache
def awkward_graphs() -> dict[str, Graph]:
    """Name -> a graph that a model must survive: train, and give every node probabilities."""
    n = 18
    noise = torch.randn(n, 5, generator=stream(1, "checks"))
    empty_rows = noise.clone()
    empty_rows[::3] = 0.0
    unlabelled = torch.where(torch.arange(n) % 4 == 3, -1, torch.arange(n) % 3)
    two = Graph.build(torch.eye(2), torch.tensor([[0], [1]]), torch.tensor([0, 1]), train_mask=torch.ones(2, dtype=torch.bool),
                      directed=False)  # fmt: skip
    absent = hand_made(n, ring(n))
    return {
        "isolated_nodes": hand_made(n, [(0, 1), (1, 2), (3, 4)]),
        "no_edges": hand_made(n, []),
        "directed_graph": hand_made(n, [*ring(n), (0, 5), (2, 9), (9, 2)], directed=True),
        "disconnected_graph": hand_made(n, [(i, j) for a in (0, 6, 12) for i in range(a, a + 6) for j in range(a, i)]),
        "hub": hand_made(n, [(0, i) for i in range(1, n)]),
        "complete_graph": hand_made(n, [(i, j) for i in range(n) for j in range(i)]),
        "two_nodes": two,
        "many_classes": hand_made(60, ring(60), classes=20),
        "class_absent_from_training": replace(absent, train_mask=absent.train_mask & (absent.y != 2)),
        "one_feature": hand_made(n, ring(n), x=noise[:, :1]),
        "constant_features": hand_made(n, ring(n), x=torch.ones(n, 5)),
        "rows_of_zeros": hand_made(n, ring(n), x=empty_rows),
        "large_features": hand_made(n, ring(n), x=1e4 * noise),
        "unlabelled_nodes": hand_made(n, ring(n), y=unlabelled),
    }
