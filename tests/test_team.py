"""Several processes: the gradients of one, a dead worker is one line, and what is resumed ends like an undisturbed run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import torch

from spam_gnn import launch
from spam_gnn.checkpoint import read_tensors
from spam_gnn.data.folder import write_converted
from spam_gnn.data.reading import Reading
from spam_gnn.data.synthetic import csbm
from spam_gnn.distributed import backend
from spam_gnn.errors import WorkerLost

ENV = {**os.environ, "OMP_NUM_THREADS": "1", "SPAM_GNN_CHECKPOINT_SECONDS": "0", "GLOO_SOCKET_IFNAME": "lo"}
OPTIONS = ["--set", "hidden=8", "--set", "posterior_hidden=8", "--set", "samples=2", "--set", "predict_samples=2",
           "--batch-size", "32", "--neighbours", "4,4", "--together", "2"]  # fmt: skip
GRADIENTS = """
import sys, torch
from spam_gnn import SpaM, SpaMConfig, TrainConfig
from spam_gnn.data.folder import open_converted
from spam_gnn.distributed import gathered
from spam_gnn.loading.batched import BatchConfig
from spam_gnn.loading.batched import make_feed
from pathlib import Path
torch.set_num_threads(1)
graph = open_converted(Path(sys.argv[1])).graph
with gathered() as team:
    model = SpaM(graph.num_features, graph.num_classes, SpaMConfig(hidden=8, posterior_hidden=8, samples=2))
    model.begin(graph, 0)
    feed, loss = make_feed(model, graph, BatchConfig(size=40, neighbours=(4, 4), together=4), 0, team), team.share(model)
    pieces = next(feed.steps(model, 0, 0))
    for place, piece in enumerate(pieces):
        with team.quietly(loss, more=place + 1 < len(pieces)):
            (loss(piece.graph, 0, 0)["loss"] * (piece.weight * team.size)).backward()
    if team.rank == 0:
        torch.save({n: p.grad for n, p in model.named_parameters() if p.grad is not None}, sys.argv[2])
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("team") / "graph"
    write_converted(Reading(csbm(nodes=600, seed=0), ()), path)
    return path


def command(folder, out, *more, epochs):
    return [sys.executable, "-m", "spam_gnn", "train", "--graph", str(folder), "--epochs", str(epochs), "--out", str(out),
            *OPTIONS, *more]  # fmt: skip


def test_tensors_on_a_gpu_travel_by_nccl(monkeypatch):
    monkeypatch.setattr("torch.distributed.is_nccl_available", lambda: True)
    for there, wanted in ((False, "gloo"), (True, "cpu:gloo,cuda:nccl")):
        monkeypatch.setattr(torch.cuda, "is_available", lambda there=there: there)
        assert backend() == wanted


def test_two_processes_have_the_gradients_of_one(folder, tmp_path):
    def gradients(name, size):
        place = {"WORLD_SIZE": str(size), "SPAM_GNN_MEETING_PLACE": str(tmp_path / f"{name}.meet")}
        arguments = [sys.executable, "-c", GRADIENTS, str(folder), str(tmp_path / name)]
        started = [subprocess.Popen(arguments, env={**ENV, **place, "RANK": str(rank)}) for rank in range(size)]
        assert [process.wait(120) for process in started] == [0] * size
        return torch.load(tmp_path / name, weights_only=True)

    one, two = gradients("one", 1), gradients("two", 2)
    assert one.keys() == two.keys()
    for name, value in one.items():
        torch.testing.assert_close(two[name], value, atol=1e-6, rtol=1e-5, msg=name)


def worker_of(parent: int, rank: int) -> psutil.Process:
    limit = time.monotonic() + 60
    while time.monotonic() < limit:
        for child in psutil.Process(parent).children():
            if child.environ().get("RANK") == str(rank):
                return child
        time.sleep(0.05)
    raise AssertionError("no such worker")


def wait_for(path: Path) -> None:
    limit = time.monotonic() + 120
    while not path.exists() and time.monotonic() < limit:
        time.sleep(0.02)
    assert path.exists()


def test_a_killed_worker_is_one_line_and_resuming_ends_like_an_undisturbed_run(folder, tmp_path):
    calm, out = tmp_path / "calm", tmp_path / "killed"
    assert subprocess.run(command(folder, calm, epochs=8), env=ENV, check=False, capture_output=True).returncode == 0
    process = subprocess.Popen(command(folder, out, "--workers", "2", epochs=8), env=ENV, stderr=subprocess.PIPE, text=True,
                               stdout=subprocess.DEVNULL)  # fmt: skip
    wait_for(out / "checkpoint.safetensors")
    os.kill(worker_of(process.pid, 1).pid, signal.SIGKILL)
    begun = time.monotonic()
    error = process.communicate(timeout=60)[1]
    assert time.monotonic() - begun < 30
    assert process.returncode == 6
    assert error.strip().splitlines() == [
        f"spam-gnn: worker 1 of 2: was killed (SIGKILL), the others have ended; continue with --resume --workers 2 --out {out}"
    ]
    resumed = command(folder, out, "--workers", "2", "--resume", epochs=8)
    again = subprocess.run(resumed, env=ENV, capture_output=True, check=False)
    assert again.returncode == 0, again.stderr
    expected, found = (read_tensors(run / "model.safetensors")[0] for run in (calm, out))
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, atol=1e-5, rtol=1e-4, msg=name)


def test_ctrl_c_stops_all_after_the_epoch_and_says_so_once(folder, tmp_path):
    """A terminal sends the signal to the whole group of processes; to the workers it must come once."""
    out = tmp_path / "stopped"
    process = subprocess.Popen(command(folder, out, "--workers", "2", epochs=5000), env=ENV, stderr=subprocess.PIPE, text=True,
                               stdout=subprocess.DEVNULL, start_new_session=True)  # fmt: skip
    wait_for(out / "checkpoint.safetensors")
    os.killpg(process.pid, signal.SIGINT)
    error = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    (line,) = error.strip().splitlines()
    assert line.startswith(f"spam-gnn: {out}: stopped after ")
    assert line.endswith(f"continue with --resume --out {out}")


def test_who_missed_another_is_not_the_cause_while_that_one_is_still_ending():
    ends = ("import time; time.sleep(1.5); raise SystemExit(130)", f"raise SystemExit({WorkerLost.exit_code})")
    workers = [subprocess.Popen([sys.executable, "-c", end]) for end in ends]
    assert launch._first_to_fail(workers) == 0
    assert [worker.wait() for worker in workers] == [130, WorkerLost.exit_code]
