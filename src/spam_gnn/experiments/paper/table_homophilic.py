"""`table-homophilic`: Cora, Citeseer and Pubmed on their public split, three seeds of every system."""

from __future__ import annotations

from collections.abc import Sequence

from spam_gnn.experiments.paper.accuracy_table import accuracy_result
from spam_gnn.experiments.paper.plan import present, system_names, table_run
from spam_gnn.experiments.paper.verdicts import best_accuracy_verdict
from spam_gnn.experiments.spec import RunSpec
from spam_gnn.experiments.store import Record, RunStore
from spam_gnn.experiments.study import Study, StudyResult

DATASETS = ("cora", "citeseer", "pubmed")
SEEDS = 3


def specs(store: RunStore) -> list[RunSpec]:  # noqa: ARG001 - the plan does not depend on results
    return [
        table_run(data, model, 0, seed) for seed in range(SEEDS) for data in present(DATASETS) for model in system_names()
    ]


def render(records: Sequence[Record]) -> StudyResult:
    return accuracy_result(records, "table-homophilic", DATASETS, best_accuracy_verdict(records, DATASETS))


STUDY = Study("table-homophilic", "Homophilic benchmarks", specs, render)
