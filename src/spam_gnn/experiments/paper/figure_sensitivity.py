"""`figure-sensitivity`: accuracy over a grid of the two weights of the objective, lambda_sp and lambda_st.

The default coder weighs every neighbour alike: a penalty on its codes can only make edges absent. The unrolled one is used.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

from spam_gnn.experiments import drawing
from spam_gnn.experiments.paper.labelled import Label, Plan, Spread, accuracy, draws_of, grouped, shown, specs_of, spreads
from spam_gnn.experiments.paper.plan import ALONE, EQUAL_BUDGET
from spam_gnn.experiments.spec import RunSpec
from spam_gnn.experiments.store import Record, RunStore
from spam_gnn.experiments.study import Study, StudyResult
from spam_gnn.report.exhibit import ResultFigure, ResultTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME, CODER = "figure-sensitivity", "unrolled"
WEIGHTS = (0.0, 0.001, 0.01, 0.1, 1.0)
RUNS = {"texas": 3, "chameleon": 1}


def plan() -> Plan:
    return [
        ((data, sparsity, structure), RunSpec.of(
            data, "spam", split=split, seed=seed, train=EQUAL_BUDGET,
            settings={**ALONE, "coder": CODER, "sparsity_weight": sparsity, "structure_weight": structure}))
        for data in RUNS for split, seed in draws_of(data, RUNS[data]) for sparsity in WEIGHTS for structure in WEIGHTS
    ]  # fmt: skip


def specs(store: RunStore) -> list[RunSpec]:  # noqa: ARG001 - no run depends on another
    return specs_of(plan())


def render(records: Sequence[Record]) -> StudyResult:
    groups = grouped(plan(), records)
    found = spreads(groups, accuracy)
    datasets = [d for d in RUNS if any(label[0] == d for label in found)]
    tables = tuple(
        ResultTable(f"{NAME}-{data}", (f"{data}: lambda_sp", *(f"lambda_st = {w:g}" for w in WEIGHTS)), tuple(
            (f"{sp:g}", *(shown(found.get((data, sp, st))) for st in WEIGHTS)) for sp in WEIGHTS))
        for data in datasets
    )  # fmt: skip
    said = "Test accuracy in percent of the network on sampled graphs alone, mean ± standard deviation (number of runs).\n\n"
    text = said + "\n".join(t.markdown() for t in tables)
    caption = "Mean test accuracy over lambda_sp (sparsity) and lambda_st (structure); the paper uses 0.01 and 0.1 (framed)."
    figure = ResultFigure(NAME, caption, lambda: _draw(found, datasets))
    return StudyResult(text, tables, (figure,), _verdict(found, {data: _chance(groups, data) for data in datasets}))


def _chance(groups: dict[Label, list[Record]], data: str) -> float | None:
    """The range that the means of a grid have by chance, about four standard errors; None where every cell has one run.

    What a split does to all cells alike is taken out first.
    """
    runs = {label: {r["spec"]["split"]: accuracy(r) for r in rows} for label, rows in groups.items() if label[0] == data}
    splits = sorted({split for values in runs.values() for split in values})
    level = {s: statistics.fmean(values[s] for values in runs.values() if s in values) for s in splits}
    rest = [[values[s] - level[s] for s in values] for values in runs.values() if len(values) > 1]
    return 4.0 * statistics.median(statistics.stdev(r) / len(r) ** 0.5 for r in rest) if rest else None


def _verdict(found: dict[Label, Spread], chances: dict[str, float | None]) -> str:
    parts, wide, known = [], 0, 0
    for data, chance in chances.items():
        cells = {label[1:]: s for label, s in found.items() if label[0] == data}
        best, worst = max(cells, key=lambda k: cells[k].mean), min(cells, key=lambda k: cells[k].mean)
        span = cells[best].mean - cells[worst].mean
        known, wide = known + (chance is not None), wide + (chance is not None and span > max(chance, 1.0))
        by_chance = "one run each, so chance is not known" if chance is None else f"chance alone gives about {chance:.1f}"
        parts.append(
            f"{data} between {cells[worst].mean:.1f} (lambda_sp {worst[0]:g}, lambda_st {worst[1]:g}) and "
            f"{cells[best].mean:.1f} ({best[0]:g}, {best[1]:g}), a range of {span:.1f} ({by_chance})"
        )
    if not parts:
        return ""
    said = "cannot be told yet" if not known else "did not hold" if wide else "held"
    return f"That accuracy is stable over a broad range of both weights {said}: {'; '.join(parts)}."


def _draw(found: dict[Label, Spread], datasets: Sequence[str]) -> Figure:
    from matplotlib.patches import Rectangle

    figure, axes = drawing.canvas(max(len(datasets), 1), width=3.7, height=3.2)
    for ax, data in zip(axes, datasets, strict=False):
        means = [[found[data, sp, st].mean if (data, sp, st) in found else float("nan") for st in WEIGHTS] for sp in WEIGHTS]
        image = ax.imshow(means, cmap="viridis", origin="lower", aspect="auto")
        figure.colorbar(image, ax=ax, shrink=0.85).ax.tick_params(labelsize=7)
        known = [value for row in means for value in row if value == value]
        middle = (min(known) + max(known)) / 2
        for i, row in enumerate(means):
            for j, value in enumerate(row):
                if value == value:
                    ax.text(j, i, f"{value:.1f}", ha="center", va="center", fontsize=7.5, color="w" if value < middle else "k")
        corner = (WEIGHTS.index(0.1) - 0.5, WEIGHTS.index(0.01) - 0.5)
        ax.add_patch(Rectangle(corner, 1, 1, fill=False, edgecolor="r", linewidth=1.5))
        ax.set_xticks(range(len(WEIGHTS)), [f"{w:g}" for w in WEIGHTS])
        ax.set_yticks(range(len(WEIGHTS)), [f"{w:g}" for w in WEIGHTS])
        ax.grid(visible=False)
        drawing.label(ax, f"{data}: test accuracy, %", "$\\lambda_{st}$", "$\\lambda_{sp}$")
    return figure


STUDY = Study(NAME, "Sensitivity to the weights of the objective", specs, render)
