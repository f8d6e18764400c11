"""A run's name: equal specs have equal hashes, and everything a result depends on changes it, the seed apart."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spam_gnn.baselines import registry
from spam_gnn.errors import BadInput
from spam_gnn.experiments.spec import Perturbation, RunSpec, canonical, hash_of


def test_written_and_read_back_it_is_the_same():
    for model in ("spam", "mlp", "tuned-gcn"):
        spec = RunSpec.of("texas", model, split=3, seed=7, perturbation=Perturbation("delete", 0.2), measures=("smoothness",))
        assert RunSpec.from_json(spec.to_json()) == spec
        assert RunSpec.from_json(spec.to_json()).spec_hash == spec.spec_hash == hash_of(spec.to_json())


def test_everything_but_the_seed_changes_the_hash():
    spec = RunSpec.of("texas", "spam")
    assert replace(spec, seed=5).spec_hash == spec.spec_hash
    others = [
        RunSpec.of("texas", "spam", split=1),
        RunSpec.of("cornell", "spam"),
        RunSpec.of("texas", "gcn"),
        RunSpec.of("texas", "spam", protocol="authors"),
        RunSpec.of("texas", "spam", settings={"gamma": 0.3}),
        RunSpec.of("texas", "spam", train={"epochs": 199}),
        RunSpec.of("texas", "spam", perturbation=Perturbation("delete", 0.2)),
        RunSpec.of("texas", "spam", perturbation=Perturbation("delete", 0.3)),
        RunSpec.of("texas", "spam", measures=("smoothness",)),
    ]
    assert len({spec.spec_hash, *(other.spec_hash for other in others)}) == 1 + len(others)


def test_a_changed_default_is_another_run(monkeypatch):
    before = RunSpec.of("texas", "mlp")
    mlp = registry.find("mlp")
    changed = {"mlp": replace(mlp, settings=replace(mlp.settings, dropout=0.4))}
    monkeypatch.setattr(registry, "_shipped", lambda: changed)
    assert RunSpec.of("texas", "mlp").spec_hash != before.spec_hash


def test_the_canonical_text_does_not_depend_on_the_order_of_keys():
    value = RunSpec.of("texas", "spam").to_json()
    assert canonical(dict(reversed(value.items()))) == canonical(value)


def test_a_negative_strength_is_refused():
    with pytest.raises(BadInput, match="0 or more"):
        Perturbation("delete", -0.1)
    with pytest.raises(BadInput, match="0 or more"):
        Perturbation("delete", float("nan"))


def test_a_setting_that_came_later_changes_the_name_only_where_it_is_set():
    spec = RunSpec.of("texas", "spam")
    before = spec.to_json()
    for name in ("position_power", "cells", "deep_told", "verdict", "copies", "few_nodes"):
        del before["settings"][name]  # as a record of an earlier version has it
    assert hash_of(before) == spec.spec_hash
    assert RunSpec.from_json(before) == spec
    others = ({"position_power": 0.5}, {"cells": 1}, {"deep_told": False}, {"verdict": "evidence"}, {"copies": 1})
    assert len({spec.spec_hash, *(RunSpec.of("texas", "spam", settings=s).spec_hash for s in others)}) == 6
