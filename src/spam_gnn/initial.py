"""How fresh weight matrices are drawn."""

from __future__ import annotations

import torch
from torch import Tensor


def glorot(rows: int, columns: int, generator: torch.Generator) -> Tensor:
    """(rows, columns), uniform with the variance that keeps signals on one scale through the layer."""
    bound = (6.0 / (rows + columns)) ** 0.5
    return torch.empty(rows, columns).uniform_(-bound, bound, generator=generator)
