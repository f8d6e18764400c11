"""`uniform`: no coding at all, every present neighbour counts the same (the NoSparsity ablation)."""

from __future__ import annotations

import torch
from torch import Tensor

from spam_gnn.coding.base import Coder, Codes
from spam_gnn.structure import Messages


class UniformCoder(Coder):
    """alpha_ij = 1."""

    def forward(self, messages: Messages, target: Tensor, values: Tensor, presence: Tensor) -> Codes:  # noqa: ARG002
        ones = torch.ones_like(presence)
        return Codes(ones, ones)
