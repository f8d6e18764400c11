"""Accuracy tables: one row per system, one column per dataset; published figures beside; SpaM against each other system."""

from __future__ import annotations

from collections.abc import Sequence

from spam_gnn.experiments.paper import published
from spam_gnn.experiments.paper.accuracy_figure import accuracy_figure
from spam_gnn.experiments.paper.comparison import OURS, Comparison
from spam_gnn.experiments.paper.goals import goals_table
from spam_gnn.experiments.paper.plan import BUDGET_SENTENCE, title
from spam_gnn.experiments.provenance import measured_with
from spam_gnn.experiments.statistics import Cell
from spam_gnn.experiments.store import Record
from spam_gnn.experiments.study import StudyResult
from spam_gnn.report.exhibit import ResultTable

_SHOWN_REASONS = 12


def accuracy_result(records: Sequence[Record], name: str, columns: Sequence[str], verdict: str) -> StudyResult:
    """The section, the tables and the figure of an accuracy study."""
    made = Comparison(records, tuple(columns))
    if not made.datasets:
        return StudyResult("No run has a result yet.\n", verdict="Nothing has been measured yet.")
    main, beside, against = main_table(made, name), published_table(made, name), against_table(made, name)
    parts = [
        "Test accuracy in percent: mean ± sample standard deviation (ddof 1) over splits or seeds (runs with result / planned)."
        f" {BUDGET_SENTENCE} Ranks are over the splits that all systems share; the best of a column on its own runs is bold.",
        main.markdown(),
        f"One cell again: `spam-gnn reproduce {name} --models SYSTEM --datasets DATASET`; every cell with its own command, "
        f"calibration and cost is in `{name}-cells.csv`.",
        "SpaM against the strongest other system of each dataset, on the splits both have, seeds of a split averaged "
        "(difference in points ± standard error; p of the paired t-test, after Holm's correction over all systems, and "
        "of Wilcoxon's test):",
        against.markdown(),
    ]
    goals, tried = goals_table(records, name)
    if goals.rows:
        parts += ["The goals set for SpaM, and whether it is first of its row (beside each system on common splits):",
                  goals.markdown()]  # fmt: skip
    if tried:
        parts += ["What was tried on rows that miss their goal or are behind, in percent, with validation in brackets (how, "
                  "and on which splits: docs/trials.md):", tried]  # fmt: skip
    if beside.rows:
        parts += ["Measured here / published, in the SpaM paper where no source is named (protocols and tuning differ):",
                  beside.markdown(), _sources(made)]  # fmt: skip
    parts += [*_failures(made), measured_with(records)]
    figure = accuracy_figure(made, name)
    tables = (main, cells_table(made, name), beside, against, goals)
    return StudyResult("\n\n".join(part.strip() for part in parts) + "\n", tables, (figure,), verdict)


def cell_text(cell: Cell) -> str:
    """82.4 ± 3.1 (10/10)"""
    if cell.mean is None:
        return "–" if not cell.planned else f"– ({cell.counts})"
    spread = "" if cell.std is None else f" ± {cell.std:.1f}"
    return f"{cell.mean:.1f}{spread} ({cell.counts})"


def main_table(made: Comparison, name: str) -> ResultTable:
    """Systems by mean rank; ROC AUC follows the accuracy of a dataset with two classes."""
    columns: list[tuple[str, list[Cell]]] = []
    for data in made.datasets:
        columns.append((data, [made.cell(model, data) for model in made.models]))
        areas = [made.areas[model, data] if (model, data) in made.areas else Cell({}, frozenset()) for model in made.models]
        if any(cell.values for cell in areas):
            columns.append((f"{data} AUC", areas))
    rank = {model: f"{made.mean_rank(model):.1f}" if made.ranked else "–" for model in made.models}
    rows = tuple(
        (title(model), rank[model], *(cell_text(cells[place]) for _, cells in columns))
        for place, model in enumerate(made.models)
    )
    bold = set()
    for column, (_, cells) in enumerate(columns):
        means = [cell.mean if cell.mean is not None else -1.0 for cell in cells]
        bold.add((means.index(max(means)), column + 2))
    return ResultTable(name, ("system", "mean rank", *(head for head, _ in columns)), rows, frozenset(bold))


def cells_table(made: Comparison, name: str) -> ResultTable:
    """One line per cell: the figures in full, the paired comparison, the command that measures it again."""
    header = ("system", "dataset", "mean", "std", "n_ok", "n_planned", "rank", "spam_minus_system", "t_p", "t_p_holm",
              "wilcoxon_p", "pairs", "roc_auc", "seconds_per_run", "paper", "command")  # fmt: skip
    rows = []
    for data in made.datasets:
        against = made.against(data)
        for model in made.models:
            cell, (pair, corrected) = made.cell(model, data), against.get(model, (None, None))
            if not cell.planned:
                continue
            area, paper = made.areas[model, data].mean, published.paper_figure(model, data)
            rows.append((
                model, data, cell.mean, cell.std, len(cell.values), len(cell.planned), made.rank(model, data),
                *((pair.difference, pair.t_p, corrected, pair.wilcoxon_p, pair.pairs) if pair else (None,) * 5),
                area, _seconds(made, model, data), paper.mean if paper else None,
                f"spam-gnn reproduce {name} --models {model} --datasets {data}",
            ))  # fmt: skip
    return ResultTable(f"{name}-cells", header, tuple(rows))


def _seconds(made: Comparison, model: str, dataset: str) -> float | None:
    spent = [r["seconds"] for r in made.records
             if r["status"] == "ok" and r["spec"]["model"] == model and r["spec"]["dataset"] == dataset]  # fmt: skip
    return sum(spent) / len(spent) if spent else None


def against_table(made: Comparison, name: str) -> ResultTable:
    rows = []
    for data in made.ranked:
        best, against = made.best_other(data), made.against(data)
        if best is None or best not in against or OURS not in made.models:
            continue
        pair, corrected = against[best]
        error = "" if pair.error is None else f" ± {pair.error:.1f}"
        rows.append((data, f"{made.rank(OURS, data):g} of {len(made.models)}", title(best), f"{pair.difference:+.1f}{error}",
                     _p(pair.t_p), _p(corrected), _p(pair.wilcoxon_p), pair.pairs))  # fmt: skip
    header = ("dataset", "rank of SpaM", "strongest other", "SpaM − other", "p (t)", "p (t, Holm)", "p (Wilcoxon)", "pairs")
    return ResultTable(f"{name}-against", header, tuple(rows))


def published_table(made: Comparison, name: str) -> ResultTable:
    """Systems that somebody has published a figure for; the paper's own first, others behind a semicolon."""
    listed = {data: published.figures(data) for data in made.datasets}
    ours = [m for m in made.models if any(figure.system == m for found in listed.values() for figure in found)]
    others = dict.fromkeys(figure.system for found in listed.values() for figure in found if figure.system not in made.models)
    shown = [data for data in made.datasets if listed[data]]
    rows = []
    for model in (*ours, *others):
        cells = []
        for data in shown:
            found = [f for f in listed[data] if f.system == model]
            mean = made.cell(model, data).mean
            here = "–" if mean is None else f"{mean:.1f}"
            texts = [f.text + ("" if f.metric == "accuracy" else " AUC") + ("" if f.from_the_paper else f" [{f.source}]")
                     for f in found]  # fmt: skip
            cells.append(f"{here} / {'; '.join(texts)}" if texts else (here if mean is not None else None))
        rows.append((title(model), *cells))
    return ResultTable(f"{name}-published", ("system", *shown), tuple(rows))


def _sources(made: Comparison) -> str:
    used = dict.fromkeys(figure.source for data in made.datasets for figure in published.figures(data))
    return "Sources: " + "; ".join(f"[{name}] {published.source(name)}" for name in used) + "."


def _failures(made: Comparison) -> list[str]:
    """Every kind of failure, with where it happened."""
    lines = [f"- {title(model)} on {data}: {reason}" for (model, data), cell in made.cells.items() for reason in cell.reasons]
    if not lines:
        return []
    more = [f"- and {len(lines) - _SHOWN_REASONS} more in the records"] if len(lines) > _SHOWN_REASONS else []
    return ["Runs without a result:", "\n".join([*lines[:_SHOWN_REASONS], *more])]


def _p(value: float | None) -> str:
    return "–" if value is None else "<0.001" if value < 0.001 else f"{value:.3f}"
