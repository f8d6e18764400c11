"""Sums of Chebyshev polynomials of a linear operator, which is only ever applied, and the coefficients of a function."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

Operator = Callable[[Tensor], Tensor]  # a linear map with spectrum in [-1, 1]
NODES = 64  # points of the quadrature behind `coefficients`


def chebyshev_sum(operator: Operator, terms: list[Tensor]) -> Tensor:
    """sum_k T_k(L~) Z_k for terms Z_0 .. Z_K, by Clenshaw's recurrence: K products with L~."""
    later = latest = None  # b_{k+1}, b_{k+2}
    for term in reversed(terms[1:]):
        value = term if later is None else term + 2.0 * operator(later)
        later, latest = (value if latest is None else value - latest), later
    assert later is not None
    total = terms[0] + operator(later)
    return total if latest is None else total - latest


def coefficients(function: Callable[[Tensor], Tensor], order: int) -> Tensor:
    """(order + 1,): c_k with f(x) ~ sum_k c_k T_k(x) on [-1, 1], differentiable in whatever `function` depends on.

    c_k = (2 - [k = 0]) / N sum_j f(cos t_j) cos(k t_j), t_j = pi (j + 1/2) / N.
    """
    angle = math.pi * (torch.arange(NODES) + 0.5) / NODES
    powers = torch.arange(order + 1, dtype=angle.dtype)
    factor = torch.where(powers == 0, 1.0, 2.0) / NODES
    return factor * (torch.cos(powers.unsqueeze(1) * angle) @ function(angle.cos()))
