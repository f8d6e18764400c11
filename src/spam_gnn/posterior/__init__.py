"""Posteriors over edge signs, one file each, behind `SignPosterior`."""

from spam_gnn.posterior.base import SignDistribution, SignPosterior, context_mask
from spam_gnn.posterior.belief import BeliefConfig, BeliefPosterior
from spam_gnn.posterior.gcn import GCNPosterior
from spam_gnn.posterior.prior import PriorConfig, SignPrior
from spam_gnn.posterior.simple import FixedPosterior, SimilarityPosterior

__all__ = [
    "BeliefConfig",
    "BeliefPosterior",
    "FixedPosterior",
    "GCNPosterior",
    "PriorConfig",
    "SignDistribution",
    "SignPosterior",
    "SignPrior",
    "SimilarityPosterior",
    "context_mask",
]
