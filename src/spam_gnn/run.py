"""A run folder: train or continue, then write weights, metrics, predictions, edges and report, each file whole or absent."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy
import torch
import torch_geometric

from spam_gnn.baselines.base import Shape
from spam_gnn.baselines.registry import find, settings_of_weights, tuples_from_json
from spam_gnn.calibration import Calibration
from spam_gnn.checkpoint import load_state, read_tensors, save_state, write_tensors
from spam_gnn.contract import NodeModel
from spam_gnn.data.reading import ColumnFact, ColumnPlan
from spam_gnn.errors import BadInput, Diverged, Interrupted
from spam_gnn.files import make_folder, remove_leftovers, write_json
from spam_gnn.graph import Graph
from spam_gnn.loading.batched import check_feed
from spam_gnn.results import RESULTS, write_results
from spam_gnn.settings import BatchConfig, TrainConfig
from spam_gnn.source import DataSource
from spam_gnn.team import Team
from spam_gnn.training import ALONE, TAKEN_WHOLE, TrainState, check_trainable, fit
from spam_gnn.version import __version__

CONFIG, MODEL, CHECKPOINT, METRICS = "config.json", "model.safetensors", "checkpoint.safetensors", "metrics.json"
WRITTEN = (MODEL, CHECKPOINT, METRICS, *RESULTS)  # all that a run writes beside its configuration


@dataclass(frozen=True)
class RunSettings:
    """All that a run depends on; the content of `config.json`. `model` holds the settings of the system called `name`."""

    source: DataSource
    model: Any
    train: TrainConfig
    split: int = 0
    seed: int = 0
    calibrate: bool = False
    name: str = "spam"
    batches: BatchConfig = TAKEN_WHOLE

    def to_json(self) -> dict[str, Any]:
        return {
            "source": self.source.to_json(), "name": self.name, "model": asdict(self.model), "train": asdict(self.train),
            "split": self.split, "seed": self.seed, "calibrate": self.calibrate, "batches": asdict(self.batches),
        }  # fmt: skip

    @staticmethod
    def from_json(value: dict[str, Any]) -> RunSettings:
        name = value.get("name", "spam")  # folders from before there was a choice
        return RunSettings(
            DataSource.from_json(value["source"]), settings_of_weights(name, value["model"]), TrainConfig(**value["train"]),
            value["split"], value["seed"], value["calibrate"], name, BatchConfig(**tuples_from_json(value.get("batches", {}))),
        )  # fmt: skip


Progress = Callable[[TrainState], None]


def train_run(
    settings: RunSettings,
    folder: Path,
    *,
    resume: bool = False,
    progress: Progress | None = None,
    stop_requested: Callable[[], int | None] | None = None,
    checkpoint_seconds: float = 5.0,
    graph: Graph | None = None,
    columns: tuple[ColumnFact, ...] = (),
    team: Team = ALONE,
    plan: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Train in `folder` and return the metrics. An interrupted run continues with `resume`, to bit-identical weights.

    `stop_requested` is asked after every epoch; an exit code instead of None saves the state and raises `Interrupted`.
    `graph`, where it is loaded already, comes with what was understood of its `columns`, which the folder remembers. Of a
    `team`, every process calls this; the first one writes, the others return no metrics. `plan` goes into the record.
    """
    if graph is None:
        reading = settings.source.open(settings.split, settings.seed)
        graph, columns = reading.graph, reading.columns
    check_trainable(graph, settings.train)
    model = find(settings.name).make(Shape.of(graph), settings.model, settings.seed)
    check_feed(model, graph, settings.batches, team)
    begun = team.rank == 0 and _claim(
        folder, settings, {**asdict(Shape.of(graph)), "class_names": graph.class_names,
                           "columns": [asdict(column) for column in columns]}, resume)  # fmt: skip
    checkpoint = folder / CHECKPOINT
    state = optimiser = None
    kept = team.from_first(checkpoint.read_bytes() if team.rank == 0 and resume and checkpoint.exists() else b"")
    if kept:
        state, optimiser = load_state(checkpoint, model, settings.train, kept)
    saved: float | None = None  # counted from the end of the first epoch: before it, loops may have been compiled

    def after_epoch(now: TrainState, model: NodeModel, optimiser: torch.optim.Optimizer) -> None:
        nonlocal saved
        saved = time.monotonic() if saved is None else saved
        stop = team.agreed(None if stop_requested is None else stop_requested())
        if team.rank == 0 and (stop is not None or time.monotonic() - saved >= checkpoint_seconds):
            save_state(checkpoint, now, model, optimiser)
            saved = time.monotonic()
        if stop is not None:  # only here, between epochs, is the state one that can be continued bit for bit
            raise Interrupted(f"{folder}: stopped after {now.epoch} epochs; continue with --resume --out {folder}", stop)
        if progress is not None:
            progress(now)

    try:
        state = fit(
            model, graph, settings.train, settings.seed, state=state, optimiser=optimiser, on_epoch=after_epoch,
            batches=settings.batches, team=team,
        )  # fmt: skip
    except (BadInput, Diverged):
        if begun and not checkpoint.exists():  # nothing to be continued: the same --out is free for another try
            _leave(folder)
        raise
    return _conclude(folder, settings, model, graph, state, team, plan) if team.rank == 0 else {}


def _conclude(
    folder: Path, settings: RunSettings, model: NodeModel, graph: Graph, state: TrainState, team: Team,
    plan: dict[str, Any] | None,
) -> dict[str, Any]:  # fmt: skip
    """Write what a trained model says, its weights and metrics; the checkpoint is of no use any more."""
    metrics = write_results(
        folder, model, find(settings.name).title, graph, state, settings.split, settings.seed, settings.calibrate,
        in_pieces=settings.batches.kind != "whole",
    ) | {"batches": settings.batches.kind, "processes": team.size, "memory_plan": plan}  # fmt: skip
    write_tensors(folder / MODEL, model.state_dict(), {"calibration": metrics["calibration"]})
    write_json(folder / METRICS, metrics)
    (folder / CHECKPOINT).unlink(missing_ok=True)
    return metrics


def _claim(folder: Path, settings: RunSettings, about_graph: dict[str, Any], resume: bool) -> bool:
    """Take a folder for a new run (true), or one to be resumed with the same settings; never overwrite another run, nor files
    that no run wrote: the user's own tables may have the names of results."""
    existing = folder / CONFIG
    if existing.exists() and not resume:
        raise BadInput(f"{folder}: holds a run already; add --resume to continue it, or choose another --out")
    in_the_way = [name for name in WRITTEN if (folder / name).exists()]
    if in_the_way and not existing.exists():
        raise BadInput(f"{folder / in_the_way[0]}: found, and the run would write over it; choose another --out")
    make_folder(folder)
    remove_leftovers(folder)
    if existing.exists():
        stored = read_settings(folder)
        if stored != settings:
            names = _differences(stored.to_json(), settings.to_json())
            raise BadInput(f"{existing}: was started with other settings ({names}); use those, or choose another --out")
        return False
    about = {
        "spam_gnn": __version__, "torch": torch.__version__, "torch_geometric": torch_geometric.__version__,
        "numpy": numpy.__version__, "python": platform.python_version(),
    }  # fmt: skip
    write_json(existing, {**settings.to_json(), "graph": about_graph, "versions": about})
    return True


def _leave(folder: Path) -> None:
    """Give back a folder in which nothing but the configuration was written."""
    (folder / CONFIG).unlink(missing_ok=True)
    if not any(folder.iterdir()):
        folder.rmdir()


def _differences(a: dict[str, Any], b: dict[str, Any], prefix: str = "") -> str:
    names = []
    for key in a:
        if isinstance(a[key], dict):
            inner = _differences(a[key], b[key], f"{prefix}{key}.")
            names += [inner] if inner else []
        elif a[key] != b.get(key):
            names.append(f"{prefix}{key}: {a[key]} there, {b.get(key)} now")
    return ", ".join(names)


def _read_config(folder: Path) -> dict[str, Any]:
    path = folder / CONFIG
    try:
        return json.loads(path.read_text())
    except (FileNotFoundError, NotADirectoryError):
        splits = sorted(folder.glob(f"split-*/{CONFIG}"))
        advice = f"this folder holds several splits, give one of them: {splits[0].parent}" if splits else (
            "give a folder that `spam-gnn train` wrote")  # fmt: skip
        raise BadInput(f"{path}: not found; {advice}") from None
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: cannot be read ({error}); restore it, or train again") from None


def read_settings(folder: Path) -> RunSettings:
    """The settings a run folder was started with."""
    try:
        return RunSettings.from_json(_read_config(folder))
    except (KeyError, TypeError) as error:
        raise BadInput(f"{folder / CONFIG}: not a configuration of this version ({error}); train again") from None


def column_plan(folder: Path) -> ColumnPlan | None:
    """What the run expects of another file; None where it knows no columns: a dataset by name, a folder of an older version."""
    graph = _read_config(folder)["graph"]
    columns = tuple(ColumnFact(**{**column, "values": tuple(column["values"])}) for column in graph.get("columns", ()))
    return ColumnPlan(columns, tuple(graph["class_names"])) if columns else None


def load_run(folder: Path) -> tuple[NodeModel, RunSettings, Calibration, tuple[str, ...]]:
    """A finished run: the model, its settings, what is done to its probabilities, the class names."""
    settings, shape = read_settings(folder), _read_config(folder)["graph"]
    if (folder / CHECKPOINT).exists() and not (folder / MODEL).exists():
        raise BadInput(f"{folder}: training has not finished; continue with --resume --out {folder}")
    weights, facts = read_tensors(folder / MODEL)
    sizes = Shape.stored(shape)
    model = find(settings.name).make(sizes, settings.model, settings.seed)
    model.load_state_dict(weights)
    return model, settings, Calibration.from_json(facts), tuple(shape["class_names"])
