"""MagNet, DirGNN and Commute GNN against PyG's layers and dense matrices written from the papers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.nn import ChebConv, DirGNNConv, SAGEConv

from spam_gnn.baselines import commute
from spam_gnn.baselines.base import Shape
from spam_gnn.baselines.cgnn import CGNNSettings, CommuteGNN, commute_weights
from spam_gnn.baselines.chebyshev import chebyshev_sum
from spam_gnn.baselines.commute import edge_commute_times, walk_matrix
from spam_gnn.baselines.dirgnn import directed_mix
from spam_gnn.baselines.magnet import MagNet, MagNetSettings, complex_relu, magnetic_operator
from spam_gnn.errors import BadInput, TooLarge
from spam_gnn.graph import Graph
from spam_gnn.kernels.csr import gather_sum
from structure_graphs import close, dense_adjacency, random_graph


def complex_laplacian(a: np.ndarray, q: float) -> np.ndarray:
    """L^(q) - I from the definition."""
    symmetric = (a + a.T) / 2.0
    degree = symmetric.sum(1)
    scale = np.where(degree > 0, np.maximum(degree, 1e-12) ** -0.5, 0.0)
    return -(scale[:, None] * symmetric * scale[None, :]) * np.exp(2j * np.pi * q * (a - a.T))


@pytest.mark.parametrize("q", [0.0, 0.1, 0.25])
def test_magnetic_operator_equals_the_complex_matrix(q):
    graph = random_graph(1)
    z = torch.randn(2, graph.num_nodes, 4, generator=torch.Generator().manual_seed(2))
    expected = complex_laplacian(dense_adjacency(graph), q) @ (z[0].numpy() + 1j * z[1].numpy())
    found = magnetic_operator(graph, q)(z)
    close(found[0], expected.real)
    close(found[1], expected.imag)


def test_magnetic_laplacian_is_hermitian_and_bounded():
    matrix = complex_laplacian(dense_adjacency(random_graph(3)), 0.2)
    np.testing.assert_allclose(matrix, matrix.conj().T, atol=1e-12)
    assert np.abs(np.linalg.eigvalsh(matrix)).max() <= 1.0 + 1e-9  # why 2 may stand for the largest eigenvalue


@pytest.mark.parametrize("order", [1, 2, 4])
def test_magnet_without_charge_on_an_undirected_graph_is_a_real_chebyshev_convolution(order):
    graph = random_graph(4, directed=False)
    model = MagNet(Shape.of(graph), MagNetSettings(charge=0.0, order=order, layers=1, hidden=6, scaling="none"), 0)
    conv = ChebConv(5, 6, order + 1)
    for lin, weight in zip(conv.lins, model.filters[0].split(6, dim=1), strict=True):
        lin.weight.data.copy_(weight.t())
    reference = torch.relu(conv(graph.x, graph.edge_index, lambda_max=torch.tensor(2.0)))
    expected = torch.cat([reference, torch.zeros_like(reference)], 1) @ model.classify
    # PyG leaves nodes without edges out of the Laplacian's diagonal as well, so even the isolated node agrees
    close(model.logits(model.prepare(graph), None), expected)


def test_clenshaw_equals_the_recurrence():
    generator = torch.Generator().manual_seed(0)
    matrix = torch.randn(7, 7, generator=generator, dtype=torch.float64) / 7
    terms = [torch.randn(7, 2, generator=generator, dtype=torch.float64) for _ in range(5)]
    powers = [torch.eye(7, dtype=torch.float64), matrix]
    for _ in range(3):
        powers.append(2 * matrix @ powers[-1] - powers[-2])
    expected = sum(p @ t for p, t in zip(powers, terms, strict=True))
    close(chebyshev_sum(lambda h: matrix @ h, terms), expected, 1e-10)
    close(chebyshev_sum(lambda h: matrix @ h, terms[:2]), terms[0] + matrix @ terms[1], 1e-10)


def test_complex_relu_keeps_the_right_half_plane():
    z = torch.tensor([[[1.0, -1.0]], [[-2.0, 3.0]]])
    close(complex_relu(z), torch.tensor([[[1.0, 0.0]], [[-2.0, 0.0]]]))


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_dirgnn_gcn_equals_the_directed_normalisation(alpha):
    graph = random_graph(5)
    a = dense_adjacency(graph)
    inverse = lambda d: np.where(d > 0, np.maximum(d, 1e-12) ** -0.5, 0.0)  # noqa: E731
    s = inverse(a.sum(1))[:, None] * a * inverse(a.sum(0))[None, :]
    values = torch.randn(graph.num_nodes, 8, generator=torch.Generator().manual_seed(1))
    out, into = values.double().numpy()[:, :4], values.double().numpy()[:, 4:]
    close(directed_mix(graph, values, alpha, "gcn"), alpha * s @ out + (1 - alpha) * s.T @ into)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_dirgnn_sage_equals_pyg(alpha):
    graph = random_graph(6)
    conv = DirGNNConv(SAGEConv(5, 4, bias=False), alpha=alpha)
    weights = [conv.conv_out.lin_l.weight, conv.conv_in.lin_l.weight, conv.lin.weight]
    values = graph.x @ torch.cat([w.t() for w in weights], dim=1)
    close(directed_mix(graph, values, alpha, "sage") + conv.lin.bias, conv(graph.x, graph.edge_index))


def test_commute_times_are_mean_return_trips():
    """Against hitting times from first-step equations, one linear system per target, and against the pseudo-inverse."""
    graph = random_graph(7)
    p = walk_matrix(graph).toarray()
    n = len(p)
    np.testing.assert_allclose(p.sum(1), 1.0)
    hitting = np.zeros((n, n))
    for target in range(n):
        rest = [i for i in range(n) if i != target]
        hitting[rest, target] = np.linalg.solve(np.eye(n - 1) - p[np.ix_(rest, rest)], np.ones(n - 1))
    source, target = graph.edge_index.numpy()
    found = edge_commute_times(graph, exact=True)
    close(found, (hitting + hitting.T)[source, target], 1e-4)
    values, vectors = np.linalg.eig(p.T)
    pi = np.real(vectors[:, np.argmax(values.real)])
    pinv = np.linalg.pinv(np.diag(pi / pi.sum()) @ (np.eye(n) - p))
    close(found, (np.diag(pinv)[source] + np.diag(pinv)[target] - pinv[source, target] - pinv[target, source]), 1e-4)


def test_local_commute_times_follow_the_exact_ones():
    generator = torch.Generator().manual_seed(0)
    x, edges = torch.randn(300, 4, generator=generator), torch.randint(300, (2, 4000), generator=generator)
    graph = Graph.build(x, edges, directed=True)
    exact, local = edge_commute_times(graph, exact=True), edge_commute_times(graph, exact=False)
    assert float(torch.corrcoef(torch.stack([exact, local]))[0, 1]) > 0.95
    assert float(((exact - local) / exact).abs().mean()) < 0.15


def test_commute_times_that_do_not_fit_are_refused(monkeypatch):
    monkeypatch.setattr(commute, "available_memory_mb", lambda: 1e-3)
    with pytest.raises(TooLarge, match=r"12 nodes need 3456 bytes.* 0 MiB are free; set commute=local") as caught:
        edge_commute_times(random_graph(8), exact=True)
    assert caught.value.exit_code == 3


def test_cgnn_with_equal_weights_is_the_mean_of_either_side():
    graph = random_graph(9)
    model = CommuteGNN(Shape.of(graph), CGNNSettings(commute="none", hidden=4, layers=1, self_term=True), 0)
    values = torch.randn(graph.num_nodes, 12, generator=torch.Generator().manual_seed(3))
    a = dense_adjacency(graph)
    mean = lambda m: m / np.maximum(m.sum(1, keepdims=True), 1.0)  # noqa: E731
    out, into, own = (v.double().numpy() for v in values.chunk(3, dim=1))
    close(model.mix(graph, values), own + mean(a) @ out + mean(a.T) @ into)


def test_cgnn_weighs_near_neighbours_more():
    graph = random_graph(10)
    messages, times = graph.messages("in"), edge_commute_times(graph, exact=True)
    weights = commute_weights(graph, "in", "auto", 100)
    close(gather_sum(messages, weights, torch.ones(1, graph.num_nodes, 1))[0, :, 0], (messages.degree > 0).double())
    node = int(messages.degree.argmax())
    mine = messages.target == node
    order = times[messages.edge][mine].argsort()
    assert bool((weights[0, mine][order].diff() <= 0).all())
    assert float(weights[0, mine].max()) > float(weights[0, mine].min())


def test_settings_are_checked():
    with pytest.raises(BadInput, match="charge"):
        MagNetSettings(charge=0.5)
    with pytest.raises(BadInput, match="commute"):
        CGNNSettings(commute="exakt")
