"""The sparse signed layers when nothing is differentiated: K drawn graphs, relu after each layer, log p at the end.

The same equations as `conv`, in another order of products (`infer_loops`). Of the table that neighbours read there is one
sample's at a time; all else that a layer makes of a node stays in the cache while the node is dealt with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from spam_gnn.errors import BadInput
from spam_gnn.kernels import infer_loops
from spam_gnn.kernels.compiled import array, over_rows
from spam_gnn.kernels.conv import Weights
from spam_gnn.kernels.memory import fresh
from spam_gnn.kernels.signed import groups_of, of_sample
from spam_gnn.structure import Messages


@dataclass(frozen=True, eq=False)
class Layer:
    """Weights and scalars of one layer; `weights.outputs` is (2 d, d): values and results have the same width."""

    weights: Weights
    steps: int
    penalty: float
    own: float
    gamma: float

    def operands(self) -> tuple[list[Any], list[Any]]:
        """Arrays for the two loops: W_v and W_v W+; W_t, W_self, b, W-, lambda, s, gamma, T. Without rows what there is not."""
        w, width = self.weights, self.weights.value.shape[1]
        none, kind = w.value[:0], array(w.value).dtype.type
        rest = (none if w.target is None else w.target, none if w.own is None else w.own, w.bias, w.outputs[width:])
        scalars = [kind(self.penalty), kind(self.own), kind(self.gamma), self.steps]
        return [array(w.value), array(w.value @ w.outputs[:width])], [*(array(t) for t in rest), *scalars]


@dataclass(frozen=True, eq=False)
class Classes:
    """The classifier that follows the last layer: weight (d, C), bias (C,)."""

    weight: Tensor
    bias: Tensor


def infer_layer(
    messages: Messages, hidden: Tensor, layer: Layer, signs: Tensor, samples: range, classes: Classes | None = None
) -> Tensor:
    """relu of the layer, (K, n, d), or with `classes` log p, (K, n, C), for some of the drawn graphs.

    Args:
        hidden: (K, n, d_in), or (1, n, d_in) where the samples share it.
        signs: (m, all samples) int8, in the order of the messages.
        samples: which of them, K in number.
    """
    n, width, count = messages.num_nodes, layer.weights.value.shape[1], len(samples)
    _check(messages, hidden, layer, signs, samples)
    table, squares = fresh(n, 2 * width, like=hidden), hidden.new_empty(n)
    out = fresh(count, n, width if classes is None else classes.bias.numel(), like=hidden)
    into, (projecting, passing) = [table.view(2 * n, width).numpy(), squares.numpy()], layer.operands()
    last = [array(t) for t in ((hidden[0, :0], hidden[0, 0, :0]) if classes is None else (classes.weight.t(), classes.bias))]
    pointer, heard = array(messages.row_pointer), [array(messages.source), array(signs)]
    for part in groups_of(count, hidden):
        h, result = array(of_sample(hidden, part.start)), out[part].numpy()

        def project(thread: int, first: int, end: int, h: Any = h) -> None:  # noqa: ARG001 - threads share nothing here
            infer_loops.project_rows(first, end, h, *projecting, *into)

        def listen(thread: int, first: int, end: int, h: Any = h, part: slice = part, result: Any = result) -> None:  # noqa: ARG001
            here = samples.start + part.start
            infer_loops.layer_rows(first, end, pointer, *heard, here, h, *into, *passing, *last, result)

        over_rows(pointer, 2 * h.size * width, project)
        over_rows(pointer, (2 * h.size + messages.count * (1 + 2 * layer.steps) * len(result)) * width, listen)
    return out


def _check(messages: Messages, hidden: Tensor, layer: Layer, signs: Tensor, samples: range) -> None:
    """Compiled code does not check bounds."""
    wanted = (messages.num_nodes, layer.weights.value.shape[0])
    if hidden.shape[0] not in (1, len(samples)) or hidden.shape[1:] != wanted:
        raise BadInput(f"hidden: found shape {tuple(hidden.shape)}; use ({len(samples)} or 1, {wanted[0]}, {wanted[1]})")
    if signs.shape[0] != messages.count or not 0 <= samples.start < samples.stop <= signs.shape[1]:
        raise BadInput(f"signs: found shape {tuple(signs.shape)}; use ({messages.count}, {samples.stop} or more)")
    width = layer.weights.value.shape[1]
    if layer.weights.outputs.shape != (2 * width, width):
        raise BadInput(f"outputs: found shape {tuple(layer.weights.outputs.shape)}; use ({2 * width}, {width})")
