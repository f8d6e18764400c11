"""MixHop: in every layer, several powers of the adjacency matrix, each with its own weight, side by side."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from spam_gnn.baselines.base import Network, Settings, Shape, System
from spam_gnn.baselines.operators import Operator, check_between, degree_operator
from spam_gnn.graph import Graph
from spam_gnn.initial import glorot
from spam_gnn.randomness import dropout, stream


@dataclass(frozen=True)
class MixHopSettings(Settings):
    """`hidden` is the width of one power; a layer has (hops + 1) times as many columns. The grid of the LINKX study."""

    hidden: int = 32
    hops: int = 2  # powers 0 .. hops
    batch_norm: bool = False  # True in the LINKX study

    def __post_init__(self) -> None:
        super().__post_init__()
        check_between(self, 0, 16, "hops")


class MixHopConv(nn.Module):
    """[A^^{p_1} H W_1 | A^^{p_2} H W_2 | ...] + b (Abu-El-Haija et al. 2019), A^ with self-loops.

    PyG's `MixHopConv` multiplies the powers into H before W, which on 2,000 features and 400,000 messages makes a tensor of
    3 GB per product. Products commute, so here W comes first and the widest sums are (n x powers * out).

    Args:
        in_channels, out_channels: widths of H and of one power.
        powers: which powers, ascending.
        generator: of the initial weights.
    """

    def __init__(self, in_channels: int, out_channels: int, powers: tuple[int, ...], generator: torch.Generator) -> None:
        super().__init__()
        self.powers, self.width = powers, out_channels
        self.weight = nn.Parameter(torch.cat([glorot(in_channels, out_channels, generator) for _ in powers], 1))
        self.bias = nn.Parameter(torch.zeros(len(powers) * out_channels))

    def spread(self, operator: Operator, projected: Tensor) -> Tensor:
        """H [W_1 | W_2 | ...] (n, powers * out) -> the same shape, each block multiplied by its power of A^."""
        blocks, rest, reached = [], projected, 0
        for power in self.powers:
            for _ in range(power - reached):
                rest = operator(rest)  # all blocks that still need this factor, together
            reached = power
            blocks.append(rest[:, : self.width])
            rest = rest[:, self.width :].contiguous()
        return torch.cat(blocks, 1) + self.bias


class MixHop(Network):
    """Stacked MixHop layers with ReLU, and batch norm where asked for, then a linear classifier.

    The paper learns how many columns each power gets by a lasso; like the LINKX study, every power gets the same number here.
    """

    def __init__(self, shape: Shape, settings: MixHopSettings, seed: int) -> None:
        super().__init__(shape, settings)
        generator = stream(seed, "weights")
        powers = tuple(range(settings.hops + 1))
        width = len(powers) * settings.hidden
        sizes = [shape.num_features] + [width] * settings.layers
        self.convs = nn.ModuleList([
            MixHopConv(a, settings.hidden, powers, generator) for a, _ in itertools.pairwise(sizes)
        ])  # fmt: skip
        self.norms = nn.ModuleList([nn.BatchNorm1d(width) if settings.batch_norm else nn.Identity() for _ in self.convs])
        self.classify = nn.Parameter(glorot(width, shape.num_classes, generator))
        self.classify_bias = nn.Parameter(torch.zeros(shape.num_classes))

    def logits(self, graph: Graph, generator: torch.Generator | None) -> Tensor:
        rate, operator = self.settings.dropout, degree_operator(graph, -0.5, -0.5, loops=True)
        h = None
        for conv, norm in zip(self.convs, self.norms, strict=True):
            assert isinstance(conv, MixHopConv)
            projected = graph.features.project(conv.weight, rate, generator) if h is None else h @ conv.weight
            h = dropout(torch.relu(norm(conv.spread(operator, projected))), rate, generator)
        assert h is not None
        return h @ self.classify + self.classify_bias


SYSTEMS = (
    System(
        "mixhop", "MixHop", "heterophily", "Abu-El-Haija et al., ICML 2019",
        "Several powers of the adjacency matrix in every layer, each with its own weights.",
        MixHop, MixHopSettings(), {"learning_rate": 0.01, "weight_decay": 1e-3, "epochs": 500, "patience": 100},
        {"learning_rate": (0.005, 0.01, 0.05), "weight_decay": (1e-4, 1e-3, 5e-3), "hidden": (8, 16, 32, 64, 128),
         "layers": (1, 2), "dropout": (0.2, 0.5, 0.7), "hops": (2, 3), "batch_norm": (False, True)},
    ),
)  # fmt: skip
