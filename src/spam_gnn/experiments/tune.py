"""Tuning: the best of a system's search space on validation nodes, with the same budget for every system.

Nothing but the run store is kept between calls. The settings of a trial follow from the seed, its number and the values of the
trials before it, and those values are in the store: a tuning that is started again goes through the same trials, at once
through those that were run, and goes on where it stopped. The test metrics of the runs are not looked at.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from spam_gnn.baselines.base import System
from spam_gnn.baselines.registry import find
from spam_gnn.data import catalog
from spam_gnn.errors import BadInput, DiskError
from spam_gnn.experiments.execute import Limits
from spam_gnn.experiments.provenance import code_version, package_versions
from spam_gnn.experiments.spec import RunSpec
from spam_gnn.experiments.store import Record, RunStore
from spam_gnn.experiments.worker import perform
from spam_gnn.files import make_folder, write_json
from spam_gnn.randomness import seed_for
from spam_gnn.training import TrainConfig

_WAIT_SECONDS = 1.0  # for a run that another process is doing


@dataclass(frozen=True)
class TuneBudget:
    """What every system gets: trials, the splits whose validation accuracy is averaged, and the training of each run."""

    trials: int = 30
    splits: int = 3
    epochs: int = 200
    patience: int = 60
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("trials", "splits", "epochs", "patience"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name}: found {getattr(self, name)}; use 1 or more")


@dataclass(frozen=True)
class Trial:
    """One choice of settings (what differs from the defaults) and its validation score; None where a run failed."""

    number: int
    settings: Mapping[str, Any]
    val_accuracy: float | None
    val_nll: float | None
    reason: str = ""

    @property
    def order(self) -> tuple[float, float, int]:
        """Higher accuracy first, then lower loss, then the earlier trial."""
        if self.val_accuracy is None or self.val_nll is None:
            return (1.0, 0.0, self.number)
        return (-round(self.val_accuracy, 5), self.val_nll, self.number)  # records keep six digits: equal means must stay so


def tune(
    model: str, dataset: str, store: RunStore, budget: TuneBudget, watch: Callable[[Trial], None], limits: Limits | None = None
) -> list[Trial]:
    """All trials of a tuning, the defaults first; their runs are done here."""
    return follow(model, dataset, budget, lambda spec: _record(store, spec, limits or Limits()), watch)[0]


def follow(
    model: str,
    dataset: str,
    budget: TuneBudget,
    record_of: Callable[[RunSpec], Record | None],
    watch: Callable[[Trial], None] = lambda _: None,
) -> tuple[list[Trial], list[RunSpec]]:
    """The trials of a tuning as far as their runs have records, and the runs that the next one waits for."""
    optuna = _optuna()
    system = find(model)
    if not system.search:
        raise BadInput(f"model '{model}': has no search space; list values in `search` of its registry entry")
    space = {name: optuna.distributions.CategoricalDistribution(values) for name, values in system.search.items()}
    study = optuna.create_study(direction="maximize")
    trials: list[Trial] = []
    for number in range(budget.trials):
        # a sampler of its own for each trial: what it draws does not depend on when the tuning was started
        study.sampler = optuna.samplers.TPESampler(seed=seed_for(budget.seed, "tune", number) % 2**32)
        asked = study.ask(space) if number else None
        chosen = dict(asked.params) if asked else {}
        specs = trial_specs(system, dataset, chosen, budget)
        records = _until_failure(specs, record_of)
        if None in records:
            return trials, [spec for spec, record in zip(specs, records, strict=True) if record is None]
        trials.append(trial_of(number, chosen, [record for record in records if record is not None]))
        if asked is not None:
            failed = trials[-1].val_accuracy is None
            study.tell(asked, None if failed else trials[-1].val_accuracy, optuna.trial.TrialState.FAIL if failed else None)
        watch(trials[-1])
    return trials, []


def trial_specs(system: System, dataset: str, chosen: Mapping[str, Any], budget: TuneBudget) -> list[RunSpec]:
    """The runs of one trial: the chosen values sorted into settings and training."""
    own = {field.name for field in fields(system.settings)}
    settings = {name: value for name, value in chosen.items() if name in own}
    train = {name: value for name, value in chosen.items() if name not in own}
    fixed = {"epochs": budget.epochs, "patience": budget.patience}
    one_split = catalog.split_count(dataset) == 1  # then seeds take the place of splits
    return [
        RunSpec.of(dataset, system.name, split=0 if one_split else k, seed=k, settings=settings, train={**train, **fixed})
        for k in range(budget.splits)
    ]


def _until_failure(specs: Sequence[RunSpec], record_of: Callable[[RunSpec], Record | None]) -> list[Record | None]:
    """A trial that has failed on one split is not run on the others."""
    records: list[Record | None] = []
    for spec in specs:
        record = record_of(spec)
        if record is not None and record["status"] != "ok":
            return [record]
        records.append(record)
    return records


def trial_of(number: int, chosen: Mapping[str, Any], records: Sequence[Record]) -> Trial:
    if records[0]["status"] != "ok":
        return Trial(number, chosen, None, None, records[0]["reason"])
    return Trial(
        number, chosen, statistics.fmean(record["val"]["accuracy"] for record in records),
        statistics.fmean(record["val"]["nll"] for record in records),
    )  # fmt: skip


def _record(store: RunStore, spec: RunSpec, limits: Limits) -> Record:
    """The run's record: found, made here, or waited for."""
    while (record := store.read(spec)) is None:
        answer = perform(store, spec, limits)
        if answer.outcome == "disk":
            raise DiskError(answer.reason)
        if answer.outcome == "busy":
            time.sleep(_WAIT_SECONDS)
    return record


def best(trials: Sequence[Trial]) -> Trial:
    """The trial with the highest validation accuracy."""
    first = min(trials, key=lambda trial: trial.order)
    if first.val_accuracy is None:
        raise BadInput(f"tuning: all {len(trials)} trials failed, the first with: {trials[0].reason}; change budget or limits")
    return first


def write_choice(folder: Path, model: str, dataset: str, budget: TuneBudget, trials: Sequence[Trial]) -> Path:
    """`<folder>/<dataset>/<model>.json`: what was chosen, of what, with which budget."""
    chosen = best(trials)
    spec = trial_specs(find(model), dataset, chosen.settings, budget)[0].to_json()
    usual = TrainConfig()
    place = make_folder(folder / dataset.replace(":", "-")) / f"{model}.json"
    write_json(place, {
        "model": model, "dataset": dataset, "protocol": spec["protocol"], "budget": asdict(budget),
        "chosen": dict(chosen.settings), "settings": spec["settings"],
        "train": {k: v for k, v in spec["train"].items() if v != getattr(usual, k)},
        "val_accuracy": chosen.val_accuracy, "default_val_accuracy": trials[0].val_accuracy,
        "code": code_version(), "packages": package_versions(), "trials": [asdict(trial) for trial in trials],
    })  # fmt: skip
    return place


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise BadInput("tune: the package optuna is not installed; pip install 'spam-gnn[tune]'") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna
