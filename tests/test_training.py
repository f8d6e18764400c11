"""Interruption and resumption: bit-identical weights, whole files, honest refusals."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time

import pytest
import torch

from spam_gnn import SpaM, SpaMConfig, TrainConfig, csbm
from spam_gnn.checkpoint import load_state, read_tensors, save_state, write_tensors
from spam_gnn.errors import BadInput, DiskError, Interrupted
from spam_gnn.files import remove_leftovers, write_durably, write_json
from spam_gnn.run import RunSettings, train_run
from spam_gnn.source import DataSource
from spam_gnn.training import TrainState, fit

FILES = {"config.json", "edges.csv", "history.csv", "metrics.json", "model.safetensors", "predictions.csv", "report.html"}
SETTINGS = ["--set", "hidden=8", "--set", "posterior_hidden=8", "--set", "samples=2", "--set", "predict_samples=2"]


def command(out, *more, epochs=40):
    return [sys.executable, "-m", "spam_gnn", "train", "csbm", "--epochs", str(epochs), "--out", str(out), *SETTINGS, *more]


RUN = RunSettings(
    DataSource("csbm"), SpaMConfig(hidden=8, posterior_hidden=8, samples=2, predict_samples=2), TrainConfig(epochs=40)
)
PATIENCE = 120.0  # seconds that a command may take to begin, on a machine that has much else to do
ENV = {**os.environ, "OMP_NUM_THREADS": "1", "SPAM_GNN_CHECKPOINT_SECONDS": "0"}


def test_a_state_survives_the_disk_bit_for_bit(tmp_path):
    graph = csbm(nodes=60, seed=0)
    config, train = SpaMConfig(hidden=8, posterior_hidden=8, samples=2, predict_samples=2), TrainConfig(epochs=12)
    whole = SpaM(graph.num_features, 3, config)
    fit(whole, graph, train, seed=0)
    model, path = SpaM(graph.num_features, 3, config), tmp_path / "state.safetensors"

    class StopError(Exception):
        pass

    def stop(state, model, optimiser):
        if state.epoch == 5:
            save_state(path, state, model, optimiser)
            raise StopError

    with pytest.raises(StopError):
        fit(model, graph, train, seed=0, on_epoch=stop)
    fresh = SpaM(graph.num_features, 3, config, seed=99)
    state, optimiser = load_state(path, fresh, train)
    assert state.epoch == 5
    fit(fresh, graph, train, seed=0, state=state, optimiser=optimiser)
    for a, b in zip(whole.state_dict().values(), fresh.state_dict().values(), strict=True):
        assert torch.equal(a, b)


def train_in_a_child(out):
    """Fork, train with a checkpoint after every epoch, and leave without cleaning up; returns the child's number."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            train_run(RUN, out, resume=True, checkpoint_seconds=0.0)
            code = 0
        finally:
            os._exit(code)
    return child


def test_kill_at_20_random_moments_then_resume(tmp_path):
    """kill -9, twenty times at random, each followed by a resume; the end must equal the undisturbed run, byte for byte."""
    undisturbed = tmp_path / "calm"
    started = time.monotonic()
    train_run(RUN, undisturbed, checkpoint_seconds=0.0)
    length = time.monotonic() - started
    chance, kills, round_ = random.Random(0), 0, 0
    out = tmp_path / "killed-0"
    limit = time.monotonic() + PATIENCE + 20 * length
    while kills < 20:
        assert time.monotonic() < limit, f"{kills} kills in {PATIENCE + 20 * length:.0f} s"
        child = train_in_a_child(out)
        time.sleep(chance.uniform(0.02, 0.5) * length)
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended == 0:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            kills += 1
        else:  # it finished first: compare, and begin again for the kills that are left
            assert status == 0, "the command failed by itself"
            compare(undisturbed, out)
            round_ += 1
            out = tmp_path / f"killed-{round_}"
    assert os.waitpid(train_in_a_child(out), 0)[1] == 0  # what is left is shorter than the undisturbed run
    compare(undisturbed, out)


def compare(calm, killed):
    assert {p.name for p in killed.iterdir()} == FILES
    here, there = read_tensors(calm / "model.safetensors")[0], read_tensors(killed / "model.safetensors")[0]
    assert here.keys() == there.keys()
    for name in here:
        assert torch.equal(here[name], there[name]), name
    for name in ("predictions.csv", "edges.csv", "history.csv"):
        assert (calm / name).read_bytes() == (killed / name).read_bytes()


def wait_for(path, process):
    """Until the file is there; a command that has ended or takes too long to begin fails the test with what it said."""
    limit = time.monotonic() + PATIENCE
    while not path.exists():
        ended = process.poll() is not None
        if ended or time.monotonic() > limit:
            process.kill()
            pytest.fail(f"no {path.name} {'before the command ended' if ended else 'in time'}: {process.communicate()[1]}")
        time.sleep(0.05)


def test_a_command_that_cannot_start_fails_the_wait_at_once(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", "raise SystemExit('no')"], stderr=subprocess.PIPE, text=True)
    with pytest.raises(pytest.fail.Exception, match="before the command ended: no"):
        wait_for(tmp_path / "never", process)


def test_ctrl_c_and_sigterm_leave_a_resumable_run(tmp_path):
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        out = tmp_path / str(code)
        process = subprocess.Popen(command(out, epochs=100000), env=ENV, stderr=subprocess.PIPE, text=True)
        try:
            wait_for(out / "checkpoint.safetensors", process)
            process.send_signal(number)
            error = process.communicate(timeout=60)[1]
        finally:
            process.kill()  # of no effect on one that has ended
        assert process.returncode == code, error
        assert "continue with --resume" in error
        assert len(error.strip().splitlines()) == 1
        assert {p.name for p in out.iterdir()} == {"config.json", "checkpoint.safetensors"}


def test_a_polite_stop_resumes_to_the_same_bits(tmp_path):
    """Stop between any two epochs, resume, and end as an undisturbed run does."""
    train_run(RUN, tmp_path / "calm", checkpoint_seconds=1e9)
    asked = iter([None, None, 130])
    with pytest.raises(Interrupted, match="stopped after 3 epochs"):
        train_run(RUN, tmp_path / "stopped", stop_requested=lambda: next(asked), checkpoint_seconds=1e9)
    train_run(RUN, tmp_path / "stopped", resume=True, checkpoint_seconds=1e9)
    compare(tmp_path / "calm", tmp_path / "stopped")


def test_a_damaged_file_is_one_line(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"nonsense")
    with pytest.raises(BadInput, match="not a readable safetensors file"):
        read_tensors(path)
    with pytest.raises(BadInput, match="not found"):
        read_tensors(tmp_path / "absent.safetensors")


def test_a_state_of_another_shape_is_refused(tmp_path):
    small, large = (SpaM(4, 3, SpaMConfig(hidden=h)) for h in (8, 16))
    train = TrainConfig()
    save_state(tmp_path / "s", TrainState(), small, torch.optim.Adam(small.parameters()))
    with pytest.raises(BadInput, match="another shape"):
        load_state(tmp_path / "s", large, train)


def test_a_failed_write_leaves_nothing(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "x.json", float("nan"))
    with pytest.raises(DiskError, match="cannot be written"):
        write_durably(tmp_path / "absent" / "x", b"1")
    assert list(tmp_path.iterdir()) == []
    write_tensors(tmp_path / "t", {"a": torch.ones(2)}, {"b": 1})
    assert read_tensors(tmp_path / "t")[1] == {"b": 1}
    (tmp_path / ".spam-gnn-tmp-1-x").touch()
    remove_leftovers(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["t"]
