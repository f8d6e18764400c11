"""`Prediction`: class probabilities under K sampled graphs, their average, and where the doubt comes from."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor


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
        return torch.logsumexp(self.log_prob + self.log_weight[:, None, None], dim=0)

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
        return (self.log_weight.exp()[:, None] * _entropy(self.log_prob)).sum(0)

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
            share.exp() * _entropy(torch.logsumexp(prob + (weight - share)[:, None, None], dim=0))
            for prob, weight, share in shares if bool(share > -torch.inf)
        ]).sum(0)  # fmt: skip

    def tempered(self, temperature: float) -> Prediction:
        """Each sample's logits divided by `temperature` before averaging; keeps the labels of K = 1 models."""
        return replace(self, log_prob=torch.log_softmax(self.log_prob / temperature, dim=-1))


def _entropy(log_prob: Tensor) -> Tensor:
    return -(log_prob.exp() * log_prob.clamp(min=-1e4)).sum(-1)


def fit_temperature(prediction: Prediction, y: Tensor, mask: Tensor) -> float:
    """The temperature in [0.05, 20] with the lowest negative log-likelihood on `mask` (validation nodes).

    A golden-section search on log T; temperature scaling has one parameter and, for K = 1, a unimodal loss.
    """
    if not bool(mask.any()):
        return 1.0
    part = replace(prediction, log_prob=prediction.log_prob[:, mask])
    labels = y[mask]

    def loss(log_t: float) -> float:
        scaled = part.tempered(float(torch.tensor(log_t).exp()))
        return float(torch.nn.functional.nll_loss(scaled.log_marginal, labels))

    low, high, ratio = -3.0, 3.0, 0.6180339887498949
    while high - low > 1e-3:
        a, b = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, b) if loss(a) < loss(b) else (a, high)
    return float(torch.tensor((low + high) / 2).exp())
