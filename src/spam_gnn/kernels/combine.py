"""Compiled parts of the aggregation rule: the two normalised halves of what arrives at a node, forward and backward.

    support = (s v_i + plus) / (s + plus mass),    oppose = gamma minus / (s + gamma minus mass).
"""

from __future__ import annotations

from typing import Any

from spam_gnn.kernels.compiled import elementwise, inlined


@elementwise
def keep_halves(
    plus: Any, minus: Any, values: Any, i: int, own: Any, support: Any, oppose: Any, out: Any, k: int, place: int
) -> None:
    """out_(k, place) = [(plus + own v_i) support | minus oppose]; with the scales 0, 1, 1 the sums as they are."""
    for x in range(plus.size):
        out[k, place, 0, x] = (plus[x] + own * values[i, x]) * support
    for x in range(minus.size):
        out[k, place, 1, x] = minus[x] * oppose


@inlined
def scales_of(plus_mass: Any, minus_mass: Any, own: Any, gamma: Any) -> tuple[Any, Any]:
    """1 / (s + plus mass) and 1 / (s + gamma minus mass)."""
    one = own / own
    return one / (own + plus_mass), one / (own + gamma * minus_mass)


@inlined
def flows_with(flows: Any, k: int, place: int, plus: Any, minus: Any, values: Any, i: int) -> tuple[Any, Any, Any]:
    """Inner products of the gradient of the two halves with plus, with minus, and of the first with v_i."""
    with_plus = with_minus = with_own = values.dtype.type(0.0)
    for x in range(plus.size):
        with_plus += flows[k, place, 0, x] * plus[x]
        with_minus += flows[k, place, 1, x] * minus[x]
        with_own += flows[k, place, 0, x] * values[i, x]
    return with_plus, with_minus, with_own


@elementwise
def scaled_flows(
    flows: Any, k: int, place: int, support: Any, oppose: Any, plus: Any, minus: Any, own: Any, to_values: Any, i: int
) -> None:
    """The gradients of plus and minus from those of the halves; what the node's own part gets is added to `to_values`."""
    for x in range(plus.size):
        plus[x] = flows[k, place, 0, x] * support
        minus[x] = flows[k, place, 1, x] * oppose
    for x in range(plus.size):
        to_values[i, x] += own * plus[x]


@inlined
def halves_back(
    plus: Any, minus: Any, flows: Any, halves: Any, k: int, place: int, values: Any, i: int, plus_mass: Any, minus_mass: Any,
    own: Any, gamma: Any, to_values: Any, to_scalars: Any,
) -> tuple[Any, Any]:  # fmt: skip
    """plus and minus hold the sums and become their gradients; `halves` is made again; returns the gradients of the two masses.

    `to_scalars` gains the gradients of s and gamma, `to_values` that of the node's own part.
    """
    support, oppose = scales_of(plus_mass, minus_mass, own, gamma)
    with_plus, with_minus, with_own = flows_with(flows, k, place, plus, minus, values, i)
    keep_halves(plus, minus, values, i, own, support, gamma * oppose, halves, k, place)
    scaled_flows(flows, k, place, support, gamma * oppose, plus, minus, own, to_values, i)
    to_plus_mass = -(with_plus + own * with_own) * support * support
    to_minus_mass = -with_minus * gamma * oppose * oppose  # of gamma times the mass
    to_scalars[0] += with_own * support + to_plus_mass + to_minus_mass
    to_scalars[1] += with_minus * own * oppose * oppose
    return to_plus_mass, gamma * to_minus_mass
