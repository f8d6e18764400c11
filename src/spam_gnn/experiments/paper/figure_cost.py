"""`figure-cost`: time of an epoch and peak memory against samples K, layers L and edges, beside the paper's O(K L m)."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from spam_gnn.baselines.registry import find
from spam_gnn.experiments import drawing
from spam_gnn.experiments.paper.labelled import Label, Plan, grouped, specs_of, spreads
from spam_gnn.experiments.spec import Perturbation, RunSpec
from spam_gnn.experiments.store import Record, RunStore
from spam_gnn.experiments.study import Study, StudyResult
from spam_gnn.report.exhibit import ResultFigure, ResultTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME, REPEATS = "figure-cost", 3
TRAIN = {"epochs": 20, "select": False}  # training epochs alone: no validation between them
SAMPLES, LAYERS, KEPT = (1, 2, 4, 8, 16), (1, 2, 4, 8), (0.1, 0.25, 0.5, 0.75, 1.0)
SMALL, LARGE = "cora", "squirrel"  # `LARGE` loses edges at random: same nodes and features, fewer messages
MODELS = ("spam", "gcn", "gat")
PARTS = {"seconds_per_epoch": "seconds per epoch", "peak_memory_mb": "peak memory of the process, MiB"}


def plan() -> Plan:
    runs: list[tuple[Label, RunSpec]] = []

    def add(
        label: Label, data: str, model: str, seed: int, settings: dict[str, Any], change: Perturbation | None = None
    ) -> None:
        runs.append((label, RunSpec.of(data, model, seed=seed, settings=settings, train=TRAIN, perturbation=change)))

    for seed in range(REPEATS):
        for k in SAMPLES:
            add(("samples K", k, "spam"), SMALL, "spam", seed, {"samples": k})
        for depth in LAYERS:
            for model in MODELS:
                add(("layers L", depth, model), SMALL, model, seed, {"layers": depth})
        for share in KEPT:
            for model in MODELS:
                change = Perturbation("deletions", round(1.0 - share, 2)) if share < 1.0 else None
                add(("share of edges", share, model), LARGE, model, seed, {}, change)
    return runs


def specs(store: RunStore) -> list[RunSpec]:  # noqa: ARG001 - no run depends on another
    return specs_of(plan())


def render(records: Sequence[Record]) -> StudyResult:
    groups = grouped(plan(), records)
    found = {part: {label: s.mean for label, s in spreads(groups, _number(part)).items()} for part in PARTS}
    rows = tuple(
        (what, f"{x:g}", find(model).title, 1000.0 * found["seconds_per_epoch"][what, x, model],
         found["peak_memory_mb"].get((what, x, model)))
        for what, x, model in found["seconds_per_epoch"]
    )  # fmt: skip
    table = ResultTable(NAME, ("what", "value", "system", "ms per epoch", "peak memory, MiB"), rows)
    intro = (f"Training epochs without validation, one thread, mean of {REPEATS} runs; K and L on {SMALL}, edges on {LARGE} "
             "with a share of its edges. Every system has its default settings; SpaM has position columns then, which join "
             "where nodes have ten or more edge ends: a step in the last column. Preparing them is not part of an epoch. Peak "
             "memory is that of the whole process, libraries included.\n\n")  # fmt: skip
    caption = "Time of a training epoch and peak memory against samples, layers and edges; the dashed line is proportional."
    figure = ResultFigure(NAME, caption, lambda: _draw(found))
    return StudyResult(intro + table.markdown(), (table,), (figure,), _verdict(found["seconds_per_epoch"]))


def _number(part: str) -> Callable[[Record], float | None]:
    return lambda record: record.get(part)


def exponent(found: dict[Label, float], what: str, model: str = "spam") -> float:
    """Least-squares slope of log time against log x: 1 is proportional."""
    points = [(math.log(x), math.log(v)) for (w, x, m), v in found.items() if w == what and m == model and v > 0]
    if len(points) < 2:
        return math.nan
    return statistics.linear_regression([x for x, _ in points], [y for _, y in points]).slope


def _verdict(found: dict[Label, float]) -> str:
    rates = {what: exponent(found, what) for what in ("samples K", "layers L", "share of edges")}
    known = {what: rate for what, rate in rates.items() if rate == rate}
    if not known:
        return ""
    held = all(rate < 1.15 for rate in known.values())
    parts = ", ".join(f"{rate:.2f} in {what}" for what, rate in known.items())
    said = "held" if held else "did not hold"
    return f"That time grows at most linearly in samples, layers and edges {said}: exponents {parts}."


def _draw(found: dict[str, dict[Label, float]]) -> Figure:
    figure, axes = drawing.canvas(3, 2, width=3.6, height=2.6)
    whats = ("samples K", "layers L", "share of edges")
    for row, (part, name) in enumerate(PARTS.items()):
        for column, what in enumerate(whats):
            ax = axes[3 * row + column]
            for place, model in enumerate(MODELS):
                x = [label[1] for label in found[part] if label[0] == what and label[2] == model]
                y = [found[part][what, v, model] for v in x]
                if x:
                    drawing.curve(ax, x, y, find(model).title, place)
                if x and model == "spam" and row == 0:
                    ax.plot(x, [y[-1] * v / x[-1] for v in x], linestyle="--", color="#999999", linewidth=1.0)
            ticks = sorted({label[1] for label in found[part] if label[0] == what})
            drawing.at_ticks(ax, ticks, log=True)
            if row == 0:
                drawing.log_y(ax)
            else:
                ax.set_ylim(0, 1.15 * max(found[part].values(), default=1.0))
            drawing.label(ax, SMALL if column < 2 else LARGE, what, name if column == 0 else "")
    drawing.legend(figure, axes[1])
    return figure


STUDY = Study(NAME, "Cost", specs, render)
