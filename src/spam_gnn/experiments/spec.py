"""`RunSpec`: everything the result of one run depends on, as a frozen value with one canonical text and a hash of it.

Settings are the complete, resolved ones. A default that changes in the code therefore gives another hash, and a stored run is
never taken for one of the new settings.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

from spam_gnn.baselines.registry import find, settings_from_json
from spam_gnn.data import catalog
from spam_gnn.errors import BadInput
from spam_gnn.training import TrainConfig

FORMAT = 1  # of the canonical text; raised when a field is added that old hashes do not know
HASH_LENGTH = 16
# Settings of SpaM that came later, and what they were before there was a name for them: left out of the canonical text then, so
# that a run that they do not concern keeps its name. Records of runs that they do concern were taken out and made again.
_LATER: dict[str, Any] = {
    "position_power": 0.0, "cells": 8, "deep_told": True, "verdict": "beliefs", "copies": 2, "few_nodes": 500,
}  # fmt: skip


@dataclass(frozen=True)
class Perturbation:
    """A change of the graph before training: a name that `spam_gnn.perturb.apply` knows, and how strong it is."""

    name: str
    strength: float

    def __post_init__(self) -> None:
        if not self.strength >= 0.0:
            raise BadInput(f"perturbation '{self.name}': found strength {self.strength}; use 0 or more")

    @property
    def label(self) -> str:
        return f"{self.name}:{self.strength:g}"


@dataclass(frozen=True)
class RunSpec:
    """One training run.

    Args:
        dataset: a name of the catalog.
        protocol: the split protocol by name; None for embedded graphs, which are split as they are drawn.
        split: which of its splits.
        model: a system of the registry.
        settings: the system's own settings, complete.
        train: how it is trained, complete.
        perturbation: what is done to the graph first, or None.
        seed: of weights, draws, dropout, and of what is generated.
        measures: names of modules in `experiments/measures` whose findings join the record.
    """

    dataset: str
    protocol: str | None
    split: int
    model: str
    settings: Any
    train: TrainConfig
    perturbation: Perturbation | None = None
    seed: int = 0
    measures: tuple[str, ...] = field(default=())

    @staticmethod
    def of(
        dataset: str,
        model: str,
        *,
        split: int = 0,
        seed: int = 0,
        protocol: str | None = None,
        settings: Mapping[str, Any] | None = None,
        train: Mapping[str, Any] | None = None,
        perturbation: Perturbation | None = None,
        measures: tuple[str, ...] = (),
    ) -> RunSpec:
        """A spec from what differs from the defaults; everything else is resolved here and written out."""
        system = find(model)
        return RunSpec(
            dataset=dataset, protocol=protocol or catalog.default_protocol(dataset), split=split, model=model,
            settings=system.settings.with_settings(dict(settings or {})),
            train=TrainConfig(**{**system.train, **(train or {})}), perturbation=perturbation, seed=seed, measures=measures,
        )  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        """Plain data, lists instead of tuples, so that what is written and what is read back are equal."""
        value = {**asdict(replace(self, settings=None)), "settings": asdict(self.settings)}
        return json.loads(json.dumps(value, allow_nan=False))

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> RunSpec:
        disturbed = value["perturbation"]
        return RunSpec(
            dataset=value["dataset"], protocol=value["protocol"], split=value["split"], model=value["model"],
            settings=settings_from_json(value["model"], value["settings"]), train=TrainConfig(**value["train"]),
            perturbation=None if disturbed is None else Perturbation(**disturbed), seed=value["seed"],
            measures=tuple(value["measures"]),
        )  # fmt: skip

    @cached_property
    def spec_hash(self) -> str:
        """Sixteen hexadecimal digits that name all but the seed."""
        return hash_of(self.to_json())

    @property
    def label(self) -> str:
        """What a person calls this run."""
        disturbed = "" if self.perturbation is None else f" {self.perturbation.label}"
        return f"{self.dataset}{disturbed} {self.model} split {self.split} seed {self.seed}"


def without_later(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as records of before and after a field was added both have them."""
    return {key: entry for key, entry in settings.items() if key not in _LATER or entry != _LATER[key]}


def canonical(value: Mapping[str, Any]) -> str:
    """The one text of a spec: sorted keys, no spaces, without the seed, which has a place of its own in the store."""
    rest = {**{key: entry for key, entry in value.items() if key != "seed"}, "settings": without_later(value["settings"])}
    return json.dumps({"format": FORMAT, **rest}, sort_keys=True, separators=(",", ":"), allow_nan=False)


def hash_of(value: Mapping[str, Any]) -> str:
    """The hash of a spec in its JSON form."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:HASH_LENGTH]
