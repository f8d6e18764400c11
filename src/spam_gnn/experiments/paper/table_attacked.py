"""`table-attacked`: Cora with the published Metattack edges at six rates; ten seeds of SpaM, three of the others."""

from __future__ import annotations

from collections.abc import Sequence

from spam_gnn.data.entries.attacked import RATES
from spam_gnn.experiments.paper.accuracy_table import accuracy_result
from spam_gnn.experiments.paper.plan import present, system_names, table_run
from spam_gnn.experiments.paper.verdicts import attacked_verdict
from spam_gnn.experiments.spec import RunSpec
from spam_gnn.experiments.store import Record, RunStore
from spam_gnn.experiments.study import Study, StudyResult

DATASETS = tuple(f"cora-metattack:{rate}" for rate in RATES)
SEEDS, SEEDS_SPAM = 3, 10


def specs(store: RunStore) -> list[RunSpec]:  # noqa: ARG001 - the plan does not depend on results
    data, names = present(DATASETS), system_names()
    runs = [table_run(graph, "spam", 0, seed) for seed in range(SEEDS_SPAM) for graph in data]
    # the strongest attack first: it tells most
    others = [model for model in names if model != "spam"]
    return runs + [table_run(graph, model, 0, seed) for seed in range(SEEDS) for graph in reversed(data) for model in others]


def render(records: Sequence[Record]) -> StudyResult:
    return accuracy_result(records, "table-attacked", DATASETS, attacked_verdict(records, DATASETS))


STUDY = Study("table-attacked", "Published attacks on Cora", specs, render)
