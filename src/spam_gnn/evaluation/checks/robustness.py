"""Awkward graphs are survived, impossible ones refused with one line, and NaN is never swallowed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch

from spam_gnn.baselines.base import Shape
from spam_gnn.contract import NodeModel
from spam_gnn.errors import BadInput, Diverged, SpamError
from spam_gnn.evaluation.checks.graphs import awkward_graphs, hand_made, ring
from spam_gnn.evaluation.checks.lab import Check, Lab, ensure
from spam_gnn.graph import Graph
from spam_gnn.training import TrainState, fit

_EPOCHS = 2


def _survives(name: str) -> Callable[[Lab], None]:
    def run(lab: Lab) -> None:
        graph = awkward_graphs()[name]
        prediction = lab.predict(lab.train(graph, _EPOCHS), graph)
        found = tuple(prediction.log_prob.shape[1:])
        ensure(found == (graph.num_nodes, graph.num_classes), f"predictions have shape {found}")
        ensure(bool(torch.isfinite(prediction.probability).all()), "a probability is NaN or infinite")

    return run


def _refused(lab: Lab, attempt: Callable[[], object], what: str, kind: type[SpamError] = BadInput) -> None:
    try:
        attempt()
    except kind as error:
        ensure("\n" not in str(error), f"{what}: the message has several lines")
        return
    raise AssertionError(f"{lab.subject.name}: {what} was accepted; raise {kind.__name__}")


def _one_training_class(lab: Lab) -> None:
    graph = replace(lab.small, train_mask=lab.small.train_mask & (lab.small.y == 0))
    _refused(lab, lambda: lab.train(graph, _EPOCHS), "a training set of one class")


def _one_class(lab: Lab) -> None:
    graph = hand_made(6, ring(6), classes=1)

    def attempt() -> None:
        model = lab.subject.make(Shape.of(graph), lab.seed)
        fit(model, graph, lab.config(_EPOCHS, select=False), lab.seed)

    _refused(lab, attempt, "a graph with one class")


def _wrong_features(lab: Lab) -> None:
    wide = Graph.build(torch.cat([lab.easy.x, lab.easy.x[:, :1]], 1), lab.easy.edge_index, lab.easy.y, directed=False)
    _refused(lab, lambda: lab.predict(lab.learned, wide), "a graph with one feature more")


def _nan_weights(lab: Lab) -> None:
    def poison(state: TrainState, model: NodeModel, *_: object) -> None:
        if state.epoch == 1:
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.fill_(float("nan"))

    _refused(lab, lambda: lab.train(lab.small, _EPOCHS, hook=poison), "a model whose weights are NaN", Diverged)


def _nan_features(lab: Lab) -> None:
    """`Graph.build` refuses NaN; where it comes in another way, training must not go on as if nothing were."""
    x = lab.small.x.clone()
    x[int(lab.small.train_mask.nonzero()[0])] = float("nan")
    _refused(lab, lambda: Graph.build(x, lab.small.edge_index), "a table of features with NaN")
    _refused(lab, lambda: lab.train(replace(lab.small, x=x), _EPOCHS), "a graph with NaN in its features", SpamError)


CHECKS = (
    *(Check(f"survives_{name}", _survives(name), ("probabilities_are_finite",)) for name in awkward_graphs()),
    Check("refuses_one_training_class", _one_training_class, ("trains",)),
    Check("refuses_one_class", _one_class, ("trains",)),
    Check("refuses_another_number_of_features", _wrong_features, ("probabilities_are_finite",)),
    Check("nan_weights_stop_training", _nan_weights, ("trains",)),
    Check("nan_features_stop_training", _nan_features, ("trains", "nan_weights_stop_training")),
)
