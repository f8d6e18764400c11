"""The memory plan: peaks that its coefficients are fitted to, and twenty graphs under a limit.

python benchmarks/scaling_limits.py limit 3      # one graph (or `memory 3`); what is done is kept, see `scaling.py`
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from scaling_parts import NotMeasured, Watched, kept, random_folder, watched, working_place

LIMIT = 4 * 2**30
LABELS = 250  # per class: the time goes into memory, not into many batches


class Shape(NamedTuple):
    """A random graph, and the settings it is trained with."""

    nodes: int
    degree: int
    features: int = 32
    classes: int = 4
    options: str = ""


# By the plan's own estimate of the whole graph from 0.3 to 20 times the limit. Those with many classes do not fit in batches
# either: what is kept of (class, node) pairs grows with both.
UNDER_LIMIT = (
    Shape(75_000, 8), Shape(20_000, 8, 3000), Shape(15_000, 8, 32, 100), Shape(100_000, 8), Shape(60_000, 24),
    Shape(130_000, 8), Shape(160_000, 8), Shape(200_000, 8), Shape(250_000, 8), Shape(100_000, 20),
    Shape(300_000, 6), Shape(350_000, 8),
    Shape(500_000, 6), Shape(700_000, 4), Shape(1_000_000, 4), Shape(150_000, 8, 32, 100), Shape(2_300_000, 3),
    Shape(150_000, 8, 32, 300), Shape(220_000, 6, 32, 600), Shape(515_000, 6, 32, 600),
)  # fmt: skip
# In shapes that tell the terms of the estimate apart
PEAKS = (
    Shape(500, 4, 16, 3), Shape(30_000, 6, 32, 3), Shape(30_000, 30, 32, 3), Shape(30_000, 6, 256, 3), Shape(30_000, 6, 32, 20),
    Shape(30_000, 6, 32, 3, "--set samples=12"), Shape(30_000, 6, 32, 3, "--set hidden=192"),
    Shape(30_000, 6, 32, 3, "--set layers=4"), Shape(100_000, 9, 64, 5),
    Shape(300_000, 6, 32, 3, "--batch-size 1024"), Shape(300_000, 30, 32, 3, "--batch-size 1024"),
    Shape(300_000, 6, 32, 3, "--batch-size 64"), Shape(300_000, 6, 32, 20, "--batch-size 64"),
    Shape(300_000, 6, 32, 20, "--batch-size 64 --set predict_samples=4"), Shape(300_000, 30, 32, 3, "--batch-size 64"),
    Shape(900_000, 3, 32, 3, "--batch-size 64 --set predict_samples=4"),
)  # fmt: skip


def measure(place: Path) -> Iterator[dict[str, Any]]:
    """Each finishes, or is refused before anything is opened."""
    rows: list[dict[str, Any]] = []
    for number in range(len(UNDER_LIMIT)):
        with suppress(NotMeasured):
            rows.append(_limited(place, number))
    yield from sorted(rows, key=lambda row: float(row["whole, times the limit"]))


def peaks(place: Path) -> Iterator[dict[str, Any]]:
    """Training under the same limit, since where memory is plenty the loops keep more of it (`kernels/memory.py`)."""
    for number in range(len(PEAKS)):
        with suppress(NotMeasured):
            yield _peak(place, number)


def _limited(place: Path, number: int) -> dict[str, Any]:
    shape = UNDER_LIMIT[number]
    return kept(place / f"limit-{_name(shape)}.json", lambda: _run_limited(place, shape))


def _peak(place: Path, number: int) -> dict[str, Any]:
    shape = PEAKS[number]
    return kept(place / f"memory-{_name(shape)}.json", lambda: _run_for_peak(place, shape))


def _name(shape: Shape) -> str:
    return "-".join(re.sub(r"\W+", "", str(part)) for part in shape if part != "")


def _train(place: Path, shape: Shape, *more: str, limit: int | None = None) -> tuple[Watched, dict[str, Any] | None]:
    """How the run ended, and its memory plan if it ended well."""
    nodes, degree, features, classes, options = shape
    folder = random_folder(place / f"graph-{_name(shape)}", nodes, degree, features, classes, LABELS)
    out = place / f"run-{_name(shape)}"
    shutil.rmtree(out, ignore_errors=True)
    command = ["train", "--graph", str(folder), "--epochs", "1", "--out", str(out), *options.split(), *more]
    done = watched(command, data_limit=limit)
    plan = json.loads((out / "metrics.json").read_text())["memory_plan"] if done.code == 0 else None
    for used in (folder, out):
        shutil.rmtree(used, ignore_errors=True)
    return done, plan


def _run_limited(place: Path, shape: Shape) -> dict[str, Any]:
    done, plan = _train(place, shape, "--set", "predict_samples=4", limit=LIMIT)
    whole = plan["whole"] / 2**30 if plan else _gib(done.error, r"about ([\d.]+ [GM]iB) whole")
    needed = plan["needed"] / 2**30 if plan else _gib(done.error, r"and ([\d.]+ [GM]iB) in batches")
    return {
        "nodes": shape.nodes, "edges": shape.nodes * shape.degree // 2, "features": shape.features, "classes": shape.classes,
        "whole, times the limit": f"{whole / (LIMIT / 2**30):.2f}",
        "choice": plan["kind"] if plan else "refused" if done.code == 3 else "failed",
        "exit code": done.code, "s": round(done.seconds, 1), "estimate GiB": f"{needed:.2f}",
        "peak GiB": f"{done.anonymous / 1024:.2f}" if plan else "",
        "estimate / peak": f"{needed * 1024 / done.anonymous:.2f}" if plan else "",
    }  # fmt: skip


def _run_for_peak(place: Path, shape: Shape) -> dict[str, Any]:
    done, plan = _train(place, shape, limit=LIMIT)
    if plan is None:
        raise SystemExit(done.error)
    return {**shape._asdict(), "peak MiB": round(done.anonymous), "estimate MiB": round(plan["needed"] / 2**20)}


def _gib(text: str, pattern: str) -> float:
    found = re.search(pattern, text)
    if found is None:  # let through, and then it failed
        return float("nan")
    number, unit = found.group(1).split()
    return float(number) / (1 if unit == "GiB" else 1024)


if __name__ == "__main__":
    print({"limit": _limited, "memory": _peak}[sys.argv[1]](working_place(), int(sys.argv[2])))
