"""L2DGCN, Auto-HeG and UnGSL against dense matrices, their simpler forms, and what their search may read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from spam_gnn.baselines.auto_heg import AutoHeG, AutoHeGSettings
from spam_gnn.baselines.auto_heg_cells import JOINS, OPERATORS, Cells, GeneralisedPageRank
from spam_gnn.baselines.auto_heg_search import class_link_matrix, heterophily_distance, split_training_nodes
from spam_gnn.baselines.base import Shape
from spam_gnn.baselines.identity_order import nearest_rows
from spam_gnn.baselines.l2dgcn import L2DGCN, L2DGCNSettings, enhanced_messages, low_degree_nodes, prototype_contrast
from spam_gnn.baselines.l2dgcn import restart_propagation as propagation
from spam_gnn.baselines.ungsl import UnGSL, UnGSLSettings, candidate_messages, confidence_weights
from spam_gnn.data.synthetic import csbm
from structure_graphs import close, dense_adjacency, gcn_matrix, random_graph


def test_nearest_rows_equal_a_full_sort():
    table = torch.randn(9, 3, generator=torch.Generator().manual_seed(0))
    rows, partners = nearest_rows(table, 3)
    cosine = F.normalize(table, dim=1) @ F.normalize(table, dim=1).t() - 2 * torch.eye(9)
    for i in range(9):
        assert set(partners[rows == i].tolist()) == set(cosine[i].topk(3).indices.tolist())
    assert nearest_rows(table[:1], 3)[0].numel() == 0
    same = torch.ones(4, 2)  # all ties: the lowest rows win
    assert nearest_rows(same, 1)[1].tolist() == [1, 0, 0, 0]


def test_enhanced_graph_by_hand():
    graph = random_graph(1, directed=False)
    low = low_degree_nodes(graph, 0.4)
    degree = dense_adjacency(graph).sum(1)
    assert len(low) == 5
    assert degree[low.numpy()].max() <= np.delete(degree, low.numpy()).min()
    messages = enhanced_messages(graph, graph.x, 0.4, 2)
    found = np.zeros((12, 12))
    found[messages.target.numpy(), messages.source.numpy()] = 1
    outside = [i for i in range(12) if i not in low.tolist()]
    a = dense_adjacency(graph) + np.eye(12)
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_array_equal(found[outside], a[outside])  # only pairs of low nodes are rewired
    inner = found[np.ix_(low.numpy(), low.numpy())] - np.eye(5)
    assert (inner.sum(1) >= 2).all()


def test_restart_propagation_is_a_power_series():
    graph = random_graph(2, directed=False)
    messages = enhanced_messages(graph, graph.x, 0.2, 2)
    p = np.zeros((12, 12))
    p[messages.target.numpy(), messages.source.numpy()] = 1
    p /= p.sum(1, keepdims=True)
    expected = graph.x.double().numpy()
    for _ in range(4):
        expected = 0.8 * p @ expected + 0.2 * graph.x.double().numpy()
    close(propagation(messages, graph.x, 0.2, 4), expected)


def test_l2dgcn_with_full_restart_is_a_perceptron():
    graph = random_graph(3, directed=False)
    model = L2DGCN(Shape.of(graph), L2DGCNSettings(restart=1.0, scaling="none"), 0)
    expected = torch.relu(graph.x @ model.first + model.first_bias) @ model.second + model.second_bias
    close(model.logits(model.prepare(graph), None), expected)


def test_l2dgcn_without_its_extra_losses_learns_from_labels_alone():
    graph = random_graph(3, directed=False)
    model = L2DGCN(Shape.of(graph), L2DGCNSettings(contrast_weight=0.0, confidence=1.0), 0)
    prepared = model.prepare(graph)
    parts = model.training_loss(prepared, 0, 0)
    close(parts["loss"], F.cross_entropy(model.logits(prepared, None)[graph.train_mask], graph.y[graph.train_mask]))


def test_prototype_contrast_by_hand():
    hidden, labels = torch.randn(6, 3, generator=torch.Generator().manual_seed(1)), torch.tensor([0, 0, 2, 2, 2, 1])
    reliable = torch.tensor([True] * 5 + [False])  # class 1 has no reliable node, so no prototype
    unit = F.normalize(hidden[:5], dim=1)
    means = F.normalize(torch.stack([unit[:2].mean(0), unit[2:].mean(0)]), dim=1)
    expected = F.cross_entropy(unit @ means.t() / 0.5, torch.tensor([0, 0, 1, 1, 1]))
    close(prototype_contrast(hidden, labels, reliable, 3, 0.5), expected)


def test_confidence_weights_by_hand():
    found = confidence_weights(torch.tensor([0.9, 0.3]), torch.tensor([0.5, 0.5]), 0.2)
    close(found, torch.tensor([2.0 / (1.0 + np.exp(-0.4)), 0.2]))


def test_ungsl_equals_its_dense_form():
    graph = random_graph(4, directed=False)
    model = UnGSL(Shape.of(graph), UnGSLSettings(hidden=6, neighbours=3, scaling="none", threshold=0.6), 0)
    model.confidence.copy_(torch.linspace(0.3, 1.0, 12))
    found = model.logits(model.prepare(graph), None)
    a = dense_adjacency(graph)
    x = graph.x.double().numpy()
    p = {k: v.detach().double().numpy() for k, v in model.named_parameters()}
    embedding = gcn_matrix(a) @ x @ p["embed"]
    unit = embedding / np.linalg.norm(embedding, axis=1, keepdims=True)
    messages, _ = candidate_messages(graph, 3)
    candidate = np.zeros((12, 12))
    candidate[messages.target.numpy(), messages.source.numpy()] = 1
    assert (candidate >= a).all()
    assert candidate.sum() > a.sum()
    psi = 2 / (1 + np.exp(p["thresholds"][:, None] - np.linspace(0.3, 1.0, 12)[None, :]))
    psi = np.where(psi >= 1, psi, 0.774)
    learned = gcn_matrix(a + candidate * np.maximum(unit @ unit.T, 0) * psi)
    hidden = np.maximum(learned @ x @ p["first"] + p["first_bias"], 0)
    close(found, learned @ hidden @ p["second"] + p["second_bias"])


def test_ungsl_without_thresholds_is_its_base():
    graph = random_graph(5, directed=False)
    settings = UnGSLSettings(hidden=6, neighbours=3)
    full, base = UnGSL(Shape.of(graph), settings, 0), UnGSL(Shape.of(graph), replace(settings, use_thresholds=False), 0)
    full.confidence.fill_(0.5)  # c = t everywhere: psi = 2 sigmoid(0) = 1
    close(full.logits(full.prepare(graph), None), base.logits(base.prepare(graph), None))
    assert "thresholds" not in dict(base.named_parameters())


def test_ungsl_learns_confidence_before_the_first_epoch():
    graph = csbm(nodes=90, classes=3, degree=6, feature_strength=2.0, features=6, seed=0)
    model = UnGSL(Shape.of(graph), UnGSLSettings(pretrain_epochs=30, neighbours=4), 0)
    model.begin(graph, 0)
    sure = model.confidence
    assert bool(((sure >= 1 / 3 - 1e-5) & (sure <= 1 + 1e-5)).all())
    assert float(sure.std()) > 0.01


def test_one_architecture_is_a_special_mixture():
    graph = random_graph(6, directed=False)
    cells = Cells(Shape.of(graph), 8, 2, 0.0, 0)
    weights = [torch.zeros(2, len(OPERATORS)), torch.tensor([[0.0, 1.0], [0.0, 1.0]]), torch.zeros(1, len(JOINS))]
    weights[0][0, OPERATORS.index("gcn")] = weights[0][1, OPERATORS.index("sage")] = weights[2][0, JOINS.index("cat")] = 1.0
    found = cells(graph, tuple(weights), None)
    start = graph.x @ cells.encode + cells.encode_bias
    first = F.elu(cells.operators[0][OPERATORS.index("gcn")](start, graph.edge_index))
    second = F.elu(cells.operators[1][OPERATORS.index("sage")](first, graph.edge_index))
    joined = F.elu(cells.mixers[JOINS.index("cat")](torch.relu(torch.cat([first, second], 1))))
    close(found, joined @ cells.classify + cells.classify_bias)


def test_generalised_pagerank_by_hand():
    graph = random_graph(7, directed=False)
    p, x = gcn_matrix(dense_adjacency(graph)), graph.x.double().numpy()
    close(GeneralisedPageRank()(graph.x, graph), 0.5 * x + 0.25 * p @ x + 0.25 * p @ p @ x)


def test_heterophily_distance_reads_training_labels_only():
    graph = random_graph(8, nodes=24, directed=False)
    first, second = split_training_nodes(graph, 0)
    assert bool((first ^ second == graph.train_mask).all())
    logits = torch.randn(24, 3, generator=torch.Generator().manual_seed(0))
    distance = heterophily_distance(logits, graph, second)
    hidden = replace(graph, y=torch.where(graph.train_mask, graph.y, (graph.y + 1) % 3))
    assert heterophily_distance(logits, hidden, second) == distance
    perfect = 100.0 * F.one_hot(graph.y, 3).float()
    assert heterophily_distance(perfect, graph, second) < 1e-5 < distance


def test_class_link_matrix_by_hand():
    soft = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    edges = torch.tensor([[0, 1, 1, 2, 0, 2], [1, 0, 2, 1, 2, 0]])
    close(class_link_matrix(soft, edges), torch.tensor([[0.0, 1.0], [0.5, 0.5]]))


def test_auto_heg_search_is_kept_in_buffers_and_reads_no_other_label():
    graph = csbm(nodes=60, classes=3, degree=5, feature_strength=2.0, features=6, seed=0)
    settings = AutoHeGSettings(hidden=8, layers=2, search_epochs=3)
    model = AutoHeG(Shape.of(graph), settings, 0)
    model.begin(graph, 0)
    found = model.architecture()
    assert set(found["operators"]) <= set(OPERATORS)
    blind = replace(graph, y=torch.where(graph.train_mask, graph.y, (graph.y + 1) % 3))
    again = AutoHeG(Shape.of(graph), settings, 0)
    again.begin(blind, 0)
    assert again.architecture() == found
    loaded = AutoHeG(Shape.of(graph), settings, 5)
    loaded.load_state_dict(model.state_dict())
    assert loaded.architecture() == found
    trained = [{k for k, v in m.named_parameters() if v.requires_grad} for m in (model, loaded)]
    assert trained[0] == trained[1]
    prepared = model.prepare(graph)
    close(loaded.logits(prepared, None), model.logits(prepared, None))
    model.training_loss(prepared, 0, 0)["loss"].backward()
    assert all(v.grad is not None for v in model.parameters() if v.requires_grad)


@pytest.mark.parametrize("skips", [[1, 0], [0, 1], [1, 1]])
def test_auto_heg_freezes_what_nothing_reads(skips):
    graph = random_graph(9, nodes=20, directed=False)
    model = AutoHeG(Shape.of(graph), AutoHeGSettings(hidden=8, layers=2, dropout=0.0), 0)
    model.skips.copy_(torch.tensor(skips))
    model.freeze_unchosen()
    model.training_loss(model.prepare(graph), 0, 0)["loss"].backward()
    assert all(v.grad is not None and bool(v.grad.any()) for v in model.parameters() if v.requires_grad and v.ndim > 1)
