"""Metrics by hand and against scikit-learn; the embedded graphs."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.metrics import brier_score_loss, f1_score, log_loss, roc_auc_score

from spam_gnn import csbm, digits
from spam_gnn.errors import BadInput
from spam_gnn.evaluation.metrics import expected_calibration_error, node_metrics, reliability, same_class_pairs
from spam_gnn.homophily import homophily
from spam_gnn.prediction import Prediction


def test_node_metrics_agree_with_scikit_learn():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(200, 2, generator=generator)
    y = torch.randint(2, (200,), generator=generator)
    found = node_metrics(Prediction.uniform(torch.log_softmax(logits, -1).unsqueeze(0)), y, torch.ones(200, dtype=torch.bool))
    p = torch.softmax(logits.double(), -1).numpy()
    assert found["accuracy"] == pytest.approx((p.argmax(1) == y.numpy()).mean())
    assert found["macro_f1"] == pytest.approx(f1_score(y, p.argmax(1), average="macro"))
    assert found["nll"] == pytest.approx(log_loss(y, p), abs=1e-6)
    assert found["roc_auc"] == pytest.approx(roc_auc_score(y, p[:, 1]), abs=1e-6)
    assert found["brier"] == pytest.approx(2 * brier_score_loss(y, p[:, 1]), abs=1e-6)
    assert node_metrics(Prediction.uniform(torch.zeros(1, 200, 2)), y, torch.zeros(200, dtype=torch.bool)) == {}


def test_calibration_error_by_hand():
    p = torch.tensor([[0.9, 0.1], [0.9, 0.1], [0.6, 0.4], [0.6, 0.4]], dtype=torch.float64)
    y = torch.tensor([0, 1, 0, 0])
    assert expected_calibration_error(p, y) == pytest.approx(0.5 * abs(0.5 - 0.9) + 0.5 * abs(1.0 - 0.6))
    assert sum(count for _, _, count in reliability(p, y)) == 4


def test_csbm_has_the_structure_it_promises():
    graph = csbm(nodes=2000, classes=4, degree=12, homophily=0.6, noise=0.25, seed=0)
    sign = graph.edge_sign
    same = graph.y[graph.edge_index[0]] == graph.y[graph.edge_index[1]]
    assert same[sign == 1].all()
    assert not same[sign == -1].any()
    assert float((sign == 0).float().mean()) == pytest.approx(0.25, abs=0.02)
    assert float((sign == 1).sum() / (sign != 0).sum()) == pytest.approx(0.6, abs=0.02)
    assert float(same[sign == 0].float().mean()) == pytest.approx(0.25, abs=0.03)
    assert graph.num_edges / 2000 == pytest.approx(12, abs=0.5)
    assert torch.equal(sign, sign[graph.reverse])
    assert torch.equal(csbm(seed=4).x, csbm(seed=4).x)
    with pytest.raises(BadInput, match="homophily"):
        csbm(homophily=2.0)


def test_csbm_features_have_the_strength_it_promises():
    graph = csbm(nodes=6000, feature_strength=3.0, seed=1)
    means = torch.stack([graph.x[graph.y == c].mean(0) for c in range(3)])
    np.testing.assert_allclose(means.norm(dim=1), 3.0, atol=0.15)
    assert (means @ means.t() - torch.diag((means @ means.t()).diag())).abs().max() < 0.5


def test_digits_plants_wrong_edges_between_different_digits():
    graph = digits(wrong_edges=0.4, seed=0)
    planted = graph.edge_sign == 0
    same, _ = same_class_pairs(graph)
    assert not same[planted].any()
    assert float(planted.sum() / (~planted).sum()) == pytest.approx(0.4, abs=0.01)
    assert homophily(graph).edge < homophily(digits(wrong_edges=0.0, seed=0)).edge
    with pytest.raises(BadInput, match="digits"):
        digits(labelled=0.9)
