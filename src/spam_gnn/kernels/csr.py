"""The two sparse products everything else is built from, for K weightings of one shared edge list.

`gather_sum`   out_i  = sum_j w_ij v_j      (sparse matrix x dense, SpMM)
`edge_dot`     s_ij   = a_i . b_j           (sampled dense x dense, SDDMM)

Each is the other's derivative, so both backward passes are again sparse products: no (messages x width) tensor is ever
made, and cost is linear in the messages. torch's own backward for sparse values would allocate an n x n matrix, which is
why the autograd functions are ours. The K samples run as one block-diagonal CSR matrix.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from spam_gnn.structure import Messages


def _block_structure(messages: Messages, samples: int, shared: bool) -> tuple[Tensor, Tensor]:
    """Row pointers and columns of K copies; `shared` copies all read the same n columns (values without a sample axis)."""
    key = (samples, shared)
    if key not in messages.blocks:
        m, n = messages.count, messages.num_nodes
        steps = torch.arange(samples, device=messages.source.device)
        starts = messages.row_pointer[:-1].unsqueeze(0) + (steps * m).unsqueeze(1)
        rows = torch.cat([starts.reshape(-1), starts.new_tensor([samples * m])])
        shift = 0 if shared else (steps * n).unsqueeze(1)
        columns = (messages.source.unsqueeze(0).expand(samples, m) + shift).reshape(-1)
        messages.blocks[key] = (rows, columns.contiguous())
    return messages.blocks[key]


def _spmm(messages: Messages, weights: Tensor, values: Tensor) -> Tensor:
    """weights (K, m), values (K or 1, n, d) -> (K, n, d)."""
    samples, shared = weights.shape[0], values.shape[0] == 1
    if messages.count == 0:
        return values.new_zeros(samples, messages.num_nodes, values.shape[2])
    rows, columns = _block_structure(messages, samples, shared)
    flat = values.reshape(-1, values.shape[2])
    matrix = torch.sparse_csr_tensor(
        rows, columns, weights.reshape(-1), (samples * messages.num_nodes, flat.shape[0]), check_invariants=False
    )
    return (matrix @ flat).reshape(samples, messages.num_nodes, -1)


def _sddmm(messages: Messages, left: Tensor, right: Tensor) -> Tensor:
    """left (K or 1, n, d) at the target, right (K or 1, n, d) at the source -> (max K, m)."""
    samples = max(left.shape[0], right.shape[0])
    if messages.count == 0:
        return left.new_zeros(samples, 0)
    left = left.expand(samples, -1, -1)
    rows, columns = _block_structure(messages, samples, right.shape[0] == 1)
    flat_left, flat_right = left.reshape(-1, left.shape[2]), right.reshape(-1, right.shape[2])
    pattern = torch.sparse_csr_tensor(
        rows, columns, left.new_zeros(columns.numel()), (flat_left.shape[0], flat_right.shape[0]), check_invariants=False
    )
    dots = torch.sparse.sampled_addmm(pattern, flat_left, flat_right.t(), beta=0.0)
    return dots.values().reshape(samples, messages.count)


def _sum_to(gradient: Tensor, samples: int) -> Tensor:
    """Undo the broadcast of a shared (1, ...) operand."""
    return gradient.sum(0, keepdim=True) if samples == 1 and gradient.shape[0] > 1 else gradient


class _GatherSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, messages: Messages, weights: Tensor, values: Tensor) -> Tensor:
        ctx.messages = messages
        ctx.save_for_backward(weights, values)
        return _spmm(messages, weights, values)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, Tensor | None, Tensor | None]:
        (gradient,) = gradients
        weights, values = ctx.saved_tensors
        to_weights = to_values = None
        if ctx.needs_input_grad[1]:
            to_weights = edge_dot(ctx.messages, gradient, values)
        if ctx.needs_input_grad[2]:
            to_values = _sum_to(spread_back(ctx.messages, weights, gradient), values.shape[0])
        return None, to_weights, to_values


class _EdgeDot(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, messages: Messages, left: Tensor, right: Tensor) -> Tensor:
        ctx.messages = messages
        ctx.save_for_backward(left, right)
        return _sddmm(messages, left, right)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, Tensor | None, Tensor | None]:
        (gradient,) = gradients
        left, right = ctx.saved_tensors
        to_left = to_right = None
        if ctx.needs_input_grad[1]:
            to_left = _sum_to(gather_sum(ctx.messages, gradient, right), left.shape[0])
        if ctx.needs_input_grad[2]:
            to_right = _sum_to(spread_back(ctx.messages, gradient, left), right.shape[0])
        return None, to_left, to_right


def gather_sum(messages: Messages, weights: Tensor, values: Tensor) -> Tensor:
    """Weighted sums over arriving messages: weights (K, m), values (K or 1, n, d) -> (K, n, d)."""
    return _GatherSum.apply(messages, weights, values)  # pyright: ignore[reportReturnType]


def spread_back(messages: Messages, weights: Tensor, values: Tensor) -> Tensor:
    """The transposed sum, over leaving messages: weights (K, m) in message order, values (K or 1, n, d) -> (K, n, d)."""
    return gather_sum(messages.transposed, weights.index_select(1, messages.transpose_order), values)


def edge_dot(messages: Messages, left: Tensor, right: Tensor) -> Tensor:
    """Inner products along messages: left (K or 1, n, d) of the target, right of the source -> (max K, m)."""
    return _EdgeDot.apply(messages, left, right)  # pyright: ignore[reportReturnType]


def gather_scalar(messages: Messages, weights: Tensor) -> Tensor:
    """Sums of one number per message at its target: (K, m) -> (K, n)."""
    index = messages.target.unsqueeze(0).expand_as(weights)
    return weights.new_zeros(weights.shape[0], messages.num_nodes).scatter_add(1, index, weights)
