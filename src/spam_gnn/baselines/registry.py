"""The registry: every competing system by name. A file of this folder that defines `SYSTEMS` is found by itself."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import Any

import spam_gnn.baselines
from spam_gnn.baselines.base import Shape, System
from spam_gnn.contract import NodeModel
from spam_gnn.errors import BadInput, one_of
from spam_gnn.graph import Graph

_ADDED: dict[str, System] = {}
# what was done before a setting had a name
_BEFORE: dict[str, dict[str, Any]] = {"spam": {"deep_told": False, "verdict": "evidence", "copies": 1}}


@cache
def _shipped() -> dict[str, System]:
    found: dict[str, System] = {}
    for module in pkgutil.iter_modules(spam_gnn.baselines.__path__):
        for system in getattr(importlib.import_module(f"spam_gnn.baselines.{module.name}"), "SYSTEMS", ()):
            if system.name in found:
                raise ValueError(f"two systems are called '{system.name}'")
            found[system.name] = system
    return found


def systems() -> dict[str, System]:
    """Name -> system, those of this package and those added by :func:`register`."""
    return {**_shipped(), **_ADDED}


def register(system: System) -> None:
    """Make a system of your own known to `train`, `tune` and `reproduce` by its name."""
    if system.name in systems():
        raise BadInput(f"model '{system.name}': there is one of that name already; choose another")
    _ADDED[system.name] = system


def find(name: str) -> System:
    """A system by name; a misspelt name is answered with the nearest one."""
    return systems()[one_of(name, tuple(systems()), "model")]


def settings_from_json(name: str, stored: dict[str, Any]) -> Any:
    """The settings of a system as they were written."""
    return type(find(name).settings)(**tuples_from_json(stored))


def settings_of_weights(name: str, stored: dict[str, Any]) -> Any:
    """The settings that kept weights were made with: where one had no name yet, what was done before it had."""
    return settings_from_json(name, {**_BEFORE.get(name, {}), **stored})


def tuples_from_json(stored: dict[str, Any]) -> dict[str, Any]:
    """JSON has lists where settings have tuples."""
    return {key: tuple(value) if isinstance(value, list) else value for key, value in stored.items()}


def make_baseline(name: str, graph: Graph, seed: int) -> NodeModel:
    """A fresh model with its default settings, shaped for a graph."""
    system = find(name)
    return system.make(Shape.of(graph), system.settings, seed)
