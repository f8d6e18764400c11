"""Runs with the label under which a figure shows them, and the values found for each label."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from spam_gnn.data import catalog
from spam_gnn.experiments.spec import RunSpec
from spam_gnn.experiments.store import Record

Label = tuple[Any, ...]
Plan = Sequence[tuple[Label, RunSpec]]


@dataclass(frozen=True)
class Spread:
    """Mean and sample standard deviation (ddof 1) of the runs that succeeded."""

    mean: float
    std: float
    count: int

    @staticmethod
    def of(values: Sequence[float]) -> Spread:
        return Spread(statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else 0.0, len(values))


def draws_of(dataset: str, count: int) -> list[tuple[int, int]]:
    """(split, seed) of `count` runs: other splits where the dataset has them, other seeds where it has one."""
    if catalog.split_count(dataset) == 1:
        return [(0, k) for k in range(count)]
    return [(k, k) for k in range(count)]


def specs_of(plan: Plan) -> list[RunSpec]:
    """Each run that this machine has the files for, once, in the plan's order; a run may have several labels.

    The plan itself does not depend on files, so that records of another machine are rendered anywhere.
    """
    here = {data: catalog.is_present(data) for data in dict.fromkeys(spec.dataset for _, spec in plan)}
    return list(dict.fromkeys(spec for _, spec in plan if here[spec.dataset]))


def grouped(plan: Plan, records: Iterable[Record]) -> dict[Label, list[Record]]:
    """The successful records of each label, in the plan's order."""
    found = {(r["hash"], r["spec"]["seed"]): r for r in records if r["status"] == "ok"}
    groups: dict[Label, list[Record]] = defaultdict(list)
    for label, spec in plan:
        record = found.get((spec.spec_hash, spec.seed))
        if record is not None:
            groups[label].append(record)
    return dict(groups)


def spreads(groups: dict[Label, list[Record]], value: Callable[[Record], float | None]) -> dict[Label, Spread]:
    """Mean and spread of one number; records without it are left out."""
    found = {label: [v for r in rows if (v := value(r)) is not None] for label, rows in groups.items()}
    return {label: Spread.of(values) for label, values in found.items() if values}


def accuracy(record: Record) -> float:
    """Test accuracy in percent."""
    return 100.0 * record["test"]["accuracy"]


def shown(spread: Spread | None, digits: int = 1) -> str:
    """mean ± std (n), without ± for one run; a dash where nothing was found."""
    if spread is None:
        return "–"
    return f"{spread.mean:.{digits}f}" + (f" ± {spread.std:.{digits}f}" if spread.count > 1 else "") + f" ({spread.count})"
