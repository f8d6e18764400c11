"""A fitted estimator on disk: `estimator.json` for parameters and shape, `model.safetensors` for weights."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from spam_gnn.checkpoint import read_tensors, write_tensors
from spam_gnn.config import SpaMConfig
from spam_gnn.errors import BadInput
from spam_gnn.files import make_folder, write_json
from spam_gnn.graph import Graph
from spam_gnn.model import SpaM

FILE, WEIGHTS = "estimator.json", "model.safetensors"


def save_estimator(folder: Path, params: dict[str, Any], model: SpaM, temperature: float, graph: Graph) -> None:
    """Weights first, the description last: a folder with a description is complete."""
    make_folder(folder)
    write_tensors(folder / WEIGHTS, model.state_dict(), {})
    write_json(folder / FILE, {
        "params": params, "config": asdict(model.config), "num_features": model.num_features,
        "num_classes": model.num_classes, "temperature": temperature, "class_names": graph.class_names,
    })  # fmt: skip


def load_estimator(folder: Path) -> tuple[dict[str, Any], SpaM, float]:
    """Parameters, the model with its weights, and the temperature."""
    path = folder / FILE
    try:
        stored = json.loads(path.read_text())
    except FileNotFoundError:
        raise BadInput(f"{path}: not found; give a folder that SpaMClassifier.save wrote") from None
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: cannot be read ({error}); save the estimator again") from None
    config = stored["config"]
    config["prior_probabilities"] = tuple(config["prior_probabilities"])
    model = SpaM(stored["num_features"], stored["num_classes"], SpaMConfig(**config))
    model.load_state_dict(read_tensors(folder / WEIGHTS)[0])
    return stored["params"], model, stored["temperature"]
