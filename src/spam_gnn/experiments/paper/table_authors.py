"""`table-authors`: the random 10/45/45 splits that the SpaM authors' code draws, so that their table has its like here."""

from __future__ import annotations

from collections.abc import Sequence

from spam_gnn.experiments.paper.accuracy_table import accuracy_result
from spam_gnn.experiments.paper.plan import EQUAL_BUDGET, present
from spam_gnn.experiments.paper.verdicts import best_accuracy_verdict
from spam_gnn.experiments.spec import RunSpec
from spam_gnn.experiments.store import Record, RunStore
from spam_gnn.experiments.study import Study, StudyResult

NAME, PROTOCOL = "table-authors", "authors"
SYSTEMS = ("spam", "mlp", "gcn", "gat", "h2gcn")
SPLITS = {"texas": 10, "cornell": 10, "wisconsin": 10, "chameleon": 5, "chameleon-filtered": 5,
          "squirrel-filtered": 5, "actor": 5, "squirrel": 3, "minesweeper": 3,
          "amazon-ratings": 3, "roman-empire": 3}  # fmt: skip


def specs(store: RunStore) -> list[RunSpec]:  # noqa: ARG001 - no run depends on another
    return [
        RunSpec.of(data, model, protocol=PROTOCOL, split=split, seed=split, train=EQUAL_BUDGET)
        for data in present(SPLITS) for split in range(SPLITS[data]) for model in SYSTEMS
    ]  # fmt: skip


def render(records: Sequence[Record]) -> StudyResult:
    return accuracy_result(records, NAME, tuple(SPLITS), best_accuracy_verdict(records, tuple(SPLITS)))


STUDY = Study(NAME, "The authors' own splits", specs, render)
