"""The iterative and amortised coders: descent, agreement with the exact one in the limit, exact zeros, gradients."""

from __future__ import annotations

import pytest
import torch

from spam_gnn.coding import AmortisedCoder, UnrolledCoder
from spam_gnn.coding.exact import ExactCoder
from spam_gnn.errors import BadInput
from spam_gnn.kernels.csr import gather_sum
from spam_gnn.randomness import stream
from spam_gnn.structure import Messages


def problem(seed=0, n=12, m=40, width=6):
    generator = torch.Generator().manual_seed(seed)
    key = torch.randperm(n * n, generator=generator)[:m]
    messages = Messages.build(key // n, key % n, n)
    draw = torch.randn(2, 1, n, width, generator=generator, dtype=torch.float64)
    presence = (torch.rand(2, m, generator=generator) < 0.7).double()
    return messages, draw[0], draw[1], presence


def objective(messages, target, values, code, penalty):
    residual = target - gather_sum(messages, code, values)
    return residual.square().sum((1, 2)) + penalty * code.abs().sum(1)


def test_every_step_lowers_the_objective_and_the_limit_is_the_lasso():
    messages, target, values, presence = problem()
    exact = ExactCoder(penalty=0.5)(messages, target, values, presence).positive * presence
    best = objective(messages, target, values, exact, 0.5)
    last = None
    for steps in (1, 2, 4, 8, 64, 4000):
        coder = UnrolledCoder(steps, 0.5).double()
        code = coder(messages, target, values, presence).positive * presence
        now = objective(messages, target, values, code, 0.5)
        assert (now >= best - 1e-9).all()
        if last is not None:
            assert (now <= last + 1e-9).all()
        last = now
    torch.testing.assert_close(code, exact, atol=1e-5, rtol=0)


def test_a_large_penalty_silences_everyone_exactly():
    messages, target, values, presence = problem(1)
    assert UnrolledCoder(3, 1e4)(messages, target, values, presence).positive.abs().max() == 0
    coder = AmortisedCoder(6, threshold=1e4, generator=stream(0, "t")).double()
    assert coder(messages, target, values, presence).positive.abs().max() == 0


def test_a_node_without_neighbours_has_bounded_codes():
    """The step of an absent edge is bounded by its own norm; a tiny bound here once made gradients of 1e8."""
    messages, target, values, presence = problem(2)
    code = UnrolledCoder(3, 0.1)(messages, target, values, torch.zeros_like(presence)).positive
    ratio = target.norm(dim=-1).max() / values.norm(dim=-1).min()
    assert code.abs().max() <= ratio


@pytest.mark.parametrize("steps", [1, 3])
def test_unrolled_gradient(steps):
    messages, target, values, presence = problem(3, n=5, m=10, width=3)
    coder = UnrolledCoder(steps, 0.05).double()
    target.requires_grad_()
    values.requires_grad_()

    def run(t, v, raw):
        coder.raw_penalty.data.copy_(raw.data)
        return torch.func.functional_call(coder, {"raw_penalty": raw}, (messages, t, v, presence)).positive

    assert torch.autograd.gradcheck(run, (target, values, coder.raw_penalty.detach().clone().requires_grad_()))


def test_amortised_coder_looks_at_the_sign():
    messages, target, values, presence = problem(4)
    coder = AmortisedCoder(6, threshold=0.0, generator=stream(0, "t")).double()
    torch.nn.init.normal_(coder.sign_bias)
    codes = coder(messages, target, values, presence)
    assert codes.positive.shape == presence.shape
    assert not torch.equal(codes.positive, codes.negative)
    i, j = int(messages.target[7]), int(messages.source[7])
    hidden = torch.relu(target[0, i] @ coder.from_target + values[0, j] @ coder.from_value + coder.sign_bias[1])
    torch.testing.assert_close(codes.negative[0, 7], hidden @ coder.out + coder.out_bias)


def test_impossible_settings_are_refused():
    with pytest.raises(BadInput, match="coder_steps"):
        UnrolledCoder(0)
    with pytest.raises(BadInput, match="penalty"):
        UnrolledCoder(1, -1.0)
