"""Accuracy tables of several studies, one row per system and one column per dataset."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence

from spam_gnn.experiments.store import Record
from spam_gnn.experiments.study import ResultTable, StudyResult


def accuracy_result(records: Sequence[Record], name: str, datasets: Sequence[str]) -> StudyResult:
    """Mean test accuracy in percent of every system on every dataset that has records."""
    values: dict[tuple[str, str], list[float]] = defaultdict(list)
    for record in records:
        if record["status"] == "ok":
            values[record["spec"]["model"], record["spec"]["dataset"]].append(100 * record["test"]["accuracy"])
    models = list(dict.fromkeys(model for model, _ in values))
    shown = [data for data in datasets if any((model, data) in values for model in models)]
    rows = tuple(
        (model, *(f"{statistics.fmean(values[model, d]):.1f} ({len(values[model, d])})" if (model, d) in values else "–"
                  for d in shown))
        for model in models
    )  # fmt: skip
    table = ResultTable(name, ("system", *shown), rows)
    lines = [f"| {' | '.join(table.header)} |", "|" + "---|" * len(table.header)]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return StudyResult("\n".join(lines) + "\n", (table,))
