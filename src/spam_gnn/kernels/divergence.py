"""The structure term over all edges and its gradient, each in one pass: E = mean over edges of sum_z q(z) (log q(z) - b(z)).

As tensor operations it is a dozen passes over (m, 3), most of them waiting for memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from spam_gnn.kernels.compiled import array, compiled, over_range
from spam_gnn.kernels.elementary import exp
from spam_gnn.kernels.memory import fresh

_COST = 100  # multiply-adds that an edge is worth: three exponentials


def mean_divergence(log_prob: Tensor, base: Tensor) -> Tensor:
    """log_prob (m, 3) of q, base (3,) -> a scalar: KL(q || e^base) averaged over the edges, were e^base a distribution."""
    if log_prob.device.type != "cpu":
        return (log_prob.exp() * (log_prob - base)).sum(-1).mean()
    return _MeanDivergence.apply(log_prob, base)  # pyright: ignore[reportReturnType]


@compiled
def _value(first: int, last: int, log_prob: Any, base: Any, out: Any) -> None:
    """Add up edges first .. last - 1."""
    total = 0.0
    for e in range(first, last):
        here = log_prob.dtype.type(0.0)
        for z in range(3):
            here += exp(log_prob[e, z]) * (log_prob[e, z] - base[z])
        total += here
    out[0] = total


@compiled
def _gradient(first: int, last: int, log_prob: Any, base: Any, scale: Any, to_log_prob: Any, to_base: Any) -> None:
    """The gradient of edges first .. last - 1, and their share of that of the base."""
    one = log_prob.dtype.type(1.0)
    for z in range(3):
        total = 0.0
        for e in range(first, last):
            q = scale * exp(log_prob[e, z])
            to_log_prob[e, z] = q * (log_prob[e, z] - base[z] + one)
            total -= q
        to_base[z] = total


class _MeanDivergence(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, log_prob: Tensor, base: Tensor) -> Tensor:
        ctx.save_for_backward(log_prob, base)
        q, b, sums = array(log_prob), array(base.to(log_prob.dtype)), _by_thread(1)

        def work(thread: int, first: int, last: int) -> None:
            _value(first, last, q, b, sums[thread])

        over_range(len(q), _COST * len(q), work)
        return log_prob.new_tensor(sums.sum() / max(len(q), 1))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        log_prob, base = ctx.saved_tensors
        q, b, sums = array(log_prob), array(base.to(log_prob.dtype)), _by_thread(3)
        to_log_prob = fresh(*log_prob.shape, like=log_prob)
        scale, out = q.dtype.type(float(gradients[0]) / max(len(q), 1)), to_log_prob.numpy()

        def work(thread: int, first: int, last: int) -> None:
            _gradient(first, last, q, b, scale, out, sums[thread])

        over_range(len(q), _COST * len(q), work)
        return to_log_prob, torch.from_numpy(sums.sum(0)).to(base)


def _by_thread(count: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Zeros for what each thread adds up, (threads, count)."""
    return np.zeros((max(1, torch.get_num_threads()), count))
