"""What a configuration names: its posterior, how signs are drawn, which neighbours are heard."""

from __future__ import annotations

import torch

from spam_gnn.config import SpaMConfig
from spam_gnn.graph import Direction, Graph
from spam_gnn.posterior import (
    BeliefConfig,
    BeliefPosterior,
    FixedPosterior,
    GCNPosterior,
    SignDistribution,
    SignPosterior,
    SimilarityPosterior,
)
from spam_gnn.sampling import SignedGraphs, expected_signs, most_likely_signs, observed_signs, sample_signs

_DIRECTIONS: dict[str, tuple[Direction, ...]] = {
    "in": ("in",), "out": ("out",), "both": ("in", "out"), "undirected": ("in",),
}  # fmt: skip


def directions_of(config: SpaMConfig) -> tuple[Direction, ...]:
    """Which neighbours the layers listen to."""
    return _DIRECTIONS[config.directions]


def make_posterior(c: SpaMConfig, features: int, classes: int, generator: torch.Generator) -> SignPosterior | None:
    """The posterior a configuration names; None means that the graph is taken as given."""
    if c.posterior == "belief":
        rate = c.posterior_dropout
        belief = BeliefConfig(
            c.posterior_hidden, rate, c.of_features(features, rate), c.belief_rounds, noise_quantile=c.noise_quantile,
            verdict=c.verdict,
        )  # fmt: skip
        return BeliefPosterior(features, classes, belief, generator)
    if c.posterior == "gcn":
        return GCNPosterior(features, classes, c.posterior_hidden, c.posterior_dropout, generator, c.kernel)
    if c.posterior == "similarity":
        return SimilarityPosterior()
    if c.posterior == "fixed":
        return FixedPosterior(torch.tensor(c.prior_probabilities))
    return None


def drawn_signs(
    c: SpaMConfig, graph: Graph, distribution: SignDistribution | None, samples: int, seed: int, purpose: str, epoch: int
) -> SignedGraphs:
    """Signed graphs of a posterior: K draws, the expected or the likeliest signs; without a posterior the edges as they are."""
    if distribution is None:
        return observed_signs(graph)
    distribution = distribution.softened(c.posterior_gradient)
    if c.signs == "hard":
        return most_likely_signs(distribution)
    if c.signs == "expected":
        return expected_signs(distribution)
    return sample_signs(
        distribution, graph, samples, seed, purpose=purpose, epoch=epoch, per_pair=c.per_pair, estimator=c.estimator,
        temperature=c.temperature,
    )  # fmt: skip
