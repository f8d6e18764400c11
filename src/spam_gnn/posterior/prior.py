"""The prior over signs, the observation channel, and the structure term (negative ELBO per edge) they make up."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from spam_gnn.choices import PriorKind
from spam_gnn.errors import BadInput, one_of
from spam_gnn.graph import Graph
from spam_gnn.kernels.divergence import mean_divergence
from spam_gnn.posterior.base import ABSENT, NEGATIVE, POSITIVE, SignDistribution

PRIORS = ("uniform", "fixed", "labelled-pairs")


@dataclass(frozen=True)
class PriorConfig:
    """p(z) and p(A = 1 | z).

    `noise_rate=None` takes p(z) as it stands. Otherwise p(z) is chosen so that, *given that an edge is observed*, it is
    noise with that rate: p(z) proportional to target(z) / p(A = 1 | z). Without this tie a channel of 0.9 / 0.1 and a
    uniform prior leave room for 5 % absent edges on every graph, clean or corrupted.
    """

    kind: PriorKind = "labelled-pairs"
    probabilities: tuple[float, float, float] = (1 / 3, 1 / 3, 1 / 3)  # of -1, 0, +1, for kind "fixed"
    noise_rate: float | None = 0.2
    learn_noise: bool = True  # empirical Bayes: the rate moves to where the evidence puts it
    edge_if_related: float = 0.9  # p(A = 1 | z != 0)
    edge_if_unrelated: float = 0.1  # p(A = 1 | z = 0)


class SignPrior(nn.Module):
    """log p(z) for an edge, and KL(q || p) - E_q[log p(A | Z)], both per edge."""

    def __init__(self, config: PriorConfig) -> None:
        super().__init__()
        one_of(config.kind, PRIORS, "prior")
        if any(p <= 0.0 for p in config.probabilities) or not math.isclose(sum(config.probabilities), 1.0, abs_tol=1e-6):
            raise BadInput(f"prior_probabilities: found {config.probabilities}; give three positive numbers that sum to 1")
        for name in ("edge_if_related", "edge_if_unrelated"):
            if not 0.0 < getattr(config, name) < 1.0:
                raise BadInput(f"{name}: found {getattr(config, name)}; use a probability strictly between 0 and 1")
        rate = config.noise_rate
        if rate is not None and not 0.0 < rate < 1.0:
            raise BadInput(f"noise_rate: found {rate}; use a number strictly between 0 and 1, or none")
        self.config = config
        start = math.log(rate / (1.0 - rate)) if rate is not None else 0.0
        self.noise_logit = nn.Parameter(torch.tensor(start), requires_grad=rate is not None and config.learn_noise)

    @property
    def noise_rate(self) -> Tensor:
        return torch.sigmoid(self.noise_logit)

    def log_prior(self, graph: Graph, context: Tensor) -> Tensor:
        """(3,): log p(z) of an edge slot, before it is known that an edge was observed there."""
        base = self._base(graph, context)
        if self.config.noise_rate is None:
            return base.log()
        support = base[POSITIVE] / (base[POSITIVE] + base[NEGATIVE])
        eta = self.noise_rate
        target = torch.stack([(1.0 - eta) * (1.0 - support), eta, (1.0 - eta) * support])
        weight = target.log() - self.log_channel()
        # the normaliser says how rare any edge is; it is no evidence on which of the edges that exist are noise
        return weight - torch.logsumexp(weight, -1).detach()

    def log_channel(self) -> Tensor:
        """(3,): log p(A = 1 | z)."""
        related, unrelated = self.config.edge_if_related, self.config.edge_if_unrelated
        return torch.tensor([related, unrelated, related]).log()

    def _base(self, graph: Graph, context: Tensor) -> Tensor:
        if self.config.kind == "labelled-pairs":
            return labelled_pair_prior(graph, context)
        return torch.tensor(self.config.probabilities if self.config.kind == "fixed" else (1 / 3, 1 / 3, 1 / 3))

    def structure(self, distribution: SignDistribution, graph: Graph, context: Tensor) -> Tensor:
        """KL(q || p) - E_q[log p(A = 1 | z)], averaged over the stored edges; 0 for a graph without edges."""
        if graph.num_edges == 0:
            return distribution.log_prob.sum()
        return mean_divergence(distribution.log_prob, self.log_prior(graph, context) + self.log_channel())


def labelled_pair_prior(graph: Graph, context: Tensor) -> Tensor:
    """(3,): shares of -1 and +1 among stored edges with two labels to read, one pseudo-edge of each; a third for absent."""
    seen = torch.where(context, graph.y, -1)  # one look-up for each end instead of two, of small numbers
    seen = seen.to(torch.int16) if graph.num_classes < 2**15 else seen
    first, second = seen.index_select(0, graph.edge_index[0]), seen.index_select(0, graph.edge_index[1])
    both = (first >= 0) & (second >= 0)
    same = (first == second) & both
    support = (same.sum() + 1.0) / (both.sum() + 2.0)
    share = torch.zeros(3)
    share[NEGATIVE], share[ABSENT], share[POSITIVE] = 2 / 3 * (1.0 - support), 1 / 3, 2 / 3 * support
    return share
