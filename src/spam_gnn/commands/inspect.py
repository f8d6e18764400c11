"""`spam-gnn inspect`: what was understood of a graph, and what looks wrong, before anyone trains."""

from __future__ import annotations

import json
import sys
from typing import Any

from spam_gnn.commands.console import OUT, table
from spam_gnn.commands.options import GraphOptions
from spam_gnn.data.inspection import column_summary, inspect_reading
from spam_gnn.data.reading import ColumnFact, Reading


def run_inspect(options: GraphOptions, split: int, seed: int, as_json: bool) -> None:
    """Print the inspection of a user's files or of a dataset by name."""
    source = options.data_source()
    if source.dataset is not None:
        graph = source.load(split, seed)
        reading = Reading(graph, tuple(ColumnFact(str(i), "number", 1) for i in range(graph.num_features)))
    else:
        reading = source.read()
    found = inspect_reading(reading)
    if as_json:
        sys.stdout.write(json.dumps(found.to_json(), indent=2, allow_nan=False) + "\n")
        return
    rows = [[name, _text(value)] for name, value in found.facts.items() if name not in ("name", "split")]
    given = found.facts["split"]
    split_text = _text(given) if any(given.values()) else "none: 48/32/20 by class is drawn by seed"
    rows[5:5] = [["columns", "\n".join(column_summary(found.columns))], ["split", split_text]]
    table(f"{found.facts['name']}: what was understood", ("what", "found"), rows)
    for note in found.notes:
        OUT.print(f"note: {note}", markup=False)
    for warning in found.warnings:
        OUT.print(f"look: {warning}", markup=False)
    if not found.warnings:
        OUT.print("nothing looks wrong")


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        items = [f"{name} {_text(item)}" for name, item in value.items()]
        return ", ".join(items[:20]) + (f" and {len(items) - 20} more" if len(items) > 20 else "")
    if isinstance(value, float):
        return f"{value:g}"
    return "undefined" if value is None else str(value)
