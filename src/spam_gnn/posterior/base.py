"""The posterior over signs: its value, its contract, and what it knows of labels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from spam_gnn.graph import Graph
from spam_gnn.randomness import node_uniforms, seed_for

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
        log_prob = self.log_prob.detach() if share == 0.0 else share * self.log_prob + (1.0 - share) * self.log_prob.detach()
        return SignDistribution(log_prob, self.node_logits)


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
    """(m, 2): what an edge looks like without any label: feature similarity and how busy its ends are, standardised."""
    return torch.stack([_standardised(graph.feature_cosine), _standardised(graph.edge_log_degree)], dim=1)


def _standardised(values: Tensor) -> Tensor:
    spread = values.std(correction=0) if values.numel() else values.new_ones(())
    return (values - values.mean()) / spread.clamp(min=1e-6) if values.numel() else values
