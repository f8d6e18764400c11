"""A small graph and its dense matrices, for tests that hold a sparse layer against the equation written out in NumPy."""

from __future__ import annotations

import numpy as np
import torch

from spam_gnn.baselines.base import Shape
from spam_gnn.baselines.registry import find
from spam_gnn.graph import Graph

NODES, FEATURES, CLASSES = 11, 5, 3


def small_graph(seed=0):
    """Eleven nodes in a random undirected graph with a hub; the last node has no neighbour."""
    generator = torch.Generator().manual_seed(seed)
    pairs = torch.combinations(torch.arange(NODES - 1))
    chosen = pairs[torch.randperm(len(pairs), generator=generator)[:13]].t()
    hub = torch.stack([torch.zeros(5, dtype=torch.int64), torch.arange(1, 6)])
    y = torch.arange(NODES) % CLASSES
    train = torch.arange(NODES) < 7
    x = torch.randn(NODES, FEATURES, generator=generator)
    return Graph.build(x, torch.cat([chosen, hub], 1), y, train_mask=train, val_mask=~train, directed=False)


def adjacency(graph):
    matrix = np.zeros((graph.num_nodes, graph.num_nodes))
    matrix[graph.edge_index[1].numpy(), graph.edge_index[0].numpy()] = 1.0
    return matrix


def normalised(matrix, left, right, loops):
    """D^left (A [+ I]) D^right with 0 where a degree is 0."""
    matrix = matrix + np.eye(len(matrix)) if loops else matrix
    degree = matrix.sum(1)
    power = [np.where(degree > 0, np.maximum(degree, 1e-9) ** exponent, 0.0) for exponent in (left, right)]
    return power[0][:, None] * matrix * power[1][None, :]


def make(name, graph, seed=0, **settings):
    """A system on unscaled features whose every parameter, biases and coefficients too, is away from its special start."""
    system = find(name)
    chosen = system.settings.with_settings({"scaling": "none", "hidden": 6, **settings})
    model = system.make(Shape.of(graph), chosen, seed)
    generator = torch.Generator().manual_seed(seed + 100)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    model.begin(graph, seed)
    return model.eval()


def numbers(value):
    return value.detach().double().numpy()


def relu(x):
    return np.maximum(x, 0.0)


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def layer_norm(x, norm):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + norm.eps) * numbers(norm.weight) + numbers(norm.bias)


def assert_equal(found, wanted):
    """To 1e-5 of the largest entry."""
    np.testing.assert_allclose(numbers(found), wanted, rtol=1e-5, atol=1e-5 * max(1.0, np.abs(wanted).max()))
