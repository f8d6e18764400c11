"""A two-layer network on every message, and its gradient, on the compiled loops."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from spam_gnn.errors import BadInput
from spam_gnn.kernels import network_loops
from spam_gnn.kernels.compiled import array, over_rows
from spam_gnn.structure import Messages


def fused_edge_network(messages: Messages, at_target: Tensor, at_source: Tensor, out: Tensor) -> Tensor:
    """relu(a_i + b_j) W: at_target, at_source (K or 1, n, h), out (h, o) -> (max K, m, o); no (messages x h) tensor is made."""
    samples = max(at_target.shape[0], at_source.shape[0])
    for name, ends in (("at_target", at_target), ("at_source", at_source)):  # compiled code does not check bounds
        if ends.shape[0] not in (1, samples) or ends.shape[1:] != (messages.num_nodes, out.shape[0]):
            wanted = f"({samples} or 1, {messages.num_nodes}, {out.shape[0]})"
            raise BadInput(f"{name}: found shape {tuple(ends.shape)}; use {wanted}")
    return _Network.apply(messages, at_target, at_source, out)  # pyright: ignore[reportReturnType]


class _Network(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, messages: Messages, at_target: Tensor, at_source: Tensor, out: Tensor) -> Tensor:
        samples = max(at_target.shape[0], at_source.shape[0])
        result = out.new_empty(samples, messages.count, out.shape[1])
        pointer, source = messages.arrays
        inputs, into = [array(t) for t in (at_target, at_source, out)], array(result)

        def work(thread: int, first: int, last: int) -> None:  # noqa: ARG001 - threads share nothing here
            network_loops.forward(first, last, pointer, source, *inputs, into)

        over_rows(pointer, result.numel() * out.shape[0], work)
        ctx.messages = messages
        ctx.save_for_backward(at_target, at_source, out)
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, Tensor, Tensor, Tensor]:
        at_target, at_source, out = ctx.saved_tensors
        pointer, source = ctx.messages.arrays
        inputs, flow = [array(t) for t in (at_target, at_source, out)], array(gradients[0])
        to_target = torch.zeros_like(at_target, memory_format=torch.contiguous_format)
        rows = array(to_target)
        own = [
            tuple(torch.zeros_like(t, memory_format=torch.contiguous_format) for t in (at_source, out))
            for _ in range(max(1, torch.get_num_threads()))
        ]

        def work(thread: int, first: int, last: int) -> None:
            network_loops.backward(first, last, pointer, source, *inputs, flow, rows, *(array(t) for t in own[thread]))

        used = over_rows(pointer, flow.size * out.shape[0], work)
        for more in own[1:used]:
            for total, part in zip(own[0], more, strict=True):
                total += part
        return None, to_target, own[0][0], own[0][1]
