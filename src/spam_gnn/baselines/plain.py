"""The two references every result is held against: features only (`mlp`), and the graph as given (`gcn`)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.nn import GCNConv

from spam_gnn.baselines.base import Network, Settings, Shape, System
from spam_gnn.graph import Graph
from spam_gnn.initial import glorot
from spam_gnn.randomness import dropout, stream


class TwoLayer(Network):
    """softmax(P relu(P X W_1 + b_1) W_2 + b_2): P the identity for `mlp`, PyG's normalised adjacency for `gcn`.

    Args:
        shape, settings, seed: as for every network.
        graph_layers: False for the perceptron, True for the graph convolution (Kipf and Welling 2017).
    """

    def __init__(self, shape: Shape, settings: Settings, seed: int, *, graph_layers: bool) -> None:
        super().__init__(shape, settings)
        generator, sizes = stream(seed, "weights"), (settings.hidden, shape.num_classes)
        self.first = nn.Parameter(glorot(shape.num_features, settings.hidden, generator))
        self.first_bias = nn.Parameter(torch.zeros(settings.hidden))
        self.second = nn.Parameter(glorot(*sizes, generator))
        self.second_bias = nn.Parameter(torch.zeros(shape.num_classes))
        # PyG's convolution does the propagation; its own weight is fixed to the identity so that features may stay sparse
        self.spread = None
        if graph_layers:
            self.spread = nn.ModuleList([GCNConv(size, size, bias=False) for size in sizes])
            for conv, size in zip(self.spread, sizes, strict=True):
                assert isinstance(conv, GCNConv)
                conv.lin.weight.data.copy_(torch.eye(size))
                conv.lin.weight.requires_grad_(False)

    def logits(self, graph: Graph, generator: torch.Generator | None) -> Tensor:
        rate = self.settings.dropout
        h = graph.features.project(self.first, rate, generator)
        h = torch.relu((h if self.spread is None else self.spread[0](h, graph.edge_index)) + self.first_bias)
        h = dropout(h, rate, generator) @ self.second
        return (h if self.spread is None else self.spread[1](h, graph.edge_index)) + self.second_bias


SYSTEMS = (
    System("mlp", "MLP", "homophily", "features only, no paper", "Two-layer perceptron: what the features alone are worth.",
           lambda shape, settings, seed: TwoLayer(shape, settings, seed, graph_layers=False)),
    System("gcn", "GCN", "homophily", "Kipf and Welling, ICLR 2017", "Two graph convolutions that trust every edge.",
           lambda shape, settings, seed: TwoLayer(shape, settings, seed, graph_layers=True)),
)  # fmt: skip
