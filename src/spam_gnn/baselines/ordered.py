"""Ordered GNN: near neighbourhoods are written into the first columns, far ones into the later, and never overwritten."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from spam_gnn.baselines.base import Network, Settings, Shape, System
from spam_gnn.baselines.operators import check_between, degree_operator
from spam_gnn.graph import Graph
from spam_gnn.initial import glorot
from spam_gnn.randomness import dropout, stream


@dataclass(frozen=True)
class OrderedSettings(Settings):
    """Published values (best_params), but for hidden = 64 instead of 256."""

    layers: int = 8
    dropout: float = 0.3
    spread_dropout: float = 0.1  # before every round
    chunk: int = 4  # columns of the representation that share one column of the gate
    shared_gate: bool = True  # one gate network for all rounds
    gate_decay: float = 5e-6  # weight decay of the gates; the run's decay is for the maps in and out

    def __post_init__(self) -> None:
        super().__post_init__()
        check_between(self, 1, float("inf"), "chunk")
        check_between(self, 0.0, float("inf"), "gate_decay")
        check_between(self, 0.0, 0.99, "spread_dropout")


class OrderedGNN(Network):
    """h_0 = LN(relu(X W_1 + b_1));  m_i = mean_{j in N(i)} h_j;  g' = cumsum(softmax([h | m] W_g + b_g));
    g_k = g_{k-1} + (1 - g_{k-1}) g';  h_k = LN(g_k h_{k-1} + (1 - g_k) m);  h_L W_2 + b_2 (Song et al. 2023).

    The gate rises from left to right and from round to round, so that columns once closed keep what they hold. LN is layer norm
    with a scale and a shift of its own in every round. No self-loops, as published.
    """

    def __init__(self, shape: Shape, settings: OrderedSettings, seed: int) -> None:
        super().__init__(shape, settings)
        generator, s = stream(seed, "weights"), settings
        self.ordered = s
        gates = 1 if s.shared_gate else s.layers
        self.chunks = math.ceil(s.hidden / s.chunk)  # the last one may be narrower
        self.first = nn.Parameter(glorot(shape.num_features, s.hidden, generator))
        self.first_bias = nn.Parameter(torch.zeros(s.hidden))
        self.gates = nn.ParameterList([glorot(2 * s.hidden, self.chunks, generator) for _ in range(gates)])
        self.gate_biases = nn.ParameterList([torch.zeros(self.chunks) for _ in range(gates)])
        self.first_norm = nn.LayerNorm(s.hidden)
        self.norms = nn.ModuleList([nn.LayerNorm(s.hidden) for _ in range(s.layers)])
        self.last = nn.Parameter(glorot(s.hidden, shape.num_classes, generator))
        self.last_bias = nn.Parameter(torch.zeros(shape.num_classes))

    def parameter_groups(self, weight_decay: float) -> list[dict[str, Any]]:
        plain = [p for p in self.parameters() if p.ndim == 1]  # biases and norms
        return [
            {"params": [self.first, self.last], "weight_decay": weight_decay},
            {"params": [*self.gates], "weight_decay": self.ordered.gate_decay},
            {"params": plain, "weight_decay": 0.0},
        ]

    def round(self, number: int, h: Tensor, heard: Tensor, closed: Tensor) -> tuple[Tensor, Tensor]:
        """One round: h and the neighbours' mean (n, hidden), the gate so far (n, chunks) -> the next h and gate."""
        place = number % len(self.gates)
        fresh = torch.softmax(torch.cat([h, heard], 1) @ self.gates[place] + self.gate_biases[place], 1).cumsum(1)
        closed = closed + (1.0 - closed) * fresh
        gate = closed.repeat_interleave(self.ordered.chunk, 1)[:, : self.ordered.hidden]
        return self.norms[number](gate * h + (1.0 - gate) * heard), closed

    def logits(self, graph: Graph, generator: torch.Generator | None) -> Tensor:
        s, mean = self.ordered, degree_operator(graph, -1.0, 0.0, loops=False)
        h = self.first_norm(torch.relu(graph.features.project(self.first, s.dropout, generator) + self.first_bias))
        closed = h.new_zeros(h.shape[0], self.chunks)
        for number in range(s.layers):
            h = dropout(h, s.spread_dropout, generator)
            h, closed = self.round(number, h, mean(h), closed)
        return dropout(h, s.dropout, generator) @ self.last + self.last_bias


SYSTEMS = (
    System(
        "ordered-gnn", "Ordered GNN", "heterophily", "Song, Zhou, Wang and Lin, ICLR 2023",
        "Gates that rise over columns and rounds keep near and far neighbourhoods in separate columns.",
        OrderedGNN, OrderedSettings(), {"learning_rate": 0.005, "weight_decay": 5e-2, "epochs": 1000, "patience": 200},
        {"learning_rate": (0.001, 0.005, 0.01), "weight_decay": (5e-6, 5e-4, 5e-3, 5e-2), "hidden": (64, 256),
         "layers": (2, 4, 8), "dropout": (0.1, 0.3, 0.5), "spread_dropout": (0.0, 0.1, 0.3), "shared_gate": (True, False)},
    ),
)  # fmt: skip
