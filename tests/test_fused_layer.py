"""The layer in compiled loops against the same layer put together from torch operations: values, gradients, draws, threads."""

from __future__ import annotations

import pytest
import torch

from spam_gnn import S2Config, S2Conv
from spam_gnn.errors import BadInput
from spam_gnn.kernels import activation, compiled, conv, skip_zeros
from spam_gnn.kernels.conv import Activation
from spam_gnn.randomness import dropout
from spam_gnn.sampling import SignedGraphs
from spam_gnn.structure import Messages
from test_kernels import awkward, coder_named, signs_of, sums_and_gradients


def layer(coder, width, self_term=True, inputs=5, outputs=6):
    config = S2Config(coder=coder, penalty=0.05, separate_signs=True, self_term=self_term, gamma=0.3, gamma_mode="learned")
    return S2Conv(inputs, outputs, width, config, torch.Generator().manual_seed(0))


def result(conv_layer, messages, hidden, signs, fused):
    """Output after relu and dropout, code norms, and the gradients of everything that has one."""
    hidden, positive, negative = (t.detach().clone().requires_grad_() for t in (hidden, signs.positive, signs.negative))
    drawn, generator = SignedGraphs(positive, negative, signs.log_weight), torch.Generator().manual_seed(4)
    if fused:
        out = conv_layer.pass_fused(hidden, messages, drawn, Activation(0.5, generator))
        after = out.hidden
    else:
        out = conv_layer.pass_projected(hidden @ conv_layer.projections, (messages,), drawn)
        after = dropout(torch.relu(out.hidden), 0.5, generator)
    weights = torch.randn(after.shape, generator=torch.Generator().manual_seed(5))
    parameters = [p for p in conv_layer.parameters() if p.requires_grad]
    loss = (after * weights).sum() + out.code_norm.sum()
    return [after, out.code_norm, *torch.autograd.grad(loss, [hidden, positive, negative, *parameters])]


@pytest.mark.parametrize("coder", ["uniform", "unrolled"])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("width", [7, 70])  # less than a tile of vector registers, and more
@pytest.mark.parametrize("remembered", [0, conv._REMEMBERED])  # values are made again for the gradient, or kept
def test_fused_layer_is_the_composed_one(coder, shared, width, remembered, monkeypatch):
    monkeypatch.setattr(conv, "_BLOCK", 16)  # several blocks, the last of them short
    monkeypatch.setattr(conv, "_REMEMBERED", remembered)
    messages = awkward(1)
    positive, negative = signs_of(messages, 3, 2)
    signs = SignedGraphs(positive, negative, torch.zeros(3))
    hidden = torch.randn(1 if shared else 3, 30, 5, generator=torch.Generator().manual_seed(3))
    conv_layer = layer(coder, width)
    for a, b in zip(*(result(conv_layer, messages, hidden, signs, fused) for fused in (True, False)), strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("samples", [1, 3])
def test_where_nothing_opposes_the_second_half_is_left_out(samples, dense, monkeypatch):
    """Of signs that are given: those that are learned have a derivative towards opposing, too."""
    monkeypatch.setattr(conv, "_BLOCK", 16)
    messages, generator = awkward(1), torch.Generator().manual_seed(3)
    positive, _ = signs_of(messages, samples, 2)
    hidden = torch.relu(torch.randn(samples, 30, 64, generator=generator) + (5.0 if dense else 0.0))
    conv_layer, results = layer("unrolled", 64, inputs=64, outputs=64), []
    parameters = [p for p in conv_layer.parameters() if p.requires_grad]
    for learned in (True, False):
        state = hidden.clone().requires_grad_()
        signs = SignedGraphs(positive, torch.zeros_like(positive).requires_grad_(learned), torch.zeros(samples))
        out = conv_layer.pass_fused(state, messages, signs, Activation(0.5, torch.Generator().manual_seed(4)))
        kept = [t.shape for t in getattr(out.hidden.grad_fn, "saved_tensors") if t is not None]  # noqa: B009 - what autograd kept
        assert ((128, 64) in kept) == learned
        loss = out.hidden.square().sum() + out.code_norm.sum()
        results.append([out.hidden, out.code_norm, *torch.autograd.grad(loss, [state, *parameters])])
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b, atol=1e-5 * float(a.detach().abs().max().clamp(min=1.0)), rtol=1e-5)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("self_term", [True, False])
def test_states_that_are_mostly_zeros_make_no_difference(shared, self_term, monkeypatch):
    """What enters the layer and what comes back through it: products leave zeros out on both ways (`kernels/skip_zeros.py`)."""
    used = []

    def seen(x, *widths):
        used.append(skip_zeros.mostly_zeros(x, *widths))
        return used[-1]

    monkeypatch.setattr(conv, "_BLOCK", 16)
    monkeypatch.setattr(conv, "mostly_zeros", seen)
    messages, generator = awkward(1), torch.Generator().manual_seed(3)
    signs = SignedGraphs(*signs_of(messages, 3, 2), torch.zeros(3))
    hidden = dropout(torch.relu(torch.randn(1 if shared else 3, 30, 64, generator=generator)), 0.5, generator)
    conv_layer = layer("unrolled", 64, self_term, inputs=64, outputs=64)
    for a, b in zip(*(result(conv_layer, messages, hidden, signs, fused) for fused in (True, False)), strict=True):
        torch.testing.assert_close(a, b, atol=1e-4, rtol=1e-4)
    assert used == [True, True]


def test_weights_in_any_order_of_memory_have_the_same_gradients():
    messages, generator = awkward(1), torch.Generator().manual_seed(3)
    signs = SignedGraphs(*signs_of(messages, 2, 2), torch.zeros(2))
    hidden = dropout(torch.relu(torch.randn(2, 30, 128, generator=generator)), 0.5, generator)
    results = []
    for turned in (False, True):
        conv_layer = layer("unrolled", 64, inputs=128, outputs=64)
        for name, weight in list(conv_layer.named_parameters()):
            if turned and weight.dim() == 2:
                setattr(conv_layer, name, torch.nn.Parameter(weight.detach().t().contiguous().t()))
        results.append(result(conv_layer, messages, hidden, signs, fused=True))
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(("columns", "kind"), [(128, torch.float32), (5, torch.float32), (64, torch.float64)])
def test_states_of_another_width_or_kind_are_refused(columns, kind):
    messages = awkward(1)
    signs = SignedGraphs(*signs_of(messages, 1, 2), torch.zeros(1))
    with pytest.raises(BadInput, match=rf"hidden: found {columns} columns of {kind}; use 64 of torch.float32"):
        layer("unrolled", 64, inputs=64, outputs=64).pass_fused(torch.zeros(1, 30, columns, dtype=kind), messages, signs, None)


@pytest.mark.parametrize(("inputs", "width", "outputs"), [(5, 16, 6), (64, 64, 64)])
def test_threads_change_nothing_beyond_rounding(inputs, width, outputs, monkeypatch):
    monkeypatch.setattr(compiled, "SERIAL_BELOW", 0)
    messages, conv_layer = awkward(5, n=200, m=2000), layer("unrolled", width, False, inputs, outputs)
    signs = SignedGraphs(*signs_of(messages, 3, 7), torch.zeros(3))
    hidden, before, results = dropout(torch.randn(3, 200, inputs), 0.7, torch.Generator()), torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            results.append(result(conv_layer, messages, hidden, signs, fused=True))
    finally:
        torch.set_num_threads(before)
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            torch.testing.assert_close(a, b, atol=1e-6 * float(a.detach().abs().max().clamp(min=1.0)), rtol=1e-6)


def test_a_hub_with_more_neighbours_than_are_packed():
    source = torch.arange(1, 1400)
    hub = torch.zeros_like(source)
    messages = Messages.build(torch.cat([source, hub]), torch.cat([hub, source]), 1400)
    target, values = torch.randn(2, 1, 1400, 4, generator=torch.Generator().manual_seed(1))
    signs = signs_of(messages, 2, 3)
    results = [
        sums_and_gradients(coder_named("unrolled", 4, kernel, torch.float32), messages, target, values, *signs)
        for kernel in ("torch", "fused")
    ]
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b, atol=1e-5 * float(a.detach().abs().max().clamp(min=1.0)), rtol=1e-4)


@pytest.mark.parametrize("size", [3, 64, 1003])
def test_relu_and_dropout_draw_what_dropout_draws(size, monkeypatch):
    monkeypatch.setattr(activation, "_WORDS", 16)
    x = torch.randn(size, generator=torch.Generator().manual_seed(0))
    for rate in (0.0, 0.3):
        wanted = dropout(torch.relu(x), rate, torch.Generator().manual_seed(1))
        assert torch.equal(activation.relu_and_drop_(x.clone(), rate, torch.Generator().manual_seed(1)), wanted)
    assert torch.equal(activation.relu_and_drop_(x.clone(), 0.3, None), torch.relu(x))
