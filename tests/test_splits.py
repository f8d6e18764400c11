"""The random split: exact sizes in every class, the same nodes whatever their order, and the smallest classes."""

from __future__ import annotations

import pytest
import torch

from spam_gnn.data.splits import random_split
from spam_gnn.errors import BadInput
from spam_gnn.graph import Graph


def labelled(*labels: int, num_classes: int | None = None) -> Graph:
    edges = torch.zeros(2, 0, dtype=torch.int64)
    return Graph.build(torch.ones(len(labels), 1), edges, torch.tensor(labels), num_classes=num_classes)


def sizes(graph: Graph, label: int) -> tuple[int, ...]:
    """Training, validation and test nodes of a class."""
    return tuple(int((mask & (graph.y == label)).sum()) for mask in masks(graph))


def masks(graph: Graph) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return graph.train_mask, graph.val_mask, graph.test_mask


def test_every_class_is_divided_by_the_same_fractions():
    graph = random_split(labelled(*[0] * 100, *[1] * 50, *[2] * 25, *[-1] * 7), seed=0)
    assert sizes(graph, 0) == (48, 32, 20)
    assert sizes(graph, 1) == (24, 16, 10)
    assert sizes(graph, 2) == (12, 8, 5)
    assert sizes(graph, -1) == (0, 0, 0)
    assert torch.equal(sum(mask.long() for mask in masks(graph)), (graph.y >= 0).long())  # disjoint, and all of them
    assert sizes(random_split(graph, 0, (0.1, 0.2)), 0) == (10, 20, 70)  # a split that is there is replaced


@pytest.mark.parametrize(
    ("members", "fractions", "expected"),
    [
        (0, (0.48, 0.32), (0, 0, 0)),
        (1, (0.48, 0.32), (1, 0, 0)),
        (2, (0.48, 0.32), (1, 1, 0)),
        (3, (0.48, 0.32), (1, 1, 1)),
        (3, (0.98, 0.01), (1, 1, 1)),
        (4, (0.48, 0.32), (2, 1, 1)),
        (10, (0.01, 0.01), (1, 1, 8)),
        (10, (0.98, 0.01), (8, 1, 1)),
        (10, (0.01, 0.98), (1, 8, 1)),
    ],
)
def test_small_classes(members, fractions, expected):
    graph = labelled(*[0] * 20, *[1] * members, num_classes=2)
    for seed in range(5):
        assert sizes(random_split(graph, seed, fractions), 1) == expected


@pytest.mark.parametrize("tied", [False, True])
def test_the_same_nodes_whatever_their_order(tied, monkeypatch):
    if tied:  # two equal draws are not to be had by waiting: all of them equal, and the identity decides
        monkeypatch.setattr("spam_gnn.data.splits.node_uniforms", lambda identity, _: torch.zeros(len(identity)))
    generator = torch.Generator().manual_seed(0)
    graph = labelled(*torch.randint(-1, 4, (200,), generator=generator).tolist())
    order = torch.randperm(200, generator=generator)
    for seed in range(3):
        here, there = random_split(graph, seed), random_split(graph.relabel(order), seed)
        for a, b in zip(masks(here), masks(there), strict=True):
            assert torch.equal(a[order], b)


def test_the_seed_decides_and_global_randomness_does_not():
    graph = labelled(*[0, 1] * 100)
    torch.manual_seed(1)
    first = random_split(graph, 5)
    torch.manual_seed(2)
    again = random_split(graph, 5)
    assert all(torch.equal(a, b) for a, b in zip(masks(first), masks(again), strict=True))
    different = random_split(graph, 6)
    assert not torch.equal(first.train_mask, different.train_mask)


def test_every_node_is_drawn_as_often_as_its_fraction_says():
    """Over 400 seeds a node trains 48 % of the time: 192 of 400, standard deviation 10."""
    graph = labelled(*[0] * 25, *[1] * 25)
    drawn = sum(random_split(graph, seed).train_mask.long() for seed in range(400))
    assert isinstance(drawn, torch.Tensor)
    assert int(drawn.min()) > 192 - 50
    assert int(drawn.max()) < 192 + 50


@pytest.mark.parametrize("fractions", [(0.0, 0.5), (0.5, 0.0), (0.5, 0.5), (1.2, -0.3), (float("nan"), 0.1)])
def test_fractions_that_leave_a_part_empty(fractions):
    with pytest.raises(BadInput, match="^fractions: found .*; give two numbers above 0"):
        random_split(labelled(0, 1), 0, fractions)


def test_nothing_to_split():
    with pytest.raises(BadInput, match="^graph: found no labelled node to split; label"):
        random_split(labelled(-1, -1), 0)
