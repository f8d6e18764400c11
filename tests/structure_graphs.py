"""Small graphs with an isolated node, and dense matrices to hold the sparse layers against."""

from __future__ import annotations

import numpy as np
import torch

from spam_gnn.graph import Graph

SYSTEMS_HERE = ("magnet", "dirgnn", "cgnn", "l2dgcn", "auto-heg", "ungsl", "sispde", "bgcn", "bbde")


def random_graph(seed: int = 0, nodes: int = 12, directed: bool = True, features: int = 5, classes: int = 3) -> Graph:
    """A random graph whose last node has no edge; some edges run both ways."""
    generator = torch.Generator().manual_seed(seed)
    edges = torch.randint(nodes - 1, (2, 30), generator=generator)
    edges = torch.cat([edges, edges[:, :6].flip(0)], dim=1)
    x = torch.randn(nodes, features, generator=generator)
    y = torch.arange(nodes) % classes
    train = torch.arange(nodes) < nodes // 2
    return Graph.build(x, edges, y, train_mask=train, val_mask=~train, directed=directed, num_classes=classes)


def dense_adjacency(graph: Graph) -> np.ndarray:
    """A[u, v] = 1 for an edge u -> v, float64."""
    a = np.zeros((graph.num_nodes, graph.num_nodes))
    a[graph.edge_index[0].numpy(), graph.edge_index[1].numpy()] = 1.0
    return a


def gcn_matrix(a: np.ndarray) -> np.ndarray:
    """D~^-1/2 (A + I) D~^-1/2."""
    loops = a + np.eye(len(a))
    scale = loops.sum(1) ** -0.5
    return scale[:, None] * loops * scale[None, :]


def close(found: torch.Tensor, expected: np.ndarray | torch.Tensor, tolerance: float = 1e-5) -> None:
    torch.testing.assert_close(
        found.detach().to(torch.float64), torch.as_tensor(expected).detach().to(torch.float64), atol=tolerance, rtol=tolerance
    )
