"""`SampledNetwork`: a network whose prediction is an average over K draws (graphs, paths, masks)."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from spam_gnn.baselines.base import Network, Settings, Shape
from spam_gnn.errors import BadInput
from spam_gnn.graph import Graph
from spam_gnn.prediction import Prediction
from spam_gnn.randomness import seed_for


@dataclass(frozen=True)
class SampledSettings(Settings):
    """Settings of a system that averages over draws; `predict_samples` is the K of a prediction."""

    predict_samples: int = 16

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.predict_samples < 1:
            raise BadInput(f"predict_samples: found {self.predict_samples}; use 1 or more")


class SampledNetwork(Network):
    """Subclasses write :meth:`draws`; an epoch trains on one draw, a prediction weighs K draws equally.

    Draw k of a prediction depends on (seed, k) alone, not on K.
    """

    def __init__(self, shape: Shape, settings: SampledSettings) -> None:
        super().__init__(shape, settings)
        self.predict_samples = settings.predict_samples

    @abstractmethod
    def draws(self, graph: Graph, seeds: list[int], generator: torch.Generator | None) -> Tensor:
        """(K, n, C) logits, one draw per seed that names it; `generator` drops units while training, None at prediction."""

    def logits(self, graph: Graph, generator: torch.Generator | None) -> Tensor:
        """One draw; while training its name comes from the generator of the epoch."""
        seed = 0 if generator is None else int(torch.randint(2**62, (1,), generator=generator))
        return self.draws(graph, [seed], generator)[0]

    @torch.no_grad()
    def predict(self, graph: Graph, seed: int, samples: int | None = None) -> Prediction:
        self.eval()
        count = samples or self.predict_samples
        seeds = [seed_for(seed, "predict", k) for k in range(count)]
        return Prediction.uniform(torch.log_softmax(self.draws(graph, seeds, None), -1))
