"""Compiled relu and dropout, where the numbers lie: what follows a layer, without a tensor of its own."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from spam_gnn.kernels.compiled import compiled

_WORDS = 1 << 18  # random words drawn at a time: the stream does not depend on it, and 2 MiB are used over and over


@compiled
def _relu_and_drop(x: Any, bits: Any, threshold: int, scale: Any) -> None:
    zero = x.dtype.type(0.0)
    for e in range(x.size):
        kept = x[e] > zero and bits[e] >= threshold
        x[e] = x[e] * scale if kept else zero


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


def relu_and_drop_(x: Tensor, rate: float, generator: torch.Generator | None) -> Tensor:
    """`randomness.dropout(relu(x), rate, generator)`, the same draws, in place."""
    level, scale = dropout_scale(rate, generator)
    if level == 0:
        return x.relu_()
    flat = x.reshape(-1).numpy()
    words = torch.empty(min(_WORDS, -(-flat.size // 4)), dtype=torch.int64)
    for start in range(0, flat.size, 4 * _WORDS):
        part = flat[start : start + 4 * _WORDS]
        some = words[: -(-part.size // 4)].random_(-(2**63), None, generator=generator)
        _relu_and_drop(part, some.view(torch.int16).numpy(), level - 2**15, flat.dtype.type(scale))
    return x


def back_through(gradient: Tensor, result: Tensor, scale: float, out: Tensor) -> None:
    """The gradient of what went into :func:`relu_and_drop_`, from its result: (rows, d) each."""
    arrays = [t.numpy() for t in (gradient, result, out)]
    _back(arrays[0], arrays[1], arrays[1].dtype.type(scale), arrays[2])
