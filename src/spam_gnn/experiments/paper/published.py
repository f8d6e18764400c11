"""Published figures, to be printed beside measured ones, each with its source. They stand in `published.json`
only, and the settings that publications state for single datasets in `stated.json`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class PublishedFigure:
    """A mean in percent as somebody printed it; `system` is a registry name where the system is one of ours.

    `protocol` is the split protocol it was measured under where that is not the dataset's own; such a figure is comparable
    with runs under that protocol only.
    """

    dataset: str
    system: str
    metric: str
    mean: float
    std: float | None
    source: str
    protocol: str | None = None

    @property
    def text(self) -> str:
        return f"{self.mean:.1f}" if self.std is None else f"{self.mean:.1f} ± {self.std:.1f}"

    @property
    def from_the_paper(self) -> bool:
        return self.source.startswith("paper-")


@dataclass(frozen=True)
class StatedSettings:
    """What a publication states it used for a system on a dataset, where it differs from that system's defaults here.

    `source` names the figures that these runs are held against.
    """

    system: str
    dataset: str
    source: str
    settings: dict[str, Any]
    train: dict[str, Any]
    protocol: str | None = None


@cache
def stated() -> tuple[StatedSettings, ...]:
    """All of `stated.json`."""
    return tuple(StatedSettings(**entry) for entry in _stored("stated.json"))


def _stored(name: str) -> Any:
    return json.loads(files("spam_gnn.experiments.paper").joinpath(name).read_text())


@cache
def _content() -> tuple[dict[str, str], tuple[PublishedFigure, ...]]:
    stored = _stored("published.json")
    return stored["sources"], tuple(PublishedFigure(**entry) for entry in stored["figures"])


def source(name: str) -> str:
    """Where a figure was published, in words."""
    return _content()[0][name]


def figures(dataset: str, protocol: str | None = None) -> tuple[PublishedFigure, ...]:
    """All that is known to be published on a dataset, under its own split protocol or another one."""
    return tuple(figure for figure in _content()[1] if figure.dataset == dataset and figure.protocol == protocol)


def paper_figure(system: str, dataset: str) -> PublishedFigure | None:
    """What the SpaM paper prints for a system on a dataset."""
    return next((f for f in figures(dataset) if f.system == system and f.from_the_paper), None)
