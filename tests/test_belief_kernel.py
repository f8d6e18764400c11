"""Compiled belief propagation: the same values and gradients as in plain torch, whatever the number of threads."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from conftest import tiny_graph
from spam_gnn.data.synthetic import csbm
from spam_gnn.graph import Graph
from spam_gnn.kernels import compiled
from spam_gnn.kernels.belief import Terms, propagate, propagate_into
from spam_gnn.kernels.elementary import exp, log
from spam_gnn.posterior import BeliefConfig, BeliefPosterior
from spam_gnn.posterior.base import edge_evidence
from spam_gnn.posterior.belief import mirrored
from spam_gnn.randomness import stream


@compiled.compiled
def exponentials(x, out):
    for e in range(x.size):
        out[e] = exp(x[e])


@compiled.compiled
def logarithms(x, out):
    for e in range(x.size):
        out[e] = log(x[e])


@pytest.mark.parametrize(("kind", "error"), [(np.float32, 3e-7), (np.float64, 1e-15)])
def test_elementary_functions_are_those_of_the_library(kind, error):
    x = np.linspace(-86.0, 87.0, 100_001).astype(kind)
    out = np.empty_like(x)
    exponentials(x, out)
    np.testing.assert_allclose(out, np.exp(x.astype(np.float64)), rtol=error)
    positive = np.concatenate([np.exp(x), np.linspace(0.5, 2.0, 10_001).astype(kind), [kind(1.0)]])
    out = np.empty_like(positive)
    logarithms(positive, out)
    np.testing.assert_allclose(out, np.log(positive.astype(np.float64)), rtol=error, atol=error)


def test_exponentials_end_where_single_numbers_do():
    out = np.empty(3, np.float32)
    exponentials(np.array([-1e30, 1e30, 0.0], np.float32), out)
    assert 0.0 < out[0] < 1e-37
    assert 1e37 < out[1] < np.inf
    assert out[2] == 1.0


def awkward(seed):
    """A hub, isolated nodes, and more edges than a block of the loops holds."""
    generator = torch.Generator().manual_seed(seed)
    hub = torch.stack([torch.zeros(90, dtype=torch.int64), torch.arange(1, 91)])
    edges = torch.cat([hub, torch.randint(0, 97, (2, 500), generator=generator)], 1)
    y = torch.randint(0, 4, (100,), generator=generator)
    x = torch.randn(100, 6, generator=generator)
    return Graph.build(x, edges, y, train_mask=torch.arange(100) < 40, directed=False, num_classes=4)


def trained(graph, rounds, kind, verdict="beliefs"):
    config = BeliefConfig(hidden=8, rounds=rounds, verdict=verdict)
    posterior = BeliefPosterior(graph.num_features, graph.num_classes, config, stream(0, "t"))
    with torch.no_grad():
        generator = torch.Generator().manual_seed(3)
        posterior.compatibility.copy_(torch.randn(posterior.compatibility.shape, generator=generator))
        posterior.evidence.copy_(torch.tensor([0.7, -0.4]))
    return posterior.to(kind)


def found(posterior, graph, logits, plain):
    """log q, beliefs, and the gradients of a random combination of them."""
    logits = logits.clone().requires_grad_()
    log_u, evidence = torch.log_softmax(logits, -1), edge_evidence(graph).to(logits.dtype)
    heard_by, judged_by = posterior._terms(log_u, graph, evidence)
    if plain:
        cavity, belief = posterior._propagate(graph, log_u, heard_by)
        log_q = posterior._judge_by_cavity(graph, cavity, judged_by)
    else:
        operands = (log_u, heard_by, judged_by, posterior._weight(graph), posterior.config.rounds)
        log_q, belief = propagate(mirrored(graph), *operands)
    generator = torch.Generator().manual_seed(9)
    loss = sum((t * torch.randn(t.shape, generator=generator).to(t)).sum() for t in (log_q, belief))
    learned = [posterior.compatibility, posterior.evidence, posterior.trust, posterior.witnesses]
    return [log_q, belief, *torch.autograd.grad(loss, [logits, *learned])]


@pytest.mark.parametrize("verdict", ["beliefs", "evidence"])
@pytest.mark.parametrize("rounds", [1, 2, 3])
@pytest.mark.parametrize(("kind", "error"), [(torch.float32, 1e-5), (torch.float64, 1e-12)])
def test_compiled_and_plain_agree_in_values_and_gradients(rounds, kind, error, verdict):
    for graph in (awkward(0), csbm(nodes=120, seed=1)):
        posterior = trained(graph, rounds, kind, verdict)
        logits = 2.0 * torch.randn(graph.num_nodes, graph.num_classes, generator=torch.Generator().manual_seed(5), dtype=kind)
        ours, theirs = (found(posterior, graph, logits, plain) for plain in (False, True))
        for mine, other in zip(ours, theirs, strict=True):
            torch.testing.assert_close(mine, other, rtol=error, atol=error * float(other.detach().abs().max()))


@pytest.mark.parametrize("again", [False, True])
def test_gradients_are_those_of_finite_differences(again):
    """With the evidence in the verdict once more, and without it."""
    graph, generator = tiny_graph(0), torch.Generator().manual_seed(1)
    c, n, m = graph.num_classes, graph.num_nodes, graph.num_edges
    log_u = torch.log_softmax(torch.randn(n, c, generator=generator, dtype=torch.float64), -1).requires_grad_()
    unlike = torch.rand(c, c, generator=generator, dtype=torch.float64).requires_grad_()
    noise = torch.tensor(0.4, dtype=torch.float64, requires_grad=True)
    support = torch.rand(c, generator=generator, dtype=torch.float64).requires_grad_()
    pair = 0.05 + 0.4 * torch.rand(m // 2, generator=generator, dtype=torch.float64)
    rest = pair[graph.pairs.of_edge].requires_grad_()
    weight = torch.rand(n, generator=generator, dtype=torch.float64).requires_grad_()
    judged = torch.rand(c, generator=generator, dtype=torch.float64).requires_grad_()

    def both(log_u, unlike, noise, support, judged, rest, weight):
        weights, verdict = (torch.stack([unlike, noise.expand(c, c), w.diag()]) for w in (support, judged))
        judged_by = Terms(verdict, 0.5 * rest if again else rest[:0])
        return propagate(mirrored(graph), log_u, Terms(weights, rest), judged_by, weight, 2)

    assert torch.autograd.gradcheck(both, (log_u, unlike, noise, support, judged, rest, weight))


def test_results_do_not_depend_on_the_number_of_threads(monkeypatch):
    monkeypatch.setattr(compiled, "SERIAL_BELOW", 0)
    graph, before = awkward(1), torch.get_num_threads()
    posterior, logits = trained(graph, 2, torch.float32), torch.randn(100, 4, generator=torch.Generator().manual_seed(2))
    results = []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            results.append(found(posterior, graph, logits, plain=False))
    finally:
        torch.set_num_threads(before)
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-6 * float(a.detach().abs().max()))


def test_a_graph_without_edges_keeps_what_features_say():
    graph = Graph.build(torch.randn(5, 3), torch.zeros(2, 0, dtype=torch.int64), torch.tensor([0, 1, 0, 1, 0]), directed=False,
                        train_mask=torch.arange(5) < 2)  # fmt: skip
    log_u = torch.log_softmax(torch.randn(5, 2), -1).requires_grad_()
    terms = Terms(torch.ones(3, 2, 2), torch.zeros(0))
    log_q, belief = propagate(mirrored(graph), log_u, terms, terms, torch.ones(5), 2)
    assert log_q.shape == (0, 3)
    assert torch.equal(belief, log_u)
    (gradient,) = torch.autograd.grad(belief.sum(), log_u)
    torch.testing.assert_close(gradient, torch.ones(5, 2))


def test_without_a_gradient_the_result_is_the_same():
    graph = awkward(2)
    posterior, logits = trained(graph, 3, torch.float32), torch.randn(100, 4)
    with_gradient = found(posterior, graph, logits, plain=False)[:2]
    with torch.no_grad():
        log_u = torch.log_softmax(logits, -1)
        operands = (*posterior._terms(log_u, graph, edge_evidence(graph)), posterior._weight(graph), 3)
        elsewhere = propagate_into(torch.empty, mirrored(graph), log_u, *operands)
        for a, b, c in zip(with_gradient, propagate(mirrored(graph), log_u, *operands), elsewhere, strict=True):
            assert torch.equal(a, b)
            assert torch.equal(a, c)
