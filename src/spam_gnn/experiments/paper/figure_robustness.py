"""`figure-robustness`: accuracy under deletions, additions, feature noise and two attacks, one of them through SpaM itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from spam_gnn.baselines.registry import find
from spam_gnn.experiments import drawing
from spam_gnn.experiments.paper.labelled import Label, Plan, Spread, accuracy, draws_of, grouped, shown, specs_of, spreads
from spam_gnn.experiments.paper.plan import EQUAL_BUDGET
from spam_gnn.experiments.spec import Perturbation, RunSpec
from spam_gnn.experiments.statistics import ranks
from spam_gnn.experiments.store import Record, RunStore
from spam_gnn.experiments.study import Study, StudyResult
from spam_gnn.report.exhibit import ResultFigure, ResultTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "figure-robustness"
RUNS = {"texas": 3, "wisconsin": 3, "chameleon-filtered": 1, "cora": 1, "citeseer": 1}
MODELS = ("spam", "mlp", "gcn", "gat", "dropedge")
STRENGTHS = {
    "deletions": (0.2, 0.4, 0.6), "additions": (0.25, 0.5, 1.0), "feature-noise": (0.2, 0.4, 0.6),
    "prbcd": (0.05, 0.1, 0.25), "adaptive": (0.05, 0.1, 0.25),
}  # fmt: skip
TITLES = {
    "deletions": "random deletions", "additions": "random additions", "feature-noise": "feature noise",
    "prbcd": "PRBCD on a GCN", "adaptive": "attack through SpaM",
}  # fmt: skip


def plan() -> Plan:
    """Small graphs and the unperturbed ones first."""
    runs: list[tuple[Label, RunSpec]] = []
    for data in RUNS:
        for split, seed in draws_of(data, RUNS[data]):
            for kind, strengths in STRENGTHS.items():
                for strength in (0.0, *strengths):
                    change = Perturbation(kind, strength) if strength else None
                    for model in MODELS:
                        spec = RunSpec.of(data, model, split=split, seed=seed, train=EQUAL_BUDGET, perturbation=change)
                        runs.append(((data, kind, strength, model), spec))
    return runs


def specs(store: RunStore) -> list[RunSpec]:  # noqa: ARG001 - no run depends on another
    return specs_of(plan())


def render(records: Sequence[Record]) -> StudyResult:
    groups = grouped(plan(), records)
    found = spreads(groups, accuracy)
    noise = spreads(groups, lambda r: r["edges"].get("noise_auroc") if r.get("edges") else None)
    datasets = [d for d in RUNS if any(label[0] == d for label in groups)]
    table = _table(found, datasets)
    detect = _detection(noise, datasets)
    intro = ("Test accuracy in percent, mean ± standard deviation (number of runs). Strength is the share of edges deleted, "
             "added or flipped, and of nonzero features moved. Every model is trained on the perturbed graph.\n\n")  # fmt: skip
    caption = "Accuracy against the strength of a perturbation; rows are datasets, bands standard deviations."
    figure = ResultFigure(NAME, caption, lambda: _draw(found, datasets))
    text = intro + table.markdown() + "\nHow well SpaM's p(0) finds planted edges (AUROC):\n\n" + detect.markdown()
    return StudyResult(text, (table, detect), (figure,), _verdict(found, datasets))


def _table(found: dict[Label, Spread], datasets: Sequence[str]) -> ResultTable:
    rows = tuple(
        (data, TITLES[kind], f"{strength:g}", *(shown(found.get((data, kind, strength, m))) for m in MODELS))
        for data in datasets for kind in STRENGTHS for strength in (0.0, STRENGTHS[kind][-1])
    )  # fmt: skip
    return ResultTable(NAME, ("dataset", "perturbation", "strength", *(find(m).title for m in MODELS)), rows)


def _detection(noise: dict[Label, Spread], datasets: Sequence[str]) -> ResultTable:
    planting = ("additions", "prbcd", "adaptive")
    rows = tuple(
        (data, *(shown(noise.get((data, kind, STRENGTHS[kind][-1], "spam")), 3) for kind in planting)) for data in datasets
    )
    return ResultTable(f"{NAME}-detection", ("dataset", *(f"{TITLES[k]} {STRENGTHS[k][-1]:g}" for k in planting)), rows)


def _verdict(found: dict[Label, Spread], datasets: Sequence[str]) -> str:
    """SpaM's rank, and what it loses beside GCN, where every perturbation is strongest."""
    parts, best, cells, fewer = [], 0, 0, []
    for kind, strengths in STRENGTHS.items():
        places, lost = [], {"spam": [], "gcn": []}
        for data in datasets:
            scores = {m: found[data, kind, strengths[-1], m].mean for m in MODELS if (data, kind, strengths[-1], m) in found}
            if "spam" not in scores or len(scores) < 2:
                continue
            places.append(ranks(scores)["spam"])
            best, cells = best + (scores["spam"] >= max(scores.values())), cells + 1
            for model, values in lost.items():
                if model in scores and (data, kind, 0.0, model) in found:
                    values.append(found[data, kind, 0.0, model].mean - scores[model])
        if places and all(lost.values()):
            mine, other = (sum(v) / len(v) for v in lost.values())
            fewer += [TITLES[kind]] if mine < other else []
            parts.append(f"{TITLES[kind]}: mean rank {sum(places) / len(places):.1f}, loses {mine:.1f} (GCN {other:.1f})")
    if not cells:
        return ""
    return (
        f"That SpaM is the most accurate on perturbed graphs {'held' if best > cells / 2 else 'did not hold'}: at the "
        f"strongest perturbation it is first in {best} of {cells} cases among {len(MODELS)} systems. Beside the clean graph it "
        f"loses fewer points than GCN under {', '.join(fewer) or 'none of them'}: {'; '.join(parts)} points."
    )


def _draw(found: dict[Label, Spread], datasets: Sequence[str]) -> Figure:
    figure, axes = drawing.canvas(len(STRENGTHS), max(len(datasets), 1), width=2.6, height=2.15)
    for row, data in enumerate(datasets):
        for column, (kind, strengths) in enumerate(STRENGTHS.items()):
            ax = axes[row * len(STRENGTHS) + column]
            for place, model in enumerate(MODELS):
                x = [s for s in (0.0, *strengths) if (data, kind, s, model) in found]
                spread = [found[data, kind, s, model] for s in x]
                if x:
                    band = [s.std for s in spread] if model in ("spam", "gcn") else None
                    drawing.curve(ax, x, [s.mean for s in spread], find(model).title, place, band)
            drawing.at_ticks(ax, (0.0, *strengths))
            drawing.label(ax, TITLES[kind] if row == 0 else "", "strength" if row == len(datasets) - 1 else "",
                          f"{data}\naccuracy, %" if column == 0 else "")  # fmt: skip
    drawing.legend(figure, axes[0], len(MODELS))
    return figure


STUDY = Study(NAME, "Robustness", specs, render)
