"""Assortative mixed-membership stochastic block model: its MAP from a graph and some labels, and graphs drawn from it.

Nodes are numbered by the rank of their identity here, and no n x n table exists: non-edges are sampled.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from spam_gnn.errors import Diverged

_ENUMERATE = 1_000_000  # pairs up to which a subset is drawn exactly, by a permutation


@dataclass(frozen=True)
class BlockModel:
    """memberships pi (n, C), strengths beta (C,), and the background rate delta of pairs that share no block."""

    memberships: Tensor
    strengths: Tensor
    background: float

    def edge_probability(self, first: Tensor, second: Tensor) -> Tensor:
        """(p,): sum_k pi_ak pi_bk beta_k + (1 - sum_k pi_ak pi_bk) delta (Zhang et al. 2019)."""
        shared = self.memberships[first] * self.memberships[second]
        return (shared * self.strengths).sum(1) + (1.0 - shared.sum(1)) * self.background


def start_strengths(memberships: Tensor, pairs: Tensor) -> Tensor:
    """(C,): expected edges within a block over expected pairs within it."""
    within = (memberships[pairs[0]] * memberships[pairs[1]]).sum(0)
    possible = (memberships.sum(0).square() - memberships.square().sum(0)) / 2.0
    return ((within + 0.1) / (possible + 1.0)).clamp(1e-4, 0.9)


def sample_non_edges(count: int, n: int, keys: Tensor, generator: torch.Generator) -> Tensor:
    """(2, <= count): uniform pairs i < j that are not among `keys` (sorted, i * n + j)."""
    drawn = torch.randint(n, (2, count), generator=generator)
    low, high = drawn.min(0).values, drawn.max(0).values
    wanted = low * n + high
    place = torch.searchsorted(keys, wanted).clamp(max=max(keys.numel() - 1, 0))
    is_edge = keys[place] == wanted if keys.numel() else torch.zeros_like(wanted, dtype=torch.bool)
    return torch.stack([low, high])[:, (low != high) & ~is_edge]


def fit_block_model(
    pairs: Tensor, start: Tensor, labels: Tensor, labelled: Tensor, background: float, steps: int, rate: float,
    generator: torch.Generator,
) -> BlockModel:  # fmt: skip
    """MAP of (pi, beta) by Adam on log p(A | pi, beta) + sum over labelled nodes of log pi_{a, y_a}; flat priors.

    Args:
        pairs: (2, p) observed pairs i < j.
        start: (n, C) class probabilities of a trained network, the first memberships.
        labels, labelled: (n,) classes, read at `labelled` only.
        generator: draws the non-edges of each step, as many as edges; they are weighted to stand for all non-edges.
    """
    n = start.shape[0]
    keys = (pairs[0] * n + pairs[1]).sort().values
    absent = n * (n - 1) / 2.0 - pairs.shape[1]
    scores = torch.log(start.clamp(min=1e-6)).detach().requires_grad_()
    strengths = torch.logit(start_strengths(start, pairs)).detach().requires_grad_()
    optimiser = torch.optim.Adam([scores, strengths], lr=rate)
    known = torch.nonzero(labelled).reshape(-1)
    for _ in range(steps):
        model = BlockModel(torch.softmax(scores, 1), torch.sigmoid(strengths), background)
        others = sample_non_edges(max(pairs.shape[1], n), n, keys, generator)
        loss = -torch.log(model.edge_probability(*pairs).clamp(min=1e-12)).sum()
        if others.shape[1]:
            loss = loss - torch.log1p(-model.edge_probability(*others).clamp(max=1 - 1e-6)).mean() * absent
        loss = loss + F.nll_loss(torch.log_softmax(scores[known], 1), labels[known], reduction="sum")
        optimiser.zero_grad()
        (loss / n).backward()
        optimiser.step()
    return BlockModel(torch.softmax(scores, 1).detach(), torch.sigmoid(strengths).detach(), background)


def draw_graph(model: BlockModel, generator: torch.Generator) -> Tensor:
    """(2, e): pairs i < j of one graph; each node acts in its strongest block, as in the authors' code."""
    n, blocks = model.memberships.shape
    member = model.memberships.argmax(1)
    drawn, same = [], 0
    for k in range(blocks):
        nodes = torch.nonzero(member == k).reshape(-1)
        size = nodes.numel()
        same += size * (size - 1) // 2
        drawn.append(nodes[_pairs_of(_subset(size * (size - 1) // 2, float(model.strengths[k]), generator))])
    wanted = _binomial(n * (n - 1) // 2 - same, model.background, generator)
    mixed = torch.randint(n, (2, 4 * wanted), generator=generator)
    mixed = mixed[:, member[mixed[0]] != member[mixed[1]]][:, :wanted]
    low, high = torch.cat([*drawn, torch.stack([mixed.min(0).values, mixed.max(0).values])], dim=1)
    keys = torch.unique(low * n + high)
    return torch.stack([keys // n, keys % n])


def _binomial(count: int, probability: float, generator: torch.Generator) -> int:
    if count == 0:
        return 0
    if math.isnan(probability):
        raise Diverged("block model: an edge probability is NaN; look for NaN in the features, or lower the learning rate")
    sizes = torch.tensor([float(count)], dtype=torch.float64)
    return int(torch.binomial(sizes, torch.tensor([probability], dtype=torch.float64), generator=generator))


def _subset(count: int, probability: float, generator: torch.Generator) -> Tensor:
    """Numbers below `count`, each in with the same probability; above `_ENUMERATE`, repeated draws are merged."""
    chosen = _binomial(count, probability, generator)
    if count <= _ENUMERATE:
        return torch.randperm(count, generator=generator)[:chosen]
    return torch.randint(count, (chosen,), generator=generator).unique()


def _pairs_of(number: Tensor) -> Tensor:
    """(2, e): the pair i < j whose number is j (j - 1) / 2 + i."""
    high = ((1.0 + torch.sqrt(1.0 + 8.0 * number.to(torch.float64))) / 2.0).floor().to(torch.int64)
    high = torch.where(high * (high - 1) // 2 > number, high - 1, high)
    high = torch.where((high + 1) * high // 2 <= number, high + 1, high)
    return torch.stack([number - high * (high - 1) // 2, high])
