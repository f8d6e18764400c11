"""Threads and memory: what this machine offers and how much of it a run takes."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import sys
from pathlib import Path

import psutil
import torch

from spam_gnn.graph import Graph

SMALL = 20_000_000  # multiply-adds per pass under which one thread is fastest


def use_threads(graph: Graph, width: int, samples: int) -> int:
    """One thread for small graphs, all allowed cores for large ones; returns the number set."""
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


def available_memory_mb() -> float:
    """Free memory in MiB, no more than the container's limit."""
    free = float(psutil.virtual_memory().available)
    limit = Path("/sys/fs/cgroup/memory.max")
    if limit.is_file():
        text = limit.read_text().strip()
        if text.isdigit():
            free = min(free, float(text))
    return free / 2**20


def forget_peak_memory() -> None:
    """Start the peak of :func:`peak_memory_mb` anew, where the system can: a process that does many runs, run by run."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
