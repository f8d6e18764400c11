"""`gcnii`: many layers, each reminded of the first and close to the identity (Chen et al., ICML 2020)."""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import Any

import torch
from torch import Tensor, nn

from spam_gnn.baselines.base import Network, Settings, Shape, System
from spam_gnn.baselines.projection import Projection
from spam_gnn.baselines.smoothing import smoothing
from spam_gnn.errors import BadInput
from spam_gnn.features import FeatureMatrix
from spam_gnn.graph import Graph
from spam_gnn.randomness import dropout, stream


@dataclass(frozen=True)
class GCNIISettings(Settings):
    """The authors' settings for few labels (Cora)."""

    layers: int = 64
    dropout: float = 0.6
    alpha: float = 0.1  # share of the first layer in every layer
    theta: float = 0.5  # beta_l = log(theta / l + 1), how far layer l is from the identity (lambda in the publication)
    conv_decay: float = 20.0  # weight decay of the convolutions, in multiples of that of the two linear maps (0.01 / 5e-4)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 <= self.alpha <= 1.0:
            raise BadInput(f"alpha: found {self.alpha}; use a number from 0 to 1")
        for name in ("theta", "conv_decay"):
            if getattr(self, name) < 0.0:
                raise BadInput(f"{name}: found {getattr(self, name)}; use 0 or more")


def gcnii_layer(h: Tensor, first: Tensor, weight: Tensor, operator: FeatureMatrix, alpha: float, beta: float) -> Tensor:
    """((1 - alpha) P H + alpha H_0) ((1 - beta) I + beta W), eq. 5 without the outer relu; PyG's `GCN2Conv`."""
    mixed = (1.0 - alpha) * operator.project(h) + alpha * first
    return (1.0 - beta) * mixed + beta * (mixed @ weight)


class GCNIINetwork(Network):
    """H_0 = relu(X W_in + b); L layers of relu(:func:`gcnii_layer`); a linear classifier."""

    def __init__(self, shape: Shape, settings: GCNIISettings, seed: int) -> None:
        super().__init__(shape, settings)
        self.alpha, generator = settings.alpha, stream(seed, "weights")
        self.conv_decay = settings.conv_decay
        self.betas = [log(settings.theta / (place + 1) + 1.0) for place in range(settings.layers)]
        self.encode = Projection(shape.num_features, settings.hidden, generator)
        self.convs = nn.ModuleList([Projection(settings.hidden, settings.hidden, generator, bias=False) for _ in self.betas])
        self.classify = Projection(settings.hidden, shape.num_classes, generator)

    def parameter_groups(self, weight_decay: float) -> list[dict[str, Any]]:
        """As published: the convolutions decay faster than the two linear maps."""
        return [
            {"params": list(self.convs.parameters()), "weight_decay": self.conv_decay * weight_decay},
            {"params": [self.encode.weight, self.classify.weight], "weight_decay": weight_decay},
            {"params": [self.encode.bias, self.classify.bias], "weight_decay": 0.0},
        ]

    def logits(self, graph: Graph, generator: torch.Generator | None) -> Tensor:
        rate, operator = self.settings.dropout, smoothing(graph)
        first = h = torch.relu(self.encode(graph.features, rate, generator))
        for conv, beta in zip(self.convs, self.betas, strict=True):
            assert isinstance(conv, Projection)
            h = torch.relu(gcnii_layer(dropout(h, rate, generator), first, conv.weight, operator, self.alpha, beta))
        return self.classify(h, rate, generator)


SYSTEMS = (
    System(
        "gcnii", "GCNII", "homophily", "Chen et al., ICML 2020",
        "A very deep GCN with a link to the first layer and to the identity.",
        GCNIINetwork, GCNIISettings(),
        train={"weight_decay": 5e-4, "epochs": 1500, "patience": 100, "decay": 1.0},
        search={
            "layers": (2, 8, 16, 32, 64), "hidden": (64, 256), "alpha": (0.1, 0.2, 0.5), "theta": (0.5, 1.0, 1.5),
            "dropout": (0.5, 0.6, 0.7), "conv_decay": (1.0, 20.0), "weight_decay": (0.0, 1e-4, 5e-4, 1e-3),
        },
    ),
)  # fmt: skip
