"""`Lab`: trained models and their predictions, made once and shared by the checks; and the form a check has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from spam_gnn.baselines.base import Shape
from spam_gnn.contract import NodeModel
from spam_gnn.evaluation.checks import graphs
from spam_gnn.evaluation.checks.subject import Subject
from spam_gnn.graph import Graph
from spam_gnn.prediction import Prediction
from spam_gnn.training import EpochHook, TrainConfig, TrainState, fit

SHORT = 3  # epochs of a training whose result is compared bit by bit
LONG = 60  # epochs of a training that has to learn
Weights = dict[str, Tensor]


@dataclass(frozen=True)
class Check:
    """A name, what is done, and the checks without which the result would say nothing."""

    name: str
    run: Callable[[Lab], None]
    needs: tuple[str, ...] = ()


def ensure(condition: bool, complaint: str) -> None:
    """A check fails with a sentence that says what was seen."""
    if not condition:
        raise AssertionError(complaint)


class Lab:
    """One subject and what has been done with it so far."""

    def __init__(self, subject: Subject, seed: int = 0) -> None:
        self.subject, self.seed = subject, seed

    def config(self, epochs: int, *, select: bool, **more: Any) -> TrainConfig:
        """The subject's own way of training, kept short; slow rates are raised, or nothing would be learned in that time."""
        rate = max(0.01, self.subject.train.get("learning_rate", 0.01))
        usual = {**self.subject.train, "learning_rate": rate, "weight_decay": 5e-4, "val_samples": 2}
        return TrainConfig(**{**usual, "epochs": epochs, "patience": epochs + 1, "select": select, **more})

    def fresh(self, graph: Graph, seed: int | None = None) -> NodeModel:
        return self.subject.make(Shape.of(graph), self.seed if seed is None else seed)

    def train(
        self, graph: Graph, epochs: int = SHORT, *, select: bool = False, seed: int | None = None, hook: EpochHook | None = None
    ) -> NodeModel:
        """A model made and trained; on a copy of the graph, so that nothing is carried over."""
        seed = self.seed if seed is None else seed
        model = self.fresh(graph, seed)
        fit(model, own_copy(graph), self.config(epochs, select=select), seed, on_epoch=hook)
        return model

    def predict(self, model: NodeModel, graph: Graph) -> Prediction:
        return model.predict(model.prepare(own_copy(graph)), self.seed)

    @cached_property
    def small(self) -> Graph:
        return graphs.small_graph()

    @cached_property
    def easy(self) -> Graph:
        return graphs.easy_graph()

    @cached_property
    def calm(self) -> Weights:
        """Weights after a short training with selection on validation nodes."""
        return weights(self.train(self.small, select=True))

    @cached_property
    def last(self) -> Weights:
        """Weights after a short training that keeps the last epoch."""
        return weights(self.train(self.small))

    @cached_property
    def learned(self) -> NodeModel:
        """A model that has learned the easy graph."""
        return self.learn(self.easy)

    @cached_property
    def prediction(self) -> Prediction:
        """What the learned model says of the easy graph."""
        return self.predict(self.learned, self.easy)

    def learn(self, graph: Graph) -> NodeModel:
        """Train until four of five validation nodes are right, or for `LONG` epochs."""

        def enough(state: TrainState, *_: object) -> None:
            state.finished = state.history[-1]["val_accuracy"] >= 0.8

        return self.train(graph, LONG, select=True, hook=enough)

    def accuracy(self, graph: Graph) -> float:
        """On all nodes outside the training set, after learning; the bars are so low that selection does not matter."""
        model = self.learned if graph is self.easy else self.learn(graph)
        right = self.predict(model, graph).label == graph.y
        return float(right[~graph.train_mask].float().mean())

    def same_prediction(self, graph: Graph, complaint: str, tolerance: float = 0.0, order: Tensor | None = None) -> None:
        """The learned model must say of `graph` what it says of the easy one (of node `order[i]` for node i)."""
        wanted = self.prediction.probability if order is None else self.prediction.probability[order]
        gap = float((self.predict(self.learned, graph).probability - wanted).abs().max())
        ensure(gap <= tolerance, f"{complaint}: probabilities differ by up to {gap:.2g}")


def own_copy(graph: Graph) -> Graph:
    """The same graph with tensors of its own and nothing computed yet: what one check does to it, no other sees."""
    names = ("x", "edge_index", "y", "train_mask", "val_mask", "test_mask")
    return replace(graph, **{name: getattr(graph, name).clone() for name in names})


def weights(model: NodeModel) -> Weights:
    """A copy of everything that is saved of a model."""
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


def difference(a: Weights, b: Weights) -> str | None:
    """The first entry in which two sets of weights are not equal bit for bit."""
    if a.keys() != b.keys():
        return f"names differ: {sorted(a.keys() ^ b.keys())[:3]}"
    return next((name for name in a if not torch.equal(a[name], b[name])), None)
