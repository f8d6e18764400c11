"""The measured theorems: their exact parts against brute force, and findings that survive being written and read."""

from __future__ import annotations

import itertools

import torch

from spam_gnn.data.synthetic import csbm
from spam_gnn.experiments.paper import theory
from spam_gnn.experiments.theory import consistency, margin, risk_bound, support
from spam_gnn.experiments.theory.tiny_world import World, product_of, true_posterior
from spam_gnn.randomness import stream


def test_the_true_posterior_is_bayes_rule_term_by_term():
    """p(Y, Z | X, A, Y_L) summed over an explicit list of every label and every sign."""
    world = World()
    graph = world.draw(4, 2, 1.0, stream(1, "tiny"))
    truth = true_posterior(world, graph)
    edges = {tuple(e) for e in graph.edge_index[:, graph.pairs.edge].t().tolist()}
    listed = [tuple(e) for e in graph.edge_index[:, graph.pairs.edge].t().tolist()]
    joint = {}
    for a, b in itertools.product(range(2), repeat=2):
        y = [*graph.y[:2].tolist(), a, b]
        for signs in itertools.product((-1, 0, 1), repeat=len(listed)):
            chosen = dict(zip(listed, signs, strict=True))
            p = 1.0
            for i in range(4):
                p *= float(torch.exp(-0.5 * (graph.x[i].double() - world.means[y[i]].double()).square().sum()))
            for i, j in itertools.combinations(range(4), 2):
                z = chosen.get((i, j), 0)
                p *= float(world.sign_given_classes(torch.tensor(y[i] == y[j]))[z + 1])
                p *= 1.0 if z else (world.stray if (i, j) in edges else 1.0 - world.stray)
            joint[(a, b), signs] = p
    total = sum(joint.values())
    graphs = [sum(p for (_, s), p in joint.items() if s == signs) / total
              for signs in itertools.product((-1, 0, 1), repeat=len(listed))]  # fmt: skip
    torch.testing.assert_close(truth.graphs, torch.tensor(graphs, dtype=torch.float64))
    second = sum(p for ((a, _), _), p in joint.items() if a == 1) / total
    torch.testing.assert_close(truth.labels[2, 1], torch.tensor(second, dtype=torch.float64))


def test_independent_edges_multiply():
    rows = torch.tensor([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]])
    torch.testing.assert_close(product_of(rows), (rows[0].unsqueeze(1) * rows[1]).reshape(-1))


def test_the_limit_posterior_is_the_share_of_signs_among_the_edges_of_a_class_pair():
    graph = csbm(nodes=3000, homophily=consistency.HOMOPHILY, noise=consistency.NOISE, degree=20, seed=0)
    limit = consistency.limit_posterior(graph)
    same = graph.y[graph.edge_index[0]] == graph.y[graph.edge_index[1]]
    for part in (same, ~same):
        shares = torch.bincount(graph.edge_sign[part].long() + 1, minlength=3) / int(part.sum())
        torch.testing.assert_close(shares, limit[part][0], atol=0.02, rtol=0.0)


def test_findings_are_measured_written_read_and_drawn():
    small = {
        "risk-bound": lambda: risk_bound.measure(instances=4, epochs=2),
        "consistency": lambda: consistency.measure(labels=(2, 10), seeds=1, nodes=90, epochs=2),
        "margin": lambda: margin.measure(classes=(2, 5), per_class=60, repeats=2, draws=50),
        "support": lambda: support.measure(nodes=20, penalties=(0.1, 1.0), noises=(0.1,)),
    }
    found = {s.name: small[s.name]() for s in theory.STATEMENTS}
    records = theory.compute(lambda s: found[s.name])
    for s, record in zip(theory.STATEMENTS, records, strict=True):
        assert theory.read_back(s.finding, record["findings"]) == found[s.name]
    result = theory.render(records)
    assert len(result.figures) == 4
    for figure in result.figures:
        figure.draw().canvas.draw()
    assert all(side.violations == 0 for side in found["risk-bound"].sides)
    for gain in found["margin"].gains:
        assert abs(gain.measured - gain.corrected) < 0.1
    assert "did not hold" in result.verdict
