"""A worker process of a grid: `python -m spam_gnn.experiments.worker STORE` reads one run per line and answers one line each.

The worker itself holds the claim of its run and writes the record. It ends when its standard input does, and at once when the
process that started it is gone: a grid that is started again must not find the old one's workers on its cores.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from spam_gnn.errors import DiskError, SpamError
from spam_gnn.experiments.execute import Limits, execute
from spam_gnn.experiments.spec import RunSpec
from spam_gnn.experiments.store import RunStore

Outcome = Literal["ready", "ok", "failed", "present", "busy", "disk", "changed"]


class SourcesChanged(SpamError):
    """Planner and worker do not run the same code."""


@dataclass(frozen=True)
class Answer:
    """What became of a run: recorded (`ok`, `failed`), recorded before (`present`), in other hands (`busy`), or not recorded
    because the disk would not take it (`disk`) or because the sources changed under the grid (`changed`)."""

    outcome: Outcome
    reason: str = ""
    seconds: float = 0.0


def perform(store: RunStore, spec: RunSpec, limits: Limits) -> Answer:
    """Claim, execute, record; each run is recorded once, whoever else works on the store."""
    try:
        with store.claim(spec) as mine:
            if not mine:
                return Answer("busy")
            if store.read(spec) is not None:
                return Answer("present")
            begun = time.perf_counter()
            record = execute(spec, limits, store.attacks)
            store.write(spec, record)
            return Answer(record["status"], record.get("reason", ""), time.perf_counter() - begun)
    except DiskError as error:
        return Answer("disk", str(error))


def request(spec: RunSpec, limits: Limits) -> str:
    """The line that asks a worker for a run."""
    return json.dumps({"spec": spec.to_json(), "hash": spec.spec_hash, "limits": asdict(limits)}) + "\n"


def read_request(line: str) -> tuple[RunSpec, Limits]:
    """The inverse of :func:`request`. A spec that is read otherwise than its sender meant it was made by other sources."""
    asked: dict[str, Any] = json.loads(line)
    try:
        spec = RunSpec.from_json(asked["spec"])
    except (KeyError, TypeError, SpamError):
        spec = None
    if spec is None or spec.spec_hash != asked["hash"]:
        raise SourcesChanged("the sources differ from those that planned the grid; update them all and start it again")
    return spec, Limits(**asked["limits"])


def answer_line(store: RunStore, line: str) -> Answer:
    """Do what one line asks for."""
    try:
        return perform(store, *read_request(line))
    except SourcesChanged as error:
        return Answer("changed", str(error))


def _end_with_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def main() -> None:
    """Serve runs until standard input ends."""
    parent = int(sys.argv[2])
    threading.Thread(target=_end_with_parent, args=(parent,), daemon=True).start()
    torch.set_num_threads(1)
    # answers go through a copy of standard output; whatever a library prints goes to standard error
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    store = RunStore(Path(sys.argv[1]))
    answers.write(json.dumps(asdict(Answer("ready"))) + "\n")
    gc.freeze()  # what was imported is here to stay; collecting between runs need not look at it
    for line in sys.stdin:
        answers.write(json.dumps(asdict(answer_line(store, line))) + "\n")
        gc.collect()  # the graph of one run must not count as memory of the next


if __name__ == "__main__":
    main()
