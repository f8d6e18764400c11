"""`theory`: the paper's four statements, measured. No training grid: each finding is computed in about a minute."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass
from types import ModuleType
from typing import Any, get_args, get_type_hints

from spam_gnn.experiments.provenance import code_version, machine, package_versions
from spam_gnn.experiments.spec import RunSpec
from spam_gnn.experiments.store import Record, RunStore
from spam_gnn.experiments.study import Study, StudyResult
from spam_gnn.experiments.theory import consistency, margin, risk_bound, support
from spam_gnn.report.exhibit import ResultFigure


@dataclass(frozen=True)
class Statement:
    """One theorem: the module that measures it and the finding it makes."""

    name: str
    title: str
    module: ModuleType
    finding: type[Any]


STATEMENTS = (
    Statement("risk-bound", "Risk under an approximate posterior", risk_bound, risk_bound.RiskBound),
    Statement("consistency", "Posterior consistency", consistency, consistency.Consistency),
    Statement("margin", "Signed aggregation and the margin", margin, margin.Margin),
    Statement("support", "Support recovery of sparse coding", support, support.Support),
)


def compute(measure: Callable[[Statement], Any] = lambda s: s.module.measure()) -> list[Record]:
    """One record per statement."""
    about = {"code": code_version(), "packages": package_versions(), "machine": machine()}
    return [
        {"status": "ok", "hash": f"theory-{s.name}", "findings": {"statement": s.name, **_plain(asdict(measure(s)))}, **about}
        for s in STATEMENTS
    ]


def render(records: Sequence[Record]) -> StudyResult:
    found = {record["findings"]["statement"]: record["findings"] for record in records if record["status"] == "ok"}
    parts, figures, verdicts = [], [], []
    for s in STATEMENTS:
        if s.name not in found:
            continue
        finding = read_back(s.finding, found[s.name])
        said = s.module.verdict(finding)
        parts.append(f"## {s.title}\n\n{said}\n\n{s.module.section(finding)}")
        figures.append(ResultFigure(f"theory-{s.name}", s.title, lambda s=s, finding=finding: s.module.draw(finding)))
        verdicts.append(f"{s.title.lower()}: {'held' if s.module.held(finding) else 'did not hold as stated'}")
    said = "Measured against the paper's statements: " + "; ".join(verdicts) + "."
    return StudyResult("\n".join(parts), (), tuple(figures), said if verdicts else "")


def _plain(value: dict[str, Any]) -> dict[str, Any]:
    """As JSON holds it: undefined numbers are null, tuples are lists."""
    return json.loads(json.dumps(value), parse_constant=lambda _: None)


def read_back(kind: type[Any], stored: dict[str, Any]) -> Any:
    """A finding from its JSON form, its inner records among it; null is an undefined number."""
    hints = get_type_hints(kind)
    return kind(**{f.name: _value(hints[f.name], stored[f.name]) for f in fields(kind)})


def _value(kind: Any, stored: Any) -> Any:
    if stored is None:
        return float("nan")
    if isinstance(stored, list):
        inner = get_args(kind)[0]
        return tuple(read_back(inner, v) if is_dataclass(inner) else _value(inner, v) for v in stored)  # pyright: ignore[reportArgumentType]
    return stored


def specs(store: RunStore) -> list[RunSpec]:  # noqa: ARG001 - no training runs
    return []


STUDY = Study("theory", "The paper's theorems, measured", specs, render, compute)
