"""Grids under faults: whatever is killed or refused, every healthy run ends recorded once, with the numbers of a quiet grid."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from grid_parts import FULL_DISK, comparable, small_runs, undisturbed
from spam_gnn.errors import DiskError, SpamError
from spam_gnn.experiments import grid
from spam_gnn.experiments.execute import Limits
from spam_gnn.experiments.grid import LocalGrid, run_grid
from spam_gnn.experiments.progress import GridState
from spam_gnn.experiments.spec import RunSpec
from spam_gnn.experiments.store import RunStore

HERE = Path(__file__).resolve().parent
COUNT, FAULTY = 60, 6


def quiet(state):
    """Nobody is watching."""


def finished(folder):
    return {path: path.stat().st_mtime_ns for path in folder.glob("*/*/result.json")}


def wait_for(condition, seconds=120.0):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.02)


def test_killed_and_starved_a_grid_ends_as_if_nothing_had_happened(tmp_path, monkeypatch):
    folder, flag, patch = tmp_path / "runs", tmp_path / "disk-is-full", tmp_path / "patch"
    patch.mkdir()
    (patch / "sitecustomize.py").write_text(FULL_DISK)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(patch), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("TEST_DISK_FULL", str(flag))
    specs = small_runs(COUNT, FAULTY)

    # its worker is killed, then the grid itself; the worker left alone goes by itself
    command = [sys.executable, str(HERE / "grid_parts.py"), str(folder), str(COUNT), str(FAULTY)]
    parent = subprocess.Popen(command)
    wait_for(lambda: len(finished(folder)) >= 4)
    worker = psutil.Process(parent.pid).children()[0]
    worker.kill()
    wait_for(lambda: len(finished(folder)) >= 12)
    orphan = psutil.Process(parent.pid).children()[0]
    parent.kill()
    parent.wait()
    wait_for(lambda: not orphan.is_running() or orphan.status() == psutil.STATUS_ZOMBIE)
    before = finished(folder)
    assert 12 <= len(before) < COUNT

    # the disk fills up: the grid stops with everything that was recorded intact
    def fill(state: GridState) -> None:
        if state.done + state.failed >= 30:
            flag.touch()

    with pytest.raises(DiskError, match="No space left"):
        run_grid(specs, RunStore(folder), workers=1, watch=fill)
    flag.unlink()
    assert len(finished(folder)) < COUNT

    state = run_grid(specs, RunStore(folder), workers=1)
    assert (state.done, state.failed) == (COUNT - FAULTY, FAULTY)
    after = finished(folder)
    assert len(after) == COUNT
    assert {path: after[path] for path in before} == before  # nothing was written twice
    assert not list(folder.rglob(".spam-gnn-tmp-*"))
    assert [comparable(record) for record in RunStore(folder).records(specs)] == undisturbed(specs)


def test_two_grids_on_one_store_share_the_work(tmp_path):
    specs = small_runs(24)
    grids = [LocalGrid(order, RunStore(tmp_path), 1, Limits(), quiet) for order in (specs, specs[::-1])]
    threads = [threading.Thread(target=g.run) for g in grids]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert all(g.state.done == 24 and g.state.left == 0 for g in grids)
    own = [{run.spec for run in g.state.recent if run.seconds > 0.0} for g in grids]
    assert not own[0] & own[1]
    assert own[0] | own[1] == set(specs)
    assert len(finished(tmp_path)) == 24


def test_a_process_that_always_dies_is_given_up(tmp_path):
    """A run that takes its process down with it is a failed record after three attempts, and the grid goes on."""
    answers = iter(["killed by signal 9"] * 3)
    spec = small_runs(1)[0]
    made = LocalGrid([spec], RunStore(tmp_path / "runs"), 1, Limits(), quiet)

    class Dying:
        ready, served = True, 1

        def __init__(self):
            self.spec = spec

        def epitaph(self):
            return next(answers)

        def close(self):
            pass

    for attempt in range(grid.ATTEMPTS):
        assert made.state.left == 1, attempt
        worker = Dying()
        made.workers.append(worker)
        made._bury(worker)
    record = made.store.read(spec)
    assert record["status"] == "failed"
    assert record["reason"] == "its process was killed by signal 9, 3 times"


def test_a_run_beyond_its_limit_is_ended_from_outside(tmp_path, monkeypatch):
    """A run that hangs cannot look at the clock itself: here its process is stopped."""
    monkeypatch.setattr("spam_gnn.experiments.workers.GRACE_SECONDS", 0.0)
    monkeypatch.setattr("spam_gnn.experiments.execute.WAITING", 0.01)  # 1 s on the clock, far below 100 s of computing
    spec = RunSpec.of("csbm", "mlp", train={"epochs": 1_000_000, "patience": 1_000_000})

    def stop(state):
        if state.running:
            psutil.Process().children()[0].suspend()

    state = run_grid([spec], RunStore(tmp_path), limits=Limits(seconds=100.0), watch=stop)
    assert state.failed == 1
    assert RunStore(tmp_path).read(spec)["reason"] == "time limit: not done in 1 s on the clock"


def test_workers_that_cannot_start_say_why(tmp_path, monkeypatch):
    patch = tmp_path / "patch"
    patch.mkdir()
    (patch / "sitecustomize.py").write_text("import sys\nsys.modules['torch'] = None\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(patch), os.environ.get("PYTHONPATH", "")]))
    with pytest.raises(SpamError, match="torch"):
        run_grid(small_runs(2), RunStore(tmp_path / "runs"))


def test_time_left_is_that_of_the_same_model_on_the_same_data(tmp_path):
    store, specs = RunStore(tmp_path), small_runs(4)
    other = RunSpec.of("csbm", "gcn", seed=0)
    state = GridState([*specs, other], store)
    assert state.seconds_left(1) is None
    state.note(specs[0], "ok", 10.0)
    assert state.seconds_left(1) == pytest.approx(40.0)  # three more, and one of a model not seen yet, by its dataset
    state.note(other, "failed", 2.0, "why")
    assert state.seconds_left(2) == pytest.approx(15.0)
    assert state.by_model() == {"mlp": (1, 0, 4), "gcn": (1, 1, 1)}
    state.running = [(specs[1], 4.0)]
    assert state.seconds_left(1) == pytest.approx(26.0)
