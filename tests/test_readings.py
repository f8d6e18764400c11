"""Readings of a graph and their shares: the likeliest mixture, however validation nodes are dealt out, and what it is worth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.optimize
import torch

from spam_gnn import SpaM, SpaMConfig, csbm
from spam_gnn.baselines.base import Shape
from spam_gnn.baselines.registry import find
from spam_gnn.errors import BadInput
from spam_gnn.loading.feed import Tally, WholeFeed
from spam_gnn.prediction import Prediction
from spam_gnn.readings import NO_MESSAGES, Shares
from spam_gnn.training import TrainConfig, fit
from test_model import SMALL, small

NAMES = ("judged", "trusted (1 layer)", "trusted (2 layers)")


def likelihoods(count, seed=0):
    """(3, count): readings that are right for different nodes."""
    return torch.rand(3, count, generator=torch.Generator().manual_seed(seed)).pow(torch.tensor([[0.3], [1.0], [3.0]]))


def alone(numbers):
    return numbers


@pytest.mark.parametrize("seed", range(5))
def test_shares_are_the_likeliest_mixture(seed):
    seen, shares = likelihoods(40, seed), Shares(NAMES)
    shares.weigh([seen], alone)

    def loss(logits):
        w = np.exp(logits - logits.max())
        w = w / w.sum()
        return -np.log(w @ seen.double().numpy()).sum() - 2.0 / 3.0 * np.log(w).sum()

    best = scipy.optimize.minimize(loss, np.zeros(3), tol=1e-10)
    wanted = np.exp(best.x - best.x.max())
    np.testing.assert_allclose(shares.share.numpy(), wanted / wanted.sum(), atol=2e-3)


def test_batches_and_processes_do_not_matter():
    seen, whole, parts = likelihoods(60), Shares(NAMES), Shares(NAMES)
    whole.weigh([seen], alone)
    parts.weigh([seen[:, :10], seen[:, 10:10], seen[:, 10:]], alone)
    torch.testing.assert_close(parts.share, whole.share)
    # two processes: each holds half of the nodes and gets the sum of what both send in every round
    sent, other = [], seen[:, 30:]

    def with_the_other(numbers):
        share = sent[-1] if sent else torch.full((3,), 1.0 / 3.0, dtype=torch.float64)
        joint = share.unsqueeze(1) * other
        both = numbers + (joint / joint.sum(0)).sum(1)
        sent.append((both + 2.0 / 3.0) / (both + 2.0 / 3.0).sum())
        return both

    parts.weigh([seen[:, :30]], with_the_other)
    torch.testing.assert_close(parts.share, whole.share, atol=1e-6, rtol=0)


def test_without_validation_nodes_all_count_the_same():
    shares = Shares(NAMES)
    shares.weigh([], alone)
    torch.testing.assert_close(shares.share, torch.full((3,), 1.0 / 3.0))


def test_guesses_are_heeded_where_edges_are_proven():
    shares = Shares(("judged", NO_MESSAGES, "trusted (2 layers)", "trusted (3 layers)"))
    assert shares.heeded.tolist() == [1.0, 0.0, 1.0, 1.0]  # before validation; without messages nothing is guessed from edges
    shares.heed((0.7, 0.5, 0.575, 0.4), 100)  # a standard error of 0.05, then a half of the way to 0.05 beyond it
    torch.testing.assert_close(shares.heeded, torch.tensor([1.0, 0.0, 0.5, 0.0]))
    shares.heed((0.9, 0.9, 0.9, 0.9), 0)  # nothing was validated
    torch.testing.assert_close(shares.heeded, torch.tensor([1.0, 0.0, 0.5, 0.0]))
    without = Shares(NAMES)
    without.heed((0.1, 0.9, 0.9), 100)  # nothing to hold the readings against
    assert without.heeded.tolist() == [1.0, 1.0, 1.0]


class Other:
    """A team of two, whose other process saw nothing (or everything) that was validated."""

    def __init__(self, sums=None):
        self.sums = sums

    def total(self, numbers):
        return numbers if self.sums is None or numbers.shape != self.sums.shape else numbers + self.sums

    def most(self, number):
        return 4.0 if self.sums is not None else number


def test_every_process_heeds_the_same():
    """What is heeded follows from the scores of all validation nodes, also in a process that has validated none itself."""
    graph = csbm(nodes=80, feature_strength=1.5, seed=3)
    model = small(graph)
    fit(model, graph, TrainConfig(epochs=5), seed=1)
    feed = WholeFeed(model, graph)
    seen = feed.evaluate(model, 1, 4)
    wanted = Shares(model.shares.names)
    wanted.heed([accuracy for accuracy, _ in seen.scores], int(graph.val_mask.sum()))
    torch.testing.assert_close(model.shares.heeded, wanted.heeded)
    numbers = torch.zeros(4, 5, dtype=torch.float64)  # the mixture and three readings: the other process's sums
    numbers[:, 2], numbers[:, 3] = torch.tensor([80.0, 90.0, 50.0, 57.5]), 100.0
    Tally().result(model, Other(numbers))
    torch.testing.assert_close(model.shares.heeded, torch.tensor([1.0, 0.0, 0.5]))


def test_training_measures_what_is_heeded(monkeypatch):
    graph, heard = csbm(nodes=80, feature_strength=1.5, seed=3), []
    monkeypatch.setattr(Shares, "heed", lambda _, accuracy, nodes: heard.append((len(accuracy), nodes)))
    fit(small(graph), graph, TrainConfig(epochs=3), seed=1)
    assert heard == [(3, int(graph.val_mask.sum()))] * 4  # every epoch, and the weights that were kept


def test_weights_from_before_anything_was_heeded_are_read():
    graph = csbm(nodes=30, seed=0)
    model = small(graph)
    weights = {name: value for name, value in model.state_dict().items() if not name.endswith("heeded")}
    model.shares.heed((0.9, 0.5, 0.5), 100)
    small(graph).load_state_dict(weights)
    with pytest.raises(RuntimeError, match="classify_bias"):  # nothing else may be missing
        small(graph).load_state_dict({name: value for name, value in weights.items() if name != "network.classify_bias"})


def test_without_messages_no_edge_is_heard():
    graph = csbm(nodes=60, seed=0)
    model = SpaM(graph.num_features, graph.num_classes, SpaMConfig(**SMALL))
    model.begin(graph, 0)
    fewer = replace(graph, edge_index=graph.edge_index[:, graph.pairs.of_edge < 10])
    one, other = (model.readings(model.prepare(g), 0) for g in (graph, fewer))
    torch.testing.assert_close(one[1].probability, other[1].probability)
    assert not torch.allclose(one[2].probability, other[2].probability)


def test_the_mixture_is_the_weighted_mean_of_probabilities():
    shares, generator = Shares(NAMES), torch.Generator().manual_seed(0)
    shares.share.copy_(torch.tensor([0.5, 0.3, 0.2]))
    readings = [Prediction.uniform(torch.randn(k, 7, 4, generator=generator).log_softmax(-1)) for k in (5, 1, 1)]
    wanted = sum(w * r.probability for w, r in zip((0.5, 0.3, 0.2), readings, strict=True))
    torch.testing.assert_close(shares.mix(readings).probability, wanted)


def test_readings_are_named_and_settings_take_them_away():
    names = {
        (): ("judged", "no messages", "trusted (2 layers)"),
        (("trusted", ()),): ("judged",),
        (("trusted", (1, 3)),): ("judged", "trusted (1 layer)", "trusted (3 layers)"),
        (("posterior", "none"),): ("judged",),
    }
    graph = csbm(nodes=30, seed=0)
    for settings, wanted in names.items():
        model = SpaM(graph.num_features, graph.num_classes, SpaMConfig(**SMALL, **dict(settings)))
        assert tuple(model.believed()) == wanted
        model.begin(graph, 0)
        assert len(model.readings(model.prepare(graph), 0)) == len(wanted)
    assert SpaMConfig.preset("paper").trusted == ()


def test_small_graphs_have_networks_that_trust_from_several_starts():
    config = SpaMConfig(**SMALL, copies=3, few_nodes=30)
    names = ["judged", "no messages", "trusted (2 layers)", "trusted (2 layers), start 2", "trusted (2 layers), start 3"]
    for nodes, wanted in ((29, names), (30, names[:3])):
        graph = csbm(nodes=nodes, seed=0)
        model = find("spam").make(Shape.of(graph), config, 0)
        assert list(model.believed()) == wanted
        model.begin(graph, 0)
        readings = [r.log_prob for r in model.readings(model.prepare(graph), 0)]
        assert len(readings) == len(wanted)
        assert not torch.equal(readings[2], readings[-1]) or len(wanted) == 3
    assert len(SpaM(20, 3, config).believed()) == 3  # how many nodes there will be is not known
    deep = find("spam").make(Shape(29, 4, 3), SpaMConfig(**SMALL, few_features=5, deep_layers=4), 0)
    assert list(deep.believed())[-2:] == ["trusted (2 layers), start 2", "deep (4 layers)"]


def test_networks_are_kept_at_their_own_best_epochs():
    """The weights that come out of a training are, network by network, those of the epoch with its own best score."""
    graph, kept = csbm(nodes=80, feature_strength=1.5, seed=4), []

    def remember(state, model, optimiser):
        prepared = model.prepare(graph)
        scores = []
        for reading in model.readings(prepared, 1, samples=8):
            log_prob, y = reading.log_marginal[graph.val_mask], graph.y[graph.val_mask]
            scores.append((float((log_prob.argmax(1) == y).double().mean()), -float(torch.nn.functional.nll_loss(log_prob, y))))
        kept.append((scores, {name: value.clone() for name, value in model.state_dict().items()}))

    model = small(graph)
    fit(model, graph, TrainConfig(epochs=60, val_samples=8), seed=1, on_epoch=remember)
    best = [max(range(len(kept)), key=lambda e, r=r: kept[e][0][r]) for r in range(3)]
    assert len(set(best)) == 3  # otherwise this would say little
    for name, value in model.state_dict().items():
        reading = 1 + int(name.split(".")[1]) if name.startswith("trusting.") else 0
        if not name.startswith("shares."):
            assert torch.equal(value, kept[best[reading]][1][name]), (name, best)


def test_trusting_networks_learn_from_every_training_label():
    """They see no label, so none is held back from them; and they share no weight with the judging network."""
    graph = csbm(nodes=60, seed=0)
    model = small(graph)
    model.begin(graph, 0)
    model.training_loss(model.prepare(graph), 0, 0)["trusted"].backward()
    assert all(p.grad is not None for n, p in model.trusting.named_parameters() if p.requires_grad)
    assert all(p.grad is None for p in model.network.parameters())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"layers": 0}, "layers: found 0; use 1 or more"),
        ({"copies": 0}, "copies: found 0; use 1 or more"),
        ({"few_nodes": -1}, "few_nodes: found -1; use 0 or more"),
        ({"layers": 0, "posterior": "none", "encoder": False}, "layers: found 0; use 1 or more"),
        ({"layers": -1, "posterior": "none"}, "layers: found -1; use 0 or more"),
        ({"trusted": (2, 2)}, "trusted: found (2, 2); give each network's layers (0: no messages), once each, or none"),
        ({"trusted": (2, -1)}, "trusted: found (2, -1); give each network's layers (0: no messages), once each, or none"),
    ],
)
def test_layers_that_make_no_network_are_refused(settings, message):
    with pytest.raises(BadInput) as error:
        SpaMConfig(**settings)
    assert str(error.value) == message
