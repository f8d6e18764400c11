"""`table-large`: Penn94, arXiv-year and snap-patents, two Facebook graphs as large real ones; surrogates apart from them."""

from __future__ import annotations

from collections.abc import Sequence

from spam_gnn.data import catalog
from spam_gnn.experiments.paper.accuracy_table import accuracy_result
from spam_gnn.experiments.paper.plan import best_on_validation, present, system_names, table_run, title
from spam_gnn.experiments.paper.verdicts import large_verdict
from spam_gnn.experiments.provenance import measured_with
from spam_gnn.experiments.spec import RunSpec
from spam_gnn.experiments.store import Record, RunStore
from spam_gnn.experiments.study import Study, StudyResult
from spam_gnn.report.exhibit import ResultTable

PAPER = ("penn94", "arxiv-year", "snap-patents")
REAL = ("johnshopkins55", "cornell5", *PAPER)  # smallest first: what is cheap is known first
SURROGATES = tuple(f"surrogate:{name}" for name in PAPER)
SPLITS, BEST, RIVALS = 5, 5, 2
ALWAYS = ("spam", "mlp", "gcn", "gat", "linkx")  # beside the best, on graphs where a run takes a quarter of an hour
SHORT = {"epochs": 3, "patience": 3}  # of a surrogate: enough to see what an epoch costs


def specs(store: RunStore) -> list[RunSpec]:
    """Every system on the smallest graph; SpaM and those that are best there on validation nodes get further splits of it, and
    the larger graphs. SpaM and those that are best on a larger graph get further splits of that. Of a surrogate a few epochs,
    which show cost and say nothing of accuracy."""
    real, absent = present(REAL), [f"surrogate:{name}" for name in PAPER if not catalog.is_present(name)]
    if not real:
        return [_short(data, model) for data in absent for model in ALWAYS]
    best = best_on_validation(store, real[0], 1, BEST)
    runs, further = [table_run(real[0], model, 0, 0) for model in system_names()], _further(real[0], best)
    chosen = tuple(dict.fromkeys((*ALWAYS, *best)))
    for data in real[1:]:
        runs += [table_run(data, model, 0, 0) for model in chosen]
        further += _further(data, best_on_validation(store, data, 1, RIVALS, chosen) if best else ())
    return [*runs, *further, *(_short(data, model) for data in absent for model in ALWAYS)]


def _further(dataset: str, best: Sequence[str]) -> list[RunSpec]:
    """The further splits of SpaM and the systems it has to fear, split by split."""
    return [table_run(dataset, model, split, split) for split in range(1, SPLITS) for model in ("spam", *best)]


def _short(dataset: str, model: str) -> RunSpec:
    return RunSpec.of(dataset, model, split=0, seed=0, train=SHORT)


def render(records: Sequence[Record]) -> StudyResult:
    """Real graphs and surrogates are never in one table."""
    real = [record for record in records if record["spec"]["dataset"] in REAL]
    generated = [record for record in records if record["spec"]["dataset"] in SURROGATES]
    first = accuracy_result(real, "table-large", REAL, large_verdict(real, REAL, PAPER))
    if not any(record["status"] == "ok" for record in generated):
        return first
    costs = _costs(generated)
    failed = [(r["spec"]["model"], r["spec"]["dataset"], r["reason"]) for r in generated if r["status"] == "failed"]
    reasons = "\n".join(f"- {title(model)} on {data}: {reason}" for model, data, reason in failed)
    parts = [
        first.markdown.rstrip("\n"),
        "## Surrogates",
        f"Generated graphs of the size of the absent ones, {SHORT['epochs']} epochs of each system, for time and memory: "
        "seconds of an epoch (one thread, beside other runs) and the peak of the whole run in GiB. What a system learns of "
        "them says nothing of the real ones. A run of a grid takes its graph whole: where that is more than the machine has, "
        "it is a failure with that reason, and `benchmarks/scaling.md` has SpaM on the same graph in batches.",
        costs.markdown(),
        *(["Runs without a result:", reasons] if failed else []),
        measured_with(generated),
    ]
    return StudyResult("\n\n".join(parts) + "\n", (*first.tables, costs), first.figures, first.verdict)


def _costs(records: Sequence[Record]) -> ResultTable:
    """Time and memory of each system on each generated graph."""
    found = {(r["spec"]["model"], r["spec"]["dataset"]): r for r in records if r["status"] == "ok"}
    columns = [data for data in SURROGATES if any(place == data for _, place in found)]
    rows = [(title(model), *(_cost(found.get((model, data))) for data in columns)) for model in ALWAYS]
    return ResultTable("table-large-surrogates", ("system", *columns), tuple(rows))


def _cost(record: Record | None) -> str | None:
    return None if record is None else f"{record['seconds_per_epoch']:.3g} s, {record['peak_memory_mb'] / 1024:.1f} GiB"


STUDY = Study(
    "table-large", "Large graphs", specs, render,
    further=f"the {BEST} best systems of the smallest graph, by validation, get further splits and the larger graphs, where "
    f"the {RIVALS} best of them get further splits",
)  # fmt: skip
