"""What a competing system is to the rest of the package: a `System` (its registry entry) and a `Network` (its model)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

import torch
from torch import Tensor

from spam_gnn.choices import Scaling
from spam_gnn.contract import FeatureScaler, NodeModel, batch_stream
from spam_gnn.errors import BadInput, one_of
from spam_gnn.graph import Graph
from spam_gnn.prediction import Prediction
from spam_gnn.settings import check_numbers

Family = Literal["spam", "homophily", "heterophily", "directed", "uncertainty", "strong"]


@dataclass(frozen=True)
class Shape:
    """All that a network needs to know of a graph to be made: n, d, C, edges (both directions of an undirected one count)."""

    num_nodes: int
    num_features: int
    num_classes: int
    num_edges: int = 0
    directed: bool = False

    @staticmethod
    def of(graph: Graph) -> Shape:
        return Shape(graph.num_nodes, graph.num_features, graph.num_classes, graph.num_edges, graph.directed)

    @staticmethod
    def stored(entries: Mapping[str, Any]) -> Shape:
        """From what was written of it, among other entries; earlier versions wrote fewer."""
        return Shape(
            entries.get("num_nodes", 0), entries["num_features"], entries["num_classes"], entries.get("num_edges", 0),
            entries.get("directed", False),
        )  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """Settings every system has; a system with more subclasses this. Field names are the keys of `--set key=value`."""

    hidden: int = 64
    layers: int = 2
    dropout: float = 0.5
    scaling: Scaling = "auto"

    def __post_init__(self) -> None:
        check_numbers(self)
        for name in ("hidden", "layers"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name}: found {getattr(self, name)}; use 1 or more")
        if not 0.0 <= self.dropout < 1.0:
            raise BadInput(f"dropout: found {self.dropout}; use a number from 0 up to, not including, 1")

    def with_settings(self, settings: dict[str, Any]) -> Settings:
        """A copy with some fields changed; an unknown key is refused with the nearest known one."""
        for key in settings:
            one_of(key, tuple(f.name for f in fields(self)), "setting")
        return replace(self, **settings)


@dataclass(frozen=True)
class System:
    """The registry entry of one competing system.

    Args:
        name: what `--model` takes.
        title: what tables print.
        family: where the paper's tables group it.
        paper: authors, venue, year.
        summary: what it does, in one line.
        make: (shape, settings, seed) -> a fresh model.
        settings: its defaults.
        train: fields of `TrainConfig` that differ from the common ones.
        search: the values tuning chooses from, by field of the settings or of `TrainConfig`.
        exceptions: names of checks of `check_node_classifier` it does not pass, each with the reason.
    """

    name: str
    title: str
    family: Family
    paper: str
    summary: str
    make: Callable[[Shape, Any, int], NodeModel]
    settings: Any = field(default_factory=Settings)
    train: Mapping[str, Any] = field(default_factory=dict)
    search: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    exceptions: Mapping[str, str] = field(default_factory=dict)


class Network(NodeModel):
    """A model whose prediction is one table of logits. Subclasses write :meth:`logits`; the rest is shared.

    Layers are made inside `library_draws(seed, "weights")` where a library draws them from global state. All per-graph work
    that does not depend on weights belongs into `graph.derived`, so that an epoch does not repeat it.
    """

    reads_direction = False  # whether `logits` sees directed edges; the others get every edge in both directions

    def __init__(self, shape: Shape, settings: Settings) -> None:
        super().__init__()
        if shape.num_classes < 2:
            raise BadInput(f"labels: found {shape.num_classes} class; classification needs at least 2")
        self.shape, self.settings = shape, settings
        self.scaler = FeatureScaler(shape.num_features, settings.scaling)

    def structure(self, graph: Graph) -> Graph:
        return graph if self.reads_direction else graph.as_undirected()

    def prepare(self, graph: Graph) -> Graph:
        return self.scaler(self.structure(graph))

    @abstractmethod
    def logits(self, graph: Graph, generator: torch.Generator | None) -> Tensor:
        """(n, C) for a prepared graph; `generator` draws dropout masks while training and is None at prediction."""

    def penalty(self, graph: Graph, logits: Tensor) -> dict[str, Tensor]:  # noqa: ARG002 - for systems that have one
        """Further parts of the loss, by name, added to the class loss as they are."""
        return {}

    def training_loss(self, graph: Graph, seed: int, epoch: int) -> dict[str, Tensor]:
        self.train()
        logits = self.logits(graph, batch_stream(graph, seed, epoch))
        class_loss = torch.nn.functional.cross_entropy(logits[graph.counted], graph.y[graph.counted])
        parts = self.penalty(graph, logits)
        total = class_loss + sum(parts.values(), class_loss.new_zeros(()))
        return {"loss": total, "class": class_loss, **parts} if parts else {"loss": class_loss}

    @torch.no_grad()
    def predict(self, graph: Graph, seed: int, samples: int | None = None) -> Prediction:  # noqa: ARG002 - K = 1
        self.eval()
        return Prediction.uniform(torch.log_softmax(self.logits(graph, None), -1).unsqueeze(0))
