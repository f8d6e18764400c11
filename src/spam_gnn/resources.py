"""Threads and memory: what this machine offers and how much of it a run takes."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import resource
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:  # memory is looked at before torch is loaded
    from spam_gnn.graph import Graph

MEETING_PLACE = "SPAM_GNN_MEETING_PLACE"  # names the file through which the workers of `--workers` find each other
SMALL = 20_000_000  # multiply-adds per pass under which one thread is fastest
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # names of two settings in glibc's malloc.h


def use_threads(graph: Graph, width: int, samples: int) -> int:
    """One thread for small graphs, all allowed cores for large ones; returns the number set."""
    import torch

    work = (graph.num_edges * samples + graph.num_nodes * 8) * width
    count = 1 if work < SMALL else allowed_threads()
    torch.set_num_threads(count)
    return count


def allowed_threads() -> int:
    """Physical cores this process may use; OMP_NUM_THREADS, which the workers of a sweep set to 1, is the upper limit."""
    cores = psutil.cpu_count(logical=False) or 1
    if hasattr(os, "sched_getaffinity"):
        cores = min(cores, len(os.sched_getaffinity(0)))
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return max(1, min(cores, int(limit) if limit.isdigit() and int(limit) > 0 else cores))


def peak_memory_mb() -> float:
    """The most resident memory this process has held, in MiB.

    Linux counts it in VmHWM; ru_maxrss there starts from what the parent process held, which is not this one's doing.
    """
    status = Path("/proc/self/status")
    if status.is_file():
        found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
        if found is not None:
            return int(found.group(1)) / 1024.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024.0 * 1024.0 if sys.platform == "darwin" else 1024.0)


@dataclass(frozen=True)
class MemoryLimit:
    """How many bytes a run may take from now on, and what sets that bound."""

    bytes: float
    what: str


def memory_limit() -> MemoryLimit:
    """The least of: free memory, what the container (cgroup 1 or 2) leaves, and what RLIMIT_DATA and RLIMIT_AS leave."""
    limits = [MemoryLimit(float(psutil.virtual_memory().available), "free memory")]
    limits += [MemoryLimit(left, "the container's limit") for left in _left_in_cgroups()]
    status = Path("/proc/self/status")
    used = dict(re.findall(r"(VmData|VmSize):\s+(\d+) kB", status.read_text())) if status.is_file() else {}
    for kind, name, what in ((resource.RLIMIT_DATA, "VmData", "RLIMIT_DATA"), (resource.RLIMIT_AS, "VmSize", "RLIMIT_AS")):
        soft = resource.getrlimit(kind)[0]
        if soft != resource.RLIM_INFINITY:
            limits.append(MemoryLimit(max(0.0, soft - 1024.0 * int(used.get(name, 0))), what))
    return min(limits, key=lambda limit: limit.bytes)


def _left_in_cgroups() -> Iterator[float]:
    """Limit minus use of every control group this process is in; pages of files are given back, so they do not count."""
    listing = Path("/proc/self/cgroup")
    for line in listing.read_text().splitlines() if listing.is_file() else ():
        _, controllers, place = line.split(":", 2)
        if controllers == "":
            base, names = Path("/sys/fs/cgroup"), ("memory.max", "memory.current", "file ")
        elif "memory" in controllers.split(","):
            base, names = Path("/sys/fs/cgroup/memory"), ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_cache ")
        else:
            continue
        for folder in {base, base / place.lstrip("/")}:
            with contextlib.suppress(OSError, ValueError):  # unlimited groups say "max", and some are not visible from inside
                limit, used = (int((folder / name).read_text()) for name in names[:2])
                found = re.search(rf"^{names[2]}(\d+)", (folder / "memory.stat").read_text(), re.MULTILINE)
                yield float(limit - used + (int(found.group(1)) if found else 0))


def available_memory_mb() -> float:
    """Memory in MiB that a run may take, see :func:`memory_limit`."""
    return memory_limit().bytes / 2**20


def return_large_blocks() -> None:
    """Have blocks of 16 MiB and more, most of them, given back to the system when they are free, if the allocator is glibc's.

    By itself it comes to keep blocks of up to 32 MiB for later, and no two batches have the same sizes: with 300 classes, what
    fitted nothing any more was a fifth of the peak. A graph that is taken whole asks for the same sizes again and again.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, 16 << 20)
        mallopt(_TRIM_THRESHOLD, 64 << 20)


def forget_peak_memory() -> None:
    """Start the peak of :func:`peak_memory_mb` anew, where the system can: a process that does many runs, run by run."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
