"""FAGCN: signed attention between neighbours, tanh(g [h_i | h_j]) in (-1, 1)."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch_geometric.nn import FAConv

from spam_gnn.baselines.base import Network, Settings, Shape, System
from spam_gnn.baselines.operators import check_between, degree_operator
from spam_gnn.graph import Graph
from spam_gnn.initial import glorot
from spam_gnn.randomness import dropout, library_draws, stream


@dataclass(frozen=True)
class FAGCNSettings(Settings):
    """Published defaults (src/train.py)."""

    hidden: int = 32
    eps: float = 0.3  # share of the first representation kept in every layer

    def __post_init__(self) -> None:
        super().__post_init__()
        check_between(self, 0.0, 1.0, "eps")


class FAGCN(Network):
    """h_0 = relu(X W_1);  h_l = eps h_0 + sum_{j in N(i)} tanh(g_l^T [h_i | h_j]) / sqrt(d_i d_j) h_j;  h_L W_2
    (Bo et al. 2021), on PyG's `FAConv`.

    The published code adds no self-loops (`FAConv` would by default) and drops edge coefficients as well as features. It has
    a bias inside tanh that the equation has not; `FAConv` follows the equation, and so do we.
    """

    def __init__(self, shape: Shape, settings: FAGCNSettings, seed: int) -> None:
        super().__init__(shape, settings)
        generator = stream(seed, "weights")
        self.first = nn.Parameter(glorot(shape.num_features, settings.hidden, generator))
        self.first_bias = nn.Parameter(torch.zeros(settings.hidden))
        self.last = nn.Parameter(glorot(settings.hidden, shape.num_classes, generator))
        self.last_bias = nn.Parameter(torch.zeros(shape.num_classes))
        with library_draws(seed, "attention"):
            self.convs = nn.ModuleList([
                FAConv(settings.hidden, settings.eps, settings.dropout, add_self_loops=False, normalize=False)
                for _ in range(settings.layers)
            ])  # fmt: skip

    def logits(self, graph: Graph, generator: torch.Generator | None) -> Tensor:
        rate = self.settings.dropout
        norm = degree_operator(graph, -0.5, -0.5, loops=False)
        h = torch.relu(graph.features.project(self.first, rate, generator) + self.first_bias)
        h = start = dropout(h, rate, generator)
        # the layer's own dropout draws from global state: give it a seed of this generator, and put the state back
        self.convs.train(generator is not None)
        draws = contextlib.nullcontext() if generator is None else library_draws(
            int(torch.randint(2**62, (1,), generator=generator)), "edge dropout"
        )  # fmt: skip
        with draws:
            for conv in self.convs:
                h = conv(h, start, torch.stack([norm.messages.source, norm.messages.target]), norm.weights.squeeze(0))
        return h @ self.last + self.last_bias


SYSTEMS = (
    System(
        "fagcn", "FAGCN", "heterophily", "Bo, Wang, Shi and Shen, AAAI 2021",
        "Signed attention: neighbours are added or subtracted, the first representation is kept.",
        FAGCN, FAGCNSettings(), {"learning_rate": 0.01, "weight_decay": 5e-5, "epochs": 500, "patience": 200},
        {"learning_rate": (0.005, 0.01, 0.05), "weight_decay": (5e-5, 5e-4, 1e-3, 5e-3), "hidden": (32, 64),
         "layers": (2, 3, 4), "dropout": (0.4, 0.5, 0.6), "eps": (0.1, 0.3, 0.5, 0.7, 0.9)},
    ),
)  # fmt: skip
