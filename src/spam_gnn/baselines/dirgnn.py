"""`dirgnn`: separate weights for in- and out-neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from spam_gnn.baselines.base import Shape, System
from spam_gnn.baselines.two_way import Jump, TwoWayNetwork, TwoWaySettings
from spam_gnn.errors import BadInput, one_of
from spam_gnn.graph import Direction, Graph
from spam_gnn.kernels.csr import gather_sum

Base = Literal["gcn", "sage"]


@dataclass(frozen=True)
class DirGNNSettings(TwoWaySettings):
    """`alpha` weighs out-neighbours against in-neighbours; `base` is the convolution; `jump` joins the layers."""

    alpha: float = 0.5
    base: Base = "gcn"
    jump: Jump = "max"

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self.base, ("gcn", "sage"), "base")
        one_of(self.jump, ("max", "cat", "none"), "jump")
        if not 0.0 <= self.alpha <= 1.0:
            raise BadInput(f"alpha: found {self.alpha}; use a number from 0 to 1")


def directed_weights(graph: Graph, direction: Direction, base: Base) -> Tensor:
    """(1, m) of the messages of a direction: `gcn` 1 / sqrt(d_out(source) d_in(target)), `sage` 1 / number of messages."""
    key = f"dirgnn/{direction}/{base}"
    if key not in graph.derived:
        messages = graph.messages(direction)
        heard = messages.degree.to(torch.float32)
        if base == "sage":
            weight = 1.0 / heard[messages.target]
        else:
            spoken = messages.transposed.degree.to(torch.float32)
            weight = (heard[messages.target] * spoken[messages.source]).rsqrt()
        graph.derived[key] = weight.unsqueeze(0)
    return graph.derived[key]


def directed_mix(graph: Graph, values: Tensor, alpha: float, base: Base) -> Tensor:
    """alpha S_out V_out + (1 - alpha) S_in V_in (+ V_self): values hold the two (or three) projections side by side.

    Rossi et al. 2023, with S = D_out^-1/2 A D_in^-1/2 for out-neighbours and its transpose for in-neighbours (`gcn`), or
    neighbourhood means and a self term (`sage`). PyG's `DirGNNConv` over `GCNConv` normalises by in-degrees at both ends and
    so loses the messages of nodes nobody points at, which is why the directed normalisation of the paper is written here;
    over `SAGEConv` the two agree.
    """
    out, into, *own = values.chunk(3 if base == "sage" else 2, dim=1)
    mixed = (
        alpha * gather_sum(graph.messages("out"), directed_weights(graph, "out", base), out.unsqueeze(0))[0]
        + (1.0 - alpha) * gather_sum(graph.messages("in"), directed_weights(graph, "in", base), into.unsqueeze(0))[0]
    )
    return mixed + own[0] if own else mixed


class DirGNN(TwoWayNetwork):
    """h^(l) = relu(alpha S_out h W_out + (1 - alpha) S_in h W_in + b), rows scaled to norm 1, layers joined by jumping
    knowledge.

    Shapes: X (n, d), h (n, hidden), logits (n, C).
    """

    settings: DirGNNSettings

    def __init__(self, shape: Shape, settings: DirGNNSettings, seed: int) -> None:
        super().__init__(shape, settings, seed, self_term=settings.base == "sage", jump=settings.jump)

    def mix(self, graph: Graph, values: Tensor) -> Tensor:
        return directed_mix(graph, values, self.settings.alpha, self.settings.base)


SYSTEMS = (
    System(
        "dirgnn", "DirGNN", "directed", "Rossi, Charpentier, Di Giovanni, Frasca, Guennemann and Bronstein, LoG 2023",
        "Separate weights for the neighbours a node points at and those that point at it.",
        DirGNN, DirGNNSettings(), {"learning_rate": 0.005, "weight_decay": 0.0, "epochs": 600, "patience": 200},
        {"alpha": (0.0, 0.5, 1.0), "base": ("gcn", "sage"), "jump": ("max", "cat", "none"), "layers": (2, 3, 4, 5),
         "hidden": (64, 128), "normalise": (True, False), "dropout": (0.0, 0.2, 0.5), "learning_rate": (0.01, 0.005, 0.001)},
    ),
)  # fmt: skip
