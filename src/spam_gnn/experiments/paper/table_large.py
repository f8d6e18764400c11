"""`table-large`: Penn94, arXiv-year and snap-patents, two Facebook graphs as large real ones; surrogates apart from them."""

from __future__ import annotations

from collections.abc import Sequence

from spam_gnn.data import catalog
from spam_gnn.experiments.paper.accuracy_table import accuracy_result
from spam_gnn.experiments.paper.plan import present, system_names, table_run
from spam_gnn.experiments.paper.verdicts import best_accuracy_verdict
from spam_gnn.experiments.spec import RunSpec
from spam_gnn.experiments.store import Record, RunStore
from spam_gnn.experiments.study import Study, StudyResult

PAPER = ("penn94", "arxiv-year", "snap-patents")
REAL = ("johnshopkins55", "cornell5", *PAPER)  # smallest first: what is cheap is known first
SURROGATES = tuple(f"surrogate:{name}" for name in PAPER)
SPLITS = 3


def specs(store: RunStore) -> list[RunSpec]:  # noqa: ARG001 - the plan does not depend on results
    """Three splits of what is here; one of a surrogate for what is not, which shows cost and says nothing of accuracy."""
    real = present(REAL)
    runs = [table_run(data, model, split, split) for data in real for split in range(SPLITS) for model in system_names()]
    absent = [f"surrogate:{name}" for name in PAPER if not catalog.is_present(name)]
    return runs + [table_run(data, model, 0, 0) for data in absent for model in system_names()]


def render(records: Sequence[Record]) -> StudyResult:
    """Real graphs and surrogates are never in one table."""
    real = [record for record in records if record["spec"]["dataset"] in REAL]
    generated = [record for record in records if record["spec"]["dataset"] in SURROGATES]
    first = accuracy_result(real, "table-large", REAL, best_accuracy_verdict(real, PAPER))
    if not any(record["status"] == "ok" for record in generated):
        return first
    second = accuracy_result(generated, "table-large-surrogates", SURROGATES, "")
    text = (
        f"{first.markdown}\n## Surrogates\n\nGenerated graphs of the size and shape of the absent ones, for time and memory; "
        f"their accuracy says nothing of the real ones.\n\n{second.markdown}"
    )
    return StudyResult(text, (*first.tables, *second.tables), (*first.figures, *second.figures), first.verdict)


STUDY = Study("table-large", "Large graphs", specs, render)
