"""Heterophily systems with their special part switched off, their promises about draws, labels, nodes, and that they learn."""

from __future__ import annotations

import dataclasses
import math

import pytest
import torch
from torch_geometric.nn import APPNP, GCNConv, SAGEConv
from torch_geometric.nn import MixHopConv as PyGMixHop

from dense_reference import make, small_graph
from spam_gnn import TrainConfig, csbm
from spam_gnn.baselines.acm import ACMConv, ACMSettings
from spam_gnn.baselines.base import Shape
from spam_gnn.baselines.gbk import GBKConv, GBKSettings
from spam_gnn.baselines.glognn import GloGNNSettings
from spam_gnn.baselines.gprgnn import GPRGNNSettings, pagerank_coefficients, polynomial
from spam_gnn.baselines.h2gcn import strict_two_hop
from spam_gnn.baselines.mixhop import MixHopConv
from spam_gnn.baselines.node_table import NodeTable
from spam_gnn.baselines.operators import degree_operator
from spam_gnn.baselines.ordered import OrderedSettings
from spam_gnn.baselines.pcnet import charlier_table
from spam_gnn.baselines.registry import systems
from spam_gnn.baselines.tfe import TFESettings
from spam_gnn.errors import BadInput, TooLarge
from spam_gnn.randomness import library_draws
from spam_gnn.training import fit

NAMES = [name for name, system in systems().items() if system.family == "heterophily" and system.make.__module__ in {
    f"spam_gnn.baselines.{file}" for file in
    ("acm", "fagcn", "fsgnn", "gbk", "glognn", "gprgnn", "h2gcn", "mixhop", "ordered", "pcnet", "tfe")
}]  # fmt: skip
close = torch.testing.assert_close


def draw(*shape, seed=5):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def perceptron(model, graph):
    h = torch.relu(graph.x @ model.first + model.first_bias)
    return h @ model.second + model.second_bias


def test_gprgnn_at_its_start_propagates_like_appnp():
    graph, x = small_graph(), draw(11, 4)
    found = polynomial(degree_operator(graph, -0.5, -0.5, loops=True), x, pagerank_coefficients(0.2, 7))
    close(found, APPNP(7, 0.2)(x, graph.edge_index), atol=1e-5, rtol=1e-5)
    assert float(pagerank_coefficients(0.2, 7).sum()) == pytest.approx(1.0)


def test_gprgnn_with_one_coefficient_is_a_perceptron():
    graph = small_graph()
    model = make("gprgnn", graph)
    model.gamma.data = torch.eye(11)[0]
    close(model.logits(graph, None), perceptron(model, graph))


def test_fagcn_without_attention_is_a_perceptron():
    graph = small_graph()
    model = make("fagcn", graph, eps=1.0)
    assert not torch.allclose(model.logits(graph, None), without_attention(model, graph))
    for conv in model.convs:
        conv.att_l.weight.data.zero_()
        conv.att_r.weight.data.zero_()
    close(model.logits(graph, None), without_attention(model, graph))


def without_attention(model, graph):
    return torch.relu(graph.x @ model.first + model.first_bias) @ model.last + model.last_bias


def test_acm_with_the_low_channel_alone_is_a_graph_convolution():
    graph, x = small_graph(), draw(11, 5)
    conv = ACMConv(5, 4, ("low",), 11, torch.Generator().manual_seed(0))
    loops = torch.arange(11)
    edges = torch.cat([graph.edge_index, torch.stack([loops, loops])], 1)
    weights = 1.0 / (graph.messages("in").degree[edges[1]] + 1.0)
    reference = GCNConv(5, 4, normalize=False, bias=False)
    reference.lin.weight.data.copy_(conv.weight.data.t())
    close(conv(graph, x @ conv.weight), torch.relu(reference(x, edges, weights)), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("powers", [(0, 1, 2), (1, 3), (0,)])
def test_mixhop_layer_equals_the_one_of_pyg(powers):
    graph, x = small_graph(), draw(11, 5)
    conv = MixHopConv(5, 4, powers, torch.Generator().manual_seed(0))
    conv.bias.data.copy_(draw(4 * len(powers)))
    reference = PyGMixHop(5, 4, list(powers))
    reference.bias.data.copy_(conv.bias.data)
    for block, p in enumerate(powers):
        reference.lins[p].weight.data.copy_(conv.weight.data[:, 4 * block : 4 * block + 4].t())
    found = conv.spread(degree_operator(graph, -0.5, -0.5, loops=True), x @ conv.weight)
    close(found, reference(x, graph.edge_index), atol=1e-5, rtol=1e-5)


def test_mixhop_with_power_one_is_a_graph_convolution():
    graph, x = small_graph(), draw(11, 5)
    conv = MixHopConv(5, 4, (1,), torch.Generator().manual_seed(0))
    reference = GCNConv(5, 4)
    reference.lin.weight.data.copy_(conv.weight.data.t())
    found = conv.spread(degree_operator(graph, -0.5, -0.5, loops=True), x @ conv.weight)
    close(found, reference(x, graph.edge_index), atol=1e-5, rtol=1e-5)


def test_gbk_with_open_gates_is_graphsage():
    graph, x = small_graph(), draw(11, 5)
    conv = GBKConv(5, 4, 0.2, torch.Generator().manual_seed(0))
    conv.bias.data.copy_(draw(4))
    for gate, columns in ((1.0, slice(4, 8)), (0.0, slice(8, 12))):
        reference = SAGEConv(5, 4)
        reference.lin_l.weight.data.copy_(conv.weight.data[:, columns].t())
        reference.lin_l.bias.data.copy_(conv.bias.data)
        reference.lin_r.weight.data.copy_(conv.weight.data[:, :4].t())
        found = conv.aggregate(graph, x @ conv.weight, torch.full((graph.num_edges,), gate))
        close(found, reference(x, graph.edge_index), atol=1e-5, rtol=1e-5)


def test_gbk_teaches_the_gate_on_training_edges():
    graph = small_graph()
    model = make("gbk-gnn", graph, dropout=0.0, gate_weight=2.0)
    parts = model.training_loss(graph, 0, 0)
    h, wanted, messages = graph.x, 0.0, graph.messages("in")
    for conv in model.convs:
        projected = h @ conv.weight
        gate = torch.sigmoid(conv.gate_logits(graph, projected))
        pairs = [(e, int(i), int(j)) for e, (i, j) in enumerate(zip(messages.target, messages.source, strict=True))
                 if graph.train_mask[i] and graph.train_mask[j]]  # fmt: skip
        logs = [-math.log(float(gate[e].detach() if graph.y[i] == graph.y[j] else 1 - gate[e].detach())) for e, i, j in pairs]
        wanted += sum(logs) / len(logs)
        h = torch.relu(conv.aggregate(graph, projected, gate))
    assert float(parts["gate"].detach()) == pytest.approx(wanted, rel=1e-4)
    close(parts["loss"], parts["class"] + 2.0 * parts["gate"])


def test_glognn_with_gamma_one_keeps_the_first_representation():
    graph = small_graph()
    model = make("glognn", graph, gamma=1.0)
    close(model.logits(graph, None), model.first_representation(graph, None))
    assert model.hop_weights is None  # nothing that could get no gradient


@pytest.mark.parametrize("a", [0.0, 0.7])
def test_charlier_series_sums_to_the_two_fold_filter(a):
    """sum_j C_j(k; a) / j! w^j = e^{-a w} (1 + w)^k, for every w in the reach of the series."""
    w = torch.linspace(-0.6, 0.6, 13, dtype=torch.float64)
    table = charlier_table(4, 30, a).double()
    for k in range(1, 5):
        series = sum(c * w**j for j, c in enumerate(table[k]))
        close(series, torch.exp(-a * w) * (1 + w) ** k, atol=1e-6, rtol=1e-6)


def test_pcnet_without_heat_is_gprgnn():
    graph, x = small_graph(), draw(11, 3)
    model = make("pcnet", graph, heat=0.0, shift=1.0, exponent=0.5, orders=4, terms=6)
    wanted = polynomial(degree_operator(graph, -0.5, -0.5, loops=True), x, model.theta)
    close(model.spread(graph, x), wanted, atol=1e-4, rtol=1e-4)


def test_tfe_with_no_step_open_is_a_perceptron():
    graph = small_graph()
    model = make("tfe-gnn", graph, combine="low")
    model.low.data.zero_()
    close(model.logits(graph, None), torch.relu(graph.x @ model.first) @ model.rest[0])


def test_ordered_gate_never_falls():
    graph = small_graph()
    model = make("ordered-gnn", graph, layers=4, chunk=2)
    mean, h, closed = degree_operator(graph, -1.0, 0.0, loops=False), draw(11, 6), torch.zeros(11, 3)
    for number in range(4):
        h, after = model.round(number, h, mean(h), closed)
        assert bool((after >= closed - 1e-6).all())  # over rounds
        assert bool((after.diff(dim=1) >= -1e-6).all())  # over columns
        close(after[:, -1], torch.ones(11))
        closed = after


def test_node_table_rows_follow_their_nodes():
    graph = small_graph()
    table = NodeTable(11, 3, torch.Generator().manual_seed(0))
    table.learn(graph)
    order = torch.randperm(11, generator=torch.Generator().manual_seed(1))
    close(table(graph.relabel(order)), table(graph)[order])
    stranger = dataclasses.replace(graph, identity=torch.tensor([*range(10), 99]))
    assert not table(stranger)[10].any()


def test_h2gcn_refuses_what_does_not_fit(monkeypatch):
    monkeypatch.setattr("spam_gnn.baselines.h2gcn.available_memory_mb", lambda: 1e-4)
    with pytest.raises(TooLarge, match=r"up to \d+ pairs of nodes are two steps apart, .* GiB are free; ") as caught:
        strict_two_hop(small_graph())
    assert caught.value.exit_code == 3


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_model_and_the_global_state_is_left_alone(name):
    graph = small_graph()
    before = torch.random.get_rng_state()
    first, second = (make(name, graph, seed=3, dropout=0.4) for _ in range(2))
    losses = [m.training_loss(m.prepare(graph), 1, 4)["loss"] for m in (first, second)]
    assert torch.equal(before, torch.random.get_rng_state())
    assert torch.equal(*losses)
    other = first.training_loss(first.prepare(graph), 1, 5)["loss"]
    assert not torch.equal(losses[0], other)  # another epoch, other dropout masks
    with library_draws(9, "elsewhere"):
        assert torch.equal(first.training_loss(first.prepare(graph), 1, 4)["loss"], losses[0])


@pytest.mark.parametrize("name", NAMES)
def test_labels_outside_the_training_mask_are_not_read(name):
    graph = small_graph()
    model = make(name, graph)
    y = graph.y.clone()
    y[~graph.train_mask] = (y[~graph.train_mask] + 1) % 3
    other = dataclasses.replace(graph, y=y)
    for a, b in zip(model.training_loss(model.prepare(graph), 0, 0).values(),
                    model.training_loss(model.prepare(other), 0, 0).values(), strict=True):  # fmt: skip
        assert torch.equal(a, b)


@pytest.mark.parametrize("name", NAMES)
def test_relabelling_and_sparse_features_change_nothing(name):
    graph = small_graph()
    graph = dataclasses.replace(graph, x=graph.x * (graph.x > 0.5))
    model = make(name, graph)
    found = model.predict(model.prepare(graph), 0).log_marginal
    order = torch.randperm(11, generator=torch.Generator().manual_seed(4))
    close(model.predict(model.prepare(graph.relabel(order)), 0).log_marginal, found[order], atol=1e-4, rtol=1e-4)
    sparse = dataclasses.replace(graph, x=graph.x.to_sparse_csr())
    close(model.predict(model.prepare(sparse), 0).log_marginal, found, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_is_optimised_and_learns_an_easy_graph(name):
    graph, system = csbm(nodes=90, homophily=0.9, noise=0.0, feature_strength=2.0, seed=1), systems()[name]
    model = system.make(Shape.of(graph), system.settings.with_settings({"hidden": 16}), 0)
    grouped = [id(p) for group in model.parameter_groups(0.1) for p in group["params"]]
    assert sorted(grouped) == sorted(id(p) for p in model.parameters() if p.requires_grad)
    fit(model, graph, TrainConfig(**{**system.train, "epochs": 60}), seed=0)
    model.training_loss(model.prepare(graph), 0, 0)["loss"].backward()
    assert all(p.grad is not None and p.grad.any() for p in model.parameters() if p.requires_grad)
    right = model.predict(model.prepare(graph), 0).log_marginal.argmax(-1) == graph.y
    assert float(right[graph.test_mask].float().mean()) > 0.7  # chance is one third


@pytest.mark.parametrize("name", NAMES)
def test_the_registry_entry_is_whole(name):
    system = systems()[name]
    TrainConfig(**system.train)
    model_fields = {f.name for f in dataclasses.fields(system.settings)}
    train_fields = {f.name for f in dataclasses.fields(TrainConfig)}
    assert {"learning_rate", "weight_decay", "dropout", "hidden"} <= set(system.search)
    for key, values in system.search.items():
        assert key in model_fields | train_fields
        for value in values:
            if key in model_fields:
                system.settings.with_settings({key: value})


@pytest.mark.parametrize(("settings", "message"), [
    (lambda: GPRGNNSettings(alpha=1.5), "alpha: found 1.5; use a number from 0 to 1"),
    (lambda: GPRGNNSettings(steps=0), "steps: found 0; use 1 or more"),
    (lambda: GloGNNSettings(alpha=0.0, beta=0.0), "needs one of them above 0"),
    (lambda: OrderedSettings(chunk=0), "chunk: found 0"),
    (lambda: ACMSettings(residual=True, layers=1), "use 2 layers or more"),
    (lambda: GBKSettings(gate_weight=-1.0), "gate_weight: found -1.0"),
    (lambda: TFESettings(combine="both"), "combine: found 'both'"),  # pyright: ignore
    (lambda: TFESettings(hidden=0), "hidden: found 0"),
])  # fmt: skip
def test_settings_are_checked(settings, message):
    with pytest.raises(BadInput, match=message):
        settings()
