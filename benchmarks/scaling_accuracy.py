"""Accuracy of sampled and clustered training beside that of the whole graph: same splits, same seeds.

python benchmarks/scaling_accuracy.py cornell5 0 sampled     # one run; what is done is kept, see `scaling.py`
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from scaling_parts import NotMeasured, kept, working_place
from spam_gnn import SpaM, SpaMConfig, TrainConfig
from spam_gnn.data import catalog
from spam_gnn.loading.batched import BatchConfig
from spam_gnn.position_shape import PositionShape
from spam_gnn.training import fit

GRAPHS = {"pubmed": "geom-gcn", "cornell5": "random:0.5/0.25/0.25"}
SPLITS = range(5)  # each with a seed of its own
# The default model, but lighter to train: a shorter row of the adjacency (256 numbers instead of 2048), K = 2 instead of 4, and
# 4 instead of 8 at the validation after an epoch. It is the same for all: what is compared are three ways to train it.
MODEL = SpaMConfig(position_rank=256, samples=2)
# An epoch is one step on the whole graph, 5 steps on sampled batches of these graphs and 8 on clusters.
IN_BATCHES = TrainConfig(epochs=45, patience=20, decay_patience=6, val_samples=4)
KINDS = {
    "whole": (BatchConfig(), TrainConfig(epochs=100, val_samples=4)),
    "sampled": (BatchConfig(2048, (10, 10)), IN_BATCHES),
    "clustered": (BatchConfig(clusters=32), IN_BATCHES),
}


def measure(place: Path) -> Iterator[dict[str, Any]]:
    """Five seeds, each on a split of its own; the test nodes are predicted on the whole graph, exactly."""
    for name, protocol in GRAPHS.items():
        runs = {kind: dict(_runs(place, name, kind)) for kind in KINDS}
        for kind, found in runs.items():
            if not found:
                continue
            test, validation, epochs = ([run[key] for run in found.values()] for key in ("test", "validation", "epochs"))
            less = [run["test"] - runs["whole"][split]["test"] for split, run in found.items() if split in runs["whole"]]
            spread = f" ± {statistics.stdev(test):.2f}" if len(test) > 1 else ""
            yield {
                "graph": f"{name} ({protocol})", "training": kind, "splits": len(found),
                "test accuracy %": f"{statistics.fmean(test):.2f}{spread}",
                "minus whole": f"{statistics.fmean(less):+.2f} ({', '.join(f'{d:+.2f}' for d in less)})" if less else "",
                "validation %": f"{statistics.fmean(validation):.2f}", "epochs": round(statistics.fmean(epochs)),
                "CPU s": round(statistics.fmean(run["cpu seconds"] for run in found.values())),
                "commit": ", ".join(sorted({run["commit"] for run in found.values()})),
            }  # fmt: skip


def _runs(place: Path, name: str, kind: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for split in SPLITS:
        with suppress(NotMeasured):
            yield split, one(place, name, split, kind)


def one(place: Path, name: str, split: int, kind: str) -> dict[str, Any]:
    """One run, or what was kept of it."""
    return kept(place / f"accuracy-{name}-{split}-{kind}.json", lambda: _train(name, split, kind))


def _train(name: str, split: int, kind: str) -> dict[str, Any]:
    torch.set_num_threads(1)
    batches, train = KINDS[kind]
    graph = catalog.load(name, split, split, GRAPHS[name])
    begun = time.process_time()
    place = PositionShape.wanted(
        MODEL.position, MODEL.position_rank, graph.num_nodes, graph.num_edges, directed=graph.directed
    )
    model = SpaM(graph.num_features, graph.num_classes, MODEL, split, place)
    state = fit(model, graph, train, split, batches=batches)
    right = (model.predict(model.prepare(graph), split).label == graph.y).float()
    return {
        "test": 100.0 * float(right[graph.test_mask].mean()), "validation": 100.0 * float(right[graph.val_mask].mean()),
        "epochs": state.epoch, "best epoch": state.best_epoch, "cpu seconds": time.process_time() - begun,
    }  # fmt: skip


if __name__ == "__main__":
    print(one(working_place(), sys.argv[1], int(sys.argv[2]), sys.argv[3]))
