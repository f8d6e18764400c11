"""`SpaMClassifier`: the scikit-learn style front door."""

from __future__ import annotations

import inspect
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from torch_geometric.data import Data

from spam_gnn.config import SpaMConfig
from spam_gnn.convert import as_graph
from spam_gnn.data.splits import random_split
from spam_gnn.errors import BadInput, one_of
from spam_gnn.explain import explain_node
from spam_gnn.graph import Graph
from spam_gnn.model import SpaM
from spam_gnn.prediction import Prediction, fit_temperature
from spam_gnn.resources import use_threads
from spam_gnn.results import edge_table
from spam_gnn.storage import load_estimator, save_estimator
from spam_gnn.training import TrainConfig, fit

_MODEL_FIELDS = tuple(f.name for f in fields(SpaMConfig))
_TRAIN_FIELDS = tuple(f.name for f in fields(TrainConfig))
_PLAIN = {"preset": "default", "random_state": 0, "calibrate": False, "split": None}
AS_PRESET = None  # a parameter left at None takes the preset's value


class SpaMClassifier(ClassifierMixin, BaseEstimator):
    """Node classification on a graph whose edges cannot be trusted.

    Every field of `SpaMConfig` and `TrainConfig` is a parameter; one that is left at None takes the value of `preset`. Beside
    them: `random_state` (an int), `calibrate` (scale the probabilities by a temperature fitted on validation nodes), and
    `split` (which column of 2-d masks to use).

    `fit(data)` takes a `Graph` or a PyG `Data` with labels (-1 unknown) and masks. Without any mask, the labelled nodes are
    split 48/32/20 by class. Attributes after `fit`: `model_`, `classes_`, `n_features_in_`, `graph_`, `history_`,
    `temperature_`.

    Example:
        >>> from spam_gnn.data.synthetic import csbm
        >>> graph = csbm(nodes=90, seed=0)
        >>> SpaMClassifier(epochs=5, hidden=8).fit(graph).predict_proba(graph).shape
        (90, 3)
    """

    preset: str
    random_state: int
    calibrate: bool
    split: int | None

    def __init__(self, **params: Any) -> None:
        for name in params:
            one_of(name, (*_PLAIN, *_TRAIN_FIELDS, *_MODEL_FIELDS), "SpaMClassifier parameter")
        for name, default in _PLAIN.items():
            setattr(self, name, params.get(name, default))
        for name in (*_TRAIN_FIELDS, *_MODEL_FIELDS):
            setattr(self, name, params.get(name, AS_PRESET))

    def _settings(self) -> tuple[SpaMConfig, TrainConfig]:
        chosen = {n: getattr(self, n) for n in (*_MODEL_FIELDS, *_TRAIN_FIELDS) if getattr(self, n) is not AS_PRESET}
        model = {n: v for n, v in chosen.items() if n in _MODEL_FIELDS}
        train = {n: v for n, v in chosen.items() if n in _TRAIN_FIELDS}
        return SpaMConfig.preset(self.preset).with_settings(model), TrainConfig(**train)

    def _graph(self, data: Graph | Data) -> Graph:
        return as_graph(data, self.split)

    def _seed(self) -> int:
        if not isinstance(self.random_state, int | np.integer):
            raise BadInput(f"random_state: found {self.random_state!r}; give a whole number, so that runs can be repeated")
        return int(self.random_state)

    def fit(self, data: Graph | Data, y: Any = None) -> SpaMClassifier:  # noqa: ARG002 - scikit-learn's signature
        """Train on the labelled nodes of `data`; labels and masks are part of the data."""
        graph, seed = self._graph(data), self._seed()
        if not bool(graph.train_mask.any() | graph.val_mask.any() | graph.test_mask.any()):
            graph = random_split(graph, seed)
        config, train = self._settings()
        use_threads(graph, config.hidden, config.samples)
        model = SpaM(graph.num_features, graph.num_classes, config, seed)
        state = fit(model, graph, train, seed)
        self.model_, self.graph_ = model, graph
        self.classes_ = np.arange(graph.num_classes)
        self.n_features_in_ = graph.num_features
        self.history_ = pd.DataFrame(state.history)
        self.temperature_ = 1.0
        if self.calibrate:
            self.temperature_ = fit_temperature(self._raw(graph), graph.y, graph.val_mask)
        return self

    def _fitted(self) -> SpaM:
        if not hasattr(self, "model_"):
            raise NotFittedError("This SpaMClassifier is not fitted yet; call fit(data) first.")
        return self.model_

    def _context(self, graph: Graph) -> Graph:
        """On the graph it was fitted on, with the split it was fitted with; on another, with that graph's own masks."""
        same = hasattr(self, "graph_") and graph.num_nodes == self.graph_.num_nodes
        if not bool(graph.train_mask.any()) and same and torch.equal(graph.edge_index, self.graph_.edge_index):
            return graph.with_masks(self.graph_.train_mask, self.graph_.val_mask, self.graph_.test_mask)
        return graph

    def _raw(self, graph: Graph) -> Prediction:
        model = self._fitted()
        return model.predict(model.prepare(self._context(graph)), self._seed())

    def predict_distribution(self, data: Graph | Data) -> Prediction:
        """The full `Prediction`: per-sample probabilities and total, aleatoric and structural uncertainty."""
        self._fitted()
        raw = self._raw(self._graph(data))
        return raw if self.temperature_ == 1.0 else raw.tempered(self.temperature_)

    def predict_proba(self, data: Graph | Data) -> np.ndarray:
        """(n, C) averaged probabilities of every node."""
        return self.predict_distribution(data).probability.numpy()

    def predict(self, data: Graph | Data) -> np.ndarray:
        """(n,) the most probable class of every node."""
        probability = self.predict_proba(data)
        return self.classes_[probability.argmax(1)]

    def score(self, data: Graph | Data, y: Any = None, sample_weight: Any = None) -> float:  # noqa: ARG002  # pyright: ignore[reportIncompatibleMethodOverride]
        """Accuracy on the test nodes; on all labelled nodes where there is no test mask."""
        self._fitted()
        graph = self._context(self._graph(data))
        mask = graph.test_mask if bool(graph.test_mask.any()) else graph.y >= 0
        right = torch.from_numpy(self.predict(data)) == graph.y
        return float(right[mask].float().mean())

    def edge_posterior(self, data: Graph | Data) -> pd.DataFrame:
        """One row per edge: source, target, p_negative, p_absent, p_positive, verdict."""
        model = self._fitted()
        graph = model.prepare(self._context(self._graph(data)))
        return edge_table(model.edge_distribution(graph), graph, names=graph.node_names is not None)

    def explain(self, data: Graph | Data, node: int, samples: int = 64) -> pd.DataFrame:
        """One row per neighbour of `node`: edge posterior, coefficient mean and spread, signed contribution, verdict."""
        model = self._fitted()
        return explain_node(model, self._context(self._graph(data)), node, self._seed(), samples)

    def save(self, folder: str | Path) -> None:
        """Write weights and parameters to `folder` (safetensors and JSON)."""
        save_estimator(Path(folder), self.get_params(), self._fitted(), self.temperature_, self.graph_)

    @staticmethod
    def load(folder: str | Path) -> SpaMClassifier:
        """Read what :meth:`save` wrote; predicts without anything else."""
        params, model, temperature = load_estimator(Path(folder))
        self = SpaMClassifier(**params)
        self.model_, self.temperature_ = model, temperature
        self.classes_, self.n_features_in_ = np.arange(model.num_classes), model.num_features
        return self


def _signature() -> inspect.Signature:
    """An explicit parameter list, which scikit-learn reads for get_params, clone and repr."""
    defaults = {**_PLAIN, **dict.fromkeys((*_TRAIN_FIELDS, *_MODEL_FIELDS), AS_PRESET)}
    kind = inspect.Parameter.KEYWORD_ONLY
    own = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    return inspect.Signature([*own, *(inspect.Parameter(n, kind, default=d) for n, d in defaults.items())])


SpaMClassifier.__init__.__signature__ = _signature()  # pyright: ignore[reportFunctionMemberAccess]
