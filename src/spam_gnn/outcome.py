"""`Outcome`: one forward pass of SpaM as a value."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from spam_gnn.posterior import SignDistribution
from spam_gnn.prediction import Prediction
from spam_gnn.sampling import SignedGraphs


@dataclass(frozen=True, eq=False)
class Outcome:
    """What was predicted, from which sign distribution, under which graphs, with which codes.

    Args:
        prediction: log p (K, n, C).
        distribution: q over the m stored edges, or None without a posterior.
        signs: the K signed graphs.
        code_norm: (L, K), mean_i ||alpha_i||_1 of each layer and sample.
    """

    prediction: Prediction
    distribution: SignDistribution | None
    signs: SignedGraphs
    code_norm: Tensor
