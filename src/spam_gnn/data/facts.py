"""`FolderFacts`: the sizes of a converted graph (`folder.py`), which are known before anything of it is opened."""

from __future__ import annotations

import json
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

from spam_gnn.errors import BadInput

FACTS = "graph.json"
FORM = 1


@dataclass(frozen=True)
class FolderFacts:
    """What `graph.json` holds: all that a memory plan needs, before any array is opened.

    Args:
        edges: stored edges m; mirrored: stored edges with every one in both directions.
        nonzeros: stored feature values; nodes * features of a dense matrix.
    """

    form: int
    name: str
    nodes: int
    edges: int
    mirrored: int
    features: int
    nonzeros: int
    sparse: bool
    directed: bool
    class_names: tuple[str, ...]
    notes: tuple[str, ...]
    named: bool
    columns: tuple[dict[str, Any], ...]
    labelled: int = 0  # training nodes; 0 where it is not said
    validated: int = 0  # validation nodes; the same


def is_converted(path: Path) -> bool:
    """Whether a path is a folder that `spam-gnn convert` wrote."""
    return (path / FACTS).is_file()


def read_facts(path: Path) -> FolderFacts:
    """The sizes of a converted graph; nothing else is opened."""
    try:
        stored = json.loads((path / FACTS).read_text())
        facts = FolderFacts(**{f.name: stored[f.name] for f in fields(FolderFacts) if f.name in stored or f.default is MISSING})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{path / FACTS}: cannot be read ({error}); convert the graph again") from None
    if facts.form != FORM:
        raise BadInput(f"{path / FACTS}: was written by another version (form {facts.form}); convert the graph again")
    return facts
