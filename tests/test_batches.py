"""Batches: sampling is right, a batch knows what the whole graph knows, and enough of a batch is the whole graph."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.loader import NodeLoader
from torch_geometric.sampler import NodeSamplerInput

from spam_gnn import SpaM, SpaMConfig, TrainConfig, csbm
from spam_gnn.baselines.registry import make_baseline
from spam_gnn.errors import BadInput
from spam_gnn.graph import Graph
from spam_gnn.loading.batched import BatchConfig, BatchedFeed, make_feed
from spam_gnn.loading.clusters import Clusters
from spam_gnn.loading.cut import Chosen, Whole
from spam_gnn.loading.sampler import LibrarySampler, NeighbourSampler, make_sampler
from spam_gnn.position import PositionShape
from spam_gnn.posterior import BeliefPosterior
from spam_gnn.posterior.base import edge_evidence
from spam_gnn.team import Alone
from spam_gnn.training import fit

QUIET = {"hidden": 16, "posterior_hidden": 16, "samples": 2, "predict_samples": 4, "dropout": 0.0, "posterior_dropout": 0.0}


def star(leaves: int) -> Graph:
    edges = torch.stack([torch.arange(1, leaves + 1), torch.zeros(leaves, dtype=torch.int64)])
    return Graph.build(torch.ones(leaves + 1, 2), edges, directed=False, num_classes=2)


def sampled(graph, sizes, nodes, epoch=0, seed=0):
    index = NodeSamplerInput(torch.arange(len(nodes)), torch.tensor(nodes))
    return NeighbourSampler(graph, sizes, seed, epoch).sample_from_nodes(index)


def directed(graph: Graph) -> Graph:
    keep = torch.rand(graph.num_edges, generator=torch.Generator().manual_seed(1)) < 0.6
    return Graph.build(graph.x, graph.edge_index[:, keep], graph.y, train_mask=graph.train_mask, val_mask=graph.val_mask,
                       directed=True)  # fmt: skip


def test_samples_are_real_edges_without_repeats():
    graph = csbm(nodes=300, seed=0)
    out = sampled(graph, (3, 2), [5, 17, 200])
    assert out.node[:3].tolist() == [5, 17, 200]
    assert len(torch.unique(out.node)) == len(out.node)
    assert len(torch.unique(out.edge)) == len(out.edge)
    source, target = graph.edge_index[:, out.edge]
    assert torch.equal(out.node[out.row], source)
    assert torch.equal(out.node[out.col], target)
    degree = torch.bincount(graph.edge_index[1], minlength=300)
    first = torch.bincount(out.col[: out.num_sampled_edges[0]], minlength=3)[:3]
    assert torch.equal(first, degree[[5, 17, 200]].clamp(max=3))
    assert sum(out.num_sampled_nodes) == len(out.node)


def test_each_neighbour_is_as_likely_as_the_others():
    graph, counts, draws = star(10), np.zeros(11), 3000
    sampler = NeighbourSampler(graph, (4,))
    index = NodeSamplerInput(torch.tensor([0]), torch.tensor([0]))
    for epoch in range(draws):
        found = sampler.at_epoch(epoch).sample_from_nodes(index).node[1:].numpy()
        assert len(set(found)) == 4
        counts[found] += 1
    spread = (draws * 0.4 * 0.6) ** 0.5
    assert np.abs(counts[1:] - 0.4 * draws).max() < 4.5 * spread


def test_a_node_draws_the_same_neighbours_in_any_batch():
    graph = csbm(nodes=300, seed=0)
    alone, among = sampled(graph, (2,), [40]), sampled(graph, (2,), [7, 40, 90])
    assert set(alone.edge.tolist()) == set(among.edge[among.col == 1].tolist())
    assert not torch.equal(alone.edge, sampled(graph, (2,), [40], epoch=1).edge)
    assert not torch.equal(alone.edge, sampled(graph, (2,), [40], seed=1).edge)


def test_with_pygs_own_loader():
    graph = csbm(nodes=120, seed=0)
    data = Data(x=graph.x, edge_index=graph.edge_index, y=graph.y)
    batches = list(NodeLoader(data, NeighbourSampler(graph, (3, 3)), batch_size=50))
    assert [b.batch_size for b in batches] == [50, 50, 20]
    for batch in batches:
        assert torch.equal(batch.x, graph.x[batch.n_id])
        assert torch.equal(batch.n_id[batch.edge_index], graph.edge_index[:, batch.e_id])


def test_pyg_lib_is_taken_where_it_is_installed(monkeypatch):
    graph = csbm(nodes=30, seed=0)
    assert isinstance(make_sampler(graph, (3,), 0), NeighbourSampler)
    monkeypatch.setattr("torch_geometric.typing.WITH_PYG_LIB", True)
    monkeypatch.setattr("spam_gnn.loading.sampler.NeighborSampler", lambda data, sizes: (data, sizes))
    assert isinstance(make_sampler(graph, (3,), 0), LibrarySampler)


@pytest.mark.parametrize("turn", [lambda g: g, directed])
def test_a_batch_that_holds_everything_has_the_loss_of_the_whole_graph(turn):
    graph = turn(csbm(nodes=90, feature_strength=2.0, seed=3))
    place = PositionShape.wanted("on", 8, graph.num_nodes, graph.num_edges, directed=graph.directed)
    model = SpaM(graph.num_features, 3, SpaMConfig(directions="both", position_dropout=0.0, **QUIET), 0, place)
    model.begin(graph, 0)
    feed = make_feed(model, graph, BatchConfig(size=1000, neighbours=(-1,) * 12), 0, Alone())
    [[piece]] = list(feed.steps(model, 0, 0))
    assert piece.weight == piece.share == 1.0
    assert piece.graph.num_edges == graph.num_edges
    whole, batch = model.training_loss(model.prepare(graph), 0, 0), model.training_loss(piece.graph, 0, 0)
    assert set(whole) == set(batch)
    for part in (whole, batch):  # in a batch trusting networks learn from its seeds only: others lack part of their neighbours
        part["loss"] = part["loss"] - part.pop("trusted")
    for name, value in whole.items():
        torch.testing.assert_close(batch[name], value, atol=2e-5, rtol=1e-4, msg=lambda text, name=name: f"{name}: {text}")


def test_evidence_and_signs_of_an_edge_are_those_of_the_whole_graph():
    graph = csbm(nodes=200, seed=1)
    model = SpaM(graph.num_features, 3, SpaMConfig(**{**QUIET, "posterior": "similarity"}))
    model.begin(graph, 0)
    prepared = model.prepare(graph)
    feed = make_feed(model, graph, BatchConfig(size=20, neighbours=(3, 3)), 0, Alone())
    [piece, *_] = next(feed.steps(model, 0, 0))
    ends = piece.graph.identity[piece.graph.edge_index]
    place = {tuple(pair): e for e, pair in enumerate(graph.edge_index.t().tolist())}
    edges = torch.tensor([place[tuple(pair)] for pair in ends.t().tolist()])
    torch.testing.assert_close(edge_evidence(piece.graph), edge_evidence(prepared)[edges])
    outcomes = [model(g, g.train_mask, seed=0, samples=3) for g in (piece.graph, prepared)]
    assert torch.equal(outcomes[0].signs.positive, outcomes[1].signs.positive[:, edges])


@pytest.mark.parametrize("turn", [lambda graph: graph, directed])
def test_sampled_neighbours_are_believed_as_far_as_all_together(turn):
    graph = turn(csbm(nodes=200, degree=20.0, seed=1))
    model = SpaM(graph.num_features, 3, SpaMConfig(directions="both", **QUIET))
    assert isinstance(model.posterior, BeliefPosterior)
    whole = Whole.of(graph)
    found = sampled(graph, (3, 3), [5, 7, 9])
    batch = whole.cut(Chosen(found.node, found.row, found.col, found.edge), torch.arange(len(found.node)) < 3, 0)
    heard = [model.posterior._weight(g) * g.edge_ends for g in (batch, graph)]
    torch.testing.assert_close(heard[0], heard[1][found.node], atol=0, rtol=1e-4)


def test_every_target_is_a_seed_once_and_weights_add_up():
    graph = csbm(nodes=300, seed=2)
    model = SpaM(graph.num_features, 3, SpaMConfig(**QUIET))
    model.begin(graph, 0)
    for config in (BatchConfig(size=32, together=3), BatchConfig(clusters=8, joined=2, together=3)):
        feed, seeds = make_feed(model, graph, config, 0, Alone()), []
        for pieces in feed.steps(model, 0, 4):
            assert sum(piece.weight for piece in pieces) == pytest.approx(1.0)
            for piece in pieces:
                counted = piece.graph.counted & model.targets(piece.graph, 0, 4)
                seeds += piece.graph.identity[counted].tolist()
        wanted = torch.nonzero(model.targets(graph, 0, 4)).reshape(-1).tolist()
        assert sorted(seeds) == wanted


def test_networks_that_are_shown_no_labels_learn_from_all_of_them():
    """Half of the labels are context of the posterior in an epoch; the loss of the others counts every training node once."""
    graph = csbm(nodes=300, seed=2)
    model = SpaM(graph.num_features, 3, SpaMConfig(**QUIET))
    model.begin(graph, 0)
    feed = make_feed(model, graph, BatchConfig(size=32), 0, Alone())
    seen = [i for pieces in feed.steps(model, 0, 4) for p in pieces for i in p.graph.identity[p.graph.counted].tolist()]
    assert sorted(seen) == torch.nonzero(graph.train_mask).reshape(-1).tolist()


def test_a_batch_of_labelled_nodes_alone_has_a_loss():
    graph = csbm(nodes=300, seed=2)
    model = SpaM(graph.num_features, 3, SpaMConfig(**QUIET))
    model.begin(graph, 0)
    few = torch.zeros(300, dtype=torch.bool)
    few[torch.nonzero(graph.train_mask).reshape(-1)[:12]] = True
    graph = graph.with_masks(few, graph.val_mask, graph.test_mask)
    cut = Whole.of(model.structure(graph), {}).cut(
        Chosen(torch.nonzero(few).reshape(-1), *torch.zeros(3, 0, dtype=torch.int64)), torch.ones(12, dtype=torch.bool), 0)
    parts = model.training_loss(model.prepare(cut), 0, 0)
    assert all(bool(torch.isfinite(value)) for value in parts.values()), parts


class Seat(Alone):
    """One of several processes, for looking at its share of the work."""

    def __init__(self, rank, size):
        self.rank, self.size = rank, size


def test_processes_share_the_batches_of_one():
    graph = csbm(nodes=300, seed=2)
    model = SpaM(graph.num_features, 3, SpaMConfig(**QUIET))
    config = BatchConfig(size=32, together=2)

    def numbers(team):
        feed = make_feed(model, graph, config, 0, team)
        assert isinstance(feed, BatchedFeed)
        return [[(p.graph.part.number, p.weight) for p in pieces] for pieces in feed.steps(model, 0, 0)]

    alone, shares = numbers(Alone()), [numbers(Seat(rank, 2)) for rank in range(2)]
    for step, *parts in zip(alone, *shares, strict=True):
        assert sorted(job for part in parts for job in part if job[1] > 0) == sorted(step)
        assert all(parts)  # nobody is missing where gradients are exchanged


def test_clusters_hold_every_node_and_the_edges_among_them():
    graph = csbm(nodes=200, seed=0)
    parts = Clusters.of(graph, 6)
    assert torch.equal(torch.sort(parts.nodes(torch.arange(6))).values, torch.arange(200))
    chosen = parts.induced(torch.tensor([1, 4]))
    inside = torch.isin(graph.edge_index, chosen.nodes).all(0)
    assert torch.equal(torch.sort(chosen.edge).values, torch.nonzero(inside).reshape(-1))
    assert torch.equal(chosen.nodes[chosen.source], graph.edge_index[0, chosen.edge])


def test_moments_of_many_edges_are_those_of_all(monkeypatch):
    graph = csbm(nodes=200, seed=0)
    at_once = Whole.of(graph).evidence
    monkeypatch.setattr("spam_gnn.loading.cut._EDGES_AT_A_TIME", 100)
    torch.testing.assert_close(Whole.of(graph).evidence, at_once)


@pytest.mark.parametrize("config", [BatchConfig(size=64, neighbours=(5, 5)), BatchConfig(clusters=6, joined=2)])
@pytest.mark.parametrize("name", ["spam", "sage"])
def test_training_in_batches_learns(name, config):
    graph = csbm(nodes=400, noise=0.2, feature_strength=2.0, seed=0)
    model = make_baseline(name, graph, 0)
    state = fit(model, graph, TrainConfig(epochs=12), 0, batches=config)
    right = model.predict(model.prepare(graph), 0).label == graph.y
    assert float(right[graph.test_mask].float().mean()) > 0.7
    assert {"train_accuracy", "val_accuracy", "val_loss"} <= state.history[-1].keys()


def test_steps_on_batches_are_shorter():
    graph, train = csbm(nodes=60, seed=0), TrainConfig(epochs=1, val_samples=1)
    for batches, rate in ((BatchConfig(), 1.0), (BatchConfig(size=8), 0.4), (BatchConfig(clusters=2), 0.4)):
        state = fit(SpaM(graph.num_features, graph.num_classes), graph, train, 0, batches=batches)
        assert state.history[0]["learning_rate"] == pytest.approx(rate * train.learning_rate)


def test_what_cannot_be_is_said_in_one_line(monkeypatch):
    graph = csbm(nodes=60, seed=0)
    model = make_baseline("linkx", graph, 0)
    with pytest.raises(BadInput, match="needs the whole graph"):
        make_feed(model, graph, BatchConfig(size=8), 0, Alone())
    with pytest.raises(BadInput, match="give one or the other"):
        BatchConfig(size=8, clusters=4)
    with pytest.raises(BadInput, match="neighbours: found"):
        BatchConfig(size=8, neighbours=(0,))
    with pytest.raises(BadInput, match="taken whole"):
        make_feed(model, graph, BatchConfig(), 0, Seat(0, 2))
    monkeypatch.setitem(sys.modules, "pymetis", None)
    with pytest.raises(BadInput, match=r"spam-gnn\[clusters\]"):
        Clusters.of(graph, 3)
