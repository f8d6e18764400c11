"""Samples that agree about a node: found, made once, and what comes of it the same as if every sample stood alone."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch

from spam_gnn import S2Config, S2Conv
from spam_gnn.errors import BadInput
from spam_gnn.kernels import compiled, infer, variants
from spam_gnn.kernels.compiled import array
from spam_gnn.kernels.infer import Classes, infer_classes, infer_layer
from spam_gnn.kernels.variants import Held, variants_of
from spam_gnn.sampling import SignedGraphs
from spam_gnn.structure import Messages
from test_forward_only import moved
from test_kernels import awkward


def drawn(messages, samples, share, seed=0):
    """Signs that differ from one common draw in a share of the places."""
    generator = torch.Generator().manual_seed(seed)
    common = torch.randint(-1, 2, (messages.count, 1), generator=generator, dtype=torch.int8)
    other = torch.randint(-1, 2, (messages.count, samples), generator=generator, dtype=torch.int8)
    return torch.where(torch.rand(messages.count, samples, generator=generator) < share, other, common)


def agreeing(messages, place, signs, i, k, other):
    """What `variants_of` should find, said again with lists."""
    def of(sample):
        here = [e for e in range(messages.count) if int(messages.target[e]) == i]
        heard = [(e, int(signs[e, sample]), place[int(messages.source[e])][sample]) for e in here if signs[e, sample] != 0]
        return place[i][sample], heard

    return of(k) == of(other)


@pytest.mark.parametrize("shared", [True, False])
def test_the_first_sample_that_agrees_leads(shared, monkeypatch):
    monkeypatch.setattr(variants, "SHARED", 1.0)
    messages = awkward(1)
    n, signs = messages.num_nodes, drawn(messages, 6, 0.1)
    generator = torch.Generator().manual_seed(3)
    own = torch.randint(0, 2, (n, 5), generator=generator).int()
    place = torch.zeros(n, 1).int() if shared else own + 2 * torch.arange(n)[:, None].int()
    held = Held(torch.zeros(2 * n, 4), place.numpy(), np.zeros(6, np.int64))
    found = variants_of(messages, held, signs, range(1, 6))
    rows = place.expand(n, 5).tolist()
    leaders = np.array([[next(o for o in range(k + 1) if agreeing(messages, rows, signs[:, 1:], i, k, o)) for k in range(5)]
                        for i in range(n)])  # fmt: skip
    assert np.array_equal(found.leader, leaders)
    assert 0 < (leaders < np.arange(5)).sum() < leaders.size - n  # some agree, some do not
    first = leaders == np.arange(5)
    assert sorted(found.place[first]) == list(range(found.count)) == list(range(first.sum()))
    assert np.array_equal(found.place, np.take_along_axis(found.place, leaders, 1))
    for k in range(5):
        assert found.place[first[:, k], k].tolist() == list(range(found.begin[k], found.begin[k + 1]))


@pytest.mark.parametrize("shared", [True, False])
def test_keys_that_are_equal_by_chance_join_nobody(shared, monkeypatch):
    messages = awkward(1)
    n, signs = messages.num_nodes, drawn(messages, 4, 0.1)
    place = torch.zeros(n, 1).int() if shared else torch.randint(0, 2, (n, 4), generator=torch.Generator().manual_seed(0)).int()
    leader = np.empty((n, 4), np.int32)
    monkeypatch.setattr(variants, "keys_of", lambda *arguments: arguments[-1].fill(7))
    operands = (array(messages.row_pointer), array(messages.source), signs.numpy(), 0, place.numpy())
    variants.compare_samples.py_func(0, n, *operands, leader)
    rows = place.expand(n, 4).tolist()
    for i in range(n):
        for k in range(4):
            assert leader[i, k] == (0 if agreeing(messages, rows, signs, i, k, 0) else k)


@pytest.mark.parametrize("coder", ["uniform", "unrolled"])
@pytest.mark.parametrize("lasting", [0, infer.LASTING])
@pytest.mark.parametrize("share", [0.0, 0.02, 1.0])
@pytest.mark.parametrize("threads", [1, 3])
def test_three_layers_are_the_plain_ones_with_rows_shared_or_apart(coder, lasting, share, threads, monkeypatch, request):
    """No two samples differ, a few do, all do; the table keeps the rows of all samples, or of one at a time."""
    monkeypatch.setattr(infer, "LASTING", lasting)
    monkeypatch.setattr(compiled, "SERIAL_BELOW", 0)
    request.addfinalizer(partial(torch.set_num_threads, torch.get_num_threads()))
    torch.set_num_threads(threads)
    messages = awkward(1)
    signs = drawn(messages, 5, share)
    generator = torch.Generator().manual_seed(0)
    config = S2Config(coder=coder, penalty=0.05, separate_signs=True, gamma=0.3, kernel="torch")
    convs = [moved(S2Conv(5 if first else 64, 64, 64, config, generator)) for first in (True, False, False)]
    layers = [conv.as_layer() for conv in convs]
    classes = Classes(torch.randn(64, 3, generator=generator), torch.randn(3, generator=generator))
    hidden = torch.relu(torch.randn(1, messages.num_nodes, 5, generator=generator))

    def through(most):
        monkeypatch.setattr(variants, "SHARED", most)
        state, sizes = Held.of(hidden), []
        for layer in layers[:-1]:
            state = infer_layer(messages, state, layer, signs, range(5))
            sizes.append(state.rows.shape[0])
        return infer_classes(messages, state, layers[-1], signs, range(5), classes), sizes

    with torch.no_grad():
        (joined, fewer), (apart, all_rows) = through(1.0), through(0.0)
        by_edge = torch.empty_like(signs).index_copy_(0, messages.edge, signs).t()
        plain, graphs = hidden, SignedGraphs((by_edge > 0).float(), (by_edge < 0).float(), torch.zeros(5))
        for conv in convs:
            plain = torch.relu(conv.pass_messages(plain, (messages,), graphs).hidden)
        wanted = torch.log_softmax(plain @ classes.weight + classes.bias, -1)
    assert all_rows == [5 * messages.num_nodes] * 2
    assert (fewer == [messages.num_nodes] * 2) == (share == 0.0)
    assert fewer[0] < all_rows[0]
    torch.testing.assert_close(joined, apart, atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(joined, wanted, atol=1e-4, rtol=1e-4)


def test_places_that_are_no_rows_are_refused():
    messages, conv = awkward(1), S2Conv(5, 6, 6, S2Config(separate_signs=True))
    signs, held = torch.zeros(messages.count, 2, dtype=torch.int8), Held.of(torch.ones(2, messages.num_nodes, 5))
    for place, begin in ((held.place - 1, held.begin), (held.place + 1, held.begin), (held.place, held.begin[:-1])):
        with pytest.raises(BadInput, match="hidden"):
            infer_layer(messages, Held(held.rows, place, begin), conv.as_layer(), signs, range(2))


@pytest.mark.parametrize("sure", [True, False])
def test_a_look_at_some_nodes_says_whether_all_are_compared(sure, monkeypatch):
    n, generator = 3000, torch.Generator().manual_seed(0)
    ends = torch.randint(n, (2, 6000), generator=generator)
    messages = Messages.build(ends[0], ends[1], n)
    signs = torch.ones(messages.count, 8, dtype=torch.int8)
    if not sure:
        signs = torch.randint(-1, 2, signs.shape, generator=generator, dtype=torch.int8)
    compared, real = [], variants.compare_samples

    def counted(first, last, *rest):
        compared.append(last - first)
        real(first, last, *rest)

    monkeypatch.setattr(variants, "compare_samples", counted)
    found = variants.variants_of(messages, Held.of(torch.zeros(1, n, 4)), signs, range(8))
    assert found.count == (n if sure else 8 * n)
    assert (sum(compared) > n) == sure
