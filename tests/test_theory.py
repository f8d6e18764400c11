"""The paper's statements that can be checked with numbers, including those that need correcting (docs/paper.md)."""

from __future__ import annotations

import pytest
import torch

from spam_gnn.coding.exact import ExactCoder
from spam_gnn.structure import Messages


@pytest.mark.parametrize("classes", [2, 3, 5, 8])
def test_negative_messages_add_p_out_once_to_the_separation(classes):
    """m'_c = m_c (W_self + p_in W_+) - p_out sum_{c' != c} m_c' W_-: the difference gains p_out W_- once for any C."""
    generator = torch.Generator().manual_seed(classes)
    means = torch.randn(classes, 4, dtype=torch.float64, generator=generator)
    w_self, w_plus, w_minus = torch.randn(3, 4, 4, dtype=torch.float64, generator=generator)
    p_in, p_out = 0.3, 0.6
    others = means.sum(0) - means
    updated = means @ (w_self + p_in * w_plus) - p_out * others @ w_minus
    gap = means[0] - means[1]
    torch.testing.assert_close(updated[0] - updated[1], gap @ (w_self + p_in * w_plus + p_out * w_minus))
    if classes != 3:  # the paper's C - 2 agrees at C = 3 only
        paper = gap @ (w_self + p_in * w_plus + p_out * (classes - 2) * w_minus)
        assert not torch.allclose(updated[0] - updated[1], paper)


def test_lasso_needs_only_one_of_two_equal_neighbours():
    """A node with two identical, perfectly informative neighbours: some optimal code leaves one of them out."""
    v = torch.tensor([[0.0, 0.0], [1.0, 0.0], [1.0, 0.0]], dtype=torch.float64).unsqueeze(0)
    t = torch.tensor([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]], dtype=torch.float64).unsqueeze(0)
    messages = Messages.build(torch.tensor([1, 2]), torch.tensor([0, 0]), 3)
    code = ExactCoder(penalty=0.2)(messages, t, v, torch.ones(1, 2, dtype=torch.float64)).positive
    torch.testing.assert_close(code.sum(), torch.tensor(0.9, dtype=torch.float64))  # 1 - lambda / 2
    assert (code == 0).sum() == 1
