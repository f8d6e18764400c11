"""The tuned table: trials follow each other through the rounds of a study, validation alone chooses, defaults stand beside."""

from __future__ import annotations

import json

import pytest

from spam_gnn.baselines.registry import find
from spam_gnn.experiments.paper import table_tuned
from spam_gnn.experiments.paper.plan import table_run
from spam_gnn.experiments.paper.table_tuned import render, specs, tuned_of
from spam_gnn.experiments.spec import without_later
from spam_gnn.experiments.tune import TuneBudget, best, follow, trial_specs

pytest.importorskip("optuna", reason="the extra `tune` is not installed")


class MadeUp:
    """A store whose runs cost nothing: validation likes high dropout, the test nodes do not."""

    def __init__(self) -> None:
        self.records = {}

    def read(self, spec):
        return self.records.get((spec.spec_hash, spec.seed))

    def run(self, spec):
        value = 0.5 + 0.3 * spec.settings.dropout + 0.01 * spec.split
        self.records[spec.spec_hash, spec.seed] = {
            "status": "ok", "hash": spec.spec_hash, "spec": spec.to_json(),
            "val": {"accuracy": value, "nll": 1.0}, "test": {"accuracy": 1.0 - value},
        }  # fmt: skip


@pytest.fixture
def two_systems(monkeypatch):
    monkeypatch.setattr(table_tuned, "SYSTEMS", ("spam", "gcn"))
    monkeypatch.setattr(table_tuned, "DRAWS", {"texas": 5})
    monkeypatch.setattr(table_tuned, "BUDGET", TuneBudget(trials=4, splits=2))
    monkeypatch.setattr(table_tuned, "present", tuple)


def rounds_of(store):
    """As `reproduce` does: run what is asked for until nothing new is."""
    rounds = 0
    while missing := [spec for spec in specs(store) if store.read(spec) is None]:
        for spec in missing:
            store.run(spec)
        rounds += 1
    return rounds


def test_rounds_end_with_the_choice_of_tune_on_all_draws(two_systems):
    store = MadeUp()
    assert rounds_of(store) == 5  # four trials one after the other, then the draws that tuning did not need
    for model in ("spam", "gcn"):
        trials, waiting = follow(model, "texas", table_tuned.BUDGET, store.read)
        assert not waiting
        found = tuned_of(model, "texas", [store.read(spec) for spec in specs(store)])
        chosen = trial_specs(find(model), "texas", best(trials).settings, table_tuned.BUDGET)[0].to_json()
        assert found.trial.settings == {"settings": without_later(chosen["settings"]), "train": chosen["train"]}
        assert found.trial.settings["settings"]["dropout"] >= table_run("texas", model, 0, 0).settings.dropout
        assert len(found.values) == len(found.default_values) == 5


def test_records_that_lack_a_later_setting_are_of_the_same_tuning(two_systems):
    store = MadeUp()
    rounds_of(store)
    records = [store.read(spec) for spec in specs(store)]
    found = tuned_of("spam", "texas", records)
    for record in records[: len(records) // 3]:  # as an earlier version wrote them
        for name in ("position_power", "cells", "deep_told", "verdict", "copies", "few_nodes"):
            record["spec"]["settings"].pop(name, None)
    assert found is not None
    assert tuned_of("spam", "texas", records) == found


def test_the_loss_that_validation_hides_is_shown(two_systems):
    store = MadeUp()
    rounds_of(store)
    records = [store.read(spec) for spec in specs(store)]
    result = render(records)
    tuned = tuned_of("gcn", "texas", records)
    assert tuned.gain.mean < 0.0  # more dropout: better on validation, worse on test
    assert f"{tuned.gain.mean:+.1f}" in result.tables[0].markdown()
    assert "SpaM's default preset is within 1.5 points" in result.verdict
    assert "Not complete" not in result.verdict


def test_an_unfinished_tuning_is_not_shown_as_finished(two_systems):
    store = MadeUp()
    for spec in specs(store):
        store.run(spec)  # the defaults alone
    planned = specs(store)
    records = [store.read(spec) or {"status": "missing", "spec": spec.to_json(), "hash": spec.spec_hash} for spec in planned]
    assert tuned_of("gcn", "texas", records) is None
    assert render(records).verdict == "Nothing has been measured yet."


def test_a_trial_that_fails_is_not_chosen(two_systems):
    store = MadeUp()
    rounds_of(store)
    records = [json.loads(json.dumps(store.read(spec))) for spec in specs(store)]
    before = tuned_of("gcn", "texas", records)
    assert before.trial.settings["settings"]["dropout"] > table_run("texas", "gcn", 0, 0).settings.dropout
    for record in records:
        if record["spec"]["settings"] == before.trial.settings["settings"] and record["spec"]["split"] == 1:
            record["status"] = "failed"
    after = tuned_of("gcn", "texas", records)
    assert after is None or after.trial.settings != before.trial.settings
