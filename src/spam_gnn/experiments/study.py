"""`Study`: a named piece of evidence: which runs it needs and how they are shown. A module of `experiments/paper/` (or of a
package below it) that defines `STUDY` or `STUDIES` is found by itself."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache

import spam_gnn.experiments.paper
from spam_gnn.errors import one_of
from spam_gnn.experiments.spec import RunSpec
from spam_gnn.experiments.store import Record, RunStore
from spam_gnn.report.exhibit import ResultFigure, ResultTable


@dataclass(frozen=True)
class StudyResult:
    """What a study found.

    Args:
        markdown: its section of RESULTS.md, without title, verdict and figures, which are added to it.
        tables, figures: what is written beside it, in files of their names.
        verdict: one sentence, computed from the data, saying whether the paper's claim held.
    """

    markdown: str
    tables: tuple[ResultTable, ...] = ()
    figures: tuple[ResultFigure, ...] = ()
    verdict: str = ""


@dataclass(frozen=True)
class Study:
    """Evidence by name.

    Args:
        name: what `spam-gnn reproduce` takes.
        title: what RESULTS.md calls it.
        specs: the runs it needs, the most valuable first. May read the store: runs chosen by the validation of others are asked
            for once those exist.
        render: from records to what is shown. A planned run without a result is among them, with status `failed` (and the
            reason) or `missing`. Records come from `results/records`, where numbers have six digits.
        compute: findings that are no training runs (theory); each a record with `status`, `hash` and anything else.
        further: what `specs` asks for once the runs that it lists now have results, in words.
    """

    name: str
    title: str
    specs: Callable[[RunStore], list[RunSpec]]
    render: Callable[[Sequence[Record]], StudyResult]
    compute: Callable[[], list[Record]] | None = field(default=None)
    further: str = ""


@cache
def studies() -> dict[str, Study]:
    """Every study by name."""
    found: dict[str, Study] = {}
    package = spam_gnn.experiments.paper
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        loaded = importlib.import_module(module.name)
        for study in (*getattr(loaded, "STUDIES", ()), *((loaded.STUDY,) if hasattr(loaded, "STUDY") else ())):
            if study.name in found:
                raise ValueError(f"two studies are called '{study.name}'")
            found[study.name] = study
    return dict(sorted(found.items()))


def find_study(name: str) -> Study:
    """A study by name; a misspelt name is answered with the nearest one."""
    return studies()[one_of(name, tuple(studies()), "study")]
