"""The edge posterior as histograms: p(-1), p(0), p(+1) of edges within a class and between classes."""

from __future__ import annotations

from typing import Any

import torch

from spam_gnn.evaluation.metrics import same_class_pairs
from spam_gnn.experiments.fitted import Fitted

BINS = 20
SIGNS = ("negative", "absent", "positive")


def measure(fitted: Fitted) -> dict[str, Any]:
    """Counts in `BINS` equal bins and means, over edges with a label that training has not seen; empty without a posterior."""
    distribution = fitted.model.edge_distribution(fitted.prepared)
    if distribution is None:
        return {}
    same, use = same_class_pairs(fitted.prepared)
    found: dict[str, Any] = {}
    for kind, rows in (("same", same & use), ("different", ~same & use)):
        part = distribution.probability[rows]
        found[kind] = {
            name: {
                "counts": torch.histc(part[:, s], BINS, 0.0, 1.0).long().tolist(),
                "mean": float(part[:, s].mean()) if part.shape[0] else None,
            }
            for s, name in enumerate(SIGNS)
        }
    return found
