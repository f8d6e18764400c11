"""Test accuracy of sampled and clustered training beside that of the whole graph: same splits, same seeds."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from spam_gnn import SpaM, SpaMConfig, TrainConfig
from spam_gnn.data import catalog
from spam_gnn.loading.batched import BatchConfig
from spam_gnn.training import fit

GRAPHS = {"pubmed": ("geom-gcn", 5), "cornell5": ("linkx", 5)}
# What each kind of batch needs differs: many small steps want fewer epochs, and large batches keep more of a neighbourhood.
KINDS = {
    "whole": (BatchConfig(), TrainConfig(epochs=150)),
    "sampled": (BatchConfig(size=2048, neighbours=(10, 10)), TrainConfig(epochs=30, patience=15, decay_patience=8)),
    "clustered": (BatchConfig(clusters=32, joined=4), TrainConfig(epochs=60, patience=25, decay_patience=12)),
}


def measure(place: Path) -> Iterator[dict[str, Any]]:
    """Five seeds, each on a split of its own; the test nodes are predicted on the whole graph, exactly."""
    torch.set_num_threads(1)
    for name, (protocol, splits) in GRAPHS.items():
        found: dict[str, list[float]] = {kind: [] for kind in KINDS}
        seconds = dict.fromkeys(KINDS, 0.0)
        for split in range(splits):
            graph = catalog.load(name, split, split, protocol)
            for kind, (batches, train) in KINDS.items():
                kept = place / f"accuracy-{name}-{split}-{kind}.txt"
                if not kept.exists():
                    begun = time.monotonic()
                    model = SpaM(graph.num_features, graph.num_classes, SpaMConfig(), split)
                    fit(model, graph, train, split, batches=batches)
                    right = model.predict(model.prepare(graph), split).label == graph.y
                    accuracy = 100.0 * float(right[graph.test_mask].float().mean())
                    kept.write_text(f"{accuracy} {time.monotonic() - begun}")
                accuracy, spent = map(float, kept.read_text().split())
                found[kind].append(accuracy)
                seconds[kind] += spent / splits
        for kind, values in found.items():
            difference = [a - b for a, b in zip(values, found["whole"], strict=True)]
            yield {
                "graph": f"{name} ({protocol}, {splits} splits)", "training": kind, "test accuracy %":
                f"{statistics.fmean(values):.2f} ± {statistics.stdev(values):.2f}",
                "minus whole": f"{statistics.fmean(difference):+.2f}", "s per run": round(seconds[kind], 1),
            }  # fmt: skip
