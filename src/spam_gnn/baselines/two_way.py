"""`TwoWayNetwork`: layers that hear out- and in-neighbours through separate weights; what `dirgnn` and `cgnn` are made of."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch_geometric.nn import JumpingKnowledge

from spam_gnn.baselines.base import Network, Settings, Shape
from spam_gnn.graph import Graph
from spam_gnn.initial import glorot
from spam_gnn.randomness import dropout, stream

Jump = Literal["max", "cat", "none"]


@dataclass(frozen=True)
class TwoWaySettings(Settings):
    """`normalise` scales the rows of every layer to norm 1."""

    hidden: int = 128
    layers: int = 5
    dropout: float = 0.0
    normalise: bool = True


class TwoWayNetwork(Network):
    """h^(l) = relu(mix([h W_out | h W_in (| h W_self)]) + b), layers joined by jumping knowledge, then a linear map to classes.

    Args:
        self_term: whether there is a third projection, of the node itself.
        jump: how layers are joined; `none` takes the last.

    Shapes: X (n, d), h (n, hidden), logits (n, C).
    """

    reads_direction = True

    def __init__(self, shape: Shape, settings: TwoWaySettings, seed: int, *, self_term: bool, jump: Jump) -> None:
        super().__init__(shape, settings)
        self.normalise = settings.normalise
        generator, h = stream(seed, "weights"), settings.hidden
        sizes, parts = [shape.num_features] + [h] * (settings.layers - 1), 3 if self_term else 2
        self.weights = nn.ParameterList([torch.cat([glorot(s, h, generator) for _ in range(parts)], dim=1) for s in sizes])
        self.biases = nn.ParameterList([torch.zeros(h) for _ in sizes])
        self.jump = None if jump == "none" else JumpingKnowledge(jump)
        joined = h * settings.layers if jump == "cat" else h
        self.classify = nn.Parameter(glorot(joined, shape.num_classes, generator))
        self.classify_bias = nn.Parameter(torch.zeros(shape.num_classes))

    @abstractmethod
    def mix(self, graph: Graph, values: Tensor) -> Tensor:
        """values (n, 2 or 3 hidden), the projections side by side -> (n, hidden)."""

    def logits(self, graph: Graph, generator: torch.Generator | None) -> Tensor:
        h, layers = None, []
        for weight, bias in zip(self.weights, self.biases, strict=True):
            values = graph.features.project(weight) if h is None else h @ weight
            h = dropout(torch.relu(self.mix(graph, values) + bias), self.settings.dropout, generator)
            if self.normalise:
                h = nn.functional.normalize(h, dim=1)
            layers.append(h)
        joined = layers[-1] if self.jump is None else self.jump(layers)
        return joined @ self.classify + self.classify_bias
