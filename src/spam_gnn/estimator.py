"""`NodeClassifier` and `SpaMClassifier`: the scikit-learn style front doors, for any system by name and for SpaM."""

from __future__ import annotations

import inspect
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from torch_geometric.data import Data

from spam_gnn.baselines.base import Shape
from spam_gnn.baselines.registry import find
from spam_gnn.calibration import Calibration, fit_calibration
from spam_gnn.config import SpaMConfig
from spam_gnn.contract import NodeModel
from spam_gnn.convert import as_graph
from spam_gnn.data.splits import random_split
from spam_gnn.errors import BadInput, one_of
from spam_gnn.explain import explain_node
from spam_gnn.graph import Graph
from spam_gnn.model import SpaM
from spam_gnn.prediction import Prediction
from spam_gnn.resources import use_threads
from spam_gnn.results import edge_table
from spam_gnn.storage import Seen, StoredEstimator, load_estimator, save_estimator
from spam_gnn.training import TrainConfig, fit

_TRAIN_FIELDS = tuple(f.name for f in fields(TrainConfig))
AS_DEFAULT = None  # a parameter left at None takes the system's own value (SpaM: the preset's)


class NodeClassifier(ClassifierMixin, BaseEstimator):
    """Node classification by any system of the registry.

    Every field of the system's settings and of `TrainConfig` is a parameter; one that is left at None takes the system's own
    value. Beside them: `random_state` (an int), `calibrate` (scale the probabilities by a temperature fitted on validation
    nodes), and `split` (which column of 2-d masks to use).

    `fit(data)` takes a `Graph` or a PyG `Data` with labels (-1 unknown) and masks. Without any mask, the labelled nodes are
    split 48/32/20 by class. Attributes after `fit`: `model_`, `classes_`, `n_features_in_`, `graph_`, `history_`,
    `calibration_`.

    Args:
        model: the name of a system, as `spam-gnn models` lists them.
        params: see above.

    Example:
        >>> from spam_gnn.data.synthetic import csbm
        >>> graph = csbm(nodes=90, seed=0)
        >>> NodeClassifier("gat", epochs=5, heads=2).fit(graph).predict_proba(graph).shape
        (90, 3)
    """

    _plain: ClassVar[dict[str, Any]] = {"random_state": 0, "calibrate": False, "split": None}
    model: str
    random_state: int
    calibrate: bool
    split: int | None

    def __init__(self, model: str = "gcn", **params: Any) -> None:
        self.model = find(model).name
        for name in params:
            one_of(name, self._parameter_names(), f"{type(self).__name__} parameter")
        for name in self._parameter_names():
            setattr(self, name, params.get(name, self._plain.get(name, AS_DEFAULT)))

    def _parameter_names(self) -> tuple[str, ...]:
        return (*self._plain, *_TRAIN_FIELDS, *(f.name for f in fields(find(self.model).settings)))

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002 - scikit-learn's signature
        """Name -> value of every parameter; None where the system's own value is taken."""
        chosen = {name: getattr(self, name, AS_DEFAULT) for name in self._parameter_names()}
        return {"model": self.model, **chosen}

    def set_params(self, **params: Any) -> Self:
        """Change parameters; with another `model`, those of that system are known from then on."""
        if "model" in params:
            self.model = find(params.pop("model")).name
        for name in params:
            one_of(name, self._parameter_names(), f"{type(self).__name__} parameter")
        return super().set_params(**params)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """The call that makes this estimator, parameters at their default left out, in alphabetical order."""
        usual = self._plain
        chosen = {n: v for n, v in sorted(self.get_params().items()) if v != usual.get(n, AS_DEFAULT)}
        return f"{type(self).__name__}({', '.join(f'{n}={v!r}' for n, v in chosen.items())})"

    def _defaults(self) -> Any:
        """The settings that parameters left at None take."""
        return find(self.model).settings

    def _settings(self) -> tuple[Any, TrainConfig]:
        params = self.get_params()
        own = [f.name for f in fields(find(self.model).settings)]
        model = {n: params[n] for n in own if params[n] is not AS_DEFAULT}
        train = {n: params[n] for n in _TRAIN_FIELDS if params[n] is not AS_DEFAULT}
        return self._defaults().with_settings(model), TrainConfig(**{**find(self.model).train, **train})

    def _graph(self, data: Graph | Data) -> Graph:
        return as_graph(data, self.split)

    def _seed(self) -> int:
        if not isinstance(self.random_state, int | np.integer):
            raise BadInput(f"random_state: found {self.random_state!r}; give a whole number, so that runs can be repeated")
        return int(self.random_state)

    def fit(self, data: Graph | Data, y: Any = None) -> Self:  # noqa: ARG002 - scikit-learn's signature
        """Train on the labelled nodes of `data`; labels and masks are part of the data."""
        graph, seed = self._graph(data), self._seed()
        if not bool(graph.train_mask.any() | graph.val_mask.any() | graph.test_mask.any()):
            graph = random_split(graph, seed)
        settings, train = self._settings()
        use_threads(graph, getattr(settings, "hidden", 64), getattr(settings, "samples", 1))
        model = find(self.model).make(Shape.of(graph), settings, seed)
        state = fit(model, graph, train, seed)
        self.graph_, self.history_ = graph, pd.DataFrame(state.history)
        shape, seen = Shape.of(graph), Seen.of(graph)
        self._take(StoredEstimator(self.get_params(), self.model, settings, shape, model, Calibration(), seen))
        if self.calibrate:
            self.calibration_ = fit_calibration(self._raw(graph), graph.y, graph.val_mask)
        return self

    def _take(self, stored: StoredEstimator) -> None:
        """What `fit` and `load` both leave behind."""
        self.model_, self.calibration_ = stored.model, stored.calibration
        self.classes_, self.n_features_in_ = np.arange(stored.shape.num_classes), stored.shape.num_features
        self._settings_, self._shape_, self._seen_ = stored.settings, stored.shape, stored.seen

    def _fitted(self) -> NodeModel:
        if not hasattr(self, "model_"):
            raise NotFittedError(f"This {type(self).__name__} is not fitted yet; call fit(data) first.")
        return self.model_

    def _context(self, graph: Graph) -> Graph:
        """On the graph it was fitted on, with the split it was fitted with and the labels it has seen, where `graph` comes
        without them; on another, with that graph's own."""
        seen = self._seen_
        return graph if seen is None or bool(graph.train_mask.any()) or not seen.fits(graph) else seen.joined(graph)

    def _raw(self, graph: Graph) -> Prediction:
        model = self._fitted()
        return model.predict(model.prepare(self._context(graph)), self._seed())

    def predict_distribution(self, data: Graph | Data) -> Prediction:
        """The full `Prediction`: per-sample probabilities and total, aleatoric and structural uncertainty."""
        self._fitted()
        return self.calibration_(self._raw(self._graph(data)))

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

    def save(self, folder: str | Path) -> None:
        """Write weights, parameters, and the split and labels it was fitted with to `folder` (safetensors and JSON)."""
        model = self._fitted()
        stored = StoredEstimator(
            self.get_params(), self.model, self._settings_, self._shape_, model, self.calibration_, self._seen_
        )
        names = self.graph_.class_names if hasattr(self, "graph_") else tuple(str(c) for c in self.classes_)
        save_estimator(Path(folder), stored, names)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read what :meth:`save` wrote; predicts as the estimator that was saved."""
        stored = load_estimator(Path(folder))
        kind = NodeClassifier if "model" in stored.params else SpaMClassifier
        if not issubclass(kind, cls):
            raise BadInput(f"{folder}: holds a {kind.__name__} of '{stored.name}'; read it with {kind.__name__}.load")
        self = kind(**stored.params)
        self._take(stored)
        return self  # pyright: ignore[reportReturnType] - `kind` is `cls` or below it, as was just checked


class SpaMClassifier(NodeClassifier):
    """Node classification on a graph whose edges cannot be trusted.

    Every field of `SpaMConfig` and `TrainConfig` is a parameter; one that is left at None takes the value of `preset`. The
    rest is as for :class:`NodeClassifier`; `edge_posterior` and `explain` say what the edges are worth.

    Example:
        >>> from spam_gnn.data.synthetic import csbm
        >>> graph = csbm(nodes=90, seed=0)
        >>> SpaMClassifier(epochs=5, hidden=8).fit(graph).predict_proba(graph).shape
        (90, 3)
    """

    _plain: ClassVar[dict[str, Any]] = {"preset": "default", **NodeClassifier._plain}
    preset: str

    def __init__(self, **params: Any) -> None:
        for name in params:
            one_of(name, self._names(), "SpaMClassifier parameter")
        super().__init__("spam", **params)

    @classmethod
    def _names(cls) -> tuple[str, ...]:
        return (*cls._plain, *_TRAIN_FIELDS, *(f.name for f in fields(SpaMConfig)))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Name -> value of every parameter; None where the preset's value is taken."""
        return {name: value for name, value in super().get_params(deep).items() if name != "model"}

    def _defaults(self) -> SpaMConfig:
        return SpaMConfig.preset(self.preset)

    def _spam(self) -> SpaM:
        model = self._fitted()
        assert isinstance(model, SpaM)
        return model

    def edge_posterior(self, data: Graph | Data) -> pd.DataFrame:
        """One row per edge: source, target, p_negative, p_absent, p_positive, verdict."""
        model = self._spam()
        graph = model.prepare(self._context(self._graph(data)))
        return edge_table(model.edge_distribution(graph), graph, names=graph.node_names is not None)

    def explain(self, data: Graph | Data, node: int, samples: int = 64) -> pd.DataFrame:
        """One row per neighbour of `node`: edge posterior, coefficient mean and spread, signed contribution, verdict."""
        return explain_node(self._spam(), self._context(self._graph(data)), node, self._seed(), samples)


def _signature() -> inspect.Signature:
    """An explicit parameter list, which scikit-learn reads and an editor shows."""
    kind = inspect.Parameter.KEYWORD_ONLY
    own = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    defaults = {name: SpaMClassifier._plain.get(name, AS_DEFAULT) for name in SpaMClassifier._names()}
    return inspect.Signature([*own, *(inspect.Parameter(n, kind, default=d) for n, d in defaults.items())])


SpaMClassifier.__init__.__signature__ = _signature()  # pyright: ignore[reportFunctionMemberAccess]
