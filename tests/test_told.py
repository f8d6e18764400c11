"""The deep network hears labels: never a node's own while it learns it, all of training at prediction, and to good use."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from spam_gnn import SpaM, SpaMClassifier, SpaMConfig, TrainConfig
from spam_gnn.graph import Graph
from spam_gnn.network import told_labels
from spam_gnn.objective import objective
from spam_gnn.posterior import context_mask
from spam_gnn.training import fit

SMALL = SpaMConfig(hidden=8, posterior_hidden=8, samples=2, predict_samples=2, deep_layers=3, dropout=0.0, deep_dropout=0.0)


def partners(n=240, seed=0):
    """Pairs of joined nodes of one class; features are noise, and one node of each pair has a label."""
    draw = torch.Generator().manual_seed(seed)
    y = (torch.rand(n // 2, generator=draw) < 0.5).long().repeat_interleave(2)
    edges = torch.arange(n).reshape(-1, 2).t()
    x = torch.randn(n, 4, generator=draw)
    pair, second = torch.arange(n) // 2, torch.arange(n) % 2 == 1
    known = pair % 3 != 0  # of two thirds of the pairs both are known, of the others the first
    train = known | ~second
    return Graph.build(
        x, edges, y, directed=False, train_mask=train, val_mask=~train & (pair % 2 == 0), test_mask=~train & (pair % 2 == 1)
    )


def deep_reading(model, graph, context):
    (*_, [log_prob]) = model._passes(graph, context, torch.Generator().manual_seed(0), [0.0] * 4)
    return log_prob[0]


def model_on(graph, config=SMALL):
    model = SpaM(graph.num_features, graph.num_classes, config, seed=0)
    model.begin(graph, 0)
    return model


def test_only_the_deep_network_is_told():
    assert model_on(partners()).told == (False, False, True)
    assert model_on(partners(), replace(SMALL, deep_told=False)).told == (False, False, False)


@pytest.mark.parametrize("context", [0.0, 1.0])
def test_nothing_is_told_where_every_label_or_none_is_shown(context):
    assert model_on(partners(), replace(SMALL, context=context)).told == (False, False, False)


def test_targets_are_not_told_their_own_label_and_others_are_heard():
    graph = partners()
    model = model_on(graph)
    prepared = model.prepare(graph)
    context = context_mask(prepared, 0.5, 0, 0)
    target = prepared.train_mask & ~context

    def changed(where):
        y = torch.where(where, 1 - graph.y, graph.y)
        return deep_reading(model, model.prepare(replace(graph, y=y)), context)

    before = changed(torch.zeros_like(target))
    torch.testing.assert_close(changed(target), before, atol=0, rtol=0)  # what is to be learned is not among the inputs
    assert not torch.allclose(changed(context)[target], before[target])


def test_where_the_loss_is_taken_on_the_context_itself_nothing_is_told():
    graph = partners()
    model = model_on(graph)
    prepared = model.prepare(graph)
    everything = deep_reading(model, prepared, prepared.train_mask)
    torch.testing.assert_close(everything, deep_reading(model, prepared, torch.zeros_like(prepared.train_mask)), atol=0, rtol=0)


def test_a_network_learns_from_labels_it_was_not_told():
    graph = partners()
    model = model_on(graph)
    prepared = model.prepare(graph)
    context = context_mask(prepared, 0.5, 0, 0)
    outcome = model(prepared, context, seed=0, samples=2)
    passes = [torch.full((1, graph.num_nodes, 2), 0.5).log().requires_grad_(True) for _ in model.told]
    loss = objective(
        model.config, model.posterior, model.prior, prepared, outcome, context, [[p] for p in passes], [0.0] * 4, model.told
    )
    loss.trusted.backward()
    learned_from = [p.grad[0].abs().sum(1) > 0 for p in passes]
    everything = prepared.train_mask
    assert [torch.equal(nodes, everything) for nodes in learned_from] == [True, True, False]
    torch.testing.assert_close(learned_from[-1], everything & ~context)


def test_told_labels_are_those_of_the_context():
    found = told_labels(torch.tensor([2, 0, -1, 1]), torch.tensor([True, False, False, True]), 3)
    torch.testing.assert_close(found, torch.tensor([[0.0, 0, 1], [0, 0, 0], [0, 0, 0], [0, 1, 0]]))


def test_labels_of_neighbours_tell_what_features_do_not():
    graph = partners()

    def accuracy(config):
        model = model_on(graph, config)
        fit(model, graph, TrainConfig(epochs=40), seed=0)
        deep = model.readings(model.prepare(graph), 0)[-1].probability.argmax(-1)
        return float((deep == graph.y)[graph.test_mask].float().mean())

    assert accuracy(SMALL) > 0.9
    assert accuracy(replace(SMALL, deep_told=False)) < 0.75


def test_what_was_kept_before_labels_were_told_and_verdicts_had_a_name_still_predicts(tmp_path):
    graph = partners()
    settings = {"hidden": 8, "posterior_hidden": 8, "deep_layers": 2, "predict_samples": 2, "epochs": 2}
    fitted = SpaMClassifier(**settings, deep_told=False, verdict="evidence", copies=1, random_state=0).fit(graph)
    fitted.save(tmp_path)
    kept = json.loads((tmp_path / "estimator.json").read_text())
    for name in ("deep_told", "verdict", "copies", "few_nodes"):  # as it was written then
        del kept["config"][name]
    (tmp_path / "estimator.json").write_text(json.dumps(kept))
    again = SpaMClassifier.load(tmp_path)
    np.testing.assert_array_equal(again.predict_proba(graph), fitted.predict_proba(graph))
    assert again.edge_posterior(graph).equals(fitted.edge_posterior(graph))
