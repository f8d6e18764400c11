"""`figure-depth`: accuracy and oversmoothing against depth, for GCN, GAT and SpaM with and without sparsity and sign."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from spam_gnn.experiments import drawing
from spam_gnn.experiments.paper.labelled import Label, Plan, Spread, accuracy, draws_of, grouped, shown, specs_of, spreads
from spam_gnn.experiments.paper.plan import ALONE, EQUAL_BUDGET
from spam_gnn.experiments.spec import RunSpec
from spam_gnn.experiments.store import Record, RunStore
from spam_gnn.experiments.study import Study, StudyResult
from spam_gnn.report.exhibit import ResultFigure, ResultTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME, MEASURE = "figure-depth", "smoothness"
DEPTHS = (1, 2, 4, 8, 16, 32)
RUNS = {"texas": 5, "cora": 1}
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "SpaM, sparse codes": ("spam", {**ALONE, "coder": "unrolled"}),
    "SpaM without sparsity": ("spam", ALONE),
    "SpaM without sign": ("spam", {**ALONE, "coder": "unrolled", "use_sign": False}),
    "GCN": ("gcn", {}),
    "GAT": ("gat", {}),
}


def plan() -> Plan:
    return [
        ((data, variant, depth), RunSpec.of(data, model, split=split, seed=seed, settings={**settings, "layers": depth},
                                            train=EQUAL_BUDGET, measures=(MEASURE,)))
        for data in RUNS for split, seed in draws_of(data, RUNS[data])
        for variant, (model, settings) in VARIANTS.items() for depth in DEPTHS
    ]  # fmt: skip


def specs(store: RunStore) -> list[RunSpec]:  # noqa: ARG001 - no run depends on another
    return specs_of(plan())


def render(records: Sequence[Record]) -> StudyResult:
    groups = grouped(plan(), records)
    found = {
        "test accuracy, %": spreads(groups, accuracy),
        "Dirichlet energy": spreads(groups, lambda r: r["measures"][MEASURE]["dirichlet"]),
        "mean pairwise distance": spreads(groups, lambda r: r["measures"][MEASURE]["distance"]),
    }
    datasets = [d for d in RUNS if any(label[0] == d for label in groups)]
    tables = [_table(found, data, name) for data in datasets for name in found]
    parts = [table.markdown() for table in tables]
    intro = ("Mean ± standard deviation (number of runs) by depth. Both smoothness measures are taken of the logits of every "
             "model alike; 0 means that all nodes look the same. SpaM is the network on sampled graphs alone.\n\n")  # fmt: skip
    caption = "Accuracy, Dirichlet energy and mean pairwise distance of the outputs by depth; bands are standard deviations."
    figure = ResultFigure(NAME, caption, lambda: _draw(found, datasets))
    return StudyResult(intro + "\n".join(parts), tuple(tables), (figure,), _verdict(found["test accuracy, %"], datasets))


def _table(found: dict[str, dict[Label, Spread]], data: str, name: str) -> ResultTable:
    digits = 1 if name.startswith("test") else 3
    rows = tuple((v, *(shown(found[name].get((data, v, d)), digits) for d in DEPTHS)) for v in VARIANTS)
    short = name.partition(",")[0].replace(" ", "-").lower()
    return ResultTable(f"{NAME}-{data}-{short}", (f"{data}, {name}", *(f"depth {d}" for d in DEPTHS)), rows)


def _verdict(found: dict[Label, Spread], datasets: Sequence[str]) -> str:
    parts, falls = [], {}
    for data in datasets:
        for variant in VARIANTS:
            means = {d: found[data, variant, d].mean for d in DEPTHS if (data, variant, d) in found}
            if DEPTHS[-1] in means:
                falls[data, variant] = max(means.values()) - means[DEPTHS[-1]]
                parts.append(f"{variant} {falls[data, variant]:.1f} ({data})")
    first = next(iter(VARIANTS))
    both = [d for d in datasets if (d, first) in falls and (d, "GCN") in falls]
    if not found:
        return ""
    if not both:
        return f"No dataset has both SpaM and GCN at depth {DEPTHS[-1]} yet."
    held = all(falls[d, first] < 3.0 and falls[d, first] < falls[d, "GCN"] for d in both)
    return (
        f"That SpaM keeps its accuracy with depth where GCN does not {'held' if held else 'did not hold'} on "
        f"{', '.join(both)}; points lost from the best depth to {DEPTHS[-1]} layers: {', '.join(parts)}."
    )


def _draw(found: dict[str, dict[Label, Spread]], datasets: Sequence[str]) -> Figure:
    figure, axes = drawing.canvas(len(found), max(len(datasets), 1), width=3.7, height=2.9)
    for row, data in enumerate(datasets):
        for column, (name, values) in enumerate(found.items()):
            ax = axes[row * len(found) + column]
            for place, variant in enumerate(VARIANTS):
                x = [d for d in DEPTHS if (data, variant, d) in values]
                spread = [values[data, variant, d] for d in x]
                drawing.curve(ax, x, [s.mean for s in spread], variant, place, [s.std for s in spread])
            drawing.at_ticks(ax, DEPTHS, log=True)
            drawing.label(ax, data, "layers", name)
            ax.set_ylim(bottom=None if column == 0 else 0.0)
    drawing.legend(figure, axes[0], 5)
    return figure


STUDY = Study(NAME, "Depth and oversmoothing", specs, render)
