"""What `speed.py` measured, as a page: tables, the bars that the software is held to, a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

from spam_gnn.experiments.speed import MODELS, RANDOM

matplotlib.use("Agg")
from matplotlib import pyplot as plt

ABOUT = (
    "SpaM (posterior on, unrolled coder with T = 3, L = 2, width 64; K in the name; spam-default is the default preset, with "
    "its further networks) beside PyG's GCN and GAT (two layers, width 64, one head, no dropout on the input). One thread, "
    "models taking turns in one process; CPU seconds, medians over its rounds ± half the quartile distance. Several "
    "processes: their median, of ratios with the lowest and the highest. SpaM predicts with K = 8. Peak memory is that of a "
    "process of its own, libraries included. `python benchmarks/speed.py`; what "
    "stands behind the figures: [speed_notes.md](speed_notes.md)."
)
TIMES = ("train_seconds", "train_spread", "predict_seconds", "predict_spread")
RATIOS = ("ratio_to_gat", "ratio_to_gcn", "predict_ratio_to_gat")
EPOCHS = ("squirrel", "cornell5", "random:1e+06")
MEMORY = 10 * 1024  # MiB


def table(header: tuple[str, ...], rows: list[list[str]]) -> list[str]:
    return [f"| {' | '.join(header)} |", f"|{'---|' * len(header)}", *(f"| {' | '.join(row)} |" for row in rows), ""]


def shown(ratio: list[float]) -> str:
    """Median, and the range where processes disagree."""
    middle, low, high = ratio
    return f"{middle:.2f}" if f"{low:.1f}" == f"{high:.1f}" else f"{middle:.2f} ({low:.2f} to {high:.2f})"


def main_table(results: list[dict[str, Any]]) -> list[str]:
    rows = []
    for found in results:
        for model, entry in found["models"].items():
            epoch, predicted = (f"{entry[f'{job}_seconds']:.4f} ± {entry[f'{job}_spread']:.4f}" for job in ("train", "predict"))
            train, to_gcn, predict = (shown(found[ratio][model]) for ratio in RATIOS)
            rows.append([
                found["graph"], f"{found['messages']:,}", f"{found['processes']}", model, epoch, train, to_gcn,
                predicted, predict,
                f"{entry['peak_memory_mb']:.0f}" if "peak_memory_mb" in entry else "",
            ])  # fmt: skip
    header = ("graph", "messages", "processes", "model", "epoch, s", "/ GAT", "/ GCN", "predict, s", "/ GAT", "peak MiB")
    return table(header, rows)


def exponent(messages: list[int], seconds: list[float]) -> float:
    """Of seconds in messages, by least squares on logarithms."""
    return float(np.polyfit(np.log(messages), np.log(seconds), 1)[0])


def growth_table(growth: dict[str, Any], results: list[dict[str, Any]]) -> list[str]:
    """How an epoch grows over the random graphs: each model in a process of its own, and as the main table has them (where it
    has them), where five models take turns and share the cache."""
    rows, random = [], [found for found in results if found["graph"].startswith("random:")]
    for model, alone in growth["alone"].items():
        turns = [found["models"][model]["train_seconds"] for found in random]
        rows.append([model, f"{exponent(growth['messages'], alone):.2f}",
                     f"{exponent(growth['messages'], turns):.2f}" if turns else "",
                     ", ".join(f"{seconds:.3g}" for seconds in alone)])  # fmt: skip
    header = ("model", "in a process of its own", "taking turns", "seconds of an epoch in a process of its own")
    about = f"Growth of an epoch over {', '.join(RANDOM)}: seconds grow as messages to the power of"
    return [about, "", *table(header, rows)]


def held(figures: dict[str, float], most: float) -> str:
    """Whether a bar holds everywhere, or where it does not."""
    beyond = [name for name, figure in figures.items() if not figure <= most]
    return f"NOT on {', '.join(beyond)}" if beyond else "holds"


def bars(measured: dict[str, Any]) -> list[list[str]]:
    """Each bar with what it was held against; medians where there were several processes."""
    graphs = {found["graph"]: found for found in measured["graphs"]}

    def row(what: str, figures: dict[str, float], most: float, digits: int = 2) -> list[str]:
        return [what, ", ".join(f"{name} {figure:.{digits}f}" for name, figure in figures.items()), held(figures, most)]

    def ratios(key: str, model: str, names: tuple[str, ...]) -> dict[str, float]:
        return {name: graphs[name][key][model][0] for name in names}

    every, growing = tuple(graphs), measured["growth"]
    powers = {m: exponent(growing["messages"], growing["alone"][m]) for m in ("spam-k1", "spam-k4")}
    largest = graphs["random:1e+07"]["models"]["spam-k4"]["peak_memory_mb"]
    exact = {f"{coder['threads']} thread(s)": coder["ratio"] for coder in measured["coders"]}
    gains = {name: found["gain"] for name, found in measured["threads"].items()}
    fast = max(exact.values()) >= 50
    two = gains["squirrel"] >= 1.6 and (measured["threads"]["texas"]["threads"] == 1 or gains["texas"] >= 1)
    return [
        row("epoch, K = 1, at most one GAT epoch", ratios("ratio_to_gat", "spam-k1", EPOCHS), 1),
        row("epoch, K = 4, at most 2.5 (the aim: 1)", ratios("ratio_to_gat", "spam-k4", EPOCHS), 2.5),
        row("epoch, K = 4, on texas at most 4 (the aim: 2)", ratios("ratio_to_gat", "spam-k4", ("texas",)), 4),
        row("the default preset's epoch: the same 2.5", ratios("ratio_to_gat", "spam-default", EPOCHS), 2.5),
        row("and 4 on texas", ratios("ratio_to_gat", "spam-default", ("texas",)), 4),
        row("prediction, K = 8, at most 3 GAT predictions", ratios("predict_ratio_to_gat", "spam-k4", every), 3),
        row("the default preset's prediction: the same 3", ratios("predict_ratio_to_gat", "spam-default", every), 3),
        row("time grows at most as messages ^ 1.1 from 10^5 to 10^7", powers, 1.1, 3),
        row("10^7 messages train within 10 GiB, MiB", {"spam-k4": largest}, MEMORY, 0),
        row("a star with a hub of 10^6 at most 1.5 times a ring", {"spam-k4": measured["hub"]}, 1.5),
        ["exact coder at least 50 times as fast as scikit-learn's loop, on squirrel",
         ", ".join(f"{name} {ratio:.0f}" for name, ratio in exact.items()), "holds with all cores" if fast else "NOT held"],
        ["two threads at least 1.6 times one on squirrel, never slower on texas (which a run gives one thread)",
         ", ".join(f"{name} {gain:.2f}" for name, gain in gains.items()), "holds" if two else "NOT held"],
    ]  # fmt: skip


def page(measured: dict[str, Any], provenance: str) -> str:
    graphs, parts, unit = measured["graphs"], measured["parts"], measured["parts"]["csr product"]
    lines = [
        "# Speed", "", ABOUT, "",
        "## How far the bars hold", "",
        *table(("bar", "measured", ""), bars(measured)),
        "## Epochs and predictions", "",
        *main_table(graphs), *growth_table(measured["growth"], graphs),
        "![seconds per epoch against messages](speed.png)", "",
        "## Parts of an epoch on squirrel (K = 4)", "",
        *table(("part", "seconds", "CSR products"), [[what, f"{s:.4f}", f"{s / unit:.1f}"] for what, s in parts.items()]),
        "## The exact coder against scikit-learn's Lasso in a loop over the nodes of squirrel", "",
        *table(("nodes", "threads of exact", "exact, s", "scikit-learn, s", "ratio", "largest difference"),
               [[f"{coder['nodes']}", f"{coder['threads']}", f"{coder['exact_seconds']:.3f}", f"{coder['sklearn_seconds']:.1f}",
                 f"{coder['ratio']:.0f}", f"{coder['largest_difference']:.1e}"] for coder in measured["coders"]]),
        "## Threads", "",
        *table(("what", "figure"), [[f"{name}: one thread over the {found['threads']} that a run uses there, K = 4",
                                     f"{found['gain']:.2f}"] for name, found in measured["threads"].items()]),
        provenance,
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def draw(results: list[dict[str, Any]], path: Path) -> None:
    figure, axes = plt.subplots(figsize=(6.4, 4.2), dpi=150)
    for model, colour in zip(MODELS, ("#888888", "#c2571a", "#4a90c2", "#17456b", "#2e8b57"), strict=True):
        points = sorted((f["messages"], f["models"][model]["train_seconds"]) for f in results)
        axes.loglog(*zip(*points, strict=True), "o-", color=colour, label=model, markersize=4, linewidth=1.2)
    axes.set_xlabel("messages (directed edges)")
    axes.set_ylabel("CPU seconds per training epoch, one thread")
    axes.grid(True, which="major", alpha=0.3)
    axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path)
