"""A fitted estimator on disk: `estimator.json` for parameters and shape, `model.safetensors` for weights."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from spam_gnn.baselines.base import Shape
from spam_gnn.baselines.registry import find, settings_from_json, tuples_from_json
from spam_gnn.checkpoint import read_tensors, write_tensors
from spam_gnn.contract import NodeModel
from spam_gnn.errors import BadInput
from spam_gnn.files import make_folder, write_json

FILE, WEIGHTS = "estimator.json", "model.safetensors"


@dataclass(frozen=True, eq=False)
class StoredEstimator:
    """What is written of a fitted estimator: parameters, the system and its settings, shape, model, temperature."""

    params: dict[str, Any]
    name: str
    settings: Any
    shape: Shape
    model: NodeModel
    temperature: float


def save_estimator(folder: Path, stored: StoredEstimator, class_names: tuple[str, ...]) -> None:
    """Weights first, the description last: a folder with a description is complete."""
    make_folder(folder)
    write_tensors(folder / WEIGHTS, stored.model.state_dict(), {})
    write_json(folder / FILE, {
        "params": stored.params, "name": stored.name, "config": asdict(stored.settings), **asdict(stored.shape),
        "temperature": stored.temperature, "class_names": class_names,
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
    settings = settings_from_json(name, stored["config"])
    shape = Shape.stored(stored)
    model = find(name).make(shape, settings, 0)
    model.load_state_dict(read_tensors(folder / WEIGHTS)[0])
    return StoredEstimator(tuples_from_json(stored["params"]), name, settings, shape, model, stored["temperature"])
