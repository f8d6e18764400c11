"""The coder contract: from targets, neighbour values and a sampled graph to one coefficient per message."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from torch import Tensor, nn

from spam_gnn.kernels import products
from spam_gnn.kernels.csr import gather_scalar
from spam_gnn.kernels.signed import SignedSums
from spam_gnn.structure import Messages


@dataclass(frozen=True, eq=False)
class Codes:
    """Coefficients alpha of K sampled graphs over m messages.

    A coefficient is defined for *every* message. For an edge that is present in sample k it is the code; for one drawn
    absent it is the coefficient the edge would enter with. The layer multiplies by the drawn indicators, so an absent
    edge sends nothing, yet the loss still has a derivative with respect to its presence.

    Args:
        positive: (K, m), the coefficient of the message if its edge is positive.
        negative: (K, m), the same if its edge is negative. Coders that do not look at the sign return one tensor twice.
    """

    positive: Tensor
    negative: Tensor


class Coder(nn.Module, ABC):
    """Local sparse coding (paper Eq. local-lasso): alpha_i = argmin ||t_i - V_i a||^2 + lambda ||a||_1 for each node i.

    Args:
        kernel: which version of the sparse work to use, see `spam_gnn.kernels`.
    """

    def __init__(self, kernel: str = "auto") -> None:
        super().__init__()
        self.kernel = kernel

    @abstractmethod
    def forward(self, messages: Messages, target: Tensor, values: Tensor, presence: Tensor) -> Codes:
        """Code every node over its neighbours.

        Args:
            messages: the m messages of the graph, shared by the K samples.
            target: t, (K, n, d_val), or (1, n, d_val) where the samples share it.
            values: v, (K, n, d_val) or (1, n, d_val).
            presence: (K, m) in [0, 1], 1 where the edge is drawn present with either sign. May carry a gradient.

        Returns:
            Codes of shape (K, m).
        """

    def signed_sums(
        self, messages: Messages, target: Tensor, values: Tensor, positive: Tensor, negative: Tensor
    ) -> SignedSums:
        """Code, then sum what arrives: sum z+ alpha v, sum z- |alpha| v and their masses; z+, z- (K, m).

        Coders whose work can be fused into one pass over the messages override this.
        """
        codes = self(messages, target, values, positive + negative)
        gather_sum = products(self.kernel, values.device).gather_sum
        size_positive, size_negative = codes.positive.abs(), codes.negative.abs()
        return SignedSums(
            gather_sum(messages, positive * codes.positive, values), gather_sum(messages, negative * size_negative, values),
            gather_scalar(messages, positive * size_positive), gather_scalar(messages, negative * size_negative),
        )  # fmt: skip
