"""Names that settings choose among. Nothing is imported here: a run is judged by its settings before torch is loaded."""

from __future__ import annotations

from typing import Literal

Scaling = Literal["auto", "row", "together", "standardise", "none"]  # of features
PositionMode = Literal["auto", "on", "off"]
Aggregate = Literal["plain", "normalised"]
GammaMode = Literal["fixed", "learned"]
KernelName = Literal["auto", "fused", "csr", "torch"]
PriorKind = Literal["uniform", "fixed", "labelled-pairs"]
Estimator = Literal["straight-through", "gumbel"]
PosteriorKind = Literal["belief", "gcn", "similarity", "fixed", "none"]
Verdict = Literal["beliefs", "evidence"]
SignMode = Literal["sample", "expected", "hard"]
Directions = Literal["in", "out", "both", "undirected"]
ClassLoss = Literal["marginal", "expected"]
Norm = Literal["layer", "columns", "none"]
