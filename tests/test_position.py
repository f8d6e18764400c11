"""A node's place in the graph as columns: what they are, that names do not matter, and that they tell what means cannot."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from spam_gnn import SpaMClassifier, SpaMConfig
from spam_gnn.baselines.base import Shape
from spam_gnn.baselines.registry import find
from spam_gnn.graph import Graph
from spam_gnn.model import POSITION
from spam_gnn.position import SIZES, Position, PositionShape
from spam_gnn.training import TrainConfig, fit


def two_crowds(n=120, seed=0, directed=True):
    """Features say nothing; nodes of class 1 are heard by six times as many as nodes of class 0."""
    draws = np.random.default_rng(seed)
    y = torch.from_numpy(draws.integers(0, 2, n))
    weight = np.where(y.numpy() == 1, 6.0, 1.0)
    target = draws.choice(n, 8 * n, p=weight / weight.sum())
    edges = torch.from_numpy(np.stack([draws.integers(0, n, 8 * n), target]))
    half = torch.arange(n) % 4
    return Graph.build(
        torch.from_numpy(draws.standard_normal((n, 5))).float(), edges, y, directed=directed,
        train_mask=half < 2, val_mask=half == 2, test_mask=half == 3,
    )  # fmt: skip


def learned(graph, rank, directed, power=0.0):
    shape = PositionShape(graph.num_nodes, rank, directed)
    position = Position(shape, power)
    position.learn(graph, 0)
    return position


@pytest.mark.parametrize("power", [0.5, 1.0])
@pytest.mark.parametrize("directed", [True, False])
def test_columns_are_the_leading_part_of_the_adjacency(directed, power):
    graph = two_crowds(40, directed=directed)
    rank = 12
    columns = learned(graph, rank, directed, power).columns(graph).double().numpy()[:, SIZES:]
    dense = np.zeros((40, 40))
    dense[graph.edge_index[1], graph.edge_index[0]] = 1.0
    left, values, right = np.linalg.svd(dense)
    for way, vectors in enumerate([left, right.T][: 2 if directed else 1]):
        expected = vectors[:, :rank] * values[:rank] ** power  # A V S^(q-1) = U S^q
        found = columns[:, way * rank : (way + 1) * rank]
        ratio = np.square(expected).sum() / np.square(found).sum()
        gram = expected @ expected.T
        np.testing.assert_allclose(found @ found.T * ratio, gram, atol=0.02 * np.abs(gram).max())
        assert np.square(found).sum(1).mean() == pytest.approx(9.0, rel=1e-4)


def crowds_or_partners(n=200, *, partners):
    """An undirected graph of two crowds. The label is the crowd, or what a node shares with the one other that has its
    neighbours: large singular directions tell the first, small ones the second."""
    draws = np.random.default_rng(0)
    crowd = np.arange(n) % 4 // 2  # partners, 0 and 1, 2 and 3, are of one crowd
    joins = draws.random((n // 2, n)) < np.where(crowd[::2, None] == crowd[None, :], 0.2, 0.02)
    joins = np.repeat(joins, 2, 0)
    target, source = np.nonzero(joins)
    label = np.repeat(draws.integers(0, 2, n // 2), 2) if partners else crowd
    return Graph.build(
        torch.ones(n, 3), torch.from_numpy(np.stack([source, target])), torch.from_numpy(label), directed=True,
        train_mask=torch.ones(n, dtype=torch.bool),
    )  # fmt: skip


@pytest.mark.parametrize(("partners", "power"), [(True, 0.5), (False, 1.0)])
def test_training_labels_choose_the_power(partners, power):
    graph = crowds_or_partners(partners=partners)
    chosen, rest = learned(graph, 150, directed=True), learned(graph, 150, True, 1.5 - power)
    torch.testing.assert_close(
        chosen.get_buffer("directions"), learned(graph, 150, True, power).get_buffer("directions"), atol=0, rtol=0
    )
    assert not torch.allclose(chosen.get_buffer("directions"), rest.get_buffer("directions"))


def test_without_labels_to_ask_the_power_is_a_half():
    graph = two_crowds(40)
    none = Graph.build(graph.x, graph.edge_index, graph.y, directed=True, identity=graph.identity)
    expected = learned(graph, 8, True, 0.5).get_buffer("directions")
    torch.testing.assert_close(learned(none, 8, True).get_buffer("directions"), expected, atol=0, rtol=0)


def test_sizes_are_standardised_by_the_training_graph():
    graph = two_crowds()
    position = learned(graph, 4, directed=True)
    sizes = position.columns(graph)[:, :SIZES]
    torch.testing.assert_close(sizes.mean(0), torch.zeros(SIZES), atol=1e-5, rtol=0)
    torch.testing.assert_close(sizes.std(0, correction=0), torch.ones(SIZES), atol=1e-5, rtol=0)
    thinned = Graph.build(graph.x, graph.edge_index[:, ::2], graph.y, directed=True, identity=graph.identity)
    assert float(position.columns(thinned)[:, 0].mean()) < -0.5  # fewer neighbours than in training, and said so


def test_a_node_unknown_in_training_adds_nothing_to_the_rows_of_others():
    graph = two_crowds(40)
    position = learned(graph, 8, directed=True)
    more = Graph.build(
        torch.cat([graph.x, torch.ones(1, 5)]), torch.cat([graph.edge_index, torch.tensor([[40], [0]])], 1),
        directed=True, identity=torch.cat([graph.identity, torch.tensor([10**12])]),
    )  # fmt: skip
    torch.testing.assert_close(position.columns(more)[:40, SIZES:], position.columns(graph)[:, SIZES:], atol=1e-5, rtol=0)


def test_auto_looks_at_dense_graphs_only():
    assert PositionShape.wanted("auto", 512, 100, 999, directed=False) is None
    assert PositionShape.wanted("auto", 512, 100, 1000, directed=False) == PositionShape(100, 99, False)
    assert PositionShape.wanted("auto", 512, 100, 500, directed=True) == PositionShape(100, 99, True)
    assert PositionShape.wanted("auto", 2048, 5000, 200_000, directed=True).rank == (1 << 24) // 10_000  # 16.8 million numbers
    assert PositionShape.wanted("auto", 2048, 5000, 200_000, directed=False).rank == 2048
    assert PositionShape.wanted("auto", 2048, 100_000, 9_000_000, directed=False).rank == 512
    assert PositionShape.wanted("off", 512, 100, 9999, directed=True) is None
    assert PositionShape.wanted("on", 16, 100, 1, directed=True) == PositionShape(100, 16, True)


def test_degrees_are_learned_which_means_do_not_show():
    graph, train = two_crowds(), TrainConfig(epochs=60, patience=60)
    accuracy = {}
    for mode in ("on", "off"):
        system = find("spam")
        settings = SpaMConfig(posterior="none", position=mode, position_rank=2)
        model = system.make(Shape.of(graph), settings, 0)
        fit(model, graph, train, 0)
        label = model.predict(model.prepare(graph), 0).label
        accuracy[mode] = float((label == graph.y)[graph.test_mask].float().mean())
    assert accuracy["on"] > 0.85
    assert accuracy["off"] < accuracy["on"] - 0.15


def test_names_of_nodes_do_not_matter_and_a_saved_model_says_the_same(tmp_path):
    graph = two_crowds()
    order = torch.from_numpy(np.random.default_rng(1).permutation(graph.num_nodes))
    renamed = graph.relabel(order)
    first, second = (learned(g, 8, directed=True) for g in (graph, renamed))
    torch.testing.assert_close(first.get_buffer("directions"), second.get_buffer("directions"), atol=1e-6, rtol=0)
    made = SpaMClassifier(hidden=8, epochs=5, position="on", position_rank=8, random_state=0).fit(graph)
    said = torch.as_tensor(made.predict_proba(graph))
    torch.testing.assert_close(torch.as_tensor(made.predict_proba(renamed)), said[order], atol=1e-5, rtol=0)
    made.save(tmp_path / "kept")
    again = SpaMClassifier.load(tmp_path / "kept")
    torch.testing.assert_close(torch.as_tensor(again.predict_proba(graph)), said, atol=0, rtol=0)


def test_the_graph_that_the_user_gave_is_left_as_it_was():
    graph = two_crowds()
    model = find("spam").make(Shape.of(graph), SpaMConfig(scaling="none", directions="in", position="on"), 0)
    model.begin(graph, 0)
    assert POSITION in model.prepare(graph).derived
    assert POSITION not in graph.derived
