"""The coder contract: from targets, neighbour values and a sampled graph to one coefficient per message."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from torch import Tensor, nn

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
    """Local sparse coding (paper Eq. local-lasso): alpha_i = argmin ||t_i - V_i a||^2 + lambda ||a||_1 for each node i."""

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
