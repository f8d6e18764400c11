"""Code-and-aggregate for K signed graphs over one shared edge list, and its gradient, on the compiled loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spam_gnn.errors import BadInput
from spam_gnn.kernels import signed_loops
from spam_gnn.kernels.compiled import array, over_rows
from spam_gnn.structure import Messages


@dataclass(frozen=True, eq=False)
class SignedSums:
    """What arrives at each node: sums over supporting and over opposing messages, and how much weight they had.

    Args:
        plus: sum_j z+_ij alpha_ij v_j, (K, n, d).
        minus: sum_j z-_ij |alpha_ij| v_j, (K, n, d).
        plus_mass, minus_mass: the same sums of |alpha_ij|, (K, n).
    """

    plus: Tensor
    minus: Tensor
    plus_mass: Tensor
    minus_mass: Tensor


def fused_signed_sums(
    messages: Messages, target: Tensor, values: Tensor, positive: Tensor, negative: Tensor, penalty: Tensor, steps: int
) -> SignedSums:
    """One pass per node: T = `steps` ISTA steps over the present neighbours (0: every coefficient is 1), then the sums.

    Args:
        target, values: (K or 1, n, d).
        positive, negative: z+ and z-, (K, m).
        penalty: lambda, a scalar tensor.
    """
    samples, n = positive.shape[0], messages.num_nodes
    for name, operand in (("target", target), ("values", values)):  # compiled code does not check bounds
        if operand.shape[0] not in (1, samples) or operand.shape[1:] != (n, values.shape[2]):
            raise BadInput(f"{name}: found shape {tuple(operand.shape)}; use ({samples} or 1, {n}, {values.shape[2]})")
    if positive.shape != (samples, messages.count) or negative.shape != positive.shape:
        raise BadInput(f"signs: found shape {tuple(positive.shape)}; use one row per sample of {messages.count} messages")
    return SignedSums(*_Signed.apply(messages, target, values, positive, negative, penalty, steps))  # pyright: ignore


def _zeros(like: Tensor) -> Tensor:
    return torch.zeros_like(like, memory_format=torch.contiguous_format)


def _cost(messages: Messages, samples: int, width: int, steps: int) -> int:
    return messages.count * samples * width * (1 + 2 * steps)


class _Signed(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, messages: Messages, target: Tensor, values: Tensor, positive: Tensor, negative: Tensor, penalty: Tensor,
        steps: int,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
        keep = any(ctx.needs_input_grad)
        samples, n, width = positive.shape[0], messages.num_nodes, values.shape[2]
        squares = values.square().sum(-1)
        plus, minus = values.new_empty(samples, n, width), values.new_empty(samples, n, width)
        plus_mass, minus_mass = values.new_empty(samples, n), values.new_empty(samples, n)
        codes = values.new_empty(steps, samples, messages.count) if keep else None
        longest = int(messages.degree.max()) if n else 0
        inputs = [array(t) for t in (target, values, squares, positive, negative)]
        weight = inputs[1].dtype.type(float(penalty))
        outputs = [array(t) for t in (plus, minus, plus_mass, minus_mass)]
        pointer, source = array(messages.row_pointer), array(messages.source)

        def work(thread: int, first: int, last: int) -> None:  # noqa: ARG001 - threads share nothing here
            space = array(codes) if codes is not None else np.empty((1, 1, longest), inputs[1].dtype)
            signed_loops.forward(first, last, pointer, source, *inputs, weight, space, *outputs, steps, codes is not None)

        over_rows(pointer, _cost(messages, samples, width, steps), work)
        if keep:
            ctx.messages, ctx.steps = messages, steps
            ctx.save_for_backward(target, values, squares, positive, negative, penalty, codes)
        return plus, minus, plus_mass, minus_mass

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        target, values, squares, positive, negative, penalty, codes = ctx.saved_tensors
        messages, steps = ctx.messages, ctx.steps
        inputs = [array(t) for t in (target, values, squares, positive, negative)]
        weight = inputs[1].dtype.type(float(penalty))
        flows = [array(g) for g in gradients]
        pointer, source, kept = array(messages.row_pointer), array(messages.source), array(codes)
        threads = max(1, torch.get_num_threads())
        to_target, to_positive, to_negative = (_zeros(t) for t in (target, positive, negative))
        shared = [array(t) for t in (to_target, to_positive, to_negative)]
        own = [(_zeros(values), _zeros(squares), values.new_zeros(1)) for _ in range(threads)]

        def work(thread: int, first: int, last: int) -> None:
            to_values, to_squares, to_penalty = (array(t) for t in own[thread])
            signed_loops.backward(
                first, last, pointer, source, *inputs, weight, kept, *flows, steps,
                shared[0], to_values, to_squares, shared[1], shared[2], to_penalty,
            )  # fmt: skip

        used = over_rows(pointer, _cost(messages, positive.shape[0], values.shape[2], steps), work)
        to_values, to_squares, to_penalty = own[0]
        for more in own[1:used]:
            for total, part in zip(own[0], more, strict=True):
                total += part
        if steps > 0:
            to_values += 2.0 * values * to_squares.unsqueeze(-1)
        return None, to_target, to_values, to_positive, to_negative, to_penalty.reshape(()), None
