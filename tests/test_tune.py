"""Tuning: the defaults are always tried, test nodes are not looked at, and what was stopped goes on with the same trials."""

from __future__ import annotations

import json

import pytest

from spam_gnn.errors import BadInput
from spam_gnn.experiments import tune as tuning
from spam_gnn.experiments.spec import RunSpec
from spam_gnn.experiments.store import RunStore
from spam_gnn.experiments.tune import Trial, TuneBudget, best, trial_specs, tune, write_choice

pytest.importorskip("optuna", reason="the extra `tune` is not installed")
BUDGET = TuneBudget(trials=6, splits=2, epochs=3, patience=3)


class Stopped(Exception):
    pass


def test_stopped_and_started_again_it_makes_the_same_trials(tmp_path):
    def stop_after_three(trial):
        if trial.number == 2:
            raise Stopped

    whole = tune("mlp", "csbm", RunStore(tmp_path / "whole"), BUDGET, lambda _: None)
    store = RunStore(tmp_path / "parts")
    with pytest.raises(Stopped):
        tune("mlp", "csbm", store, BUDGET, stop_after_three)
    before = {path: path.stat().st_mtime_ns for path in store.root.glob("*/*/result.json")}
    again = tune("mlp", "csbm", store, BUDGET, lambda _: None)
    assert again == whole
    assert {path: path.stat().st_mtime_ns for path in before} == before  # nothing was run twice
    assert whole[0].settings == {}
    assert len({json.dumps(dict(t.settings)) for t in whole}) > 2


def test_the_choice_follows_validation_whatever_the_test_says(tmp_path, monkeypatch):
    """A record's test metrics may be anything: here they contradict validation."""
    def contrary(store, spec, limits):
        good = spec.settings.dropout == 0.5
        return {"status": "ok", "val": {"accuracy": 0.4 + 0.2 * good, "nll": 1.0}, "test": {"accuracy": 1.0 - good}}

    monkeypatch.setattr(tuning, "_record", contrary)
    trials = tune("mlp", "csbm", RunStore(tmp_path), BUDGET, lambda _: None)
    chosen = best(trials)
    assert chosen.settings.get("dropout", 0.5) == 0.5
    assert chosen.val_accuracy == pytest.approx(0.6)
    place = write_choice(tmp_path / "studies", "mlp", "csbm", BUDGET, trials)
    written = json.loads(place.read_text())
    assert place == tmp_path / "studies" / "csbm" / "mlp.json"
    assert written["settings"]["dropout"] == 0.5
    assert len(written["trials"]) == 6
    assert "test" not in json.dumps(written["trials"])


def test_values_go_where_they_belong_and_the_budget_is_equal():
    specs = trial_specs(tuning.find("gat"), "texas", {"dropout": 0.2, "learning_rate": 0.03}, BUDGET)
    assert [(spec.split, spec.seed) for spec in specs] == [(0, 0), (1, 1)]
    assert specs[0].settings.dropout == 0.2
    assert specs[0].train.learning_rate == 0.03
    assert (specs[0].train.epochs, specs[0].train.patience) == (3, 3)
    one = trial_specs(tuning.find("gat"), "cora", {}, BUDGET)
    assert [(spec.split, spec.seed) for spec in one] == [(0, 0), (0, 1)]
    assert specs[0] == RunSpec.of("texas", "gat", settings={"dropout": 0.2},
                                  train={"learning_rate": 0.03, "epochs": 3, "patience": 3})  # fmt: skip


def test_the_best_has_the_highest_accuracy_then_the_lowest_loss():
    trials = [Trial(0, {}, 0.7, 1.0), Trial(1, {}, None, None, "diverged"), Trial(2, {}, 0.8, 0.9), Trial(3, {}, 0.8, 0.5)]
    assert best(trials).number == 3
    assert best([Trial(0, {}, 0.7909603, 0.8), Trial(1, {}, 0.7909605, 0.9)]).number == 0  # one is from a rounded record
    with pytest.raises(BadInput, match="all 1 trials failed, the first with: diverged"):
        best(trials[1:2])
