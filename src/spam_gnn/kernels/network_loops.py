"""Compiled loops of a two-layer network on every message: relu(a_i + b_j) W, its first layer done on nodes beforehand."""

from __future__ import annotations

from typing import Any

import numpy as np

from spam_gnn.kernels.compiled import compiled


@compiled
def forward(first: int, last: int, pointer: Any, source: Any, at_target: Any, at_source: Any, out: Any, result: Any) -> None:
    """Rows first .. last - 1: result (K, m, o) from at_target, at_source (K or 1, n, h) and out (h, o)."""
    samples, width, outputs = result.shape[0], out.shape[0], out.shape[1]
    hidden = np.empty(width, out.dtype)
    for i in range(first, last):
        for k in range(samples):
            a = at_target[k if at_target.shape[0] > 1 else 0, i]
            b = at_source[k if at_source.shape[0] > 1 else 0]
            for e in range(pointer[i], pointer[i + 1]):
                j = source[e]
                for x in range(width):
                    hidden[x] = max(a[x] + b[j, x], out.dtype.type(0.0))
                for o in range(outputs):
                    total = out.dtype.type(0.0)
                    for x in range(width):
                        total += hidden[x] * out[x, o]
                    result[k, e, o] = total


@compiled
def backward(
    first: int, last: int, pointer: Any, source: Any, at_target: Any, at_source: Any, out: Any, flow: Any,
    to_target: Any, to_source: Any, to_out: Any,
) -> None:  # fmt: skip
    """Gradients of rows first .. last - 1; `to_source` and `to_out` are the calling thread's own and are added to."""
    samples, width, outputs = flow.shape[0], out.shape[0], out.shape[1]
    for i in range(first, last):
        for k in range(samples):
            kt, ks = k if at_target.shape[0] > 1 else 0, k if at_source.shape[0] > 1 else 0
            a, b = at_target[kt, i], at_source[ks]
            for e in range(pointer[i], pointer[i + 1]):
                j = source[e]
                for x in range(width):
                    hidden = a[x] + b[j, x]
                    if hidden > 0:
                        slope = out.dtype.type(0.0)
                        for o in range(outputs):
                            slope += flow[k, e, o] * out[x, o]
                            to_out[x, o] += flow[k, e, o] * hidden
                        to_target[kt, i, x] += slope
                        to_source[ks, j, x] += slope
