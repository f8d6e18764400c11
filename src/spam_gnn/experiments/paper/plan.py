"""What the paper's tables have in common: the systems, one equal budget, and the choice of systems that get all splits."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import Any, get_args

from spam_gnn.baselines.base import Family
from spam_gnn.baselines.registry import systems
from spam_gnn.data import catalog
from spam_gnn.experiments.spec import RunSpec
from spam_gnn.experiments.store import RunStore

EQUAL_BUDGET = {"epochs": 200, "patience": 60}  # for every system, whatever its own publication spends
# SpaM as the paper has it: the network on sampled graphs, no other reading; edges judged by the posterior's full equations
ALONE: dict[str, Any] = {"trusted": (), "verdict": "evidence"}
BUDGET_SENTENCE = (
    "Every system has the same budget: at most 200 epochs, stopped after 60 without a better validation accuracy, its own "
    "default settings, no tuning per dataset; the epoch is chosen on validation nodes and the test nodes are read once. "
    "SpaM trains three networks within that budget, four where features are few or nodes fewer than 500, of which those that "
    "hear messages may go over the graph twice in an epoch where labels are few; where features are few and labels many "
    "(Minesweeper) an epoch is up to eight steps, each on a part of the graph, which the other systems take whole in one, and "
    "its deep network hears training labels of other nodes beside the features, which the other systems do not; its posterior "
    "does so everywhere. Validation nodes also decide how networks are mixed and how far each learns from its own guesses, "
    "training labels how counts are scaled (of the other systems row by row)."
)


def system_names() -> tuple[str, ...]:
    """SpaM first, then family by family."""
    order = get_args(Family)
    listed = sorted(systems().values(), key=lambda system: (order.index(system.family), system.name))
    return tuple(system.name for system in listed)


def title(model: str) -> str:
    """What tables call a system; one that is published only keeps the name it has there."""
    return systems()[model].title if model in systems() else model


def table_run(dataset: str, model: str, split: int, seed: int) -> RunSpec:
    """One run under the equal budget."""
    return RunSpec.of(dataset, model, split=split, seed=seed, train=EQUAL_BUDGET)


def present(datasets: Iterable[str]) -> tuple[str, ...]:
    """Those whose raw files are on this machine."""
    return tuple(name for name in datasets if catalog.is_present(name))


def best_on_validation(
    store: RunStore, dataset: str, splits: int, count: int, among: Iterable[str] | None = None
) -> tuple[str, ...]:
    """The `count` systems beside SpaM, of all or of those named, with the highest mean validation accuracy over the first
    splits; none before the whole row exists. A system that failed on one of them is not among the best."""
    means: dict[str, float] = {}
    for model in system_names() if among is None else among:
        records = [store.read(table_run(dataset, model, split, split)) for split in range(splits)]
        if any(record is None for record in records):
            return ()
        values = [record["val"]["accuracy"] for record in records if record is not None and record["status"] == "ok"]
        if len(values) == splits and model != "spam":
            means[model] = statistics.fmean(values)
    return tuple(sorted(means, key=lambda model: (-means[model], model))[:count])
