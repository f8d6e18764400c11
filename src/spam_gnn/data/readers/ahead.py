"""Work on the next blocks of a file while the last one is used. pandas and NumPy leave the interpreter free meanwhile."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
_THREADS = 2
_WAITING = 2  # blocks in memory beyond the one in use: enough to keep both threads busy


def in_order(jobs: Iterator[Callable[[], T]]) -> Iterator[T]:
    """The results of the jobs, in their order. A job, or the search for the next one, that fails is heard of in its turn.

    So the first defect of a file is the one that is told, as if everything were done one after another.
    """
    waiting: deque[Future[T]] = deque()
    with ThreadPoolExecutor(_THREADS) as pool:
        try:
            for job in _with_failure_last(jobs):
                waiting.append(pool.submit(job))
                if len(waiting) > _WAITING:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:  # whoever stops listening does not wait for work that has not begun
                future.cancel()


def _with_failure_last(jobs: Iterator[Callable[[], T]]) -> Iterator[Callable[[], T]]:
    try:
        yield from jobs
    except Exception as error:
        failure = error

        def fail() -> T:
            raise failure

        yield fail
