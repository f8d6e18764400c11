"""Compiled relu and dropout in one pass, with the draws of `randomness.dropout`: what follows a layer or an encoder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from spam_gnn.kernels.compiled import array, compiled
from spam_gnn.kernels.memory import fresh
from spam_gnn.randomness import dropout

_WORDS = 1 << 18  # random words drawn at a time: the stream does not depend on it, and 2 MiB are used over and over


@compiled
def _relu_and_drop(x: Any, bits: Any, threshold: int, scale: Any) -> None:
    zero = x.dtype.type(0.0)
    for e in range(x.size):
        kept = x[e] > zero and bits[e] >= threshold
        x[e] = x[e] * scale if kept else zero


@compiled
def _drop(x: Any, bits: Any, threshold: int, scale: Any, out: Any) -> None:
    zero = x.dtype.type(0.0)
    for e in range(x.size):
        out[e] = x[e] * scale if bits[e] >= threshold else zero


@compiled
def _back(gradient: Any, result: Any, scale: Any, out: Any) -> None:
    zero = result.dtype.type(0.0)
    for r in range(result.shape[0]):
        for c in range(result.shape[1]):
            out[r, c] = gradient[r, c] * scale if result[r, c] > zero else zero


def dropout_scale(rate: float, generator: torch.Generator | None) -> tuple[int, float]:
    """The level of `randomness.dropout` among 16-bit numbers, and what kept entries are multiplied by."""
    level = 0 if generator is None or rate <= 0.0 else min(round(rate * 2**16), 2**16 - 1)
    return level, 1.0 / (1.0 - level / 2**16)


def _with_bits(size: int, generator: torch.Generator | None, work: Callable[[int, int, Any], None]) -> None:
    """work(first, last, random 16-bit numbers) over parts of `size` entries, drawn as `randomness.dropout` draws them."""
    words = torch.empty(min(_WORDS, -(-size // 4)), dtype=torch.int64)
    for first in range(0, size, 4 * _WORDS):
        last = min(first + 4 * _WORDS, size)
        some = words[: -(-(last - first) // 4)].random_(-(2**63), None, generator=generator)
        work(first, last, some.view(torch.int16).numpy())


def relu_and_drop_(x: Tensor, rate: float, generator: torch.Generator | None) -> Tensor:
    """`randomness.dropout(relu(x), rate, generator)`, the same draws, in place."""
    level, scale = dropout_scale(rate, generator)
    if level == 0:
        return x.relu_()
    flat = x.reshape(-1).numpy()

    def work(first: int, last: int, bits: Any) -> None:
        _relu_and_drop(flat[first:last], bits, level - 2**15, flat.dtype.type(scale))

    _with_bits(flat.size, generator, work)
    return x


def dropped(x: Tensor, rate: float, generator: torch.Generator | None) -> Tensor:
    """`randomness.dropout` of numbers that are constant: no gradient flows to them."""
    level, scale = dropout_scale(rate, generator)
    if level == 0 or x.device.type != "cpu":
        return dropout(x, rate, generator)
    flat, out = array(x).reshape(-1), fresh(*x.shape, like=x)
    into = out.view(-1).numpy()

    def work(first: int, last: int, bits: Any) -> None:
        _drop(flat[first:last], bits, level - 2**15, flat.dtype.type(scale), into[first:last])

    _with_bits(flat.size, generator, work)
    return out


def relu_dropout(x: Tensor, rate: float, generator: torch.Generator | None) -> Tensor:
    """`randomness.dropout(relu(x), rate, generator)` of (rows, d) numbers that nobody else reads: on the CPU in their place."""
    if x.device.type != "cpu" or not x.is_contiguous():
        return dropout(torch.relu(x), rate, generator)
    if not torch.is_grad_enabled():
        return relu_and_drop_(x, rate, generator)
    return _ReluDropout.apply(x, rate, generator)  # pyright: ignore[reportReturnType]


class _ReluDropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, rate: float, generator: torch.Generator | None) -> Tensor:
        relu_and_drop_(x, rate, generator)
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        ctx.scale = dropout_scale(rate, generator)[1]
        return x

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (result,) = ctx.saved_tensors
        out = fresh(*result.shape, like=result)
        back_through(gradients[0].contiguous(), result, ctx.scale, out)
        return out, None, None


def back_through(gradient: Tensor, result: Tensor, scale: float, out: Tensor) -> None:
    """The gradient of what went into :func:`relu_and_drop_`, from its result: (rows, d) each."""
    arrays = [t.numpy() for t in (gradient, result, out)]
    _back(arrays[0], arrays[1], arrays[1].dtype.type(scale), arrays[2])
