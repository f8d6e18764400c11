"""A grid of runs on this machine: worker processes, retries, limits. All state is in the store: it can stop at any moment.

A grid that is started again does what is missing. A run whose process dies is tried again, three times in all, and then is a
failed record like any other failure. A full disk stops the grid, since every further run would be lost.
"""

from __future__ import annotations

import selectors
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence

from spam_gnn.errors import DiskError, SpamError
from spam_gnn.experiments.execute import Limits, failed
from spam_gnn.experiments.progress import GridState
from spam_gnn.experiments.spec import RunSpec
from spam_gnn.experiments.store import RunStore
from spam_gnn.experiments.worker import Answer
from spam_gnn.experiments.workers import WorkerProcess

ATTEMPTS = 3
RUNS_PER_WORKER = 100  # then a fresh process takes over, so that no leak of a library grows with the grid
TICK_SECONDS = 0.25
BUSY_SECONDS = 2.0  # before a run in other hands is asked for again

Watcher = Callable[[GridState], None]


class LocalGrid:
    """The runs of a list, in its order, on several worker processes."""

    def __init__(self, specs: Sequence[RunSpec], store: RunStore, workers: int, limits: Limits, watch: Watcher) -> None:
        self.store, self.limits, self.watch = store, limits, watch
        self.state = GridState(specs, store)
        self.queue = deque(self.state.missing)
        self.elsewhere: deque[tuple[float, RunSpec]] = deque()
        self.attempts: Counter[RunSpec] = Counter()
        self.wanted = workers
        self.workers: list[WorkerProcess] = []
        self.stillborn = 0

    def run(self) -> GridState:
        """Until every run of the list has a record."""
        try:
            while self.queue or self.elsewhere or any(worker.spec for worker in self.workers):
                self._staff()
                self._give()
                self._listen()
                self._end_the_overdue()
                self.state.running = [(w.spec, w.seconds) for w in self.workers if w.spec is not None]
                self.watch(self.state)
        finally:
            for worker in self.workers:
                worker.kill()
        return self.state

    def _staff(self) -> None:
        """As many workers as there is work for, started one after the other as runs are left."""
        while len(self.workers) < min(self.wanted, len(self.queue) + sum(w.spec is not None for w in self.workers)):
            self.workers.append(WorkerProcess(self.store.root, self.limits))

    def _give(self) -> None:
        now = time.monotonic()
        while self.elsewhere and self.elsewhere[0][0] <= now:
            self.queue.append(self.elsewhere.popleft()[1])
        for worker in [w for w in self.workers if w.idle]:
            if worker.served >= RUNS_PER_WORKER:
                self._dismiss(worker)
            elif (spec := self._next()) is not None:
                worker.give(spec)

    def _next(self) -> RunSpec | None:
        """The first run in line that nobody has recorded meanwhile."""
        while self.queue:
            spec = self.queue.popleft()
            record = self.store.read(spec)
            if record is None:
                return spec
            self.state.note(spec, record["status"], 0.0)
        return None

    def _listen(self) -> None:
        with selectors.DefaultSelector() as selector:
            for worker in self.workers:
                selector.register(worker, selectors.EVENT_READ, worker)
            if not self.workers:
                time.sleep(TICK_SECONDS)
            heard = [key.data for key, _ in selector.select(TICK_SECONDS)] if self.workers else []
        for worker in heard:
            answers, alive = worker.hear()
            for answer in answers:
                self._take(worker, answer)
            if not alive:
                self._bury(worker)

    def _take(self, worker: WorkerProcess, answer: Answer) -> None:
        spec, worker.spec = worker.spec, None
        assert spec is not None
        if answer.outcome == "disk":
            raise DiskError(answer.reason)
        if answer.outcome == "changed":
            raise SpamError(answer.reason)
        if answer.outcome == "busy":
            self.elsewhere.append((time.monotonic() + BUSY_SECONDS, spec))
        else:
            record = self.store.read(spec) if answer.outcome == "present" else None
            self.state.note(spec, record["status"] if record else answer.outcome, answer.seconds, answer.reason)

    def _bury(self, worker: WorkerProcess) -> None:
        """A worker died: its run goes back to the front of the line, or is given up."""
        how, spec = worker.epitaph(), worker.spec
        self._dismiss(worker)
        if spec is None:
            self.stillborn += not worker.ready
            if self.stillborn >= ATTEMPTS:
                raise SpamError(f"worker process: {how}, {ATTEMPTS} times before its first run; `spam-gnn doctor` may say why")
            return
        self.attempts[spec] += 1
        if self.attempts[spec] < ATTEMPTS:
            self.queue.appendleft(spec)
        else:
            self._give_up(spec, f"its process was {how}, {ATTEMPTS} times")

    def _end_the_overdue(self) -> None:
        for worker in list(self.workers):
            reason, spec = worker.overdue(), worker.spec
            if reason is not None and spec is not None:
                worker.kill()
                self._dismiss(worker)
                self._give_up(spec, reason)

    def _give_up(self, spec: RunSpec, reason: str) -> None:
        """A failed record, unless the process had written one before it died."""
        with self.store.claim(spec) as mine:
            if not mine:
                self.elsewhere.append((time.monotonic() + BUSY_SECONDS, spec))
                return
            record = self.store.read(spec)
            if record is None:
                record = failed(spec, reason)
                self.store.write(spec, record)
        self.state.note(spec, record["status"], 0.0, reason)

    def _dismiss(self, worker: WorkerProcess) -> None:
        worker.close()
        self.workers.remove(worker)


def run_grid(
    specs: Sequence[RunSpec],
    store: RunStore,
    *,
    workers: int = 1,
    limits: Limits | None = None,
    watch: Watcher = lambda state: None,  # noqa: ARG005
) -> GridState:
    """Do what is missing of a list of runs, in its order.

    Raises:
        DiskError: a record could not be written; everything recorded so far stays.
        KeyboardInterrupt: passed on after the workers were ended; the next call continues.
    """
    return LocalGrid(specs, store, workers, limits or Limits(), watch).run()
