"""Prediction layer by layer: equal to that of the whole graph at once, for every kind of model and however small the pieces."""

from __future__ import annotations

import pytest
import torch

from spam_gnn import SpaM, SpaMConfig, csbm
from spam_gnn.errors import BadInput
from spam_gnn.graph import Graph
from spam_gnn.inference import layerwise, pieces
from spam_gnn.inference.layerwise import predict_layerwise
from spam_gnn.position import PositionShape
from spam_gnn.posterior import SignDistribution, SignPosterior
from test_model import ABLATIONS, SMALL


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """Pieces so small that every graph of these tests needs many, and one sample at a time."""
    monkeypatch.setattr(pieces, "NODES_AT_A_TIME", 7)
    monkeypatch.setattr(pieces, "EDGES_AT_A_TIME", 23)
    monkeypatch.setattr(layerwise, "_STATE", 20_000)


def directed(graph: Graph) -> Graph:
    keep = torch.rand(graph.num_edges, generator=torch.Generator().manual_seed(1)) < 0.6
    return Graph.build(graph.x, graph.edge_index[:, keep], graph.y, train_mask=graph.train_mask, val_mask=graph.val_mask,
                       test_mask=graph.test_mask, directed=True)  # fmt: skip


def compare(graph, **settings):
    config = SpaMConfig.preset(settings.pop("preset", "default")).with_settings({**SMALL, **settings})
    place = PositionShape.wanted(config.position, 8, graph.num_nodes, graph.num_edges, directed=graph.directed)
    model = SpaM(graph.num_features, graph.num_classes, config, 1, place)
    model.begin(graph, 0)
    with torch.no_grad():  # weights that make every part of the posterior matter
        for parameter in model.parameters():
            parameter += 0.03 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(parameter.numel()))
    prepared = model.prepare(graph)
    whole, in_pieces = model.predict(prepared, seed=5), predict_layerwise(model, graph, seed=5)
    torch.testing.assert_close(in_pieces.prediction.log_prob, whole.log_prob, atol=1e-5, rtol=0)
    torch.testing.assert_close(in_pieces.prediction.log_weight, whole.log_weight)
    expected = model.edge_distribution(prepared)
    assert (expected is None) == (in_pieces.distribution is None)
    if expected is not None and in_pieces.distribution is not None:
        torch.testing.assert_close(in_pieces.distribution.log_prob, expected.log_prob, atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", list(ABLATIONS))
def test_equal_to_the_whole_graph_at_once(name):
    compare(csbm(nodes=80, feature_strength=2.0, seed=3), **ABLATIONS[name])


@pytest.mark.parametrize("settings", [
    {"directions": "both"}, {"directions": "out"}, {"directions": "in"}, {"directions": "undirected"},
    {"directions": "both", "belief_rounds": 0}, {"residual": True, "norm": "layer", "layers": 3},
    {"residual": True, "norm": "columns", "layers": 3}, {"few_features": 100, "deep_layers": 4}, {"belief_rounds": 4},
    {"belief_rounds": 0}, {"directions": "both", "belief_rounds": 3},
    {"preset": "paper"}, {"preset": "paper", "posterior": "similarity"}, {"posterior": "gcn", "directions": "both"},
    {"coder": "unrolled"}, {"position": "on"}, {"position": "on", "directions": "both"}, {"posterior": "none", "layers": 0},
])  # fmt: skip
def test_directed_graphs_and_deeper_models(settings):
    compare(directed(csbm(nodes=80, feature_strength=2.0, seed=4)), **settings)


def test_sparse_features():
    graph = csbm(nodes=60, seed=5)
    x = (graph.x * (graph.x.abs() > 1.8)).abs().to_sparse_csr()
    compare(Graph.build(x, graph.edge_index, graph.y, train_mask=graph.train_mask, directed=False))


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_both_directions_of_an_edge_are_judged_alike(rounds):
    graph = csbm(nodes=60, seed=7)
    model = SpaM(graph.num_features, graph.num_classes, SpaMConfig(**{**SMALL, "belief_rounds": rounds}), 1)
    model.begin(graph, 0)
    found = predict_layerwise(model, graph, seed=0).distribution
    assert found is not None
    assert torch.equal(found.log_prob, found.log_prob[graph.reverse])


def test_rooms_are_used_again():
    rooms = pieces.Rooms()
    first = rooms.get("state", 3, 4).fill_(1.0)
    assert rooms.get("state", 2, 5).data_ptr() == first.data_ptr()
    assert rooms.get("other", 3, 4).data_ptr() != first.data_ptr()
    assert rooms.get("state", 5, 5).shape == (5, 5)


def test_large_scratch_lives_in_a_file(monkeypatch):
    monkeypatch.setattr(pieces, "_IN_MEMORY", 100)
    compare(csbm(nodes=60, seed=6))


class Stranger(SignPosterior):
    def forward(self, graph, context, generator=None):  # noqa: ARG002
        return SignDistribution(torch.zeros(graph.num_edges, 3).log_softmax(-1))


def test_a_posterior_that_is_not_known_is_refused_in_one_line():
    graph = csbm(nodes=40, seed=0)
    model = SpaM(graph.num_features, 3, SpaMConfig(**SMALL))
    model.posterior = Stranger()
    with pytest.raises(BadInput, match="found Stranger, which cannot be evaluated in pieces"):
        predict_layerwise(model, graph, 0)
