"""Goals set for SpaM, held beside what was measured: reached or missed, first or behind, and what was tried where it is behind.

Floors and tries stand in `goals.json`. A try is a figure of docs/trials.md: test accuracy (validation accuracy), over the
splits that docs/trials.md states.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from spam_gnn.data import catalog
from spam_gnn.experiments.paper.comparison import OURS
from spam_gnn.experiments.paper.plan import title
from spam_gnn.experiments.statistics import Cell, gather, paired
from spam_gnn.experiments.store import Record
from spam_gnn.report.exhibit import ResultTable

FIRST, CLOSE, BEHIND = "first", "within one standard error of", "behind"
_NAMES = {
    "accuracy": "accuracy", "roc_auc": "ROC AUC", "sign_auroc": "AUROC of edges",
    "calibrated_ece": "ECE after a temperature (at most)",
}  # fmt: skip
_LOW_IS_GOOD = ("calibrated_ece",)


@dataclass(frozen=True)
class Goal:
    """The least that SpaM should reach on a dataset, in percent (the most, of an error; None: it should not be behind the best
    system), and (what, figure) of what was tried to get there."""

    dataset: str
    metric: str
    floor: float | None
    tried: tuple[tuple[str, str], ...]

    @property
    def sign(self) -> float:
        """By which a figure is multiplied so that more is better."""
        return -1.0 if self.metric in _LOW_IS_GOOD else 1.0


@dataclass(frozen=True)
class Standing:
    """SpaM's mean, the system with the best mean beside it (None where no other has one), and how they compare."""

    mean: float
    runs: int
    rival: str | None
    word: str

    @property
    def text(self) -> str:
        if self.rival is None:
            return "alone"
        return f"{FIRST}, before {title(self.rival)}" if self.word == FIRST else f"{self.word} {title(self.rival)}"


@cache
def goals() -> tuple[Goal, ...]:
    """All of `goals.json`."""
    stored = json.loads(files("spam_gnn.experiments.paper").joinpath("goals.json").read_text())
    return tuple(Goal(**{**goal, "tried": tuple((what, figure) for what, figure in goal["tried"])}) for goal in stored)


def standing(ours: Cell, others: Mapping[str, Cell], sign: float = 1.0) -> Standing:
    """SpaM beside the others, each on the splits that it and SpaM both have: behind one that leads by more than the standard
    error of the difference, else close to the one that leads most, else first.

    Args:
        sign: 1 where more is better, -1 where less is.
    """
    assert ours.mean is not None
    pairs = {model: pair for model, cell in others.items() if (pair := paired(ours.values, cell.values)) is not None}
    if not pairs:
        return Standing(ours.mean, len(ours.values), None, FIRST)
    leads = {model: -sign * pair.difference for model, pair in pairs.items()}
    clear = [model for model, lead in leads.items() if lead > (pairs[model].error or 0.0)]
    rival = max(clear or leads, key=lambda model: leads[model])
    word = BEHIND if clear else CLOSE if leads[rival] > 0.0 else FIRST
    return Standing(ours.mean, len(ours.values), rival, word)


def _standing_at(goal: Goal, records: Sequence[Record]) -> Standing | None:
    wanted = (goal.dataset, catalog.default_protocol(goal.dataset), None)  # a floor is for the standard splits
    of_dataset = [r for r in records if tuple(r["spec"][part] for part in ("dataset", "protocol", "perturbation")) == wanted]
    cells = {model: cell for (model, _), cell in gather(of_dataset, goal.metric).items()}
    ours = cells.pop(OURS, None)
    return None if ours is None or ours.mean is None else standing(ours, cells, goal.sign)


def _result(goal: Goal, at: Standing) -> tuple[bool, str]:
    """Whether a goal is missed, and how to say it."""
    if goal.floor is None:
        return at.word == BEHIND, "missed" if at.word == BEHIND else "reached"
    short = goal.sign * (goal.floor - at.mean)
    return short > 0.0, f"missed by {short:.{1 if short >= 0.05 else 3}f}" if short > 0.0 else "reached"  # never by 0.0


def goals_table(records: Sequence[Record], name: str) -> tuple[ResultTable, str]:
    """The goals that these records say something about, and in words what was tried on the rows that miss them."""
    rows, tried = [], []
    for goal in goals():
        at = _standing_at(goal, records)
        if at is None:
            continue
        missed, result = _result(goal, at)
        aim = "the best" if goal.floor is None else f"{goal.floor:g}"
        rows.append((goal.dataset, _NAMES[goal.metric], aim, f"{at.mean:.1f}", at.runs, result, at.text))
        if (missed or at.word == BEHIND) and goal.tried:
            listed = "; ".join(f"{what}: {figure}" for what, figure in goal.tried)
            tried.append(f"- {goal.dataset}, {_NAMES[goal.metric]} {at.mean:.1f}. {listed}.")
    header = ("dataset", "measure", "goal", "SpaM", "runs", "goal is", "SpaM is")
    return ResultTable(f"{name}-goals", header, tuple(rows)), "\n".join(tried)
