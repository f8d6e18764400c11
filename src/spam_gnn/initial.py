"""How fresh parameters start."""

from __future__ import annotations

import torch
from torch import Tensor


def glorot(rows: int, columns: int, generator: torch.Generator) -> Tensor:
    """(rows, columns), uniform with the variance that keeps signals on one scale through the layer."""
    bound = (6.0 / (rows + columns)) ** 0.5
    return torch.empty(rows, columns).uniform_(-bound, bound, generator=generator)


def inverse_softplus(value: float) -> Tensor:
    """The x with softplus(x) = value > 0, so that a learned positive number starts where it was set; any size of value."""
    positive = torch.tensor(float(value)).clamp(min=1e-4)
    return positive + torch.log(-torch.expm1(-positive))
