"""A fitted estimator on disk: `estimator.json` for parameters and shape, `model.safetensors` for weights, `seen.safetensors`
for the split and labels it was fitted with, which are context when it predicts."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from spam_gnn.baselines.base import Shape
from spam_gnn.baselines.registry import find, settings_of_weights, tuples_from_json
from spam_gnn.calibration import Calibration
from spam_gnn.checkpoint import read_tensors, write_tensors
from spam_gnn.contract import NodeModel
from spam_gnn.errors import BadInput
from spam_gnn.files import make_folder, write_json
from spam_gnn.graph import Graph

FILE, WEIGHTS, SEEN = "estimator.json", "model.safetensors", "seen.safetensors"


@dataclass(frozen=True, eq=False)
class Seen:
    """Labels and split of the graph that an estimator was fitted on; `edges`, the SHA-256 of its edges, tells that graph."""

    edges: str
    y: Tensor
    train_mask: Tensor
    val_mask: Tensor
    test_mask: Tensor

    @staticmethod
    def of(graph: Graph) -> Seen:
        return Seen(_edges_of(graph), graph.y, graph.train_mask, graph.val_mask, graph.test_mask)

    def fits(self, graph: Graph) -> bool:
        """Whether `graph` is the one that was fitted."""
        return graph.num_nodes == self.y.numel() and _edges_of(graph) == self.edges

    def joined(self, graph: Graph) -> Graph:
        """The graph under this split; labels that it lacks are taken from here."""
        y = torch.where(graph.y >= 0, graph.y, self.y)
        if not torch.equal(y, graph.y):
            graph = replace(graph, y=y, num_classes=max(graph.num_classes, int(y.max()) + 1))
        return graph.with_masks(self.train_mask, self.val_mask, self.test_mask)

    def tensors(self) -> dict[str, Tensor]:
        return {name: value for name, value in vars(self).items() if isinstance(value, Tensor)}


def _edges_of(graph: Graph) -> str:
    return hashlib.sha256(graph.edge_index.contiguous().numpy().tobytes()).hexdigest()


@dataclass(frozen=True, eq=False)
class StoredEstimator:
    """What is written of a fitted estimator: parameters, the system and its settings, shape, model, calibration, and what it
    has seen (None in folders of older versions)."""

    params: dict[str, Any]
    name: str
    settings: Any
    shape: Shape
    model: NodeModel
    calibration: Calibration
    seen: Seen | None


def save_estimator(folder: Path, stored: StoredEstimator, class_names: tuple[str, ...]) -> None:
    """Weights first, the description last: a folder with a description is complete."""
    make_folder(folder)
    write_tensors(folder / WEIGHTS, stored.model.state_dict(), {})
    if stored.seen is not None:
        write_tensors(folder / SEEN, stored.seen.tensors(), {"edges": stored.seen.edges})
    write_json(folder / FILE, {
        "params": stored.params, "name": stored.name, "config": asdict(stored.settings), **asdict(stored.shape),
        "calibration": stored.calibration.to_json(), "class_names": class_names,
    })  # fmt: skip


def load_estimator(folder: Path) -> StoredEstimator:
    """The inverse of :func:`save_estimator`; folders written before there was a choice of systems hold SpaM."""
    path = folder / FILE
    try:
        stored = json.loads(path.read_text())
    except FileNotFoundError:
        raise BadInput(f"{path}: not found; give a folder that SpaMClassifier.save or NodeClassifier.save wrote") from None
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: cannot be read ({error}); save the estimator again") from None
    name = stored.get("name", "spam")
    settings = settings_of_weights(name, stored["config"])
    shape = Shape.stored(stored)
    model = find(name).make(shape, settings, 0)
    model.load_state_dict(read_tensors(folder / WEIGHTS)[0])
    calibration, seen = Calibration.from_json(stored), None
    if (folder / SEEN).exists():
        tensors, facts = read_tensors(folder / SEEN)
        seen = Seen(facts["edges"], **tensors)
    return StoredEstimator(tuples_from_json(stored["params"]), name, settings, shape, model, calibration, seen)
