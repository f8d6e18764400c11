"""`gcn`: the paper's posterior, a two-layer GCN over features and context labels, and an MLP on each edge's two ends."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spam_gnn.graph import Graph
from spam_gnn.initial import glorot
from spam_gnn.kernels import products
from spam_gnn.kernels.csr import gather_sum
from spam_gnn.posterior.base import SignDistribution, SignPosterior, symmetrise
from spam_gnn.randomness import dropout


class GCNPosterior(SignPosterior):
    """H = GCN([X | Y_context]), logits_ij = MLP([h_i | h_j]), softmax over (-1, 0, +1) (paper, Block 1).

    The decoder's first layer is split over the two ends, so its product runs over nodes, not edges. On undirected graphs the
    logits of the two directions are averaged.

    Shapes: features (n, d), context labels one-hot (n, C), h (n, hidden), result (m, 3).
    """

    def __init__(
        self, num_features: int, num_classes: int, hidden: int, rate: float, generator: torch.Generator, kernel: str = "auto"
    ) -> None:
        super().__init__()
        self.rate, self.num_classes, self.kernel = rate, num_classes, kernel
        self.from_features = nn.Parameter(glorot(num_features, hidden, generator))
        self.from_labels = nn.Parameter(glorot(num_classes, hidden, generator))
        self.first_bias = nn.Parameter(torch.zeros(hidden))
        self.second = nn.Parameter(glorot(hidden, hidden, generator))
        self.second_bias = nn.Parameter(torch.zeros(hidden))
        self.at_target = nn.Parameter(glorot(hidden, hidden, generator))
        self.at_source = nn.Parameter(glorot(hidden, hidden, generator))
        self.decoder_bias = nn.Parameter(torch.zeros(hidden))
        self.out = nn.Parameter(glorot(hidden, 3, generator))
        self.out_bias = nn.Parameter(torch.zeros(3))

    def forward(self, graph: Graph, context: Tensor, generator: torch.Generator | None = None) -> SignDistribution:
        labels = F.one_hot(graph.y.clamp(min=0), self.num_classes) * context.unsqueeze(1)
        h = graph.features.project(self.from_features, self.rate, generator) + labels.to(torch.float32) @ self.from_labels
        h = torch.relu(propagate(graph, h) + self.first_bias)
        h = propagate(graph, dropout(h, self.rate, generator) @ self.second) + self.second_bias
        ends = (h @ self.at_target + self.decoder_bias).unsqueeze(0), (h @ self.at_source).unsqueeze(0)
        logits = products(self.kernel, h.device).edge_network(graph.messages("in"), *ends, self.out)[0] + self.out_bias
        return SignDistribution(torch.log_softmax(symmetrise(logits, graph), -1))


def propagate(graph: Graph, h: Tensor) -> Tensor:
    """D~^-1/2 (A + I) D~^-1/2 H over arriving messages: (n, d) -> (n, d)."""
    messages = graph.messages("in")
    scale = (messages.degree.to(h.dtype) + 1.0).rsqrt()
    weights = scale[messages.target] * scale[messages.source]
    around = gather_sum(messages, weights.unsqueeze(0), h.unsqueeze(0))[0]
    return around + h * scale.square().unsqueeze(1)
