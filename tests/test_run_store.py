"""The store: immutable records, claims that die with their process, failed records that can be taken back."""

from __future__ import annotations

import pytest

from spam_gnn.errors import BadInput
from spam_gnn.experiments.execute import Limits, execute, failed
from spam_gnn.experiments.spec import Perturbation, RunSpec
from spam_gnn.experiments.store import RunStore
from spam_gnn.experiments.worker import answer_line, perform, request

QUICK = {"epochs": 3, "patience": 3}


def small(seed=0, **changes):
    return RunSpec.of("csbm", "mlp", seed=seed, train={**QUICK, **changes.pop("train", {})}, **changes)


def test_a_record_is_never_overwritten(tmp_path):
    store, spec = RunStore(tmp_path), small()
    store.write(spec, failed(spec, "first"))
    with pytest.raises(BadInput, match="never overwritten"):
        store.write(spec, failed(spec, "second"))
    assert store.read(spec)["reason"] == "first"


def test_a_failed_record_can_be_taken_back_and_a_good_one_not(tmp_path):
    store, spec = RunStore(tmp_path), small()
    store.write(spec, failed(spec, "why"))
    assert store.forget_failure(spec)
    assert store.read(spec) is None
    assert perform(store, spec, Limits()).outcome == "ok"
    assert not store.forget_failure(spec)
    assert perform(store, spec, Limits()).outcome == "present"


def test_a_run_in_other_hands_is_left_alone(tmp_path):
    store, other, spec = RunStore(tmp_path), RunStore(tmp_path), small()
    with store.claim(spec) as mine:
        assert mine
        assert perform(other, spec, Limits()).outcome == "busy"
        with other.claim(small(seed=1)) as free:
            assert free
    assert perform(other, spec, Limits()).outcome == "ok"
    assert [path.name for path in other.place(spec).parent.iterdir()] == ["result.json"]  # no lock is left behind


def test_a_damaged_record_is_named(tmp_path):
    store, spec = RunStore(tmp_path), small()
    store.place(spec).parent.mkdir(parents=True)
    store.place(spec).write_text("{")
    with pytest.raises(BadInput, match="result.json: cannot be read"):
        store.read(spec)


def test_the_record_says_what_it_was_made_of():
    record = execute(small(seed=2))
    assert record["status"] == "ok"
    assert record["spec"] == small(seed=2).to_json()
    assert set(record["test"]) == {"accuracy", "macro_f1", "nll", "brier", "ece"}
    assert set(record["test_calibrated"]) == {"nll", "brier", "ece"}
    assert record["epochs"] == 3
    assert record["val_calibrated"]["nll"] <= record["val"]["nll"] + 1e-6  # the temperature is fitted on validation
    assert len(record["data_sha256"]) == 64
    assert record["packages"]["torch"]
    assert record["edges"] == {}
    again = execute(small(seed=2))
    assert {k: record[k] for k in ("test", "val", "data_sha256")} == {k: again[k] for k in ("test", "val", "data_sha256")}


def test_spam_records_how_it_ranks_edges():
    record = execute(RunSpec.of("csbm", "spam", train=QUICK))
    assert 0.0 <= record["edges"]["sign_auroc"] <= 1.0
    assert record["edges"]["sign_auroc_against"] == "planted signs"


@pytest.mark.parametrize(("changes", "limits", "reason"), [
    ({"train": {"learning_rate": 1e30}}, Limits(), "epoch"),
    ({"perturbation": Perturbation("no such change", 0.1)}, Limits(), ""),
    ({"measures": ("no_such_measure",)}, Limits(), "no_such_measure"),
    ({}, Limits(seconds=1e-9), "time limit"),
    ({}, Limits(memory_mb=1.0), "memory limit"),
])  # fmt: skip
def test_what_goes_wrong_inside_a_run_is_its_record(changes, limits, reason):
    record = execute(small(**changes), limits)
    assert record["status"] == "failed"
    assert record["reason"]
    assert reason in record["reason"]
    assert "test" not in record


def test_a_worker_that_reads_a_spec_otherwise_does_not_run_it(tmp_path):
    store, spec = RunStore(tmp_path), small()
    line = request(spec, Limits()).replace(spec.spec_hash, "0" * 16)
    assert answer_line(store, line).outcome == "changed"
    unknown = request(spec, Limits()).replace('"dropout"', '"drop"')
    assert answer_line(store, unknown).outcome == "changed"
    assert store.read(spec) is None
