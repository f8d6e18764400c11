"""`uniform`: no coding at all, every present neighbour counts the same (the NoSparsity ablation)."""

from __future__ import annotations

import torch
from torch import Tensor

from spam_gnn.coding.base import Coder, Codes
from spam_gnn.kernels import chosen
from spam_gnn.kernels.signed import SignedSums, fused_signed_sums
from spam_gnn.structure import Messages


class UniformCoder(Coder):
    """alpha_ij = 1."""

    def forward(self, messages: Messages, target: Tensor, values: Tensor, presence: Tensor) -> Codes:  # noqa: ARG002
        ones = torch.ones_like(presence)
        return Codes(ones, ones)

    def signed_sums(
        self, messages: Messages, target: Tensor, values: Tensor, positive: Tensor, negative: Tensor
    ) -> SignedSums:
        if chosen(self.kernel, values.device) != "fused":
            return super().signed_sums(messages, target, values, positive, negative)
        return fused_signed_sums(messages, values, values, positive, negative, values.new_zeros(()), steps=0)
