"""How well columns predict labels that are left out: what is asked of training labels before any training.

Each label is predicted by a ridge regression on the others,

    e_i = (y_i - (K (K + l I)^-1 y)_i) / (1 - (K (K + l I)^-1)_ii),    K = P P^T of the centred columns, l the best of a few,

with y_i the one-hot label without its mean. The mean square of e says which of several ways to write the same facts suits a
graph (features: `contract.FeatureScaler`; rows of the adjacency: `position.py`).
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from spam_gnn.graph import Graph
from spam_gnn.randomness import node_uniforms, seed_for

_PENALTIES = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # l, beside rows of mean square one
_ASKED = 1024  # training labels that are asked, at most: the time grows with their cube
_FEWEST = 3  # of them, below which there is nothing to compare


def asked_nodes(graph: Graph, seed: int) -> Tensor:
    """Some training nodes, drawn by identity: renaming nodes changes neither which nor their order."""
    draw = node_uniforms(graph.identity, seed_for(seed, "asked")).where(graph.train_mask, torch.inf)
    return torch.argsort(draw)[: min(int(graph.train_mask.sum()), _ASKED)]


def wanted_labels(labels: Tensor) -> np.ndarray | None:
    """(a, C): the one-hot labels without their mean; None where they cannot tell anything apart."""
    if len(labels) < _FEWEST:
        return None
    wanted = np.eye(int(labels.max()) + 1)[labels.numpy()]
    wanted = wanted - wanted.mean(0)
    return wanted if wanted.any() else None


def left_out_error(columns: np.ndarray, wanted: np.ndarray) -> float:
    """The mean square of e over rows and targets (a, C), for the best penalty; columns (a, width)."""
    centred = columns - columns.mean(0)
    values, vectors = np.linalg.eigh(centred @ centred.T)
    seen, found = np.maximum(values, 0.0), vectors.T @ wanted
    errors = []
    for penalty in _PENALTIES:
        kept = seen / (seen + penalty)
        own = np.square(vectors) @ kept
        errors.append(np.square((wanted - vectors @ (kept[:, None] * found)) / (1.0 - own)[:, None]).mean())
    return float(min(errors))
