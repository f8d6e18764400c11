"""The memory plan: peaks that its coefficients are fitted to, and twenty graphs under a limit."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scaling_parts import Watched, hollow_folder, random_folder, watched

LIMIT = 4 * 2**30
# (nodes, degree): by the plan's own estimate of the whole graph from 0.3 to 20 times the limit, and two far beyond
REAL = ((25_000, 8), (32_000, 8), (40_000, 8), (50_000, 8), (60_000, 24), (65_000, 8), (80_000, 8), (100_000, 8), (130_000, 8),
        (180_000, 8), (250_000, 8), (350_000, 8), (500_000, 8), (700_000, 8), (900_000, 8), (1_200_000, 8), (1_600_000, 8),
        (2_000_000, 8))  # fmt: skip
HOLLOW = ((20_000_000, 8), (50_000_000, 8))
LABELS = 250  # per class: the time goes into memory, not into many batches


def _train(folder: Path, out: Path, *more: str, limit: int | None = None) -> Watched:
    shutil.rmtree(out, ignore_errors=True)
    return watched(["train", "--graph", str(folder), "--epochs", "1", "--out", str(out), *more], data_limit=limit)


def measure(place: Path) -> Iterator[dict[str, Any]]:
    """Each finishes, or is refused before anything is opened. The largest are hollow files, which nobody gets to read."""
    for nodes, degree in (*REAL, *HOLLOW):
        path, out = place / f"limit-{nodes}-{degree}", place / "run"
        real = (nodes, degree) in REAL
        folder = random_folder(path, nodes, degree, 32, 4, LABELS) if real else hollow_folder(path, nodes, degree, 32, 4)
        done = _train(folder, out, "--set", "predict_samples=4", limit=LIMIT)
        plan = json.loads((out / "metrics.json").read_text())["memory_plan"] if done.code == 0 else None
        whole = plan["whole"] / 2**30 if plan else _gib(done.error, r"about ([\d.]+ [GM]iB) whole")
        needed = plan["needed"] / 2**30 if plan else _gib(done.error, r"and ([\d.]+ [GM]iB) in batches")
        yield {
            "nodes": nodes, "edges": nodes * degree // 2, "whole, times the limit": f"{whole / 4:.2f}",
            "choice": plan["kind"] if plan else "refused", "exit code": done.code, "s": round(done.seconds, 1),
            "estimate GiB": f"{needed:.2f}", "peak GiB": f"{done.anonymous / 1024:.2f}" if plan else "",
            "estimate / peak": f"{needed * 1024 / done.anonymous:.2f}" if plan else "",
        }  # fmt: skip


def _gib(text: str, pattern: str) -> float:
    found = re.search(pattern, text)
    if found is None:
        raise SystemExit(f"ended without an estimate: {text}")
    number, unit = found.group(1).split()
    return float(number) / (1 if unit == "GiB" else 1024)


def peaks(place: Path) -> Iterator[dict[str, Any]]:
    """Training without any limit, in shapes that tell the terms of the estimate apart."""
    for nodes, degree, features, classes, options in (
        (500, 4, 16, 3, []), (30_000, 6, 32, 3, []), (30_000, 30, 32, 3, []), (30_000, 6, 256, 3, []), (30_000, 6, 32, 20, []),
        (30_000, 6, 32, 3, ["--set", "samples=12"]), (30_000, 6, 32, 3, ["--set", "hidden=192"]),
        (30_000, 6, 32, 3, ["--set", "layers=4"]), (100_000, 10, 64, 5, []),
        (300_000, 6, 32, 3, ["--batch-size", "1024"]), (300_000, 30, 32, 3, ["--batch-size", "1024"]),
        (300_000, 6, 32, 20, ["--batch-size", "1024"]),
    ):  # fmt: skip
        folder = random_folder(place / f"peak-{nodes}-{degree}-{features}-{classes}", nodes, degree, features, classes, LABELS)
        done = _train(folder, place / "run", *options)
        plan = json.loads((place / "run" / "metrics.json").read_text())["memory_plan"]
        yield {"nodes": nodes, "degree": degree, "features": features, "classes": classes, "options": " ".join(options),
                     "peak MiB": round(done.anonymous), "estimate MiB": round(plan["needed"] / 2**20)}  # fmt: skip
