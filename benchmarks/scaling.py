"""What training beyond one batch and one process costs and gives. Each part writes its figures into `benchmarks/scaling.json`
and the page `benchmarks/scaling.md` anew.

    python benchmarks/scaling.py patents     # surrogate:snap-patents at 1/8, 1/4, 1/2 and whole: an epoch, a K = 4 prediction
    python benchmarks/scaling.py accuracy    # sampled and clustered against whole-graph training, pubmed and cornell5
    python benchmarks/scaling.py processes   # two processes against one
    python benchmarks/scaling.py kills       # kill -9 of a worker at random moments
    python benchmarks/scaling.py limit       # 20 graphs under a limit of 4 GiB
    python benchmarks/scaling.py memory      # peaks that the coefficients of the memory plan are fitted to

Large graphs, and single measurements of the long parts, are kept in `$SPAM_GNN_SCALING` (a folder; the system's temporary one
by default): started again, a part goes on where it was stopped. With `--kept` nothing is measured: the page is made of what
there is.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import scaling_accuracy
import scaling_limits
import scaling_processes
import scaling_sizes
from scaling_parts import ONLY_KEPT, working_place
from table import machine, provenance

HERE = Path(__file__).parent
PARTS: dict[str, tuple[str, Callable[[Path], Iterable[dict[str, Any]]]]] = {
    "patents": ("Size: surrogate:snap-patents from a converted folder", scaling_sizes.measure),
    "accuracy": ("Accuracy of batches against the whole graph", scaling_accuracy.measure),
    "processes": ("Two processes against one", scaling_processes.throughput),
    "kills": ("kill -9 of a worker at random moments", scaling_processes.kills),
    "limit": ("Graphs under a limit of 4 GiB (RLIMIT_DATA)", scaling_limits.measure),
    "memory": ("Peaks that the memory plan is fitted to", scaling_limits.peaks),
}


def main() -> None:
    asked = [word for word in sys.argv[1:] if word != "--kept"] or list(PARTS)
    if "--kept" in sys.argv:
        os.environ[ONLY_KEPT] = "1"
    place = working_place()
    stored = HERE / "scaling.json"
    found: dict[str, Any] = json.loads(stored.read_text()) if stored.exists() else {}
    for name in asked:
        rows: list[dict[str, Any]] = []
        for row in PARTS[name][1](place):
            rows.append(row)
            found[name] = {"measured": _measured(row), "rows": rows}
            stored.write_text(json.dumps(found, indent=1) + "\n")
            (HERE / "scaling.md").write_text(page(found))


def _measured(row: dict[str, Any]) -> str:
    """Where and at which commit; rows that say that themselves may be of several."""
    return f"Each row was measured at its commit, {machine()}, beside other work." if "commit" in row else provenance()


def page(found: dict[str, Any]) -> str:
    """All parts measured so far, each with its command and machine."""
    lines = ["# Scaling, measured", "", "Made by `benchmarks/scaling.py`; what is missing here has not been measured yet."]
    for name, (title, _) in PARTS.items():
        if name not in found:
            continue
        rows = found[name]["rows"]
        head = list(rows[0])
        lines += ["", f"## {title}", "", f"`python benchmarks/scaling.py {name}`. {found[name]['measured']}", ""]
        lines += ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
        lines += ["| " + " | ".join(str(row.get(key, "")) for key in head) + " |" for row in rows]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
