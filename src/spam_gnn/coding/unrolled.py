"""`unrolled`: T proximal-gradient steps on each node's LASSO, all nodes and all samples at once."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from spam_gnn.coding.base import Coder, Codes
from spam_gnn.errors import BadInput
from spam_gnn.initial import inverse_softplus
from spam_gnn.kernels import chosen, products
from spam_gnn.kernels.csr import gather_scalar
from spam_gnn.kernels.signed import SignedSums, fused_signed_sums
from spam_gnn.structure import Messages


def soft_threshold(x: Tensor, threshold: Tensor) -> Tensor:
    """sign(x) max(|x| - threshold, 0), the proximal map of the l1 norm."""
    return torch.sign(x) * torch.relu(x.abs() - threshold)


class UnrolledCoder(Coder):
    """ISTA for min_a ||t_i - V_i a||^2 + lambda ||a||_1 over the present neighbours of every node.

    a <- S(a + V_i^T (t_i - V_i a) / L_i, lambda / (2 L_i)),  L_i = sum of ||v_j||^2 over present j.

    L_i bounds the largest eigenvalue of V_i^T V_i, so every step lowers the objective (an absent j counts itself in). The
    residual is an SpMM, the correlation an SDDMM; nothing of size (messages x width) is made.

    Args:
        steps: T.
        penalty: lambda; learned from this start unless `learn_penalty` is False.
    """

    def __init__(self, steps: int = 3, penalty: float = 0.1, learn_penalty: bool = True, kernel: str = "auto") -> None:
        super().__init__(kernel)
        if steps < 1:
            raise BadInput(f"coder_steps: found {steps}; use at least 1")
        if penalty <= 0.0:
            raise BadInput(f"penalty: found {penalty}; the LASSO penalty must be above 0 (coder 'uniform' has none)")
        self.steps = steps
        self.raw_penalty = nn.Parameter(inverse_softplus(penalty))
        self.raw_penalty.requires_grad_(learn_penalty)

    @property
    def penalty(self) -> Tensor:
        """lambda, a scalar tensor."""
        return torch.nn.functional.softplus(self.raw_penalty)

    def forward(self, messages: Messages, target: Tensor, values: Tensor, presence: Tensor) -> Codes:
        penalty = self.penalty
        gather_sum, edge_dot, _ = products(self.kernel, values.device)
        squares = values.square().sum(-1).index_select(1, messages.source)  # (K or 1, m)
        lipschitz = gather_scalar(messages, squares * presence).index_select(1, messages.target)  # (K, m)
        # an absent edge would bring its own norm along; without it the step of a node with no neighbours has no bound
        absent = 1.0 - presence.detach()
        step = (lipschitz + absent * squares).clamp(min=1e-8).reciprocal()
        entering = soft_threshold(edge_dot(messages, target, values) * step, 0.5 * penalty * step)
        for _ in range(self.steps - 1):
            code = entering * presence
            residual = target - gather_sum(messages, code, values)  # (K, n, d_val)
            entering = soft_threshold(code + edge_dot(messages, residual, values) * step, 0.5 * penalty * step)
        return Codes(entering, entering)

    def signed_sums(
        self, messages: Messages, target: Tensor, values: Tensor, positive: Tensor, negative: Tensor
    ) -> SignedSums:
        if chosen(self.kernel, values.device) != "fused":
            return super().signed_sums(messages, target, values, positive, negative)
        return fused_signed_sums(messages, target, values, positive, negative, self.penalty, self.steps)
