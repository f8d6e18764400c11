"""The posterior over signs: its value, its contract, and what it knows of labels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from spam_gnn.graph import Graph
from spam_gnn.randomness import node_uniforms, seed_for

_EVIDENCE = "edge evidence"  # under which a graph keeps it
NEGATIVE, ABSENT, POSITIVE = 0, 1, 2  # columns of every (m, 3) table: z = -1, 0, +1


@dataclass(frozen=True, eq=False)
class SignDistribution:
    """q(Z | A, X, Y_context), factorised over edges.

    Args:
        log_prob: (m, 3), log probabilities of z = -1, 0, +1 for each stored edge.
        node_logits: tuple of (n, C) class logits that the posterior formed on its way, each trained on labelled nodes;
            empty where the posterior forms none. The first must not depend on a node's own label, the second only on
            labels of context nodes.
    """

    log_prob: Tensor
    node_logits: tuple[Tensor, ...] = ()

    @property
    def probability(self) -> Tensor:
        return self.log_prob.exp()

    def softened(self, share: float) -> SignDistribution:
        """The same distribution, passing only `share` of the gradient of what is computed downstream of it."""
        if share >= 1.0:
            return self
        log_prob: Tensor = _Softened.apply(self.log_prob, share)  # pyright: ignore[reportAssignmentType]
        return SignDistribution(log_prob, self.node_logits)


class _Softened(torch.autograd.Function):
    """The same numbers, of whose gradient a share comes back."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, share: float) -> Tensor:
        ctx.share = share
        return value.view_as(value)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, None]:
        return (None if ctx.share == 0.0 else gradients[0] * ctx.share), None


class SignPosterior(nn.Module, ABC):
    """Anything that maps a graph and the labels it may see to one distribution over {-1, 0, +1} per edge.

    For an undirected graph the two stored directions of an edge must get the same distribution.
    """

    @abstractmethod
    def forward(self, graph: Graph, context: Tensor, generator: torch.Generator | None = None) -> SignDistribution:
        """Infer the edge signs.

        Args:
            graph: n nodes, m stored edges.
            context: (n,) bool, the nodes whose labels may be read. Labels of all other nodes must not be touched.
            generator: source of dropout masks while training; None at prediction.
        """


def context_mask(graph: Graph, fraction: float, seed: int, epoch: int) -> Tensor:
    """(n,) bool: which training nodes show their label this epoch; the others are the targets of the loss.

    A node that is being predicted must not have decided its own edges by its own label. Fraction 1.0 shows every label
    (the paper's literal reading), and then the loss is taken on all training nodes.
    """
    if fraction >= 1.0:
        return graph.train_mask
    shown = node_uniforms(graph.identity, seed_for(seed, "context", epoch)) < fraction
    return graph.train_mask & shown


def symmetrise(logits: Tensor, graph: Graph) -> Tensor:
    """Average the logits of the two directions of an undirected edge: (m, 3) -> (m, 3)."""
    return logits if graph.directed else 0.5 * (logits + logits.index_select(0, graph.reverse))


def edge_evidence(graph: Graph) -> Tensor:
    """(m, 2): what an edge looks like without any label: feature similarity and how busy its ends are, standardised.

    Nothing of it is learned, so it is kept with the graph.
    """
    if _EVIDENCE not in graph.derived:
        mean, spread = evidence_moments(graph) if graph.part is None else graph.part.evidence
        values = (graph.feature_cosine, graph.edge_log_degree)
        graph.derived[_EVIDENCE] = torch.stack([(v - m) / s for v, m, s in zip(values, mean, spread, strict=True)], dim=1)
    return graph.derived[_EVIDENCE]


def evidence_moments(graph: Graph) -> Tensor:
    """(2, 2): mean and spread of the edges' similarity and log degree; what makes them comparable between graphs."""
    values = (graph.feature_cosine, graph.edge_log_degree)
    if graph.num_edges == 0:
        return torch.tensor([[0.0, 0.0], [1.0, 1.0]])
    spread = torch.stack([v.std(correction=0).clamp(min=1e-6) for v in values])
    return torch.stack([torch.stack([v.mean() for v in values]), spread])
