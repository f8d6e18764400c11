"""`auto-heg`: an architecture searched for the heterophily of the graph, then trained from scratch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spam_gnn.baselines.auto_heg_cells import HEADS, JOINS, OPERATORS, SKIPS, Cells
from spam_gnn.baselines.auto_heg_search import SearchPlan, search_architecture
from spam_gnn.baselines.base import Network, Settings, Shape, System
from spam_gnn.errors import BadInput
from spam_gnn.graph import Graph
from spam_gnn.randomness import seed_for


@dataclass(frozen=True)
class AutoHeGSettings(Settings):
    """`search_epochs` of each of three stages; `keep_first` and `keep_second` operators per layer survive the first two."""

    hidden: int = 32
    layers: int = 3
    search_epochs: int = 20
    keep_first: int = 6
    keep_second: int = 4
    search_rate: float = 0.005
    architecture_rate: float = 0.02

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hidden % HEADS:
            raise BadInput(f"hidden: found {self.hidden}; use a multiple of {HEADS}")
        if not 1 <= self.keep_second <= self.keep_first <= len(OPERATORS):
            raise BadInput(f"keep_first, keep_second: found {self.keep_first}, {self.keep_second}; "
                           f"use 1 to {len(OPERATORS)}, not growing")  # fmt: skip
        if self.search_epochs < 1 or self.search_rate <= 0.0 or self.architecture_rate <= 0.0:
            raise BadInput(f"search_epochs, search_rate, architecture_rate: found {self.search_epochs}, {self.search_rate}, "
                           f"{self.architecture_rate}; use 1 or more, and numbers above 0")  # fmt: skip


class AutoHeG(Network):
    """One architecture of :class:`Cells`, found before the first epoch by :func:`search_architecture` (Zheng et al. 2023).

    The supernet learns its weights from one half of the training labels and its architecture from the other (first-order
    DARTS); validation labels are left for the choice of the epoch, as for every other system. Operators whose removal changes
    the predicted class-link matrix least are dropped in stages. Decided: softmax instead of Gumbel-softmax mixing, whose
    noise needs the authors' 1000 epochs to average out; eight of their eighteen operators, the four best known of either
    kind; stages of 20 epochs with a larger architecture rate; weights are kept between stages.

    The choice is stored in buffers. The parameters of all operators exist, so that shapes do not depend on the choice; those
    not chosen are frozen and never used.
    """

    settings: AutoHeGSettings

    def __init__(self, shape: Shape, settings: AutoHeGSettings, seed: int) -> None:
        super().__init__(shape, settings)
        self.cells = self._fresh_cells(seed)
        self.register_buffer("operators", torch.zeros(settings.layers, dtype=torch.int64))
        self.register_buffer("skips", torch.ones(settings.layers, dtype=torch.int64))
        self.register_buffer("join", torch.zeros(1, dtype=torch.int64))
        self.freeze_unchosen()
        self.register_load_state_dict_post_hook(_refreeze)

    def _fresh_cells(self, seed: int) -> Cells:
        return Cells(self.shape, self.settings.hidden, self.settings.layers, self.settings.dropout, seed)

    def begin(self, graph: Graph, seed: int) -> None:
        super().begin(graph, seed)
        c = self.settings
        plan = SearchPlan((c.keep_first, c.keep_second), c.search_epochs, c.search_rate, c.architecture_rate)
        supernet = self._fresh_cells(seed_for(seed, "supernet"))
        found = search_architecture(supernet, self.prepare(graph), plan, seed)
        for name, choice in zip(("operators", "skips", "join"), found, strict=True):
            self.get_buffer(name).copy_(choice)
        self.freeze_unchosen()

    def freeze_unchosen(self) -> None:
        """Only the parts of the chosen architecture are trained; a layer that nothing reads is not part of it."""
        operators, skips, join = (self.get_buffer(name) for name in ("operators", "skips", "join"))
        last_read = int(torch.nonzero(skips == SKIPS.index("skip")).max())
        for layer, choices in enumerate(self.cells.operators):
            assert isinstance(choices, nn.ModuleList)
            for index, operator in enumerate(choices):
                operator.requires_grad_(index == int(operators[layer]) and layer <= last_read)
        for index in range(len(JOINS)):
            for module in (self.cells.joins[index], self.cells.mixers[index]):
                module.requires_grad_(index == int(join))

    def architecture(self) -> dict[str, Any]:
        """What was found, in words."""
        return {
            "operators": [OPERATORS[int(i)] for i in self.get_buffer("operators")],
            "skips": [SKIPS[int(i)] for i in self.get_buffer("skips")],
            "join": JOINS[int(self.get_buffer("join"))],
        }

    def logits(self, graph: Graph, generator: torch.Generator | None) -> Tensor:
        sizes = (len(OPERATORS), len(SKIPS), len(JOINS))
        one_hot = [F.one_hot(self.get_buffer(name), size).to(torch.float32)
                   for name, size in zip(("operators", "skips", "join"), sizes, strict=True)]  # fmt: skip
        return self.cells(graph, (one_hot[0], one_hot[1], one_hot[2]), generator)


def _refreeze(module: nn.Module, _: Any) -> None:
    assert isinstance(module, AutoHeG)
    module.freeze_unchosen()


SYSTEMS = (
    System(
        "auto-heg", "Auto-HeG", "heterophily", "Zheng, Zhang, Chen, Zhang, Zhou and Pan, WWW 2023",
        "Architecture searched in a supernet shrunk by heterophily, then trained from scratch.",
        AutoHeG, AutoHeGSettings(), {"learning_rate": 0.005, "weight_decay": 3e-4, "epochs": 300, "patience": 100},
        {"hidden": (32, 64), "dropout": (0.3, 0.5), "search_epochs": (20, 50), "learning_rate": (0.005, 0.01),
         "weight_decay": (3e-4, 5e-3)},
    ),
)  # fmt: skip
