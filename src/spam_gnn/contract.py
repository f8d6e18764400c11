"""`NodeModel`: what training, prediction and reports ask of a model, SpaM and competitors alike."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from spam_gnn.choices import Scaling
from spam_gnn.errors import BadInput
from spam_gnn.features import FeatureMatrix, column_moments, looks_like_counts, rows_of
from spam_gnn.graph import Graph
from spam_gnn.left_out import asked_nodes, left_out_error, wanted_labels
from spam_gnn.posterior.base import SignDistribution
from spam_gnn.prediction import Prediction
from spam_gnn.randomness import stream

_MODES = {"none": 0, "row": 1, "standardise": 2, "together": 3}  # as they are kept with the weights


class FeatureScaler(nn.Module):
    """How features are scaled: decided once, from the training graph, and stored with the weights.

    `row` divides rows by their norms; `together` divides all of them by one number, the root of their mean squared norm, so
    that rows still say how large they are. `standardise` takes columns to mean zero and variance one. `auto` takes `row` for
    counts (nonnegative, mostly zero) and `standardise` for anything else.

    Args:
        ask: whether `auto` asks the training labels if `together` suits counts better: if it predicts those that are left out
            with a smaller error (`left_out.py`).
    """

    def __init__(self, num_features: int, kind: Scaling = "auto", *, ask: bool = False) -> None:
        super().__init__()
        self.num_features, self.kind, self.ask = num_features, kind, ask
        self.register_buffer("shift", torch.zeros(num_features))
        self.register_buffer("scale", torch.ones(num_features))
        self.register_buffer("mode", torch.tensor(_MODES["none"], dtype=torch.int64))

    def learn(self, graph: Graph, seed: int) -> None:
        kind = self.kind
        if kind == "auto":
            kind = "standardise" if not looks_like_counts(graph.x) else _better_for_counts(graph, seed) if self.ask else "row"
        self.get_buffer("mode").fill_(_MODES[kind])
        if kind == "standardise":
            mean, spread = column_moments(graph.x)
            self.get_buffer("shift").copy_(mean)
            self.get_buffer("scale").copy_(torch.where(spread > 1e-8, 1.0 / spread.clamp(min=1e-8), 0.0))
        elif kind == "together":
            self.get_buffer("scale").fill_(1.0 / _usual_norm(FeatureMatrix.of_rows(graph.x)))

    def forward(self, graph: Graph) -> Graph:
        if graph.num_features != self.num_features:
            raise BadInput(f"x: found {graph.num_features} features; this model was made for {self.num_features}")
        return graph if int(self.get_buffer("mode")) == _MODES["none"] else graph.with_features(self.scaled(graph.features))

    def scaled(self, features: FeatureMatrix) -> FeatureMatrix:
        """Some nodes' features as the network sees them."""
        mode = int(self.get_buffer("mode"))
        if mode == _MODES["none"]:
            return features
        if mode == _MODES["row"]:
            return features.row_scaled()
        if mode == _MODES["together"]:
            return features.times(float(self.get_buffer("scale")[0]))
        return features.column_scaled(self.get_buffer("shift"), self.get_buffer("scale"))


def _usual_norm(features: FeatureMatrix) -> float:
    """The root of the mean squared norm of rows."""
    return max(float(features.row_norms().double().square().mean().sqrt()), 1e-12)


def _better_for_counts(graph: Graph, seed: int) -> Scaling:
    """`together` where rows scaled so predict training labels left out with a smaller error, otherwise `row`."""
    asked = asked_nodes(graph, seed)
    wanted = wanted_labels(graph.y[asked])
    if wanted is None:
        return "row"
    rows = FeatureMatrix.of_rows(rows_of(graph.x, asked))
    ways: tuple[Scaling, ...] = ("row", "together")
    columns = (rows.row_scaled(), rows.times(1.0 / _usual_norm(rows)))
    errors = [left_out_error(scaled.to_dense().double().numpy(), wanted) for scaled in columns]
    return ways[int(errors[1] < errors[0])]


def batch_stream(graph: Graph, seed: int, epoch: int) -> torch.Generator:
    """Of the dropout masks of an epoch; each batch of it has masks of its own."""
    return stream(seed, "dropout", epoch, *(() if graph.part is None else (graph.part.number,)))


class NodeModel(nn.Module, ABC):
    """A node classifier that can be trained, resumed, evaluated and reported.

    A model is a function of its weights, the graph and the seed; nothing is remembered between calls.
    """

    scaler: FeatureScaler
    takes_batches = False  # whether a batch of the graph can stand in for it: no table of all nodes, no spectrum, no distances

    def begin(self, graph: Graph, seed: int) -> None:
        """Called once before the first epoch, with the graph as the user gave it. What is learned here must go into buffers or
        parameters, so that a resumed or saved model has it; it may read training labels only."""
        self.scaler.learn(graph, seed)

    def parameter_groups(self, weight_decay: float) -> list[dict[str, Any]]:
        """What Adam optimises: decay on weight matrices and none on biases, norms, gammas, penalties and compatibilities.

        A group may hold `rate_factor`, which multiplies the learning rate of the run.
        """
        decayed, free = [], []
        for name, parameter in self.named_parameters():
            if parameter.requires_grad:
                (decayed if parameter.ndim >= 2 and "compatibility" not in name else free).append(parameter)
        return [{"params": decayed, "weight_decay": weight_decay}, {"params": free, "weight_decay": 0.0}]

    def edge_distribution(self, graph: Graph) -> SignDistribution | None:  # noqa: ARG002 - for models that judge edges
        """q(Z) of a prepared graph's edges, without gradient; None for a model that takes every edge as given."""
        return None

    def structure(self, graph: Graph) -> Graph:
        """The graph with the edges that the network sees, its features untouched: what batches are cut from."""
        return graph

    def node_columns(self, graph: Graph) -> dict[str, Tensor]:  # noqa: ARG002 - for models that know where a node stands
        """What the model knows of all nodes of the graph as it came, by name, (n, ...) each; batches bring their rows along."""
        return {}

    def training_parts(self, graph: Graph) -> int:  # noqa: ARG002 - for models that want more steps than epochs
        """In how many parts, drawn anew each epoch, a graph is to be trained on that could be taken whole; 1 for one step."""
        return 1

    def targets(self, graph: Graph, seed: int, epoch: int) -> Tensor:  # noqa: ARG002 - for models that hold labels back
        """(n,) bool: the training nodes that the loss of an epoch is taken on: the seeds of its batches."""
        return graph.train_mask

    @abstractmethod
    def prepare(self, graph: Graph) -> Graph:
        """The graph as the network sees it; the other methods take the prepared graph."""

    @abstractmethod
    def training_loss(self, graph: Graph, seed: int, epoch: int) -> dict[str, Tensor]:
        """Named parts of the loss of one epoch; the entry `loss` is minimised. Reads training labels only; of
        validation labels it may know what `validated` was told."""

    def readings(self, graph: Graph, seed: int, samples: int | None = None) -> tuple[Prediction, ...]:
        """The predictions that `predict` mixes; one for most models."""
        return (self.predict(graph, seed, samples),)

    def chosen_by(self) -> dict[str, int]:
        """Which reading's validation score chooses the epoch that weights are kept of, by how their names begin; the longest
        beginning counts. Networks that share no weights are each kept at their own best epoch."""
        return {"": 0}

    def weigh(self, likelihood: Sequence[Tensor], total: Callable[[Tensor], Tensor]) -> None:
        """Called when an epoch is validated, with the probability (R, v) that each reading gives to the labels of the
        validation nodes of each batch; `total` sums over all processes. A model of several readings finds their shares here."""

    def validated(self, accuracy: Sequence[float], nodes: int) -> None:
        """Called when an epoch is validated, with the accuracy of each reading on the validation nodes of all processes, and
        how many those are. A model may weigh the parts of its loss by them, as tuning on validation nodes would."""

    def believed(self) -> dict[str, float]:
        """The share of each reading in the prediction, by name; empty for a model that has one."""
        return {}

    def mixed(self, readings: Sequence[Prediction]) -> Prediction:
        """One prediction of what `readings` returned."""
        return readings[0]

    @abstractmethod
    def predict(self, graph: Graph, seed: int, samples: int | None = None) -> Prediction:
        """Class probabilities of every node, without gradient. Reads training labels at most."""
