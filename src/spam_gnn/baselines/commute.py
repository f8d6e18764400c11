"""Commute times of a directed graph: how many steps a random walk needs from i to j and back."""

from __future__ import annotations

import numpy as np
import scipy.linalg
import scipy.sparse
import torch
from torch import Tensor

from spam_gnn.baselines.identity_order import identity_order
from spam_gnn.errors import TooLarge
from spam_gnn.graph import Graph
from spam_gnn.resources import available_memory_mb

_POWER_STEPS = 2000
_COPIES = 3  # n x n float64 tables alive at once: the matrix, its factors, the inverse


def similarity_line(graph: Graph) -> Tensor:
    """(2, 2n - 2): edges both ways along the nodes sorted by their features' cosine with an anchor node.

    Zhuo et al. 2025 rewire by feature similarity so that the walk is irreducible at the cost of O(n) edges. The anchor,
    random in the paper, is the node with the smallest identity here, so that renaming nodes changes nothing; ties go by
    identity.
    """
    order = identity_order(graph)
    features = graph.features
    norms = features.row_norms().clamp(min=1e-12)
    anchor = order[:1].expand(graph.num_nodes)
    cosine = features.row_dots(order, anchor) / (norms[order] * norms[anchor])
    line = order[torch.argsort((cosine.to(torch.float64) * 1e5).round(), descending=True, stable=True)]
    edges = torch.stack([line[:-1], line[1:]])
    return torch.cat([edges, edges.flip(0)], dim=1)


def walk_matrix(graph: Graph) -> scipy.sparse.csr_array:
    """P (n, n): the walk that leaves along an edge or along the similarity line, each with equal probability."""
    edges = torch.cat([graph.edge_index, similarity_line(graph)], dim=1).numpy()
    n = graph.num_nodes
    adjacency = scipy.sparse.csr_array((np.ones(edges.shape[1]), (edges[0], edges[1])), shape=(n, n))
    adjacency.data[:] = 1.0  # an edge that is on the line too counts once
    rows = np.asarray(adjacency.sum(axis=1)).reshape(-1)
    return scipy.sparse.csr_array(scipy.sparse.diags_array(1.0 / np.maximum(rows, 1.0)) @ adjacency)


def exact_commute_times(walk: scipy.sparse.csr_array, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """c_ij = m_ii + m_jj - m_ij - m_ji with M the pseudo-inverse of L = Pi (I - P) (Boley, Ranjan and Zhang 2011).

    Pi holds the stationary distribution pi. L has the constant vector as its left and its right null space, so a rank-one
    shift makes it invertible and changes M by a constant, which cancels. Dense by nature: O(n^2) memory, O(n^3) time.
    """
    n = walk.indptr.size - 1
    needed = _COPIES * 8 * n * n
    free = available_memory_mb()
    if needed > free * 2**20:
        size = f"{needed} bytes of dense tables and {free:.0f} MiB are free"
        raise TooLarge(f"cgnn: exact commute times of {n} nodes need {size}; set commute=local")
    dense = walk.toarray()
    ones = np.ones(n)
    stationary = scipy.linalg.solve(np.eye(n) - dense.T + np.ones((n, n)) / n, ones / n)
    laplacian = stationary[:, None] * (np.eye(n) - dense)
    inverse = scipy.linalg.inv(laplacian + np.full((n, n), 1.0 / n**2), overwrite_a=True)
    diagonal = np.diagonal(inverse)
    return diagonal[first] + diagonal[second] - inverse[first, second] - inverse[second, first]


def local_commute_times(walk: scipy.sparse.csr_array, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """c_ij ~ (1 - P_ji) / pi_i + (1 - P_ij) / pi_j: the first two terms of the exact series, in O(edges).

    With Z = sum_t (P^t - 1 pi^T), c_ij = z_ii / pi_i + z_jj / pi_j - z_ij / pi_j - z_ji / pi_i. Keeping t = 0 and 1 (P has no
    loops) leaves 1 / pi_i + 1 / pi_j - P_ij / pi_j - P_ji / pi_i. The first two summands are the limit for large graphs (von
    Luxburg, Radl and Hein 2014). pi comes from power iteration of the lazy walk.
    """
    n = walk.indptr.size - 1
    backward = scipy.sparse.csr_array(walk.T)
    stationary = np.full(n, 1.0 / n)
    for _ in range(_POWER_STEPS):
        following = 0.5 * (stationary + backward @ stationary)
        change, stationary = np.abs(following - stationary).sum(), following / following.sum()
        if change < 1e-10:
            break
    forth, back = (np.asarray(walk[a, b]).reshape(-1) for a, b in ((first, second), (second, first)))
    return (1.0 - back) / stationary[first] + (1.0 - forth) / stationary[second]


def edge_commute_times(graph: Graph, exact: bool) -> Tensor:
    """(m,) float32: the commute time between the two ends of each stored edge, of a prepared graph."""
    key = f"commute/{exact}"
    if key not in graph.derived:
        first, second = graph.edge_index.numpy()
        if first.size == 0:
            times = np.zeros(0)
        else:
            times = (exact_commute_times if exact else local_commute_times)(walk_matrix(graph), first, second)
        graph.derived[key] = torch.from_numpy(np.ascontiguousarray(times)).to(torch.float32)
    return graph.derived[key]
