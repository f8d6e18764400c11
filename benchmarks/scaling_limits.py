"""The memory plan: peaks that its coefficients are fitted to, and twenty graphs under a limit."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

from scaling_parts import Watched, hollow_folder, random_folder, watched

LIMIT = 4 * 2**30
# (nodes, degree): by the plan's own estimate from 0.3 to 20 times the limit
REAL = ((10_000, 8), (20_000, 12), (35_000, 8), (50_000, 20), (60_000, 8), (70_000, 30), (90_000, 8), (110_000, 10), (150_000, 8),
        (200_000, 16), (300_000, 10), (500_000, 8))  # fmt: skip
HOLLOW = ((1_000_000, 200), (2_000_000, 400), (20_000_000, 10), (30_000_000, 20), (50_000_000, 10), (60_000_000, 30),
          (100_000_000, 20), (200_000_000, 10))  # fmt: skip


def _train(folder: Path, out: Path, *more: str, limit: int | None = None) -> Watched:
    shutil.rmtree(out, ignore_errors=True)
    return watched(["train", "--graph", str(folder), "--epochs", "1", "--out", str(out), *more], data_limit=limit)


def measure(place: Path) -> list[dict[str, Any]]:
    """Each finishes, or is refused before anything is opened. The largest are hollow files, which nobody gets to read."""
    rows = []
    for nodes, degree in (*REAL, *HOLLOW):
        make = random_folder if (nodes, degree) in REAL else hollow_folder
        folder, out = make(place / f"limit-{nodes}-{degree}", nodes, degree, 32, 4), place / "run"
        done = _train(folder, out, "--set", "predict_samples=4", limit=LIMIT)
        plan = json.loads((out / "metrics.json").read_text())["memory_plan"] if done.code == 0 else None
        whole = plan["whole"] / 2**30 if plan else _gib(done.error, r"about ([\d.]+ [GM]iB) whole")
        needed = plan["needed"] / 2**30 if plan else _gib(done.error, r"and ([\d.]+ [GM]iB) in batches")
        rows.append({
            "nodes": nodes, "edges": nodes * degree // 2, "whole, times the limit": f"{whole / 4:.2f}",
            "choice": plan["kind"] if plan else "refused", "exit code": done.code, "s": round(done.seconds, 1),
            "estimate GiB": f"{needed:.2f}", "peak GiB": f"{done.anonymous / 1024:.2f}" if plan else "",
            "estimate / peak": f"{needed * 1024 / done.anonymous:.2f}" if plan else "",
        })  # fmt: skip
        print(rows[-1], flush=True)
    return rows


def _gib(text: str, pattern: str) -> float:
    found = re.search(pattern, text)
    if found is None:
        raise SystemExit(f"ended without an estimate: {text}")
    number, unit = found.group(1).split()
    return float(number) / (1 if unit == "GiB" else 1024)


def peaks(place: Path) -> list[dict[str, Any]]:
    """Training without any limit, in shapes that tell the terms of the estimate apart."""
    rows = []
    for nodes, degree, features, classes, options in (
        (500, 4, 16, 3, []), (30_000, 6, 32, 3, []), (30_000, 30, 32, 3, []), (30_000, 6, 256, 3, []), (30_000, 6, 32, 20, []),
        (30_000, 6, 32, 3, ["--set", "samples=12"]), (30_000, 6, 32, 3, ["--set", "hidden=192"]),
        (30_000, 6, 32, 3, ["--set", "layers=4"]), (100_000, 10, 64, 5, []),
        (300_000, 6, 32, 3, ["--batch-size", "1024"]), (300_000, 30, 32, 3, ["--batch-size", "1024"]),
        (300_000, 6, 32, 20, ["--batch-size", "1024"]),
    ):  # fmt: skip
        folder = random_folder(place / f"peak-{nodes}-{degree}-{features}-{classes}", nodes, degree, features, classes)
        done = _train(folder, place / "run", *options)
        plan = json.loads((place / "run" / "metrics.json").read_text())["memory_plan"]
        rows.append({"nodes": nodes, "degree": degree, "features": features, "classes": classes, "options": " ".join(options),
                     "peak MiB": round(done.anonymous), "estimate MiB": round(plan["needed"] / 2**20)})  # fmt: skip
    return rows
