"""Sums of one number per message at the node it reaches, (C, m) -> (C, n): messages are sorted by their target, so each sum is
over numbers that lie side by side. torch's scatter looks up the place of every one of them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from spam_gnn.kernels import chosen
from spam_gnn.kernels.compiled import array, compiled
from spam_gnn.kernels.csr import gather_scalar
from spam_gnn.structure import Messages


@compiled
def _sums(pointer: Any, values: Any, out: Any) -> None:
    for c in range(values.shape[0]):
        for i in range(pointer.size - 1):
            total = values.dtype.type(0.0)
            for e in range(pointer[i], pointer[i + 1]):
                total += values[c, e]
            out[c, i] = total


class _SegmentSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, messages: Messages, values: Tensor) -> Tensor:
        ctx.messages = messages
        out = values.new_empty(values.shape[0], messages.num_nodes)
        _sums(messages.arrays[0], array(values), out.numpy())
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, Tensor]:
        return None, gradients[0].index_select(1, ctx.messages.target)


def segment_sum(messages: Messages, values: Tensor) -> Tensor:
    """The same as `csr.gather_scalar`, compiled where that is possible."""
    if chosen("auto", values.device) != "fused":
        return gather_scalar(messages, values)
    return _SegmentSum.apply(messages, values)  # pyright: ignore[reportReturnType]
