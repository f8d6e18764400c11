"""`WorkerProcess`: one worker as the grid sees it: give it a run, hear its answer, know when it died, end it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

import spam_gnn
from spam_gnn.experiments.execute import Limits
from spam_gnn.experiments.spec import RunSpec
from spam_gnn.experiments.worker import Answer, request

_THREADS = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
GRACE_SECONDS = 10.0  # between the limit a run watches itself and the one that ends its process


class WorkerProcess:
    """A subprocess with one thread, in a session of its own so that Ctrl-C reaches only the grid."""

    def __init__(self, store: Path, limits: Limits) -> None:
        self.limits = limits
        self.spec: RunSpec | None = None
        self.ready = False
        self.served = 0
        self._begun = 0.0
        self._heard = b""
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the worker
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "spam_gnn.experiments.worker", str(store), str(os.getpid())],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, env=_environment(), start_new_session=True,
        )  # fmt: skip
        assert self.process.stdout is not None
        os.set_blocking(self.process.stdout.fileno(), False)

    @property
    def idle(self) -> bool:
        return self.ready and self.spec is None

    @property
    def seconds(self) -> float:
        """How long the current run has taken."""
        return 0.0 if self.spec is None else time.monotonic() - self._begun

    def fileno(self) -> int:
        """Makes the worker selectable."""
        assert self.process.stdout is not None
        return self.process.stdout.fileno()

    def give(self, spec: RunSpec) -> None:
        """Start a run; a worker that is gone meanwhile is found out by :meth:`hear`."""
        assert self.process.stdin is not None
        self.spec, self._begun, self.served = spec, time.monotonic(), self.served + 1
        try:
            self.process.stdin.write(request(spec, self.limits).encode())
            self.process.stdin.flush()
        except OSError:
            return

    def hear(self) -> tuple[list[Answer], bool]:
        """Answers since the last call, and whether the worker is still there."""
        assert self.process.stdout is not None
        try:
            while piece := os.read(self.fileno(), 1 << 16):
                self._heard += piece
            alive = False  # end of file
        except BlockingIOError:
            alive = True
        *lines, self._heard = self._heard.split(b"\n")
        answers = [Answer(**json.loads(line)) for line in lines]
        self.ready = self.ready or any(answer.outcome == "ready" for answer in answers)
        return [answer for answer in answers if answer.outcome != "ready"], alive

    def overdue(self) -> str | None:
        """Why this worker must be ended, where its own guard did not act (it looks once per epoch)."""
        if self.spec is None:
            return None
        try:
            held = psutil.Process(self.process.pid).memory_info().rss / 2**20
        except psutil.Error:
            return None
        late = max(self.seconds - GRACE_SECONDS - 0.1 * self.seconds, 0.0)
        return self.limits.broken(late, held)

    def kill(self) -> None:
        """End at once, and wait for the end."""
        self.process.kill()
        self.close()

    def close(self) -> None:
        """Let an idle worker go."""
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:
                    continue
        self._log.close()
        self.process.wait()

    def epitaph(self) -> str:
        """How the process ended and its last words; to be asked before :meth:`close`."""
        code = self.process.wait()
        how = f"killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        self._log.seek(0, os.SEEK_END)
        self._log.seek(max(self._log.tell() - 2000, 0))
        lines = self._log.read().decode(errors="replace").strip().splitlines()
        return f"{how}: {lines[-1]}" if lines and code > 0 else how


def _environment() -> dict[str, str]:
    """One thread each, and the package that runs here, wherever it was found."""
    here = str(Path(spam_gnn.__file__).resolve().parents[1])
    found = os.pathsep.join(part for part in (here, os.environ.get("PYTHONPATH", "")) if part)
    return {**os.environ, **dict.fromkeys(_THREADS, "1"), "PYTHONPATH": found}
