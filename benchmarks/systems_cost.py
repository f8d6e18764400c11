"""`python benchmarks/systems_cost.py`: what one epoch of each registered system costs on squirrel and pubmed.

Each system with its default settings, in a process of its own, one thread: seconds of one training epoch (loss, gradient, step;
median after one epoch to warm up), seconds until ready (`begin` and the first epoch, with all that is computed of the graph
once), peak resident memory from then on, and how much of it is above what the process held with the graph loaded (Linux only).
Finished measurements are kept in runs/systems_cost.

Names as arguments measure those systems only and print instead of writing the table: `benchmarks/systems_cost.py gcn gat`.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch

from spam_gnn.baselines.base import Shape
from spam_gnn.baselines.registry import find, systems
from spam_gnn.data import catalog
from spam_gnn.errors import SpamError
from spam_gnn.files import make_folder, write_json
from spam_gnn.training import TrainConfig, make_optimiser
from table import HERE, write_table

STORE = HERE.parent / "runs" / "systems_cost"
DATASETS = ("squirrel", "pubmed")
LIMIT_SECONDS = 1800


def _status(field: str) -> float:
    """A line of the kernel's account of this process, in MiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) / 1024.0 for line in lines if line.startswith(field))


def forget_peak() -> float:
    """Start the peak anew, since loading a graph may need more than training on it; returns MiB held now."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def measure(name: str, dataset: str, epochs: int) -> dict[str, float]:
    """In this process: seconds to get ready, seconds of an epoch, MiB at the peak and above the loaded graph."""
    graph, system = catalog.load(dataset, 0, 0), find(name)
    config = TrainConfig(**system.train)
    loaded, started = forget_peak(), time.perf_counter()
    model = system.make(Shape.of(graph), system.settings, 0)
    model.begin(graph, 0)
    prepared, optimiser = model.prepare(graph), make_optimiser(model, config)
    seconds = []
    for epoch in range(epochs + 1):
        begun = time.perf_counter()
        optimiser.zero_grad(set_to_none=True)
        model.training_loss(prepared, 0, epoch)["loss"].backward()
        optimiser.step()
        seconds.append(time.perf_counter() - begun)
        if epoch == 0:
            ready = time.perf_counter() - started
    peak, parameters = _status("VmHWM"), sum(p.numel() for p in model.parameters() if p.requires_grad)
    return {"ready": ready, "epoch": statistics.median(seconds[1:]), "peak": peak, "above": peak - loaded,
            "parameters": parameters}  # fmt: skip


def child(name: str, dataset: str, epochs: int) -> None:
    """What the started process does: one line of JSON, the measurement or why there is none."""
    torch.set_num_threads(1)
    try:
        print(json.dumps(measure(name, dataset, epochs)))
    except SpamError as error:
        print(json.dumps({"refused": str(error)}))


def one(name: str, dataset: str, epochs: int, *, keep: bool) -> dict[str, float]:
    """The measurement of a process of its own, or the stored one."""
    path = STORE / f"{dataset}-{name}.json"
    if keep and path.exists():
        return json.loads(path.read_text())
    command = [sys.executable, __file__, "--child", dataset, "--epochs", str(epochs), name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return {"refused": f"not done in {LIMIT_SECONDS} s"}  # pyright: ignore[reportReturnType]
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return {"refused": f"exit code {done.returncode}: {last}"}  # pyright: ignore[reportReturnType]
    result = json.loads(done.stdout.strip().splitlines()[-1])
    if keep:
        write_json(path, result)
    return result


def row(dataset: str, name: str, result: dict[str, float]) -> list[str]:
    about = [dataset, name, find(name).family]
    if "refused" in result:
        return [*about, str(result["refused"]), "–", "–", "–", "–"]
    return [*about, f"{1000 * result['epoch']:.0f}", f"{result['ready']:.2f}", f"{result['peak']:.0f}",
            f"{result['above']:.0f}", f"{result['parameters']:,}"]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", help="systems to measure; all without any")
    parser.add_argument("--epochs", type=int, default=10, help="epochs to take the median of")
    parser.add_argument("--child", metavar="DATASET", help="measure one system on this dataset in this very process")
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.names[0], arguments.child, arguments.epochs)
        return
    names, rows, keep = arguments.names or sorted(systems()), [], not arguments.names
    if keep:
        make_folder(STORE)
    for dataset in DATASETS:
        if not catalog.is_present(dataset):
            print(f"{dataset}: raw files are absent, left out")
            continue
        for name in names:
            rows.append(row(dataset, name, one(name, dataset, arguments.epochs, keep=keep)))
            print(" | ".join(rows[-1]), flush=True)
    if keep:
        about = (__doc__ or "").split("\n\n")[1].replace("\n", " ") + " Rerun: `python benchmarks/systems_cost.py`."
        header = ("dataset", "model", "family", "epoch, ms", "until ready, s", "peak, MiB", "above start, MiB", "parameters")
        write_table("systems_cost", "Cost of one epoch", about, header, rows)


if __name__ == "__main__":
    main()
