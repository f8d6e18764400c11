"""Labels left out: the error in closed form, and what is decided by it of features."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from spam_gnn import SpaM, SpaMConfig
from spam_gnn.contract import FeatureScaler
from spam_gnn.graph import Graph
from spam_gnn.left_out import _PENALTIES, asked_nodes, left_out_error, wanted_labels
from spam_gnn.position_shape import PositionShape


def test_the_error_of_labels_left_out_is_that_of_fits_without_them():
    draws = np.random.default_rng(0)
    columns, wanted = draws.standard_normal((12, 5)), draws.standard_normal((12, 2))
    columns -= columns.mean(0)
    errors = []
    for penalty in _PENALTIES:
        missed = []
        for i in range(12):
            rest = np.arange(12) != i
            x = columns[rest]
            weight = np.linalg.solve(x.T @ x + penalty * np.eye(5), x.T @ wanted[rest])
            missed.append(wanted[i] - columns[i] @ weight)
        errors.append(np.square(missed).mean())
    assert left_out_error(columns, wanted) == pytest.approx(min(errors), rel=1e-9)


def words(n=240, *, size_matters, sparse=False, seed=0):
    """Bags of words. Either a label is how many words of the first half there are, whatever the others, or which half all of
    them are from, however many."""
    draws = np.random.default_rng(seed)
    y = draws.integers(0, 2, n)
    x = np.zeros((n, 80))
    for i in range(n):
        if size_matters:
            x[i, draws.choice(40, 2 + 3 * y[i], replace=False)] = 1.0
            x[i, 40 + draws.choice(40, draws.integers(0, 30), replace=False)] = 1.0
        else:
            x[i, 40 * y[i] + draws.choice(40, draws.choice([3, 30]), replace=False)] = 1.0
    features = torch.from_numpy(x).float()
    edges = torch.from_numpy(draws.integers(0, n, (2, 2 * n)))
    return Graph.build(
        features.to_sparse_csr() if sparse else features, edges, torch.from_numpy(y), directed=False,
        train_mask=torch.arange(n) % 2 == 0,
    )  # fmt: skip


def mode_of(scaler):
    return ("none", "row", "standardise", "together")[int(scaler.get_buffer("mode"))]


@pytest.mark.filterwarnings("ignore:Sparse CSR")
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("size_matters", [True, False])
def test_training_labels_choose_how_counts_are_scaled(size_matters, sparse):
    graph = words(size_matters=size_matters, sparse=sparse)
    scaler = FeatureScaler(80, ask=True)
    scaler.learn(graph, 0)
    assert mode_of(scaler) == ("together" if size_matters else "row")
    blind = FeatureScaler(80)  # as competing systems have it
    blind.learn(graph, 0)
    assert mode_of(blind) == "row"


def test_rows_scaled_together_keep_their_proportions():
    graph = words(size_matters=True)
    scaler = FeatureScaler(80, "together")
    scaler.learn(graph, 0)
    found = scaler(graph).features.to_dense()
    assert float(found.square().sum(1).mean()) == pytest.approx(1.0, rel=1e-5)
    torch.testing.assert_close(found / found.max(), graph.x / graph.x.max())


def test_other_columns_are_standardised_whatever_labels_say():
    graph = words(size_matters=True)
    scaler = FeatureScaler(80, ask=True)
    scaler.learn(replace(graph, x=graph.x - 0.5), 0)
    assert mode_of(scaler) == "standardise"


def test_where_position_joins_or_the_paper_is_taken_literally_rows_get_norm_one():
    graph = words(size_matters=True)
    placed = SpaM(80, 2, SpaMConfig(hidden=4), position=PositionShape(graph.num_nodes, 4, directed=False))
    alone, paper = SpaM(80, 2, SpaMConfig(hidden=4)), SpaM(80, 2, SpaMConfig.preset("paper"))
    for model in (placed, alone, paper):
        model.begin(graph, 0)
    assert [mode_of(model.scaler) for model in (placed, alone, paper)] == ["row", "together", "row"]


def test_few_labels_or_one_class_decide_nothing():
    assert wanted_labels(torch.tensor([0, 1])) is None
    assert wanted_labels(torch.tensor([1, 1, 1, 1])) is None
    graph = words(size_matters=True)
    few = Graph.build(graph.x, graph.edge_index, graph.y, directed=False, train_mask=torch.arange(graph.num_nodes) < 2)
    scaler = FeatureScaler(80, ask=True)
    scaler.learn(few, 0)
    assert mode_of(scaler) == "row"


def test_who_is_asked_does_not_depend_on_the_order_of_nodes():
    graph = words(size_matters=True)
    order = torch.randperm(graph.num_nodes, generator=torch.Generator().manual_seed(1))
    place = torch.argsort(order)
    renamed = Graph.build(
        graph.x[order], place[graph.edge_index], graph.y[order], directed=False, train_mask=graph.train_mask[order],
        identity=graph.identity[order],
    )  # fmt: skip
    torch.testing.assert_close(renamed.identity[asked_nodes(renamed, 3)], graph.identity[asked_nodes(graph, 3)])
