"""The K signed graphs of a prediction: a byte per edge and sample, or made where they are needed; some edges at a time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from spam_gnn.config import SpaMConfig
from spam_gnn.graph import Graph
from spam_gnn.inference.pieces import edge_ranges, scratch
from spam_gnn.posterior import SignDistribution
from spam_gnn.posterior.base import NEGATIVE, POSITIVE
from spam_gnn.randomness import seed_for
from spam_gnn.sampling import SignedGraphs, drawn, gumbel_logits


@dataclass(frozen=True, eq=False)
class SignSource:
    """The same signs as `SpaM` draws for a prediction of the whole graph: a draw belongs to its edge and its sample."""

    config: SpaMConfig
    graph: Graph
    distribution: SignDistribution | None
    seed: int
    samples: int

    @property
    def count(self) -> int:
        """Signed graphs in all: one where nothing is drawn."""
        return self.samples if self.distribution is not None and self.config.signs == "sample" else 1

    def of(self, edges: slice | Tensor, samples: range) -> SignedGraphs:
        """Signs (len(samples), p) of some stored edges (p,) in some of the samples."""
        weight = torch.full((len(samples),), 1.0 / self.count).log()
        if self.distribution is None:
            ones = torch.ones(1, edges.stop - edges.start if isinstance(edges, slice) else len(edges))
            return SignedGraphs(ones, torch.zeros_like(ones), weight)
        if self.config.signs == "sample":
            sign = self._drawn[samples.start : samples.stop, edges]
            negative, positive = (sign < 0).to(torch.float32), (sign > 0).to(torch.float32)
        else:
            negative, positive = self._indicators(self.distribution.log_prob[edges], edges, samples)
        if not self.config.use_sign:
            return SignedGraphs(positive + negative, torch.zeros_like(negative), weight)
        return SignedGraphs(positive, negative, weight)

    @cached_property
    def _drawn(self) -> Tensor:
        """(count, m): -1, 0 or 1, drawn once for all layers, a byte each."""
        assert self.distribution is not None
        out = scratch(self.count, self.graph.num_edges, kind=np.int8)
        for edges in edge_ranges(self.graph.num_edges):
            negative, positive = self._indicators(self.distribution.log_prob[edges], edges, range(self.count))
            out[:, edges] = (positive - negative).to(torch.int8)
        return out

    def _indicators(self, log_prob: Tensor, edges: slice | Tensor, samples: range) -> tuple[Tensor, Tensor]:
        """z- and z+ as numbers, (len(samples), p)."""
        probability = log_prob.exp()
        if self.config.signs == "expected":
            return probability[:, NEGATIVE].unsqueeze(0), probability[:, POSITIVE].unsqueeze(0)
        if self.config.signs == "hard":
            choice = probability.argmax(-1).unsqueeze(0)
            return (choice == NEGATIVE).to(torch.float32), (choice == POSITIVE).to(torch.float32)
        first, second = (self.graph.identity[end[edges]] for end in self.graph.edge_index)
        if self.config.per_pair and not self.graph.directed:
            first, second = torch.minimum(first, second), torch.maximum(first, second)
        if self.config.estimator == "gumbel":
            seeds = [seed_for(self.seed, "predict", 0, k, s) for k in samples for s in range(3)]
            choice = gumbel_logits(log_prob, first, second, seeds).argmax(-1)
            return (choice == NEGATIVE).to(torch.float32), (choice == POSITIVE).to(torch.float32)
        seeds = [seed_for(self.seed, "predict", 0, k) for k in samples]
        negative, positive = drawn(probability, first, second, seeds)
        return negative.to(torch.float32), positive.to(torch.float32)
