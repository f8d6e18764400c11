"""BGCN, SISPDE and BBDE: closed forms, distributions of their draws, and the plain network each falls back to."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
import torch

from spam_gnn.baselines.base import Settings, Shape
from spam_gnn.baselines.bbde import BBDESettings, BetaBernoulliDropEdge, kumaraswamy_kl
from spam_gnn.baselines.bgcn import BayesianGCN, BGCNSettings
from spam_gnn.baselines.chebyshev import coefficients
from spam_gnn.baselines.identity_order import node_table_normals
from spam_gnn.baselines.mmsbm import BlockModel, _pairs_of, draw_graph, fit_block_model, sample_non_edges
from spam_gnn.baselines.plain import PlainNetwork
from spam_gnn.baselines.sispde import SISPDESettings, StructureInformedSPDE, matern_root, shifted_laplacian
from spam_gnn.data.synthetic import csbm
from spam_gnn.errors import BadInput
from structure_graphs import close, dense_adjacency, gcn_matrix, random_graph


def copy_gcn(model, gcn):
    """The weights of a two-layer GCN into a system that stores them under other names."""
    first, second = gcn.stack.layers
    for own, other in zip(model, (first.weight, second.weight, first.bias, second.bias), strict=True):
        own.data.copy_(other)


def test_bbde_that_keeps_every_edge_is_gcn():
    graph = random_graph(1, directed=False)
    settings = BBDESettings(hidden=8, layers=2, keep=1.0)
    model = BetaBernoulliDropEdge(Shape.of(graph), settings, 0)
    gcn = PlainNetwork(Shape.of(graph), Settings(hidden=8), 3, graph_layers=True)
    copy_gcn([*model.weights, *model.biases], gcn)
    prepared = model.prepare(graph)
    close(model.predict(prepared, 0, samples=3).log_prob[1], gcn.predict(prepared, 0).log_prob[0])
    nothing = BetaBernoulliDropEdge(Shape.of(graph), replace(settings, keep=0.0), 0)
    copy_gcn([*nothing.weights, *nothing.biases], gcn)
    degree = torch.from_numpy(dense_adjacency(graph).sum(1)).float()
    own = (1.0 / (degree + 1.0)).unsqueeze(1)  # normalised first, masked afterwards: only the self weight is left
    first, second = gcn.stack.layers
    hidden = torch.relu(own * (prepared.features.to_dense() @ first.weight) + first.bias)
    expected = own * hidden @ second.weight + second.bias
    close(nothing.predict(prepared, 0, samples=1).log_prob[0], torch.log_softmax(expected, -1))


@pytest.mark.parametrize("blocks", [1, 2])
def test_bbde_layer_equals_its_dense_form(blocks):
    graph = random_graph(2, directed=False)
    model = BetaBernoulliDropEdge(Shape.of(graph), BBDESettings(hidden=8, layers=2, blocks=blocks), 0)
    h = torch.randn(12, 8, generator=torch.Generator().manual_seed(0))
    masks = model.masks(graph, 1, 7, relaxed=False)
    assert masks.shape == (blocks, graph.num_edges)
    assert set(masks.unique().tolist()) == {0.0, 1.0}
    np.testing.assert_array_equal(masks.numpy(), masks[:, graph.reverse].numpy())  # both directions share a draw
    normal, expected = gcn_matrix(dense_adjacency(graph)), []
    for mask, part in zip(masks, h.chunk(blocks, dim=1), strict=True):
        z = np.eye(12)
        z[graph.edge_index[1].numpy(), graph.edge_index[0].numpy()] = mask.numpy()
        expected.append((normal * z) @ part.double().numpy())
    close(model.spread(graph, h, masks), np.concatenate(expected, 1))


def test_bbde_rates_follow_the_kumaraswamy_law():
    graph = random_graph(3, nodes=40, directed=False)
    model = BetaBernoulliDropEdge(Shape.of(graph), BBDESettings(hidden=4, layers=2), 0)
    a, b = (float(v[0].detach()) for v in model.rates())
    assert a == pytest.approx(np.log1p(np.exp(1.25)), abs=1e-5)
    kept = np.array([float(model.masks(graph, 0, seed, relaxed=False).mean()) for seed in range(400)])
    expected = b * scipy.special.beta(1 + 1 / a, b)  # mean of Kumaraswamy(a, b)
    assert abs(kept.mean() - expected) < 4 * kept.std() / 20


def test_kumaraswamy_divergence_by_integration():
    a, b, alpha = 1.7, 0.8, 0.6
    x = np.linspace(1e-9, 1 - 1e-9, 2_000_001)
    log_q = np.log(a * b) + (a - 1) * np.log(x) + (b - 1) * np.log1p(-(x**a))
    log_p = np.log(alpha) + (alpha - 1) * np.log(x)
    expected = np.trapezoid(np.exp(log_q) * (log_q - log_p), x)
    assert float(kumaraswamy_kl(torch.tensor(a), torch.tensor(b), alpha)) == pytest.approx(expected, abs=2e-3)
    assert float(kumaraswamy_kl(torch.tensor(0.6), torch.tensor(1.0), 0.6)) == pytest.approx(0.0, abs=1e-6)


def test_bgcn_on_the_observed_graph_is_gcn():
    graph = random_graph(4, directed=False)
    model = BayesianGCN(Shape.of(graph), BGCNSettings(hidden=8, dropout=0.0, graphs="observed"), 0)
    gcn = PlainNetwork(Shape.of(graph), Settings(hidden=8), 3, graph_layers=True)
    copy_gcn([model.first, model.second, model.first_bias, model.second_bias], gcn)
    prepared = model.prepare(graph)
    found = model.predict(prepared, 0, samples=2)
    for k in range(2):
        close(found.log_prob[k], gcn.predict(prepared, 0).log_prob[0])


def test_pair_numbers_enumerate_all_pairs():
    pairs = _pairs_of(torch.arange(10 * 9 // 2))
    assert {(i, j) for i, j in pairs.t().tolist()} == {(i, j) for j in range(10) for i in range(j)}
    far = _pairs_of(torch.tensor([123_456_789_012]))
    i, j = far[0, 0], far[1, 0]
    assert int(j * (j - 1) // 2 + i) == 123_456_789_012
    assert bool(i < j)


def test_drawn_graphs_have_the_block_densities():
    memberships = torch.zeros(60, 2)
    memberships[:40, 0] = memberships[40:, 1] = 1.0
    model = BlockModel(memberships, torch.tensor([0.2, 0.6]), 0.05)
    counts = np.zeros(3)
    for k in range(60):
        i, j = draw_graph(model, torch.Generator().manual_seed(k))
        assert bool((i < j).all())
        counts += [int((j < 40).sum()), int((i >= 40).sum()), int(((i < 40) & (j >= 40)).sum())]
    density = counts / 60 / [40 * 39 / 2, 20 * 19 / 2, 40 * 20]
    np.testing.assert_allclose(density, [0.2, 0.6, 0.05], rtol=0.04)


def test_edge_probability_by_hand():
    model = BlockModel(torch.tensor([[0.5, 0.5], [1.0, 0.0]]), torch.tensor([0.8, 0.4]), 0.1)
    close(model.edge_probability(torch.tensor([0]), torch.tensor([1])), torch.tensor([0.5 * 0.8 + 0.5 * 0.1]))


def test_non_edges_are_not_edges():
    keys = torch.tensor([0 * 5 + 1, 2 * 5 + 4])
    found = sample_non_edges(200, 5, keys, torch.Generator().manual_seed(0))
    assert {(i, j) for i, j in found.t().tolist()} == {(i, j) for j in range(5) for i in range(j)} - {(0, 1), (2, 4)}


def test_block_model_recovers_planted_blocks():
    graph = csbm(nodes=120, classes=3, degree=12, homophily=1.0, noise=0.0, seed=0)
    pairs = graph.edge_index[:, graph.edge_index[0] < graph.edge_index[1]]
    generator = torch.Generator().manual_seed(0)
    wrong = 0.34 * torch.nn.functional.one_hot(graph.y, 3) + 0.66 * torch.softmax(torch.randn(120, 3, generator=generator), 1)
    model = fit_block_model(pairs, wrong, graph.y, graph.train_mask, 1e-4, 200, 0.05, generator)
    assert float((wrong.argmax(1) == graph.y).float().mean()) < 0.95
    assert float((model.memberships.argmax(1) == graph.y).float().mean()) > 0.97
    expected = pairs.shape[1] / (3 * 40 * 39 / 2)
    np.testing.assert_allclose(model.strengths.numpy(), expected, rtol=0.3)


def test_bgcn_refuses_another_number_of_nodes():
    graph = csbm(nodes=40, classes=2, degree=4, features=4, seed=0)
    model = BayesianGCN(Shape.of(graph), BGCNSettings(pretrain_epochs=2, fit_steps=2), 0)
    model.begin(graph, 0)
    other = csbm(nodes=44, classes=2, degree=4, features=4, seed=0)
    with pytest.raises(BadInput, match="44 nodes.*made for 40"):
        model.predict(model.prepare(other), 0)


def test_chebyshev_coefficients_reproduce_the_matern_root():
    nu, kappa = torch.tensor(1.5), torch.tensor(2.0)
    x = torch.linspace(-1, 1, 41, dtype=torch.float64)
    series = np.polynomial.chebyshev.chebval(x.numpy(), matern_root(nu, kappa, 12).double().numpy())
    root = (2 * 1.5 / 4 + 1 + x.numpy()) ** (-0.75)
    angle = np.pi * (np.arange(64) + 0.5) / 64
    root /= np.sqrt(((2 * 1.5 / 4 + 1 + np.cos(angle)) ** (-1.5)).mean())
    np.testing.assert_allclose(series, root, atol=2e-3)
    close(coefficients(lambda t: 4 * t**3 - 3 * t, 4), torch.tensor([0.0, 0.0, 0.0, 1.0, 0.0]))


def test_noise_has_the_matern_covariance():
    graph = random_graph(5, directed=False)
    model = StructureInformedSPDE(Shape.of(graph), SISPDESettings(hidden=400, order=12, smoothness=1.0, length=2.0), 0)
    with torch.no_grad():
        draws = model.increment(graph, shifted_laplacian(graph), list(range(20)))  # (n, 20, 400)
    found = np.cov(draws.reshape(12, -1).numpy())
    a = dense_adjacency(graph)
    scale = np.where(a.sum(1) > 0, np.maximum(a.sum(1), 1) ** -0.5, 0.0)
    shifted = -scale[:, None] * a * scale[None, :]
    values, vectors = np.linalg.eigh(shifted)
    root = np.polynomial.chebyshev.chebval(
        values, matern_root(torch.tensor(1.001), torch.tensor(2.001), 12).numpy().astype(float)
    )
    np.testing.assert_allclose(found, vectors @ np.diag(root**2) @ vectors.T, atol=0.06)


def test_node_normals_are_standard_and_belong_to_nodes():
    identity = torch.arange(200)
    table = node_table_normals(identity, 30, [1, 2])
    assert scipy.stats.kstest(table.reshape(-1).numpy(), "norm").pvalue > 1e-3
    order = torch.randperm(200, generator=torch.Generator().manual_seed(0))
    close(node_table_normals(identity[order], 30, [2])[:, 0], table[order, 1])


def test_sispde_without_noise_is_the_euler_scheme_of_its_ode():
    graph = random_graph(6, directed=False)
    model = StructureInformedSPDE(Shape.of(graph), SISPDESettings(hidden=8, noise=0.0, layers=3, time=1.5, scaling="none"), 0)
    p = {k: v.detach().double().numpy() for k, v in model.named_parameters()}
    a = dense_adjacency(graph)
    scale = np.where(a.sum(1) > 0, np.maximum(a.sum(1), 1) ** -0.5, 0.0)
    laplacian = np.eye(12) - scale[:, None] * a * scale[None, :]
    h = np.maximum(graph.x.double().numpy() @ p["encode"] + p["encode_bias"], 0)
    for _ in range(3):
        h = h + 0.5 * (np.tanh(h @ p["reaction"] + p["reaction_bias"]) - p["gamma"] * (laplacian @ h))
    expected = torch.log_softmax(torch.from_numpy(h @ p["classify"] + p["classify_bias"]), -1)
    found = model.predict(model.prepare(graph), 0, samples=3)
    assert found.log_prob.shape == (3, 12, 3)
    for k in range(3):
        close(found.log_prob[k], expected)
    assert "gate" not in p


@pytest.mark.parametrize("name", ["sispde", "bgcn", "bbde"])
def test_samples_are_named_by_seed_and_number(name):
    from spam_gnn.baselines.registry import make_baseline

    graph = csbm(nodes=40, classes=2, degree=4, features=4, seed=0)
    model = make_baseline(name, graph, 0)
    prepared = model.prepare(graph)
    few, many = model.predict(prepared, 5, samples=2), model.predict(prepared, 5, samples=4)
    torch.testing.assert_close(many.log_prob[:2], few.log_prob)
    torch.testing.assert_close(many.log_weight.exp(), torch.full((4,), 0.25))
    assert not torch.allclose(many.log_prob[2], many.log_prob[3])
    assert float(many.structural.max()) > 0.0
    assert model.predict(prepared, 5).log_prob.shape[0] == {"sispde": 10, "bgcn": 60, "bbde": 12}[name]
