"""`calibration`: whether probabilities can be trusted, and whether doubt about the graph points at corrupted edges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from spam_gnn.baselines.registry import find
from spam_gnn.experiments import drawing
from spam_gnn.experiments.measures.trust import COVERAGES
from spam_gnn.experiments.paper.labelled import Label, Plan, Spread, accuracy, draws_of, grouped, shown, specs_of, spreads
from spam_gnn.experiments.paper.plan import EQUAL_BUDGET
from spam_gnn.experiments.spec import Perturbation, RunSpec
from spam_gnn.experiments.statistics import ranks
from spam_gnn.experiments.store import Record, RunStore
from spam_gnn.experiments.study import Study, StudyResult
from spam_gnn.report.exhibit import ResultFigure, ResultTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME, MEASURE = "calibration", "trust"
RUNS = {"texas": 5, "wisconsin": 5, "chameleon-filtered": 2, "cora": 2, "citeseer": 2}
MODELS = ("spam", "gcn", "mc-dropout", "dropedge", "bgcn", "bbde")
CORRUPTION = Perturbation("additions", 0.5)


def plan() -> Plan:
    """Label: dataset, model, whether edges were added."""
    return [
        ((data, model, change is not None), RunSpec.of(data, model, split=split, seed=seed, train=EQUAL_BUDGET,
                                                       perturbation=change, measures=(MEASURE,)))
        for data in RUNS for split, seed in draws_of(data, RUNS[data]) for change in (None, CORRUPTION)
        for model in MODELS
    ]  # fmt: skip


def specs(store: RunStore) -> list[RunSpec]:  # noqa: ARG001 - no run depends on another
    return specs_of(plan())


def _metric(group: str, name: str) -> Callable[[Record], float | None]:
    return lambda record: record.get(group, {}).get(name)


COLUMNS: dict[str, Callable[[Record], float | None]] = {
    "accuracy, %": accuracy,
    "ECE": _metric("test", "ece"), "ECE, tempered": _metric("test_calibrated", "ece"),
    "NLL": _metric("test", "nll"), "NLL, tempered": _metric("test_calibrated", "nll"),
    "Brier": _metric("test", "brier"), "Brier, tempered": _metric("test_calibrated", "brier"),
    "accuracy of the surer half, %": lambda r: 100.0 * r["measures"][MEASURE]["selective"][COVERAGES.index(0.5)],
}  # fmt: skip


def render(records: Sequence[Record]) -> StudyResult:
    groups = grouped(plan(), records)
    clean = {label[:2]: rows for label, rows in groups.items() if not label[2]}
    found = {name: spreads(clean, value) for name, value in COLUMNS.items()}
    datasets = [d for d in RUNS if any(label[0] == d for label in groups)]
    table = _table(found, datasets)
    flags = {kind: spreads(groups, _flag(kind)) for kind in ("structural", "total")}
    flagged = _flag_table(flags, datasets)
    intro = ("Test nodes, mean ± standard deviation (number of runs); tempered: a temperature fitted on validation nodes, of "
             "SpaM one for each network, and the networks' shares anew. ECE with 15 bins.\n\n")  # fmt: skip
    second = (f"\nAUROC with which uncertainty finds nodes at a corrupted edge ({CORRUPTION.label}); with one sample there is "
              "no structural uncertainty:\n\n")  # fmt: skip
    caption = ("Reliability of raw (solid) and tempered (dotted) probabilities, all runs together, and accuracy on the most "
               "confident share of test nodes.")  # fmt: skip
    figure = ResultFigure(NAME, caption, lambda: _draw(clean, datasets))
    text = intro + table.markdown() + second + flagged.markdown()
    return StudyResult(text, (table, flagged), (figure,), _verdict(found, flags, datasets))


def _flag(kind: str) -> Callable[[Record], float | None]:
    return lambda record: record["measures"][MEASURE]["flags"][kind]


def _table(found: dict[str, dict[Label, Spread]], datasets: Sequence[str]) -> ResultTable:
    digits = {name: 1 if name.endswith("%") else 3 for name in COLUMNS}
    rows = tuple(
        (data, find(model).title, *(shown(found[name].get((data, model)), digits[name]) for name in COLUMNS))
        for data in datasets for model in MODELS
    )  # fmt: skip
    return ResultTable(NAME, ("dataset", "system", *COLUMNS), rows)


def _flag_table(flags: dict[str, dict[Label, Spread]], datasets: Sequence[str]) -> ResultTable:
    rows = tuple(
        (find(model).title, kind, *(shown(flags[kind].get((data, model, True)), 3) for data in datasets))
        for model in MODELS for kind in flags
    )  # fmt: skip
    return ResultTable(f"{NAME}-corrupted-edges", ("system", "uncertainty", *datasets), rows)


def _verdict(
    found: dict[str, dict[Label, Spread]], flags: dict[str, dict[Label, Spread]], datasets: Sequence[str]
) -> str:
    parts, first = [], 0
    for name in ("ECE", "ECE, tempered", "NLL, tempered"):
        places = []
        for data in datasets:
            scores = {m: -found[name][data, m].mean for m in MODELS if (data, m) in found[name]}
            if "spam" in scores and len(scores) > 1:
                places.append(ranks(scores)["spam"])
        if places:
            first += sum(places) / len(places) <= 1.5
            parts.append(f"{name} {sum(places) / len(places):.1f}")
    if not parts:
        return ""
    areas = [flags["structural"][d, "spam", True].mean for d in datasets if (d, "spam", True) in flags["structural"]]
    doubt = "" if not areas else (f"; its structural uncertainty finds nodes at corrupted edges with mean AUROC "
                                  f"{sum(areas) / len(areas):.2f} (0.5 is chance)")  # fmt: skip
    return (
        f"That SpaM is the best calibrated {'held' if first == len(parts) else 'did not hold'}: mean rank among {len(MODELS)} "
        f"systems in {', '.join(parts)}{doubt}."
    )


def _draw(clean: dict[Label, list[Record]], datasets: Sequence[str]) -> Figure:
    figure, axes = drawing.canvas(max(len(datasets), 1), 2, width=3.0, height=2.7)
    for column, data in enumerate(datasets):
        top, bottom = axes[column], axes[len(datasets) + column]
        top.plot([0, 1], [0, 1], color="#999999", linestyle="--", linewidth=1.0)
        for place, model in enumerate(MODELS):
            rows = clean.get((data, model), [])
            if not rows:
                continue
            for part, style in (("reliability", "-"), ("reliability_tempered", ":")):
                x, y = _merged([row["measures"][MEASURE][part] for row in rows])
                name = find(model).title if style == "-" else None
                top.plot(x, y, style, color=drawing.PALETTE[place], marker=drawing.MARKS[place] if style == "-" else None,
                         markersize=3.5, linewidth=1.4, label=name)  # fmt: skip
            kept = zip(*(r["measures"][MEASURE]["selective"] for r in rows), strict=True)
            selective = [100.0 * sum(v) / len(v) for v in kept]
            drawing.curve(bottom, COVERAGES, selective, find(model).title, place)
        drawing.label(top, data, "confidence", "accuracy" if column == 0 else "")
        drawing.label(bottom, "", "share of nodes predicted", "accuracy of those, %" if column == 0 else "")
        top.set_xlim(0, 1)
        top.set_ylim(0, 1)
    drawing.legend(figure, axes[0], len(MODELS))
    return figure


def _merged(runs: Sequence[Sequence[Sequence[float]]], bins: int = 10) -> tuple[list[float], list[float]]:
    """Confidence and accuracy of bins over all runs, weighted by their counts; bins with fewer than ten nodes are left out."""
    totals = [[0.0, 0.0, 0.0] for _ in range(bins)]
    for confidence, right, count in (row for run in runs for row in run):
        cell = totals[min(int(confidence * bins), bins - 1)]
        cell[0], cell[1], cell[2] = cell[0] + count * confidence, cell[1] + count * right, cell[2] + count
    kept = [(c / n, a / n) for c, a, n in totals if n >= 10]
    return [c for c, _ in kept], [a for _, a in kept]


STUDY = Study(NAME, "Calibration and uncertainty", specs, render)
