"""`spam-gnn reproduce`: do the missing runs of a study, then write its tables and figures."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from spam_gnn.baselines.registry import find
from spam_gnn.commands.console import OUT, table
from spam_gnn.commands.grid_view import duration, grid_view
from spam_gnn.data.catalog import spec_of
from spam_gnn.errors import BadInput, Interrupted, RunsFailed
from spam_gnn.experiments.cluster import connect, run_on_cluster
from spam_gnn.experiments.execute import Limits
from spam_gnn.experiments.grid import run_grid
from spam_gnn.experiments.progress import GridState
from spam_gnn.experiments.publish import RECORDS, assemble, publish, publish_again, published_studies
from spam_gnn.experiments.records import compact, planned_records, take_over
from spam_gnn.experiments.spec import RunSpec
from spam_gnn.experiments.store import RunStore
from spam_gnn.experiments.study import Study, find_study, studies
from spam_gnn.resources import available_memory_mb


@dataclass(frozen=True)
class ReproduceRequest:
    """The options of `reproduce`, as typed."""

    name: str | None
    store: Path
    out: Path
    page: Path
    workers: int
    cluster: str | None
    models: str
    datasets: str
    splits: int | None
    time_limit: float
    memory_limit: float | None
    retry_failed: bool
    render_only: bool
    from_records: bool
    dry_run: bool


def run_reproduce(request: ReproduceRequest) -> None:
    """One study, or all of them with the name `all`."""
    if request.name is None:
        table("studies", ("name", "title"), [[study.name, study.title] for study in studies().values()])
        OUT.print("run one with: spam-gnn reproduce NAME; look first with --dry-run")
        return
    chosen = list(studies().values()) if request.name == "all" else [find_study(request.name)]
    if request.from_records:
        _publish_again(chosen, request)
        return
    store, wanted = RunStore(request.store), Filter.parse(request)
    taken = take_over(sorted((request.out / RECORDS).glob("*.jsonl")), store)
    if taken:
        OUT.print(f"{taken} runs taken over from {request.out / RECORDS}", markup=False)
    if request.dry_run:
        _show_plan(chosen, store, wanted)
        return
    failures: list[str] = []
    for study in chosen:
        if len(chosen) > 1 and study.compute is None and not wanted(study.specs(store)):
            OUT.print(f"{study.name}: no run with these files, --models, --datasets and --splits; left out", markup=False)
            continue
        if not request.render_only:
            failures += _do(study, store, wanted, request)
        _publish(study, store, wanted, request)
    if wanted.whole:
        assemble(request.out, request.page)
        OUT.print(f"written: {request.page}, {request.out}/index.html", markup=False)
    if failures:
        raise RunsFailed(f"{len(failures)} runs failed, the first: {failures[0]}; try them again with --retry-failed")


@dataclass(frozen=True)
class Filter:
    """A part of a study: some models, some datasets, the first splits (and seeds, where there is one split)."""

    models: frozenset[str]
    datasets: frozenset[str]
    splits: int | None

    @staticmethod
    def parse(request: ReproduceRequest) -> Filter:
        models, datasets = _names(request.models), _names(request.datasets)
        for name in models:
            find(name)
        for name in datasets:
            spec_of(name)
        return Filter(models, datasets, request.splits)

    @property
    def whole(self) -> bool:
        return not self.models and not self.datasets and self.splits is None

    def __call__(self, specs: list[RunSpec]) -> list[RunSpec]:
        return [
            spec for spec in specs
            if (not self.models or spec.model in self.models) and (not self.datasets or spec.dataset in self.datasets)
            and (self.splits is None or max(spec.split, spec.seed) < self.splits)
        ]  # fmt: skip


def _names(text: str) -> frozenset[str]:
    return frozenset(part.strip() for part in text.split(",") if part.strip())


def _do(study: Study, store: RunStore, wanted: Filter, request: ReproduceRequest) -> list[str]:
    """Until the study asks for nothing new: the results of some runs decide which others are wanted."""
    limits = Limits(request.time_limit, _memory_limit(request))
    specs = wanted(study.specs(store))
    if not specs and study.compute is not None:
        return []
    if not specs:
        raise BadInput(f"{study.name}: found no run with these --models, --datasets and --splits; look with --dry-run")
    if request.retry_failed:
        tried = sum(store.forget_failure(spec) for spec in specs)
        OUT.print(f"{study.name}: {tried} failed runs will be tried again")
    while True:
        try:
            state = _run(specs, store, limits, request)
        except KeyboardInterrupt:
            raise Interrupted(f"{request.store}: stopped; what was recorded stays, the same command continues") from None
        further = wanted(study.specs(store))
        if set(further) <= set(specs):
            return _failures(state)
        specs = further


def _run(specs: list[RunSpec], store: RunStore, limits: Limits, request: ReproduceRequest) -> GridState:
    """On this machine or on a cluster."""
    if request.cluster is None:
        with grid_view(request.workers) as watch:
            return run_grid(specs, store, workers=request.workers, limits=limits, watch=watch)
    with connect(request.cluster) as client, grid_view(max(sum(client.nthreads().values()), 1)) as watch:
        return run_on_cluster(specs, store, client, limits=limits, watch=watch)


def _failures(state: GridState) -> list[str]:
    return [spec.label for spec, status in state.status.items() if status == "failed"]


def _memory_limit(request: ReproduceRequest) -> float:
    """MiB for each run; by default its share of what is free now, with a tenth kept back."""
    if request.memory_limit is not None:
        return request.memory_limit * 1024
    return 0.9 * available_memory_mb() / request.workers


def _show_plan(chosen: list[Study], store: RunStore, wanted: Filter) -> None:
    rows = []
    for study in chosen:
        specs = wanted(study.specs(store))
        state = GridState(specs, store)
        rows.append([study.name, str(len(state.specs)), str(state.done), str(state.failed), str(len(state.missing)),
                     duration(state.seconds_left(1)) if state.missing else "–"])  # fmt: skip
        if len(chosen) == 1:
            for spec in state.specs:
                OUT.print(f"{state.status.get(spec, 'to do'):7} {spec.spec_hash} {spec.label}", markup=False)
    table("plan", ("study", "runs", "done", "failed", "to do", "time on one core"), rows)
    for study in chosen:
        if study.further:
            OUT.print(f"{study.name}: more runs follow from the results of these: {study.further}", markup=False)


def _publish(study: Study, store: RunStore, wanted: Filter, request: ReproduceRequest) -> None:
    """Tables and figures of a whole study go to --out; those of a part of it are only printed."""
    if study.compute is not None and request.render_only:
        result = publish_again(study, request.out)
        OUT.print(f"{study.name}: {result.verdict}", markup=False)
    elif wanted.whole:
        records = planned_records(study.specs(store), store) + (study.compute() if study.compute is not None else [])
        result = publish(study, records, request.out)
        OUT.print(f"{study.name}: {result.verdict or 'written'}\nwritten to {request.out / study.name}.md", markup=False)
    else:
        records = planned_records(wanted(study.specs(store)), store)
        OUT.print(study.render([compact(record) for record in records]).markdown, markup=False)


def _publish_again(chosen: list[Study], request: ReproduceRequest) -> None:
    there = {study.name for study in published_studies(request.out)}
    for study in chosen:
        if study.name in there or request.name != "all":
            OUT.print(f"{study.name}: {publish_again(study, request.out).verdict}", markup=False)
    assemble(request.out, request.page)
    OUT.print(f"written: {request.page}, {request.out}/index.html", markup=False)
