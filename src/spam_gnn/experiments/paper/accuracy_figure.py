"""The figure beside an accuracy table: every system a dot, SpaM and what the paper prints for it marked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spam_gnn.experiments.paper import published
from spam_gnn.experiments.paper.comparison import OURS, Comparison
from spam_gnn.report.exhibit import ResultFigure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NAMED = 2  # the strongest systems of a dataset are written beside their dots


def accuracy_figure(made: Comparison, name: str) -> ResultFigure:
    """Accuracy of every system, one line per dataset."""
    caption = ("Test accuracy of every system (grey), of SpaM (blue, with its standard deviation) and what the paper prints "
               "for SpaM (orange diamond); the strongest systems are named.")  # fmt: skip
    return ResultFigure(name, caption, lambda: _draw(made))


def _draw(made: Comparison) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 0.6 + 0.55 * len(made.datasets)), layout="constrained")
    axes = figure.subplots()
    for line, data in enumerate(made.datasets):
        means = {m: made.cell(m, data).mean for m in made.models}
        known = {m: mean for m, mean in means.items() if mean is not None}
        others = {m: mean for m, mean in known.items() if m != OURS}
        axes.plot(list(others.values()), [line] * len(others), "o", color="#9aa1a9", alpha=0.6, markersize=5)
        for place, model in enumerate(sorted(others, key=lambda m: -others[m])[:_NAMED]):
            axes.annotate(model, (others[model], line), xytext=(3, 7 if place else -13), textcoords="offset points",
                          fontsize=7, color="#59626d")  # fmt: skip
        if OURS in known:
            axes.errorbar(known[OURS], line, xerr=made.cell(OURS, data).std or 0.0, fmt="o", color="#0b6bb3", markersize=7)
        paper = published.paper_figure(OURS, data)
        if paper is not None:
            axes.plot(paper.mean, line, "D", markerfacecolor="none", color="#c24e08", markersize=8)
    axes.set_yticks(range(len(made.datasets)), labels=list(made.datasets))
    axes.set_ylim(len(made.datasets) - 0.4, -0.6)
    axes.set_xlabel("test accuracy, %")
    axes.grid(axis="x", color="#e0ddd6", linewidth=0.6)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    return figure
