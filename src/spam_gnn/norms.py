"""What stands between a layer's sums and its relu: nothing, layer norm, or columns standardised over the nodes at hand."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from spam_gnn.choices import Norm

_SMALLEST = 1e-5  # added to a variance


class ColumnNorm(nn.Module):
    """(x - mean) / sqrt(var + eps) * weight + bias, mean and var of each column over the nodes of each sample: batch norm whose
    batch is the graph. Nothing is kept of past graphs, so training and prediction differ in dropout only.

    Shapes: (K, n, d) -> (K, n, d).
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        var, mean = torch.var_mean(x, dim=1, keepdim=True, correction=0)
        return self.with_moments(x, mean, var)

    def with_moments(self, x: Tensor, mean: Tensor, var: Tensor) -> Tensor:
        """The same for some of the nodes, with the moments (K, 1, d) of all of them."""
        scale = self.weight * (var + _SMALLEST).rsqrt()
        return x * scale + (self.bias - mean * scale)


class Moments:
    """Mean and variance over nodes that come in pieces (K, some, d), added up in double precision."""

    def __init__(self) -> None:
        self._count, self._sum, self._squares = 0, torch.zeros(()), torch.zeros(())

    def add(self, x: Tensor) -> None:
        exact = x.double()
        self._count += x.shape[1]
        self._sum = self._sum + exact.sum(1, keepdim=True)
        self._squares = self._squares + exact.square().sum(1, keepdim=True)

    def found(self, kind: torch.dtype) -> tuple[Tensor, Tensor]:
        """(K, 1, d) each."""
        mean = self._sum / self._count
        return mean.to(kind), (self._squares / self._count - mean.square()).clamp(min=0.0).to(kind)


def make_norm(kind: Norm, width: int) -> nn.Module:
    """The module a setting names; `Identity` for none."""
    return {"layer": nn.LayerNorm, "columns": ColumnNorm}[kind](width) if kind != "none" else nn.Identity()
