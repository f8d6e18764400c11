"""`GridState`: what is done, running, failed and left of a grid, and how long it will take."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from spam_gnn.experiments.spec import RunSpec
from spam_gnn.experiments.store import RunStore


@dataclass(frozen=True)
class Finished:
    """One run that was just recorded."""

    spec: RunSpec
    status: str
    seconds: float
    reason: str = ""


class GridState:
    """The account of a grid; the only thing its views read."""

    def __init__(self, specs: Sequence[RunSpec], store: RunStore) -> None:
        self.specs = list(dict.fromkeys(specs))  # a run that two tables share is one run
        self.missing: list[RunSpec] = []
        self.status: dict[RunSpec, str] = {}
        self.running: list[tuple[RunSpec, float]] = []
        self.recent: list[Finished] = []  # since a view last emptied it
        self._seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
        for spec in self.specs:
            record = store.read(spec)
            if record is None:
                self.missing.append(spec)
            else:
                self.status[spec] = record["status"]
                if "seconds_total" in record:
                    self._seconds[spec.dataset, spec.model].append(record["seconds_total"])

    def note(self, spec: RunSpec, status: str, seconds: float, reason: str = "") -> None:
        """A run has a record now. Without seconds it is somebody else's, and says nothing of how long runs take here."""
        self.status[spec] = status
        self.recent.append(Finished(spec, status, seconds, reason))
        if seconds > 0.0:
            self._seconds[spec.dataset, spec.model].append(seconds)

    @property
    def done(self) -> int:
        return sum(status == "ok" for status in self.status.values())

    @property
    def failed(self) -> int:
        return sum(status == "failed" for status in self.status.values())

    @property
    def left(self) -> int:
        return len(self.specs) - len(self.status)

    def by_model(self) -> dict[str, tuple[int, int, int]]:
        """(recorded, failed, planned) of each model, in the order of the grid."""
        planned = Counter(spec.model for spec in self.specs)
        recorded = Counter(spec.model for spec in self.status)
        failed = Counter(spec.model for spec, status in self.status.items() if status == "failed")
        return {model: (recorded[model], failed[model], count) for model, count in planned.items()}

    def seconds_left(self, workers: int) -> float | None:
        """Expected time to the end: the mean of the same model on the same dataset, else of the dataset, else of all."""
        known = {key: statistics.fmean(values) for key, values in self._seconds.items()}
        if not known:
            return None
        overall = statistics.fmean(known.values())
        datasets: dict[str, list[float]] = defaultdict(list)
        for (dataset, _), mean in known.items():
            datasets[dataset].append(mean)
        means = {dataset: statistics.fmean(values) for dataset, values in datasets.items()}
        left = [spec for spec in self.specs if spec not in self.status]
        total = sum(known.get((s.dataset, s.model), means.get(s.dataset, overall)) for s in left)
        spent = sum(min(seconds, known.get((s.dataset, s.model), seconds)) for s, seconds in self.running)
        return max(total - spent, 0.0) / max(workers, 1)
