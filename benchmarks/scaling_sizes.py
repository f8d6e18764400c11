"""Time and memory of an epoch and a prediction as the graph grows.

python benchmarks/scaling_sizes.py 0.125      # one size; what is done is kept, see `scaling.py`
"""

from __future__ import annotations

import json
import math
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from scaling_parts import kept, watched, working_place
from spam_gnn.data.entries import SPECS
from spam_gnn.data.folder import write_converted
from spam_gnn.data.protocols import parse_protocol
from spam_gnn.data.reading import Reading
from spam_gnn.data.surrogate import draw
from spam_gnn.graph import Graph

SHARES = (1 / 8, 1 / 4, 1 / 2, 1.0)
OPTIONS = ["--batch-size", "4096", "--neighbours", "4,2", "--epochs", "1", "--set", "predict_samples=4"]


def patents(place: Path, share: float) -> Path:
    """The surrogate with a share of the nodes and edges of snap-patents, converted once."""
    folder = place / f"patents-{share:g}"
    if not folder.exists():
        spec = SPECS["snap-patents"]
        nodes, edges = spec.expected.nodes or 0, spec.expected.edges or 0
        figures = replace(spec.expected, nodes=round(nodes * share), edges=round(edges * share))
        x, ends, y = draw(figures, directed=True, stored_once=True, seed=0)
        graph = Graph.build(x, ends, y, directed=True, num_classes=figures.classes, name=folder.name)
        write_converted(Reading(parse_protocol("random:0.5/0.25/0.25").draw(graph, 0), ()), folder)
    return folder


def measure(place: Path) -> Iterator[dict[str, Any]]:
    """One epoch with its validation, and the exact K = 4 prediction that follows; what was measured before is kept."""
    rows: list[dict[str, Any]] = []
    for share in SHARES:
        rows.append({"share": share, **one(place, share)})
        for column in ("epoch s", "prediction s"):
            rows[-1][f"exponent, {column}"] = _exponent([r["nodes"] for r in rows], [r[column] for r in rows])
        yield rows[-1]


def one(place: Path, share: float) -> dict[str, Any]:
    """One size, or what was kept of it."""
    return kept(place / f"patents-{share:g}.json", lambda: _one(patents(place, share), place / "run"))


def _one(folder: Path, out: Path) -> dict[str, Any]:
    shutil.rmtree(out, ignore_errors=True)
    trained = watched(["train", "--graph", str(folder), *OPTIONS, "--out", str(out)], threads=2)
    if trained.code:
        raise SystemExit(trained.error)
    metrics = json.loads((out / "metrics.json").read_text())
    shutil.rmtree(out, ignore_errors=True)
    return {
        "nodes": metrics["nodes"], "edges": metrics["edges"], "epoch s": round(metrics["seconds"], 1),
        "prediction s": round(metrics["prediction_seconds"], 1), "whole command s": round(trained.seconds, 1),
        "peak GiB": round(trained.resident / 1024, 2), "of it anonymous": round(trained.anonymous / 1024, 2),
        "estimate GiB": round(metrics["memory_plan"]["needed"] / 2**30, 2),
    }  # fmt: skip


def _exponent(sizes: list[float], times: list[float]) -> str:
    """Slope of log time over log size, by least squares; nothing of a single size."""
    if len(sizes) < 2:
        return ""
    x, y = [math.log(s) for s in sizes], [math.log(t) for t in times]
    mx, my = sum(x) / len(x), sum(y) / len(y)
    return f"{sum((a - mx) * (b - my) for a, b in zip(x, y, strict=True)) / sum((a - mx) ** 2 for a in x):.2f}"


if __name__ == "__main__":
    print(one(working_place(), float(sys.argv[1])))
