"""`tuned-gcn`, `tuned-gat`, `tuned-sage`: classic layers with residual, norm and depth (Luo, Shi and Wu, NeurIPS 2024).

"Classic GNNs are Strong Baselines": the block of that work's node-classification code, with its three convolutions.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from spam_gnn.baselines.base import Network, Settings, Shape, System
from spam_gnn.baselines.gat import AttentionLayer
from spam_gnn.baselines.projection import Projection
from spam_gnn.baselines.smoothing import smoothing
from spam_gnn.errors import one_of
from spam_gnn.features import FeatureMatrix
from spam_gnn.graph import Graph
from spam_gnn.randomness import dropout, stream

Norm = Literal["batch", "layer", "none"]
Convolution = Literal["gcn", "gat", "sage"]


@dataclass(frozen=True)
class TunedSettings(Settings):
    """The publication tunes all of these per dataset; the defaults are the values its tables use most often."""

    hidden: int = 256
    layers: int = 4
    norm: Norm = "batch"
    residual: bool = True  # add Linear(h) to conv(h)
    pre_linear: bool = False  # a linear map before the first convolution

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self.norm, get_args(Norm), "norm")


class TunedBlock(nn.Module):
    """dropout(relu(norm(conv(h) + W_r h + b))), conv one of

    - `gcn`: D~^-1/2 (A + I) D~^-1/2 h W;
    - `sage`: W_1 h_i + W_2 mean_{j in N(i) + i} h_j; with the residual, W_1 and W_r are one matrix;
    - `gat`: one head of attention over N(i) + i.

    One bias stands for those of convolution and residual; a batch norm makes it superfluous.
    """

    def __init__(
        self, inputs: int, outputs: int, kind: Convolution, settings: TunedSettings, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.kind, self.rate = kind, settings.dropout
        self.attention = None
        if kind == "gat":
            self.attention = AttentionLayer(inputs, outputs, 1, concat=True, rate=0.0, generator=generator, bias=False)
        self.heard = None if kind == "gat" else Projection(inputs, outputs, generator, bias=False)
        own = settings.residual or kind == "sage"
        self.own = Projection(inputs, outputs, generator, bias=False) if own else None
        self.bias = None if settings.norm == "batch" else nn.Parameter(torch.zeros(outputs))
        norms = {"batch": nn.BatchNorm1d, "layer": nn.LayerNorm}
        self.norm = norms[settings.norm](outputs) if settings.norm in norms else nn.Identity()

    def forward(self, h: FeatureMatrix | Tensor, graph: Graph, generator: torch.Generator | None) -> Tensor:
        if self.attention is not None:
            out = self.attention.propagate(self.attention.project(h), graph, generator)
        else:
            assert self.heard is not None
            out = self.heard(h, operator=smoothing(graph, "mean-with-self" if self.kind == "sage" else "symmetric"))
        out = out if self.own is None else out + self.own(h)
        out = out if self.bias is None else out + self.bias
        return dropout(torch.relu(self.norm(out)), self.rate, generator)


class TunedNetwork(Network):
    """L blocks and a linear classifier."""

    def __init__(self, shape: Shape, settings: TunedSettings, seed: int, *, kind: Convolution) -> None:
        super().__init__(shape, settings)
        s, generator = settings, stream(seed, "weights")
        self.before = Projection(shape.num_features, s.hidden, generator) if s.pre_linear else None
        sizes = [s.hidden if s.pre_linear else shape.num_features] + [s.hidden] * s.layers
        self.blocks = nn.ModuleList([TunedBlock(a, b, kind, s, generator) for a, b in itertools.pairwise(sizes)])
        self.classify = Projection(s.hidden, shape.num_classes, generator)

    def logits(self, graph: Graph, generator: torch.Generator | None) -> Tensor:
        h: FeatureMatrix | Tensor = graph.features
        if self.before is not None:
            h = dropout(self.before(h), self.settings.dropout, generator)
        for block in self.blocks:
            h = block(h, graph, generator)
        return self.classify(h)


_SEARCH = {
    "hidden": (64, 256, 512), "layers": (2, 3, 4, 5, 7, 9, 12), "dropout": (0.2, 0.3, 0.5, 0.7),
    "norm": ("batch", "layer", "none"), "residual": (True, False), "pre_linear": (False, True),
    "learning_rate": (0.001, 0.005, 0.01), "weight_decay": (0.0, 5e-4, 1e-3, 1e-2),
}  # fmt: skip


def _tuned(kind: Convolution, title: str, layer: str) -> System:
    def make(shape: Shape, settings: Any, seed: int) -> TunedNetwork:
        return TunedNetwork(shape, settings, seed, kind=kind)

    return System(
        f"tuned-{kind}", title, "strong", "Luo, Shi and Wu, NeurIPS 2024",
        f"{layer} with linear residual, norm, dropout and depth.", make, TunedSettings(),
        train={"learning_rate": 0.005, "weight_decay": 5e-4, "epochs": 500, "patience": 500, "decay": 1.0}, search=_SEARCH,
    )  # fmt: skip


SYSTEMS = (
    _tuned("gcn", "tuned GCN", "Graph convolutions"),
    _tuned("gat", "tuned GAT", "Graph attention"),
    _tuned("sage", "tuned GraphSAGE", "Mean aggregation"),
)
