"""GloGNN: every node aggregates from all nodes, by coefficients that are the closed form of a ridge regression."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from spam_gnn.baselines.base import Network, Settings, Shape, System
from spam_gnn.baselines.node_table import NodeTable
from spam_gnn.baselines.operators import Operator, check_between, degree_operator
from spam_gnn.errors import BadInput
from spam_gnn.graph import Graph
from spam_gnn.initial import glorot
from spam_gnn.randomness import dropout, stream


@dataclass(frozen=True)
class GloGNNSettings(Settings):
    """`layers` is the number of global aggregations. Every dataset has its own published values (docs/models-heterophily.md);
    delta between 0 and 1 is where one setting has to serve graphs known by features and graphs known by structure."""

    alpha: float = 1.0  # weight of ||Z||^2
    beta: float = 1.0  # weight of ||Z - sum_k lambda_k A^^k||^2
    gamma: float = 0.0  # share of the first representation
    delta: float = 0.5  # share of the features against the adjacency matrix in the first representation
    hops: int = 2  # powers of A^ in the regulariser

    def __post_init__(self) -> None:
        super().__post_init__()
        check_between(self, 0.0, float("inf"), "alpha", "beta")
        check_between(self, 0.0, 1.0, "gamma", "delta")
        check_between(self, 1, 64, "hops")
        if self.alpha + self.beta <= 0.0:
            raise BadInput("alpha, beta: found 0 for both; the regression needs one of them above 0")


def global_aggregate(h: Tensor, start: Tensor, spread: Tensor, alpha: float, beta: float, gamma: float) -> Tensor:
    """H' = (1 - gamma) Z* H + gamma H_0 without ever forming Z* (n x n) (Li et al. 2022).

    Z* minimises ||H - (1 - gamma) Z H - gamma H_0||^2 + alpha ||Z||^2 + beta ||Z - S||^2, S = sum_k lambda_k A^^k, hence
    Z* = [(1 - gamma) H H^T + beta S - gamma (1 - gamma) H_0 H^T] [(1 - gamma)^2 H H^T + (alpha + beta) I_n]^-1.
    Only Z* H is needed, and [(1 - gamma)^2 H H^T + c I_n]^-1 H = H [(1 - gamma)^2 H^T H + c I_C]^-1 (Woodbury), a solve of
    C x C. With M that inverse and G = H M:  Z* H = ((1 - gamma) (H - gamma H_0)) (H^T G) + beta S G.

    Args:
        h, start: H and H_0, (n, C).
        spread: S H, (n, C); S G is S H M.
    """
    keep = 1.0 - gamma
    gram = h.t() @ h  # (C, C)
    system = keep * keep * gram.double() + (alpha + beta) * torch.eye(h.shape[1], dtype=torch.float64)
    inverse = torch.linalg.inv(system).to(h.dtype)  # symmetric, positive definite; double since its condition grows with n
    reproduced = keep * ((h - gamma * start) @ (gram @ inverse)) + beta * (spread @ inverse)
    return keep * reproduced + gamma * start


class GloGNN(Network):
    """H_0 = relu(delta (X W_1 + b_1) + (1 - delta) (A^ W_A + b_A)) W_2 + b_2, then `layers` times :func:`global_aggregate`;
    A^ = D~^-1 (A + I) as in the published code; lambda_k learned, 1 / hops at the start.

    Logits are nodes by classes from H_0 on, so that the solve has the size of the classes. W_A has a row per node and is
    left out where delta = 1, W_1 where delta = 0. The scaled variant GloGNN++ is not built.
    """

    def __init__(self, shape: Shape, settings: GloGNNSettings, seed: int) -> None:
        super().__init__(shape, settings)
        generator, s = stream(seed, "weights"), settings
        self.glo = s
        self.from_features = nn.Parameter(glorot(shape.num_features, s.hidden, generator)) if s.delta > 0.0 else None
        self.table = NodeTable(shape.num_nodes, s.hidden, generator) if s.delta < 1.0 else None
        self.first_bias = nn.Parameter(torch.zeros(s.hidden))  # delta b_1 + (1 - delta) b_A
        self.second = nn.Parameter(glorot(s.hidden, shape.num_classes, generator))
        self.second_bias = nn.Parameter(torch.zeros(shape.num_classes))
        self.hop_weights = nn.Parameter(torch.full((s.hops,), 1.0 / s.hops)) if s.beta > 0.0 and s.gamma < 1.0 else None

    def begin(self, graph: Graph, seed: int) -> None:
        super().begin(graph, seed)
        if self.table is not None:
            self.table.learn(graph)

    def first_representation(self, graph: Graph, generator: torch.Generator | None) -> Tensor:
        """H_0 (n, C)."""
        s, hidden = self.glo, self.first_bias
        if self.from_features is not None:
            hidden = hidden + s.delta * graph.features.project(self.from_features, s.dropout, generator)
        if self.table is not None:
            hidden = hidden + (1.0 - s.delta) * self._mean(graph)(self.table(graph))
        return dropout(torch.relu(hidden), s.dropout, generator) @ self.second + self.second_bias

    def logits(self, graph: Graph, generator: torch.Generator | None) -> Tensor:
        s = self.glo
        h = start = self.first_representation(graph, generator)
        for _ in range(s.layers):
            h = global_aggregate(h, start, self._hops(self._mean(graph), h), s.alpha, s.beta, s.gamma)
        return h

    def _hops(self, mean: Operator, h: Tensor) -> Tensor:
        """S H = sum_{k >= 1} lambda_k A^^k H."""
        total = torch.zeros_like(h)
        for weight in () if self.hop_weights is None else self.hop_weights:
            h = mean(h)
            total = total + weight * h
        return total

    @staticmethod
    def _mean(graph: Graph) -> Operator:
        return degree_operator(graph, -1.0, 0.0, loops=True)


SYSTEMS = (
    System(
        "glognn", "GloGNN", "heterophily", "Li, Zhu, Cheng, Shan, Luo, Li and Qian, ICML 2022",
        "Aggregates from all nodes by the closed form of a ridge regression, in linear time.",
        GloGNN, GloGNNSettings(), {"learning_rate": 0.01, "weight_decay": 1e-3, "epochs": 1000, "patience": 200},
        {"learning_rate": (0.005, 0.01), "weight_decay": (1e-5, 5e-5, 1e-4, 1e-3), "hidden": (64,), "layers": (1, 2, 3),
         "dropout": (0.0, 0.5, 0.8), "alpha": (0.0, 0.5, 1.0, 10.0), "beta": (0.01, 0.1, 1.0, 1000.0),
         "gamma": (0.0, 0.2, 0.4, 0.7), "delta": (0.0, 0.5, 0.9, 1.0), "hops": (1, 2, 4, 6)},
    ),
)  # fmt: skip
