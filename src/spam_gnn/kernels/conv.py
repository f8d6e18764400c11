"""The whole sparse signed layer (project, code, aggregate, relu and dropout) and its gradient, a block of rows at a time.

Between the (K, n, d) tensors that enter and leave a layer nothing of that size is made. Of the values V, which neighbours
read, there are one sample's at a time; targets, sums, halves and their gradients live in blocks of rows that stay in the cache,
where the dense products find them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from spam_gnn.errors import BadInput
from spam_gnn.kernels.activation import back_through, dropout_scale, relu_and_drop_
from spam_gnn.kernels.memory import fresh
from spam_gnn.kernels.signed import Coding, check_operands, groups_of, of_sample, squares_of, thread_tables
from spam_gnn.kernels.skip_zeros import add_transposed, mostly_zeros, times
from spam_gnn.structure import Messages

_BLOCK = 2048  # rows of all samples of a group together
_REMEMBERED = 1 << 18  # numbers in the values of all groups up to which they are kept for the gradient instead of made again


@dataclass(frozen=True)
class Activation:
    """relu, then dropout of a rate with draws from the generator (None: no dropout)."""

    rate: float
    generator: torch.Generator | None


@dataclass(frozen=True, eq=False)
class Weights:
    """Parameters of a layer; `outputs` (2 d, o) maps the halves [support | oppose], or (d, o) the first, where nothing opposes.
    None where a configuration has none."""

    value: Tensor
    target: Tensor | None
    own: Tensor | None
    outputs: Tensor
    bias: Tensor


def fused_layer(
    messages: Messages, hidden: Tensor, weights: Weights, positive: Tensor, negative: Tensor, penalty: Tensor,
    own_weight: Tensor, gamma: Tensor, steps: int, activation: Activation | None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """hidden (K or 1, n, d_in) -> (K, n, o), and the masses (K, 2, n): the layer with separate signs, normalised.

    out_i = (s v_i + sum z+ a v_j) / (s + sum z+ |a|) W+ + gamma (sum z- |a| v_j) / (s + gamma sum z- |a|) W- + h_i W_self + b.
    """
    check_operands(messages, {"hidden": hidden}, positive, negative)
    for weight in (weights.value, weights.target, weights.own):
        if weight is not None and (weight.shape[0] != hidden.shape[2] or weight.dtype != hidden.dtype):
            found, wanted = f"{hidden.shape[2]} columns of {hidden.dtype}", f"{weight.shape[0]} of {weight.dtype}"
            raise BadInput(f"hidden: found {found}; use {wanted}")
    given = (weights.value, weights.target, weights.own, weights.outputs, weights.bias)
    rest = (positive, negative, penalty, own_weight, gamma, steps, activation)
    if not torch.is_grad_enabled():  # what an autograd function costs by itself is felt on small graphs
        return _Layer.forward(_NothingKept(), messages, hidden, *given, *rest)
    return _Layer.apply(messages, hidden, *given, *rest)  # pyright: ignore[reportReturnType]


class _NothingKept:
    """What a layer is given instead of autograd's context where no gradient will be asked for."""

    needs_input_grad = ()


def _blocks(first: int, last: int, samples: int) -> Iterator[tuple[int, int]]:
    size = max(1, _BLOCK // samples)
    return ((begin, min(begin + size, last)) for begin in range(first, last, size))


def _added_up(parts: tuple[Tensor | None, ...]) -> Tensor | None:
    """The sum of what each thread found, or None where there is nothing to add up."""
    found = [part for part in parts if part is not None]
    return None if not found else found[0] if len(found) == 1 else torch.stack(found).sum(0)


def _speak(coding: Coding, h: Tensor, few: bool, to_value: Tensor, v: Tensor, squares: Tensor) -> None:
    """V = H W_v and |v_j|^2."""

    def work(thread: int, first: int, last: int) -> None:  # noqa: ARG001 - threads share nothing here
        times(h[first:last], to_value, few=few, out=v[first:last])
        squares_of(v[first:last], squares[first:last])

    coding.over_rows((0, len(h)), 1, h.shape[1], work)


class _Space:
    """Memory for one block, used again by the next."""

    def __init__(self, samples: int, rows: int, width: int, like: Tensor) -> None:
        size = min(max(1, _BLOCK // samples), rows) * samples
        self.samples, self.flat = samples, like.new_empty(size * width)

    def of(self, rows: int, width: int) -> Tensor:
        """(K, rows, width)."""
        return self.flat[: self.samples * rows * width].view(self.samples, rows, width)


class _Layer(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, messages: Messages, hidden: Tensor, to_value: Tensor, to_target: Tensor | None, to_self: Tensor | None,
        outputs: Tensor, bias: Tensor, positive: Tensor, negative: Tensor, penalty: Tensor, own: Tensor, gamma: Tensor,
        steps: int, activation: Activation | None,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        keep = any(ctx.needs_input_grad)
        samples, n, width = positive.shape[0], messages.num_nodes, to_value.shape[1]
        coding = Coding(messages, steps, float(penalty), float(own), float(gamma), halves=True)
        groups = groups_of(samples, hidden)
        remembers = keep and len(groups) * n * width <= _REMEMBERED
        spoken = [(fresh(n, width, like=hidden), hidden.new_empty(n)) for _ in (groups if remembers else groups[:1])]
        spoken = spoken if remembers else spoken * len(groups)
        out, masses = fresh(samples, n, outputs.shape[1], like=hidden), fresh(samples, 2, n, like=hidden)
        few = mostly_zeros(hidden, width, outputs.shape[1])
        heard = len(outputs)  # columns of the halves that are multiplied and have a derivative
        codes = fresh(samples, steps if keep else 0, messages.count, like=hidden)
        for part, (v, squares) in zip(groups, spoken, strict=True):
            h, count = of_sample(hidden, part.start), part.stop - part.start

            def listen(  # threads share nothing here
                thread: int, first: int, last: int, h: Tensor = h, part: slice = part, count: int = count,  # noqa: ARG001
                v: Tensor = v, squares: Tensor = squares,
            ) -> None:  # fmt: skip
                space = _Space(count, last - first, 2 * width, hidden)
                for rows in _blocks(first, last, count):
                    block = h[slice(*rows)]
                    target = v[:0] if to_target is None else times(block, to_target, few=few)
                    base = bias if to_self is None else times(block, to_self, few=few, start=bias)
                    sums = space.of(len(block), 2 * width)
                    operands = [target, v, squares, positive[part], negative[part]]
                    coding.forward(rows, operands, codes[part], sums.unflatten(2, (2, width)), masses[part], keep)
                    for k in range(count):
                        said, place = sums[k][:, :heard], (part.start + k, slice(*rows))
                        torch.addmm(base, said, outputs, out=out[place])

            _speak(coding, h, few, to_value, v, squares)
            coding.over_rows((0, n), count, width, listen)
        if activation is not None:
            relu_and_drop_(out, activation.rate, activation.generator)
        if keep:
            ctx.coding, ctx.activation, ctx.few = coding, activation, few
            ctx.spoken = spoken if remembers else None
            ctx.save_for_backward(
                hidden, to_value, to_target, to_self, outputs, bias, positive, negative, masses, codes,
                out if activation is not None else None,
            )  # fmt: skip
        return out, masses

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return _Backward(ctx, *gradients).run()


class _Backward:
    """The gradient of a layer: group by group, block by block, with what adds up over all of them."""

    def __init__(self, ctx: Any, to_out: Tensor, to_masses: Tensor) -> None:
        (self.hidden, self.to_value, self.to_target, self.to_self, self.outputs, self.bias, self.positive, self.negative,
         self.masses, self.codes, self.out) = ctx.saved_tensors  # fmt: skip
        self.coding: Coding = ctx.coding
        self.spoken: list[tuple[Tensor, Tensor]] | None = ctx.spoken
        activation: Activation | None = ctx.activation
        self.scale = 1.0 if activation is None else dropout_scale(activation.rate, activation.generator)[1]
        self.few: bool = ctx.few
        self.few_flow = self.out is not None and mostly_zeros(self.out, self.outputs.shape[0], self.to_value.shape[0])
        self.flow, self.to_masses = to_out.contiguous(), to_masses.contiguous()
        self.to_hidden = fresh(*self.hidden.shape, like=self.hidden)
        self.to_signs = [fresh(*self.positive.shape, like=self.positive) for _ in range(2)]
        weights = (self.to_value, self.to_target, self.to_self, self.outputs, self.bias)
        threads = max(1, torch.get_num_threads())  # each adds up its own, in an order that does not depend on the others
        self.by_thread = [[None if w is None else w.new_zeros(w.shape) for w in weights] for _ in range(threads)]
        self.heard = len(self.outputs)
        self.outputs_back = self.outputs.t().contiguous()
        self.own_back = self.outputs_back[:0] if self.to_self is None else self.to_self.t().contiguous()
        for parts in self.by_thread:
            parts[3] = self.outputs_back.new_zeros(self.outputs_back.shape).t()  # transposed: see `_dense`
        self.scalars = torch.zeros(3, dtype=torch.float64)

    def run(self) -> tuple[Tensor | None, ...]:
        n, width = self.hidden.shape[1], self.to_value.shape[1]
        groups = groups_of(self.positive.shape[0], self.hidden)
        remembered = self.spoken or [(fresh(n, width, like=self.hidden), self.hidden.new_empty(n))] * len(groups)
        tables = thread_tables(remembered[0][0])
        for part, (self.values, self.squares) in zip(groups, remembered, strict=True):
            self._group(part, tables)
            for pair in tables:
                for table in pair:
                    table.zero_()
        scalars = self.scalars.to(self.hidden.dtype)
        own, gamma, penalty = scalars[0], scalars[1], scalars[2]
        to_weights = [_added_up(parts) for parts in zip(*self.by_thread, strict=True)]
        return None, self.to_hidden, *to_weights, *self.to_signs, penalty, own, gamma, None, None

    def _group(self, part: slice, tables: list[tuple[Tensor, Tensor]]) -> None:
        h, to_h = (of_sample(t, part.start) for t in (self.hidden, self.to_hidden))
        (n, width), samples = self.values.shape, part.stop - part.start
        if self.spoken is None:  # again: kept for all samples it is much memory
            _speak(self.coding, h, self.few, self.to_value, self.values, self.squares)

        def listen(thread: int, first: int, last: int) -> None:
            self._rows(part, first, last, tables[thread], self.by_thread[thread])

        def speak(thread: int, first: int, last: int) -> None:
            block, to_block, to_values = h[first:last], to_h[first:last], tables[0][0][first:last]
            for other, _ in tables[1:]:
                to_values.add_(other[first:last])
            to_block.addmm_(to_values, self.to_value.t())
            to_weight = self.by_thread[thread][0]
            assert to_weight is not None
            add_transposed(to_weight, block, to_values, few=self.few)

        self.coding.over_rows((0, n), samples, width, listen)
        for _, scalars in tables:
            self.scalars.add_(scalars)
        self.coding.over_rows((0, n), samples, width, speak)

    def _rows(
        self, part: slice, first: int, last: int, table: tuple[Tensor, Tensor], to_weights: list[Tensor | None]
    ) -> None:
        """What rows first .. last - 1 hear, block by block: one thread's share of a group."""
        h, to_h = (of_sample(t, part.start) for t in (self.hidden, self.to_hidden))
        width, out_width, samples = self.values.shape[1], self.outputs.shape[1], part.stop - part.start
        flows, sums, received = (_Space(samples, last - first, w, h) for w in (2 * width, 2 * width, out_width))
        for rows in _blocks(first, last, samples):
            block = h[slice(*rows)]
            target = self.values[:0] if self.to_target is None else times(block, self.to_target, few=self.few)
            incoming = self._incoming(part, rows, received.of(len(block), out_width))
            flow, halves = flows.of(len(block), 2 * width), sums.of(len(block), 2 * width)
            for k in range(samples):
                if self.heard == 2 * width:
                    times(incoming[k], self.outputs_back, few=self.few_flow, out=flow[k])
                else:
                    flow[k, :, :width], flow[k, :, width:] = times(incoming[k], self.outputs_back, few=self.few_flow), 0.0
            to_target = torch.zeros_like(target)
            operands = [target, self.values, self.squares, self.positive[part], self.negative[part]]
            self.coding.backward(
                rows, operands, self.codes[part], halves.unflatten(2, (2, width)), self.masses[part],
                flow.unflatten(2, (2, width)), self.to_masses[part], to_target,
                [t[part] for t in self.to_signs], [table],
            )  # fmt: skip
            self._dense(block, incoming, halves, to_target, to_h[slice(*rows)], to_weights)

    def _incoming(self, part: slice, rows: tuple[int, int], space: Tensor) -> Tensor:
        """The gradient of the layer before its activation, (K, rows, o)."""
        for k in range(space.shape[0]):
            place = (part.start + k, slice(*rows))
            if self.out is None:
                space[k] = self.flow[place]
            else:
                back_through(self.flow[place], self.out[place], self.scale, space[k])
        return space

    def _dense(
        self, block: Tensor, incoming: Tensor, halves: Tensor, to_target: Tensor, to_block: Tensor,
        to_weights: list[Tensor | None],
    ) -> None:  # fmt: skip
        """Weights and input: `block` (rows, d_in) of the input, what came in (K, rows, o), halves (K, rows, 2 d)."""
        _, for_target, for_self, for_outputs, for_bias = to_weights
        assert for_outputs is not None
        assert for_bias is not None
        said = halves.flatten(0, 1)[:, : self.heard].contiguous()
        add_transposed(for_outputs.t(), incoming.flatten(0, 1), said, few=self.few_flow)
        total = incoming[0] if len(incoming) == 1 else incoming.sum(0)
        for_bias.add_(total.sum(0))
        to_block.zero_()
        if for_target is not None and self.to_target is not None:
            add_transposed(for_target, block, to_target, few=self.few)
            torch.mm(to_target, self.to_target.t(), out=to_block)
        if for_self is not None and self.to_self is not None:
            add_transposed(for_self, block, total, few=self.few)
            times(total, self.own_back, few=self.few_flow and len(incoming) == 1, out=to_block, start=to_block)
