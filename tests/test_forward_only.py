"""Prediction by the loops that make no gradient against the model's own forward pass: values, signs, threads, pieces."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from spam_gnn import S2Config, S2Conv, SpaM, SpaMConfig, forward_only
from spam_gnn.data.synthetic import csbm
from spam_gnn.errors import BadInput
from spam_gnn.graph import Graph
from spam_gnn.kernels import compiled, infer, variants
from spam_gnn.kernels.infer import Classes, infer_classes, infer_layer
from spam_gnn.kernels.variants import Held
from spam_gnn.sampling import SignedGraphs, sample_signs, sign_table
from test_kernels import awkward


def moved(model, seed=1):
    """Every parameter away from its start, so that biases and weights of opposing messages count."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))
    return model


def hub_graph():
    """A hub, its leaves, and nodes without any edge."""
    leaves = torch.arange(1, 60)
    x = torch.randn(70, 9, generator=torch.Generator().manual_seed(2))
    mask = torch.arange(70) < 30
    edges = torch.stack([torch.zeros_like(leaves), leaves])
    return Graph.build(x, edges, torch.arange(70) % 3, train_mask=mask, directed=False)


@pytest.mark.parametrize("coder", ["uniform", "unrolled"])
@pytest.mark.parametrize("settings", [{}, {"self_term": False}, {"hidden": 70}, {"layers": 1}, {"directions": "out"}])
def test_prediction_is_the_forward_pass(coder, settings, monkeypatch):
    monkeypatch.setattr(forward_only, "_HELD", 3 * 60 * 64)  # three samples at a time, the last piece short
    for graph in (csbm(nodes=60, seed=0), hub_graph()):
        model = moved(SpaM(graph.num_features, graph.num_classes, SpaMConfig(coder=coder, **settings)))
        model.begin(graph, 0)
        prepared = model.prepare(graph)
        assert forward_only.serves(model.config)
        got = model.readings(prepared, 5, samples=8)[0]
        with torch.no_grad():
            wanted = model(prepared, graph.train_mask, seed=5, samples=8).prediction
        torch.testing.assert_close(got.log_prob, wanted.log_prob, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(got.log_weight, wanted.log_weight)


@pytest.mark.parametrize("coder", ["uniform", "unrolled"])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("width", [7, 64, 70])
@pytest.mark.parametrize("opposed", [True, False])
def test_a_layer_is_the_plain_one_on_awkward_graphs(coder, shared, width, opposed, monkeypatch):
    """Duplicate messages, isolated nodes, a sample without any edge, many opposing messages, whose weights are applied before
    or after their sum; the reference in plain torch."""
    monkeypatch.setattr(infer, "_opposed", lambda *_: opposed)
    messages = awkward(1)
    draw = torch.randint(-1, 2, (messages.count, 4), generator=torch.Generator().manual_seed(2), dtype=torch.int8)
    draw[:, -1] = 0
    signs = SignedGraphs((draw.t() > 0).float(), (draw.t() < 0).float(), torch.zeros(4))
    draw = draw[messages.edge]  # from the order of the edges to that of the messages
    config = S2Config(coder=coder, penalty=0.05, separate_signs=True, gamma=0.3, kernel="torch")
    conv = moved(S2Conv(5, width, width, config, torch.Generator().manual_seed(0)))
    hidden = torch.relu(torch.randn(1 if shared else 4, 30, 5, generator=torch.Generator().manual_seed(3)))
    classes = Classes(torch.randn(width, 3), torch.randn(3))
    with torch.no_grad():
        plain = torch.relu(conv.pass_messages(hidden, (messages,), signs).hidden)
        held = Held.of(hidden)
        got = infer_layer(messages, held, conv.as_layer(), draw, range(4)).dense()
        torch.testing.assert_close(got, plain, atol=1e-5, rtol=1e-4)
        logits = torch.log_softmax(plain @ classes.weight + classes.bias, -1)
        got = infer_classes(messages, held, conv.as_layer(), draw, range(4), classes)
        torch.testing.assert_close(got, logits, atol=1e-5, rtol=1e-4)
        if shared:
            some = infer_layer(messages, held, conv.as_layer(), draw, range(1, 3)).dense()
            torch.testing.assert_close(some, plain[1:3], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("samples", [1, 2, 3, 8, 11])
@pytest.mark.parametrize("opposed", [True, False])
def test_samples_side_by_side_are_what_each_is_by_itself(samples, steps, opposed, kind, monkeypatch):
    """Of few neighbours and of more, of one lane, of eight and of more; some samples agree about a node."""
    monkeypatch.setattr(infer, "_opposed", lambda *_: opposed)
    monkeypatch.setattr(variants, "SHARED", 1.0)
    generator = torch.Generator().manual_seed(samples)
    messages, width = awkward(1), 64
    draw = torch.randint(-1, 2, (messages.count, samples), generator=generator, dtype=torch.int8)
    draw[:, samples // 2] = draw[:, 0]
    signs = SignedGraphs((draw.t() > 0).to(kind), (draw.t() < 0).to(kind), torch.zeros(samples, dtype=kind))
    config = S2Config(coder="unrolled", coder_steps=steps, penalty=0.05, separate_signs=True, gamma=0.3, kernel="torch")
    conv = moved(S2Conv(5, width, width, config, torch.Generator().manual_seed(0)).to(kind))
    hidden = torch.randn(1, 30, 5, generator=generator, dtype=kind)
    with torch.no_grad():
        plain = torch.relu(conv.pass_messages(hidden, (messages,), signs).hidden)
        found = infer_layer(messages, Held.of(hidden), conv.as_layer(), draw[messages.edge], range(samples))
    degrees = messages.row_pointer.diff()
    assert all(bool(some.any()) for some in (degrees == 0, (degrees > 0) & (degrees <= 8), degrees > 8))
    assert samples == 1 or found.rows.shape[0] < 30 * samples  # the two that agree have rows in common
    torch.testing.assert_close(found.dense(), plain, atol=1e-5, rtol=1e-4)


def test_messages_in_another_kind_of_numbers_are_heard_alike():
    messages, draw = awkward(1), torch.ones(awkward(1).count, 3, dtype=torch.int8)
    conv = S2Conv(5, 8, 8, S2Config(separate_signs=True), torch.Generator().manual_seed(0))
    hidden = Held.of(torch.randn(1, 30, 5, generator=torch.Generator().manual_seed(1)))
    short = replace(messages, source=messages.source.int())
    found = [infer_layer(m, hidden, conv.as_layer(), draw, range(3)).dense() for m in (messages, short)]
    assert torch.equal(*found)


def test_weights_of_opposing_messages_are_applied_first_where_that_is_less_work():
    messages, n = awkward(1), 30
    often, dense = torch.full((messages.count, 4), -1, dtype=torch.int8), torch.ones(4, n, 64)
    seldom = torch.zeros_like(often)
    common, apart, empty = Held.of(dense[:1]), Held.of(dense), Held.of(torch.zeros(4, n, 64))
    assert infer._opposed(messages, common, often, range(4), 64)  # one product for all samples
    assert not infer._opposed(messages, apart, often, range(4), 64)
    assert infer._opposed(messages, empty, often, range(4), 64)  # one without much to multiply
    assert not infer._opposed(messages, common, seldom, range(4), 64)
    assert not infer._opposed(messages, common, often[:, :1], range(1), 64)


def test_threads_change_nothing(monkeypatch):
    monkeypatch.setattr(compiled, "SERIAL_BELOW", 0)
    graph, before, results = csbm(nodes=300, seed=3), torch.get_num_threads(), []
    model = moved(SpaM(graph.num_features, graph.num_classes, SpaMConfig(coder="unrolled")))
    model.begin(graph, 0)
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            results.append(model.predict(model.prepare(graph), 0).log_prob)
    finally:
        torch.set_num_threads(before)
    for other in results[1:]:
        torch.testing.assert_close(results[0], other, atol=1e-6, rtol=1e-6)


def test_the_table_holds_the_signs_that_are_drawn():
    graph = csbm(nodes=60, seed=0)
    model = SpaM(graph.num_features, graph.num_classes)
    q = model.edge_distribution(model.prepare(graph))
    for per_pair in (True, False):
        table = sign_table(q, graph, 5, 7, graph.messages("in"), per_pair=per_pair).t()
        signs = sample_signs(q, graph, 5, 7, per_pair=per_pair)
        assert torch.equal(table.float(), (signs.positive - signs.negative).detach())


OTHERS = [{"signs": "hard"}, {"signs": "expected"}, {"use_sign": False}, {"estimator": "gumbel"}, {"norm": "layer"},
          {"residual": True}, {"posterior": "none"}, {"kernel": "torch"}]  # fmt: skip


@pytest.mark.parametrize("setting", OTHERS)
def test_what_these_loops_do_not_know_goes_the_other_way(setting):
    graph = csbm(nodes=40, seed=0)
    model = SpaM(graph.num_features, graph.num_classes, SpaMConfig(**setting))
    prepared = model.prepare(graph)
    with torch.no_grad():
        wanted = model(prepared, graph.train_mask, seed=0, samples=3).prediction.log_prob
    assert torch.equal(model.readings(prepared, 0, samples=3)[0].log_prob, wanted)


def test_what_is_not_a_number_stays_none():
    """One class of a classifier that has diverged spoils every probability, as in torch's log_softmax."""
    messages, conv = awkward(1), S2Conv(5, 6, 6, S2Config(coder="uniform", separate_signs=True))
    signs = torch.ones(messages.count, 1, dtype=torch.int8)
    classes = Classes(torch.ones(6, 3), torch.tensor([0.0, float("nan"), 1.0]))
    with torch.no_grad():
        got = infer_classes(messages, Held.of(torch.ones(1, 30, 5)), conv.as_layer(), signs, range(1), classes)
    assert bool(got.isnan().all())


def test_shapes_that_do_not_fit_are_refused():
    messages, conv = awkward(1), S2Conv(5, 6, 6, S2Config(separate_signs=True))
    signs, hidden = torch.zeros(messages.count, 2, dtype=torch.int8), torch.ones(1, 30, 5)
    layer = conv.as_layer()
    for h, s, samples in ((hidden[:, :9], signs, range(2)), (hidden, signs[:3], range(2)), (hidden, signs, range(1, 3))):
        with pytest.raises(BadInput):
            infer_layer(messages, Held.of(h), layer, s, samples)
