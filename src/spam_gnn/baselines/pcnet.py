"""PCNet: a two-fold filter, a heat kernel times a power, expanded in Poisson-Charlier polynomials."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from spam_gnn.baselines.base import Network, Settings, Shape, System
from spam_gnn.baselines.gprgnn import polynomial
from spam_gnn.baselines.operators import check_between, degree_operator
from spam_gnn.graph import Graph
from spam_gnn.initial import glorot
from spam_gnn.randomness import dropout, stream


@dataclass(frozen=True)
class PCNetSettings(Settings):
    """Values published for Texas under fixed splits (bestHyperparams.py, third table); every dataset has its own there."""

    orders: int = 4  # K: powers k = 1 .. K of the second filter
    terms: int = 5  # N: terms of each series, P^0 .. P^(N - 1)
    heat: float = 0.0  # a
    shift: float = 1.3  # b
    exponent: float = 0.8  # c
    theta: float = 2.0  # where every theta_k starts
    dropout: float = 0.1  # on the features
    hidden_dropout: float = 0.7
    spread_dropout: float = 0.15  # on the perceptron's outputs
    relu: bool = False  # the published runs on small graphs have none between the two linear maps
    theta_rate: float = 1.0  # learning rate of theta as a multiple of the run's

    def __post_init__(self) -> None:
        super().__post_init__()
        check_between(self, 1, 64, "orders", "terms")
        check_between(self, 0.0, float("inf"), "heat", "exponent", "theta_rate")
        check_between(self, 0.0, 0.99, "hidden_dropout", "spread_dropout")


def charlier(degree: int, x: float, a: float) -> float:
    """C_n(x; a) with sum_n C_n(x; a) w^n / n! = e^{-a w} (1 + w)^x, by
    C_n = (x - n - a + 1) C_{n-1} - (n - 1) a C_{n-2}, C_0 = 1, C_1 = x - a."""
    before, now = 0.0, 1.0
    for n in range(1, degree + 1):
        before, now = now, (x - n - a + 1.0) * now - (n - 1) * a * before
    return now


def charlier_table(orders: int, terms: int, a: float) -> Tensor:
    """(K + 1, N): row k holds C_j(k; a) / j!, the series of e^{-a P} (I + P)^k; row 0 is the identity, as published."""
    rows = [[1.0] + [0.0] * (terms - 1)]
    rows += [[charlier(j, float(k), a) / math.factorial(j) for j in range(terms)] for k in range(1, orders + 1)]
    return torch.tensor(rows)


class PCNet(Network):
    """Z = theta_0 H + sum_{k=1}^{K} theta_k sum_{j<N} C_j(k; a) / j! P^j H, H = MLP(X),
    P = D~^-c (A + I) D~^-c - b I (Li, Pan and Kang 2024).

    The inner series is e^{-a P} (I + P)^k, heat flow away from the neighbours times a low-pass power. With a = 0, b = 1,
    c = 1/2 and N > K it ends, I + P = A^, and PCNet is GPRGNN with gamma = theta. theta, of either sign, has a learning rate
    of its own (`theta_rate`) and no decay; the three decays of the published runs are one here.
    """

    def __init__(self, shape: Shape, settings: PCNetSettings, seed: int) -> None:
        super().__init__(shape, settings)
        generator = stream(seed, "weights")
        self.pc = settings
        self.first = nn.Parameter(glorot(shape.num_features, settings.hidden, generator))
        self.first_bias = nn.Parameter(torch.zeros(settings.hidden))
        self.second = nn.Parameter(glorot(settings.hidden, shape.num_classes, generator))
        self.second_bias = nn.Parameter(torch.zeros(shape.num_classes))
        self.theta = nn.Parameter(torch.full((settings.orders + 1,), settings.theta))
        self.register_buffer("series", charlier_table(settings.orders, settings.terms, settings.heat), persistent=False)

    def parameter_groups(self, weight_decay: float) -> list[dict[str, Any]]:
        return [
            {"params": [self.first, self.second], "weight_decay": weight_decay},
            {"params": [self.first_bias, self.second_bias], "weight_decay": 0.0},
            {"params": [self.theta], "weight_decay": 0.0, "rate_factor": self.pc.theta_rate},
        ]

    def spread(self, graph: Graph, h: Tensor) -> Tensor:
        """The filter: (n, C) -> (n, C), with N - 1 products."""
        adjacency = degree_operator(graph, -self.pc.exponent, -self.pc.exponent, loops=True)
        return polynomial(lambda x: adjacency(x) - self.pc.shift * x, h, self.theta @ self.get_buffer("series"))

    def logits(self, graph: Graph, generator: torch.Generator | None) -> Tensor:
        h = graph.features.project(self.first, self.pc.dropout, generator) + self.first_bias
        h = dropout(torch.relu(h) if self.pc.relu else h, self.pc.hidden_dropout, generator) @ self.second + self.second_bias
        return self.spread(graph, dropout(h, self.pc.spread_dropout, generator))


SYSTEMS = (
    System(
        "pcnet", "PCNet", "heterophily", "Li, Pan and Kang, AAAI 2024",
        "A heat kernel times powers of the graph, expanded in Poisson-Charlier polynomials with learned weights.",
        PCNet, PCNetSettings(), {"learning_rate": 0.01, "weight_decay": 2e-3, "epochs": 1000, "patience": 200},
        {"learning_rate": (0.005, 0.01, 0.05), "weight_decay": (5e-6, 1e-4, 5e-4, 2e-3, 5e-3), "hidden": (64,),
         "orders": (4, 5, 6), "terms": (4, 5, 6, 10), "heat": (0.0, 0.5, 1.0, 1.5, 2.0), "shift": (1.0, 1.3, 1.8),
         "exponent": (0.35, 0.5, 0.65, 0.8), "dropout": (0.0, 0.4, 0.8), "hidden_dropout": (0.0, 0.35, 0.7),
         "spread_dropout": (0.05, 0.35, 0.7), "theta": (0.5, 1.0, 2.0), "theta_rate": (0.1, 1.0, 5.0)},
        {"learns_from_structure": "with the published Texas settings (b = 1.3, c = 0.8) the filter starts as a high pass, "
                                  "which edges between equal classes alone do not turn around in the few epochs of the check"},
    ),
)  # fmt: skip
