"""Parts of the scaling benchmark: random converted graphs, and a command run with its memory watched."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from spam_gnn.data.folder import write_converted
from spam_gnn.data.reading import Reading
from spam_gnn.data.splits import few_labels, random_split
from spam_gnn.files import write_json
from spam_gnn.graph import Graph
from table import commit, source_changed

ONLY_KEPT = "SPAM_GNN_SCALING_KEPT"  # set where nothing new is to be measured
_LIMITED = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_DATA, (int(sys.argv[1]),) * 2)
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""


def working_place() -> Path:
    """The folder of large graphs and of what has been measured so far."""
    place = Path(os.environ.get("SPAM_GNN_SCALING", tempfile.gettempdir())) / "spam-gnn-scaling"
    place.mkdir(parents=True, exist_ok=True)
    return place


class NotMeasured(Exception):
    """Nothing is kept of a measurement, and only what is kept was asked for (`scaling.py --kept`)."""


def kept(path: Path, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What was measured before, or is now, with the commit it was measured at: a long part may be stopped at any moment."""
    if not path.exists():
        if ONLY_KEPT in os.environ:
            raise NotMeasured(path.stem)
        found = make() | {"commit": commit() + (" changed" if source_changed() else "")}
        write_json(path, found)
    return json.loads(path.read_text())


@dataclass(frozen=True)
class Watched:
    """How a command ended: exit code, seconds, peak of anonymous and of all resident memory (MiB), what it said."""

    code: int
    seconds: float
    anonymous: float
    resident: float
    out: str
    error: str


def watched(
    arguments: list[str], data_limit: int | None = None, threads: int = 1, program: Sequence[str] = ("-m", "spam_gnn")
) -> Watched:
    """Run `python -m spam_gnn ...`, or another program; its memory is looked at every 20 ms, RLIMIT_DATA is `data_limit`."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "NUMBA_NUM_THREADS": str(threads)}
    begun = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-c", _LIMITED, str(data_limit or -1), *program, *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, env=environment,
    )  # fmt: skip
    peak = {"RssAnon": 0.0, "VmHWM": 0.0}
    status = Path(f"/proc/{process.pid}/status")
    while process.poll() is None:
        try:
            text = status.read_text()
        except OSError:
            break
        for name in peak:
            found = re.search(rf"{name}:\s+(\d+) kB", text)
            if found:
                peak[name] = max(peak[name], int(found.group(1)) / 1024)
        time.sleep(0.02)
    out, error = process.communicate()
    return Watched(process.returncode, time.monotonic() - begun, peak["RssAnon"], peak["VmHWM"], out, error)


def random_folder(path: Path, nodes: int, degree: float, features: int, classes: int, labels: int = 0) -> Path:
    """A converted random graph with dense features that tell the classes apart, written once; split 48/32/20, or with `labels`
    of each class to learn from."""
    if path.exists():
        return path
    generator = torch.Generator().manual_seed(0)
    y = torch.randint(classes, (nodes,), generator=generator)
    x = torch.randn(nodes, features, generator=generator)
    x[:, :classes] += torch.nn.functional.one_hot(y, classes)[:, :features]
    edges = torch.randint(nodes, (2, int(nodes * degree / 2)), generator=generator)
    graph = Graph.build(x, edges, y, directed=False, num_classes=classes, name=path.name)
    split = few_labels(graph, 0, min(labels, nodes // (4 * classes)), labels) if labels else random_split(graph, 0)
    write_converted(Reading(split, ()), path)
    return path
