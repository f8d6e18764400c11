"""Two processes against one: steps per second, and what happens when one is killed."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import torch

from scaling_parts import random_folder, watched
from spam_gnn.checkpoint import read_tensors

EPOCHS = 2
SECONDS = f"s of {EPOCHS} epochs"


def throughput(place: Path) -> list[dict[str, Any]]:
    """The same batches, two of them to a step, worked off by one process and by two, one thread each."""
    folder = random_folder(place / "throughput", 60_000, 10, 64, 5)
    rows: list[dict[str, Any]] = []
    for workers in (1, 2):
        out = place / "run"
        shutil.rmtree(out, ignore_errors=True)
        options = ["--batch-size", "1024", "--neighbours", "10,5", "--together", "2", "--epochs", str(EPOCHS)]
        options += ["--set", "predict_samples=1", "--workers", str(workers), "--out", str(out)]
        done = watched(["train", "--graph", str(folder), *options])
        if done.code:
            raise SystemExit(done.error)
        seconds = json.loads((out / "metrics.json").read_text())["seconds"]
        weights = read_tensors(out / "model.safetensors")[0]
        rows.append({"processes": workers, SECONDS: round(seconds, 1), "weights": weights})
    first, second = rows
    difference = max(float((first["weights"][k] - second["weights"][k]).abs().max()) for k in first["weights"])
    for row in rows:
        del row["weights"]
        row["throughput"] = f"{first[SECONDS] / row[SECONDS]:.2f}x"
        row["largest difference of a weight"] = "" if row is first else f"{difference:.1e}"
    return rows


def kills(place: Path, count: int = 10) -> list[dict[str, Any]]:
    """Kill a worker at a random moment, resume, until `count` kills are done; the end is compared with a calm run."""
    folder, chance = random_folder(place / "kills", 3000, 8, 16, 3), random.Random(0)
    calm, out = place / "calm", place / "killed"
    for run in (calm, out):
        shutil.rmtree(run, ignore_errors=True)
    environment = {**os.environ, "SPAM_GNN_CHECKPOINT_SECONDS": "0", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "spam_gnn", "train", "--graph", str(folder), "--batch-size", "128", "--together", "2",
               "--neighbours", "5,5", "--epochs", "40", "--set", "predict_samples=2", "--workers", "2", "--out"]  # fmt: skip
    subprocess.run([*command, str(calm)], env=environment, check=True, capture_output=True)
    codes: list[int] = []
    waits: list[float] = []
    lines = 0
    while len(codes) < count:
        process = subprocess.Popen([*command, str(out), "--resume"], env=environment, stderr=subprocess.PIPE, text=True,
                                   stdout=subprocess.DEVNULL)  # fmt: skip
        while process.poll() is None and len(psutil.Process(process.pid).children()) < 2:
            time.sleep(0.05)
        time.sleep(chance.uniform(0.0, 25.0))
        if process.poll() is not None:  # it was done before its time had come: begin anew
            shutil.rmtree(out)
            continue
        os.kill(chance.choice(psutil.Process(process.pid).children()).pid, signal.SIGKILL)
        begun = time.monotonic()
        error = process.communicate(timeout=120)[1]
        codes.append(process.returncode)
        waits.append(time.monotonic() - begun)
        lines = max(lines, len(error.strip().splitlines()))
    subprocess.run([*command, str(out), "--resume"], env=environment, check=True, capture_output=True)
    expected, found = (read_tensors(run / "model.safetensors")[0] for run in (calm, out))
    equal = all(torch.equal(found[name], value) for name, value in expected.items())
    return [{"kills": count, "exit codes": " ".join(map(str, codes)), "longest wait s": round(max(waits), 1),
             "most lines on standard error": lines, "weights as in a calm run": "bit for bit" if equal else "no"}]  # fmt: skip
