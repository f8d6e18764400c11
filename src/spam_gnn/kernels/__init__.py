"""Sparse work on one shared edge list, in three versions with one interface: `fused`, `csr`, `torch`.

`fused`  compiled loops on the CPU (numba): one pass per node, nothing of size (messages x width) is made. The fastest here.
`csr`    torch's sparse CSR products with gradients of our own, on any device torch has them for.
`torch`  gather and scatter in plain torch: the reference, any device.

`auto` takes the first of them that fits the device.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

import spam_gnn.features  # noqa: F401 - which spends torch's notice about CSR tensors
from spam_gnn.errors import BadInput, one_of

KERNELS = ("auto", "fused", "csr", "torch")


class Products(NamedTuple):
    """The three products of a version: weighted sums over messages, dots along them, a two-layer network on each."""

    gather_sum: Callable[..., Tensor]
    edge_dot: Callable[..., Tensor]
    edge_network: Callable[..., Tensor]


def chosen(kernel: str, device: torch.device | str = "cpu") -> str:
    """Which version a setting means on a device."""
    one_of(kernel, KERNELS, "kernel")
    on_cpu = torch.device(device).type == "cpu"
    if kernel == "fused" and not on_cpu:
        raise BadInput(f"kernel: found 'fused' for the device {device}; the compiled loops run on cpu, use csr or torch")
    return ("fused" if on_cpu else "csr") if kernel == "auto" else kernel


def products(kernel: str, device: torch.device | str = "cpu") -> Products:
    """The products of a version; `fused` shares the two sums with `csr`, which are as fast, and compiles the network."""
    from spam_gnn.kernels import csr, plain

    name = chosen(kernel, device)
    if name == "torch":
        return Products(plain.gather_sum, plain.edge_dot, plain.edge_network)
    if name == "csr":
        return Products(csr.gather_sum, csr.edge_dot, plain.edge_network)
    from spam_gnn.kernels.network import fused_edge_network  # numba is loaded only by those who use it

    return Products(csr.gather_sum, csr.edge_dot, fused_edge_network)


@cache
def compile_ahead(kernel: str, device: str = "cpu") -> None:
    """Load the compiled loops (or compile them, once per machine) now, so that no epoch is timed with it."""
    if chosen(kernel, device) != "fused":
        return
    from spam_gnn.kernels.activation import dropped, relu_dropout
    from spam_gnn.kernels.belief import Mirrored, Terms, mean_log_agreement, propagate
    from spam_gnn.kernels.conv import Activation, Weights, fused_layer
    from spam_gnn.kernels.divergence import mean_divergence
    from spam_gnn.kernels.draws import draw_table, gradient_of_draws, indicators_along, signs_along
    from spam_gnn.kernels.infer import Classes, Layer, infer_classes, infer_layer
    from spam_gnn.kernels.project import sparse_product
    from spam_gnn.kernels.segments import segment_sum
    from spam_gnn.kernels.skip_zeros import add_transposed, mostly_zeros, times
    from spam_gnn.kernels.variants import Held
    from spam_gnn.structure import Messages

    messages = Messages.build(torch.tensor([0]), torch.tensor([1]), 2)
    hidden, sign, one = torch.ones(1, 2, 2, requires_grad=True), torch.ones(1, 1), torch.ones(())
    square, bias = torch.eye(2), torch.ones(2)
    weights = Weights(square, square, square, torch.cat([square, square]), bias)
    dropping = Activation(0.5, torch.Generator().manual_seed(0))
    fused_layer(messages, hidden, weights, sign, sign, one, one, one, 1, dropping)[0].sum().backward()
    few = torch.zeros(1, 64)
    add_transposed(times(few, torch.zeros(64, 64), few=mostly_zeros(few)).new_zeros(64, 64), few, few, few=True)
    thirds, none = torch.full((1, 3), 1 / 3), messages.edge[:0]
    table = draw_table(messages.source, messages.target, [0], thirds)
    gradient_of_draws(thirds, none, none, sign[0], sign[0])
    indicators_along(table, messages.edge, hidden)
    segment_sum(messages, sign)
    mean_divergence(torch.zeros(1, 3, requires_grad=True), torch.zeros(3)).backward()
    sparse_product(torch.tensor([0, 1]), torch.tensor([0]), sign[0], square)
    both, first = torch.tensor([0, 1]), torch.tensor([0])
    mirrored = Mirrored(torch.tensor([0, 1, 2]), both.flip(0), both, both.flip(0), first)
    terms = Terms(torch.ones(3, 2, 2), bias)
    believed = propagate(mirrored, square.clone().requires_grad_(), terms, terms, bias, 2)
    (believed[0].sum() + believed[1].sum()).backward()
    mean_log_agreement(torch.stack([both, both.flip(0)]), first, square, square)
    relu_dropout(dropped(square, 0.5, dropping.generator) @ hidden[0], 0.5, dropping.generator).sum().backward()
    with torch.no_grad():  # prediction has loops of its own
        layer = Layer(weights, 1, 1.0, 1.0, 1.0)
        for samples in (1, 8):  # one by itself, and some that begin with the same states
            table = draw_table(messages.source, messages.target, [0] * samples, thirds)
            signs, held = signs_along(table, messages.edge), Held.of(hidden)
            held = infer_layer(messages, held, layer, signs, range(samples))
            infer_classes(messages, held, layer, signs, range(samples), Classes(square, bias))
