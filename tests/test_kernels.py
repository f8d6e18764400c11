"""The three versions of the sparse work agree in values and gradients, on awkward graphs and whatever the thread count."""

from __future__ import annotations

import pytest
import torch

from spam_gnn import S2Config, S2Conv, SpaM, SpaMConfig
from spam_gnn.coding import AmortisedCoder, UniformCoder, UnrolledCoder
from spam_gnn.data.synthetic import csbm
from spam_gnn.errors import BadInput
from spam_gnn.kernels import chosen, compiled, plain, products
from spam_gnn.kernels.activation import dropped, relu_dropout
from spam_gnn.kernels.belief import mean_log_agreement
from spam_gnn.kernels.csr import gather_scalar
from spam_gnn.kernels.divergence import mean_divergence
from spam_gnn.kernels.draws import draw_signs, draw_table, indicators_along, signs_along
from spam_gnn.kernels.network import fused_edge_network
from spam_gnn.kernels.segments import segment_sum
from spam_gnn.kernels.signed import fused_signed_sums
from spam_gnn.randomness import dropout, edge_uniforms, seed_for, stream
from spam_gnn.structure import Messages


def awkward(seed, n=30, m=140):
    """A hub that everyone talks to, isolated nodes, duplicate messages, a self message."""
    generator = torch.Generator().manual_seed(seed)
    source, target = torch.randint(0, n - 3, (2, m), generator=generator)
    target[: m // 3] = 0
    source[-5:], target[-5:] = source[0], target[0]
    return Messages.build(source, target, n)


def signs_of(messages, samples, seed, dtype=torch.float32):
    """Signed graphs, the last of them empty."""
    draw = torch.randint(-1, 2, (samples, messages.count), generator=torch.Generator().manual_seed(seed))
    draw[-1] = 0
    return (draw > 0).to(dtype).requires_grad_(), (draw < 0).to(dtype).requires_grad_()


def coder_named(name, width, kernel, dtype):
    if name == "amortised":
        return AmortisedCoder(width, generator=stream(0, "t"), kernel=kernel).to(dtype)
    return (UniformCoder(kernel) if name == "uniform" else UnrolledCoder(3, 0.05, kernel=kernel)).to(dtype)


def sums_and_gradients(coder, messages, target, values, positive, negative):
    inputs = [t.detach().clone().requires_grad_() for t in (target, values, positive, negative)]
    out = coder.signed_sums(messages, *inputs)
    parts = (out.plus, out.minus, out.plus_mass, out.minus_mass)
    generator = torch.Generator().manual_seed(9)
    loss = sum((p * torch.randn(p.shape, generator=generator, dtype=p.dtype)).sum() for p in parts)
    weights = [p for p in coder.parameters() if p.requires_grad]
    gradients = torch.autograd.grad(loss, [*inputs, *weights], allow_unused=True, materialize_grads=True)
    return [*parts, *gradients]


@pytest.mark.parametrize("name", ["uniform", "unrolled", "amortised"])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("seed", [0, 1])
def test_versions_agree(name, shared, seed):
    messages = awkward(seed)
    generator = torch.Generator().manual_seed(seed)
    target, values = torch.randn(2, 1 if shared else 3, 30, 7, generator=generator)
    positive, negative = signs_of(messages, 3, seed)
    reference = sums_and_gradients(coder_named(name, 7, "torch", torch.float32), messages, target, values, positive, negative)
    for kernel in ("csr", "fused"):
        got = sums_and_gradients(coder_named(name, 7, kernel, torch.float32), messages, target, values, positive, negative)
        for place, (a, b) in enumerate(zip(got, reference, strict=True)):
            torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-5, msg=lambda text, p=place, k=kernel: f"{k}, part {p}: {text}")


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_fused_gradient_is_the_derivative(steps):
    """Finite differences in targets, values and penalty; the signs' gradient is held against torch's own above."""
    messages = awkward(2, n=8, m=14)
    generator = torch.Generator().manual_seed(3)
    target, values = (torch.randn(2, 8, 3, generator=generator, dtype=torch.float64).requires_grad_() for _ in range(2))
    positive = torch.rand(2, 14, generator=generator, dtype=torch.float64)
    penalty = torch.tensor(0.05, dtype=torch.float64, requires_grad=True)

    def function(t, v, lam):
        out = fused_signed_sums(messages, t, v, positive, 1.0 - positive, lam, steps)
        return out.plus, out.minus, out.plus_mass, out.minus_mass

    assert torch.autograd.gradcheck(function, (target, values, penalty))


@pytest.mark.parametrize("kernel", ["torch", "csr", "fused"])
def test_edge_network(kernel):
    messages = awkward(4, n=9, m=20)
    a, b = (torch.randn(2, 9, 5, dtype=torch.float64, requires_grad=True) for _ in range(2))
    out = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    network = products(kernel).edge_network
    torch.testing.assert_close(network(messages, a, b, out), plain.edge_network(messages, a, b, out))
    assert torch.autograd.gradcheck(lambda x, y, w: network(messages, x, y[:1], w), (a, b, out))


@pytest.mark.parametrize("coder", ["uniform", "unrolled", "amortised", "exact"])
def test_whole_model_agrees(coder):
    """One training loss and its gradients, posterior on: the same to rounding in every version."""
    graph = csbm(nodes=60, seed=1)
    results = []
    for kernel in ("torch", "csr", "fused"):
        config = SpaMConfig(hidden=8, posterior_hidden=8, coder=coder, kernel=kernel, samples=3)
        model = SpaM(graph.num_features, graph.num_classes, config, seed=2)
        model.begin(graph, 0)
        loss = model.training_loss(model.prepare(graph), seed=5, epoch=1)["loss"]
        loss.backward()
        results.append([loss.detach(), *(p.grad for p in model.parameters() if p.grad is not None)])
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-4)


def test_two_threads_change_nothing_beyond_rounding(monkeypatch):
    monkeypatch.setattr(compiled, "SERIAL_BELOW", 0)
    messages = awkward(5, n=200, m=2000)
    generator = torch.Generator().manual_seed(6)
    target, values = torch.randn(2, 3, 200, 16, generator=generator)
    positive, negative = signs_of(messages, 3, 7)
    before = torch.get_num_threads()
    try:
        results = []
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            coder = UnrolledCoder(3, 0.05, kernel="fused")
            results.append(sums_and_gradients(coder, messages, target, values, positive, negative))
    finally:
        torch.set_num_threads(before)
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            torch.testing.assert_close(a, b, atol=1e-6 * float(a.detach().abs().max().clamp(min=1.0)), rtol=1e-6)


def test_prediction_skips_absent_messages_and_gives_the_same_sums():
    messages = awkward(8)
    target, values = torch.randn(2, 3, 30, 7)
    positive, negative = signs_of(messages, 3, 8)
    coder = UnrolledCoder(3, 0.05, kernel="fused")
    with_gradient = coder.signed_sums(messages, target, values, positive, negative)
    with torch.no_grad():
        without = coder.signed_sums(messages, target, values, positive, negative)
    torch.testing.assert_close(with_gradient.plus, without.plus)
    torch.testing.assert_close(with_gradient.minus_mass, without.minus_mass)
    assert without.plus[-1].abs().max() == 0  # the empty sample


def test_choice_of_version():
    assert chosen("auto", "cpu") == "fused"
    assert chosen("auto", "meta") == "csr"
    with pytest.raises(BadInput, match="csr or torch"):
        chosen("fused", "meta")
    with pytest.raises(BadInput, match="did you mean 'fused'"):
        S2Conv(3, 4, config=S2Config(kernel="fusd"))


def test_wrong_shapes_are_refused_before_compiled_code_sees_them():
    messages = awkward(9)
    values, signs = torch.randn(2, 30, 4), torch.ones(3, messages.count)
    with pytest.raises(BadInput, match="values"):
        fused_signed_sums(messages, values[:1], values, signs, signs, torch.tensor(0.1), 1)
    with pytest.raises(BadInput, match="signs"):
        fused_signed_sums(messages, values[:1], values[:1], signs[:, 1:], signs[:, 1:], torch.tensor(0.1), 1)
    with pytest.raises(BadInput, match="at_source"):
        fused_edge_network(messages, values, values[:, :5], torch.randn(4, 1))


def test_compiled_draws_are_the_hashed_uniforms():
    first, second = torch.arange(500), torch.arange(500) * 7 + 3
    seeds = [seed_for(3, "train", 2, k) for k in range(3)]
    probability = torch.softmax(torch.randn(500, 3, generator=torch.Generator().manual_seed(0)), -1)
    negative, positive = draw_signs(first, second, seeds, probability)
    uniforms, low = edge_uniforms(first, second, seeds), probability[:, 0].double()
    assert torch.equal(negative, uniforms <= low)
    assert torch.equal(positive, uniforms > low + probability[:, 1])
    exact = edge_uniforms(first, second, seeds[:1])[0]
    certain = torch.stack([exact, torch.zeros_like(exact), 1.0 - exact], 1)
    assert draw_signs(first, second, seeds[:1], certain)[0].all()  # bit for bit: u <= u


def test_sums_at_targets_are_those_of_scatter():
    messages = awkward(4)
    values = torch.randn(3, messages.count, generator=torch.Generator().manual_seed(1), dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(segment_sum(messages, values), gather_scalar(messages, values))
    assert torch.autograd.gradcheck(lambda v: segment_sum(messages, v), (values,))


@pytest.mark.parametrize("threads", [1, 2])
def test_divergence_is_its_formula_and_has_its_gradient(threads, monkeypatch):
    monkeypatch.setattr(compiled, "SERIAL_BELOW", 1)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        generator = torch.Generator().manual_seed(0)
        log_prob = torch.log_softmax(3 * torch.randn(41, 3, generator=generator, dtype=torch.float64), -1).requires_grad_()
        base = torch.randn(3, generator=generator, dtype=torch.float64).requires_grad_()
        wanted = (log_prob.exp() * (log_prob - base)).sum(-1).mean()
        torch.testing.assert_close(mean_divergence(log_prob, base), wanted)
        torch.testing.assert_close(mean_divergence(log_prob.float(), base.float()), wanted.float())
        assert torch.autograd.gradcheck(mean_divergence, (log_prob, base))
    finally:
        torch.set_num_threads(before)


def test_divergence_of_certain_edges_is_finite():
    log_prob = torch.tensor([[0.0, -200.0, -1000.0]], requires_grad=True)
    mean_divergence(log_prob, torch.zeros(3)).backward()
    torch.testing.assert_close(log_prob.grad, torch.tensor([[1.0, 0.0, 0.0]]))


def test_draws_do_not_depend_on_threads(monkeypatch):
    monkeypatch.setattr(compiled, "SERIAL_BELOW", 1)
    first, second = torch.randint(0, 50, (2, 99), generator=torch.Generator().manual_seed(0))
    probability = torch.tensor([0.3, 0.3, 0.4]).expand(99, 3)
    order, before, found = torch.arange(98, -1, -1), torch.get_num_threads(), []
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            table = draw_table(first, second, [4, 5], probability)
            found.append((table, signs_along(table, order), torch.stack(indicators_along(table, order, torch.zeros(1)))))
    finally:
        torch.set_num_threads(before)
    for one, other in zip(*found, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("rate", [0.0, 0.3])
def test_dropout_in_one_pass_is_that_of_several(rate):
    x = torch.randn(301, 7, generator=torch.Generator().manual_seed(0), requires_grad=True)
    wanted = dropout(torch.relu(2.0 * x), rate, stream(0, "t"))
    found = relu_dropout(2.0 * x, rate, stream(0, "t"))
    assert torch.equal(found, wanted)
    flow = torch.randn(301, 7, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(*(torch.autograd.grad(out, x, flow)[0] for out in (found, wanted)))
    assert torch.equal(dropped(x.detach(), rate, stream(1, "t")), dropout(x.detach(), rate, stream(1, "t")))


@pytest.mark.parametrize("count", [0, 1, 700])
def test_agreement_of_beliefs_is_its_formula_and_has_its_gradient(count):
    generator = torch.Generator().manual_seed(2)
    belief = torch.softmax(torch.randn(40, 4, generator=generator, dtype=torch.float64), -1)
    ratio = torch.rand(4, 4, generator=generator, dtype=torch.float64).requires_grad_()
    edge_index = torch.randint(0, 40, (2, 900), generator=generator)
    edges = torch.randperm(900, generator=generator)[:count]
    source, target = edge_index[:, edges]
    joint = torch.einsum("pc,cd,pd->p", belief[target], ratio, belief[source])
    wanted = (joint + 1e-6).log().mean() if count else joint.sum()
    torch.testing.assert_close(mean_log_agreement(edge_index, edges, belief, ratio), wanted)
    assert torch.autograd.gradcheck(lambda r: mean_log_agreement(edge_index, edges, belief, r), (ratio,))


@pytest.mark.parametrize("samples", [1, 7, 8, 16])
def test_signs_along_edges_of_tables_that_are_parts_of_others(samples):
    generator = torch.Generator().manual_seed(samples)
    whole, of_edge = torch.randint(-1, 2, (9, 20), generator=generator, dtype=torch.int8), torch.tensor([8, 0, 3, 3])
    flat = whole.flatten()
    for table in (whole[:, :samples], whole[:, 1 : samples + 1], whole.t()[:9, : min(samples, 9)],
                  flat[3 : 3 + 9 * samples].view(9, samples)):  # fmt: skip
        assert torch.equal(signs_along(table, of_edge), table[of_edge])
