"""The linear step every system begins with: dropout(H) W, then (if asked) a fixed sparse operator, then the bias."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor, nn

from spam_gnn.features import FeatureMatrix
from spam_gnn.initial import glorot
from spam_gnn.randomness import dropout


class Projection(nn.Module):
    """P dropout(H) W + b, with P the identity unless an operator is given.

    H is either the features of a graph, which may be sparse and stay so, or a hidden table (n, inputs).
    PyG's layers want a dense H; with this in front and an identity for their own linear map, they get (n, outputs).

    Args:
        inputs, outputs: columns of H and of the result.
        generator: of the initial weights.
        bias: False where a layer behind adds its own, or a batch norm would take it out again.
    """

    def __init__(self, inputs: int, outputs: int, generator: torch.Generator, *, bias: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(glorot(inputs, outputs, generator))
        self.bias = nn.Parameter(torch.zeros(outputs)) if bias else None

    def forward(
        self,
        h: FeatureMatrix | Tensor,
        rate: float = 0.0,
        generator: torch.Generator | None = None,
        operator: FeatureMatrix | None = None,
    ) -> Tensor:
        if isinstance(h, FeatureMatrix):
            out = h.project(self.weight, rate, generator)
        else:
            out = dropout(h, rate, generator) @ self.weight
        if operator is not None:
            out = operator.project(out)
        return out if self.bias is None else out + self.bias


class LayerStack(nn.Module):
    """H_{l+1} = relu(P dropout(H_l) W_l + b_l), the last layer without the relu: a perceptron, or a GCN if P is given."""

    def __init__(self, sizes: list[int], generator: torch.Generator) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Projection(a, b, generator) for a, b in itertools.pairwise(sizes)])

    def forward(
        self, h: FeatureMatrix | Tensor, rate: float, generator: torch.Generator | None, operator: FeatureMatrix | None = None
    ) -> Tensor:
        last = len(self.layers) - 1
        for place, layer in enumerate(self.layers):
            out: Tensor = layer(h, rate, generator, operator)
            h = out if place == last else torch.relu(out)
        assert isinstance(h, Tensor)
        return h


def drawn_seed(generator: torch.Generator) -> int:
    """A seed for `library_draws`, taken from the generator of an epoch."""
    return int(torch.randint(2**62, (1,), generator=generator))
