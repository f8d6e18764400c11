"""`Feed`: what an epoch trains and validates on. The whole graph at once, or one batch after the other; one loop for both."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from spam_gnn.contract import NodeModel
from spam_gnn.graph import Graph
from spam_gnn.prediction import Prediction
from spam_gnn.team import Alone, Team


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


@dataclass(frozen=True)
class Validation:
    """An epoch's model on validation nodes.

    Args:
        numbers: train_accuracy, val_accuracy and val_loss of the mixture of all readings, which are logged.
        scores: of each reading, accuracy and minus the loss on validation nodes, by which weights are chosen.
    """

    numbers: dict[str, float]
    scores: tuple[tuple[float, float], ...]


class Feed(ABC):
    """Where the trainer's graphs come from."""

    @abstractmethod
    def steps(self, model: NodeModel, seed: int, epoch: int) -> Iterator[list[Piece]]:
        """The optimiser steps of an epoch, each with the pieces that this process works on (at least one)."""

    @abstractmethod
    def evaluate(self, model: NodeModel, seed: int, samples: int) -> Validation:
        """Find the shares of the readings, score them, and tell the model; the same numbers in every process."""


class WholeFeed(Feed):
    """One step per epoch on the whole graph, prepared once."""

    def __init__(self, model: NodeModel, graph: Graph) -> None:
        self.graph = model.prepare(graph)

    def steps(self, model: NodeModel, seed: int, epoch: int) -> Iterator[list[Piece]]:  # noqa: ARG002 - always the same
        yield [Piece(self.graph)]

    def evaluate(self, model: NodeModel, seed: int, samples: int) -> Validation:
        graph, tally = self.graph, Tally()
        seen = graph.train_mask | graph.val_mask
        tally.add(model.readings(graph, seed, samples), seen, graph)
        return tally.result(model, Alone())


class Tally:
    """What the readings of a model say of training and validation nodes, gathered batch by batch; scored once all are there,
    since the shares of the readings are found on all validation nodes together."""

    def __init__(self) -> None:
        self._seen: list[tuple[tuple[Prediction, ...], Tensor, Tensor, Tensor]] = []

    def add(self, readings: Sequence[Prediction], rows: Tensor, graph: Graph) -> None:
        """Readings of a graph's nodes, of which `rows` (n,) bool count."""
        kept = tuple(Prediction(p.log_marginal[rows].unsqueeze(0), p.log_weight.new_zeros(1)) for p in readings)
        self._seen.append((kept, graph.y[rows], graph.train_mask[rows], graph.val_mask[rows]))

    def result(self, model: NodeModel, team: Team) -> Validation:
        """Over all processes of the team."""
        model.weigh([_likelihood(readings, y, val) for readings, y, _, val in self._seen], team.total)
        count = 1 + len(self._seen[0][0]) if self._seen else 0
        rows = torch.zeros(int(team.most(count)), 5, dtype=torch.float64)  # the mixture, then reading by reading
        for readings, y, train, val in self._seen:
            rows += torch.stack([_score(p, y, train, val) for p in (model.mixed(readings), *readings)])
        rows = team.total(rows)
        mixture, *each = [
            {"train_accuracy": a / max(n, 1), "val_accuracy": b / max(v, 1), "val_loss": loss / max(v, 1)}
            for a, n, b, v, loss in rows.tolist()
        ]
        model.validated([numbers["val_accuracy"] for numbers in each], round(float(rows[0, 3])))
        return Validation(mixture, tuple((numbers["val_accuracy"], -numbers["val_loss"]) for numbers in each))


def _likelihood(readings: Sequence[Prediction], y: Tensor, val: Tensor) -> Tensor:
    """(R, v): the probability of the label of each validation node."""
    rows = torch.nonzero(val).reshape(-1)
    return torch.stack([p.log_prob[0, rows, y[rows]].exp() for p in readings])


def _score(prediction: Prediction, y: Tensor, train: Tensor, val: Tensor) -> Tensor:
    """(5,): right answers and number of training nodes, the same of validation nodes, and the sum of their losses."""
    log_prob = prediction.log_marginal
    right = log_prob.argmax(-1) == y
    loss = F.nll_loss(log_prob[val], y[val], reduction="sum") if bool(val.any()) else torch.zeros(())
    numbers = ((right & train).sum(), train.sum(), (right & val).sum(), val.sum(), loss)
    return torch.tensor([float(v) for v in numbers], dtype=torch.float64)
