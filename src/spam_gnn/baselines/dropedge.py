"""`dropedge`: a GCN that sees another part of the edges in every epoch (Rong et al., ICLR 2020)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from spam_gnn.baselines.base import Network, Settings, Shape, System
from spam_gnn.baselines.projection import LayerStack
from spam_gnn.baselines.smoothing import operator_of, smoothing
from spam_gnn.errors import BadInput
from spam_gnn.features import FeatureMatrix
from spam_gnn.graph import Graph
from spam_gnn.randomness import stream


@dataclass(frozen=True)
class DropEdgeSettings(Settings):
    hidden: int = 128
    edge_drop: float = 0.5  # p, the share of edges left out of each epoch

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 <= self.edge_drop < 1.0:
            raise BadInput(f"edge_drop: found {self.edge_drop}; use a number from 0 up to, not including, 1")


class DropEdgeNetwork(Network):
    """GCN on A_drop = A - A', A' a random share p of the edges, normalised anew (eq. 1); all edges at prediction.

    An undirected edge goes or stays in both directions, so that A_drop is symmetric (the authors' code draws the stored
    entries one by one). Each epoch draws once for all layers, the publication's default.
    """

    def __init__(self, shape: Shape, settings: DropEdgeSettings, seed: int) -> None:
        super().__init__(shape, settings)
        self.edge_drop = settings.edge_drop
        sizes = [shape.num_features, *[settings.hidden] * (settings.layers - 1), shape.num_classes]
        self.stack = LayerStack(sizes, stream(seed, "weights"))

    def thinned(self, graph: Graph, generator: torch.Generator | None) -> FeatureMatrix:
        """The operator of this epoch."""
        if generator is None or self.edge_drop == 0.0 or graph.num_edges == 0:
            return smoothing(graph)
        kept = torch.rand(graph.pairs.edge.numel(), generator=generator) >= self.edge_drop
        return operator_of(graph.edge_index[:, kept[graph.pairs.of_edge]], graph.num_nodes, "symmetric")

    def logits(self, graph: Graph, generator: torch.Generator | None) -> Tensor:
        return self.stack(graph.features, self.settings.dropout, generator, self.thinned(graph, generator))


SYSTEMS = (
    System(
        "dropedge", "DropEdge", "homophily", "Rong et al., ICLR 2020",
        "A GCN trained on another random part of the edges each epoch.",
        DropEdgeNetwork, DropEdgeSettings(),
        train={"weight_decay": 5e-4, "epochs": 400, "patience": 400},
        search={
            "hidden": (64, 128, 256), "layers": (2, 4, 8), "edge_drop": (0.2, 0.5, 0.8), "dropout": (0.2, 0.5, 0.8),
            "learning_rate": (0.001, 0.005, 0.01), "weight_decay": (0.0, 5e-4, 5e-3),
        },
    ),
)  # fmt: skip
