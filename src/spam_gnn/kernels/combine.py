"""The aggregation rule's normalised halves in one pass over the nodes, for predictions (no gradient)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from spam_gnn.kernels.compiled import array, compiled
from spam_gnn.kernels.signed import SignedSums


@compiled
def _halves(plus: Any, minus: Any, plus_mass: Any, minus_mass: Any, values: Any, own: Any, gamma: Any, out: Any) -> None:
    samples, nodes, width = plus.shape
    one = values.dtype.type(1.0)
    for k in range(samples):
        kv = k if values.shape[0] > 1 else 0
        for i in range(nodes):
            support, oppose = one / (own + plus_mass[k, i]), gamma / (own + gamma * minus_mass[k, i])
            for x in range(width):
                out[k, i, x] = (plus[k, i, x] + own * values[kv, i, x]) * support
                out[k, i, width + x] = minus[k, i, x] * oppose


def support_and_oppose(sums: SignedSums, values: Tensor, own: Tensor, gamma: Tensor) -> Tensor:
    """(s v_i + plus) / (s + plus mass) beside gamma minus / (s + gamma minus mass): (K, n, 2 d)."""
    samples, nodes, width = sums.plus.shape
    out = torch.empty(samples, nodes, 2 * width, dtype=values.dtype)
    kind = array(values).dtype.type
    parts = [array(t) for t in (sums.plus, sums.minus, sums.plus_mass, sums.minus_mass, values)]
    _halves(*parts, kind(float(own)), kind(float(gamma)), array(out))
    return out
