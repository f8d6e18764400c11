"""`amortised`: the paper's practical coder, a small network that guesses the coefficient of each message."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from spam_gnn.coding.base import Coder, Codes
from spam_gnn.coding.unrolled import soft_threshold
from spam_gnn.errors import BadInput
from spam_gnn.initial import glorot
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

    def __init__(self, width: int, hidden: int = 16, threshold: float = 0.05, *, generator: torch.Generator) -> None:
        super().__init__()
        if threshold < 0.0:
            raise BadInput(f"threshold: found {threshold}; use 0 or more")
        self.from_target = nn.Parameter(glorot(width, hidden, generator))
        self.from_value = nn.Parameter(glorot(width, hidden, generator))
        self.sign_bias = nn.Parameter(torch.zeros(2, hidden))
        self.out = nn.Parameter(glorot(hidden, 1, generator).squeeze(1))
        self.out_bias = nn.Parameter(torch.ones(()))  # starts near a plain sum of neighbours
        self.register_buffer("threshold", torch.tensor(threshold))

    def forward(self, messages: Messages, target: Tensor, values: Tensor, presence: Tensor) -> Codes:
        at_target = (target @ self.from_target).index_select(1, messages.target)  # (K or 1, m, hidden)
        at_source = (values @ self.from_value).index_select(1, messages.source)
        both = at_target + at_source
        threshold = self.get_buffer("threshold")
        positive, negative = (
            soft_threshold(torch.relu(both + bias) @ self.out + self.out_bias, threshold).expand_as(presence)
            for bias in self.sign_bias
        )
        return Codes(positive, negative)
