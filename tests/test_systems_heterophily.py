"""Each heterophily system against its equation, written densely in NumPy from the paper."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch

from dense_reference import (
    adjacency,
    assert_equal,
    layer_norm,
    make,
    normalised,
    numbers,
    relu,
    sigmoid,
    small_graph,
    softmax,
)
from spam_gnn.baselines.glognn import global_aggregate
from spam_gnn.baselines.h2gcn import strict_two_hop
from spam_gnn.baselines.operators import degree_operator

power = np.linalg.matrix_power


@pytest.mark.parametrize(("left", "right", "loops"), [(-0.5, -0.5, True), (-0.5, -0.5, False), (-1, 0, False), (0.3, -1, True)])
def test_degree_operator(left, right, loops):
    graph = small_graph()
    x = torch.randn(graph.num_nodes, 4, generator=torch.Generator().manual_seed(1))
    assert_equal(degree_operator(graph, left, right, loops=loops)(x),
                 normalised(adjacency(graph), left, right, loops) @ numbers(x))  # fmt: skip


def test_gprgnn():
    graph = small_graph()
    model, a = make("gprgnn", graph, steps=4), normalised(adjacency(graph), -0.5, -0.5, True)
    h = relu(numbers(graph.x) @ numbers(model.first) + numbers(model.first_bias))
    h = h @ numbers(model.second) + numbers(model.second_bias)
    wanted = sum(g * power(a, k) @ h for k, g in enumerate(numbers(model.gamma)))
    assert_equal(model.logits(graph, None), wanted)


def test_strict_two_hop_is_distance_two():
    graph = small_graph(3)
    distance = dict(nx.all_pairs_shortest_path_length(nx.from_numpy_array(adjacency(graph))))
    wanted = [[float(distance[i].get(j) == 2) for j in range(graph.num_nodes)] for i in range(graph.num_nodes)]
    assert np.array(wanted).any()
    np.testing.assert_array_equal(strict_two_hop(graph).toarray(), wanted)


@pytest.mark.parametrize("rounds", [1, 2])
def test_h2gcn(rounds):
    graph = small_graph()
    model = make("h2gcn", graph, layers=rounds)
    near = normalised(adjacency(graph), -0.5, -0.5, False)
    far = normalised(strict_two_hop(graph).toarray(), -0.5, -0.5, False)
    r = [relu(numbers(graph.x) @ numbers(model.embed))]
    for _ in range(rounds):
        r.append(np.concatenate([near @ r[-1], far @ r[-1]], 1))
    assert_equal(model.logits(graph, None), np.concatenate(r, 1) @ numbers(model.classify))


def test_h2gcn_gradient_through_the_two_hop_product():
    graph = small_graph()
    model = make("h2gcn", graph)
    model.logits(graph, None).square().sum().backward()
    found, step = model.embed.grad[0, 0].item(), 1e-2
    values = []
    with torch.no_grad():
        for sign in (1, -2):
            model.embed[0, 0] += sign * step
            values.append(model.logits(graph, None).double().square().sum().item())
    assert found == pytest.approx((values[0] - values[1]) / (2 * step), rel=2e-2)


def test_fagcn():
    graph = small_graph()
    model = make("fagcn", graph, layers=3, eps=0.4)
    a = normalised(adjacency(graph), -0.5, -0.5, False)
    h = start = relu(numbers(graph.x) @ numbers(model.first) + numbers(model.first_bias))
    for conv in model.convs:
        of_target, of_source = numbers(conv.att_r.weight)[0], numbers(conv.att_l.weight)[0]
        gate = np.tanh((h @ of_target)[:, None] + (h @ of_source)[None, :])
        h = 0.4 * start + (a * gate) @ h
    assert_equal(model.logits(graph, None), h @ numbers(model.last) + numbers(model.last_bias))


@pytest.mark.parametrize("relu_first", [False, True])
@pytest.mark.parametrize("name", ["acm-gcn", "acm-gcn+", "acm-gcn++"])
def test_acm(name, relu_first):
    graph = small_graph()
    model = make(name, graph, relu_first=relu_first)
    a = adjacency(graph)
    low = normalised(a, -1, 0, True)
    filters = [low, np.eye(len(a)) - low, np.eye(len(a))]
    h = x = numbers(graph.x)
    for number, conv in enumerate(model.convs):
        if number:
            h = relu(h) + (0.0 if model.residual is None else relu(x @ numbers(model.residual)))
        parts = np.split(h @ numbers(conv.weight), 3, axis=1)
        channels = [f @ relu(p) if relu_first else relu(f @ p) for f, p in zip(filters, parts, strict=True)]
        if conv.table is not None:
            channels.append(relu(a @ numbers(conv.table.weight)))
        seen = channels if conv.norms is None else [layer_norm(c, n) for c, n in zip(channels, conv.norms, strict=True)]
        score = np.stack([c @ w for c, w in zip(seen, numbers(conv.scores), strict=True)], 1)
        share = softmax(sigmoid(score) @ numbers(conv.mix) / len(channels))
        h = (1.0 if conv.table is not None else 3.0) * sum(share[:, [i]] * c for i, c in enumerate(channels))
    assert_equal(model.logits(graph, None), h)


def test_mixhop():
    graph = small_graph()
    model, a = make("mixhop", graph, hops=2, batch_norm=False), normalised(adjacency(graph), -0.5, -0.5, True)
    h = numbers(graph.x)
    for conv in model.convs:
        parts = np.split(h @ numbers(conv.weight), 3, axis=1)
        h = relu(np.concatenate([power(a, p) @ part for p, part in enumerate(parts)], 1) + numbers(conv.bias))
    assert_equal(model.logits(graph, None), h @ numbers(model.classify) + numbers(model.classify_bias))


def test_gbk():
    graph = small_graph()
    model, a = make("gbk-gnn", graph), adjacency(graph)
    mean = normalised(a, -1, 0, False)
    h = numbers(graph.x)
    for number, conv in enumerate(model.convs):
        own, alike, unlike, seen = np.split((relu(h) if number else h) @ numbers(conv.weight), 4, axis=1)
        score = (seen @ numbers(conv.at_target))[:, None] + (seen @ numbers(conv.at_source))[None, :]
        gate = sigmoid(np.where(score > 0, score, 0.2 * score))
        h = own + (mean * gate) @ alike + (mean * (1 - gate)) @ unlike + numbers(conv.bias)
    assert_equal(model.logits(graph, None), h)


@pytest.mark.parametrize("gamma", [0.0, 0.3])
def test_glognn_layer_is_the_minimiser(gamma):
    """The linear-time layer equals (1 - gamma) Z H + gamma H_0 for the n x n matrix Z where the objective's gradient is 0."""
    graph, alpha, beta = small_graph(), 0.7, 0.4
    generator = torch.Generator().manual_seed(2)
    h, start = (torch.randn(graph.num_nodes, 3, generator=generator) for _ in range(2))
    mean = normalised(adjacency(graph), -1, 0, True)
    s = 0.6 * mean + 0.5 * mean @ mean
    hd, sd, keep = numbers(h), numbers(start), 1 - gamma
    z = (keep * hd @ hd.T + beta * s - gamma * keep * sd @ hd.T) @ np.linalg.inv(
        keep**2 * hd @ hd.T + (alpha + beta) * np.eye(len(hd))
    )
    slope = -keep * (hd - keep * z @ hd - gamma * sd) @ hd.T + alpha * z + beta * (z - s)
    np.testing.assert_allclose(slope, 0.0, atol=1e-10)
    spread = torch.from_numpy(s @ hd).float()
    assert_equal(global_aggregate(h, start, spread, alpha, beta, gamma), keep * z @ hd + gamma * sd)


@pytest.mark.parametrize("delta", [0.0, 0.4, 1.0])
def test_glognn(delta):
    graph = small_graph()
    model = make("glognn", graph, delta=delta, gamma=0.2, hops=3, layers=2, alpha=0.5, beta=0.8)
    mean = normalised(adjacency(graph), -1, 0, True)
    hidden = numbers(model.first_bias)
    if delta > 0:
        hidden = hidden + delta * numbers(graph.x) @ numbers(model.from_features)
    if delta < 1:
        hidden = hidden + (1 - delta) * mean @ numbers(model.table.weight)
    h = start = relu(hidden) @ numbers(model.second) + numbers(model.second_bias)
    s = sum(w * power(mean, k + 1) for k, w in enumerate(numbers(model.hop_weights)))
    for _ in range(2):
        z = (0.8 * h @ h.T + 0.8 * s - 0.2 * 0.8 * start @ h.T) @ np.linalg.inv(0.64 * h @ h.T + 1.3 * np.eye(len(h)))
        h = 0.8 * z @ h + 0.2 * start
    assert_equal(model.logits(graph, None), h)


def test_pcnet():
    """Poisson-Charlier by its closed form: C_n(x; a) = sum_k binom(n, k) (-a)^(n - k) x (x - 1) .. (x - k + 1)."""
    graph = small_graph()
    model = make("pcnet", graph, orders=3, terms=5, heat=0.9, shift=1.2, exponent=0.6, relu=True)
    p = normalised(adjacency(graph), -0.6, -0.6, True) - 1.2 * np.eye(graph.num_nodes)
    h = relu(numbers(graph.x) @ numbers(model.first) + numbers(model.first_bias))
    h = h @ numbers(model.second) + numbers(model.second_bias)

    def closed_form(n, x):
        falling = [np.prod([x - i for i in range(k)]) for k in range(n + 1)]
        return sum(nx_binomial(n, k) * (-0.9) ** (n - k) * falling[k] for k in range(n + 1))

    theta = numbers(model.theta)
    wanted = theta[0] * h
    for k in range(1, 4):
        for j in range(5):
            wanted = wanted + theta[k] * closed_form(j, k) / np.prod(range(1, j + 1)) * power(p, j) @ h
    assert_equal(model.logits(graph, None), wanted)


def nx_binomial(n, k):
    return np.prod([(n - i) / (i + 1) for i in range(k)])


@pytest.mark.parametrize("combine", ["sum", "concat", "low", "high"])
def test_tfe(combine):
    """Filters act on the features here, before the perceptron, as the paper writes it."""
    graph = small_graph()
    model, a = make("tfe-gnn", graph, combine=combine, eta=-0.3, layers=3), adjacency(graph)
    low, high = normalised(a, -0.5, -0.5, True), np.eye(len(a)) - normalised(a, -0.3, -0.3, True)
    x, shares = numbers(graph.x), np.ones(2) if model.shares is None else numbers(model.shares)
    parts = []
    if model.low is not None:
        parts.append(shares[0] * (x + sum(c * power(low, k + 1) @ x for k, c in enumerate(numbers(model.low)))))
    if model.high is not None:
        parts.append(shares[1] * (x + sum(c * power(high, k + 1) @ x for k, c in enumerate(numbers(model.high)))))
    first = numbers(model.first)
    if combine == "concat":
        parts, first = [np.concatenate(parts, 1)], np.concatenate(np.split(first, 2, axis=1), 0)
    h = sum(parts) @ first
    for weight in model.rest:
        h = relu(h) @ numbers(weight)
    assert_equal(model.logits(graph, None), h)


def test_fsgnn():
    graph = small_graph()
    model, a, x = make("fsgnn", graph, hops=2), adjacency(graph), numbers(graph.x)
    plain, looped = normalised(a, -0.5, -0.5, False), normalised(a, -0.5, -0.5, True)
    hops = [x, plain @ x, plain @ plain @ x, looped @ x, looped @ looped @ x]
    weights, biases = np.split(numbers(model.first), 5, axis=1), np.split(numbers(model.first_bias), 5)
    shares = softmax(numbers(model.shares))
    h = [hop @ w + b for hop, w, b in zip(hops, weights, biases, strict=True)]
    h = [s * t / np.linalg.norm(t, axis=1, keepdims=True) for s, t in zip(shares, h, strict=True)]
    assert_equal(model.logits(graph, None), relu(np.concatenate(h, 1)) @ numbers(model.second) + numbers(model.second_bias))


@pytest.mark.parametrize("shared", [True, False])
def test_ordered(shared):
    graph = small_graph()
    model = make("ordered-gnn", graph, layers=3, chunk=2, shared_gate=shared)
    mean = normalised(adjacency(graph), -1, 0, False)
    h = layer_norm(relu(numbers(graph.x) @ numbers(model.first) + numbers(model.first_bias)), model.first_norm)
    closed = np.zeros((graph.num_nodes, 3))
    for number in range(3):
        gate, bias = (numbers(p[0 if shared else number]) for p in (model.gates, model.gate_biases))
        heard = mean @ h
        fresh = np.cumsum(softmax(np.concatenate([h, heard], 1) @ gate + bias), 1)
        closed = closed + (1 - closed) * fresh
        wide = np.repeat(closed, 2, axis=1)
        h = layer_norm(wide * h + (1 - wide) * heard, model.norms[number])
    assert_equal(model.logits(graph, None), h @ numbers(model.last) + numbers(model.last_bias))
