"""`table-ablation`: the default preset without each of its parts, and the `paper` preset: what a part is worth, and where.

The parts are taken from the default as it was before edges were judged by beliefs alone and trusting networks of small graphs
had two starts; the first changes say what these are worth.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from spam_gnn.config import SpaMConfig
from spam_gnn.experiments.paper.labelled import Plan, Spread, accuracy, draws_of, grouped, specs_of
from spam_gnn.experiments.paper.plan import BUDGET_SENTENCE, EQUAL_BUDGET
from spam_gnn.experiments.provenance import measured_with
from spam_gnn.experiments.spec import RunSpec
from spam_gnn.experiments.statistics import holm, paired
from spam_gnn.experiments.store import Record, RunStore
from spam_gnn.experiments.study import Study, StudyResult
from spam_gnn.report.exhibit import ResultTable

NAME, WHOLE = "table-ablation", "default, verdict=evidence, copies=1"
_VERDICT, _STARTS = "edges judged by beliefs alone", "the same, and two starts of trusting networks (today's default)"
_OFTEN, _TWICE = 6, 2
_SMALL = ("texas", "cornell", "wisconsin", "chameleon-filtered")  # six draws: runs of seconds, and few test nodes in each
_ONCE = ("citeseer", "cora-metattack:0.25", "chameleon")  # one draw: a run takes a minute and more
_FEW, _WHOLE_GRAPH = "no rule for few features", "one step an epoch, on the whole graph"  # the same where features are many
_ROOTS = "roots of singular values in positions, always"
_UNTOLD, _ROWS = "deep network not told labels", "counts always scaled row by row"
_ELSEWHERE = (_FEW, _WHOLE_GRAPH, _UNTOLD, _ROWS)  # changes that concern only datasets of `_SOME`
_TINY = ("texas", "cornell", "wisconsin")  # fewer nodes than `few_nodes`
_PLACED = "chameleon-filtered"  # positions join, and labels do not always choose roots
DATASETS = (
    "texas", "cornell", "wisconsin", "chameleon-filtered", "cora", "citeseer", "cora-metattack:0.25", "minesweeper",
    "chameleon", "squirrel-filtered", "actor",
)  # fmt: skip
_BASE = {"verdict": "evidence", "copies": 1}  # what makes today's default that of the day on which these runs were made
CHANGES: dict[str, dict[str, Any]] = {
    WHOLE: {},
    _VERDICT: {"verdict": "beliefs"},
    _STARTS: {"verdict": "beliefs", "copies": 2},
    "the judging network alone": {"trusted": ()},
    "no network without messages": {"trusted": (2,)},
    "no trusting network": {"trusted": (0,)},
    "a further trusting network, of one layer": {"trusted": (0, 1, 2)},
    "no agreement of passes": {"agreement_weight": 0.0},
    _FEW: {"few_features": 0},
    _WHOLE_GRAPH: {"cells": 1},
    _UNTOLD: {"deep_told": False},
    _ROWS: {"scaling": "row"},
    "no posterior": {"posterior": "none"},
    "likeliest signs instead of samples": {"signs": "hard"},
    "expected signs instead of samples": {"signs": "expected"},
    "no sign": {"use_sign": False},
    "no belief propagation": {"belief_rounds": 0},
    "beliefs not among the inputs": {"belief_input": False},
    "no lesson from propagation": {"lesson_weight": 0.0},
    "compatibility learned from labels alone": {"compatibility_weight": 0.0},
    "all of the class gradient into the posterior": {"posterior_gradient": 1.0},
    "all training labels as context": {"context": 1.0},
    "noise rate not learned": {"learn_noise": False},
    "no position": {"position": "off"},
    _ROOTS: {"position_power": 0.5},
    "no self term": {"self_term": False},
    "one weight for both signs": {"separate_signs": False},
    "sums instead of means": {"aggregate": "plain"},
    "no encoder": {"encoder": False},
    "sparse coding, three steps": {"coder": "unrolled"},
    "amortised coding": {"coder": "amortised"},
    "in-edges alone": {"directions": "in"},
    "in- and out-edges apart": {"directions": "both"},
    "paper preset": asdict(SpaMConfig.preset("paper")),
}
# runs of minutes: the changes that concern these datasets
_SOME = {
    "minesweeper": (WHOLE, _VERDICT, "the judging network alone", _FEW, _WHOLE_GRAPH, _UNTOLD, "no posterior", "paper preset"),
    "chameleon": (WHOLE, _VERDICT, "the judging network alone", "no network without messages", "no trusting network",
                  "no posterior", "no belief propagation", "no position", "in-edges alone", "in- and out-edges apart",
                  "paper preset"),
    "squirrel-filtered": (WHOLE, _VERDICT, "the judging network alone", "no position", _ROOTS, "paper preset"),
    "actor": (WHOLE, _VERDICT, "the judging network alone", "no network without messages", _ROWS, "no posterior",
              "paper preset"),
}  # fmt: skip


def concerns(change: str, dataset: str) -> bool:
    """Whether a change is tried on a dataset."""
    only = {_ROOTS: (_PLACED,), _STARTS: _TINY}
    everywhere = [name for name in CHANGES if name not in _ELSEWHERE and dataset in only.get(name, (dataset,))]
    return change in _SOME.get(dataset, everywhere)


def plan(datasets: Sequence[str]) -> Plan:
    return [
        ((change, data), RunSpec.of(data, "spam", split=split, seed=seed, settings=_settings(change), train=EQUAL_BUDGET))
        for turn in range(_OFTEN) for data in datasets for split, seed in _draw(data, turn)
        for change in CHANGES if concerns(change, data)
    ]  # fmt: skip


def _settings(change: str) -> dict[str, Any]:
    """A change of the posterior leaves nothing else to be set."""
    return CHANGES[change] if "posterior" in CHANGES[change] else _BASE | CHANGES[change]


def _draw(dataset: str, turn: int) -> list[tuple[int, int]]:
    """Split and seed of one turn; none where a dataset has fewer."""
    count = _OFTEN if dataset in _SMALL else 1 if dataset in _ONCE else _TWICE
    return draws_of(dataset, count)[turn : turn + 1]


def specs(store: RunStore) -> list[RunSpec]:  # noqa: ARG001 - no run depends on another
    return specs_of(plan(DATASETS))


Gaps = Mapping[tuple[str, str], Spread]


def render(records: Sequence[Record]) -> StudyResult:
    groups = {label: {(r["spec"]["split"], r["spec"]["seed"]): accuracy(r) for r in rows}
              for label, rows in grouped(plan(DATASETS), records).items()}  # fmt: skip
    datasets = [data for data in DATASETS if (WHOLE, data) in groups]
    if not datasets:
        return StudyResult("No run has a result yet.\n", verdict="Nothing has been measured yet.")
    gaps: dict[tuple[str, str], Spread] = {}
    differences: dict[str, list[float]] = {change: [] for change in list(CHANGES)[1:]}
    for change in differences:
        for data in datasets:
            whole, other = groups[WHOLE, data], groups.get((change, data), {})
            both = [other[draw] - whole[draw] for draw in whole.keys() & other.keys()]
            differences[change] += both
            if both:
                gaps[change, data] = Spread.of(both)
    first = (WHOLE, None, *(f"{statistics.fmean(groups[WHOLE, data].values()):.1f} ({len(groups[WHOLE, data])})"
                            for data in datasets))  # fmt: skip
    rows = [(change, _mean(gaps, change, datasets), *(_gap(gaps.get((change, data))) for data in datasets))
            for change in list(CHANGES)[1:]]  # fmt: skip
    table = ResultTable(NAME, ("SpaM", "mean", *datasets), (first, *rows))
    note = (
        "Test accuracy of the default preset with `verdict=evidence` and `copies=1`, its defaults before, in percent (splits "
        "or seeds), and what each change to it adds or costs in points, mean ± standard error over the splits that both have; "
        f"the first two changes make it today's default. {BUDGET_SENTENCE} {_costs_nowhere(gaps)}"
    )
    text = "\n\n".join([note, table.markdown(), measured_with(records)]) + "\n"
    return StudyResult(text, (table,), (), _verdict(differences, len(datasets)))


def _costs_nowhere(gaps: Gaps) -> str:
    """Whether a part could be left out everywhere."""
    worst = {change: min(gap.mean for (name, _), gap in gaps.items() if name == change) for change, _ in gaps}
    free = [change for change, gap in worst.items() if gap >= 0.0]
    return f"Changes that cost nothing on any dataset: {', '.join(free) or 'none'}."


def _mean(gaps: Gaps, change: str, datasets: Sequence[str]) -> str | None:
    found = [gaps[change, data].mean for data in datasets if (change, data) in gaps]
    return f"{statistics.fmean(found):+.1f}" if found else None


def _gap(gap: Spread | None) -> str | None:
    if gap is None:
        return None
    return f"{gap.mean:+.1f}" + (f" ± {gap.std / gap.count**0.5:.1f}" if gap.count > 1 else "")


def _verdict(differences: Mapping[str, Sequence[float]], datasets: int) -> str:
    """Which parts are worth something over all datasets together: a few runs on each say little by themselves."""
    runs = {change: {(place, 0): gap for place, gap in enumerate(gaps)} for change, gaps in differences.items()}
    tested = {change: paired(gaps, dict.fromkeys(gaps, 0.0)) for change, gaps in runs.items()}
    found = {change: pair for change, pair in tested.items() if pair is not None}
    corrected = dict(zip(found, holm([pair.t_p for pair in found.values()]), strict=True))
    clear = {change: pair for change, pair in found.items() if (corrected[change] or 1.0) < 0.05}
    costly = [f"{change} ({pair.difference:+.1f})" for change, pair in clear.items() if pair.difference < 0.0]
    better = [f"{change} ({pair.difference:+.1f})" for change, pair in clear.items() if pair.difference > 0.0]
    open_ = [f"{change} ({pair.difference:+.1f})" for change, pair in found.items() if change not in clear]
    return (
        f"Over all runs on {datasets} datasets together (paired t-test, Holm's correction over {len(found)} changes, p below "
        f"0.05; mean points in brackets), changes that cost accuracy: {', '.join(costly) or 'none'}; that add to it: "
        f"{', '.join(better) or 'none'}; that cannot be told from the default: {', '.join(open_) or 'none'}."
    )


STUDY = Study(NAME, "What each part of SpaM is worth", specs, render)
