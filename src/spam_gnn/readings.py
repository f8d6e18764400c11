"""Readings of one graph and how far each is believed: mixture weights that make validation labels likely.

A graph can be read as K signed graphs drawn from the posterior, as it was observed, or node by node, without messages. On a
graph full of wrong edges the first is worth most; where nodes have few edges and even opposing ones tell something, the second;
where edges say little, the third. Which one a graph deserves is not known beforehand, so the prediction is their mixture,

    p(y_i) = sum_r w_r p_r(y_i),    w = argmax sum_{i in validation} log sum_r w_r p_r(y_i) + (a / R) sum_r log w_r,

found by expectation maximisation (stacking with a weak Dirichlet prior of strength a, so that few validation nodes do not
silence a reading). Training labels do not decide w: the networks have fitted those.

Where labels are few, readings also learn from their own guesses of the other nodes (`lesson_weight`, `agreement_weight`). That
helps a reading whose messages are of use and ruins one whose messages are not: it becomes certain of what it got wrong. The
network without messages, which reads a node's own columns (its features, and its place in the graph where that joins them),
tells the two apart. With accuracy a_r on v validation nodes, and a_0 that of the network without messages, the guesses of
reading r are heeded by

    g_r = clamp((a_r - a_0 - sqrt(a_0 (1 - a_0) / v)) / 0.05, 0, 1):

not at all unless it is ahead by more than a standard error, in full five points further on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from spam_gnn.prediction import Prediction

_STRENGTH = 2.0  # a: the prior counts as much as two validation nodes
NO_MESSAGES = "no messages"  # the name of a reading of each node by itself
_CLEARLY = 0.05  # accuracy beyond the standard error from which on guesses are heeded in full
_ROUNDS = 60  # of expectation maximisation; the mixture moves by less than 1e-3 after that


def likeliest_shares(likelihood: Tensor, total: Callable[[Tensor], Tensor] = lambda sums: sums) -> Tensor:
    """w (R,) from what each reading gives to the labels of validation nodes, (R, v); `total` sums over processes."""
    count, seen = len(likelihood), likelihood.double().clamp(min=1e-12)
    share = seen.new_full((count,), 1.0 / count)
    for _ in range(_ROUNDS if count > 1 else 0):
        joint = share.unsqueeze(1) * seen
        share = total((joint / joint.sum(0)).sum(1)) + _STRENGTH / count
        share = share / share.sum()
    return share


def _as_not_validated(shares: nn.Module, weights: dict[str, Any], prefix: str, *_: Any) -> None:
    """Weights that were kept before there was a g are read as those of a model that was not validated."""
    weights.setdefault(f"{prefix}heeded", shares.get_buffer("heeded"))


class Shares(nn.Module):
    """w (R,), equal until validation nodes have been seen, and g (R,), until then one for readings that hear messages and zero
    for the one that does not; kept with the weights of the model.

    Args:
        names: of the readings, in their order.
    """

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__()
        self.names = tuple(names)
        self.register_buffer("share", torch.full((len(self.names),), 1.0 / len(self.names)))
        self.register_buffer("heeded", torch.tensor([float(name != NO_MESSAGES) for name in self.names]))
        self.register_load_state_dict_pre_hook(_as_not_validated)

    def weigh(self, likelihood: Sequence[Tensor], total: Callable[[Tensor], Tensor]) -> None:
        """Find w.

        Args:
            likelihood: (R, v) of each batch, the probability that each reading gives to the labels of validation nodes.
            total: sums a tensor over the processes, of which each holds some validation nodes, or none.
        """
        none = torch.zeros(len(self.names), 0, dtype=torch.float64)
        self.get_buffer("share").copy_(likeliest_shares(torch.cat([none, *likelihood], 1), total))

    def heed(self, accuracy: Sequence[float], nodes: int) -> None:
        """Find g, where a reading hears no messages and so the others can be held against it.

        Args:
            accuracy: of each reading on all validation nodes.
            nodes: how many those are.
        """
        if NO_MESSAGES in self.names and nodes > 0:
            alone = accuracy[self.names.index(NO_MESSAGES)]
            bar = alone + (alone * (1.0 - alone) / nodes) ** 0.5
            ahead = torch.tensor([(found - bar) / _CLEARLY for found in accuracy])
            self.get_buffer("heeded").copy_(ahead.clamp(0.0, 1.0))

    def mix(self, readings: Sequence[Prediction]) -> Prediction:
        """All samples of all readings, each weighted by its share of its reading and by the reading's share."""
        log_share = self.get_buffer("share").log()
        weight = torch.cat([p.log_weight + s for p, s in zip(readings, log_share, strict=True)])
        return Prediction(torch.cat([p.log_prob for p in readings]), weight, tuple(len(p.log_weight) for p in readings))
