"""`python benchmarks/systems_cost.py`: what one epoch of each registered system costs on squirrel and pubmed.

Each system with its default settings, in a process of its own (forked once the graph is loaded), one thread: milliseconds of
one training epoch (loss, gradient, step; median of three after one to warm up) on the clock and on the processor, seconds until
ready (`begin` and the first epoch, with all that is computed of the graph once), peak resident memory from then on, and how
much of it is above what the process held with the graph loaded (Linux only). A system that refuses for want of memory, fails or
is not ready in time has its reason in place of the figures. Finished measurements are kept in runs/systems_cost, so that a
second call goes on; the commit named below is that of the last one. The machine is shared: milliseconds of the processor are
the ones to compare, those of the clock and the seconds until ready hold the waiting too.

Names as arguments measure those systems only and print instead of writing the table: `benchmarks/systems_cost.py gcn gat`.
"""

from __future__ import annotations

import argparse
import gc
import json
import multiprocessing
import statistics
import time
from multiprocessing.connection import Connection
from pathlib import Path

import torch

from spam_gnn.baselines.base import Shape
from spam_gnn.baselines.registry import find, systems
from spam_gnn.data import catalog
from spam_gnn.errors import SpamError
from spam_gnn.files import make_folder, write_json
from spam_gnn.graph import Graph
from spam_gnn.training import TrainConfig, make_optimiser
from table import HERE, write_table

STORE = HERE.parent / "runs" / "systems_cost"
DATASETS = ("squirrel", "pubmed")
Result = dict[str, float | str]


def _status(field: str) -> float:
    """A line of the kernel's account of this process, in MiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) / 1024.0 for line in lines if line.startswith(field))


def forget_peak() -> float:
    """Start the peak anew, since loading a graph may need more than training on it; returns MiB held now."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def measure(name: str, graph: Graph, epochs: int) -> Result:
    """In this process: seconds to get ready, seconds of an epoch, MiB at the peak and above the loaded graph."""
    system = find(name)
    config = TrainConfig(**system.train)
    loaded, started = forget_peak(), time.perf_counter()
    model = system.make(Shape.of(graph), system.settings, 0)
    model.begin(graph, 0)
    prepared, optimiser = model.prepare(graph), make_optimiser(model, config)
    clock, processor, ready = [], [], 0.0
    for epoch in range(epochs + 1):
        begun, used = time.perf_counter(), time.process_time()
        optimiser.zero_grad(set_to_none=True)
        model.training_loss(prepared, 0, epoch)["loss"].backward()
        optimiser.step()
        clock.append(time.perf_counter() - begun)
        processor.append(time.process_time() - used)
        if epoch == 0:
            ready = time.perf_counter() - started
    peak, parameters = _status("VmHWM"), sum(p.numel() for p in model.parameters() if p.requires_grad)
    return {"ready": ready, "epoch": statistics.median(clock[1:]), "processor": statistics.median(processor[1:]),
            "peak": peak, "above": peak - loaded, "parameters": parameters}  # fmt: skip


def _child(answer: Connection, name: str, graph: Graph, epochs: int) -> None:
    """What the forked process does: send the measurement, or why there is none."""
    try:
        answer.send(measure(name, graph, epochs))
    except SpamError as error:
        answer.send({"refused": f"exit code {error.exit_code}: {error}"})
    except Exception as error:  # a failure is a row of the table too
        answer.send({"refused": f"failed: {type(error).__name__}: {str(error).splitlines()[0][:120]}"})


def one(name: str, dataset: str, graph: Graph, epochs: int, limit: float) -> Result:
    """The measurement of a process of its own; ended when it takes longer than `limit` seconds."""
    context = multiprocessing.get_context("fork")
    receive, send = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(send, name, graph, epochs))
    process.start()
    send.close()  # so that the end of the child is the end of the pipe
    try:
        if not receive.poll(limit):
            return {"refused": f"not done in {limit:.0f} s"}
        return receive.recv()
    except EOFError:
        process.join()
        return {"refused": f"ended by signal or exit ({process.exitcode}) on {dataset}, most likely for want of memory"}
    finally:
        process.kill()  # of no effect on one that has ended
        process.join()


def row(dataset: str, name: str, result: Result) -> list[str]:
    about = [dataset, name, find(name).family]
    if "refused" in result:
        return [*about, "–", "–", "–", "–", "–", str(result["refused"])]
    figures = {key: float(value) for key, value in result.items()}
    return [*about, f"{1000 * figures['epoch']:.0f}", f"{1000 * figures['processor']:.0f}", f"{figures['ready']:.2f}",
            f"{figures['peak']:.0f}", f"{figures['above']:.0f}", f"{figures['parameters']:,.0f} parameters"]  # fmt: skip


def measured(dataset: str, names: list[str], epochs: int, limit: float, *, keep: bool) -> list[list[str]]:
    """The rows of one dataset, printed as they come; what is stored is not measured again."""
    if not catalog.is_present(dataset):
        print(f"{dataset}: raw files are absent, left out")
        return []
    graph, rows = catalog.load(dataset, 0, 0), []
    for name in names:
        path = STORE / f"{dataset}-{name}.json"
        if keep and path.exists():
            result = json.loads(path.read_text())
        else:
            result = one(name, dataset, graph, epochs, limit)
            if keep:
                write_json(path, result)
        rows.append(row(dataset, name, result))
        print(" | ".join(rows[-1]), flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", help="systems to measure; all without any")
    parser.add_argument("--epochs", type=int, default=3, help="epochs to take the median of")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds that one system may take")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    names, keep = arguments.names or sorted(systems()), not arguments.names
    if keep:
        make_folder(STORE)
    rows = [line for dataset in DATASETS for line in measured(dataset, names, arguments.epochs, arguments.limit, keep=keep)]
    if keep:
        about = (__doc__ or "").split("\n\n")[1].replace("\n", " ") + " Rerun: `python benchmarks/systems_cost.py`."
        header = ("dataset", "model", "family", "epoch, ms", "epoch, CPU ms", "until ready, s", "peak, MiB", "above start, MiB",
                  "size, or why there is none")  # fmt: skip
        write_table("systems_cost", "Cost of one epoch", about, header, rows)


if __name__ == "__main__":
    main()
