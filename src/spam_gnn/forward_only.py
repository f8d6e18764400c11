"""Prediction where nothing is differentiated: the stacked layers on drawn graphs, without what a gradient would need."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from spam_gnn.config import SpaMConfig
from spam_gnn.kernels.infer import Classes, infer_classes, infer_layer
from spam_gnn.kernels.variants import Held
from spam_gnn.layer import S2Conv
from spam_gnn.structure import Messages

_HELD = 1 << 25  # numbers in the rows of all samples between two layers, up to which samples go through them together


def serves(c: SpaMConfig) -> bool:
    """Whether a configuration draws its signs and has nothing between its layers but relu."""
    draws = c.posterior != "none" and c.signs == "sample" and c.estimator == "straight-through" and c.use_sign
    return draws and c.encoder and c.norm == "none" and not c.residual


def log_prob_on(convs: Sequence[S2Conv], classes: Classes, messages: Messages, hidden: Tensor, signs: Tensor) -> Tensor:
    """log p (K, n, C) on K drawn graphs.

    Args:
        convs: layers that fuse (`S2Conv.fuses`).
        hidden: (1, n, d), what enters the first layer of every sample.
        signs: (m, K) int8, in the order of the messages.
    """
    layers, total = [conv.as_layer() for conv in convs], signs.shape[1]
    size = max(1, min(total, _HELD // max(messages.num_nodes * hidden.shape[2], 1)))
    pieces = []
    for start in range(0, total, size):
        samples, state = range(start, min(start + size, total)), Held.of(hidden)
        for layer in layers[:-1]:
            state = infer_layer(messages, state, layer, signs, samples)
        pieces.append(infer_classes(messages, state, layers[-1], signs, samples, classes))
    return pieces[0] if len(pieces) == 1 else torch.cat(pieces)
