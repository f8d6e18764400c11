"""Two plain posteriors: `similarity`, from label-free evidence alone, and `fixed`, the same numbers on every edge."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from spam_gnn.graph import Graph
from spam_gnn.posterior.base import SignDistribution, SignPosterior, edge_evidence


class SimilarityPosterior(SignPosterior):
    """Softmax of a_s . f_ij + b_s with f the standardised feature similarity and degrees: the bar to beat.

    Starts as "the more alike, the more supporting".
    """

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([[-0.5, 0.0], [-0.5, 0.0], [1.0, 0.0]]))
        self.bias = nn.Parameter(torch.tensor([0.0, 0.0, 0.5]))

    def forward(self, graph: Graph, context: Tensor, generator: torch.Generator | None = None) -> SignDistribution:  # noqa: ARG002
        return SignDistribution(self.judge(edge_evidence(graph)))

    def judge(self, evidence: Tensor) -> Tensor:
        """(p, 3) log probabilities of edges with that evidence (p, 2)."""
        return torch.log_softmax(evidence @ self.weight.t() + self.bias, -1)


class FixedPosterior(SignPosterior):
    """Given probabilities: one row (3,) for all edges, or one row per stored edge (m, 3). Learns nothing."""

    def __init__(self, probability: Tensor) -> None:
        super().__init__()
        self.register_buffer("log_probability", probability.clamp(min=1e-12).log())

    def forward(self, graph: Graph, context: Tensor, generator: torch.Generator | None = None) -> SignDistribution:  # noqa: ARG002
        return SignDistribution(self.get_buffer("log_probability").expand(graph.num_edges, 3))
