"""The sparse signed layer against its equation written out with loops, and PyG's calling convention."""

from __future__ import annotations

import pytest
import torch

from spam_gnn import S2Config, S2Conv
from spam_gnn.errors import BadInput
from spam_gnn.sampling import SignedGraphs
from spam_gnn.structure import Messages

EDGES = torch.tensor([[0, 1, 2, 3, 0, 4], [1, 2, 1, 1, 3, 0]])
SIGNS = torch.tensor([1, -1, -1, 0, 1, 1])


def by_hand(conv, x, edges, sign):
    """h_i' from the equations, one node and one neighbour at a time, with the codes the coder gives."""
    values, target = x @ conv.to_value, x @ conv.to_target
    messages = Messages.build(*edges, num_nodes=len(x))
    signs = SignedGraphs((sign > 0).float()[None], (sign < 0).float()[None], torch.zeros(1)).along(messages.edge)
    codes = conv.coders[0](messages, target[None], values[None], signs.presence)
    out = []
    for i in range(len(x)):
        support, oppose = torch.zeros_like(values[0]), torch.zeros_like(values[0])
        weight_support = weight_oppose = torch.tensor(0.0)
        for e in torch.nonzero(messages.target == i).reshape(-1).tolist():
            v = values[messages.source[e]]
            if signs.positive[0, e]:
                support = support + codes.positive[0, e] * v
                weight_support = weight_support + codes.positive[0, e].abs()
            if signs.negative[0, e]:
                oppose = oppose + conv.gamma * codes.negative[0, e].abs() * v
                weight_oppose = weight_oppose + conv.gamma * codes.negative[0, e].abs()
        out.append(combine(conv, values[i], support, oppose, weight_support, weight_oppose))
    out = torch.stack(out) + conv.bias
    return out + x @ conv.to_self if conv.to_self is not None else out


def combine(conv, own, support, oppose, weight_support, weight_oppose):
    s = torch.nn.functional.softplus(conv.raw_own_weight)
    if conv.config.separate_signs:
        if conv.config.aggregate == "normalised":
            support, oppose = (s * own + support) / (s + weight_support), oppose / (s + weight_oppose)
        return support @ conv.to_out[0, 0] - oppose @ conv.to_out[0, 1]
    total = support - oppose
    if conv.config.aggregate == "normalised":
        total = (s * own + total) / (s + weight_support + weight_oppose)
    return total @ conv.to_out[0, 0]


@pytest.mark.parametrize("coder", ["exact", "unrolled", "amortised", "uniform"])
@pytest.mark.parametrize("aggregate", ["plain", "normalised"])
@pytest.mark.parametrize("separate", [False, True])
@pytest.mark.parametrize("self_term", [False, True])
def test_layer_equals_its_equation(coder, aggregate, separate, self_term):
    config = S2Config(coder=coder, penalty=0.01, aggregate=aggregate, separate_signs=separate, self_term=self_term, gamma=0.7)
    conv = S2Conv(3, 4, 5, config, torch.Generator().manual_seed(1))
    x = torch.randn(5, 3, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        torch.testing.assert_close(conv(x, EDGES, SIGNS), by_hand(conv, x, EDGES, SIGNS), atol=1e-5, rtol=1e-4)


def test_without_self_term_a_lonely_node_is_a_constant():
    conv = S2Conv(3, 4, config=S2Config(aggregate="plain", self_term=False))
    x = torch.randn(3, 3)
    out = conv(x, torch.tensor([[0], [1]]))
    torch.testing.assert_close(out[0], conv.bias)
    torch.testing.assert_close(out[2], conv.bias)


def test_directions():
    edges = torch.tensor([[0, 1], [1, 2]])
    x = torch.randn(3, 3)
    make = lambda ways: S2Conv(3, 4, config=S2Config(aggregate="plain", self_term=False, directions=ways))  # noqa: E731
    into, out_of, both = make(("in",)), make(("out",)), make(("in", "out"))
    torch.testing.assert_close(into(x, edges)[0], into.bias)
    torch.testing.assert_close(out_of(x, edges)[2], out_of.bias)
    torch.testing.assert_close(into(x, edges.flip(0)), out_of(x, edges))
    with torch.no_grad():
        both.to_value.copy_(into.to_value)
        both.to_target.copy_(into.to_target)
        both.to_out.copy_(torch.cat([into.to_out, out_of.to_out]))
    torch.testing.assert_close(both(x, edges), into(x, edges) + out_of(x, edges))


@pytest.mark.parametrize("edges", [[[0, 9], [1, 2]], [[0, 1], [1, 9]], [[0, 10**9], [1, 2]], [[0, -1], [1, 2]]])
def test_edges_to_nowhere_are_refused_before_memory_is_read(edges):
    with pytest.raises(BadInput, match="edge_index: found node"):
        S2Conv(4, 3)(torch.randn(5, 4), torch.tensor(edges))


def test_signs_of_other_edges_are_refused():
    with pytest.raises(BadInput, match=r"edge_sign: found shape \(5,\) for 6 edges"):
        S2Conv(4, 3)(torch.randn(5, 4), EDGES, torch.ones(5))


def test_samples_are_independent_graphs():
    conv = S2Conv(3, 4)
    x = torch.randn(5, 3)
    stacked = conv(x, EDGES, torch.stack([SIGNS, -SIGNS]))
    assert stacked.shape == (2, 5, 4)
    torch.testing.assert_close(stacked[0], conv(x, EDGES, SIGNS))
    torch.testing.assert_close(stacked[1], conv(x, EDGES, -SIGNS))


def test_reset_parameters_and_gamma():
    conv = S2Conv(3, 4, config=S2Config(gamma=0.3, gamma_mode="learned"))
    torch.testing.assert_close(conv.gamma, torch.tensor(0.3), atol=1e-5, rtol=0)
    before = conv.to_value.clone()
    conv.reset_parameters(1)
    assert not torch.equal(before, conv.to_value)
    conv.reset_parameters(1)
    again = conv.to_value.clone()
    held = {name: id(parameter) for name, parameter in conv.named_parameters()}
    with torch.no_grad():
        conv.raw_gamma.fill_(7.0)
        conv.raw_own_weight.fill_(9.0)
        for parameter in conv.coders.parameters():
            parameter.fill_(3.0)
    conv.reset_parameters(1)
    assert torch.equal(again, conv.to_value)
    fresh = S2Conv(3, 4, config=conv.config)
    torch.testing.assert_close(conv.gamma, torch.tensor(0.3), atol=1e-5, rtol=0)
    assert torch.equal(conv.raw_own_weight, fresh.raw_own_weight)
    assert all(torch.equal(a, b) for a, b in zip(conv.coders.parameters(), fresh.coders.parameters(), strict=True))
    assert {name: id(parameter) for name, parameter in conv.named_parameters()} == held  # what an optimiser holds
    with pytest.raises(BadInput, match="gamma"):
        S2Conv(3, 4, config=S2Config(gamma=-1.0))
    with pytest.raises(BadInput, match="did you mean 'exact'"):
        S2Conv(3, 4, config=S2Config(coder="exacd"))


@pytest.mark.parametrize("coder", ["uniform", "unrolled", "exact"])
@pytest.mark.parametrize("samples", [1, 3])
def test_predicting_and_training_aggregate_alike(coder, samples):
    """Without a gradient the normalised halves are made in one compiled pass; with one, by differentiable operations."""
    config = S2Config(coder=coder, separate_signs=True, gamma=0.7, gamma_mode="learned", kernel="fused")
    conv = S2Conv(6, 5, config=config)
    x = torch.randn(samples, 5, 6, generator=torch.Generator().manual_seed(1))
    sign = torch.stack([SIGNS.roll(k) for k in range(samples)])
    trained = conv(x, EDGES, sign)
    with torch.no_grad():
        predicted = conv(x, EDGES, sign)
    torch.testing.assert_close(predicted, trained.detach(), rtol=1e-5, atol=1e-6)
