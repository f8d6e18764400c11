"""`Comparison`: systems against each other on several datasets, the part that all accuracy tables share. Numbers, no layout."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from spam_gnn.experiments.statistics import Cell, Key, Paired, column_of, gather, holm, paired, ranks
from spam_gnn.experiments.store import Record

OURS = "spam"


@dataclass(frozen=True, eq=False)
class Comparison:
    """Test accuracy in percent of systems (rows) on datasets (columns).

    Systems are ranked on the splits that all of them were planned on, since those with more splits would otherwise be held to
    other test nodes; one that failed on such a split is ranked last. While a study is unfinished, a split that some system has
    not been run on yet is left out for all; where none is left, that dataset ranks nobody.
    """

    records: Sequence[Record]
    columns: tuple[str, ...]

    @cached_property
    def cells(self) -> dict[tuple[str, str], Cell]:
        return gather(self.records)

    @cached_property
    def areas(self) -> dict[tuple[str, str], Cell]:
        """ROC AUC of datasets with two classes; the others have no values."""
        return gather(self.records, "roc_auc")

    @cached_property
    def datasets(self) -> tuple[str, ...]:
        """The columns for which there is any value."""
        found = {column_of(record) for record in self.records if record["status"] == "ok"}
        return tuple(column for column in self.columns if column in found)

    @cached_property
    def models(self) -> tuple[str, ...]:
        """All systems, by mean rank."""
        names = dict.fromkeys(record["spec"]["model"] for record in self.records)
        return tuple(sorted(names, key=lambda model: (self.mean_rank(model), model)))

    def cell(self, model: str, dataset: str) -> Cell:
        return self.cells.get((model, dataset)) or Cell({}, frozenset())

    def shared_splits(self, dataset: str) -> frozenset[Key]:
        """The splits (and seeds) planned for every system of the column, without those still to be run for one of them."""
        planned = [cell.planned for (_, column), cell in self.cells.items() if column == dataset]
        to_do = {
            (record["spec"]["split"], record["spec"]["seed"])
            for record in self.records if record["status"] == "missing" and column_of(record) == dataset
        }  # fmt: skip
        return frozenset.intersection(*planned) - to_do if planned else frozenset()

    @cached_property
    def ranked(self) -> tuple[str, ...]:
        """The datasets on which there is a split that every system has."""
        return tuple(data for data in self.datasets if self.shared_splits(data))

    @cached_property
    def _ranks(self) -> dict[str, dict[str, float]]:
        names = list(dict.fromkeys(record["spec"]["model"] for record in self.records))
        return {
            data: ranks({model: self.cell(model, data).mean_on(self.shared_splits(data)) for model in names})
            for data in self.ranked
        }

    def rank(self, model: str, dataset: str) -> float | None:
        """None on a dataset that ranks nobody yet."""
        return self._ranks[dataset][model] if dataset in self._ranks else None

    def mean_rank(self, model: str) -> float:
        return statistics.fmean(self._ranks[data][model] for data in self.ranked) if self.ranked else float("inf")

    def best_other(self, dataset: str) -> str | None:
        """The strongest system beside SpaM on the shared splits."""
        keys = self.shared_splits(dataset)
        scores = {m: self.cell(m, dataset).mean_on(keys) for m in self.models if m != OURS}
        known = {model: score for model, score in scores.items() if score is not None}
        return max(known, key=lambda model: known[model]) if known else None

    def against(self, dataset: str) -> dict[str, tuple[Paired, float | None]]:
        """SpaM minus every other system on the splits both have, and the t-test's p after Holm's correction over the column."""
        ours = self.cell(OURS, dataset).values
        found = {m: p for m in self.models if m != OURS and (p := paired(ours, self.cell(m, dataset).values)) is not None}
        corrected = holm([pair.t_p for pair in found.values()])
        return {model: (pair, p) for (model, pair), p in zip(found.items(), corrected, strict=True)}

    @property
    def progress(self) -> str:
        """What a sentence on an unfinished study begins with."""
        missing = sum(record["status"] == "missing" for record in self.records)
        return f"Not complete, {len(self.records) - missing} of {len(self.records)} runs so far. " if missing else ""

    @property
    def first_places(self) -> list[str]:
        """Datasets on which no system is above SpaM."""
        return [data for data in self.ranked if OURS in self._ranks[data] and not self._above(data)]

    def _above(self, dataset: str) -> bool:
        """Whether a system has a higher mean than SpaM on the splits that all share."""
        keys = self.shared_splits(dataset)
        ours = self.cell(OURS, dataset).mean_on(keys)
        others = [self.cell(model, dataset).mean_on(keys) for model in self.models if model != OURS]
        return ours is None or any(other is not None and other > ours for other in others)
