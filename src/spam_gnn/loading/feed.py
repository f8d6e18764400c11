"""`Feed`: what an epoch trains and validates on. The whole graph at once, or one batch after the other; one loop for both."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from spam_gnn.contract import NodeModel
from spam_gnn.graph import Graph
from spam_gnn.team import Team


@dataclass(frozen=True, eq=False)
class Piece:
    """A prepared graph to take the loss on.

    Args:
        graph: the whole graph, or a batch.
        weight: its share of the optimiser step it belongs to; the pieces of a step add up to one.
        share: its share of the epoch, for the averages that are logged.
    """

    graph: Graph
    weight: float = 1.0
    share: float = 1.0


class Feed(ABC):
    """Where the trainer's graphs come from."""

    @abstractmethod
    def steps(self, model: NodeModel, seed: int, epoch: int) -> Iterator[list[Piece]]:
        """The optimiser steps of an epoch, each with the pieces that this process works on (at least one)."""

    @abstractmethod
    def evaluate(self, model: NodeModel, seed: int, samples: int) -> dict[str, float]:
        """train_accuracy, val_accuracy and val_loss; the same numbers in every process."""


class WholeFeed(Feed):
    """One step per epoch on the whole graph, prepared once."""

    def __init__(self, model: NodeModel, graph: Graph) -> None:
        self.graph = model.prepare(graph)

    def steps(self, model: NodeModel, seed: int, epoch: int) -> Iterator[list[Piece]]:  # noqa: ARG002 - always the same
        yield [Piece(self.graph)]

    def evaluate(self, model: NodeModel, seed: int, samples: int) -> dict[str, float]:
        graph, log_prob = self.graph, model.predict(self.graph, seed, samples=samples).log_marginal
        right = log_prob.argmax(-1) == graph.y
        return {
            "train_accuracy": float(right[graph.train_mask].float().mean()),
            "val_accuracy": float(right[graph.val_mask].float().mean()),
            "val_loss": float(F.nll_loss(log_prob[graph.val_mask], graph.y[graph.val_mask])),
        }


class Tally:
    """Right answers, losses and counts of training and validation nodes, added up batch by batch and over processes."""

    def __init__(self) -> None:
        self._sums = torch.zeros(5, dtype=torch.float64)

    def add(self, log_prob: Tensor, y: Tensor, train: Tensor, val: Tensor) -> None:
        """Rows of a batch that count: log_prob (b, C), labels (b,), and which are training or validation nodes (b,)."""
        right = log_prob.argmax(-1) == y
        loss = F.nll_loss(log_prob[val], y[val], reduction="sum") if bool(val.any()) else torch.zeros(())
        numbers = ((right & train).sum(), train.sum(), (right & val).sum(), val.sum(), loss)
        self._sums += torch.tensor([float(v) for v in numbers], dtype=torch.float64)

    def result(self, team: Team) -> dict[str, float]:
        train_right, train, val_right, val, loss = team.total(self._sums).tolist()
        return {"train_accuracy": train_right / max(train, 1), "val_accuracy": val_right / max(val, 1),
                "val_loss": loss / max(val, 1)}  # fmt: skip
