"""Perturbations: exact counts, seeds, direction, what stays untouched, and attacks that hurt more than chance."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from spam_gnn import perturb
from spam_gnn.data.synthetic import csbm
from spam_gnn.errors import BadInput
from spam_gnn.graph import Graph
from spam_gnn.perturb.adaptive import adaptive_attack
from spam_gnn.perturb.base import new_pairs, pair_keys
from spam_gnn.perturb.gradient import WeightedGCN, gradient_attack, trained_gcn
from spam_gnn.randomness import stream


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Fewer candidate pairs per step: what is tested does not need them all."""
    monkeypatch.setattr("spam_gnn.perturb.gradient.BLOCK", 8000)
    monkeypatch.setattr("spam_gnn.perturb.adaptive.BLOCK", 6000)


@pytest.fixture(scope="module")
def graph():
    return csbm(nodes=240, degree=6.0, homophily=0.9, noise=0.0, feature_strength=1.0, seed=3)


@pytest.fixture(scope="module")
def directed(graph):
    forward = graph.edge_index[:, graph.edge_index[0] < graph.edge_index[1]]
    return Graph.build(graph.x, forward, graph.y, train_mask=graph.train_mask, val_mask=graph.val_mask,
                       test_mask=graph.test_mask, directed=True, num_classes=3)  # fmt: skip


def pairs(graph):
    return graph.pairs.edge.numel()


def keys(graph):
    return set(pair_keys(graph.edge_index, graph.num_nodes).tolist())


@pytest.mark.parametrize("strength", [0.1, 0.35, 0.6])
def test_deletions_remove_exactly_that_many_pairs(graph, strength):
    after = perturb.apply(graph, "deletions", strength, 0)
    assert pairs(after) == pairs(graph) - round(strength * pairs(graph))
    assert keys(after) < keys(graph)
    assert bool((after.reverse >= 0).all())  # still in both directions
    kept = torch.isin(pair_keys(graph.edge_index, graph.num_nodes), pair_keys(after.edge_index, graph.num_nodes))
    torch.testing.assert_close(after.edge_sign, graph.edge_sign[kept])
    assert after.x is graph.x


@pytest.mark.parametrize("strength", [0.1, 1.0])
def test_additions_plant_exactly_that_many_new_pairs(graph, strength):
    after = perturb.apply(graph, "additions", strength, 0)
    count = round(strength * pairs(graph))
    assert pairs(after) == pairs(graph) + count
    assert keys(after) > keys(graph)
    assert int((after.edge_sign == 0).sum()) == 2 * count  # the clean graph has no noise edge
    new = torch.tensor([k not in keys(graph) for k in pair_keys(after.edge_index, graph.num_nodes).tolist()])
    torch.testing.assert_close(after.edge_sign == 0, new)
    assert after.x is graph.x


@pytest.mark.parametrize("name", ["deletions", "additions"])
def test_directed_graphs_stay_directed_and_seeds_nest(directed, name):
    weak, strong = (perturb.apply(directed, name, s, 5) for s in (0.2, 0.4))
    assert weak.directed
    small, large = (set(zip(*g.edge_index.tolist(), strict=True)) for g in (weak, strong))
    assert (large < small) if name == "deletions" else (small < large)
    again = perturb.apply(directed, name, 0.2, 5)
    assert torch.equal(again.edge_index, weak.edge_index)
    assert not torch.equal(perturb.apply(directed, name, 0.2, 6).edge_index, weak.edge_index)
    assert directed.num_edges - weak.num_edges == (1 if name == "deletions" else -1) * round(0.2 * directed.num_edges)


def test_graphs_without_truth_learn_it_from_classes_when_edges_are_planted(directed):
    after = perturb.apply(directed, "additions", 0.3, 0)
    i, j = after.edge_index
    old = after.edge_sign != 0
    torch.testing.assert_close(after.edge_sign[old] > 0, (after.y[i] == after.y[j])[old])
    assert perturb.apply(directed, "deletions", 0.3, 0).edge_sign is None


def test_counts_move_within_their_row_and_keep_their_number():
    generator = stream(0, "words")
    x = (torch.rand(40, 60, generator=generator) < 0.1).float()
    words = replace(csbm(nodes=40, features=60, seed=0), x=x)
    after = perturb.apply(words, "feature-noise", 0.5, 1)
    torch.testing.assert_close(after.x.sum(1), x.sum(1))
    moved = int(((after.x == 0) & (x == 1)).sum())
    assert moved == round(0.5 * int(x.sum()))
    assert torch.equal(after.edge_index, words.edge_index)


def test_measurements_get_gaussian_noise_of_the_asked_size(graph):
    difference = perturb.apply(graph, "feature-noise", 0.7, 1).x - graph.x
    torch.testing.assert_close(difference.std(0) / graph.x.std(0), torch.full((16,), 0.7), rtol=0.2, atol=0.0)


def test_strength_zero_is_the_graph_itself_and_nonsense_is_refused(graph):
    for name in perturb.NAMES:
        assert perturb.apply(graph, name, 0.0, 0) is graph
    with pytest.raises(BadInput, match="did you mean 'additions'"):
        perturb.apply(graph, "addition", 0.1, 0)
    with pytest.raises(BadInput, match="found strength -0.1"):
        perturb.apply(graph, "deletions", -0.1, 0)
    with pytest.raises(BadInput, match="from 0 to 1"):
        perturb.apply(graph, "deletions", 1.1, 0)
    with pytest.raises(BadInput, match="pairs are not joined"):
        new_pairs(graph, 10**6, stream(0, "x"))


def test_the_weighted_gcn_is_the_trained_gcn(graph):
    network = trained_gcn(graph, 0, epochs=5)
    prepared, weighted = network.prepare(graph), WeightedGCN(network)
    logits = weighted(weighted.first(prepared), graph.edge_index, torch.ones(graph.num_edges))
    torch.testing.assert_close(torch.log_softmax(logits, -1), network.predict(prepared, 0).log_marginal, rtol=1e-4, atol=1e-5)


def accuracy(network, graph):
    right = network.predict(network.prepare(graph), 0).label == graph.y
    return float(right[graph.test_mask].float().mean())


@pytest.mark.parametrize("kind", ["prbcd", "grbcd"])
def test_attacked_edges_hurt_the_surrogate_more_than_random_ones(graph, kind):
    network = trained_gcn(graph, 0, epochs=60)
    attacked = gradient_attack(graph, 0.25, 0, kind, epochs=60, steps=60)
    random = perturb.apply(graph, "additions", 0.25, 0)
    assert accuracy(network, attacked) < accuracy(network, random) - 0.1
    budget = round(0.25 * pairs(graph))
    assert 0.8 * budget <= len(keys(attacked) ^ keys(graph)) <= budget
    planted = {k for k, s in zip(pair_keys(attacked.edge_index, 240).tolist(), attacked.edge_sign, strict=True) if s == 0}
    assert planted == keys(attacked) - keys(graph)


def test_attacks_read_no_test_label(graph):
    """Scrambled test labels, same attacked edges."""
    scrambled = replace(graph, y=torch.where(graph.test_mask, (graph.y + 1) % 3, graph.y))
    for attack in (lambda g: gradient_attack(g, 0.1, 0, "grbcd", epochs=5, steps=4),
                   lambda g: adaptive_attack(g, 0.1, 0, epochs=5, rounds=2)):  # fmt: skip
        assert torch.equal(attack(graph).edge_index, attack(scrambled).edge_index)


def test_the_adaptive_attack_uses_its_budget_and_hurts_spam_more_than_random_edges():
    from spam_gnn.perturb.adaptive import _Victim

    graph = csbm(nodes=360, degree=6.0, homophily=0.9, noise=0.0, seed=3)
    victim = _Victim.trained(graph, 0, 30)
    attacked = adaptive_attack(graph, 0.25, 0, epochs=30, rounds=4)
    assert len(keys(attacked) ^ keys(graph)) == round(0.25 * pairs(graph))
    changed = [_margin(victim, g) - _margin(victim, graph) for g in (attacked, perturb.apply(graph, "additions", 0.25, 0))]
    assert changed[0] > 1.5 * changed[1] > 0.0
    assert accuracy(victim.model, attacked) < accuracy(victim.model, graph) - 0.02


def test_the_adaptive_gradient_tells_harmful_flips_from_helpful_ones(graph):
    """The victim's own margin, measured with sampled graphs, moves the way the first-order scores say."""
    from spam_gnn.perturb import adaptive

    victim = adaptive._Victim.trained(graph, 0, 10)  # early, while margins can still move both ways
    current = graph.as_undirected()
    block = new_pairs(current, 50, stream(0, "block"))
    ends = torch.cat([current.edge_index[:, current.pairs.edge], block], 1)
    gains = adaptive._gains(victim, current, ends, pairs(current))
    assert gains.shape == (ends.shape[1],)
    assert bool(torch.isfinite(gains).all())
    best = ends[:, torch.topk(gains, 40).indices]
    worst = ends[:, torch.topk(-gains, 40).indices]
    up, down = (_margin(victim, adaptive.flipped(current, e, "x")) for e in (best, worst))
    assert up > _margin(victim, current) > down


def _margin(victim, graph):
    probability = victim.model.predict(victim.model.prepare(graph), 0, samples=64).probability
    right = torch.nn.functional.one_hot(victim.labels, 3).bool()
    return float((probability.masked_fill(right, -1.0).amax(1) - probability[right])[victim.attacked].mean())


def test_attacked_edges_are_remembered(graph, tmp_path, monkeypatch):
    calls = []

    def attack(g, strength, seed):
        calls.append(strength)
        return gradient_attack(g, strength, seed, "grbcd", epochs=3, steps=2)

    monkeypatch.setitem(perturb.ATTACKS, "grbcd", attack)
    first, second = (perturb.apply(graph, "grbcd", 0.1, 0, cache=tmp_path) for _ in range(2))
    assert calls == [0.1]
    for other in (second, attack(graph, 0.1, 0)):
        assert torch.equal(first.edge_index, other.edge_index)
        assert torch.equal(first.edge_sign, other.edge_sign)
    assert perturb.apply(graph, "grbcd", 0.1, 1, cache=tmp_path).num_edges > 0
    assert calls == [0.1, 0.1, 0.1]  # another seed is another attack
    assert perturb.apply(graph, "grbcd", 1e-9, 0, cache=tmp_path) is graph  # a budget of no edge at all


def test_an_attack_on_another_default_is_another_attack(graph, tmp_path, monkeypatch):
    """What the adaptive attack flips depends on the SpaM that it was made against."""
    calls = []

    def attack(g, strength, seed):
        calls.append(strength)
        return gradient_attack(g, strength, seed, "grbcd", epochs=3, steps=2)

    monkeypatch.setitem(perturb.ATTACKS, "adaptive", attack)
    usual = perturb.find("spam")
    other = replace(usual, settings=usual.settings.with_settings({"hidden": 32}))
    for system in (usual, usual, other):
        monkeypatch.setattr(perturb, "find", lambda _, system=system: system)
        perturb.apply(graph, "adaptive", 0.1, 0, cache=tmp_path)
    assert len(calls) == 2
