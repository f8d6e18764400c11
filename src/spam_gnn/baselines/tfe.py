"""TFE-GNN: an ensemble of low-pass filters, an ensemble of high-pass filters, and an ensemble of the two."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from spam_gnn.baselines.base import Network, Settings, Shape, System
from spam_gnn.baselines.gprgnn import polynomial
from spam_gnn.baselines.operators import check_between, degree_operator
from spam_gnn.errors import one_of
from spam_gnn.graph import Graph
from spam_gnn.initial import glorot
from spam_gnn.randomness import dropout, stream

Combine = Literal["sum", "concat", "low", "high"]
_COMBINE: tuple[Combine, ...] = ("sum", "concat", "low", "high")


@dataclass(frozen=True)
class TFESettings(Settings):
    """Published defaults (tfe_training.py), but for hidden = 64 instead of 512, which costs eight times as much, and eta."""

    dropout: float = 0.6  # on the features
    hidden_dropout: float = 0.0
    low_steps: int = 6  # K_lp
    high_steps: int = 5  # K_hp
    eta: float = -0.5  # exponent of the degrees in the high-pass filter; published default -0.3
    combine: Combine = "sum"
    filter_rate: float = 20.0  # learning rate of the filters' coefficients as a multiple of the run's
    filter_decay: float = 0.05  # weight decay of the filters' coefficients

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self.combine, _COMBINE, "combine")
        check_between(self, 2, 64, "layers")
        check_between(self, 1, 64, "low_steps", "high_steps")
        check_between(self, -2.0, 0.0, "eta")
        check_between(self, 0.0, 0.99, "hidden_dropout")
        check_between(self, 0.0, float("inf"), "filter_rate", "filter_decay")


class TFEGNN(Network):
    """H = v_1 sum_{k=0}^{K_lp} a_k L_lp^k X + v_2 sum_{k=0}^{K_hp} b_k L_hp^k X, then MLP(H) (Duan et al. 2024);
    L_lp = D~^-1/2 (A + I) D~^-1/2, L_hp = I - D~^eta (A + I) D~^eta; `concat` puts the two sums side by side.

    The MLP begins with a linear map W, and filters commute with it: W is applied to X first, so that features stay sparse and
    the filters run on `hidden` columns. As in the published code a_0 = b_0 = 1, the others start at 1/2, the linear maps have
    no bias. v_1 and v_2 are learned with the filters' rate; the code's default leaves them at 1. The published eta of -0.3 lets
    L_hp grow with the largest degree; -1/2 makes it the normalised Laplacian, which is bounded on every graph.
    """

    def __init__(self, shape: Shape, settings: TFESettings, seed: int) -> None:
        super().__init__(shape, settings)
        generator, s = stream(seed, "weights"), settings
        self.tfe = s
        parts = 2 if s.combine == "concat" else 1
        self.first = nn.Parameter(torch.cat([glorot(shape.num_features, s.hidden, generator) for _ in range(parts)], 1))
        sizes = [s.hidden] * (s.layers - 1) + [shape.num_classes]
        self.rest = nn.ParameterList([glorot(a, b, generator) for a, b in itertools.pairwise(sizes)])
        self.low = nn.Parameter(torch.full((s.low_steps,), 0.5)) if s.combine != "high" else None
        self.high = nn.Parameter(torch.full((s.high_steps,), 0.5)) if s.combine != "low" else None
        self.shares = nn.Parameter(torch.ones(2)) if s.combine in ("sum", "concat") else None

    def parameter_groups(self, weight_decay: float) -> list[dict[str, Any]]:
        filters = [p for p in (self.low, self.high, self.shares) if p is not None]
        return [
            {"params": [self.first, *self.rest], "weight_decay": weight_decay},
            {"params": filters, "weight_decay": self.tfe.filter_decay, "rate_factor": self.tfe.filter_rate},
        ]

    def low_pass(self, graph: Graph, x: Tensor, coefficients: Tensor) -> Tensor:
        """x + sum_{k>=1} a_k L_lp^k x for coefficients (K_lp,)."""
        operator = degree_operator(graph, -0.5, -0.5, loops=True)
        return polynomial(operator, x, torch.cat([torch.ones(1), coefficients]))

    def high_pass(self, graph: Graph, x: Tensor, coefficients: Tensor) -> Tensor:
        """x + sum_{k>=1} b_k L_hp^k x for coefficients (K_hp,)."""
        operator = degree_operator(graph, self.tfe.eta, self.tfe.eta, loops=True)
        return polynomial(lambda v: v - operator(v), x, torch.cat([torch.ones(1), coefficients]))

    def logits(self, graph: Graph, generator: torch.Generator | None) -> Tensor:
        x = graph.features.project(self.first, self.tfe.dropout, generator)
        columns = self.tfe.hidden
        for_low, for_high = (x[:, :columns], x[:, columns:]) if self.tfe.combine == "concat" else (x, x)
        shares = torch.ones(2) if self.shares is None else self.shares
        h = torch.zeros_like(for_low)
        if self.low is not None:
            h = h + shares[0] * self.low_pass(graph, for_low.contiguous(), self.low)
        if self.high is not None:
            h = h + shares[1] * self.high_pass(graph, for_high.contiguous(), self.high)
        for weight in self.rest:
            h = dropout(torch.relu(h), self.tfe.hidden_dropout, generator) @ weight
        return h


SYSTEMS = (
    System(
        "tfe-gnn", "TFE-GNN", "heterophily", "Duan, Guang, Wang, Yan, Qi, Yang, Su and Tian, NeurIPS 2024",
        "An ensemble of low-pass filters, one of high-pass filters, and one of the two.",
        TFEGNN, TFESettings(), {"learning_rate": 0.005, "weight_decay": 5e-4, "epochs": 1000, "patience": 200},
        {"learning_rate": (0.005, 0.01, 0.05), "weight_decay": (0.0, 5e-4, 5e-3), "hidden": (64, 512),
         "dropout": (0.2, 0.6, 0.8), "hidden_dropout": (0.0, 0.5), "low_steps": (2, 6, 10), "high_steps": (2, 5, 10),
         "eta": (-0.5, -0.4, -0.3), "combine": ("sum", "concat"), "filter_rate": (1.0, 5.0, 20.0), "filter_decay": (0.0, 0.05)},
    ),
)  # fmt: skip
