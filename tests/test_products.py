"""The sparse products against dense ones, in values and gradients."""

from __future__ import annotations

import pytest
import torch

from spam_gnn.features import FeatureMatrix
from spam_gnn.kernels import compiled
from spam_gnn.kernels.compiled import compiled as compiled_loop
from spam_gnn.kernels.csr import edge_dot, gather_scalar, gather_sum, spread_back
from spam_gnn.kernels.few import FEW, code_few
from spam_gnn.kernels.half_empty import add_product
from spam_gnn.kernels.project import sparse_product
from spam_gnn.kernels.skip_zeros import MOSTLY, add_transposed, mostly_zeros, times
from spam_gnn.randomness import dropout
from spam_gnn.structure import Messages


def messages_of(seed=0, n=7, m=16):
    """A graph with a hub, an isolated node and an arbitrary order of edges."""
    generator = torch.Generator().manual_seed(seed)
    key = torch.randperm((n - 1) * (n - 1), generator=generator)[:m]
    source, target = key // (n - 1), key % (n - 1)  # node n - 1 is isolated
    return Messages.build(source, target, n), source, target


def dense_of(messages, weights):
    matrix = torch.zeros(messages.num_nodes, messages.num_nodes, dtype=weights.dtype)
    matrix[messages.target, messages.source] = weights
    return matrix


@pytest.mark.parametrize("shared", [True, False])
def test_products_equal_dense_ones(shared):
    messages, _, _ = messages_of()
    w = torch.randn(3, messages.count, dtype=torch.float64)
    v = torch.randn(1 if shared else 3, 7, 4, dtype=torch.float64)
    left = torch.randn(3, 7, 4, dtype=torch.float64)
    for k in range(3):
        matrix, values = dense_of(messages, w[k]), v[0 if shared else k]
        torch.testing.assert_close(gather_sum(messages, w, v)[k], matrix @ values)
        torch.testing.assert_close(spread_back(messages, w, v)[k], matrix.t() @ values)
        torch.testing.assert_close(gather_scalar(messages, w)[k], matrix.sum(1))
        full = left[k] @ values.t()
        torch.testing.assert_close(edge_dot(messages, left, v)[k], full[messages.target, messages.source])


@pytest.mark.parametrize("shared", [True, False])
def test_gradients(shared):
    messages, _, _ = messages_of(1)
    w = torch.randn(2, messages.count, dtype=torch.float64, requires_grad=True)
    v = torch.randn(1 if shared else 2, 7, 3, dtype=torch.float64, requires_grad=True)
    left = torch.randn(2, 7, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda a, b: gather_sum(messages, a, b), (w, v))
    assert torch.autograd.gradcheck(lambda a, b: edge_dot(messages, a, b), (left, v))
    assert torch.autograd.gradcheck(lambda a, b: edge_dot(messages, a, b), (v, left))


def test_message_order_points_back_to_the_edges():
    messages, source, target = messages_of(2)
    assert torch.equal(source[messages.edge], messages.source)
    assert torch.equal(target[messages.edge], messages.target)
    assert (messages.target.diff() >= 0).all()
    assert messages.degree[-1] == 0


def test_no_edges():
    messages = Messages.build(torch.zeros(0, dtype=torch.int64), torch.zeros(0, dtype=torch.int64), 3)
    assert gather_sum(messages, torch.zeros(2, 0), torch.ones(1, 3, 4)).abs().sum() == 0
    assert edge_dot(messages, torch.ones(1, 3, 4), torch.ones(2, 3, 4)).shape == (2, 0)


def test_sparse_features_multiply_like_dense_ones():
    x = torch.randn(20, 30) * (torch.rand(20, 30) < 0.05)
    sparse = FeatureMatrix.of(x)
    assert sparse.dense is None
    w = torch.randn(30, 5, requires_grad=True)
    out = sparse.project(w)
    torch.testing.assert_close(out, x @ w)
    g = torch.randn(20, 5)
    out.backward(g)
    torch.testing.assert_close(w.grad, x.t() @ g)
    torch.testing.assert_close(sparse.row_norms(), x.norm(dim=1))
    i, j = torch.randint(20, (2, 50))
    torch.testing.assert_close(sparse.row_dots(i, j), (x[i] * x[j]).sum(1))
    torch.testing.assert_close(sparse.row_scaled().to_dense(), x / x.norm(dim=1, keepdim=True).clamp(min=1e-12))


def test_dropout_on_sparse_features_keeps_the_mean():
    x = (torch.rand(400, 50) < 0.05).float()
    total = FeatureMatrix.of(x).project(torch.ones(50, 1), 0.5, torch.Generator().manual_seed(0)).sum()
    assert abs(float(total / x.sum()) - 1.0) < 0.1


@pytest.mark.parametrize("width", [5, 64, 70])
@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_the_compiled_sparse_product_is_the_dense_one(width, kind, monkeypatch):
    """Empty rows, and on several threads."""
    monkeypatch.setattr(compiled, "SERIAL_BELOW", 0)
    generator, before = torch.Generator().manual_seed(0), torch.get_num_threads()
    x = torch.randn(40, 30, generator=generator, dtype=kind) * (torch.rand(40, 30, generator=generator) < 0.2)
    x[7] = x[39] = 0.0
    weight, csr = torch.randn(30, width, generator=generator, dtype=kind), x.to_sparse_csr()
    for threads in (1, 3):
        torch.set_num_threads(threads)
        try:
            found = sparse_product(csr.crow_indices(), csr.col_indices(), csr.values(), weight)
        finally:
            torch.set_num_threads(before)
        assert found is not None
        torch.testing.assert_close(found, x @ weight, rtol=1e-5, atol=1e-5)


def test_predictions_skip_the_zeros_of_a_dense_matrix_and_training_draws_for_all_entries():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(50, 40, generator=generator) * (torch.rand(50, 40, generator=generator) < 0.15)
    weight, matrix = torch.randn(40, 64, generator=generator), FeatureMatrix(x.shape, x)
    assert matrix._stored is not None
    assert FeatureMatrix(x.shape, torch.ones_like(x))._stored is None
    with torch.no_grad():
        torch.testing.assert_close(matrix.project(weight), x @ weight, rtol=1e-5, atol=1e-5)
        drawn = matrix.project(weight, 0.5, torch.Generator().manual_seed(3))
        assert torch.equal(drawn, dropout(x, 0.5, torch.Generator().manual_seed(3)) @ weight)


@compiled_loop
def _products(table, weights, out):
    for r in range(table.shape[0]):
        add_product(out, r, table, r, weights)


@compiled_loop
def _coded(table, listed, near, dots, count, step, limit, steps, codes, gram):
    code_few(table, listed, near, dots, count, step, limit, steps, codes, gram)


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
@pytest.mark.parametrize(("width", "columns"), [(5, 64), (64, 64), (64, 70), (70, 3), (130, 128)])
def test_rows_that_are_half_zeros_are_multiplied_as_all_are(kind, width, columns):
    generator = torch.Generator().manual_seed(width)
    table = torch.relu(torch.randn(9, width, generator=generator, dtype=kind))
    table[3], table[4] = 0.0, 1.0  # nothing to multiply, and everything
    weights = torch.randn(width, columns, generator=generator, dtype=kind)
    out = torch.ones(9, columns, dtype=kind)
    _products(table.numpy(), weights.numpy(), out.numpy())
    torch.testing.assert_close(out, 1.0 + table @ weights, atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("steps", [1, 2, 5])
@pytest.mark.parametrize("width", [6, 64, 70])
def test_few_neighbours_are_coded_as_the_steps_say(width, steps):
    """a <- S(a + s V^T (t - V a), h), on neighbours that lie anywhere in the table."""
    generator = torch.Generator().manual_seed(steps)
    table = torch.randn(20, width, generator=generator)
    target, step, limit = torch.randn(width, generator=generator), 1.0 / (9 * width), 0.01
    for count in range(FEW + 1):
        listed = torch.randperm(20, generator=generator)[:count]
        v, a = table[listed], torch.zeros(count)
        for _ in range(steps):
            a = torch.nn.functional.softshrink(a + step * (v @ (target - a @ v)), limit)
        room = torch.full((3, FEW), float("nan"))
        room[0, :count], room[1, :count] = v.square().sum(1), v @ target
        near, dots, codes = room.numpy()
        kind = near.dtype.type
        gram = room.new_empty(FEW * FEW).numpy()
        _coded(table.numpy(), listed.numpy(), near, dots, count, kind(step), kind(limit), steps, codes, gram)
        torch.testing.assert_close(room[2, :count], a, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
@pytest.mark.parametrize(("width", "columns"), [(64, 64), (64, 128), (128, 64)])
def test_what_relu_and_dropout_left_is_multiplied_as_all_is(kind, width, columns):
    generator = torch.Generator().manual_seed(width)
    x = torch.relu(torch.randn(100, width, generator=generator, dtype=kind))
    x = dropout(x, 0.5, generator)
    x[3], x[4] = 0.0, 1.0
    assert mostly_zeros(x, columns)
    weight = torch.randn(width, columns, generator=generator, dtype=kind)
    bias, *other = torch.randn(101, columns, generator=generator, dtype=kind)
    other = torch.stack(other)
    for few in (True, False):
        close = {"atol": 1e-4, "rtol": 1e-5}
        torch.testing.assert_close(times(x, weight, few=few), x @ weight, **close)
        torch.testing.assert_close(times(x, weight, few=few, start=bias), x @ weight + bias, **close)
        into = other.clone()
        assert times(x, weight, few=few, out=into, start=into) is into
        torch.testing.assert_close(into, other + x @ weight, **close)
        gathered = torch.ones(width, columns, dtype=kind)
        add_transposed(gathered, x, other, few=few)
        torch.testing.assert_close(gathered, 1.0 + x.t() @ other, **close)


def test_what_is_no_number_is_not_left_out():
    x = torch.zeros(2, 64)
    x[0, 5] = float("nan")
    out = times(x, torch.ones(64, 64), few=True)
    assert bool(out[0].isnan().all())
    assert bool((out[1] == 0).all())


def test_zeros_are_left_out_where_most_are_and_rows_fill_registers():
    x = torch.zeros(3, 1000, 64)
    x[..., : int(64 * MOSTLY)] = 1.0
    assert mostly_zeros(x, 64, 128)
    assert not mostly_zeros(x, 64, 70)
    assert not mostly_zeros(x[..., :60], 64)
    assert not mostly_zeros(torch.relu(torch.randn(1000, 64)), 64)  # half of them: torch's own product is as quick
    assert mostly_zeros(x[:, :0], 64)
    assert not mostly_zeros(x[..., :0], 64)


def test_a_sum_of_many_rows_keeps_its_digits():
    """Row after row, a hundred thousand lost two digits more than torch's product does."""
    generator = torch.Generator().manual_seed(0)
    x = dropout(torch.relu(torch.randn(100_000, 64, generator=generator)), 0.5, generator)
    other = 1.0 + torch.randn(100_000, 64, generator=generator)
    into = torch.zeros(64, 64)
    add_transposed(into, x, other, few=True)
    wanted = x.double().t() @ other.double()
    assert float((into - wanted).abs().max() / wanted.abs().max()) < 2e-6
