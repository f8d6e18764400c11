"""The sparse products in plain torch, gather and scatter: the reference the others are held against, on any device.

They make (messages x width) tensors, which is why they are the slowest on large graphs.
"""

from __future__ import annotations

import torch
from torch import Tensor

from spam_gnn.structure import Messages


def gather_sum(messages: Messages, weights: Tensor, values: Tensor) -> Tensor:
    """out_i = sum_j w_ij v_j: weights (K, m), values (K or 1, n, d) -> (K, n, d)."""
    sent = weights.unsqueeze(-1) * values.index_select(1, messages.source)
    out = sent.new_zeros(sent.shape[0], messages.num_nodes, sent.shape[2])
    return out.index_add(1, messages.target, sent)


def edge_dot(messages: Messages, left: Tensor, right: Tensor) -> Tensor:
    """s_ij = a_i . b_j: left (K or 1, n, d) of the target, right of the source -> (max K, m)."""
    return (left.index_select(1, messages.target) * right.index_select(1, messages.source)).sum(-1)


def edge_network(messages: Messages, at_target: Tensor, at_source: Tensor, out: Tensor) -> Tensor:
    """relu(a_i + b_j) W: at_target, at_source (K or 1, n, h), out (h, o) -> (max K, m, o)."""
    return torch.relu(at_target.index_select(1, messages.target) + at_source.index_select(1, messages.source)) @ out
