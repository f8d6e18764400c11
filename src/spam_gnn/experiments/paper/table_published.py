"""`table-published`: is each competing system the published one? Every published figure beside the one measured here.

A system counts as recognised on a dataset if its mean here lies within two standard deviations of a published one: those of the
publication, or those measured here where it prints none. A mean above that range is marked: a stronger rendering is no
unfair opponent, but it is not that figure. The paper's own figures for other systems often lie far from those of their
authors, so each source is a line of its own.

Where a publication states settings for a dataset (`stated.json`), the system is also run with those, as long as its
publication trains, and on its splits where those are not the dataset's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spam_gnn.baselines.registry import systems
from spam_gnn.data import catalog
from spam_gnn.experiments.paper import table_homophilic, table_main
from spam_gnn.experiments.paper.comparison import OURS
from spam_gnn.experiments.paper.plan import BUDGET_SENTENCE, present, table_run, title
from spam_gnn.experiments.paper.published import PublishedFigure, figures, source, stated
from spam_gnn.experiments.provenance import measured_with
from spam_gnn.experiments.spec import RunSpec
from spam_gnn.experiments.statistics import Cell, gather
from spam_gnn.experiments.store import Record, RunStore
from spam_gnn.experiments.study import Study, StudyResult
from spam_gnn.report.exhibit import ResultTable

NAME = "table-published"
DATASETS = (*table_main.COLUMNS, *table_homophilic.DATASETS)
SPLITS = 3
ENOUGH = 2  # datasets on which a system should be recognised
WIDTH = 2.0  # standard deviations


@dataclass(frozen=True)
class Beside:
    """One published figure and the runs of the same system on the same dataset, with its defaults or as stated."""

    published: PublishedFigure
    cell: Cell
    as_stated: bool = False

    @property
    def gap(self) -> float | None:
        """Measured minus published, in points."""
        return None if self.cell.mean is None else self.cell.mean - self.published.mean

    @property
    def deviations(self) -> float | None:
        """The gap in standard deviations; None where there is no spread to measure it by."""
        spread = self.published.std if self.published.std is not None else self.cell.std
        return None if self.gap is None or not spread else self.gap / spread

    @property
    def recognised(self) -> bool:
        return self.deviations is not None and abs(self.deviations) <= WIDTH

    @property
    def judgement(self) -> str:
        if self.deviations is None:
            return "–"
        if abs(self.deviations) <= WIDTH:
            return "yes"
        return "above" if self.deviations > 0 else "below"


def specs(store: RunStore) -> list[RunSpec]:  # noqa: ARG001 - the plan does not depend on results
    """Runs that the accuracy tables have as well, where somebody has published a figure; then those with stated settings."""
    pairs = [(data, system) for data in present(DATASETS) for system in dict.fromkeys(f.system for f in figures(data))]
    equal = [
        table_run(data, system, _split(data, turn), turn)
        for turn in range(SPLITS) for data, system in pairs if system in systems() and system != OURS
    ]  # fmt: skip
    here = present(DATASETS)
    return equal + [spec for turn in range(SPLITS) for spec in _stated_runs(turn) if spec.dataset in here]


def _split(dataset: str, turn: int, protocol: str | None = None) -> int:
    return 0 if dataset in table_homophilic.DATASETS and protocol is None else turn  # public splits are one each


def _stated_runs(turn: int) -> dict[RunSpec, str]:
    """Runs with stated settings, each with the source of the figures it is held against."""
    return {
        RunSpec.of(s.dataset, s.system, split=_split(s.dataset, turn, s.protocol), seed=turn, protocol=s.protocol,
                   settings=s.settings, train=s.train): s.source
        for s in stated()
    }  # fmt: skip


def render(records: Sequence[Record]) -> StudyResult:
    compared = comparisons(records)
    names = [name for name in systems() if name != OURS]
    measured = [item for item in compared if item.gap is not None]
    if not measured:
        return StudyResult("No run has a result yet.\n", verdict="Nothing has been measured yet.")
    summary, full = _summary(names, compared), _full(measured)
    used = dict.fromkeys(item.published.source for item in measured)
    parts = [
        "Is each competing system the published one? A mean here within two standard deviations of a published mean (those of "
        "the publication, or those measured here where it prints none) is a yes; `above` is higher than that, `below` lower. "
        f"{BUDGET_SENTENCE} Many publications train longer and tune per dataset; lines of `stated` settings do the same.",
        summary.markdown(),
        "Every figure (accuracy, or ROC AUC where named; three splits or seeds):",
        full.markdown(),
        "Sources: " + "; ".join(f"[{name}] {source(name)}" for name in used) + ".",
        measured_with(records),
    ]
    return StudyResult("\n\n".join(part.strip() for part in parts) + "\n", (summary, full), (), _verdict(names, compared))


def comparisons(records: Sequence[Record]) -> list[Beside]:
    """Every published figure of a planned run, with its runs; stated settings only beside figures of the same source, and
    other splits than the dataset's own only beside figures of the same protocol."""
    apart = {spec.spec_hash: name for turn in range(SPLITS) for spec, name in _stated_runs(turn).items()}
    groups: dict[tuple[str | None, str | None], list[Record]] = {(None, None): []}
    for record in records:
        groups.setdefault((apart.get(record["hash"]), _other_protocol(record)), []).append(record)
    found = []
    for (name, protocol), group in groups.items():
        cells = {"accuracy": gather(group), "roc_auc": gather(group, "roc_auc")}
        for data, system in dict.fromkeys((record["spec"]["dataset"], record["spec"]["model"]) for record in group):
            found += [
                Beside(figure, cells[figure.metric].get((system, data)) or Cell({}, frozenset()), name is not None)
                for figure in figures(data, protocol) if figure.system == system and figure.metric in cells
                and (name is None or figure.source == name)
            ]  # fmt: skip
    return found


def _other_protocol(record: Record) -> str | None:
    """The split protocol of a run where it is not that of its dataset."""
    spec = record["spec"]
    return None if spec["protocol"] == catalog.default_protocol(spec["dataset"]) else spec["protocol"]


def recognised_on(system: str, compared: Sequence[Beside]) -> list[str]:
    """The datasets on which a system reaches a published figure."""
    return list(dict.fromkeys(c.published.dataset for c in compared if c.published.system == system and c.recognised))


def _summary(names: Sequence[str], compared: Sequence[Beside]) -> ResultTable:
    rows = []
    for name in names:
        own = [c for c in compared if c.published.system == name and c.deviations is not None]
        datasets = list(dict.fromkeys(c.published.dataset for c in own))
        reached = recognised_on(name, compared)
        nearest = {data: max((c for c in own if c.published.dataset == data), key=_nearness) for data in datasets}
        missed = ", ".join(f"{data} {nearest[data].gap:+.1f}" for data in datasets if data not in reached)
        rows.append((title(name), f"{len(reached)} of {len(datasets)}", ", ".join(reached) or "–", missed or "–"))
    return ResultTable(NAME, ("system", "recognised", "on", "not on (points off the nearest figure)"), tuple(rows))


def _nearness(item: Beside) -> float:
    return -abs(item.deviations or 0.0)


def _full(measured: Sequence[Beside]) -> ResultTable:
    rows = []
    for item in measured:
        figure, spread = item.published, "" if item.cell.std is None else f" ± {item.cell.std:.1f}"
        off = "–" if item.deviations is None else f"{item.deviations:+.1f}"
        dataset = figure.dataset + (" AUC" if figure.metric == "roc_auc" else "")
        dataset += "" if figure.protocol is None else f" ({figure.protocol})"
        rows.append((title(figure.system), dataset, figure.text, figure.source, "stated" if item.as_stated else "default",
                     f"{item.cell.mean:.1f}{spread}", item.cell.counts, f"{item.gap:+.1f}", off, item.judgement))  # fmt: skip
    header = ("system", "dataset", "published", "source", "settings", "here", "runs", "points off", "std off", "recognised")
    return ResultTable(f"{NAME}-full", header, tuple(sorted(rows)))


def _verdict(names: Sequence[str], compared: Sequence[Beside]) -> str:
    without = [n for n in names if not any(c.published.system == n for c in compared)]
    short = [title(n) for n in names if n not in without and len(recognised_on(n, compared)) < ENOUGH]
    enough = len(names) - len(without) - len(short)
    unknown = f"; nobody's figure is known for {', '.join(map(title, without))}" if without else ""
    rest = f"; not yet {', '.join(short)}" if short else ""
    return f"{enough} of {len(names)} systems reach a published figure on at least {ENOUGH} datasets{rest}{unknown}."


STUDY = Study(NAME, "Competing systems beside their publications", specs, render)
