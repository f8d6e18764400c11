"""The two references every result is held against: features only (`mlp`), and the graph as given (`gcn`)."""

from __future__ import annotations

import torch
from torch import Tensor

from spam_gnn.baselines.base import Network, Settings, Shape, System
from spam_gnn.baselines.projection import LayerStack
from spam_gnn.baselines.smoothing import smoothing
from spam_gnn.graph import Graph
from spam_gnn.randomness import stream


class PlainNetwork(Network):
    """softmax(P relu(P X W_1 + b_1) W_2 + b_2), and so on for more layers.

    P is the identity for `mlp` and D~^-1/2 (A + I) D~^-1/2 for `gcn` (Kipf and Welling 2017, eq. 9; PyG's `GCNConv`).

    Args:
        shape, settings, seed: as for every network.
        graph_layers: False for the perceptron, True for the graph convolution.
    """

    takes_batches = True

    def __init__(self, shape: Shape, settings: Settings, seed: int, *, graph_layers: bool) -> None:
        super().__init__(shape, settings)
        sizes = [shape.num_features, *[settings.hidden] * (settings.layers - 1), shape.num_classes]
        self.stack, self.graph_layers = LayerStack(sizes, stream(seed, "weights")), graph_layers

    def logits(self, graph: Graph, generator: torch.Generator | None) -> Tensor:
        operator = smoothing(graph) if self.graph_layers else None
        return self.stack(graph.features, self.settings.dropout, generator, operator)


_SEARCH = {
    "hidden": (16, 64, 256), "layers": (2, 3), "dropout": (0.2, 0.5, 0.8),
    "learning_rate": (0.001, 0.01, 0.05), "weight_decay": (0.0, 5e-5, 5e-4, 5e-3),
}  # fmt: skip

SYSTEMS = (
    System("mlp", "MLP", "homophily", "features only, no paper", "Perceptron: what the features alone are worth.",
           lambda shape, settings, seed: PlainNetwork(shape, settings, seed, graph_layers=False), search=_SEARCH,
           exceptions={"learns_from_structure": "reads no edge, by definition"}),
    System("gcn", "GCN", "homophily", "Kipf and Welling, ICLR 2017", "Graph convolutions that trust every edge.",
           lambda shape, settings, seed: PlainNetwork(shape, settings, seed, graph_layers=True),
           train={"weight_decay": 5e-4}, search=_SEARCH),
)  # fmt: skip
