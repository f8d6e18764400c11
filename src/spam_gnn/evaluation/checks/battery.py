"""`check_node_classifier`: does a model keep the promises that training, reports and comparisons rely on?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from spam_gnn.baselines.base import System
from spam_gnn.errors import one_of
from spam_gnn.evaluation.checks import invariance, learning, parameters, predictions, repeatability, robustness
from spam_gnn.evaluation.checks.lab import Check, Lab
from spam_gnn.evaluation.checks.subject import Factory, Subject, subject_of

Status = Literal["passed", "failed", "skipped"]
CHECKS: tuple[Check, ...] = (
    *parameters.CHECKS, *predictions.CHECKS, *invariance.CHECKS, *repeatability.CHECKS, *robustness.CHECKS, *learning.CHECKS,
)  # fmt: skip


class CheckResult(NamedTuple):
    """How one check ended, and why if it did not pass."""

    name: str
    status: Status
    reason: str = ""


class CheckFailed(AssertionError):
    """Some checks failed; `results` holds all of them."""

    def __init__(self, subject: str, results: Sequence[CheckResult]) -> None:
        self.results = tuple(results)
        failed = [f"{r.name}: {r.reason}" for r in results if r.status == "failed"]
        super().__init__(f"{subject}: {len(failed)} of {len(results)} checks failed\n  " + "\n  ".join(failed))


def check_node_classifier(
    model: str | System | Factory,
    *,
    settings: Any = None,
    exceptions: Mapping[str, str] | None = None,
    only: Sequence[str] = (),
    seed: int = 0,
    on_fail: Literal["raise", "report"] = "raise",
) -> list[CheckResult]:
    """Run every check on a model and say how each ended; a few seconds on tiny graphs.

    Args:
        model: a name of the registry; a `System`; or a factory, called with a `Shape` (num_nodes, num_features,
            num_classes) and a seed, that returns a `NodeModel` or a plain PyG module with `forward(x, edge_index) -> logits`.
        settings: of a system, instead of its defaults cut to a small size.
        exceptions: name of a check -> why the model need not pass it; beside those a system lists itself.
        only: names of the checks to run (with those they need); all by default.
        seed: of every training.
        on_fail: `raise` a `CheckFailed` with all failures at the end, or only `report` them in the list.

    Returns:
        (name, status, reason) of each check. A check is skipped if one that it needs failed, or if it failed and is listed
        as an exception.

    Example:
        >>> from torch_geometric.nn import GraphSAGE
        >>> from spam_gnn.evaluation import check_node_classifier
        >>> def sage(shape, seed):
        ...     return GraphSAGE(shape.num_features, 16, 2, shape.num_classes, dropout=0.5)
        >>> results = check_node_classifier(sage)
        >>> {r.status for r in results}
        {'passed'}
    """
    subject = subject_of(model, settings)
    excused = {**subject.exceptions, **(exceptions or {})}
    known = tuple(check.name for check in CHECKS)
    for name in (*excused, *only):
        one_of(name, known, "check")
    wanted = _with_needs(only) if only else set(known)
    results = run_checks(subject, [check for check in CHECKS if check.name in wanted], excused, seed)
    if on_fail == "raise" and any(result.status == "failed" for result in results):
        raise CheckFailed(subject.name, results)
    return results


def run_checks(subject: Subject, checks: Sequence[Check], excused: Mapping[str, str], seed: int) -> list[CheckResult]:
    """Each check once, in order; trained models are shared between them."""
    lab, results = Lab(subject, seed), dict[str, CheckResult]()
    for check in checks:
        missing = [name for name in check.needs if name in results and results[name].status != "passed"]
        if missing:
            results[check.name] = CheckResult(check.name, "skipped", f"needs {missing[0]}")
        else:
            results[check.name] = _run(check, lab, excused)
    return list(results.values())


def _run(check: Check, lab: Lab, excused: Mapping[str, str]) -> CheckResult:
    try:
        check.run(lab)
    except AssertionError as complaint:
        reason = str(complaint)
    except Exception as error:  # whatever a stranger's model raises is a finding, not our crash
        reason = f"raised {type(error).__name__}: {error}"
    else:
        return CheckResult(check.name, "passed", "listed as an exception, but passes" if check.name in excused else "")
    if check.name in excused:
        return CheckResult(check.name, "skipped", f"exception: {excused[check.name]}")
    return CheckResult(check.name, "failed", " ".join(reason.split()))


def _with_needs(names: Sequence[str]) -> set[str]:
    by_name, wanted, open_ = {check.name: check for check in CHECKS}, set[str](), list(names)
    while open_:
        name = open_.pop()
        if name not in wanted:
            wanted.add(name)
            open_ += by_name[name].needs
    return wanted
