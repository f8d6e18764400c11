"""numba as this package uses it: cached on disk, without the interpreter's lock, inner products free to use vector units."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray
from torch import Tensor

SERIAL_BELOW = 2_000_000  # multiply-adds under which starting a thread costs more than it saves

# A part of a loop allocates nothing and returns no array, nor a tuple of arrays, so it need not count who refers to its arrays:
# by atomic instructions, for every array of every call, that took a fifth of a layer's time.
_PART: dict[str, Any] = {"nogil": True, "error_model": "numpy", "forceinline": True, "_nrt": False}


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """A part of other compiled loops: it leaves no call behind, whose dozens of arguments would cost more than a short row."""
    return njit(fastmath={"reassoc", "contract"}, **_PART)(function)


def elementwise(function: Callable[..., Any]) -> Callable[..., Any]:
    """As `inlined`, but as written: free to reorder, a product with a reciprocal would become a division for each entry."""
    return njit(fastmath={"contract"}, **_PART)(function)


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile on first call; where no cache folder can be written the compilation is repeated in every process."""
    # `_nrt` said outright: it would be taken from the part that happens to call this function first
    options: dict[str, Any] = {"nogil": True, "fastmath": {"reassoc", "contract"}, "error_model": "numpy", "_nrt": True}
    try:
        made = njit(cache=True, **options)(function)
    except RuntimeError:  # neither NUMBA_CACHE_DIR, the package folder nor the user's cache folder can be written
        return njit(**options)(function)
    index: Any = getattr(getattr(made, "_cache", None), "_cache_file", None)
    if hasattr(index, "_source_stamp"):  # numba looks at this function's own file only, not at those of what it calls
        index._source_stamp = (index._source_stamp, _state_of_the_loops())
    return made


@cache
def _state_of_the_loops() -> tuple[tuple[str, int, int], ...]:
    """Name, size and time of change of every file beside this one: what compiled code may be made of."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return tuple((file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files)


def array(tensor: Tensor) -> NDArray[Any]:
    """A contiguous numpy view of a CPU tensor, without its gradient."""
    return (tensor.detach() if tensor.requires_grad else tensor).contiguous().numpy()


def over_rows(
    pointer: NDArray[np.int64], size: int, work: Callable[[int, int, int], None], first: int = 0, last: int | None = None
) -> int:
    """Call work(thread, first row, last row) on parts of equal cost, one per torch thread; returns how many parts.

    Args:
        pointer: CSR row pointer; the cost of a row is its messages plus a few for the row itself.
        size: multiply-adds of the whole call; small ones stay on the calling thread.
        first, last: the rows to do, all unless given.

    The interpreter's lock is released inside compiled code, so plain threads run in parallel; numba's own pools
    abort after a fork.
    """
    last = pointer.size - 1 if last is None else last
    rows = last - first
    threads = threads_for(size, rows)
    if threads == 1:
        work(0, first, last)
        return 1
    cost = pointer[first : last + 1] + 4 * np.arange(rows + 1)
    cuts = np.searchsorted(cost, cost[0] + (cost[-1] - cost[0]) * np.arange(1, threads) / threads)
    _at_once([first, *(first + cuts).tolist(), last], work)
    return threads


def over_range(count: int, size: int, work: Callable[[int, int, int], None]) -> int:
    """As :func:`over_rows`, for `count` things that cost the same."""
    threads = threads_for(size, count)
    _at_once([count * t // threads for t in range(threads + 1)], work)
    return threads


def threads_for(size: int, parts: int) -> int:
    """How many threads so many multiply-adds, which can be cut into so many parts, are worth."""
    return 1 if size < SERIAL_BELOW else max(1, min(torch.get_num_threads(), parts))


def _at_once(bounds: list[int], work: Callable[[int, int, int], None]) -> None:
    """work(t, bounds[t], bounds[t + 1]) for all t, the first on the calling thread."""
    threads = len(bounds) - 1
    if threads == 1:
        work(0, bounds[0], bounds[1])
        return
    pool = _pool(threads - 1, os.getpid())
    jobs = [pool.submit(_alone, work, t, bounds[t], bounds[t + 1]) for t in range(1, threads)]
    try:
        _alone(work, 0, bounds[0], bounds[1])
    finally:
        wait(jobs)  # nobody writes into a caller's arrays after it was told of a failure
    for job in jobs:
        job.result()


def _alone(work: Callable[[int, int, int], None], thread: int, first: int, last: int) -> None:
    """work(thread, first, last) with torch on this thread only: its own threads would want the cores that are in use here, and
    spin for a while after each of many small products. torch's number of threads belongs to the thread that sets it; so does
    whether gradients are recorded, which nobody who calls loops wants."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.no_grad():
            work(thread, first, last)
    finally:
        torch.set_num_threads(before)


@cache
def _pool(threads: int, process: int) -> ThreadPoolExecutor:  # noqa: ARG001 - threads do not survive a fork: a child has its own
    """Threads that stay: starting them for every block of rows took as long as the block."""
    return ThreadPoolExecutor(threads, "spam-gnn-rows")
