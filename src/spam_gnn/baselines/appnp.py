"""`appnp`: predict from features, then spread by personalised PageRank (Gasteiger et al., ICLR 2019)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from spam_gnn.baselines.base import Network, Settings, Shape, System
from spam_gnn.baselines.projection import LayerStack
from spam_gnn.baselines.smoothing import smoothing
from spam_gnn.errors import BadInput
from spam_gnn.graph import Graph
from spam_gnn.randomness import stream


@dataclass(frozen=True)
class APPNPSettings(Settings):
    steps: int = 10  # K
    alpha: float = 0.1  # chance to return to the start
    edge_dropout: float = 0.5  # of the entries of P, drawn anew in every step

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.steps < 0:
            raise BadInput(f"steps: found {self.steps}; use 0 or more")
        if not 0.0 <= self.alpha <= 1.0:
            raise BadInput(f"alpha: found {self.alpha}; use a number from 0 to 1")
        if not 0.0 <= self.edge_dropout < 1.0:
            raise BadInput(f"edge_dropout: found {self.edge_dropout}; use a number from 0 up to, not including, 1")


class APPNPNetwork(Network):
    """Z_0 = MLP(X); Z_k = (1 - alpha) P Z_{k-1} + alpha Z_0; softmax(Z_K) (eq. 4). PyG's `APPNP` behind an MLP."""

    def __init__(self, shape: Shape, settings: APPNPSettings, seed: int) -> None:
        super().__init__(shape, settings)
        self.steps, self.alpha, self.edge_dropout = settings.steps, settings.alpha, settings.edge_dropout
        sizes = [shape.num_features, *[settings.hidden] * (settings.layers - 1), shape.num_classes]
        self.stack = LayerStack(sizes, stream(seed, "weights"))

    def logits(self, graph: Graph, generator: torch.Generator | None) -> Tensor:
        start = z = self.stack(graph.features, self.settings.dropout, generator)
        for _ in range(self.steps):
            z = (1.0 - self.alpha) * smoothing(graph).project(z, self.edge_dropout, generator) + self.alpha * start
        return z


SYSTEMS = (
    System(
        "appnp", "APPNP", "homophily", "Gasteiger et al., ICLR 2019",
        "A perceptron whose predictions are spread by personalised PageRank.",
        APPNPNetwork, APPNPSettings(),
        train={"weight_decay": 5e-3, "epochs": 2000, "patience": 100, "decay": 1.0},
        search={
            "hidden": (64, 128), "steps": (5, 10, 20), "alpha": (0.1, 0.2, 0.5, 0.9), "edge_dropout": (0.0, 0.5),
            "dropout": (0.2, 0.5, 0.8), "learning_rate": (0.01, 0.05), "weight_decay": (0.0, 5e-4, 5e-3),
        },
    ),
)  # fmt: skip
