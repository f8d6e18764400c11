"""Code-and-aggregate for K signed graphs over one shared edge list, and its gradient, on the compiled loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from spam_gnn.errors import BadInput
from spam_gnn.kernels import signed_loops
from spam_gnn.kernels.compiled import array, over_rows
from spam_gnn.kernels.memory import fresh
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


def check_operands(messages: Messages, operands: dict[str, Tensor], positive: Tensor, negative: Tensor) -> None:
    """Refuse shapes that do not fit together: compiled code does not check bounds."""
    samples, n = positive.shape[0], messages.num_nodes
    for name, operand in operands.items():
        wanted = (n, next(iter(operands.values())).shape[2])
        if operand.shape[0] not in (1, samples) or operand.shape[1:] != wanted:
            raise BadInput(f"{name}: found shape {tuple(operand.shape)}; use ({samples} or 1, {wanted[0]}, {wanted[1]})")
    if positive.shape != (samples, messages.count) or negative.shape != positive.shape:
        raise BadInput(f"signs: found shape {tuple(positive.shape)}; use one row per sample of {messages.count} messages")


def fused_signed_sums(
    messages: Messages, target: Tensor, values: Tensor, positive: Tensor, negative: Tensor, penalty: Tensor, steps: int
) -> SignedSums:
    """One pass per node: T = `steps` ISTA steps over the present neighbours (0: every coefficient is 1), then the sums.

    Args:
        target, values: (K or 1, n, d).
        positive, negative: z+ and z-, (K, m).
        penalty: lambda, a scalar tensor.
    """
    check_operands(messages, {"values": values, "target": target}, positive, negative)
    sums, masses = _Signed.apply(messages, target, values, positive, negative, penalty, steps)  # pyright: ignore
    return SignedSums(*sums.unbind(2), *masses.unbind(1))


def heard_sums(
    messages: Messages, target: Tensor, values: Tensor, squares: Tensor, positive: Tensor, negative: Tensor, penalty: Tensor,
    steps: int,
) -> SignedSums:  # fmt: skip
    """The same sums for some listeners of a large graph, without gradient, read where the speakers' values lie.

    Args:
        messages: `target` numbers the listeners 0 .. r - 1, and `source` the rows of `values`.
        target: (K or 1, r, d); of no use, and may be empty, without steps.
        values, squares: (K or 1, n, d) and (K or 1, n), see `squares_of`.
    """
    samples, rows, width = positive.shape[0], messages.num_nodes, values.shape[2]
    if messages.count and int(messages.source.max()) >= values.shape[1]:
        raise BadInput(f"messages: found source {int(messages.source.max())} for {values.shape[1]} nodes; loops trust it")
    coding = Coding(messages, steps, float(penalty))
    sums, masses = fresh(samples, rows, 2, width, like=values), fresh(samples, 2, rows, like=values)
    codes = fresh(samples, 0, messages.count, like=values)
    for part in groups_of(samples, values):
        operands = [*(of_sample(t, part.start) for t in (target, values, squares)), positive[part], negative[part]]
        coding.forward((0, rows), operands, codes[part], sums[part], masses[part], keep=False)
    return SignedSums(*sums.unbind(2), *masses.unbind(1))


def groups_of(samples: int, *operands: Tensor) -> list[slice]:
    """Samples that go through the loops together: all where they share the operands, else one by one: its rows fill a cache."""
    return [slice(0, samples)] if all(t.shape[0] == 1 for t in operands) else [slice(k, k + 1) for k in range(samples)]


def of_sample(operand: Tensor, k: int) -> Tensor:
    """The (n, d) part that sample k reads."""
    return operand[k if operand.shape[0] > 1 else 0]


@dataclass(frozen=True, eq=False)
class Coding:
    """The compiled loops on one set of messages; with `halves` their results are those of the aggregation rule (`combine`)."""

    messages: Messages
    steps: int
    penalty: float
    own: float = 1.0
    gamma: float = 1.0
    halves: bool = False

    def over_rows(self, rows: tuple[int, int], samples: int, width: int, work: Any) -> int:
        """`compiled.over_rows` for a pass over the neighbours of some rows."""
        share = (rows[1] - rows[0]) / max(self.messages.num_nodes, 1)
        cost = self.messages.count * share * samples * width * (1 + 2 * self.steps)
        return over_rows(self.messages.arrays[0], int(cost), work, *rows)

    def _inputs(self, target: Tensor, values: Tensor, squares: Tensor, positive: Tensor, negative: Tensor) -> list[Any]:
        kind = array(values).dtype.type
        operands = [array(t) for t in (target, values, squares, positive, negative)]
        return [*self.messages.arrays, *operands, kind(self.penalty), kind(self.own), kind(self.gamma)]

    def forward(
        self, rows: tuple[int, int], operands: list[Tensor], codes: Tensor, sums: Tensor, masses: Tensor, keep: bool
    ) -> None:
        """`operands`: target, values, squares, z+, z-; results of the rows go to `sums`, which begins with the first."""
        inputs, results = self._inputs(*operands), [t.numpy() for t in (codes, sums, masses)]

        def work(thread: int, first: int, last: int) -> None:  # noqa: ARG001 - threads share nothing here
            signed_loops.forward(first, last, rows[0], *inputs, *results, self.steps, keep, self.halves)

        self.over_rows(rows, operands[3].shape[0], operands[1].shape[1], work)

    def backward(
        self, rows: tuple[int, int], operands: list[Tensor], codes: Tensor, sums: Tensor, masses: Tensor, flows: Tensor,
        to_masses: Tensor, to_target: Tensor, to_signs: list[Tensor], own: list[tuple[Tensor, Tensor]],
    ) -> None:  # fmt: skip
        """Gradients of the rows; `own` holds a table for the values and (s, gamma, lambda) of each thread, to be added to."""
        inputs, arrays = self._inputs(*operands), [array(t) for t in (codes, sums, masses, flows, to_masses)]
        target, signs, tables = to_target.numpy(), [t.numpy() for t in to_signs], [[t.numpy() for t in pair] for pair in own]

        def work(thread: int, first: int, last: int) -> None:
            to_values, to_scalars = tables[thread]
            signed_loops.backward(
                first, last, rows[0], *inputs, *arrays, self.steps, self.halves, target, to_values, *signs, to_scalars
            )

        self.over_rows(rows, operands[3].shape[0], operands[1].shape[1], work)


def squares_of(values: Tensor, out: Tensor | None = None) -> Tensor:
    """|v_j|^2 of each row, (n,)."""
    out = values.new_empty(values.shape[0]) if out is None else out
    signed_loops.row_squares(array(values), out.numpy())
    return out


def thread_tables(values: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Zeros for what each thread adds up: the gradient of the values (n, d) and of three scalars."""
    threads = max(1, torch.get_num_threads())
    return [(fresh(*values.shape, like=values).zero_(), torch.zeros(3, dtype=torch.float64)) for _ in range(threads)]


def added_up(tables: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    """The sum over the threads, in the first table."""
    for table, scalars in tables[1:]:
        tables[0][0].add_(table)
        tables[0][1].add_(scalars)
    return tables[0]


class _Signed(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, messages: Messages, target: Tensor, values: Tensor, positive: Tensor, negative: Tensor, penalty: Tensor,
        steps: int,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        keep = any(ctx.needs_input_grad)
        samples, n, width = positive.shape[0], messages.num_nodes, values.shape[2]
        coding, rows = Coding(messages, steps, float(penalty)), (0, n)
        sums, masses = fresh(samples, n, 2, width, like=values), fresh(samples, 2, n, like=values)
        codes = fresh(samples, steps if keep else 0, messages.count, like=values)
        for part in groups_of(samples, target, values):
            v = of_sample(values, part.start)
            operands = [of_sample(target, part.start), v, squares_of(v), positive[part], negative[part]]
            coding.forward(rows, operands, codes[part], sums[part], masses[part], keep)
        if keep:
            ctx.coding = coding
            ctx.save_for_backward(target, values, positive, negative, codes)
        return sums, masses

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        target, values, positive, negative, codes = ctx.saved_tensors
        coding: Coding = ctx.coding
        samples, n, scalars = positive.shape[0], coding.messages.num_nodes, torch.zeros(3, dtype=torch.float64)
        to_target, to_values = torch.zeros_like(target), torch.zeros_like(values)
        to_signs, flows = [torch.empty_like(positive), torch.empty_like(negative)], gradients[0].contiguous()
        for part in groups_of(samples, target, values):
            v, tables = of_sample(values, part.start), thread_tables(of_sample(values, 0))
            operands = [of_sample(target, part.start), v, squares_of(v), positive[part], negative[part]]
            coding.backward(
                (0, n), operands, codes[part], codes[:0, :, None], codes[:0], flows[part], gradients[1].contiguous()[part],
                of_sample(to_target, part.start), [t[part] for t in to_signs], tables,
            )  # fmt: skip
            found = added_up(tables)
            of_sample(to_values, part.start).add_(found[0])
            scalars.add_(found[1])
        return None, to_target, to_values, *to_signs, scalars[2].to(values.dtype), None
