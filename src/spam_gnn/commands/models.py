"""`spam-gnn models`: the systems by name, family by family."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import get_args

from spam_gnn.baselines.base import Family, System
from spam_gnn.baselines.registry import systems
from spam_gnn.commands.console import OUT


def run_models(as_json: bool) -> None:
    """Print every system: name, family, title, paper, one line; with `--json` also defaults and search space."""
    order = get_args(Family)
    listed = sorted(systems().values(), key=lambda system: (order.index(system.family), system.name))
    if as_json:
        sys.stdout.write(json.dumps([_facts(system) for system in listed], indent=2) + "\n")
        return
    width = max(len(system.name) for system in listed)
    for family in order:
        members = [system for system in listed if system.family == family]
        if members:
            OUT.print(f"[bold]{family}[/bold]")
        for system in members:
            OUT.print(f"  {system.name:{width}}  {system.title} ({system.paper}). {system.summary}")


def _facts(system: System) -> dict[str, object]:
    return {
        "name": system.name, "family": system.family, "title": system.title, "paper": system.paper,
        "summary": system.summary, "settings": asdict(system.settings), "train": dict(system.train),
        "search": {key: list(values) for key, values in system.search.items()},
    }  # fmt: skip
