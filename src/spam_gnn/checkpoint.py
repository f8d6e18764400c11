"""Weights and training state on disk: safetensors for tensors, JSON for the rest, no pickle anywhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from spam_gnn.contract import NodeModel
from spam_gnn.errors import BadInput
from spam_gnn.files import write_durably
from spam_gnn.training import TrainConfig, TrainState, make_optimiser


def write_tensors(path: Path, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
    """One safetensors file; `facts` travel in its header as JSON, so that both are whole or absent together."""
    contiguous = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
    write_durably(path, safetensors.torch.save(contiguous, metadata={"spam_gnn": json.dumps(facts)}))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The inverse of :func:`write_tensors`."""
    try:
        with safetensors.safe_open(str(path), framework="pt") as handle:
            tensors = {name: handle.get_tensor(name) for name in handle.keys()}  # noqa: SIM118 - not a dict
            facts = json.loads((handle.metadata() or {}).get("spam_gnn", "{}"))
    except FileNotFoundError:
        raise BadInput(f"{path}: not found; give a folder that `spam-gnn train` wrote") from None
    except (safetensors.SafetensorError, OSError, ValueError) as error:
        raise BadInput(f"{path}: not a readable safetensors file ({error}); train again or restore a copy") from None
    return tensors, facts


def save_state(path: Path, state: TrainState, model: NodeModel, optimiser: torch.optim.Optimizer) -> None:
    """All that the next epoch depends on, in one file."""
    tensors = {f"model/{name}": value for name, value in model.state_dict().items()}
    tensors |= {f"best/{name}": value for name, value in state.best_weights.items()}
    for index, entries in optimiser.state_dict()["state"].items():
        tensors |= {f"optimiser/{index}/{name}": value for name, value in entries.items()}
    facts = {
        "epoch": state.epoch, "best_epoch": state.best_epoch,
        "best_scores": {part: [float(v).hex() for v in score] for part, score in state.best_scores.items()},
        "learning_rate": state.learning_rate.hex(), "last_decay": state.last_decay, "seconds": state.seconds,
        "history": state.history, "finished": state.finished,
    }  # fmt: skip
    write_tensors(path, tensors, facts)


def parse_tensors(path: Path, content: bytes) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """As :func:`read_tensors`, of a file that has been read already; `path` is what errors call it."""
    try:
        size = int.from_bytes(content[:8], "little")
        header = json.loads(content[8 : 8 + size])
        return safetensors.torch.load(content), json.loads(header.get("__metadata__", {}).get("spam_gnn", "{}"))
    except (safetensors.SafetensorError, ValueError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: not a readable safetensors file ({error}); train again or restore a copy") from None


def load_state(
    path: Path, model: NodeModel, config: TrainConfig, content: bytes | None = None
) -> tuple[TrainState, torch.optim.Optimizer]:
    """Put the weights back into `model` and return the state and optimiser to continue with.

    With `content`, the file has been read already, by another process perhaps.
    """
    tensors, facts = read_tensors(path) if content is None else parse_tensors(path, content)
    parts: dict[str, dict[str, Tensor]] = {"model": {}, "best": {}, "optimiser": {}}
    for name, tensor in tensors.items():
        group, _, rest = name.partition("/")
        parts[group][rest] = tensor
    try:
        model.load_state_dict(parts["model"])
    except RuntimeError:
        raise BadInput(f"{path}: belongs to a model of another shape; resume with the settings it was started with") from None
    optimiser = make_optimiser(model, config)
    frame = optimiser.state_dict()
    for name, tensor in parts["optimiser"].items():
        index, _, entry = name.partition("/")
        frame["state"].setdefault(int(index), {})[entry] = tensor
    optimiser.load_state_dict(frame)
    scores = {part: (float.fromhex(a), float.fromhex(b)) for part, (a, b) in facts["best_scores"].items()}
    state = TrainState(
        facts["epoch"], facts["best_epoch"], scores, parts["best"], float.fromhex(facts["learning_rate"]),
        facts["last_decay"], facts["seconds"], facts["history"], facts["finished"],
    )  # fmt: skip
    return state, optimiser
