"""The sparse signed layers when nothing is differentiated: K drawn graphs, relu after each layer, log p at the end.

The same equations as `conv`, in another order of products (`infer_loops`), each made once for all samples in which a node holds
and hears the same (`variants`). Where samples hold different rows, one follows the other, so that the rows that neighbours read
are those of one sample and stay in the cache.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spam_gnn.errors import BadInput
from spam_gnn.kernels import infer_apart, infer_loops, infer_shared
from spam_gnn.kernels.compiled import array, over_rows
from spam_gnn.kernels.conv import Weights
from spam_gnn.kernels.memory import fresh
from spam_gnn.kernels.skip_zeros import mostly_zeros
from spam_gnn.kernels.variants import Held, Variants, variants_of
from spam_gnn.structure import Messages

_LOOKED_AT, _OPPOSING = 4096, 1.0  # messages by which it is judged how many oppose, and how many of a node are many
LASTING = 1 << 24  # numbers in a table up to which it has room for the rows of all samples, each made once


@dataclass(frozen=True, eq=False)
class Layer:
    """Weights and scalars of one layer; `weights.outputs` is (2 d, d): values and results have the same width."""

    weights: Weights
    steps: int
    penalty: float
    own: float
    gamma: float

    def operands(self) -> tuple[list[Any], list[Any]]:
        """Arrays for the two loops: [W_v | W_v W+] and W_v W-; [W_self | W_t], without W_t where there are no steps and without
        rows where there is neither, b, W-, lambda, s, gamma, T."""
        w, width = self.weights, self.weights.value.shape[1]
        own = w.value[:0] if w.own is None else w.own
        if w.target is not None:
            own = torch.cat([torch.zeros_like(w.target) if w.own is None else w.own, w.target], 1)
        said = (torch.cat([w.value, w.value @ w.outputs[:width]], 1), w.value @ w.outputs[width:])
        kind, rest = array(w.value).dtype.type, (own, w.bias, w.outputs[width:])
        scalars = [kind(self.penalty), kind(self.own), kind(self.gamma), self.steps]
        return [array(t) for t in said], [*(array(t) for t in rest), *scalars]


@dataclass(frozen=True, eq=False)
class Classes:
    """The classifier that follows the last layer: weight (d, C), bias (C,)."""

    weight: Tensor
    bias: Tensor


def infer_layer(messages: Messages, hidden: Held, layer: Layer, signs: Tensor, samples: range) -> Held:
    """relu of the layer for some of the drawn graphs.

    Args:
        hidden: what the nodes hold in each of `samples`, or in all of them.
        signs: (m, all samples) int8, in the order of the messages.
        samples: which of them.
    """
    found = _checked_variants(messages, hidden, layer, signs, samples)
    out = fresh(1, found.count, layer.weights.value.shape[1], like=hidden.rows)
    _run_layer(messages, hidden, layer, signs, samples, found, (hidden.rows[:0], hidden.rows.new_empty(0)), out)
    return Held(out[0], found.place, found.begin)


def infer_classes(
    messages: Messages, hidden: Held, layer: Layer, signs: Tensor, samples: range, classes: Classes
) -> Tensor:  # fmt: skip
    """log p (K, n, C) of a classifier after relu of the layer, with the arguments of `infer_layer`."""
    found = _checked_variants(messages, hidden, layer, signs, samples)
    out = fresh(len(samples), messages.num_nodes, classes.bias.numel(), like=hidden.rows)
    _run_layer(messages, hidden, layer, signs, samples, found, (classes.weight.t(), classes.bias), out)
    return out


def _run_layer(
    messages: Messages, hidden: Held, layer: Layer, signs: Tensor, samples: range, found: Variants,
    classes: tuple[Tensor, Tensor], out: Tensor,
) -> None:  # fmt: skip
    """Fill `out`, sample by sample where they hold different rows: the table of all nodes first, then what each node hears."""
    (rows, inner), (n, kept), width = hidden.rows.shape, hidden.place.shape, layer.weights.value.shape[1]
    each = 3 if _opposed(messages, hidden, signs, samples, width) else 2  # rows of the table for each of the nodes'
    lasts = rows < n * kept and each * rows * width <= LASTING
    size, nodes = rows if lasts else n, np.arange(n, dtype=np.int32)
    table, squares = fresh(size, each * width, like=hidden.rows), hidden.rows.new_empty(size)
    into, (projecting, passing) = [table.view(each * size, width).numpy(), squares.numpy()], layer.operands()
    last, h, result = [array(t) for t in classes], array(hidden.rows), out.numpy()
    pointer, source, drawn = messages.arrays[0], messages.arrays[1].view(np.uint64), array(signs)
    before: NDArray[np.int32] = np.full(n, -1, np.int32)  # the hidden rows that the table is made of
    for here in range(kept):
        count, members = len(samples) if kept == 1 else 1, hidden.of_sample(here)
        new, at = (members >= hidden.begin[here], members) if lasts else (members != before, nodes)
        at = at.view(np.uint32)  # whose sign compiled code need not look at
        said = [found.leader, found.place, at, h, members, *into, *passing, *last, result]

        def project(thread: int, first: int, end: int, members: Any = members, new: Any = new, at: Any = at) -> None:  # noqa: ARG001
            infer_loops.project_rows(first, end, each, h, members, new, at, *projecting, *into)

        def listen(thread: int, first: int, end: int, said: Any = said, here: int = here, count: int = count) -> None:  # noqa: ARG001
            heard = (first, end, each, pointer, source, drawn, samples.start)
            if count > 1:
                infer_shared.shared_rows(*heard, count, *said)
            else:
                infer_apart.apart_rows(*heard[:-1], samples.start + here, here, *said)

        over_rows(pointer, 2 * n * inner * width, project)
        over_rows(pointer, (2 * n * inner + messages.count * (1 + 2 * layer.steps) * count) * width, listen)
        before = members


def _opposed(messages: Messages, hidden: Held, signs: Tensor, samples: range, width: int) -> bool:
    """Whether W- is applied to what nodes say beforehand, too: where samples share it, once for all of them, or where it is
    mostly zeros; and if about half the nodes hear somebody who opposes, by some of the messages."""
    some = signs[:: max(1, messages.count // _LOOKED_AT), samples.start : samples.stop]
    share = int((some < 0).sum()) / max(some.numel(), 1)
    opposing = share * messages.count / max(messages.num_nodes, 1)
    cheap = hidden.place.shape[1] == 1 < len(samples) or mostly_zeros(hidden.rows, width)
    return cheap and opposing * (len(samples) if hidden.place.shape[1] == 1 else 1) > _OPPOSING


def _checked_variants(messages: Messages, hidden: Held, layer: Layer, signs: Tensor, samples: range) -> Variants:
    """Which samples agree, of arguments that fit together: compiled code does not check bounds."""
    (rows, found), (n, kept), wanted = hidden.rows.shape, hidden.place.shape, layer.weights.value.shape[0]
    if found != wanted or n != messages.num_nodes or kept not in (1, len(samples)) or not _inside(hidden):
        raise BadInput(f"hidden: found {rows} rows of {found} for {kept} samples of {n} nodes; use rows of {wanted} for "
                       f"{len(samples)} samples or 1, of {messages.num_nodes} nodes")  # fmt: skip
    if n * len(samples) >= 2**31:
        raise BadInput(f"samples: found {len(samples)} of {n} nodes; use fewer at a time, int32 numbers their rows")
    if signs.shape[0] != messages.count or not 0 <= samples.start < samples.stop <= signs.shape[1]:
        raise BadInput(f"signs: found shape {tuple(signs.shape)}; use ({messages.count}, {samples.stop} or more)")
    width = layer.weights.value.shape[1]
    if layer.weights.outputs.shape != (2 * width, width):
        raise BadInput(f"outputs: found shape {tuple(layer.weights.outputs.shape)}; use ({2 * width}, {width})")
    return variants_of(messages, hidden, signs, samples)


def _inside(hidden: Held) -> bool:
    """Whether every place is a row, of which there are not more than int32 can number."""
    rows, (nodes, samples) = hidden.rows.shape[0], hidden.place.shape
    whole = hidden.begin.shape == (samples + 1,) and rows < 2**31
    return whole and (nodes == 0 or bool(hidden.place.min() >= 0 and hidden.place.max() < rows))
