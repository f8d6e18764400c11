"""`jknet`: every layer of a GCN has a say in the end (Xu et al., ICML 2018)."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch_geometric.nn import JumpingKnowledge

from spam_gnn.baselines.base import Network, Settings, Shape, System
from spam_gnn.baselines.projection import Projection
from spam_gnn.baselines.smoothing import smoothing
from spam_gnn.errors import one_of
from spam_gnn.features import FeatureMatrix
from spam_gnn.graph import Graph
from spam_gnn.randomness import dropout, library_draws, stream

Jump = Literal["cat", "max", "lstm", "last"]


@dataclass(frozen=True)
class JKNetSettings(Settings):
    hidden: int = 32
    layers: int = 4
    jump: Jump = "cat"  # how layers are joined; `last` takes the last alone, a GCN with a linear layer behind it

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self.jump, get_args(Jump), "jump")


class JKNetwork(Network):
    """logits = W [h^(1) | ... | h^(L)] + b with h^(l) = relu(P h^(l-1) W_l + b_l).

    `max` and `lstm` join in other ways (sec. 4.1). P is GCN's D~^-1/2 (A + I) D~^-1/2; the joining is PyG's `JumpingKnowledge`.
    """

    def __init__(self, shape: Shape, settings: JKNetSettings, seed: int) -> None:
        super().__init__(shape, settings)
        s, generator = settings, stream(seed, "weights")
        sizes = [shape.num_features] + [s.hidden] * s.layers
        self.layers = nn.ModuleList([Projection(a, b, generator) for a, b in itertools.pairwise(sizes)])
        with library_draws(seed, "jump"):
            self.jump = None if s.jump == "last" else JumpingKnowledge(s.jump, s.hidden, s.layers)
        self.classify = Projection(s.hidden * (s.layers if s.jump == "cat" else 1), shape.num_classes, generator)

    def logits(self, graph: Graph, generator: torch.Generator | None) -> Tensor:
        h: FeatureMatrix | Tensor = graph.features
        seen = []
        for layer in self.layers:
            h = torch.relu(layer(h, self.settings.dropout, generator, smoothing(graph)))
            seen.append(h)
        joined = seen[-1] if self.jump is None else self.jump(seen)
        return self.classify(dropout(joined, self.settings.dropout, generator))


SYSTEMS = (
    System(
        "jknet", "JKNet", "homophily", "Xu et al., ICML 2018", "A deeper GCN whose layers are joined at the end.",
        JKNetwork, JKNetSettings(),
        train={"learning_rate": 0.005, "weight_decay": 5e-4, "patience": 100},
        search={
            "hidden": (16, 32, 64), "layers": (2, 3, 4, 5, 6), "jump": ("cat", "max", "lstm"), "dropout": (0.2, 0.5),
            "learning_rate": (0.005, 0.01), "weight_decay": (0.0, 5e-5, 5e-4),
        },
    ),
)  # fmt: skip
