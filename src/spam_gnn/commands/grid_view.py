"""What is seen of a running grid: a live table on a terminal, otherwise one line per finished run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from spam_gnn.commands.console import ERR
from spam_gnn.experiments.progress import GridState

_ROWS = 24  # models shown at once; finished ones make room


def duration(seconds: float | None) -> str:
    """A time as a person says it."""
    if seconds is None:
        return "unknown"
    minutes, hours = seconds / 60, seconds / 3600
    return f"{seconds:.0f} s" if seconds < 90 else f"{minutes:.0f} min" if minutes < 90 else f"{hours:.1f} h"


@contextmanager
def grid_view(workers: int) -> Iterator[Callable[[GridState], None]]:
    """Yields what the grid calls as it goes."""
    if not ERR.is_terminal:
        yield lambda state: _print_lines(state, workers)
        return
    with Live(console=ERR, refresh_per_second=4, transient=True) as live:
        shown = 0.0

        def update(state: GridState) -> None:
            nonlocal shown
            for run in state.recent:
                if run.status == "failed":
                    live.console.print(f"failed: {run.spec.label}: {run.reason}", markup=False)
            state.recent.clear()
            if time.monotonic() - shown > 0.25:
                shown = time.monotonic()
                live.update(_screen(state, workers))

        yield update


def _print_lines(state: GridState, workers: int) -> None:
    for run in state.recent:
        left = duration(state.seconds_left(workers))
        reason = f": {run.reason}" if run.reason else ""
        counts = f"[{state.done + state.failed}/{len(state.specs)}, {state.failed} failed, {left} left]"
        ERR.print(f"{counts} {run.spec.label}: {run.status}, {run.seconds:.1f} s{reason}", markup=False, soft_wrap=True)
    state.recent.clear()


def _screen(state: GridState, workers: int) -> Group:
    head = Text(f"{state.done} done, {len(state.running)} running, {state.failed} failed, {state.left} left of "
                f"{len(state.specs)}; about {duration(state.seconds_left(workers))}")  # fmt: skip
    models = Table(box=None, show_header=False, padding=(0, 1))
    rows = sorted(state.by_model().items(), key=lambda item: item[1][0] == item[1][2])
    for model, (recorded, failed, planned) in rows[:_ROWS]:
        note = f"{failed} failed" if failed else ""
        models.add_row(model, ProgressBar(total=planned, completed=recorded, width=24), f"{recorded}/{planned}", note)
    now = [Text(f"  {spec.label}  {duration(seconds)}", style="dim") for spec, seconds in state.running]
    return Group(head, models, *now)
