"""`Prediction`: class probabilities under K sampled graphs, their average, and where the doubt comes from."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

_AT_A_TIME = 1 << 24  # numbers of all samples that are averaged together


@dataclass(frozen=True, eq=False)
class Prediction:
    """What a model says of n nodes; a deterministic model has K = 1.

    The doubt about a node, H of the averaged distribution, has three parts: what remains under a known graph (`aleatoric`),
    what the graphs drawn for one reading disagree about (`structural`), and what different readings do (`disagreement`).

    Args:
        log_prob: (K, n, C), log p(y_i = c | X, Z^(k)), each row a distribution.
        log_weight: (K,), log weights of the samples, summing to one; uniform for Monte Carlo, q(Z) for enumeration.
        readings: how many of the samples belong to each reading of the graph, in their order; all to one if empty.
    """

    log_prob: Tensor
    log_weight: Tensor
    readings: tuple[int, ...] = ()

    @staticmethod
    def uniform(log_prob: Tensor) -> Prediction:
        """Equal weight for each of the K samples."""
        samples = log_prob.shape[0]
        weight = torch.full((samples,), 1.0 / samples, dtype=log_prob.dtype, device=log_prob.device).log()
        return Prediction(log_prob, weight)

    @property
    def log_marginal(self) -> Tensor:
        """(n, C): log sum_k w_k p(y | X, Z^(k)), the paper's averaged predictive distribution."""
        return _averaged(self.log_prob, self.log_weight)

    @property
    def probability(self) -> Tensor:
        """(n, C): the averaged probabilities."""
        return self.log_marginal.exp()

    @property
    def label(self) -> Tensor:
        """(n,): the most probable class."""
        return self.log_marginal.argmax(-1)

    @property
    def total(self) -> Tensor:
        """(n,): entropy of the averaged distribution, in nats."""
        return _entropy(self.log_marginal)

    @property
    def aleatoric(self) -> Tensor:
        """(n,): average entropy under a known graph, what no better graph could remove."""
        return (self.log_weight.exp()[:, None] * torch.stack([_entropy(log_prob) for log_prob in self.log_prob])).sum(0)

    @property
    def structural(self) -> Tensor:
        """(n,): mutual information between the label and the graph Z, the doubt that is due to the edges. That a network which
        draws no graphs may see a node otherwise is no part of it."""
        return (self._of_readings - self.aleatoric).clamp(min=0.0)

    @property
    def disagreement(self) -> Tensor:
        """(n,): mutual information between the label and the reading; 0 where there is one."""
        return (self.total - self._of_readings).clamp(min=0.0)

    @property
    def _of_readings(self) -> Tensor:
        """(n,): entropy of each reading's averaged distribution, averaged over readings."""
        sizes = list(self.readings) or [self.log_weight.numel()]
        parts = zip(self.log_prob.split(sizes), self.log_weight.split(sizes), strict=True)
        shares = [(prob, weight, torch.logsumexp(weight, 0)) for prob, weight in parts]
        return torch.stack([
            share.exp() * _entropy(_averaged(prob, weight - share))
            for prob, weight, share in shares if bool(share > -torch.inf)
        ]).sum(0)  # fmt: skip


def _averaged(log_prob: Tensor, log_weight: Tensor) -> Tensor:
    """(n, C): log sum_k w_k p_k; of many nodes some at a time, so that nothing as large as all samples is made."""
    parts = log_prob.split(max(1, _AT_A_TIME // max(log_prob.shape[0] * log_prob.shape[2], 1)), 1)
    found = [torch.logsumexp(part + log_weight[:, None, None], dim=0) for part in parts]
    return found[0] if len(found) == 1 else torch.cat(found)


def _entropy(log_prob: Tensor) -> Tensor:
    return -(log_prob.exp() * log_prob.clamp(min=-1e4)).sum(-1)
