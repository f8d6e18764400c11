"""The same grid on several machines, through dask.distributed (the extra `distributed`).

Workers only compute: records come back to this process, which holds the claims and writes the store, so that machines need the
package and the data but no common folder. Dask starts the run of a lost worker again elsewhere and gives up after several
losses, which is then a failed record.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import torch

from spam_gnn.errors import BadInput, DiskError, SpamError
from spam_gnn.experiments.execute import Limits, execute, failed
from spam_gnn.experiments.grid import BUSY_SECONDS, Watcher
from spam_gnn.experiments.progress import GridState
from spam_gnn.experiments.spec import RunSpec
from spam_gnn.experiments.store import Record, RunStore
from spam_gnn.experiments.worker import read_request, request

_LOOK_SECONDS = 0.1


def remote_run(line: str) -> Record:
    """What a worker does, on whatever machine: one run, one thread, its record."""
    torch.set_num_threads(1)
    spec, limits = read_request(line)
    return execute(spec, limits)


def connect(address: str) -> Any:
    """A client of the scheduler at an address such as tcp://machine:8786."""
    try:
        from distributed import Client
    except ImportError:
        raise BadInput("--cluster: the package distributed is not installed; pip install 'spam-gnn[distributed]'") from None
    try:
        return Client(address, timeout="10s", set_as_default=False)
    except (OSError, ValueError) as error:
        raise BadInput(f"--cluster {address}: no scheduler answers ({error}); start one with `dask scheduler`") from None


class ClusterGrid:
    """The runs of a list on a cluster; as many under way as its threads, and as many again waiting there."""

    def __init__(self, specs: Sequence[RunSpec], store: RunStore, client: Any, limits: Limits, watch: Watcher) -> None:
        self.store, self.client, self.limits, self.watch = store, client, limits, watch
        self.state = GridState(specs, store)
        self.queue = deque(self.state.missing)
        self.elsewhere: deque[tuple[float, RunSpec]] = deque()
        self.pending: dict[Any, tuple[RunSpec, ExitStack, float]] = {}

    def run(self) -> GridState:
        """Until every run of the list has a record."""
        try:
            while self.queue or self.elsewhere or self.pending:
                self._submit()
                self._collect()
                now = time.monotonic()
                self.state.running = [(spec, now - begun) for spec, _, begun in self.pending.values()]
                self.watch(self.state)
        finally:
            for future, (_, claim, _) in self.pending.items():
                future.cancel()
                claim.close()
        return self.state

    def _submit(self) -> None:
        while self.elsewhere and self.elsewhere[0][0] <= time.monotonic():
            self.queue.append(self.elsewhere.popleft()[1])
        room = 2 * max(sum(self.client.nthreads().values()), 1)
        while self.queue and len(self.pending) < room:
            spec, claim = self.queue.popleft(), ExitStack()
            if not claim.enter_context(self.store.claim(spec)):
                self.elsewhere.append((time.monotonic() + BUSY_SECONDS, spec))
                continue
            record = self.store.read(spec)
            if record is not None:
                claim.close()
                self.state.note(spec, record["status"], 0.0)
                continue
            future = self.client.submit(remote_run, request(spec, self.limits), pure=False)
            self.pending[future] = (spec, claim, time.monotonic())

    def _collect(self) -> None:
        done = [future for future in self.pending if future.done()]  # known here already, asking costs nothing
        if not done:
            time.sleep(_LOOK_SECONDS)
        for future in done:
            spec, claim, begun = self.pending.pop(future)
            with claim:
                record = self._result(future, spec)
                self.store.write(spec, record)
            self.state.note(spec, record["status"], time.monotonic() - begun, record.get("reason", ""))

    def _result(self, future: Any, spec: RunSpec) -> Record:
        from distributed import KilledWorker

        try:
            return future.result()
        except KilledWorker as error:
            return failed(spec, f"its workers were lost, {error.allowed_failures + 1} times")
        except DiskError as error:
            raise DiskError(f"a worker of the cluster: {error}") from None
        except SpamError as error:
            raise SpamError(f"a worker of the cluster: {error}") from None


def run_on_cluster(
    specs: Sequence[RunSpec], store: RunStore, client: Any, *, limits: Limits | None = None, watch: Watcher = lambda state: None  # noqa: ARG005
) -> GridState:  # fmt: skip
    """Do what is missing of a list of runs on a cluster, in its order. The interface of `run_grid` otherwise."""
    return ClusterGrid(specs, store, client, limits or Limits(), watch).run()
