"""What every system of the directed, structure and uncertainty families must hold to, on tiny graphs."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from spam_gnn.baselines.base import Shape
from spam_gnn.baselines.registry import find
from spam_gnn.data.synthetic import csbm
from spam_gnn.graph import Graph
from spam_gnn.training import TrainConfig, fit
from structure_graphs import SYSTEMS_HERE, random_graph

SHORT = {
    "auto-heg": {"search_epochs": 3, "hidden": 16},
    "bgcn": {"pretrain_epochs": 40, "fit_steps": 60, "predict_samples": 8},
    "ungsl": {"pretrain_epochs": 20, "neighbours": 4},
    "bbde": {"hidden": 32, "layers": 2},
    "sispde": {"hidden": 16, "layers": 2},
    "dirgnn": {"hidden": 32, "layers": 3},
    "cgnn": {"hidden": 32, "layers": 3},
}


def make(name: str, graph: Graph, seed: int = 0):
    system = find(name)
    return system.make(Shape.of(graph), system.settings.with_settings(SHORT.get(name, {})), seed)


@pytest.mark.parametrize("name", SYSTEMS_HERE)
def test_learns_an_easy_graph_and_its_prediction_follows_the_nodes(name):
    graph = csbm(nodes=90, classes=3, degree=8, homophily=0.9, noise=0.05, feature_strength=2.5, features=6, seed=1)
    config = replace(TrainConfig(), **{**find(name).train, "epochs": 25, "val_samples": 2})
    before = torch.random.get_rng_state()
    models = [make(name, graph), make(name, graph)]
    for model in models:
        fit(model, graph, config, 0)
    prediction, again = (m.predict(m.prepare(graph), 0, samples=2) for m in models)
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.testing.assert_close(again.log_prob, prediction.log_prob)  # same seed, same numbers
    assert float((prediction.label == graph.y)[graph.test_mask].float().mean()) > 0.7

    order = torch.randperm(90, generator=torch.Generator().manual_seed(0))
    renamed = graph.relabel(order)
    followed = models[0].predict(models[0].prepare(renamed), 0, samples=2)
    torch.testing.assert_close(followed.log_prob, prediction.log_prob[:, order], atol=1e-5, rtol=1e-4)
    loaded = make(name, graph, seed=9)
    loaded.load_state_dict(models[0].state_dict())
    torch.testing.assert_close(loaded.predict(loaded.prepare(graph), 0, samples=2).log_prob, prediction.log_prob)


@pytest.mark.parametrize("name", SYSTEMS_HERE)
def test_labels_outside_training_change_nothing(name):
    graph = random_graph(2, nodes=24)
    blind = replace(graph, y=torch.where(graph.train_mask, graph.y, (graph.y + 1) % 3))
    outcomes = []
    for g in (graph, blind):
        model = make(name, g)
        model.begin(g, 0)
        prepared = model.prepare(g)
        loss = model.training_loss(prepared, 0, 0)["loss"]
        outcomes.append((loss.detach(), model.predict(prepared, 0, samples=2).log_prob))
    torch.testing.assert_close(outcomes[0], outcomes[1])


@pytest.mark.parametrize("name", SYSTEMS_HERE)
@pytest.mark.parametrize("case", ["two nodes", "no edges", "one feature", "sparse features"])
def test_odd_graphs(name, case):
    generator = torch.Generator().manual_seed(0)
    n = 2 if case == "two nodes" else 10
    x = torch.randn(n, 1 if case == "one feature" else 4, generator=generator)
    if case == "sparse features":
        x = torch.relu(x - 0.8).to_sparse_csr()
    edges = torch.tensor([[0], [1]]) if case != "no edges" else torch.zeros(2, 0, dtype=torch.int64)
    y = torch.arange(n) % 2
    graph = Graph.build(x, edges, y, train_mask=torch.arange(n) < max(2, n - 4), directed=True, num_classes=2)
    model = make(name, graph)
    model.begin(graph, 0)
    prepared = model.prepare(graph)
    model.training_loss(prepared, 0, 0)["loss"].backward()
    probability = model.predict(prepared, 0, samples=2).probability
    assert probability.shape == (n, 2)
    torch.testing.assert_close(probability.sum(1), torch.ones(n))


@pytest.mark.parametrize("name", SYSTEMS_HERE)
def test_gradients_reach_every_trained_parameter(name):
    graph = csbm(nodes=60, classes=3, degree=6, homophily=0.8, noise=0.1, features=6, seed=2)
    model = make(name, graph)
    model.begin(graph, 0)
    model.training_loss(model.prepare(graph), 0, 0)["loss"].backward()
    dead = [k for k, v in model.named_parameters() if v.requires_grad and (v.grad is None or not bool(v.grad.any()))]
    assert dead == []


@pytest.mark.parametrize("name", SYSTEMS_HERE)
def test_registry_entry(name):
    system = find(name)
    TrainConfig(**system.train)
    for key in system.search:
        assert hasattr(system.settings, key) or hasattr(TrainConfig(), key), key
    for key, values in system.search.items():
        if hasattr(system.settings, key):
            for value in values:
                system.settings.with_settings({key: value})
    assert "\n" not in system.summary
