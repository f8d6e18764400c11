"""ACM-GCN, ACM-GCN+ and ACM-GCN++: low-pass, high-pass and identity channels mixed node by node."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor, nn

from spam_gnn.baselines.base import Network, Settings, Shape, System
from spam_gnn.baselines.node_table import NodeTable
from spam_gnn.baselines.operators import degree_operator
from spam_gnn.errors import BadInput
from spam_gnn.graph import Graph
from spam_gnn.initial import glorot
from spam_gnn.randomness import dropout, stream

Channel = Literal["low", "high", "identity", "structure"]


@dataclass(frozen=True)
class ACMSettings(Settings):
    """Defaults of the published code; dropout the middle of its search. `layers` counts all layers, the last included."""

    relu_first: bool = False  # True is ACMII: relu(H W) is filtered, instead of relu of the filtered
    layer_norm: bool = False  # "+": layer norm of each channel before its attention score
    structure: bool = False  # the channel relu(A W_S) of + and ++
    residual: bool = False  # "++": relu(X W_X) added to the input of the second layer

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.residual and self.layers < 2:
            raise BadInput(f"residual: found layers={self.layers}; it joins the second layer, so use 2 layers or more")


class ACMConv(nn.Module):
    """One adaptive-channel-mixing layer (Luan et al. 2022).

    H_L = relu(A^ H W_L), H_H = relu((I - A^) H W_H), H_I = relu(H W_I) and, with structure, H_S = relu(A W_S);
    [a_L a_H a_I ..] = softmax(sigmoid([H_L w_L, H_H w_H, H_I w_I, ..]) W_mix / channels), node by node;
    H' = c (a_L H_L + a_H H_H + a_I H_I + ..).

    A^ = D~^-1 (A + I), the mean with the node itself, as in the published code. c is 3 for the three channels there and 1 with
    structure, kept here as the number of channels and 1; the equation has none, and it only sets the scale at the start. One
    channel alone has nothing to mix: `channels=("low",)` is a graph convolution with ReLU. In the published code the "+"
    layer norm is never reached (a name is spelt in two ways); here it acts, as the paper says.

    Args:
        in_channels, out_channels: widths.
        channels: which of "low", "high", "identity", "structure".
        num_nodes: rows of the structure channel's weight.
        relu_first, layer_norm: as in the settings.
        generator: of the initial weights.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        channels: tuple[Channel, ...],
        num_nodes: int,
        generator: torch.Generator,
        *,
        relu_first: bool = False,
        layer_norm: bool = False,
    ) -> None:
        super().__init__()
        self.channels, self.width, self.relu_first = channels, out_channels, relu_first
        self.of_features = tuple(c for c in channels if c != "structure")
        self.weight = nn.Parameter(torch.cat([glorot(in_channels, out_channels, generator) for _ in self.of_features], 1))
        self.table = NodeTable(num_nodes, out_channels, generator) if "structure" in channels else None
        count = len(channels)
        self.scale = 1.0 if "structure" in channels else float(count)
        self.scores = self.mix = self.norms = None
        if count > 1:
            self.scores = nn.Parameter(torch.empty(count, out_channels).uniform_(-1.0, 1.0, generator=generator))
            bound = count**-0.5
            self.mix = nn.Parameter(torch.empty(count, count).uniform_(-bound, bound, generator=generator))
            self.norms = nn.ModuleList([nn.LayerNorm(out_channels) for _ in channels]) if layer_norm else None

    def filtered(self, graph: Graph, projected: Tensor) -> list[Tensor]:
        """H [W_L | W_H | W_I] (n, 3 out) -> the channels, (n, out) each."""
        mean = degree_operator(graph, -1.0, 0.0, loops=True)
        found: list[Tensor] = []
        for name, value in zip(self.of_features, projected.split(self.width, 1), strict=True):
            value = torch.relu(value) if self.relu_first else value.contiguous()
            if name == "low":
                value = mean(value)
            elif name == "high":
                value = value - mean(value)
            found.append(value if self.relu_first else torch.relu(value))
        if self.table is not None:
            found.append(torch.relu(degree_operator(graph, 0.0, 0.0, loops=False)(self.table(graph))))
        return found

    def attention(self, channels: list[Tensor]) -> Tensor:
        """(n, channels): the share of each channel at each node."""
        assert self.scores is not None
        assert self.mix is not None
        seen = channels if self.norms is None else [norm(c) for norm, c in zip(self.norms, channels, strict=True)]
        score = torch.stack([c @ w for c, w in zip(seen, self.scores, strict=True)], 1)
        return torch.softmax(torch.sigmoid(score) @ self.mix / len(channels), 1)

    def forward(self, graph: Graph, projected: Tensor) -> Tensor:
        """(n, channels of features * out) -> (n, out)."""
        channels = self.filtered(graph, projected)
        if len(channels) == 1:
            return channels[0]
        return self.scale * (torch.stack(channels, 1) * self.attention(channels).unsqueeze(2)).sum(1)


class ACMGCN(Network):
    """Stacked :class:`ACMConv`, dropout before each; the last one's outputs are the logits, as in the published code."""

    def __init__(self, shape: Shape, settings: ACMSettings, seed: int) -> None:
        super().__init__(shape, settings)
        generator = stream(seed, "weights")
        channels: tuple[Channel, ...] = ("low", "high", "identity", *(("structure",) if settings.structure else ()))
        sizes = [shape.num_features] + [settings.hidden] * (settings.layers - 1) + [shape.num_classes]
        self.convs = nn.ModuleList([
            ACMConv(a, b, channels, shape.num_nodes, generator,
                    relu_first=settings.relu_first, layer_norm=settings.layer_norm)
            for a, b in itertools.pairwise(sizes)
        ])  # fmt: skip
        self.residual = nn.Parameter(glorot(shape.num_features, settings.hidden, generator)) if settings.residual else None

    def begin(self, graph: Graph, seed: int) -> None:
        super().begin(graph, seed)
        for conv in self.convs:
            if isinstance(conv, ACMConv) and conv.table is not None:
                conv.table.learn(graph)

    def logits(self, graph: Graph, generator: torch.Generator | None) -> Tensor:
        rate, h = self.settings.dropout, None
        kept = None
        if self.residual is not None:
            kept = dropout(torch.relu(graph.features.project(self.residual, rate, generator)), rate, generator)
        for number, conv in enumerate(self.convs):
            assert isinstance(conv, ACMConv)
            if h is None:
                h = conv(graph, graph.features.project(conv.weight, rate, generator))
                continue
            h = dropout(torch.relu(h), rate, generator)
            h = conv(graph, (h + kept if kept is not None and number == 1 else h) @ conv.weight)
        assert h is not None
        return h


_PAPER = "Luan, Hua, Lu, Zhu, Zhao, Zhang, Chang and Precup, NeurIPS 2022"
_TRAIN: dict[str, Any] = {"learning_rate": 0.01, "weight_decay": 1e-3, "epochs": 1000, "patience": 200}
_SEARCH: dict[str, tuple[Any, ...]] = {
    "learning_rate": (0.002, 0.01, 0.05), "weight_decay": (0.0, 5e-5, 1e-4, 5e-4, 1e-3, 5e-3, 1e-2), "hidden": (64, 128),
    "dropout": (0.0, 0.2, 0.5, 0.7), "relu_first": (False, True),
}  # fmt: skip
_PLUS = ACMSettings(layer_norm=True, structure=True)
SYSTEMS = (
    System("acm-gcn", "ACM-GCN", "heterophily", _PAPER,
           "Low-pass, high-pass and identity channels, mixed node by node by attention.",
           ACMGCN, ACMSettings(), _TRAIN, _SEARCH),
    System("acm-gcn+", "ACM-GCN+", "heterophily", _PAPER,
           "ACM-GCN with layer norm before the attention and a channel of the adjacency matrix itself.",
           ACMGCN, _PLUS, _TRAIN, {**_SEARCH, "structure": (True, False)}),
    System("acm-gcn++", "ACM-GCN++", "heterophily", _PAPER,
           "ACM-GCN+ with a residual from the features to the second layer.",
           ACMGCN, replace(_PLUS, residual=True), _TRAIN, {**_SEARCH, "structure": (True, False)}),
)  # fmt: skip
