"""Where a node stands in the graph, as columns for the encoder: how large it is, and its row of the adjacency in few numbers.

Messages are means, so a network of them does not know how many neighbours a node has, nor which. Where nodes have many
neighbours both say much of a node (Lim et al., NeurIPS 2021, give the whole row of the adjacency to a network). Here the
row is shortened to its part in the largest singular directions of the training graph,

    A ~ U S V^T,    p_i = [log sizes | 3 c (A V S^(q-1))_i | 3 c' (A^T U S^(q-1))_i],

the second part for directed graphs only, c such that rows have mean square one. V and U are kept by node identity: a
node that was not there in training adds nothing to the rows of others, and its own row is made of those it knows.

Small singular values tell who exactly a node's neighbours are, large ones to which crowd it belongs. With q = 1 rows are as far
apart as those of A; q = 1/2 lets small ones speak up, which is right where a few neighbours decide. Which suits a graph is
asked of its training labels: the q whose columns predict them, when each is left out, with the smaller squared error
(`left_out.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse
import torch
from torch import Tensor, nn

from spam_gnn.features import FeatureMatrix
from spam_gnn.graph import Graph
from spam_gnn.left_out import asked_nodes, left_out_error, wanted_labels
from spam_gnn.position_shape import SIZES, PositionShape
from spam_gnn.randomness import stream

_STRENGTH = 3.0  # of a row beside features whose rows have norm one (docs/trials.md)
_ROUNDS = 4  # of the power iteration behind the singular vectors
_SMALLEST = 1e-6  # singular value
_POWERS = (0.5, 1.0)  # q that are tried


class Position(nn.Module):
    """The columns p (n, width) of a graph; `SignedNetwork.encode` has the weights of them.

    Args:
        shape: of the training graph.
        power: q; 0 asks the training labels.
    """

    def __init__(self, shape: PositionShape, power: float = 0.0) -> None:
        super().__init__()
        self.shape, self.power = shape, power
        self.register_buffer("identity", torch.arange(shape.num_nodes))
        self.register_buffer("directions", torch.zeros(shape.ways, shape.num_nodes, shape.rank))
        self.register_buffer("shift", torch.zeros(SIZES))
        self.register_buffer("scale", torch.ones(SIZES))

    def learn(self, graph: Graph, seed: int) -> None:
        """Take the singular directions, their power and the scale of sizes from the training graph."""
        order = torch.argsort(graph.identity)  # so that renaming nodes changes nothing, not even the last digit
        self.get_buffer("identity").copy_(graph.identity[order])
        rows = _adjacency(graph, order)
        left, values, right = _singular(rows, self.shape.rank, seed)
        ways = [(rows, right), (rows.T.tocsr(), left)][: self.shape.ways]
        asked = asked_nodes(graph, seed)
        power = self.power or _best_power(ways, values, torch.argsort(order)[asked].numpy(), graph.y[asked])
        for way, (matrix, vectors) in enumerate(ways):
            table, seen = _scaled(matrix, vectors, values, power)
            self.get_buffer("directions")[way] = torch.from_numpy(table * (_STRENGTH / np.sqrt(max(seen, 1e-12)))).float()
        sizes = _log_sizes(graph)
        self.get_buffer("shift").copy_(sizes.mean(0))
        self.get_buffer("scale").copy_(1.0 / sizes.std(0, correction=0).clamp(min=1e-3))

    def columns(self, graph: Graph) -> Tensor:
        """(n, width): p of a graph as the user gave it."""
        known = self.get_buffer("identity")
        place = torch.searchsorted(known, graph.identity).clamp(max=known.numel() - 1)
        met = known[place] == graph.identity
        rows = _adjacency(graph, torch.arange(graph.num_nodes))
        parts = [(_log_sizes(graph) - self.get_buffer("shift")) * self.get_buffer("scale")]
        for way, matrix in enumerate([rows, rows.T][: self.shape.ways]):
            table = self.get_buffer("directions")[way][place] * met.unsqueeze(1)
            parts.append(torch.from_numpy(np.asarray(matrix @ table.numpy())))
        return torch.cat(parts, 1)


def _adjacency(graph: Graph, order: Tensor) -> scipy.sparse.csr_array:
    """(n, n) float32, row the target, nodes in the given order."""
    place = torch.empty_like(order)
    place[order] = torch.arange(order.numel())
    source, target = place[graph.edge_index].numpy()
    ones = np.ones(len(source), dtype=np.float32)
    return scipy.sparse.csr_array((ones, (target, source)), shape=(graph.num_nodes, graph.num_nodes))


def _singular(matrix: scipy.sparse.csr_array, rank: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """U (n, rank), S (rank,), V (n, rank) of the largest singular values."""
    from sklearn.utils.extmath import randomized_svd  # slow to import, not needed by most graphs

    state = int(torch.randint(2**31 - 1, (), generator=stream(seed, "position")))
    left, values, right = randomized_svd(matrix, rank, n_iter=_ROUNDS, random_state=state)  # pyright: ignore[reportArgumentType]
    return left, values, right.T


def _scaled(
    matrix: scipy.sparse.csr_array, vectors: np.ndarray, values: np.ndarray, power: float
) -> tuple[np.ndarray, float]:
    """V S^(q-1), and the mean square of the rows that A makes of it."""
    table = vectors * np.maximum(values, _SMALLEST) ** (power - 1.0)
    return table, float(np.square(matrix @ table).sum(1).mean())


def _best_power(
    ways: Sequence[tuple[scipy.sparse.csr_array, np.ndarray]], values: np.ndarray, nodes: np.ndarray, labels: Tensor
) -> float:
    """The q whose columns predict labels left out best; the first where there is nothing to ask."""
    wanted = wanted_labels(labels)
    if wanted is None:
        return _POWERS[0]
    errors = []
    for power in _POWERS:
        scaled = [(matrix, *_scaled(matrix, vectors, values, power)) for matrix, vectors in ways]
        columns = [matrix[nodes] @ table / np.sqrt(max(seen, 1e-12)) for matrix, table, seen in scaled]
        errors.append(left_out_error(np.concatenate(columns, 1).astype(np.float64), wanted))
    return _POWERS[int(np.argmin(errors))]


def _log_sizes(graph: Graph) -> Tensor:
    """(n, 3): log(1 + .) of in-degree, out-degree and the squared norm of the features."""
    source, target = (torch.bincount(end, minlength=graph.num_nodes).float() for end in graph.edge_index)
    return torch.stack([target, source, FeatureMatrix.of_rows(graph.x).row_norms().square()], 1).log1p()
