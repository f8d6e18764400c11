"""`python benchmarks/speed.py [GRAPH ...]`: SpaM beside PyG's GCN and GAT, epoch and prediction; writes speed.md and speed.png.
`python benchmarks/speed.py growth` prints how an epoch grows, each model in a process of its own.

One process, one thread, models taking turns; medians with half the interquartile range. Further tables: the exact coder against
scikit-learn, the parts of an epoch in units of one CSR product, threads, and a hub. Finished parts are kept in
runs/speed/<commit>, so that an interrupted run goes on and a new commit is measured anew.
"""

# ruff: noqa: I001 - the package comes before torch: it lets idle threads of OpenMP sleep, which is read when torch is loaded
from __future__ import annotations

import spam_gnn  # noqa: F401

import json
import sys
from collections.abc import Callable
from typing import Any

import matplotlib
import numpy as np
import torch

from spam_gnn.experiments.speed import MODELS, NAMED, RANDOM, graph_named, measure, take_turns, work_named
from spam_gnn.experiments.speed_parts import epoch_alone, lasso_against_sklearn, parts_of_epoch, peak_memory, thread_gain
from spam_gnn.files import make_folder, write_json
from spam_gnn.resources import allowed_threads
from table import HERE, commit, provenance

matplotlib.use("Agg")
from matplotlib import pyplot as plt

STORE = HERE.parent / "runs" / "speed" / commit()
ABOUT = (
    "SpaM (posterior on, unrolled coder with T = 3, L = 2, width 64; K in the name; spam-default is the default preset, with "
    "its further networks) beside PyG's GCN and GAT (two layers, width 64, one head, no dropout on the input). One process, "
    "one thread, taking turns; CPU seconds, median ± half the quartile distance. "
    "SpaM predicts with K = 8. Peak memory is that of a process of its own, libraries included. `python benchmarks/speed.py`"
)
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
    large = name == "random:1e7"
    found = measure(name, repeats=3 if large else 9, budget=20.0)
    for model in ("gat", "spam-k4"):  # the larger of each kind
        found["models"][model]["peak_memory_mb"] = peak_memory(name, model)
    return found


def exact_on(threads: int) -> dict[str, float]:
    """The exact coder on so many threads; a run uses all that are allowed on a graph of this size."""
    torch.set_num_threads(threads)
    try:
        return lasso_against_sklearn("squirrel")
    finally:
        torch.set_num_threads(1)


def hub() -> dict[str, float]:
    """Epochs on a star with a hub of degree 10^6 and on a ring of as many nodes and messages, taking turns."""
    times = take_turns({name: work_named("spam-k4", graph_named(name)).epoch for name in HUB}, 3, 40.0)
    return {name: time.seconds for name, time in times.items()}


def table(header: tuple[str, ...], rows: list[list[str]]) -> list[str]:
    return [f"| {' | '.join(header)} |", f"|{'---|' * len(header)}", *(f"| {' | '.join(row)} |" for row in rows), ""]


def main_table(results: list[dict[str, Any]]) -> list[str]:
    rows = []
    for found in results:
        for model, entry in found["models"].items():
            rows.append([
                found["graph"], f"{found['messages']:,}", model,
                f"{entry['train_seconds']:.4f} ± {entry['train_spread']:.4f}", f"{found['ratio_to_gat'][model]:.2f}",
                f"{found['ratio_to_gcn'][model]:.2f}", f"{entry['predict_seconds']:.4f}",
                f"{found['predict_ratio_to_gat'][model]:.2f}",
                f"{entry['peak_memory_mb']:.0f}" if "peak_memory_mb" in entry else "",
            ])  # fmt: skip
    header = ("graph", "messages", "model", "epoch, s", "/ GAT", "/ GCN", "predict, s", "/ GAT", "peak MiB")
    return table(header, rows)


def exponent(messages: list[int], seconds: list[float]) -> str:
    """Of seconds in messages, by least squares on logarithms."""
    return f"{np.polyfit(np.log(messages), np.log(seconds), 1)[0]:.2f}"


def growth(results: list[dict[str, Any]]) -> list[str]:
    """How an epoch grows over the random graphs: each model in a process of its own, and as the table above has them (where it
    has them), where five models take turns and share the cache."""
    rows, found = [], {f["graph"]: f for f in results}
    sizes = {name: int(graph_named(name).num_edges) for name in RANDOM}
    for model in GROWING:
        alone = [kept(f"alone-{name}-{model}", lambda n=name, m=model: epoch_alone(n, m)) for name in RANDOM]
        turns = [found[f"random:{float(name.removeprefix('random:')):.0e}"]["models"][model]["train_seconds"]
                 for name in RANDOM] if found else []  # fmt: skip
        rows.append([model, exponent(list(sizes.values()), alone), exponent(list(sizes.values()), turns) if turns else "",
                     ", ".join(f"{seconds:.3g}" for seconds in alone)])  # fmt: skip
    header = ("model", "in a process of its own", "taking turns", "seconds of an epoch in a process of its own")
    about = f"Growth of an epoch over {', '.join(RANDOM)}: seconds grow as messages to the power of"
    return [about, "", *table(header, rows)]


def picture(results: list[dict[str, Any]]) -> None:
    figure, axes = plt.subplots(figsize=(6.4, 4.2), dpi=150)
    for model, colour in zip(MODELS, ("#888888", "#c2571a", "#4a90c2", "#17456b", "#2e8b57"), strict=True):
        points = sorted((f["messages"], f["models"][model]["train_seconds"]) for f in results)
        axes.loglog(*zip(*points, strict=True), "o-", color=colour, label=model, markersize=4, linewidth=1.2)
    axes.set_xlabel("messages (directed edges)")
    axes.set_ylabel("CPU seconds per training epoch, one thread")
    axes.grid(True, which="major", alpha=0.3)
    axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(HERE / "speed.png")


def main(names: list[str]) -> None:
    torch.set_num_threads(1)
    if names == ["growth"]:
        print("\n".join([*growth([]), provenance()]))
        return
    results = [kept(name, lambda n=name: one_graph(n)) for name in names or [*NAMED, *RANDOM]]
    parts = kept("parts-squirrel", lambda: parts_of_epoch("squirrel"))
    coders = [kept(f"lasso-squirrel-{count}", lambda c=count: exact_on(c)) for count in (1, allowed_threads())]
    threads = {name: kept(f"threads-{name}", lambda n=name: thread_gain(n)) for name in ("squirrel", "texas")}
    whole = not names or (STORE / "hub.json").exists()  # the hub has 10^6 neighbours: minutes, left out of a partial run
    ends = kept("hub", hub) if whole else None
    unit = parts["csr product"]
    lines = [
        "# Speed", "",
        ABOUT, "",
        *main_table(results), *(growth(results) if not names else []), "![seconds per epoch against messages](speed.png)", "",
        "## Parts of an epoch on squirrel (K = 4)", "",
        *table(("part", "seconds", "CSR products"), [[what, f"{s:.4f}", f"{s / unit:.1f}"] for what, s in parts.items()]),
        "## The exact coder against scikit-learn's Lasso in a loop over the nodes of squirrel", "",
        *table(("nodes", "threads of exact", "exact, s", "scikit-learn, s", "ratio", "largest difference"),
               [[f"{coder['nodes']}", f"{coder['threads']}", f"{coder['exact_seconds']:.3f}", f"{coder['sklearn_seconds']:.1f}",
                 f"{coder['ratio']:.0f}", f"{coder['largest_difference']:.1e}"] for coder in coders]),
        "## Threads and hubs", "",
        *table(("what", "figure"),
               [*([f"{n}: one thread over the {t['threads']} that a run uses there, K = 4", f"{t['gain']:.2f}"]
                  for n, t in threads.items()),
                ["star with a hub of degree 10^6 over a ring of as many nodes and messages, K = 4",
                 f"{ends[HUB[0]] / ends[HUB[1]]:.2f}" if ends else "not measured in this run"]]),
        provenance(),
    ]  # fmt: skip
    (HERE / "speed.md").write_text("\n".join(lines) + "\n")
    picture(results)


if __name__ == "__main__":
    main(sys.argv[1:])
