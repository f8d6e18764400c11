"""Time and memory of an epoch and a prediction as the graph grows.

python benchmarks/scaling_sizes.py 0.125 epoch       # one size and stage, then `prediction`; all are kept

The epoch of the smallest comes first: its weights are those that predict all sizes.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from scaling_parts import NotMeasured, kept, watched, working_place
from spam_gnn.checkpoint import read_tensors, write_tensors
from spam_gnn.config import SpaMConfig
from spam_gnn.data.entries import SPECS
from spam_gnn.data.facts import read_facts
from spam_gnn.data.folder import open_converted, write_converted
from spam_gnn.data.protocols import parse_protocol
from spam_gnn.data.reading import Reading
from spam_gnn.data.surrogate import draw
from spam_gnn.graph import Graph
from spam_gnn.inference.layerwise import predict_layerwise
from spam_gnn.kernels import compile_ahead
from spam_gnn.memory_plan import Sizes, bytes_in_batches
from spam_gnn.model import SpaM
from spam_gnn.resources import use_threads
from spam_gnn.settings import BatchConfig, TrainConfig
from spam_gnn.training import fit

SHARES = (1 / 8, 1 / 4, 1 / 2, 1.0)
BATCHES = BatchConfig(size=4096, neighbours=(4, 2))
MODEL = SpaMConfig(predict_samples=4)
STAGES = ("epoch", "prediction")


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
    """One epoch with its validation, and the exact K = 4 prediction, each in a process of its own on one thread (CPU seconds of
    several count what they wait); the tables and the page that a run writes besides are left out. Compiled code is loaded
    before the clock starts."""
    rows: list[dict[str, Any]] = []
    for share in SHARES:
        facts, found = read_facts(patents(place, share)), {}
        for stage in STAGES:
            with suppress(NotMeasured):
                found[stage] = one(place, share, stage)
        row: dict[str, Any] = {"share": share, "nodes": facts.nodes, "edges": facts.edges}
        for stage in STAGES:
            result = found.get(stage)
            for what, key in ((" s", "seconds"), (", CPU s", "cpu")):
                row[f"{stage}{what}"] = round(result[key], 1) if result else ""
            for what, key in (("peak GiB", "peak"), ("anonymous GiB", "anonymous")):
                row[f"{stage}, {what}"] = result.get(key, "") if result else ""
        row["estimate GiB"] = round(bytes_in_batches(Sizes.of_folder(facts, MODEL), MODEL, BATCHES) / 2**30, 2)
        rows.append(row)
        for column in (f"{stage}, CPU s" for stage in STAGES):  # wall times are those of a machine with other work on it
            row[f"exponent, {column}"] = _exponent([(r["nodes"], r[column]) for r in rows if r[column]])
        yield row | {"commit": ", ".join(f"{stage} {result['commit']}" for stage, result in found.items())}


def one(place: Path, share: float, stage: str) -> dict[str, Any]:
    """One stage at one size, or what was kept of it."""
    return kept(place / f"patents-{share:g}-{stage}.json", lambda: _watched(patents(place, share), place, stage))


def _watched(folder: Path, place: Path, stage: str) -> dict[str, Any]:
    weights = place / f"{patents(place, SHARES[0]).name if stage == 'prediction' else folder.name}.safetensors"
    done = watched([stage, str(folder), str(weights)], threads=1, program=[__file__, "--inside"])
    if done.code:
        raise SystemExit(done.error)
    sizes = {"peak": round(done.resident / 1024, 2), "anonymous": round(done.anonymous / 1024, 2)}
    return json.loads(done.out) | sizes | {"process s": round(done.seconds, 1)}


def _inside(stage: str, folder: Path, weights: Path) -> dict[str, float]:
    """What the watched process does."""
    graph = open_converted(folder).graph
    use_threads(graph, MODEL.hidden, MODEL.samples)
    model = SpaM(graph.num_features, graph.num_classes, MODEL, 0)
    compile_ahead(MODEL.kernel, "cpu")
    if stage == "epoch":
        cpu = time.process_time()
        state = fit(model, graph, TrainConfig(epochs=1), 0, batches=BATCHES)
        write_tensors(weights, model.state_dict(), {})
        return {"seconds": state.seconds, "cpu": time.process_time() - cpu, "val accuracy": state.history[-1]["val_accuracy"]}
    model.load_state_dict(read_tensors(weights)[0])
    begun, cpu = time.perf_counter(), time.process_time()
    found = predict_layerwise(model, graph, 0)
    seconds, cpu = time.perf_counter() - begun, time.process_time() - cpu
    right = found.prediction.label == graph.y
    return {"seconds": seconds, "cpu": cpu, "test accuracy": float(right[graph.test_mask].float().mean())}


def _exponent(measured: list[tuple[float, float]]) -> str:
    """Slope of log time over log size of (size, time) pairs, by least squares; nothing of a single size."""
    if len(measured) < 2:
        return ""
    x, y = [math.log(size) for size, _ in measured], [math.log(seconds) for _, seconds in measured]
    mx, my = sum(x) / len(x), sum(y) / len(y)
    return f"{sum((a - mx) * (b - my) for a, b in zip(x, y, strict=True)) / sum((a - mx) ** 2 for a in x):.2f}"


if __name__ == "__main__":
    if sys.argv[1] == "--inside":
        print(json.dumps(_inside(sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))))
    else:
        print(one(working_place(), float(sys.argv[1]), sys.argv[2]))
