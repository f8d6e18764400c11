"""`spam-gnn bench speed`: what SpaM costs beside PyG's GCN and GAT on this machine."""

from __future__ import annotations

import json
import sys
import time

import torch

from spam_gnn.commands.console import OUT, table
from spam_gnn.experiments.speed import MODELS, NAMED, RANDOM, measure
from spam_gnn.experiments.speed_parts import peak_memory
from spam_gnn.kernels import chosen


def run_speed(graphs: str, repeats: int, threads: int, memory: bool, kernel: str, as_json: bool) -> None:
    """Measure graph by graph; `--json` prints one list when all are done, otherwise a table grows."""
    names = tuple(part.strip() for part in graphs.split(",") if part.strip()) or (*NAMED, *RANDOM[:2])
    torch.set_num_threads(threads)
    found = []
    for name in names:
        clock = time.process_time if threads == 1 else time.perf_counter
        result = measure(name, repeats=repeats, settings={"kernel": kernel}, clock=clock)
        result["threads"], result["kernel"] = threads, chosen(kernel)
        if memory:
            for model in MODELS:
                result["models"][model]["peak_memory_mb"] = peak_memory(name, model, threads)
        found.append(result)
        if not as_json:
            OUT.print(f"{result['graph']}: {result['messages']:,} messages")
            rows = [
                [model, f"{entry['train_seconds']:.4f} ± {entry['train_spread']:.4f}", f"{result['ratio_to_gat'][model]:.2f}",
                 f"{result['ratio_to_gcn'][model]:.2f}", f"{entry['predict_seconds']:.4f}",
                 f"{result['predict_ratio_to_gat'][model]:.2f}", f"{entry.get('peak_memory_mb', float('nan')):.0f}"]
                for model, entry in result["models"].items()
            ]  # fmt: skip
            heads = ("model", "epoch, s", "/ GAT", "/ GCN", "predict, s", "/ GAT", "peak MiB")
            table(f"{result['graph']} on {threads} thread(s), kernel {result['kernel']}", heads, rows)
    if as_json:
        sys.stdout.write(json.dumps(found, indent=2) + "\n")
