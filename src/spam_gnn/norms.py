"""What stands between a layer's sums and its relu: nothing, layer norm, or columns standardised over the nodes at hand."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from spam_gnn.choices import Norm

_SMALLEST = 1e-5  # added to a variance
_ROWS = 1024  # nodes whose numbers stay in the cache between the operations on them


class _Standardised(torch.autograd.Function):
    """(x - mean) / sqrt(var + eps) * weight + bias over dimension 1, and its gradient, a block of nodes at a time:
    `torch.var_mean` takes ten times as long, and torch's own batch norm loses two digits where the mean is large."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        mean = x.mean(1, keepdim=True)
        var = x.new_zeros(mean.shape)
        for block in x.split(_ROWS, 1):
            var += (block - mean).square_().sum(1, keepdim=True)
        spread = (var / x.shape[1] + _SMALLEST).rsqrt()
        ctx.save_for_backward(x, mean, spread, weight)
        scale = weight * spread
        return torch.addcmul(bias - mean * scale, x, scale)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        (flow,), (x, mean, spread, weight) = gradients, ctx.saved_tensors
        to_bias, along = flow.sum(1, keepdim=True), torch.zeros_like(mean)
        for block, part in zip(x.split(_ROWS, 1), flow.split(_ROWS, 1), strict=True):
            along += (block - mean).mul_(part).sum(1, keepdim=True)
        scale, n = weight * spread, x.shape[1]
        back = -scale * spread.square() * along / n  # of x, beside scale * flow and what is the same for all nodes
        to_x = torch.addcmul(-scale * to_bias / n - back * mean, x, back).addcmul_(flow, scale)
        return to_x, (along * spread).sum((0, 1)), to_bias.sum((0, 1))


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
        return _Standardised.apply(x, self.weight, self.bias)  # pyright: ignore[reportReturnType]

    def with_moments(self, x: Tensor, mean: Tensor, var: Tensor) -> Tensor:
        """The same for some of the nodes, with the moments (K, 1, d) of all of them."""
        scale = self.weight * (var + _SMALLEST).rsqrt()
        return torch.addcmul(self.bias - mean * scale, x, scale)


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
