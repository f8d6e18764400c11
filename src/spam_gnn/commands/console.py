"""What the commands print: a progress bar with the numbers that matter, and plain tables."""

from __future__ import annotations

import signal
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table

from spam_gnn.errors import Interrupted

if TYPE_CHECKING:
    from spam_gnn.training import TrainState

OUT = Console(highlight=False, soft_wrap=True)
ERR = Console(stderr=True, highlight=False)


class EpochBar:
    """One line per training: epoch, loss, validation accuracy, time left. Silent where standard error is no terminal."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress, self._task = progress, task

    def __call__(self, state: TrainState) -> None:
        row = state.history[-1]
        shown = {"loss": "loss", "class": "class", "val_accuracy": "val"}  # what fits a terminal of 80 columns
        parts = " ".join(f"{short} {row[name]:.3f}" for name, short in shown.items() if name in row)
        self._progress.update(self._task, completed=state.epoch, numbers=parts)


@contextmanager
def epoch_bar(what: str, epochs: int) -> Iterator[EpochBar]:
    """A progress bar for one training."""
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=12), TextColumn("{task.completed}/{task.total}"),
               TextColumn("{task.fields[numbers]}"), TimeRemainingColumn())  # fmt: skip
    with Progress(*columns, console=ERR, transient=True, disable=not ERR.is_terminal) as progress:
        yield EpochBar(progress, progress.add_task(what, total=epochs, numbers=""))


@contextmanager
def polite_stop() -> Iterator[Callable[[], int | None]]:
    """Ctrl-C and a polite kill wait for the end of the epoch, so that the run can be saved; a second one does not wait.

    Yields a function that tells whether to stop, and with which exit code (128 + the signal's number).
    """
    asked: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        if asked:
            raise Interrupted("stopped at once; the last checkpoint can be resumed", 128 + number)
        asked.append(128 + number)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: asked[0] if asked else None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table on standard output; first column left, the others right."""
    view = Table(title=title, title_justify="left", header_style="bold")
    for place, name in enumerate(header):
        view.add_column(name, justify="left" if place == 0 else "right", no_wrap=place == 0)
    for row in rows:
        view.add_row(*row)
    OUT.print(view)


def mean_and_spread(values: Sequence[float]) -> str:
    """Mean and sample standard deviation (ddof 1), in percent."""
    if not values:
        return "–"
    mean = 100.0 * statistics.fmean(values)
    return f"{mean:.2f}" if len(values) == 1 else f"{mean:.2f} ± {100.0 * statistics.stdev(values):.2f}"
