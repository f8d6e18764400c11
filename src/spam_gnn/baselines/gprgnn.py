"""GPRGNN: a perceptron whose outputs are spread by a polynomial of the graph with learned coefficients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from spam_gnn.baselines.base import Network, Settings, Shape, System
from spam_gnn.baselines.operators import check_between, degree_operator
from spam_gnn.graph import Graph
from spam_gnn.initial import glorot
from spam_gnn.randomness import dropout, stream


@dataclass(frozen=True)
class GPRGNNSettings(Settings):
    """Published defaults (train_model.py), alpha as published for heterophilic graphs (0.9 to 1; 0.1 on homophilic ones)."""

    steps: int = 10  # K
    alpha: float = 0.9  # of the personalised PageRank that gamma starts from
    spread_dropout: float = 0.5  # on the perceptron's outputs

    def __post_init__(self) -> None:
        super().__post_init__()
        check_between(self, 1, float("inf"), "steps")
        check_between(self, 0.0, 1.0, "alpha")
        check_between(self, 0.0, 0.99, "spread_dropout")


def pagerank_coefficients(alpha: float, steps: int) -> Tensor:
    """(K + 1,): alpha (1 - alpha)^k and the rest, (1 - alpha)^K, at the end, so that they sum to 1."""
    gamma = alpha * (1.0 - alpha) ** torch.arange(steps + 1, dtype=torch.float32)
    gamma[-1] = (1.0 - alpha) ** steps
    return gamma


def polynomial(operator: Callable[[Tensor], Tensor], x: Tensor, coefficients: Tensor) -> Tensor:
    """sum_k c_k P^k x for coefficients (K + 1,), by K products with P."""
    total = coefficients[0] * x
    for coefficient in coefficients[1:]:
        x = operator(x)
        total = total + coefficient * x
    return total


class GPRGNN(Network):
    """Z = sum_{k=0}^{K} gamma_k A^^k MLP(X), A^ = D~^-1/2 (A + I) D~^-1/2 (Chien et al. 2021).

    gamma is learned, of either sign, without weight decay, and starts as personalised PageRank. With gamma held there the
    propagation is APPNP's.
    """

    def __init__(self, shape: Shape, settings: GPRGNNSettings, seed: int) -> None:
        super().__init__(shape, settings)
        generator = stream(seed, "weights")
        self.spread_dropout = settings.spread_dropout
        self.first = nn.Parameter(glorot(shape.num_features, settings.hidden, generator))
        self.first_bias = nn.Parameter(torch.zeros(settings.hidden))
        self.second = nn.Parameter(glorot(settings.hidden, shape.num_classes, generator))
        self.second_bias = nn.Parameter(torch.zeros(shape.num_classes))
        self.gamma = nn.Parameter(pagerank_coefficients(settings.alpha, settings.steps))

    def logits(self, graph: Graph, generator: torch.Generator | None) -> Tensor:
        rate = self.settings.dropout
        h = torch.relu(graph.features.project(self.first, rate, generator) + self.first_bias)
        h = dropout(h, rate, generator) @ self.second + self.second_bias
        h = dropout(h, self.spread_dropout, generator)
        return polynomial(degree_operator(graph, -0.5, -0.5, loops=True), h, self.gamma)


TRAIN: dict[str, Any] = {"learning_rate": 0.05, "weight_decay": 5e-4, "epochs": 1000, "patience": 200}
SYSTEMS = (
    System(
        "gprgnn", "GPRGNN", "heterophily", "Chien, Peng, Li and Milenkovic, ICLR 2021",
        "Perceptron outputs spread by a polynomial of the graph with learned coefficients of either sign.",
        GPRGNN, GPRGNNSettings(), TRAIN,
        {"learning_rate": (0.002, 0.01, 0.05), "weight_decay": (0.0, 5e-4, 5e-3), "hidden": (64, 128),
         "dropout": (0.2, 0.5, 0.7), "alpha": (0.1, 0.2, 0.5, 0.9, 1.0), "spread_dropout": (0.0, 0.5, 0.7)},
    ),
)  # fmt: skip
