"""`python benchmarks/speed.py`: SpaM beside PyG's GCN and GAT, epoch and prediction; writes speed.md and speed.png.
`python benchmarks/speed.py GRAPH ...` measures these graphs alone and prints their table; `growth` how an epoch grows.

One thread, models taking turns in one process, and several such processes, since what PyG's layers cost depends on the luck of
a process with its allocator. Further tables: the exact coder against scikit-learn, the parts of an epoch in units of one CSR
product, threads, and a hub. Finished parts are kept in runs/speed/<commit>, so that an interrupted run goes on and a new commit
is measured anew.
"""

# ruff: noqa: I001 - the package comes before torch: it lets idle threads of OpenMP sleep, which is read when torch is loaded
from __future__ import annotations

import spam_gnn  # noqa: F401

import json
import statistics
import sys
from collections.abc import Callable
from typing import Any

import torch

from spam_gnn.experiments.speed import MODELS, NAMED, RANDOM, graph_named, take_turns, work_named
from spam_gnn.experiments.speed_parts import epoch_alone, in_fresh_process, lasso_against_sklearn
from spam_gnn.experiments.speed_parts import parts_of_epoch, peak_memory, thread_gain
from spam_gnn.files import make_folder, write_json
from spam_gnn.resources import allowed_threads
from speed_page import RATIOS, TIMES, draw, growth_table, main_table, page
from table import HERE, commit, provenance

STORE = HERE.parent / "runs" / "speed" / commit()
FEW_MESSAGES, MANY_MESSAGES = 500_000, 5_000_000  # below the first five processes a graph, from the second on one
HUB = ("star:1e6", "ring:1e6")
GROWING = ("spam-k1", "spam-k4", "gat")


def kept(name: str, job: Callable[[], Any]) -> Any:
    """The stored result, or the job's, stored."""
    make_folder(STORE)
    path = STORE / f"{name.replace(':', '-')}.json"
    if not path.exists():
        print(name, flush=True)
        write_json(path, job())
    return json.loads(path.read_text())


def one_graph(name: str) -> dict[str, Any]:
    messages = graph_named(name).num_edges
    processes = 5 if messages < FEW_MESSAGES else 3 if messages < MANY_MESSAGES else 1
    found = in_processes(name, processes)
    for model in ("gat", "spam-k4"):  # the larger of each kind
        found["models"][model]["peak_memory_mb"] = peak_memory(name, model)
    return found


def in_processes(name: str, processes: int) -> dict[str, Any]:
    """`turns_here` in so many processes, one after the other: medians of seconds and ratios, and the range of the ratios."""
    turns = [in_fresh_process("speed.turns_here", name) for _ in range(processes)]
    found = {key: turns[0][key] for key in ("graph", "messages")} | {"processes": processes, "models": {}}
    for model in MODELS:
        found["models"][model] = {key: statistics.median(turn["models"][model][key] for turn in turns) for key in TIMES}
    for ratio in RATIOS:
        seen = {model: [turn[ratio][model] for turn in turns] for model in MODELS}
        found[ratio] = {m: [statistics.median(values), min(values), max(values)] for m, values in seen.items()}
    return found


def exact_on(threads: int) -> dict[str, float]:
    """The exact coder on so many threads; a run uses all that are allowed on a graph of this size."""
    torch.set_num_threads(threads)
    try:
        return lasso_against_sklearn("squirrel")
    finally:
        torch.set_num_threads(1)


def hub() -> float:
    """An epoch on a star with a hub of degree 10^6 over one on a ring of as many nodes and messages, taking turns."""
    times = take_turns({name: work_named("spam-k4", graph_named(name)).epoch for name in HUB}, 3, 40.0)
    return times[HUB[0]].seconds / times[HUB[1]].seconds


def growth() -> dict[str, Any]:
    """Messages of the random graphs, and seconds of an epoch of each model on them in a process of its own."""
    alone = {m: [kept(f"alone-{name}-{m}", lambda n=name, m=m: epoch_alone(n, m)) for name in RANDOM] for m in GROWING}
    return {"messages": [int(graph_named(name).num_edges) for name in RANDOM], "alone": alone}


def main(names: list[str]) -> None:
    torch.set_num_threads(1)
    if names == ["growth"]:
        print("\n".join([*growth_table(growth(), []), provenance()]))
        return
    graphs = [kept(name, lambda n=name: one_graph(n)) for name in names or [*NAMED, *RANDOM]]
    if names:
        print("\n".join([*main_table(graphs), provenance()]))
        return
    measured = {
        "graphs": graphs,
        "growth": growth(),
        "parts": kept("parts-squirrel", lambda: parts_of_epoch("squirrel")),
        "coders": [kept(f"lasso-squirrel-{count}", lambda c=count: exact_on(c)) for count in (1, allowed_threads())],
        "threads": {name: kept(f"threads-{name}", lambda n=name: thread_gain(n)) for name in ("squirrel", "texas")},
        "hub": kept("hub", hub),
    }
    (HERE / "speed.md").write_text(page(measured, provenance()))
    draw(graphs, HERE / "speed.png")


if __name__ == "__main__":
    main(sys.argv[1:])
