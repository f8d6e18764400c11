"""`sage`: the node beside the mean of its neighbours (Hamilton, Ying and Leskovec, NeurIPS 2017)."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from spam_gnn.baselines.base import Network, Settings, Shape, System
from spam_gnn.baselines.projection import Projection
from spam_gnn.baselines.smoothing import smoothing
from spam_gnn.features import FeatureMatrix
from spam_gnn.graph import Graph
from spam_gnn.randomness import stream


@dataclass(frozen=True)
class SageSettings(Settings):
    hidden: int = 128
    normalise: bool = False  # divide each hidden row by its norm (Algorithm 1, line 7)


class MeanLayer(nn.Module):
    """W_1 h_i + W_2 mean_{j in N(i)} h_j + b: PyG's `SAGEConv`; a node without neighbours hears 0.

    The publication concatenates and multiplies by one matrix, which is the same map.
    """

    def __init__(self, inputs: int, outputs: int, generator: torch.Generator, *, bias: bool = True) -> None:
        super().__init__()
        self.project = Projection(inputs, 2 * outputs, generator, bias=False)  # [W_1 | W_2], under one dropout mask
        self.bias = nn.Parameter(torch.zeros(outputs)) if bias else None

    def forward(
        self, h: FeatureMatrix | Tensor, operator: FeatureMatrix, rate: float = 0.0, generator: torch.Generator | None = None
    ) -> Tensor:
        own, heard = self.project(h, rate, generator).chunk(2, dim=1)
        out = own + operator.project(heard.contiguous())
        return out if self.bias is None else out + self.bias


class SageNetwork(Network):
    """GraphSAGE with the mean aggregator."""

    takes_batches = True

    def __init__(self, shape: Shape, settings: SageSettings, seed: int) -> None:
        super().__init__(shape, settings)
        self.normalise, generator = settings.normalise, stream(seed, "weights")
        sizes = [shape.num_features, *[settings.hidden] * (settings.layers - 1), shape.num_classes]
        self.layers = nn.ModuleList([MeanLayer(a, b, generator) for a, b in itertools.pairwise(sizes)])

    def logits(self, graph: Graph, generator: torch.Generator | None) -> Tensor:
        h: FeatureMatrix | Tensor = graph.features
        for place, layer in enumerate(self.layers):
            out: Tensor = layer(h, smoothing(graph, "mean"), self.settings.dropout, generator)
            if place < len(self.layers) - 1:
                out = torch.relu(out)
                out = nn.functional.normalize(out) if self.normalise else out
            h = out
        assert isinstance(h, Tensor)
        return h


SYSTEMS = (
    System(
        "sage", "GraphSAGE", "homophily", "Hamilton et al., NeurIPS 2017",
        "Keeps the node's own features apart from the mean of its neighbours.", SageNetwork, SageSettings(),
        train={"weight_decay": 5e-4, "patience": 100},
        search={
            "hidden": (64, 128, 256), "layers": (2, 3), "dropout": (0.2, 0.5), "normalise": (False, True),
            "learning_rate": (0.001, 0.01), "weight_decay": (0.0, 5e-5, 5e-4),
        },
    ),
)  # fmt: skip
