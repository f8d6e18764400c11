"""`--workers N`: the same command N times on this machine, watched: if one dies, all end, with one line that says so."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from spam_gnn.errors import WorkerLost
from spam_gnn.resources import MEETING_PLACE, allowed_threads

_GRACE = 5.0  # seconds that the others have to end by themselves


def run_workers(count: int, arguments: list[str], resumes: str) -> int:
    """Run `python -m spam_gnn <arguments>` in `count` processes and return the exit code.

    Raises:
        WorkerLost: a process was killed; `resumes` says how to go on.
    """
    with tempfile.TemporaryDirectory(prefix="spam-gnn-") as folder:
        workers = [_start(rank, count, arguments, Path(folder)) for rank in range(count)]
        with _passed_on(workers):
            rank = _first_to_fail(workers)
            if rank is None:
                return 0
            _end(workers)
        code = workers[rank].returncode
        if code < 0:
            name = signal.Signals(-code).name
            raise WorkerLost(f"worker {rank} of {count}: was killed ({name}), the others have ended; {resumes}")
        if rank > 0 and workers[0].returncode in (WorkerLost.exit_code, -signal.SIGKILL, -signal.SIGTERM):
            # worker 0 speaks for itself, the others are heard only when they were first
            sys.stderr.write((Path(folder) / f"{rank}.txt").read_text())
        return code


def _start(rank: int, count: int, arguments: list[str], folder: Path) -> subprocess.Popen[bytes]:
    environment = {
        **os.environ, "RANK": str(rank), "WORLD_SIZE": str(count), MEETING_PLACE: str(folder / "meeting"),
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS") or str(max(1, allowed_threads() // count)),
        "GLOO_SOCKET_IFNAME": os.environ.get("GLOO_SOCKET_IFNAME", "lo0" if sys.platform == "darwin" else "lo"),
        "TORCH_CPP_LOG_LEVEL": os.environ.get("TORCH_CPP_LOG_LEVEL", "ERROR"),  # remarks on speed that no user can act on
    }  # fmt: skip
    command = [sys.executable, "-m", "spam_gnn", *arguments]
    if rank == 0:
        return subprocess.Popen(command, env=environment, start_new_session=True)
    with (folder / f"{rank}.txt").open("wb") as said:
        return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=said, start_new_session=True)


def _first_to_fail(workers: list[subprocess.Popen[bytes]]) -> int | None:
    """Wait for all; the number of the first that did not end well, a killed one before those that only missed it."""
    while True:
        codes = [worker.poll() for worker in workers]
        if any(codes):
            codes = _settled(workers)
            failed = [rank for rank, code in enumerate(codes) if code]
            return min(failed, key=lambda rank: _only_missed(codes[rank] or 0))
        if all(code == 0 for code in codes):
            return None
        time.sleep(0.05)


def _settled(workers: list[subprocess.Popen[bytes]]) -> list[int | None]:
    """Exit codes once there is a cause among them: who ended first and those that missed it may be seen in either order, and on
    a busy machine one that was told to stop can take longer to end than those that notice."""
    limit = time.monotonic() + _GRACE
    time.sleep(0.5)
    while True:
        codes = [worker.poll() for worker in workers]
        if any(code and not _only_missed(code) for code in codes) or None not in codes or time.monotonic() > limit:
            return codes
        time.sleep(0.05)


def _only_missed(code: int) -> bool:
    """Whether a process may have ended because another did: it said so, or its threads could not be taken down any more."""
    return code in (WorkerLost.exit_code, -signal.SIGABRT)


def _end(workers: list[subprocess.Popen[bytes]]) -> None:
    """Those that notice by themselves may say so; the rest is made to end."""
    limit = time.monotonic() + _GRACE
    while time.monotonic() < limit and any(worker.poll() is None for worker in workers):
        time.sleep(0.05)
    for worker in workers:
        if worker.poll() is None:
            worker.kill()
        worker.wait()


@contextmanager
def _passed_on(workers: list[subprocess.Popen[bytes]]) -> Iterator[None]:
    """A polite stop of this process is one of the workers, which save and end. They have a session of their own, so that the
    terminal's Ctrl-C does not reach them as well: a second one would not wait for the epoch's end."""

    def hand_on(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        for worker in workers:
            if worker.poll() is None:
                worker.send_signal(number)

    before = {number: signal.signal(number, hand_on) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
