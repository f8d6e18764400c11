"""`spam-gnn tune`: choose settings on validation nodes and write them down with the trials."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from spam_gnn.commands.console import ERR, OUT, table
from spam_gnn.experiments.execute import Limits
from spam_gnn.experiments.store import RunStore
from spam_gnn.experiments.tune import Trial, TuneBudget, best, tune, write_choice


def run_tune(model: str, dataset: str, store: Path, out: Path, budget: TuneBudget, time_limit: float) -> None:
    """Run or continue a tuning; print the best trials and where the choice was written."""
    torch.set_num_threads(1)  # as in every other run of a store

    def show(trial: Trial) -> None:
        line = f"trial {trial.number + 1}/{budget.trials}: {_score(trial)} {_text(trial)} {trial.reason}"
        ERR.print(line.rstrip(), markup=False, soft_wrap=True)

    trials = tune(model, dataset, RunStore(store), budget, show, Limits(time_limit))
    ranked = sorted(trials, key=lambda trial: trial.order)
    rows = [[str(t.number), _score(t), _text(t)] for t in ranked[:5]]
    table(f"{model} on {dataset}: validation accuracy, mean of {budget.splits} splits", ("trial", "accuracy", "settings"), rows)
    place = write_choice(out, model, dataset, budget, trials)
    pairs = " ".join(f"--set {key}={value}" for key, value in best(trials).settings.items())
    trained = f"--epochs {budget.epochs} --set patience={budget.patience}"  # as in the trials, whatever the system's own are
    OUT.print(f"written to {place}; use it: spam-gnn train {dataset} --model {model} {trained} {pairs}".rstrip(), markup=False)


def _score(trial: Trial) -> str:
    return "failed" if trial.val_accuracy is None else f"{100 * trial.val_accuracy:.2f}"


def _text(trial: Trial) -> str:
    return json.dumps(dict(trial.settings)) if trial.settings else "(defaults)"
