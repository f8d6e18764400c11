"""Whether a prediction's probabilities can be trusted: reliability, selective prediction, doubt next to corrupted edges."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from spam_gnn.calibration import fit_calibration
from spam_gnn.evaluation.metrics import auroc, reliability
from spam_gnn.experiments.fitted import Fitted
from spam_gnn.perturb.base import pair_keys
from spam_gnn.prediction import Prediction

COVERAGES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


def measure(fitted: Fitted) -> dict[str, Any]:
    """Of the test nodes.

    reliability, reliability_tempered: [confidence, accuracy, count] of each confidence bin, empty bins left out.
    selective: accuracy on the share `COVERAGES` of nodes with the highest confidence.
    flags: AUROC with which structural and total uncertainty find the nodes at an edge that was added; null without added edges.
    """
    graph, prediction = fitted.graph, fitted.prediction
    tempered = fit_calibration(prediction, graph.y, graph.val_mask)(prediction)
    return {
        "reliability": _bins(prediction, graph.y, graph.test_mask),
        "reliability_tempered": _bins(tempered, graph.y, graph.test_mask),
        "selective": selective_accuracy(prediction.probability[graph.test_mask], graph.y[graph.test_mask]),
        "flags": _flags(fitted),
    }


def _bins(prediction: Prediction, y: Tensor, mask: Tensor) -> list[list[float]]:
    return [list(row) for row in reliability(prediction.probability[mask], y[mask]) if row[2]]


def selective_accuracy(probability: Tensor, y: Tensor) -> list[float]:
    """Accuracy on the most confident share of nodes, for each share."""
    confidence, predicted = probability.max(-1)
    right = (predicted == y)[torch.argsort(confidence, descending=True, stable=True)].double()
    return [float(right[: max(1, round(share * right.numel()))].mean()) for share in COVERAGES]


def _flags(fitted: Fitted) -> dict[str, float | None]:
    n, test = fitted.graph.num_nodes, fitted.graph.test_mask
    before, after = (pair_keys(g.edge_index, n) for g in (fitted.clean, fitted.graph))
    added = fitted.graph.edge_index[:, ~torch.isin(after, before)]
    touched = torch.zeros(n, dtype=torch.bool)
    touched[added.reshape(-1)] = True
    if not bool(touched.any()):
        return {"structural": None, "total": None}
    found = {}
    for name, doubt in (("structural", fitted.prediction.structural), ("total", fitted.prediction.total)):
        area = auroc(touched[test].numpy(), doubt[test].numpy())
        found[name] = area if math.isfinite(area) else None
    return found
