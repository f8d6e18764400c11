"""`spam-gnn train`: one split or all of them, a system and any references on the same ones."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from spam_gnn.baselines.base import System
from spam_gnn.baselines.registry import find, make_baseline, systems
from spam_gnn.commands.console import OUT, epoch_bar, mean_and_spread, polite_stop, table
from spam_gnn.commands.options import GraphOptions
from spam_gnn.commands.parse import parse_settings
from spam_gnn.commands.planning import planned
from spam_gnn.config import SpaMConfig
from spam_gnn.distributed import gathered
from spam_gnn.errors import BadInput, one_of
from spam_gnn.evaluation.metrics import node_metrics
from spam_gnn.files import write_json
from spam_gnn.graph import Graph
from spam_gnn.launch import run_workers
from spam_gnn.resources import MemoryLimit, use_threads
from spam_gnn.run import CONFIG, METRICS, RunSettings, read_settings, train_run
from spam_gnn.settings import BatchConfig, TrainConfig
from spam_gnn.source import DataSource
from spam_gnn.team import Team
from spam_gnn.training import fit


@dataclass(frozen=True)
class TrainRequest:
    """The options of `train`, as typed."""

    graph: GraphOptions
    split: str
    protocol: str | None
    seed: int
    epochs: int | None
    preset: str
    model: str
    settings: list[str]
    beside: str
    calibrate: bool
    device: str
    out: Path
    resume: bool
    batches: BatchConfig
    there: MemoryLimit
    workers: int = 1
    arguments: tuple[str, ...] = ()  # the command line itself


def run_training(request: TrainRequest) -> int:
    """Check everything that can be checked, train, and say where the results are; returns the exit code.

    With `--workers`, the same command line is run by as many processes, which find themselves in a team.
    """
    if request.workers > 1 and "RANK" not in os.environ:
        _settings(request)  # a mistake is said once, by this process
        advice = f"continue with --resume --workers {request.workers} --out {request.out}"
        return run_workers(request.workers, list(request.arguments), advice)
    with gathered() as team:
        _train_all(request, team)
    return 0


def _train_all(request: TrainRequest, team: Team) -> None:
    if request.device != "cpu":
        raise BadInput(f"--device: found '{request.device}'; this version computes on cpu")
    named = [one_of(name.strip(), tuple(systems()), "--beside") for name in request.beside.split(",") if name.strip()]
    references = tuple(dict.fromkeys(named))
    if references and team.size > 1:
        raise BadInput(f"--beside: found '{request.beside}' for {team.size} processes; train references in a run of their own")
    settings, chosen = _settings(request)
    if settings.name in references:
        raise BadInput(f"--beside: found '{settings.name}', the system that is trained; name others")
    splits = _splits(request.split, settings.source)
    _check_folder(request.out, several=len(splits) > 1)
    rows: list[dict[str, Any]] = []
    others: dict[str, list[dict[str, float]]] = {name: [] for name in references}
    for split in splits:
        # each split has a seed of its own, so that the luck of one start does not run through all of them
        here = replace(settings, split=split, seed=settings.seed + (split if len(splits) > 1 else 0))
        folder = request.out if len(splits) == 1 else request.out / f"split-{split}"
        metrics, graph = _one(here, folder, request, team)
        rows.append(metrics)
        for name in references:
            others[name].append(_reference(find(name), graph, here, chosen))
    if team.rank == 0:
        _report(request.out, settings, rows, others)


def _check_folder(out: Path, *, several: bool) -> None:
    """A folder holds one run, or several splits of one; never both."""
    if several and (out / CONFIG).exists():
        raise BadInput(f"{out}: holds a run of one split; choose another --out for several")
    if not several and not (out / CONFIG).exists() and any(out.glob(f"split-*/{CONFIG}")):
        raise BadInput(f"{out}: holds several splits of a run; add --split all to continue them, or choose another --out")


def _settings(request: TrainRequest) -> tuple[RunSettings, dict[str, Any]]:
    """From options to settings, and the fields of `TrainConfig` that the user chose, which hold for references too.

    `--resume` without any data named takes the run's own.
    """
    if request.resume and not request.graph.named:
        folders = [request.out, *sorted(request.out.glob("split-*"))]
        found = next((f for f in folders if (f / "config.json").exists()), request.out)
        stored = read_settings(found)
        if found != request.out:  # one of several splits, whose seed is the run's plus its number
            stored = replace(stored, seed=stored.seed - stored.split)
        usual = asdict(TrainConfig(**find(stored.name).train))
        return stored, {key: value for key, value in asdict(stored.train).items() if value != usual[key]}
    source = request.graph.data_source(request.protocol)
    system = systems()[one_of(request.model, tuple(systems()), "--model")]
    if request.preset != "default" and system.name != "spam":
        raise BadInput(f"--preset: found '{request.preset}' for {system.name}; presets belong to spam, use --set instead")
    defaults = SpaMConfig.preset(request.preset) if system.name == "spam" else system.settings
    model, train = parse_settings(defaults, request.settings)
    if request.epochs is not None:
        train["epochs"] = request.epochs
    settings = RunSettings(
        source, defaults.with_settings(model), TrainConfig(**{**system.train, **train}), 0, request.seed, request.calibrate,
        system.name, request.batches,
    )  # fmt: skip
    return settings, train


def _splits(text: str, source: DataSource) -> list[int]:
    if text == "all":
        return list(range(source.split_count() or 10))
    if not text.lstrip("-").isdigit():
        raise BadInput(f"--split: found '{text}'; give the number of a split, or all")
    return [int(text)]


def _one(settings: RunSettings, folder: Path, request: TrainRequest, team: Team) -> tuple[dict[str, Any], Graph]:
    resume = request.resume
    if resume and team.rank == 0 and not (folder / CONFIG).exists():
        OUT.print(f"{folder}: holds no run to continue; a new one begins", markup=False)
    if resume and settings.batches.kind == "whole" and (folder / CONFIG).exists():  # as begun, if nothing else is asked for
        settings = replace(settings, batches=read_settings(folder).batches)
    settings, reading, plan = planned(settings, request.there, team)
    graph = reading.graph
    finished = folder / METRICS
    done = team.rank == 0 and resume and finished.exists() and read_settings(folder) == settings
    kept = team.from_first(finished.read_bytes() if done else b"")
    if kept:
        return json.loads(kept), graph
    width, samples = getattr(settings.model, "hidden", 64), getattr(settings.model, "samples", 1)
    use_threads(graph, width, samples)
    with polite_stop() as stop, epoch_bar(f"{find(settings.name).title} split {settings.split}", settings.train.epochs) as bar:
        every = float(os.environ.get("SPAM_GNN_CHECKPOINT_SECONDS", "5"))
        return train_run(
            settings, folder, resume=resume, progress=bar, stop_requested=stop, checkpoint_seconds=every, graph=graph,
            columns=reading.columns, team=team, plan=None if plan is None else plan.to_json(),
        ), graph  # fmt: skip


def _reference(system: System, graph: Graph, settings: RunSettings, chosen: dict[str, Any]) -> dict[str, float]:
    """A reference on the same graph, split and seed, trained its own way but for what the user chose."""
    model = make_baseline(system.name, graph, settings.seed)
    train = TrainConfig(**{**system.train, **chosen})
    with epoch_bar(f"{system.title} split {settings.split}", train.epochs) as bar:
        fit(model, graph, train, settings.seed, on_epoch=lambda state, *_: bar(state))
    prediction = model.predict(model.prepare(graph), settings.seed)
    return node_metrics(prediction, graph.y, graph.test_mask)


def _report(
    out: Path, settings: RunSettings, rows: list[dict[str, Any]], others: dict[str, list[dict[str, float]]]
) -> None:
    name = rows[0]["dataset"]
    for note in rows[0]["notes"]:
        OUT.print(f"note: {note}", markup=False)
    main = rows[0]["model"]
    results = {main: [row["test"] for row in rows], **others}
    two_classes = any("roc_auc" in run for run in results[main])
    shown = {"accuracy": "accuracy", **({"roc_auc": "ROC AUC"} if two_classes else {}), "macro_f1": "macro F1", "ece": "ECE"}
    lines = [
        [model, *(mean_and_spread([r[key] for r in runs if key in r]) for key in shown),
         f"{sum('accuracy' in r for r in runs)}/{len(rows)}"]
        for model, runs in results.items()
    ]  # fmt: skip
    which = f"{len(rows)} splits, mean ± std" if len(rows) > 1 else f"split {rows[0]['split']}"
    which = ", ".join(part for part in (settings.source.split_protocol(), which) if part)
    seeds = f"seed {settings.seed}" if len(rows) == 1 else f"seeds from {settings.seed}"
    table(f"{name}: test, in percent ({which}, {seeds})",
          ("model", *shown.values(), "runs"), lines)  # fmt: skip
    areas = [row["edge_sign_auroc"] for row in rows if row["edge_sign_auroc"] is not None]
    if areas:
        OUT.print(f"edge signs: AUROC {sum(areas) / len(areas):.3f} against {rows[0]['edge_sign_auroc_against']}")
    if len(rows) > 1 or others:
        write_json(out / "summary.json", {"dataset": name, "settings": settings.to_json(), "test": results,
                                          "edge_sign_auroc": areas})  # fmt: skip
    place = out / "report.html" if len(rows) == 1 else out / "split-*" / "report.html"
    OUT.print(f"results in {out}; open {place}")
