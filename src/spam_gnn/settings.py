"""`TrainConfig` and `BatchConfig`: how a model is trained, and the pieces that the graph is taken in."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import Any

from spam_gnn.errors import BadInput

TRAIN_LOOKED_AT = 2000  # training nodes looked at after an epoch of batches: a curve in the report, nothing depends on it
BatchKind = str  # "whole", "neighbours" or "clusters"


def check_numbers(settings: Any) -> None:
    """Whole numbers where a dataclass declares `int`, finite ones where it declares `float`; None where it may be."""
    for field in fields(settings):
        value, declared = getattr(settings, field.name), str(field.type)
        if value is None and "None" in declared:
            continue
        if declared.startswith("int") and (not isinstance(value, Integral) or isinstance(value, bool)):
            raise BadInput(f"{field.name}: found {value!r}; give a whole number")
        if declared.startswith("float") and not (isinstance(value, Real) and math.isfinite(value)):
            raise BadInput(f"{field.name}: found {value!r}; give a finite number")


@dataclass(frozen=True)
class TrainConfig:
    """How a model is trained; the same for SpaM and its competitors."""

    epochs: int = 200
    patience: int = 60  # epochs without a better validation score before stopping
    learning_rate: float = 0.01
    weight_decay: float = 3e-3  # on weight matrices only
    clip: float = 5.0  # largest gradient norm; 0 turns clipping off
    decay: float = 0.5  # factor on the learning rate when validation stands still
    decay_patience: int = 50
    val_samples: int = 8  # K of the validation that follows each epoch
    select: bool = True  # keep the weights of the best validation epoch; False trains for `epochs` and keeps the last

    def __post_init__(self) -> None:
        check_numbers(self)
        for name in ("epochs", "val_samples"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name}: found {getattr(self, name)}; use 1 or more")
        for name in ("patience", "weight_decay", "clip", "decay_patience"):
            if getattr(self, name) < 0:
                raise BadInput(f"{name}: found {getattr(self, name)}; use 0 or more")
        if self.learning_rate <= 0:
            raise BadInput(f"learning_rate: found {self.learning_rate}; use a number above 0")
        if not 0.0 < self.decay <= 1.0:
            raise BadInput(f"decay: found {self.decay}; use a number above 0, up to 1")


@dataclass(frozen=True)
class BatchConfig:
    """How a graph is cut into batches; with `size` 0 and no clusters it is taken whole.

    The results do not depend on the number of processes: `together` batches make one step, whoever works on them.
    """

    size: int = 0  # seeds of a neighbour-sampled batch
    neighbours: tuple[int, ...] = (10, 10)  # per hop; -1 for all
    clusters: int = 0  # parts that METIS cuts the graph into; each batch joins `joined` of them
    joined: int = 4
    together: int = 1  # batches whose gradients make one step of the optimiser
    val_limit: int = 50_000  # validation nodes looked at after an epoch: these many at most, always the same
    # Factor on the learning rate of a run in batches. The gradient of a batch is a noisy one: with full steps every network,
    # also one that hears no messages, stayed behind what the whole graph taught it (docs/scaling.md).
    shorter: float = 0.4

    def __post_init__(self) -> None:
        for name in ("size", "clusters"):
            if getattr(self, name) < 0:
                raise BadInput(f"batches.{name}: found {getattr(self, name)}; use 0 or more")
        for name in ("joined", "together", "val_limit"):
            if getattr(self, name) < 1:
                raise BadInput(f"batches.{name}: found {getattr(self, name)}; use 1 or more")
        if not 0.0 < self.shorter <= 1.0:
            raise BadInput(f"batches.shorter: found {self.shorter}; use a number above 0, up to 1")
        if self.size and self.clusters:
            raise BadInput("--batch-size and --clusters: found both; give one or the other")
        if not self.neighbours or any(k == 0 or k < -1 for k in self.neighbours):
            raise BadInput(f"--neighbours: found {self.neighbours}; give a number of 1 or more per hop, or -1 for all")

    @property
    def kind(self) -> BatchKind:
        return "neighbours" if self.size else "clusters" if self.clusters else "whole"

    @property
    def rate(self) -> float:
        """Factor on the learning rate: one where the graph is taken whole."""
        return 1.0 if self.kind == "whole" else self.shorter
