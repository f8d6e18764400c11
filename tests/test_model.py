"""The whole model: invariance, what labels may influence, presets, ablations, prediction, objective, explanation."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from conftest import tiny_graph
from spam_gnn import SpaM, SpaMConfig, csbm
from spam_gnn.errors import BadInput, Diverged
from spam_gnn.explain import explain_node
from spam_gnn.objective import expected_class_loss, marginal_class_loss, objective
from spam_gnn.prediction import Prediction
from spam_gnn.sampling import enumerate_signs
from spam_gnn.training import TrainConfig, check_trainable, fit

SMALL = {"hidden": 16, "posterior_hidden": 16, "samples": 2, "predict_samples": 4}
ABLATIONS = {
    "default": {}, "no posterior": {"posterior": "none"}, "hard sign": {"signs": "hard"}, "no sparsity": {"coder": "uniform"},
    "no sign": {"use_sign": False}, "expected": {"signs": "expected"}, "gcn posterior": {"posterior": "gcn"},
    "similarity": {"posterior": "similarity"}, "fixed": {"posterior": "fixed"}, "both directions": {"directions": "both"},
    "out": {"directions": "out"}, "amortised": {"coder": "amortised"}, "exact": {"coder": "exact"},
    "plain": {"aggregate": "plain"},
    "H0 = X": {"encoder": False}, "per direction": {"per_pair": False}, "gumbel": {"estimator": "gumbel"},
    "algorithm 1": {"class_loss": "expected"},
}  # fmt: skip


def small(graph, seed=0, preset="default", **settings):
    config = SpaMConfig.preset(preset).with_settings({**SMALL, **settings})
    return SpaM(graph.num_features, graph.num_classes, config, seed)


@pytest.fixture(scope="module")
def graph():
    return csbm(nodes=80, feature_strength=2.0, seed=3)


def trained(graph, epochs=6, select=True, **settings):
    model = small(graph, **settings)
    state = fit(model, graph, TrainConfig(epochs=epochs, select=select), seed=1)
    return model, state, model.predict(model.prepare(graph), 1)


@pytest.mark.parametrize("name", ABLATIONS)
def test_every_variant_trains_and_predicts(graph, name):
    model, state, prediction = trained(graph, epochs=3, **ABLATIONS[name])
    assert len(state.history) == 3
    torch.testing.assert_close(prediction.probability.sum(1), torch.ones(80))
    model.training_loss(model.prepare(graph), 0, 0)["loss"].backward()
    unused = [n for n, p in model.named_parameters() if p.requires_grad and p.grad is None]
    assert not unused, unused


def test_presets():
    paper = SpaMConfig.preset("paper")
    assert (paper.encoder, paper.self_term, paper.coder, paper.context) == (False, False, "amortised", 1.0)
    assert (paper.sparsity_weight, paper.structure_weight, paper.gamma) == (0.01, 0.1, 1.0)
    with pytest.raises(BadInput, match="did you mean 'paper'"):
        SpaMConfig.preset("papr")
    with pytest.raises(BadInput, match="did you mean 'hidden'"):
        SpaMConfig().with_settings({"hiden": 3})


@pytest.mark.parametrize("preset", ["default", "paper"])
def test_relabelling_nodes_changes_nothing(graph, preset):
    model = small(graph, preset=preset)
    model.begin(graph, 0)
    order = torch.randperm(graph.num_nodes, generator=torch.Generator().manual_seed(0))
    moved = graph.relabel(order)
    here = model.predict(model.prepare(graph), 5).probability
    there = model.predict(model.prepare(moved), 5).probability
    torch.testing.assert_close(here[order], there, atol=1e-5, rtol=0)


def with_labels(graph, mask):
    """The same graph with the labels of `mask` rotated by one class."""
    y = torch.where(mask, (graph.y + 1) % graph.num_classes, graph.y)
    return replace(graph, y=y)


def test_test_labels_change_no_bit(graph):
    model, _, prediction = trained(graph)
    other, _, again = trained(with_labels(graph, graph.test_mask))
    for a, b in zip(model.state_dict().values(), other.state_dict().values(), strict=True):
        assert torch.equal(a, b)
    assert torch.equal(prediction.log_prob, again.log_prob)


def test_without_selection_validation_labels_change_no_bit(graph):
    model, _, prediction = trained(graph, select=False)
    other, _, again = trained(with_labels(graph, graph.val_mask | graph.test_mask), select=False)
    for a, b in zip(model.state_dict().values(), other.state_dict().values(), strict=True):
        assert torch.equal(a, b)
    assert torch.equal(prediction.log_prob, again.log_prob)
    changed, _, _ = trained(with_labels(graph, graph.train_mask), select=False)
    assert not torch.equal(model.network.classify_weight, changed.network.classify_weight)


def test_same_seed_same_numbers_other_seed_others(graph):
    first, second, third = (trained(graph)[2].log_prob, trained(graph)[2].log_prob, None)
    assert torch.equal(first, second)
    model = small(graph, seed=9)
    fit(model, graph, TrainConfig(epochs=6), seed=9)
    third = model.predict(model.prepare(graph), 9).log_prob
    assert not torch.equal(first, third)


def test_a_targets_own_label_does_not_reach_its_prediction(graph):
    """Context and target are disjoint; flipping a target's label leaves the forward pass as it is."""
    model = small(graph)
    model.begin(graph, 0)
    context = graph.train_mask & (torch.arange(80) % 2 == 0)
    target = graph.train_mask & ~context
    here = model(model.prepare(graph), context, seed=0).prediction.log_prob
    there = model(model.prepare(with_labels(graph, target)), context, seed=0).prediction.log_prob
    assert torch.equal(here, there)


def test_uncertainty_adds_up_and_knows_its_bounds():
    log_prob = torch.log_softmax(torch.randn(5, 7, 3), -1)
    p = Prediction.uniform(log_prob)
    torch.testing.assert_close(p.total, p.aleatoric + p.structural, atol=1e-6, rtol=0)
    assert (p.total <= math.log(3) + 1e-6).all()
    same = Prediction.uniform(log_prob[:1].expand(5, -1, -1))
    assert same.structural.max() < 1e-6
    certain = Prediction.uniform(torch.tensor([[[1.0, 0.0]], [[0.0, 1.0]]]).clamp(min=1e-30).log())
    torch.testing.assert_close(certain.structural, torch.tensor([math.log(2)]), atol=1e-5, rtol=0)


def test_doubt_has_three_parts_and_only_drawn_graphs_make_the_structural_one():
    """Two readings: three drawn graphs with weight 0.6, one network with 0.4. By hand from the definition."""
    log_prob = torch.log_softmax(torch.randn(4, 7, 3), -1)
    share = torch.tensor([0.2, 0.2, 0.2, 0.4])
    p = Prediction(log_prob, share.log(), readings=(3, 1))
    torch.testing.assert_close(p.total, p.aleatoric + p.structural + p.disagreement, atol=1e-6, rtol=0)
    drawn = Prediction.uniform(log_prob[:3])
    torch.testing.assert_close(p.structural, 0.6 * drawn.structural, atol=1e-6, rtol=0)
    apart = Prediction(torch.stack([drawn.log_marginal, log_prob[3]]), torch.tensor([0.6, 0.4]).log())
    torch.testing.assert_close(p.disagreement, apart.structural, atol=1e-6, rtol=0)
    silent = Prediction(log_prob, torch.tensor([1 / 3, 1 / 3, 1 / 3, 0.0]).log(), readings=(3, 1))
    torch.testing.assert_close(silent.structural, drawn.structural, atol=1e-6, rtol=0)
    assert silent.disagreement.max() < 1e-6


def test_a_node_without_edges_has_no_doubt_about_them():
    graph = csbm(nodes=60, seed=0)
    alone = 7
    kept = (graph.edge_index != alone).all(0)
    graph = replace(graph, edge_index=graph.edge_index[:, kept], edge_sign=None)
    model = small(graph)
    model.begin(graph, 0)
    prediction = model.predict(model.prepare(graph), 0)
    assert float(prediction.structural[alone]) < 1e-6
    assert float(prediction.disagreement[alone]) > 1e-4  # three networks with their first weights
    assert float(prediction.structural.max()) > 1e-4


def test_both_class_losses_by_hand_and_in_order():
    graph = tiny_graph(0)
    p = Prediction.uniform(torch.log_softmax(torch.randn(4, 6, 3), -1))
    mask = graph.train_mask
    probability = p.log_prob.exp()[:, mask].gather(2, graph.y[mask].expand(4, -1).unsqueeze(2)).squeeze(2)
    torch.testing.assert_close(marginal_class_loss(p, graph.y, mask), -probability.mean(0).log().mean())
    torch.testing.assert_close(expected_class_loss(p, graph.y, mask), -probability.log().mean())
    assert marginal_class_loss(p, graph.y, mask) < expected_class_loss(p, graph.y, mask)  # Jensen


def test_the_total_is_the_weighted_sum_of_its_parts(graph):
    model = small(graph)
    model.begin(graph, 0)
    prepared = model.prepare(graph)
    context = graph.train_mask & (torch.arange(80) % 2 == 0)
    outcome = model(prepared, context, seed=0)
    loss = objective(model.config, model.posterior, model.prior, prepared, outcome, context)
    c = model.config
    total = (loss.class_ + c.sparsity_weight * loss.sparsity + c.structure_weight * loss.structure
             + c.belief_weight * loss.belief + c.compatibility_weight * loss.evidence
             + c.lesson_weight * loss.lesson)  # fmt: skip
    torch.testing.assert_close(loss.total, total)
    target = graph.train_mask & ~context
    torch.testing.assert_close(loss.class_, F.nll_loss(outcome.prediction.log_marginal[target], graph.y[target]))


def test_exact_average_through_the_whole_model():
    tiny = tiny_graph(5)
    model = small(tiny)
    model.begin(tiny, 0)
    prepared = model.prepare(tiny)
    with torch.no_grad():
        q = model.edge_distribution(prepared)
        exact = model(prepared, tiny.train_mask, seed=0, signs=enumerate_signs(q, prepared)).prediction.probability
        drawn = model.readings(prepared, 0, samples=4000)[0]  # the sampled graphs; other readings draw nothing
    error = drawn.log_prob.exp().std(0) / math.sqrt(4000)
    assert ((drawn.probability - exact).abs() <= 4.5 * error + 1e-5).all()


def test_divergence_names_the_tensor_and_the_step(graph):
    model = small(graph)
    model.begin(graph, 0)
    model.network.classify_weight.data.fill_(float("nan"))
    with pytest.raises(Diverged, match="epoch 0: the loss part 'loss' is nan"):
        fit(model, graph, TrainConfig(epochs=2), seed=0)


def test_ungradable_graphs_are_refused(graph):
    empty = torch.zeros(80, dtype=torch.bool)
    with pytest.raises(BadInput, match="no training node"):
        check_trainable(graph.with_masks(empty, graph.val_mask, empty), TrainConfig())
    with pytest.raises(BadInput, match="no validation node"):
        check_trainable(graph.with_masks(graph.train_mask, empty, empty), TrainConfig())
    with pytest.raises(BadInput, match="one class"):
        check_trainable(graph.with_masks(graph.y == 0, graph.y == 1, empty), TrainConfig())


def test_explanation_covers_the_neighbourhood(graph):
    model, _, _ = trained(graph)
    frame = explain_node(model, graph, 4, seed=1, samples=32)
    expected = sorted(graph.edge_index[0][graph.edge_index[1] == 4].tolist())
    assert sorted(frame["neighbour"]) == expected
    torch.testing.assert_close(
        torch.tensor(frame[["p_negative", "p_absent", "p_positive"]].sum(axis=1).to_numpy()),
        torch.ones(len(frame)), check_dtype=False,
    )  # fmt: skip
    assert (frame["contribution"].abs().diff().dropna() <= 1e-9).all()
    with pytest.raises(BadInput, match="nodes 0 to 79"):
        explain_node(model, graph, 80, seed=1)
    deaf = SpaM(graph.num_features, graph.num_classes, SpaMConfig(posterior="none", layers=0))
    with pytest.raises(BadInput, match="no layers, so no neighbour is heard"):
        explain_node(deaf, graph, 4, seed=1)


@pytest.mark.parametrize("preset", ["default", "paper"])
def test_isolated_nodes_and_empty_graphs(preset):
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(30) % 3
    train = torch.arange(30) < 15
    from spam_gnn import Graph

    graph = Graph.build(
        torch.randn(30, 4, generator=generator), torch.zeros(2, 0, dtype=torch.int64), y, train_mask=train, val_mask=~train,
        directed=False,
    )  # fmt: skip
    model = small(graph, preset=preset)
    fit(model, graph, TrainConfig(epochs=2), seed=0)
    assert torch.isfinite(model.predict(model.prepare(graph), 0).probability).all()


def test_lesson_teaches_feature_beliefs_what_propagation_concluded(graph):
    few = replace(graph, train_mask=torch.arange(80) < 16)  # 64 unlabelled to 16 labelled: share 0.1 * (4 - 1)
    model = small(few)
    prepared = model.prepare(few)
    outcome = model(prepared, few.train_mask, seed=0, samples=2)
    before, after = outcome.distribution.node_logits
    loss = objective(model.config, model.posterior, model.prior, prepared, outcome, few.train_mask)
    each = -(torch.softmax(after, -1) * torch.log_softmax(before, -1)).sum(-1)
    torch.testing.assert_close(loss.lesson, 0.3 * each[16:].mean())
    loss.lesson.backward()
    assert model.posterior.second.grad.abs().sum() > 0
    assert model.posterior.trust.grad is None  # the teacher is not changed by its lesson


def test_no_lesson_where_labels_are_as_many_as_guesses(graph):
    half = replace(graph, train_mask=torch.arange(80) < 40)
    model = small(half)
    prepared = model.prepare(half)
    outcome = model(prepared, half.train_mask, seed=0, samples=2)
    assert objective(model.config, model.posterior, model.prior, prepared, outcome, half.train_mask).lesson == 0.0


@pytest.mark.parametrize("settings", [{}, {"residual": True}, {"encoder": False}, {"coder": "unrolled"}, {"norm": "columns"}])
def test_samples_in_pieces_are_samples_at_once(graph, monkeypatch, settings):
    model = small(graph, samples=5, predict_samples=5, **settings)
    prepared = model.prepare(graph)

    def loss_gradients_and_prediction():
        model.zero_grad()
        parts = model.training_loss(prepared, 0, 0)
        parts["loss"].backward()
        gradients = [p.grad.clone() for p in model.parameters() if p.grad is not None]
        return parts["loss"].detach(), gradients, model.predict(prepared, 0).log_prob

    whole = loss_gradients_and_prediction()
    monkeypatch.setattr("spam_gnn.network._CACHED", 2 * 80 * 16)  # two samples of 80 nodes by 16 at a time: 2 + 2 + 1
    monkeypatch.setattr("spam_gnn.network._REUSED", 2 * 80 * 16)
    torch.testing.assert_close(loss_gradients_and_prediction(), whole)
