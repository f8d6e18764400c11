"""`table-tuned`: every system with settings chosen on validation nodes, under one budget of trials, beside its defaults.

The tuning is part of the study: the trials that have records decide which one comes next (`tune.follow`), and what was chosen
is then run on all draws. What is shown follows from the records alone.
"""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from spam_gnn.baselines.registry import find
from spam_gnn.experiments.paper.comparison import OURS
from spam_gnn.experiments.paper.labelled import Spread, accuracy, draws_of
from spam_gnn.experiments.paper.plan import EQUAL_BUDGET, present, table_run, title
from spam_gnn.experiments.provenance import measured_with
from spam_gnn.experiments.spec import RunSpec, without_later
from spam_gnn.experiments.store import Record, RunStore
from spam_gnn.experiments.study import Study, StudyResult
from spam_gnn.experiments.tune import Trial, TuneBudget, best, follow, trial_of, trial_specs
from spam_gnn.report.exhibit import ResultTable

NAME, GOAL = "table-tuned", 1.5  # points that tuning may add to SpaM's default preset
BUDGET = TuneBudget(trials=8, splits=3, **EQUAL_BUDGET)
SYSTEMS = (OURS, "acm-gcn", "h2gcn", "gprgnn", "linkx", "jknet", "mlp", "gcn", "gat")
DRAWS = {"texas": 10, "cornell": 10, "wisconsin": 10, "chameleon-filtered": 10}


def specs(store: RunStore) -> list[RunSpec]:
    """Trials as far as they are known; after the last one the chosen settings and the defaults on all draws."""
    return list(dict.fromkeys(spec for data in present(DRAWS) for model in SYSTEMS for spec in _specs(model, data, store)))


def _specs(model: str, data: str, store: RunStore) -> list[RunSpec]:
    trials, waiting = follow(model, data, BUDGET, store.read)
    known = [spec for trial in trials for spec in trial_specs(find(model), data, trial.settings, BUDGET)] + waiting
    if waiting or all(trial.val_accuracy is None for trial in trials):
        return known
    chosen, draws = trial_specs(find(model), data, best(trials).settings, BUDGET)[0], draws_of(data, DRAWS[data])
    final = [replace(chosen, split=split, seed=seed) for split, seed in draws]
    return known + final + [table_run(data, model, split, seed) for split, seed in draws]


@dataclass(frozen=True)
class Tuned:
    """What tuning did for a system on a dataset; test accuracies in percent, on the same draws for both."""

    trial: Trial
    default_validation: float
    values: tuple[float, ...]
    default_values: tuple[float, ...]

    @property
    def gain(self) -> Spread:
        return Spread.of([tuned - usual for tuned, usual in zip(self.values, self.default_values, strict=True)])


def tuned_of(model: str, data: str, records: Sequence[Record]) -> Tuned | None:
    """None while the tuning, or the runs with what it chose, are not finished."""
    choices: dict[str, dict[tuple[int, int], Record]] = defaultdict(dict)
    for record in records:
        spec = record["spec"]
        if (spec["model"], spec["dataset"]) == (model, data):
            choices[_settings(spec)].setdefault((spec["split"], spec["seed"]), record)
    draws, compared = draws_of(data, DRAWS[data]), draws_of(data, BUDGET.splits)
    usual = choices.get(_settings(table_run(data, model, 0, 0).to_json()), {})
    trials = {
        name: trial_of(number, json.loads(name), [found[draw] for draw in compared])
        for number, (name, found) in enumerate(choices.items()) if all(_ok(found.get(draw)) for draw in compared)
    }  # fmt: skip
    if not trials or not all(_ok(usual.get(draw)) for draw in draws):
        return None
    chosen = best(list(trials.values()))
    found = choices[next(name for name, trial in trials.items() if trial is chosen)]
    if not all(_ok(found.get(draw)) for draw in draws):
        return None
    before = statistics.fmean(usual[draw]["val"]["accuracy"] for draw in compared)
    return Tuned(chosen, before, *(tuple(accuracy(runs[draw]) for draw in draws) for runs in (found, usual)))


def _ok(record: Record | None) -> bool:
    return record is not None and record["status"] == "ok"


def _settings(spec: Mapping[str, Any]) -> str:
    """Settings and training of a run as one text, by which runs of the same choice are found."""
    return json.dumps({"settings": without_later(spec["settings"]), "train": spec["train"]}, sort_keys=True)


def render(records: Sequence[Record]) -> StudyResult:
    found = {(model, data): tuned for data in DRAWS for model in SYSTEMS if (tuned := tuned_of(model, data, records))}
    datasets = [data for data in DRAWS if any(column == data for _, column in found)]
    if not datasets:
        return StudyResult("No tuning is finished yet.\n", verdict="Nothing has been measured yet.")
    firsts = {data: _first(found, data) for data in datasets}
    rows = [
        (title(model), _mean_gain(found, model), *(_cell(found.get((model, data)), firsts[data] == model) for data in datasets))
        for model in SYSTEMS if any(row == model for row, _ in found)
    ]  # fmt: skip
    note = (
        f"Test accuracy in percent with the settings that {BUDGET.trials} trials chose, mean ± sample standard deviation, and "
        "in brackets that of the system's defaults on the same splits or seeds. Every system has the same budget: the defaults "
        f"and {BUDGET.trials - 1} random draws from its search space (of so few trials Optuna's TPE learns nothing), scored "
        f"by the mean validation accuracy of {BUDGET.splits} splits (seeds where there is one split); every run has at most "
        f"{BUDGET.epochs} epochs, stopped after {BUDGET.patience} without a better validation accuracy. No test metric takes "
        "part in the choice; validation nodes of one split are test nodes of others, for all systems alike."
    )
    tables = (ResultTable(NAME, ("system", "mean gain", *datasets), tuple(rows)), _choices(found))
    text = "\n\n".join([note, tables[0].markdown(), "What was chosen:", tables[1].markdown(), measured_with(records)]) + "\n"
    return StudyResult(text, tables, (), _verdict(found, datasets, firsts))


Found = Mapping[tuple[str, str], Tuned]


def _first(found: Found, data: str) -> str:
    means = {model: statistics.fmean(tuned.values) for (model, column), tuned in found.items() if column == data}
    return max(means, key=lambda model: means[model])


def _mean_gain(found: Found, model: str) -> str:
    return f"{statistics.fmean(tuned.gain.mean for (row, _), tuned in found.items() if row == model):+.1f}"


def _cell(tuned: Tuned | None, first: bool) -> str | None:
    if tuned is None:
        return None
    spread = Spread.of(tuned.values)
    text = f"{spread.mean:.1f} ± {spread.std:.1f} ({statistics.fmean(tuned.default_values):.1f})"
    return f"**{text}**" if first else text


def _choices(found: Found) -> ResultTable:
    """Validation before and after, and what differs from the defaults."""
    rows = [
        (title(model), data, f"{100 * tuned.default_validation:.1f}", f"{100 * (tuned.trial.val_accuracy or 0.0):.1f}",
         f"{tuned.gain.mean:+.1f} ± {tuned.gain.std / tuned.gain.count**0.5:.1f}", _changed(model, data, tuned.trial))
        for (model, data), tuned in found.items()
    ]  # fmt: skip
    columns = ("system", "dataset", "validation, default", "validation, tuned", "test gain ± standard error", "changed")
    return ResultTable(f"{NAME}-choices", columns, tuple(rows))


def _changed(model: str, data: str, trial: Trial) -> str:
    usual = json.loads(_settings(table_run(data, model, 0, 0).to_json()))
    changed = {
        key: value for part in ("settings", "train") for key, value in trial.settings[part].items() if value != usual[part][key]
    }
    return ", ".join(f"{key} {value}" for key, value in changed.items()) or "nothing"


def _verdict(found: Found, datasets: Sequence[str], firsts: Mapping[str, str]) -> str:
    gains = {data: found[OURS, data].gain.mean for data in datasets if (OURS, data) in found}
    if not gains:
        return "SpaM has not been tuned yet."
    mean = statistics.fmean(gains.values())
    held = "is" if mean <= GOAL else "is not"
    each = ", ".join(f"{data} {gain:+.1f}" for data, gain in gains.items())
    first = [data for data in gains if firsts[data] == OURS]
    planned = len(DRAWS) * len(SYSTEMS)
    progress = "" if len(found) == planned else f"Not complete, {len(found)} of {planned} tunings so far. "
    return (
        f"{progress}SpaM's default preset {held} within {GOAL:g} points of the tuned one on average: tuning adds {mean:+.1f} "
        f"({each}). Among tuned systems SpaM is first on {len(first)} of {len(gains)} datasets ({', '.join(first) or 'none'})."
    )


STUDY = Study(
    NAME, "Tuned, every system alike", specs, render,
    further=f"the {BUDGET.trials} trials of a system on a graph follow each other; what they chose is then run on all splits",
)  # fmt: skip
