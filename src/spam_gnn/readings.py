"""Readings of one graph and how far each is believed: mixture weights that make validation labels likely.

A graph can be read as K signed graphs drawn from the posterior, or as it was observed. On a graph full of wrong edges the first
is worth most; where nodes have few edges and even opposing ones tell something, the second. Which one a graph deserves is not
known beforehand, so the prediction is their mixture,

    p(y_i) = sum_r w_r p_r(y_i),    w = argmax sum_{i in validation} log sum_r w_r p_r(y_i) + (a / R) sum_r log w_r,

found by expectation maximisation (stacking with a weak Dirichlet prior of strength a, so that few validation nodes do not
silence a reading). Training labels do not decide w: the networks have fitted those.

Where labels are few, readings also learn from their own guesses of the other nodes (`lesson_weight`, `agreement_weight`). That
helps a reading whose edges are of use and ruins one whose edges are not: it becomes certain of what it got wrong. A network
that reads the features alone tells the two apart. With accuracy a_r on v validation nodes, and a_0 that of the features
alone, the guesses of reading r are heeded by

    g_r = clamp((a_r - a_0 - sqrt(a_0 (1 - a_0) / v)) / 0.05, 0, 1):

not at all unless it is ahead by more than a standard error, in full five points further on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from spam_gnn.prediction import Prediction

_STRENGTH = 2.0  # a: the prior counts as much as two validation nodes
FEATURES_ALONE = "features alone"  # the name of a reading that hears no edge
_CLEARLY = 0.05  # accuracy beyond the standard error from which on guesses are heeded in full
_ROUNDS = 60  # of expectation maximisation; the mixture moves by less than 1e-3 after that


class Shares(nn.Module):
    """w (R,), equal until validation nodes have been seen, and g (R,), one until then; kept with the weights of the model.

    Args:
        names: of the readings, in their order.
    """

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__()
        self.names = tuple(names)
        self.register_buffer("share", torch.full((len(self.names),), 1.0 / len(self.names)))
        self.register_buffer("heeded", torch.tensor([float(name != FEATURES_ALONE) for name in self.names]))

    def weigh(self, likelihood: Sequence[Tensor], total: Callable[[Tensor], Tensor]) -> None:
        """Find w.

        Args:
            likelihood: (R, v) of each batch, the probability that each reading gives to the labels of validation nodes.
            total: sums a tensor over the processes, of which each holds some validation nodes, or none.
        """
        count = len(self.names)
        share = torch.full((count,), 1.0 / count, dtype=torch.float64)
        seen = torch.cat([share.new_zeros(count, 0), *likelihood], 1).clamp(min=1e-12)
        for _ in range(_ROUNDS if count > 1 else 0):
            joint = share.unsqueeze(1) * seen
            share = total((joint / joint.sum(0)).sum(1)) + _STRENGTH / count
            share = share / share.sum()
        self.get_buffer("share").copy_(share)

    def heed(self, accuracy: Sequence[float], nodes: int) -> None:
        """Find g, where a reading hears no edge and so can be held against the others.

        Args:
            accuracy: of each reading on all validation nodes.
            nodes: how many those are.
        """
        if FEATURES_ALONE in self.names and nodes > 0:
            alone = accuracy[self.names.index(FEATURES_ALONE)]
            bar = alone + (alone * (1.0 - alone) / nodes) ** 0.5
            ahead = torch.tensor([(found - bar) / _CLEARLY for found in accuracy])
            self.get_buffer("heeded").copy_(ahead.clamp(0.0, 1.0))

    def mix(self, readings: Sequence[Prediction]) -> Prediction:
        """All samples of all readings, each weighted by its share of its reading and by the reading's share."""
        log_share = self.get_buffer("share").log()
        weight = torch.cat([p.log_weight + s for p, s in zip(readings, log_share, strict=True)])
        return Prediction(torch.cat([p.log_prob for p in readings]), weight)
