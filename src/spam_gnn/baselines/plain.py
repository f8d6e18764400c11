"""The two references every result is held against: features only (`mlp`), and the graph as given (`gcn`)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.nn import GCNConv

from spam_gnn.contract import FeatureScaler, NodeModel
from spam_gnn.features import Scaling
from spam_gnn.graph import Graph
from spam_gnn.initial import glorot
from spam_gnn.prediction import Prediction
from spam_gnn.randomness import dropout, stream


class TwoLayer(NodeModel):
    """softmax(P relu(P X W_1 + b_1) W_2 + b_2): P the identity for `mlp`, PyG's normalised adjacency for `gcn`.

    Args:
        num_features, num_classes: d, C.
        graph_layers: False for the perceptron, True for the graph convolution (Kipf and Welling 2017).
        hidden, dropout: width and rate, the classic 64 and 0.5.
        seed: of the initial weights.
    """

    def __init__(
        self,
        num_features: int,
        num_classes: int,
        *,
        graph_layers: bool,
        hidden: int = 64,
        rate: float = 0.5,
        scaling: Scaling = "auto",
        seed: int = 0,
    ) -> None:
        super().__init__()
        generator = stream(seed, "weights")
        self.rate = rate
        self.scaler = FeatureScaler(num_features, scaling)
        self.first = nn.Parameter(glorot(num_features, hidden, generator))
        self.first_bias = nn.Parameter(torch.zeros(hidden))
        self.second = nn.Parameter(glorot(hidden, num_classes, generator))
        self.second_bias = nn.Parameter(torch.zeros(num_classes))
        # PyG's convolution does the propagation; its own weight is fixed to the identity so that features may stay sparse
        self.spread = None
        if graph_layers:
            self.spread = nn.ModuleList([GCNConv(size, size, bias=False) for size in (hidden, num_classes)])
            for conv, size in zip(self.spread, (hidden, num_classes), strict=True):
                assert isinstance(conv, GCNConv)
                conv.lin.weight.data.copy_(torch.eye(size))
                conv.lin.weight.requires_grad_(False)

    def prepare(self, graph: Graph) -> Graph:
        return self.scaler(graph.as_undirected())

    def _logits(self, graph: Graph, generator: torch.Generator | None) -> Tensor:
        h = graph.features.project(self.first, self.rate, generator)
        h = torch.relu((h if self.spread is None else self.spread[0](h, graph.edge_index)) + self.first_bias)
        h = dropout(h, self.rate, generator) @ self.second
        return (h if self.spread is None else self.spread[1](h, graph.edge_index)) + self.second_bias

    def training_loss(self, graph: Graph, seed: int, epoch: int) -> dict[str, Tensor]:
        logits = self._logits(graph, stream(seed, "dropout", epoch))
        return {"loss": torch.nn.functional.cross_entropy(logits[graph.train_mask], graph.y[graph.train_mask])}

    @torch.no_grad()
    def predict(self, graph: Graph, seed: int, samples: int | None = None) -> Prediction:  # noqa: ARG002
        return Prediction.uniform(torch.log_softmax(self._logits(graph, None), -1).unsqueeze(0))
