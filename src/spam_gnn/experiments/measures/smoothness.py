"""How alike the nodes' outputs have become: the oversmoothing measures of `figure-depth`."""

from __future__ import annotations

import torch
from torch import Tensor

from spam_gnn.experiments.fitted import Fitted
from spam_gnn.graph import Graph


def measure(fitted: Fitted) -> dict[str, float]:
    """Of the logits of every model alike (log-probabilities, centred per node), averaged over the K samples of a prediction.

    dirichlet: sum over edges of ||h_i / sqrt(1 + d_i) - h_j / sqrt(1 + d_j)||^2 / ||H||^2, between 0 (smooth) and 2; the scale
    of H does not matter. distance: mean distance of two random nodes' outputs after scaling each to norm one, between 0 and 2.
    """
    graph = fitted.prepared.as_undirected()
    logits = fitted.prediction.log_prob
    logits = logits - logits.mean(-1, keepdim=True)  # (K, n, C); a row's constant is no part of a prediction
    return {
        "dirichlet": float(torch.stack([dirichlet(h, graph) for h in logits]).mean()),
        "distance": float(torch.stack([mean_distance(h) for h in logits]).mean()),
    }


def dirichlet(h: Tensor, graph: Graph) -> Tensor:
    """The Rayleigh quotient of H and the normalised Laplacian of A + I."""
    degree = torch.bincount(graph.edge_index[1], minlength=graph.num_nodes).to(h.dtype) + 1.0
    scaled = h / degree.sqrt().unsqueeze(1)
    i, j = graph.edge_index
    energy = 0.5 * (scaled[i] - scaled[j]).square().sum()  # each pair is stored twice
    return energy / h.square().sum().clamp(min=1e-30)


def mean_distance(h: Tensor) -> Tensor:
    """Mean over all pairs of ||u_i - u_j||, u the rows scaled to norm one; a row of zeros stays one."""
    u = h / h.norm(dim=1, keepdim=True).clamp(min=1e-30)
    distance = torch.cat([torch.cdist(part, u).sum(1) for part in u.split(2048)])
    return distance.sum() / (u.shape[0] * max(u.shape[0] - 1, 1))
