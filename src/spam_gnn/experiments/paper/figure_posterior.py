"""`figure-posterior`: edge posteriors on Texas, and what the posterior is worth (NoPosterior, HardSign, FullPosterior)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from spam_gnn.config import SpaMConfig
from spam_gnn.experiments import drawing
from spam_gnn.experiments.measures.edge_posterior import BINS, SIGNS
from spam_gnn.experiments.paper.labelled import Label, Plan, Spread, accuracy, grouped, shown, specs_of, spreads
from spam_gnn.experiments.paper.plan import EQUAL_BUDGET
from spam_gnn.experiments.spec import RunSpec
from spam_gnn.experiments.store import Record, RunStore
from spam_gnn.experiments.study import Study, StudyResult
from spam_gnn.report.exhibit import ResultFigure, ResultTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME, DATASET, SPLITS = "figure-posterior", "texas", 10
ABLATIONS: dict[str, dict[str, Any]] = {
    "NoPosterior": {"posterior": "none"}, "HardSign": {"signs": "hard"}, "FullPosterior": {},
}  # fmt: skip
MODELS: dict[str, dict[str, Any]] = {
    "default": {}, "sampled graphs alone": {"trusted": ()}, "paper preset": asdict(SpaMConfig.preset("paper")),
}  # fmt: skip
PAPER_GAINS = {"NoPosterior": 7.0, "HardSign": 4.0}  # points by which the paper's full posterior is ahead


def plan() -> Plan:
    return [
        ((model, ablation), RunSpec.of(DATASET, "spam", split=k, seed=k, settings={**base, **change}, train=EQUAL_BUDGET,
                                       measures=("edge_posterior",)))
        for k in range(SPLITS) for model, base in MODELS.items() for ablation, change in ABLATIONS.items()
    ]  # fmt: skip


def specs(store: RunStore) -> list[RunSpec]:  # noqa: ARG001 - no run depends on another
    return specs_of(plan())


def render(records: Sequence[Record]) -> StudyResult:
    groups = grouped(plan(), records)
    found = spreads(groups, accuracy)
    rows = tuple((model, *(shown(found.get((model, a))) for a in ABLATIONS)) for model in MODELS)
    table = ResultTable(NAME, ("model", *ABLATIONS), rows)
    note = f"Test accuracy in percent on {DATASET}: mean ± standard deviation (number of splits).\n\n"
    caption = (f"Edge posteriors on {DATASET} (edges with a label unseen in training, all splits together) within and between "
               "classes, and the accuracy of the ablations; dots are splits.")  # fmt: skip
    figure = ResultFigure(NAME, caption, lambda: _draw(groups, found))
    return StudyResult(note + table.markdown(), (table,), (figure,), _verdict(groups))


def gaps(groups: dict[Label, list[Record]], model: str, ablation: str) -> Spread | None:
    """FullPosterior minus an ablation on the splits both have."""
    mine, other = ({r["spec"]["split"]: accuracy(r) for r in groups.get((model, a), [])} for a in ("FullPosterior", ablation))
    both = [mine[k] - other[k] for k in mine.keys() & other.keys()]
    return Spread.of(both) if both else None


def _verdict(groups: dict[Label, list[Record]]) -> str:
    parts = []
    for model in MODELS:
        for ablation, claim in PAPER_GAINS.items():
            gap = gaps(groups, model, ablation)
            if gap is not None:
                error = gap.std / gap.count**0.5
                parts.append(f"{gap.mean:+.1f} ± {error:.1f} points over {ablation} (paper {claim:+.0f}; {model})")
    first = [gap for a in PAPER_GAINS if (gap := gaps(groups, "default", a)) is not None]
    if not first:
        return ""
    held = all(gap.mean > 2.0 * gap.std / gap.count**0.5 > 0.0 for gap in first)
    return f"That the full posterior is ahead of both ablations {'held' if held else 'did not hold'}: {'; '.join(parts)}."


def _draw(groups: dict[Label, list[Record]], found: dict[Label, Spread]) -> Figure:
    figure, axes = drawing.canvas(4, width=3.1)
    centres = [(k + 0.5) / BINS for k in range(BINS)]
    for ax, sign, title in zip(axes, SIGNS, ("p(-1), opposing", "p(0), noise", "p(+1), supporting"), strict=False):
        for place, kind in enumerate(("same", "different")):
            density = _density(groups.get(("default", "FullPosterior"), []), kind, sign)
            ax.plot(centres, density, drawstyle="steps-mid", color=drawing.PALETTE[place], linewidth=1.5, label=f"{kind} class")
            ax.fill_between(centres, density, step="mid", color=drawing.PALETTE[place], alpha=0.15, linewidth=0)
        drawing.label(ax, title, "probability", "density")
        ax.set_xlim(0, 1)
        ax.set_ylim(bottom=0)
    drawing.small_legend(axes[0])
    _draw_ablations(axes[3], groups, found)
    return figure


def _density(records: Sequence[Record], kind: str, sign: str) -> list[float]:
    counts = [sum(column) for column in zip(*(r["measures"]["edge_posterior"][kind][sign]["counts"] for r in records
                                              if r["measures"].get("edge_posterior")), strict=True)]  # fmt: skip
    total = max(sum(counts), 1)
    return [BINS * c / total for c in counts] or [0.0] * BINS


def _draw_ablations(ax: Any, groups: dict[Label, list[Record]], found: dict[Label, Spread]) -> None:
    for shift, model in enumerate(MODELS):
        for place, ablation in enumerate(ABLATIONS):
            at = place + 0.26 * (shift - (len(MODELS) - 1) / 2)  # side by side around the tick
            if (model, ablation) not in found:
                continue
            spread = found[model, ablation]
            ax.errorbar(at, spread.mean, yerr=spread.std, fmt=drawing.MARKS[shift], color=drawing.PALETTE[shift], capsize=3,
                        markersize=6, label=model if place == 0 else None)  # fmt: skip
            values = [accuracy(r) for r in groups[model, ablation]]
            ax.plot([at + 0.08] * len(values), values, ".", color=drawing.PALETTE[shift], alpha=0.35, markersize=4)
    ax.set_xticks(range(len(ABLATIONS)), list(ABLATIONS))
    ax.set_xlim(-0.6, len(ABLATIONS) - 0.4)
    drawing.label(ax, "Ablations", "", "test accuracy, %")
    drawing.small_legend(ax)


STUDY = Study(NAME, "The edge posterior and its ablations", specs, render)
