"""`Subject`: the model under test in one form, whatever was given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from torch import nn

from spam_gnn.baselines.base import Settings, Shape, System
from spam_gnn.baselines.pyg import PyGNetwork
from spam_gnn.baselines.registry import find
from spam_gnn.contract import NodeModel
from spam_gnn.errors import BadInput
from spam_gnn.randomness import library_draws

Factory = Callable[[Shape, int], nn.Module]

# Widths, depths, samples and the epochs of a search are cut to these, so that a battery takes seconds; what is checked does not
# depend on them.
_QUICK = {"hidden": 16, "layers": 3, "posterior_hidden": 16, "samples": 2, "predict_samples": 4, "search_epochs": 4}


@dataclass(frozen=True)
class Subject:
    """How to make the model, how it wants to be trained, and what it is excused from."""

    name: str
    make: Callable[[Shape, int], NodeModel]
    train: Mapping[str, Any] = field(default_factory=dict)
    exceptions: Mapping[str, str] = field(default_factory=dict)


def subject_of(model: str | System | Factory, settings: Any = None) -> Subject:
    """From a name of the registry, a `System`, or a factory (shape, seed) of a `NodeModel` or of a PyG module.

    `settings` replaces the quick ones that a system is checked with.
    """
    if isinstance(model, str | System):
        system = find(model) if isinstance(model, str) else model
        chosen = settings if settings is not None else quick(system.settings)
        return Subject(system.name, lambda shape, seed: system.make(shape, chosen, seed), system.train, system.exceptions)
    if not callable(model):
        raise BadInput(f"model: found {type(model).__name__}; give a name, a System, or a factory (shape, seed) -> model")
    return _from_factory(model)


def quick(settings: Any) -> Any:
    """The same settings, cut to a size that trains in milliseconds."""
    known = {f.name for f in fields(settings)}
    return replace(settings, **{name: min(size, getattr(settings, name)) for name, size in _QUICK.items() if name in known})


def _from_factory(factory: Factory) -> Subject:
    name = getattr(factory, "__name__", type(factory).__name__)
    with library_draws(0, "look"):
        kind = factory(Shape(12, 4, 3), 0)
    if isinstance(kind, NodeModel):
        return Subject(name, factory)  # pyright: ignore[reportArgumentType] - as was just seen
    if not isinstance(kind, nn.Module):
        raise BadInput(f"model: the factory returned {type(kind).__name__}; return a NodeModel or a torch.nn.Module")
    return Subject(name, lambda shape, seed: PyGNetwork(shape, Settings(), seed, lambda: factory(shape, seed)))
