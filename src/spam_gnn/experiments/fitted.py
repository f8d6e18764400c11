"""`Fitted`: a trained run in memory, as measures see it."""

from __future__ import annotations

from dataclasses import dataclass

from spam_gnn.contract import NodeModel
from spam_gnn.experiments.spec import RunSpec
from spam_gnn.graph import Graph
from spam_gnn.prediction import Prediction
from spam_gnn.training import TrainState


@dataclass(frozen=True, eq=False)
class Fitted:
    """One run after training.

    Args:
        spec: what was run.
        clean: the graph before any perturbation.
        graph: the graph the model was trained on.
        prepared: as the network sees it.
        model: with the weights of the selected epoch.
        state: of training.
        prediction: at those weights, the one that test metrics come from.
    """

    spec: RunSpec
    clean: Graph
    graph: Graph
    prepared: Graph
    model: NodeModel
    state: TrainState
    prediction: Prediction
