"""`figure-samples`: accuracy and spread against the number K of sampled graphs at prediction, one training for all K."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

from spam_gnn.experiments import drawing
from spam_gnn.experiments.measures.sample_counts import COUNTS, SEEDS
from spam_gnn.experiments.paper.labelled import Label, Plan, draws_of, grouped, specs_of
from spam_gnn.experiments.paper.plan import ALONE, EQUAL_BUDGET
from spam_gnn.experiments.spec import RunSpec
from spam_gnn.experiments.store import Record, RunStore
from spam_gnn.experiments.study import Study, StudyResult
from spam_gnn.report.exhibit import ResultFigure, ResultTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME, MEASURE = "figure-samples", "sample_counts"
RUNS = {"texas": 10, "chameleon-filtered": 3, "cora": 3}


def plan() -> Plan:
    return [
        ((data,), RunSpec.of(data, "spam", split=split, seed=seed, settings=ALONE, train=EQUAL_BUDGET, measures=(MEASURE,)))
        for data in RUNS for split, seed in draws_of(data, RUNS[data])
    ]  # fmt: skip


def specs(store: RunStore) -> list[RunSpec]:  # noqa: ARG001 - no run depends on another
    return specs_of(plan())


def curves(groups: dict[Label, list[Record]], part: str, scale: float) -> dict[str, list[tuple[float, float]]]:
    """By dataset: for each K the mean over runs and prediction seeds, and the standard deviation over prediction seeds alone
    (within a run, averaged over runs), which is what a larger K can remove."""
    found = {}
    for (data,), records in groups.items():
        rows = [[[scale * v for v in record["measures"][MEASURE][part][k]] for record in records] for k in range(len(COUNTS))]
        found[data] = [
            (statistics.fmean(statistics.fmean(r) for r in runs), statistics.fmean(statistics.stdev(r) for r in runs))
            for runs in rows
        ]
    return found


def render(records: Sequence[Record]) -> StudyResult:
    groups = grouped(plan(), records)
    accuracy, change = curves(groups, "accuracy", 100.0), curves(groups, "probability_change", 1.0)
    rows = tuple((data, *(f"{mean:.2f} ± {std:.2f}" for mean, std in values)) for data, values in accuracy.items())
    table = ResultTable(NAME, ("dataset", *(f"K = {k}" for k in COUNTS)), rows)
    intro = ("Test accuracy in percent of the network on sampled graphs alone; ± is the standard deviation over "
             f"{SEEDS} prediction seeds of one trained model.\n\n")  # fmt: skip
    caption = ("Accuracy, its standard deviation over prediction seeds, and how far probabilities move between "
               "those seeds, against the number K of graphs; the dashed line falls as K to the power -1/2.")  # fmt: skip
    figure = ResultFigure(NAME, caption, lambda: _draw(accuracy, change))
    return StudyResult(intro + table.markdown(), (table,), (figure,), _verdict(accuracy, change))


def slope(values: Sequence[tuple[float, float]]) -> float:
    """Least-squares slope of log(mean) against log K: -1/2 for Monte Carlo error."""
    points = [(math.log(k), math.log(mean)) for k, (mean, _) in zip(COUNTS, values, strict=True) if mean > 0]
    return statistics.linear_regression(*zip(*points, strict=True)).slope if len(points) > 1 else math.nan  # pyright: ignore[reportCallIssue]


def _verdict(
    accuracy: dict[str, list[tuple[float, float]]], change: dict[str, list[tuple[float, float]]]
) -> str:
    if not accuracy:
        return ""
    gains = {data: values[-1][0] - values[0][0] for data, values in accuracy.items()}
    rates = {data: slope(values) for data, values in change.items()}
    errors = {data: math.hypot(values[0][1], values[-1][1]) / math.sqrt(SEEDS) for data, values in accuracy.items()}
    helped = [data for data in gains if gains[data] > 2.0 * errors[data]]
    harmed = [data for data in gains if gains[data] < -2.0 * errors[data]]
    falls = all(abs(rate + 0.5) < 0.15 for rate in rates.values() if rate == rate)
    held = "held" if helped and not harmed and falls else "did not hold everywhere" if helped else "did not hold"
    parts = [f"{data} {gains[data]:+.2f} ± {errors[data]:.2f} points, exponent {rates[data]:.2f}" for data in gains]
    return (
        f"That more samples help and the spread falls as K^-1/2 {held} (from K = "
        f"{COUNTS[0]} to {COUNTS[-1]}; exponent of the change of probabilities): {'; '.join(parts)}."
    )


def _draw(accuracy: dict[str, list[tuple[float, float]]], change: dict[str, list[tuple[float, float]]]) -> Figure:
    figure, (left, middle, right) = drawing.canvas(3, width=3.7)
    for place, (data, values) in enumerate(accuracy.items()):
        start = values[0][0]
        drawing.curve(left, COUNTS, [mean - start for mean, _ in values], data, place)
        drawing.curve(middle, COUNTS, [std for _, std in values], data, place)
        drawing.curve(right, COUNTS, [mean for mean, _ in change[data]], data, place)
    first = next(iter(change.values()), [(1.0, 0.0)])[0][0]
    right.plot(COUNTS, [first / math.sqrt(k) for k in COUNTS], linestyle="--", color="#999999", linewidth=1.0)
    drawing.log_y(right)
    for ax, title, name in (
        (left, "Accuracy gained over K = 1", "points"), (middle, "Spread of the accuracy", "std over seeds, points"),
        (right, "Change of probabilities", "mean l1 distance between seeds"),
    ):  # fmt: skip
        drawing.at_ticks(ax, COUNTS, log=True)
        drawing.label(ax, title, "sampled graphs K", name)
    middle.set_ylim(bottom=0.0)
    drawing.legend(figure, left)
    return figure


STUDY = Study(NAME, "Number of sampled graphs", specs, render)
