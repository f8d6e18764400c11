"""`amortised`: the paper's practical coder, a small network that guesses the coefficient of each message."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from spam_gnn.coding.base import Coder, Codes
from spam_gnn.coding.unrolled import soft_threshold
from spam_gnn.errors import BadInput
from spam_gnn.initial import glorot
from spam_gnn.kernels import products
from spam_gnn.structure import Messages


class AmortisedCoder(Coder):
    """alpha_ij = S(MLP(t_i, v_j, sign), threshold), one guess for each sign a message may have.

    The first layer is split over the two ends, so it costs a product per node, not per message:
    MLP(t_i, v_j, s) = w . relu(U t_i + W v_j + b_s) + c.

    Args:
        width: d_val, the size of t and v.
        hidden: units of the network.
        threshold: of the soft threshold; small guesses become exactly zero.
    """

    def __init__(
        self, width: int, hidden: int = 16, threshold: float = 0.05, *, generator: torch.Generator, kernel: str = "auto"
    ) -> None:
        super().__init__(kernel)
        if threshold < 0.0:
            raise BadInput(f"threshold: found {threshold}; use 0 or more")
        self.from_target = nn.Parameter(glorot(width, hidden, generator))
        self.from_value = nn.Parameter(glorot(width, hidden, generator))
        self.sign_bias = nn.Parameter(torch.zeros(2, hidden))
        self.out = nn.Parameter(glorot(hidden, 1, generator).squeeze(1))
        self.out_bias = nn.Parameter(torch.ones(()))  # starts near a plain sum of neighbours
        self.register_buffer("threshold", torch.tensor(threshold))

    def forward(self, messages: Messages, target: Tensor, values: Tensor, presence: Tensor) -> Codes:
        at_target, at_source = target @ self.from_target, values @ self.from_value  # (K or 1, n, hidden)
        network = products(self.kernel, values.device).edge_network
        threshold = self.get_buffer("threshold")
        guesses = (
            network(messages, at_target + bias, at_source, self.out.unsqueeze(1)).squeeze(-1) + self.out_bias
            for bias in self.sign_bias
        )
        return Codes(*(soft_threshold(guess, threshold).expand_as(presence) for guess in guesses))
