"""`ExactCoder`: the LASSO of every node solved to its optimality conditions, differentiated implicitly."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from spam_gnn.coding.base import Coder, Codes
from spam_gnn.errors import BadInput
from spam_gnn.kernels import lasso
from spam_gnn.kernels.csr import edge_dot, gather_sum, spread_back
from spam_gnn.structure import Messages

_SERIAL_BELOW = 4096  # coefficients: below this the work takes less time than starting a thread
_PARTS = 8  # of the rows for each thread: nodes differ in cost, and who is done takes the next part


class ExactCoder(Coder):
    """alpha_i = argmin ||t_i - V_i a||^2 + lambda ||a||_1 over the neighbours present (paper Eq. local-lasso).

    An absent message gets the coefficient it would enter with: the coordinate step at the solution of the present ones,
    soft(v_j . r_i, lambda / 2) / ||v_j||^2 with r_i = t_i - V_i alpha_i. That is nonzero exactly when adding the edge
    would lower the objective, so the derivative with respect to its presence says what the edge is worth.

    Args:
        penalty: lambda > 0; where it starts if it is learned.
        learn_penalty: make lambda a parameter, kept positive by a softplus.
    """

    def __init__(self, penalty: float = 0.1, learn_penalty: bool = False, kernel: str = "auto") -> None:
        super().__init__(kernel)
        if not (math.isfinite(penalty) and penalty > 0):
            raise BadInput(f"penalty of the exact coder: found {penalty}; use a finite number above 0")
        self._fixed = float(penalty)
        self.raw_penalty: nn.Parameter | None = None
        if learn_penalty:
            # The inverse of softplus, in a form that does not overflow for a large penalty.
            self.raw_penalty = nn.Parameter(torch.tensor(penalty + math.log(-math.expm1(-penalty))))

    @property
    def penalty(self) -> Tensor:
        """lambda, a scalar tensor; carries a gradient if it is learned."""
        if self.raw_penalty is None:
            return torch.tensor(self._fixed, dtype=torch.float64)
        return nn.functional.softplus(self.raw_penalty)

    def forward(self, messages: Messages, target: Tensor, values: Tensor, presence: Tensor) -> Codes:
        """As `Coder.forward`: (K or 1, n, d) operands, (K, m) presence -> (K, m) codes, one tensor for both signs."""
        present = presence.detach() > 0.5
        penalty = self.penalty.to(target.device)
        codes: Tensor = _LassoCodes.apply(messages, target, values, present, penalty)  # pyright: ignore[reportAssignmentType]
        if not bool(present.all()):
            entering = _entering(messages, target, values, codes, penalty.to(target.dtype))
            codes = torch.where(present, codes, entering)
        return Codes(codes, codes)


def _entering(messages: Messages, target: Tensor, values: Tensor, codes: Tensor, penalty: Tensor) -> Tensor:
    """One coordinate step from zero at the solution `codes` (K, m), whose absent entries are 0 -> (K, m)."""
    residual = target - gather_sum(messages, codes, values)
    slope = edge_dot(messages, residual, values)
    square = values.square().sum(-1).index_select(1, messages.source)
    # A zero column has slope 0, so any positive divisor gives it the coefficient 0 and a gradient without NaN.
    return slope.sign() * torch.relu(slope.abs() - penalty / 2) / torch.where(square > 0, square, 1)


class _LassoCodes(torch.autograd.Function):
    """(messages, target, values, present, lambda) -> codes (K, m), 0 where absent."""

    @staticmethod
    def forward(
        ctx: Any, messages: Messages, target: Tensor, values: Tensor, present: Tensor, penalty: Tensor
    ) -> Tensor:
        _check_shapes(messages, target, values, present)
        codes = np.empty(present.shape)
        drawn = present.cpu().contiguous().numpy()  # another memory layout would be compiled anew
        columns = _array(values)
        squares = np.einsum("knd,knd->kn", columns, columns)
        operands = (_array(target), columns, squares, drawn, float(penalty) / 2, codes)
        _share_out(lasso.solve_rows, messages, codes.size, *operands)
        ctx.messages = messages
        result = torch.from_numpy(codes).to(target)
        ctx.save_for_backward(target, values, result, penalty)
        return result

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, *gradients: Tensor
    ) -> tuple[None, Tensor, Tensor | None, None, Tensor]:
        target, values, codes, penalty = ctx.saved_tensors
        solution, width = _array(codes), target.shape[2]
        multiplier = np.zeros(codes.shape)
        fit = np.zeros((codes.shape[0], ctx.messages.num_nodes, width))
        residual = np.empty_like(fit)
        operands = (_array(target), _array(values), solution, _array(gradients[0]), multiplier, fit, residual)
        _share_out(lasso.differentiate_rows, ctx.messages, codes.numel(), *operands)
        u, y, r = (torch.from_numpy(part).to(target.device) for part in (multiplier, fit, residual))
        to_values = None
        if ctx.needs_input_grad[2]:
            # The sum over listening nodes as two sparse products: no scatter whose order could vary.
            back = spread_back(ctx.messages, u, r) - spread_back(ctx.messages, codes.double(), y)
            to_values = back.sum_to_size(values.shape).to(values)
        to_penalty = (-0.5 * (codes.sign() * u).sum()).to(penalty)
        return None, y.sum_to_size(target.shape).to(target), to_values, None, to_penalty


def _check_shapes(messages: Messages, target: Tensor, values: Tensor, present: Tensor) -> None:
    """Compiled code does not check bounds, so a wrong shape has to stop here."""
    samples, width = present.shape[0], target.shape[-1]
    allowed = [(count, messages.num_nodes, width) for count in (1, samples)]
    for name, shape in (("target", tuple(target.shape)), ("values", tuple(values.shape))):
        if shape not in allowed:
            raise BadInput(f"{name} of the exact coder: found shape {shape}; use {allowed[0]} or {allowed[1]}")
    if present.shape[1] != messages.count:
        raise BadInput(f"presence of the exact coder: found {present.shape[1]} columns; use {messages.count}")


def _array(tensor: Tensor) -> lasso.Floats:
    return tensor.detach().to("cpu", torch.float64).contiguous().numpy()


def _share_out(kernel: Callable[..., None], messages: Messages, size: int, *operands: Any) -> None:
    """Run `kernel` over all rows of `size` coefficients on as many threads as torch uses, dealing the rows out in turn.

    Plain Python threads, as the kernels release the GIL: numba's own pools abort after a fork or when entered twice.
    """
    pointer, source = messages.row_pointer.cpu().numpy(), messages.source.cpu().numpy()
    shared = (int(messages.degree.max()) if messages.num_nodes else 0, pointer, source, *operands)
    threads = 1 if size < _SERIAL_BELOW else torch.get_num_threads()
    if threads == 1:
        kernel(0, 1, *shared)
        return
    parts = threads * _PARTS
    with ThreadPoolExecutor(threads) as pool:
        tasks = [pool.submit(kernel, start, parts, *shared) for start in range(parts)]
    for task in tasks:
        task.result()
