"""Few labels and few features: passes that agree, features that are not dropped, a deep network that does not decay."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from spam_gnn import norms
from spam_gnn.config import SpaMConfig, unlabelled_share
from spam_gnn.data.synthetic import csbm
from spam_gnn.model import SpaM
from spam_gnn.norms import ColumnNorm, Moments
from spam_gnn.objective import disagreement, objective
from spam_gnn.sampling import observed_signs
from spam_gnn.training import TrainConfig, fit, make_optimiser


def few_labels(count: int, nodes: int = 80, features: int = 16):
    graph = csbm(nodes=nodes, features=features, seed=3)
    return replace(graph, train_mask=torch.arange(nodes) < count, val_mask=torch.arange(nodes) >= nodes - 20)


def layers_of(config: SpaMConfig, features: int) -> list[int]:
    return [network.layers for network in config.further(features)]


def test_disagreement_by_hand():
    # one node, two classes: 0.9 and 0.5 for the first, so 0.7 together, sharpened 0.49 / (0.49 + 0.09)
    passes = [torch.tensor([[[0.9, 0.1]]]).log(), torch.tensor([[[0.5, 0.5]]]).log()]
    sharp = 0.49 / 0.58
    expected = ((0.9 - sharp) ** 2 + (0.5 - sharp) ** 2) * 2 / 2
    torch.testing.assert_close(disagreement(passes), torch.tensor(expected))


def test_the_sharpened_mean_is_taken_as_given():
    log_prob = torch.log_softmax(torch.randn(2, 1, 5, 3, dtype=torch.float64), -1).requires_grad_()
    disagreement(list(log_prob)).backward()
    probability = log_prob.detach().exp()
    sharp = probability.mean(0).square()
    sharp = sharp / sharp.sum(-1, keepdim=True)
    by_hand = 2 * (probability - sharp) * probability / (2 * 5)  # S n entries in the mean
    torch.testing.assert_close(log_prob.grad, by_hand)


def test_passes_that_say_the_same_and_are_sure_do_not_disagree():
    sure = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]]).clamp(min=1e-30).log()
    assert disagreement([sure, sure]) == 0.0


@pytest.mark.parametrize(
    ("labelled", "accuracy", "passes"),
    [
        (10, None, [1, 2]),  # nothing is validated yet; without messages there is nothing to agree about
        (40, None, [1, 1]),
        (10, (0.9, 0.5, 0.9), [1, 2]),
        (10, (0.9, 0.5, 0.52), [1, 1]),  # no better than without messages: it does not listen to itself
    ],
)
def test_trusting_networks_go_twice_over_a_graph_with_few_labels(labelled, accuracy, passes):
    graph = few_labels(labelled)
    model = SpaM(graph.num_features, graph.num_classes, SpaMConfig(hidden=8))
    if accuracy is not None:
        model.validated(accuracy, 20)
    calls = [0, 0]
    for place, network in enumerate(model.trusting):
        network.register_forward_hook(lambda *_, place=place: calls.__setitem__(place, calls[place] + 1))
    parts = model.training_loss(model.prepare(graph), 0, 0)
    assert calls == passes
    assert (parts["agreement"] > 0) == (max(passes) == 2)


def test_guesses_are_learned_from_as_far_as_they_are_heeded():
    graph = few_labels(10)
    model = SpaM(graph.num_features, graph.num_classes, SpaMConfig(hidden=8))
    prepared, guessed = model.prepare(graph), {}
    for accuracy in (0.5, 0.575, 0.6, 0.8):
        model.validated((accuracy, 0.5, accuracy), 100)  # a standard error is 0.05
        parts = model.training_loss(prepared, 0, 0)
        guessed[accuracy] = [float(parts[name].detach()) for name in ("lesson", "agreement")]
    assert guessed[0.5] == [0.0, 0.0]
    assert min(guessed[0.8]) > 0.0
    assert guessed[0.6] == pytest.approx(guessed[0.8])  # five points beyond the standard error: in full
    assert guessed[0.575] == pytest.approx([part / 2 for part in guessed[0.8]], rel=1e-5)


def test_the_agreement_enters_the_loss_by_the_share_of_unlabelled_nodes():
    graph = few_labels(16)  # 64 others: share 0.1 * (4 - 1)
    model = SpaM(graph.num_features, graph.num_classes, SpaMConfig(hidden=8, agreement_weight=2.0))
    prepared = model.prepare(graph)
    outcome = model(prepared, graph.train_mask, seed=0, samples=2)
    generator = torch.Generator().manual_seed(0)
    passes = [model.trusted(prepared, observed_signs(prepared), generator)[1] for _ in range(2)]
    given = (model.config, model.posterior, model.prior, prepared, outcome, graph.train_mask)
    loss, without = objective(*given, [passes]), objective(*given, [passes[:1], passes[1:]])
    assert unlabelled_share(16, 64) == pytest.approx(0.3)
    torch.testing.assert_close(loss.agreement, 0.3 * disagreement(passes))
    torch.testing.assert_close(loss.total, without.total - loss.trusted + 2.0 * loss.agreement)  # a mean of both, not a sum


def test_few_features_bring_a_deep_network_and_are_not_dropped():
    assert layers_of(SpaMConfig(), 15) == [0, 2, 10]
    assert layers_of(SpaMConfig(), 16) == [0, 2]
    assert layers_of(SpaMConfig(deep_layers=0), 3) == [0, 2]
    assert layers_of(SpaMConfig(trusted=()), 3) == []
    assert layers_of(SpaMConfig(posterior="none"), 3) == []
    assert layers_of(SpaMConfig.preset("paper"), 3) == []
    assert [network.dropout for network in SpaMConfig(dropout=0.4).further(3)] == [0.4, 0.4, 0.2]
    for features in (5, 16):
        graph = few_labels(30, features=features)
        model = SpaM(features, graph.num_classes, SpaMConfig(hidden=8, dropout=0.0, few_features=16))
        for network in (model.network, *model.trusting):
            assert network.input_dropout == 0.0
        dropped = SpaM(features, graph.num_classes, SpaMConfig(hidden=8))
        assert dropped.network.input_dropout == (0.5 if features == 16 else 0.0)
        assert dropped.posterior.config.input_dropout == (0.5 if features == 16 else 0.0)


def test_columns_are_standardised_as_batch_norm_does():
    x = torch.randn(2, 30, 4, generator=torch.Generator().manual_seed(1)) * 3.0 + 1.0
    ours, theirs = ColumnNorm(4), torch.nn.BatchNorm1d(4)
    for norm in (ours, theirs):
        torch.nn.init.uniform_(norm.weight, 0.5, 2.0, generator=torch.Generator().manual_seed(2))
        torch.nn.init.uniform_(norm.bias, -1.0, 1.0, generator=torch.Generator().manual_seed(3))
    for sample in range(2):  # each by its own nodes
        torch.testing.assert_close(ours(x)[sample], theirs(x[sample]), atol=1e-5, rtol=1e-5)
    moments = Moments()
    for piece in x.split(7, dim=1):
        moments.add(piece)
    torch.testing.assert_close(ours.with_moments(x, *moments.found(x.dtype)), ours(x), atol=1e-5, rtol=1e-5)
    assert torch.isfinite(ours(x[:, :1])).all()  # one node has no spread


@pytest.mark.parametrize("nodes", [1, 7, 20])
def test_the_gradient_of_standardised_columns(nodes, monkeypatch):
    monkeypatch.setattr(norms, "_ROWS", 8)  # several blocks, the last of them smaller
    norm, generator = ColumnNorm(3).double(), torch.Generator().manual_seed(nodes)
    x = torch.randn(2, nodes, 3, generator=generator, dtype=torch.float64, requires_grad=True)
    weights = [torch.randn(3, generator=generator, dtype=torch.float64, requires_grad=True) for _ in range(2)]

    def apply(x, weight, bias):
        return torch.func.functional_call(norm, {"weight": weight, "bias": bias}, (x + 5.0,))

    torch.autograd.gradcheck(apply, (x, *weights))


def test_columns_far_from_zero_keep_their_digits():
    x = torch.randn(1, 5000, 4, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(ColumnNorm(4)(x + 100.0), ColumnNorm(4)(x.double() + 100.0).float(), atol=5e-5, rtol=0.0)


def test_the_deep_network_does_not_decay_and_the_others_do():
    model = SpaM(5, 3, SpaMConfig(hidden=8))
    groups = model.parameter_groups(0.1)
    decayed = {id(p) for group in groups if group["weight_decay"] > 0.0 for p in group["params"]}
    free = {id(p) for group in groups if group["weight_decay"] == 0.0 for p in group["params"]}
    assert {id(p) for p in groups[-1]["params"]} == {id(p) for p in model.trusting[-1].parameters() if p.requires_grad}
    deep = {id(p) for p in model.trusting[-1].parameters() if p.requires_grad}
    assert deep <= free
    assert id(model.trusting[0].encode_weight) in decayed
    assert id(model.network.encode_weight) in decayed
    many = SpaM(16, 3, SpaMConfig(hidden=8))
    assert id(many.trusting[0].encode_weight) in {id(p) for p in many.parameter_groups(0.1)[0]["params"]}
    optimiser = make_optimiser(model, TrainConfig())
    assert sorted(group["rate_factor"] for group in optimiser.param_groups) == [1.0, 1.0, 2.0]
    held = [id(p) for group in optimiser.param_groups for p in group["params"]]
    assert sorted(held) == sorted(id(p) for p in model.parameters() if p.requires_grad)  # each once


def test_a_model_of_few_features_trains_predicts_and_shares_its_belief():
    graph = few_labels(30, features=5)
    model = SpaM(5, graph.num_classes, SpaMConfig(hidden=8))
    fit(model, graph, TrainConfig(epochs=3), seed=0)
    believed = model.believed()
    assert list(believed) == ["judged", "no messages", "trusted (2 layers)", "deep (10 layers)"]
    assert sum(believed.values()) == pytest.approx(1.0, abs=1e-5)
    torch.testing.assert_close(model.predict(model.prepare(graph), 0).probability.sum(1), torch.ones(80))
