"""`table-homophilic`: Cora, Citeseer and Pubmed on their public split, every system; five seeds of SpaM and of the best."""

from __future__ import annotations

from collections.abc import Sequence

from spam_gnn.experiments.paper.accuracy_table import accuracy_result
from spam_gnn.experiments.paper.plan import best_on_validation, present, system_names, table_run
from spam_gnn.experiments.paper.verdicts import best_accuracy_verdict
from spam_gnn.experiments.spec import RunSpec
from spam_gnn.experiments.store import Record, RunStore
from spam_gnn.experiments.study import Study, StudyResult

DATASETS = ("cora", "citeseer", "pubmed")
SEEDS, BEST = 5, 5


def specs(store: RunStore) -> list[RunSpec]:
    """The first seed of every system, then the others of SpaM and of those that are best on validation nodes with the first.
    Further seeds of other systems are not asked for; those that were run are shown."""
    datasets, further = present(DATASETS), range(1, SEEDS)
    first = [table_run(data, model, 0, 0) for data in datasets for model in system_names()]
    best = [
        table_run(data, model, 0, seed)
        for seed in further for data in datasets for model in ("spam", *best_on_validation(store, data, 1, BEST))
    ]  # fmt: skip
    others = [table_run(data, model, 0, seed) for seed in further for data in datasets for model in system_names()]
    return list(dict.fromkeys([*first, *best, *(spec for spec in others if store.read(spec) is not None)]))


def render(records: Sequence[Record]) -> StudyResult:
    return accuracy_result(records, "table-homophilic", DATASETS, best_accuracy_verdict(records, DATASETS))


STUDY = Study(
    "table-homophilic", "Homophilic benchmarks", specs, render,
    further=f"the {BEST} best systems of each graph, by validation, get further seeds",
)  # fmt: skip
