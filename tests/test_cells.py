"""Cells: every node goes to the nearest root, names do not matter, and an epoch on cells sees every target once."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
import torch

from spam_gnn import SpaM, SpaMConfig, TrainConfig
from spam_gnn.checkpoint import load_state, save_state
from spam_gnn.graph import Graph
from spam_gnn.loading.batched import make_feed
from spam_gnn.loading.cells import CellFeed, Cells
from spam_gnn.loading.feed import WholeFeed
from spam_gnn.randomness import node_uniforms, seed_for
from spam_gnn.settings import BatchConfig
from spam_gnn.team import Alone
from spam_gnn.training import fit

SMALL = {"hidden": 8, "posterior_hidden": 8, "samples": 2, "predict_samples": 2, "deep_layers": 3}


def field(side=12, apart=0, features=5):
    """A grid with four neighbours each, and `apart` pairs of nodes that are joined to nobody else."""
    grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(side, side))
    n = side * side
    pairs = [(n + 2 * p, n + 2 * p + 1) for p in range(apart)]
    edges = torch.tensor([*grid.edges, *pairs]).t()
    total = n + 2 * apart
    draw = torch.Generator().manual_seed(0)
    y = (torch.rand(total, generator=draw) < 0.5).long()
    x = torch.randn(total, features, generator=draw) + y.unsqueeze(1)
    place = torch.arange(total) % 4
    return Graph.build(x, edges, y, directed=False, train_mask=place < 2, val_mask=place == 2, test_mask=place == 3)


def test_every_node_is_in_the_cell_of_a_nearest_root():
    graph = field()
    cells = Cells(graph).drawn(5, seed=3, epoch=7)
    roots = torch.argsort(node_uniforms(graph.identity, seed_for(3, "cells", 7)))[:5].tolist()
    net = nx.Graph(graph.edge_index.t().tolist())
    away = np.array([[nx.single_source_shortest_path_length(net, r)[i] for i in range(graph.num_nodes)] for r in roots])
    own = away[cells.part.numpy(), np.arange(graph.num_nodes)]
    np.testing.assert_array_equal(own, away.min(0))
    for number in range(5):  # so a cell is in one piece, and its root is in it
        nodes = cells.nodes(torch.tensor([number])).tolist()
        assert roots[number] in nodes
        assert nx.is_connected(net.subgraph(nodes))


def test_what_no_root_reaches_is_not_torn_apart():
    graph = field(side=4, apart=30)
    cells = Cells(graph).drawn(3, seed=0, epoch=0)
    first, second = cells.part[16::2], cells.part[17::2]
    assert torch.equal(first, second)
    assert set(cells.part.tolist()) == {0, 1, 2}
    assert Cells(graph).drawn(1000, seed=0, epoch=0).count == graph.num_nodes  # as many as there are nodes, and no more


def test_epochs_draw_other_cells_and_names_of_nodes_do_not_matter():
    graph = field()
    cells = Cells(graph)
    assert not torch.equal(cells.drawn(5, 0, 0).part, cells.drawn(5, 0, 1).part)
    order = torch.from_numpy(np.random.default_rng(0).permutation(graph.num_nodes))
    renamed = graph.relabel(order)
    torch.testing.assert_close(Cells(renamed).drawn(5, 0, 0).part, cells.drawn(5, 0, 0).part[order])


def model_for(graph, **settings):
    return SpaM(graph.num_features, graph.num_classes, SpaMConfig(**SMALL, **settings))


def test_a_deep_network_with_many_labels_asks_for_cells(monkeypatch):
    graph = field()
    assert model_for(graph).training_parts(graph) == 1  # 72 labels
    monkeypatch.setattr("spam_gnn.model._LABELS_OF_CELL", 20)
    assert model_for(graph).training_parts(graph) == 3
    assert model_for(graph, cells=2).training_parts(graph) == 2
    assert model_for(graph, cells=1).training_parts(graph) == 1
    assert model_for(graph, few_features=3).training_parts(graph) == 1  # no deep network joins
    model = model_for(graph)
    model.begin(graph, 0)
    assert isinstance(make_feed(model, graph, BatchConfig(), 0, Alone()), CellFeed)
    assert not isinstance(make_feed(model, graph, BatchConfig(size=20), 0, Alone()), CellFeed)  # batches were asked for
    whole = model_for(graph, cells=1)
    whole.begin(graph, 0)
    assert isinstance(make_feed(whole, graph, BatchConfig(), 0, Alone()), WholeFeed)


def test_an_epoch_of_cells_has_every_node_once_and_every_target_counts_alike():
    graph = field()
    model = model_for(graph)
    model.begin(graph, 0)
    steps = list(CellFeed(model, graph, 4).steps(model, seed=0, epoch=2))
    pieces = [piece for (piece,) in steps]
    assert len(pieces) == 4
    seen = torch.cat([piece.graph.identity for piece in pieces])
    assert torch.equal(seen.sort().values, graph.identity.sort().values)
    targets = model.targets(graph, 0, 2)
    for piece in pieces:
        here = int(model.targets(piece.graph, 0, 2).sum())
        assert piece.weight == 1.0
        assert piece.share == pytest.approx(here / int(targets.sum()))


def test_validation_sees_the_whole_graph():
    graph = field()
    model = model_for(graph)
    model.begin(graph, 0)
    of_cells = CellFeed(model, graph, 4).evaluate(model, 0, 2)
    assert of_cells == WholeFeed(model, graph).evaluate(model, 0, 2)


def test_training_on_cells_takes_shorter_steps_and_continues_bit_for_bit(monkeypatch, tmp_path):
    monkeypatch.setattr("spam_gnn.model._LABELS_OF_CELL", 20)
    graph, train = field(), TrainConfig(epochs=4)
    straight = model_for(graph)
    state = fit(straight, graph, train, 0)
    assert state.history[0]["learning_rate"] == pytest.approx(0.4 * train.learning_rate)
    plain = model_for(graph, cells=1)
    assert fit(plain, graph, train, 0).history[0]["learning_rate"] == pytest.approx(train.learning_rate)

    class Stop(Exception):
        pass

    def until_two(state, model, optimiser):
        if state.epoch == 2:
            save_state(tmp_path / "s", state, model, optimiser)
            raise Stop

    broken = model_for(graph)
    with pytest.raises(Stop):
        fit(broken, graph, train, 0, on_epoch=until_two)
    again = model_for(graph)
    state, optimiser = load_state(tmp_path / "s", again, train)
    fit(again, graph, train, 0, state=state, optimiser=optimiser)
    for (name, one), other in zip(straight.state_dict().items(), again.state_dict().values(), strict=True):
        torch.testing.assert_close(one, other, atol=0, rtol=0, msg=name)


def test_a_model_trained_on_cells_learns():
    graph = field(side=20)
    settings = replace(SpaMConfig(), **SMALL)
    model = SpaM(graph.num_features, graph.num_classes, settings)
    model.training_parts = lambda _: 4
    fit(model, graph, TrainConfig(epochs=15), 0)
    label = model.predict(model.prepare(graph), 0).label
    assert float((label == graph.y)[graph.test_mask].double().mean()) > 0.8
