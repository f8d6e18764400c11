"""Paired statistics over splits: means with sample standard deviations, tests on the same splits, ranks."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import stats

from spam_gnn.experiments.store import Record

Key = tuple[int, int]  # split, seed
Values = Mapping[Key, float]


@dataclass(frozen=True)
class Cell:
    """All runs of one system on one dataset: what was measured, by split and seed, and what was planned."""

    values: Mapping[Key, float]
    planned: frozenset[Key]
    reasons: tuple[str, ...] = field(default=())

    @property
    def mean(self) -> float | None:
        return statistics.fmean(self.values.values()) if self.values else None

    @property
    def std(self) -> float | None:
        """Sample standard deviation (ddof 1); None for fewer than two values."""
        return statistics.stdev(self.values.values()) if len(self.values) > 1 else None

    @property
    def counts(self) -> str:
        return f"{len(self.values)}/{len(self.planned)}"

    def mean_on(self, keys: Iterable[Key]) -> float | None:
        """The mean over these splits; None where one of them is missing."""
        wanted = list(keys)
        return statistics.fmean(self.values[k] for k in wanted) if wanted and all(k in self.values for k in wanted) else None


def column_of(record: Record) -> str:
    """The dataset of a record, with what was done to it."""
    disturbed = record["spec"]["perturbation"]
    return record["spec"]["dataset"] + ("" if disturbed is None else f" {disturbed['name']}:{disturbed['strength']:g}")


def _by_one_temperature(record: Record) -> bool:
    """Whether a mixture of networks was given one temperature for all: records from before each had its own."""
    mixed = bool(record["spec"].get("settings", {}).get("trusted"))
    return mixed and isinstance(record.get("temperature"), float)


def figures_of(record: Record) -> dict[str, float | None]:
    """What a finished run measured: of its test nodes, of the same after a temperature (`calibrated_...`), and of its edges,
    for a system that judges them."""
    tempered = {} if _by_one_temperature(record) else record.get("test_calibrated") or {}
    calibrated = {f"calibrated_{name}": value for name, value in tempered.items()}
    every = {**(record.get("edges") or {}), **calibrated, **record["test"]}
    return {name: value for name, value in every.items() if not isinstance(value, str)}


def gather(records: Sequence[Record], metric: str = "accuracy", scale: float = 100.0) -> dict[tuple[str, str], Cell]:
    """(system, dataset) -> its cell of a metric (`figures_of`), in percent by default."""
    values: dict[tuple[str, str], dict[Key, float]] = {}
    planned: dict[tuple[str, str], set[Key]] = {}
    reasons: dict[tuple[str, str], list[str]] = {}
    for record in records:
        spec = record["spec"]
        place, key = (spec["model"], column_of(record)), (spec["split"], spec["seed"])
        planned.setdefault(place, set()).add(key)
        values.setdefault(place, {})
        value = figures_of(record).get(metric) if record["status"] == "ok" else None
        if value is not None:
            values[place][key] = scale * value
        if record["status"] == "failed":
            reasons.setdefault(place, []).append(record["reason"])
    return {
        place: Cell(values[place], frozenset(planned[place]), tuple(dict.fromkeys(reasons.get(place, [])))) for place in values
    }


@dataclass(frozen=True)
class Paired:
    """The first minus the second on the splits both have: mean, standard error, p of the t-test and of Wilcoxon's test.

    A p is None where its test is undefined: fewer than two pairs, or no spread at all. `pairs` counts splits, or the seeds of
    a single one.
    """

    difference: float
    error: float | None
    t_p: float | None
    wilcoxon_p: float | None
    pairs: int


def paired(first: Values, second: Values) -> Paired | None:
    """Compare two systems split by split, on the runs both have; None where they share none.

    Several seeds of a split share its test nodes, so their mean is one observation.
    """
    shared = sorted(first.keys() & second.keys())
    if not shared:
        return None
    several = len({split for split, _ in shared}) > 1
    groups: dict[int, list[float]] = {}
    for split, seed in shared:
        groups.setdefault(split if several else seed, []).append(first[split, seed] - second[split, seed])
    gaps = np.array([statistics.fmean(group) for group in groups.values()])
    count, mean = len(gaps), float(gaps.mean())
    spread = float(gaps.std(ddof=1)) if count > 1 else 0.0
    if count < 2 or spread <= 1e-12:
        return Paired(mean, None, None, None, count)
    t_p = float(stats.ttest_1samp(gaps, 0.0).pvalue)  # pyright: ignore[reportAttributeAccessIssue]
    wilcoxon_p = float(stats.wilcoxon(gaps[np.abs(gaps) > 1e-12]).pvalue)  # pyright: ignore[reportAttributeAccessIssue]
    return Paired(mean, spread / count**0.5, t_p, wilcoxon_p, count)


def holm(values: Sequence[float | None]) -> list[float | None]:
    """Holm's correction of several p; the undefined ones stay so and do not count."""
    order = sorted((p, place) for place, p in enumerate(values) if p is not None)
    corrected: list[float | None] = [None] * len(values)
    highest = 0.0
    for done, (p, place) in enumerate(order):
        highest = max(highest, min(1.0, p * (len(order) - done)))
        corrected[place] = highest
    return corrected


def ranks(scores: Mapping[str, float | None]) -> dict[str, float]:
    """1 for the highest; equal scores share the mean of their ranks; those without a score share the last ranks."""
    names = list(scores)
    negated = [-score if score is not None else np.inf for score in scores.values()]
    return dict(zip(names, map(float, stats.rankdata(negated)), strict=True))
