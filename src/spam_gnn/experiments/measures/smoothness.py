"""How alike the nodes' outputs have become: the oversmoothing measures of `figure-depth`."""

from __future__ import annotations

import torch
from torch import Tensor

from spam_gnn.experiments.fitted import Fitted
from spam_gnn.graph import Graph


def measure(fitted: Fitted) -> dict[str, float]:
    """Of the logits of every model alike (log-probabilities, centred per node), averaged over the K samples of a prediction.

    dirichlet: mean over edges of ||h_i - h_j||^2, as a share of 2 mean_i ||h_i||^2, so that the scale of H does not matter: 0
    if joined nodes look the same, about 1 if they are unrelated. (With the degrees of the normalised Laplacian equal outputs
    would not have energy 0.) distance: mean distance of two nodes' outputs, each scaled to norm one, between 0 and 2.
    """
    graph = fitted.prepared.as_undirected()
    logits = fitted.prediction.log_prob
    logits = logits - logits.mean(-1, keepdim=True)  # (K, n, C); a row's constant is no part of a prediction
    return {
        "dirichlet": float(torch.stack([dirichlet(h, graph) for h in logits]).mean()),
        "distance": float(torch.stack([mean_distance(h) for h in logits]).mean()),
    }


def dirichlet(h: Tensor, graph: Graph) -> Tensor:
    """Mean over edges of ||h_i - h_j||^2 / (2 mean ||h||^2); 0 for a graph without edges."""
    i, j = graph.edge_index
    size = 2.0 * h.square().sum(1).mean().clamp(min=1e-30)
    return (h[i] - h[j]).square().sum() / (size * max(graph.num_edges, 1))


def mean_distance(h: Tensor) -> Tensor:
    """Mean over all pairs of ||u_i - u_j||, u the rows scaled to norm one; a row of zeros stays one."""
    u = h / h.norm(dim=1, keepdim=True).clamp(min=1e-30)
    distance = torch.cat([torch.cdist(part, u).sum(1) for part in u.split(2048)])
    return distance.sum() / (u.shape[0] * max(u.shape[0] - 1, 1))
