"""A generative model small enough to enumerate: every label, every signed graph, hence the true posterior p(Z | I).

Y uniform over C classes; x_i = mu_{Y_i} + N(0, I); z_ij = +1 with probability p_in for ends of one class, -1 with p_out for
ends of two, otherwise 0; an edge is observed where z_ij != 0, and with probability `stray` where z_ij = 0. So z_ij = 0 for
every pair that was not observed, as the paper assumes, and the posterior lives on the observed edges alone.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import torch
from torch import Tensor

from spam_gnn.graph import Graph

CLASSES, FEATURES = 2, 4


@dataclass(frozen=True)
class World:
    """Rates of the generative model."""

    p_in: float = 0.35
    p_out: float = 0.55
    stray: float = 0.15
    strength: float = 0.8  # distance of a class mean from the origin

    @property
    def means(self) -> Tensor:
        """(C, d) class means in orthogonal directions."""
        return self.strength * torch.eye(CLASSES, FEATURES)

    def sign_given_classes(self, same: Tensor) -> Tensor:
        """(..., 3): p(z | Y_i, Y_j) over (-1, 0, +1), by whether the classes agree."""
        alike = torch.tensor([0.0, 1.0 - self.p_in, self.p_in], dtype=torch.float64)
        other = torch.tensor([self.p_out, 1.0 - self.p_out, 0.0], dtype=torch.float64)
        return torch.where(same.unsqueeze(-1), alike, other)

    def draw(self, nodes: int, labelled: int, thin: float, generator: torch.Generator) -> Graph:
        """A graph of this world; `thin` scales all edge rates, for larger graphs of the same kind."""
        y = torch.randint(CLASSES, (nodes,), generator=generator)
        y[:CLASSES] = torch.arange(CLASSES)  # both classes are there, and labelled
        x = self.means[y] + torch.randn(nodes, FEATURES, generator=generator)
        ends = torch.tensor(list(itertools.combinations(range(nodes), 2))).t()
        sign = self.sign_given_classes(y[ends[0]] == y[ends[1]])
        seen = (1.0 - sign[:, 1]) + self.stray * sign[:, 1]
        there = torch.rand(ends.shape[1], generator=generator) < thin * seen
        train = torch.arange(nodes) < labelled
        val = (torch.arange(nodes) >= labelled) & (torch.arange(nodes) < 2 * labelled)
        return Graph.build(x, ends[:, there], y, train_mask=train, val_mask=val & (nodes > 20), directed=False,
                           num_classes=CLASSES, name="tiny world")  # fmt: skip


@dataclass(frozen=True, eq=False)
class Truth:
    """What Bayes' rule says of one tiny graph.

    Args:
        labels: (n, C), p(Y_i | I).
        graphs: (3^p,), p(Z | I) over all signed graphs, in the order of `sampling.enumerate_signs`.
        marginals: (p, 3), p(z_e | I).
    """

    labels: Tensor
    graphs: Tensor
    marginals: Tensor


def true_posterior(world: World, graph: Graph) -> Truth:
    """Enumerate the unknown labels; given labels the signs are independent."""
    hidden = torch.nonzero(~graph.train_mask).reshape(-1)
    tries = torch.tensor(list(itertools.product(range(CLASSES), repeat=hidden.numel())))
    y = graph.y.repeat(tries.shape[0], 1)
    y[:, hidden] = tries  # (C^u, n)
    distance = (graph.x.double().unsqueeze(1) - world.means.double()).square().sum(-1)  # (n, C)
    log_weight = -0.5 * distance.t().gather(0, y).sum(1)
    n = graph.num_nodes
    every = torch.tensor(list(itertools.combinations(range(n), 2))).t()
    edges = graph.edge_index[:, graph.pairs.edge]
    observed = torch.isin(every[0] * n + every[1], edges[0] * n + edges[1])
    absent = world.sign_given_classes(y[:, every[0]] == y[:, every[1]])[..., 1]  # (C^u, pairs), p(z = 0 | Y)
    seen = 1.0 - absent + world.stray * absent
    log_weight = log_weight + torch.where(observed, seen, 1.0 - seen).log().sum(1)
    weight = torch.softmax(log_weight, 0)
    sign = world.sign_given_classes(y[:, edges[0]] == y[:, edges[1]])  # (C^u, p, 3)
    sign = sign * torch.tensor([1.0, world.stray, 1.0], dtype=torch.float64)
    sign = sign / sign.sum(-1, keepdim=True)  # p(z | observed, Y)
    labels = torch.stack([(weight.unsqueeze(1) * (y == c)).sum(0) for c in range(CLASSES)], 1)
    graphs = (weight.unsqueeze(1) * torch.stack([product_of(s) for s in sign])).sum(0)
    return Truth(labels, graphs, (weight[:, None, None] * sign).sum(0))


def product_of(marginals: Tensor) -> Tensor:
    """(p, 3) -> (3^p,): the probability of every signed graph when edges are independent."""
    total = marginals.new_ones(1)
    for row in marginals:
        total = (total.unsqueeze(1) * row).reshape(-1)
    return total
