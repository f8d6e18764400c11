"""Draws against exact enumeration: means, rates, gradients, and independence of order."""

from __future__ import annotations

import math

import pytest
import torch

from conftest import tiny_graph
from spam_gnn import sampling
from spam_gnn.config import SpaMConfig
from spam_gnn.errors import BadInput
from spam_gnn.model import SpaM
from spam_gnn.objective import expected_class_loss
from spam_gnn.posterior.base import SignDistribution
from spam_gnn.randomness import edge_uniforms
from spam_gnn.sampling import enumerate_signs, sample_signs

CONFIG = SpaMConfig(
    hidden=8, layers=2, coder="unrolled", coder_steps=2, posterior="none", dropout=0.0, scaling="none", belief_input=False
)


def distribution(graph, seed, scale=1.0):
    """Random logits, the same for both directions of an edge, as a leaf to differentiate."""
    generator = torch.Generator().manual_seed(1000 + seed)
    pairs = graph.pairs.edge.numel()
    logits = (scale * torch.randn(pairs, 3, generator=generator)).requires_grad_()
    return logits, SignDistribution(torch.log_softmax(logits, -1)[graph.pairs.of_edge])


def predict(model, graph, signs):
    return model(graph, graph.train_mask, seed=0, signs=signs).prediction


def test_enumeration_is_a_probability_distribution():
    graph = tiny_graph(0)
    _, q = distribution(graph, 0)
    signs = enumerate_signs(q, graph)
    assert signs.count == 3**5
    torch.testing.assert_close(signs.log_weight.exp().sum(), torch.tensor(1.0))
    weight = signs.log_weight.exp()[:, None]
    torch.testing.assert_close((weight * signs.positive).sum(0), q.probability[:, 2])
    torch.testing.assert_close((weight * signs.negative).sum(0), q.probability[:, 0])


def test_enumeration_refuses_what_does_not_fit():
    graph = tiny_graph(0, nodes=12, edges=20)
    with pytest.raises(BadInput, match="3\\^20"):
        enumerate_signs(distribution(graph, 0)[1], graph)


def test_monte_carlo_agrees_with_enumeration_on_100_graphs():
    """Within 4 standard errors of the exact 3^m average, for every node and class of 100 tiny graphs."""
    samples = 512
    for seed in range(100):
        graph = tiny_graph(seed)
        model = SpaM(graph.num_features, graph.num_classes, CONFIG, seed).eval()
        with torch.no_grad():
            _, q = distribution(graph, seed)
            exact = predict(model, graph, enumerate_signs(q, graph)).probability
            drawn = predict(model, graph, sample_signs(q, graph, samples, seed))
        error = drawn.log_prob.exp().std(0) / math.sqrt(samples)
        # 1800 comparisons in all; a true 4-sigma event has probability 6e-5 each, and the floor covers constant nodes
        assert ((drawn.probability - exact).abs() <= 4.0 * error + 1e-5).float().mean() == 1.0, seed


def test_variance_falls_as_one_over_k():
    graph = tiny_graph(3)
    model = SpaM(graph.num_features, graph.num_classes, CONFIG, 3).eval()
    sizes = torch.tensor([1, 2, 4, 8, 16, 32, 64])
    with torch.no_grad():
        _, q = distribution(graph, 3)
        probability = predict(model, graph, sample_signs(q, graph, 64 * 200, 7)).log_prob.exp()  # (K, n, C)
    logs = []
    for size in sizes.tolist():
        means = probability[: 200 * size].reshape(200, size, *probability.shape[1:]).mean(1)
        logs.append(means.var(0).mean().log())
    x = sizes.double().log()
    y = torch.stack(logs).double()
    slope = ((x - x.mean()) * (y - y.mean())).sum() / (x - x.mean()).square().sum()
    assert abs(float(slope) + 1.0) < 0.15, float(slope)


def exact_and_estimated(seed, estimator, samples=512):
    """Gradient of E_q[loss] by enumeration, and the mean of the estimator, both with respect to the pair logits."""
    graph = tiny_graph(seed)
    model = SpaM(graph.num_features, graph.num_classes, CONFIG, seed)
    logits, q = distribution(graph, seed)
    exact = expected_class_loss(predict(model, graph, enumerate_signs(q, graph)), graph.y, graph.train_mask)
    (true,) = torch.autograd.grad(exact, logits)
    logits, q = distribution(graph, seed)
    drawn = sample_signs(q, graph, samples, seed, estimator=estimator)
    loss = expected_class_loss(predict(model, graph, drawn), graph.y, graph.train_mask)
    (estimate,) = torch.autograd.grad(loss, logits)
    return true, estimate


@pytest.mark.parametrize(("estimator", "share"), [("straight-through", 0.95), ("gumbel", 0.9)])
def test_class_gradient_points_the_right_way(estimator, share):
    """Mean cosine to the exact gradient above 0.5; for the default estimator positive on at least 95 % of 50 graphs."""
    cosines = []
    for seed in range(50):
        true, estimate = exact_and_estimated(seed, estimator)
        cosines.append(float(torch.nn.functional.cosine_similarity(true.flatten(), estimate.flatten(), dim=0)))
    positive = sum(c > 0 for c in cosines) / len(cosines)
    mean = sum(cosines) / len(cosines)
    print(f"{estimator}: mean cosine {mean:.3f}, positive on {100 * positive:.0f} %")
    assert mean > 0.5
    assert positive >= share


@pytest.mark.parametrize("estimator", ["straight-through", "gumbel"])
@pytest.mark.parametrize("coder", ["unrolled", "amortised", "exact", "uniform"])
def test_gradient_reaches_edges_drawn_absent(estimator, coder):
    graph = tiny_graph(1)
    config = CONFIG.with_settings({"coder": coder, "layers": 1, "penalty": 1e-3})
    model = SpaM(graph.num_features, graph.num_classes, config, 1)
    logits, q = distribution(graph, 1)
    signs = sample_signs(q, graph, 1, 5, estimator=estimator)
    assert float(signs.presence.detach().min()) == 0.0, "the seed must draw at least one edge absent"
    loss = predict(model, graph, signs).log_prob[0].square().sum()  # every node counts, so every edge matters
    (gradient,) = torch.autograd.grad(loss, logits)
    assert (gradient.abs().sum(1) > 0).all()


@pytest.mark.parametrize("per_pair", [True, False])
@pytest.mark.parametrize("samples", [1, 3])
@pytest.mark.parametrize("kernel", ["fused", "torch"])
def test_straight_through_is_the_gradient_of_the_probabilities(per_pair, samples, kernel, monkeypatch):
    """d/d log pi of sum_k (g-_k pi_- + g+_k pi_+), pi that of the edge that stands for its pair; compiled and plain."""
    monkeypatch.setattr(sampling, "chosen", lambda *_: kernel)
    graph, generator = tiny_graph(3), torch.Generator().manual_seed(0)
    log_prob = torch.log_softmax(torch.randn(graph.num_edges, 3, generator=generator), -1)
    log_prob = (0.5 * (log_prob + log_prob[graph.reverse])).requires_grad_()
    flows = torch.randn(2, samples, graph.num_edges, generator=generator)
    signs = sample_signs(SignDistribution(log_prob), graph, samples, 0, per_pair=per_pair)
    (got,) = torch.autograd.grad((flows[0] * signs.negative + flows[1] * signs.positive).sum(), log_prob)
    edge, of_edge = graph.pairs if per_pair else (torch.arange(graph.num_edges),) * 2
    probability = log_prob[edge].exp()[of_edge]
    (wanted,) = torch.autograd.grad((flows[0] * probability[:, 0] + flows[1] * probability[:, 2]).sum(), log_prob)
    torch.testing.assert_close(got, wanted)


def test_draws_follow_the_edge_not_its_position():
    graph = tiny_graph(2)
    order = torch.randperm(graph.num_nodes, generator=torch.Generator().manual_seed(0))
    moved = graph.relabel(order)
    _, q = distribution(graph, 2)
    place = {(a, b): i for i, (a, b) in enumerate(graph.edge_index.t().tolist())}
    match = [place[int(order[a]), int(order[b])] for a, b in moved.edge_index.t().tolist()]
    here = sample_signs(q, graph, 16, 9)
    there = sample_signs(SignDistribution(q.log_prob[match]), moved, 16, 9)
    assert torch.equal(here.positive[:, match], there.positive)
    assert torch.equal(here.negative[:, match], there.negative)


def test_both_directions_share_a_draw_unless_told_otherwise():
    graph = tiny_graph(4)
    _, q = distribution(graph, 4)
    shared = sample_signs(q, graph, 64, 0)
    assert torch.equal(shared.positive, shared.positive[:, graph.reverse])
    apart = sample_signs(q, graph, 64, 0, per_pair=False)
    assert not torch.equal(apart.positive, apart.positive[:, graph.reverse])


def test_sample_k_does_not_depend_on_how_many_are_taken():
    graph = tiny_graph(5)
    _, q = distribution(graph, 5)
    few, many = sample_signs(q, graph, 3, 1), sample_signs(q, graph, 8, 1)
    assert torch.equal(few.positive, many.positive[:3])


@pytest.mark.parametrize("estimator", ["straight-through", "gumbel"])
def test_forward_draws_are_the_categorical_distribution(estimator):
    graph = tiny_graph(6)
    _, q = distribution(graph, 6)
    with torch.no_grad():
        signs = sample_signs(q, graph, 20000, 3, estimator=estimator)
    torch.testing.assert_close(signs.positive.mean(0), q.probability[:, 2].detach(), atol=0.02, rtol=0)
    torch.testing.assert_close(signs.negative.mean(0), q.probability[:, 0].detach(), atol=0.02, rtol=0)


def test_edge_uniforms_are_uniform_and_independent():
    first, second = torch.arange(2000), torch.arange(2000).flip(0)
    u = edge_uniforms(first, second, [1, 2])
    assert u.min() > 0
    assert u.max() < 1
    histogram = torch.histc(u[0], 10, 0, 1) / 2000
    assert (histogram - 0.1).abs().max() < 0.03
    assert abs(float(torch.corrcoef(u)[0, 1])) < 0.07
    assert not torch.equal(u, edge_uniforms(second, first, [1, 2]))
