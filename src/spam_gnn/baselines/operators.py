"""Fixed graph operators D^l (A [+ I]) D^r as sparse products, and the range checks that settings share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from spam_gnn.errors import BadInput
from spam_gnn.graph import Graph
from spam_gnn.kernels.csr import gather_sum
from spam_gnn.structure import Messages


@dataclass(frozen=True, eq=False)
class Operator:
    """A constant sparse matrix over the edges of a graph and its diagonal, ready to multiply.

    Args:
        messages: the edges it runs along, m of them.
        weights: (1, m), the entry of each message.
        loop: (n, 1), the diagonal; None where it is empty.
    """

    messages: Messages
    weights: Tensor
    loop: Tensor | None

    def __call__(self, x: Tensor) -> Tensor:
        """(n, d) -> (n, d)."""
        spread = gather_sum(self.messages, self.weights.to(x.dtype), x.unsqueeze(0)).squeeze(0)
        return spread if self.loop is None else spread + self.loop.to(x.dtype) * x


def degree_operator(graph: Graph, left: float, right: float, *, loops: bool) -> Operator:
    """D^left (A + I) D^right with D the degrees of A + I, or D^left A D^right where `loops` is False.

    (-1/2, -1/2) is the symmetric normalisation of GCN, (-1, 0) the mean over neighbours, (0, 0) the plain sum. A node without
    neighbours has degree 0 when there are no loops; its row and column are empty, whatever the exponents.
    """
    key = f"degree operator {left} {right} {loops}"
    if key not in graph.derived:
        messages = graph.messages("in")
        degree = messages.degree.to(torch.float32) + float(loops)
        at_target, at_source = _power(degree, left), _power(degree, right)
        weights = at_target[messages.target] * at_source[messages.source]
        loop = (at_target * at_source).unsqueeze(1) if loops else None
        graph.derived[key] = Operator(messages, weights.unsqueeze(0), loop)
    return graph.derived[key]


def _power(degree: Tensor, exponent: float) -> Tensor:
    return torch.where(degree > 0, degree.clamp(min=1.0) ** exponent, 0.0)


def check_between(settings: Any, low: float, high: float, *names: str) -> None:
    """Refuse a setting outside [low, high], naming it."""
    for name in names:
        value = getattr(settings, name)
        if not low <= value <= high:
            bound = f"{low:g} or more" if high == float("inf") else f"a number from {low:g} to {high:g}"
            raise BadInput(f"{name}: found {value}; use {bound}")
