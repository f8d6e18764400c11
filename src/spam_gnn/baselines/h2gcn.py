"""H2GCN: ego, one-hop and strict two-hop neighbours kept apart, all rounds concatenated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor, nn

from spam_gnn.baselines.base import Network, Settings, Shape, System
from spam_gnn.baselines.operators import degree_operator
from spam_gnn.errors import TooLarge
from spam_gnn.graph import Graph
from spam_gnn.initial import glorot
from spam_gnn.randomness import dropout, stream
from spam_gnn.resources import available_memory_mb

_BYTES_PER_PAIR = 24  # of the two-hop matrix while it is built: column, value and a working copy


@dataclass(frozen=True)
class H2GCNSettings(Settings):
    """`layers` is the number of rounds K: 1 is H2GCN-1, 2 is H2GCN-2. Published defaults (H2GCN.py)."""

    relu: bool = True  # on the embedding of the features; the published search tries both


def strict_two_hop(graph: Graph) -> scipy.sparse.csr_array:
    """(n, n) 0/1: nodes at distance exactly two, that is A A > 0 without A and without the diagonal."""
    n, m = graph.num_nodes, graph.num_edges
    messages = graph.messages("in")
    adjacency = scipy.sparse.csr_array(
        (np.ones(m, np.float32), messages.source.numpy(), messages.row_pointer.numpy()), shape=(n, n)
    )
    degree = messages.degree.to(torch.float64)
    pairs = min(float(degree[messages.source].sum()), float(n) * n)  # no more than that many are two steps apart
    free = available_memory_mb()
    if pairs * _BYTES_PER_PAIR / 2**20 > free:
        size = f"{pairs * _BYTES_PER_PAIR / 2**30:.1f} GiB, and {free / 1024:.1f} GiB are free"
        raise TooLarge(f"h2gcn: up to {pairs:.0f} pairs of nodes are two steps apart, {size}; use more memory or another model")
    itself = scipy.sparse.diags_array(np.ones(n, np.float32))
    reached = (adjacency @ adjacency + itself).tocsr()
    reached.data[:] = 1.0
    near = (adjacency + itself).tocsr()
    strict = (reached - reached.multiply(near)).tocsr()
    strict.eliminate_zeros()
    strict.sort_indices()
    return strict


def two_hop_operator(graph: Graph) -> Tensor:
    """D_2^-1/2 A_2 D_2^-1/2 of the strict two-hop graph, a symmetric `torch.sparse_csr` matrix, made once per graph."""
    if "two-hop operator" not in graph.derived:
        strict = strict_two_hop(graph)
        degree = np.diff(strict.indptr).astype(np.float32)
        scale = np.where(degree > 0, np.maximum(degree, 1.0) ** -0.5, 0.0).astype(np.float32)
        values = np.repeat(scale, np.diff(strict.indptr)) * scale[strict.indices]
        graph.derived["two-hop operator"] = torch.sparse_csr_tensor(
            torch.from_numpy(strict.indptr.astype(np.int64)), torch.from_numpy(strict.indices.astype(np.int64)),
            torch.from_numpy(values), strict.shape, check_invariants=True,
        )  # fmt: skip
    return graph.derived["two-hop operator"]


class _SymmetricProduct(torch.autograd.Function):
    """M x for a constant symmetric M: the gradient is M g, so that no transposed copy of the large matrix is kept."""

    @staticmethod
    def forward(ctx: Any, matrix: Tensor, x: Tensor) -> Tensor:
        ctx.matrix = matrix
        return matrix @ x

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, Tensor]:
        return None, ctx.matrix @ gradients[0].contiguous()


class H2GCN(Network):
    """r_0 = relu(X W_e);  r_k = [A_1^ r_{k-1} | A_2^ r_{k-1}];  softmax([r_0 | ... | r_K] W_c) (Zhu et al. 2020).

    A_1 and A_2 hold strict one- and two-hop neighbours, no loops, each with its own symmetric normalisation. There is no
    nonlinearity and no weight between rounds, and dropout only before the classifier, as in the published network
    `M64-R-T1-G-V-T2-G-V-C1-C2-D0.5-MO`. Width grows as 2^k. The equations have no biases. A graph whose two-hop matrix would
    not fit in memory is refused.
    """

    def __init__(self, shape: Shape, settings: H2GCNSettings, seed: int) -> None:
        super().__init__(shape, settings)
        generator = stream(seed, "weights")
        self.rounds, self.relu = settings.layers, settings.relu
        self.embed = nn.Parameter(glorot(shape.num_features, settings.hidden, generator))
        width = settings.hidden * (2 ** (settings.layers + 1) - 1)
        self.classify = nn.Parameter(glorot(width, shape.num_classes, generator))

    def logits(self, graph: Graph, generator: torch.Generator | None) -> Tensor:
        near, far = degree_operator(graph, -0.5, -0.5, loops=False), two_hop_operator(graph)
        r = graph.features.project(self.embed)
        rounds = [torch.relu(r) if self.relu else r]
        for _ in range(self.rounds):
            two_hop: Tensor = _SymmetricProduct.apply(far, rounds[-1])  # pyright: ignore[reportAssignmentType]
            rounds.append(torch.cat([near(rounds[-1]), two_hop], 1))  # (n, 2^k hidden)
        return dropout(torch.cat(rounds, 1), self.settings.dropout, generator) @ self.classify


SYSTEMS = (
    System(
        "h2gcn", "H2GCN", "heterophily", "Zhu, Yan, Zhao, Heimann, Akoglu and Koutra, NeurIPS 2020",
        "Ego, one-hop and strict two-hop neighbours in separate columns, all rounds concatenated.",
        H2GCN, H2GCNSettings(), {"learning_rate": 0.01, "weight_decay": 1e-3, "epochs": 500, "patience": 100},
        {"learning_rate": (0.005, 0.01, 0.05), "weight_decay": (2e-5, 1e-3, 5e-3), "hidden": (32, 64), "layers": (1, 2),
         "dropout": (0.0, 0.5), "relu": (True, False), "scaling": ("auto", "none")},
    ),
)  # fmt: skip
