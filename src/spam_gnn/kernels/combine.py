"""Compiled parts of the aggregation rule: the two normalised halves of what arrives at a node, forward and backward.

    support = (s v_i + plus) / (s + plus mass),    oppose = gamma minus / (s + gamma minus mass).

A row holds the two sums side by side, (2 d,), and is turned into the two halves where it lies.
"""

from __future__ import annotations

from typing import Any

from spam_gnn.kernels.compiled import inlined


@inlined
def to_halves(row: Any, values: Any, i: int, plus_mass: Any, minus_mass: Any, own: Any, gamma: Any) -> None:
    """[plus | minus] -> [support | oppose]."""
    width = values.shape[1]
    support, oppose = values.dtype.type(1.0) / (own + plus_mass), gamma / (own + gamma * minus_mass)
    for x in range(width):
        row[x] = (row[x] + own * values[i, x]) * support
        row[width + x] *= oppose


@inlined
def halves_back(
    row: Any, flow: Any, values: Any, i: int, plus_mass: Any, minus_mass: Any, own: Any, gamma: Any,
    to_values: Any, to_scalars: Any,
) -> tuple[Any, Any]:  # fmt: skip
    """`row` holds the sums and becomes the halves; `flow` holds the halves' gradient and becomes the sums'.

    `to_scalars` gains the gradients of s and gamma, `to_values` that of the node's own part; returns those of the two masses.
    """
    kind, width = values.dtype.type, values.shape[1]
    support, oppose = kind(1.0) / (own + plus_mass), kind(1.0) / (own + gamma * minus_mass)
    with_plus = with_minus = with_own = kind(0.0)
    for x in range(width):
        with_plus += flow[x] * row[x]
        with_minus += flow[width + x] * row[width + x]
        with_own += flow[x] * values[i, x]
    to_halves(row, values, i, plus_mass, minus_mass, own, gamma)
    for x in range(width):
        flow[x] *= support
        flow[width + x] *= gamma * oppose
        to_values[i, x] += own * flow[x]
    to_plus_mass = -(with_plus + own * with_own) * support * support
    to_minus_mass = -with_minus * gamma * oppose * oppose  # of gamma times the mass
    to_scalars[0] += with_own * support + to_plus_mass + to_minus_mass
    to_scalars[1] += with_minus * own * oppose * oppose
    return to_plus_mass, gamma * to_minus_mass
