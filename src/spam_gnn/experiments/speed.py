"""What an epoch and a prediction cost: SpaM beside PyG's GCN and GAT, in one process, taking turns."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GCNConv

from spam_gnn.baselines.base import Shape
from spam_gnn.baselines.registry import find
from spam_gnn.config import SpaMConfig
from spam_gnn.data import catalog
from spam_gnn.graph import Graph
from spam_gnn.randomness import library_draws, stream
from spam_gnn.training import TrainConfig, make_optimiser

WIDTH, STEPS, PREDICT_SAMPLES = 64, 3, 8
MODELS = ("gcn", "gat", "spam-k1", "spam-k4", "spam-default")
NAMED = ("texas", "squirrel", "pubmed", "cornell5", "minesweeper")
RANDOM = ("random:1e5", "random:1e6", "random:1e7")


@dataclass(frozen=True)
class Work:
    """One model on one graph: a training epoch and a prediction, ready to be timed."""

    epoch: Callable[[], None]
    predict: Callable[[], None]


@dataclass(frozen=True)
class Times:
    """Median and spread (half the distance between the quartiles) of repeated timings, in seconds."""

    seconds: float
    spread: float
    repeats: int

    @staticmethod
    def of(values: list[float]) -> Times:
        if len(values) < 2:
            return Times(values[0], 0.0, len(values))
        low, middle, high = statistics.quantiles(values, n=4)
        return Times(middle, (high - low) / 2, len(values))


def random_graph(messages: int, degree: int = 20, features: int = 64, classes: int = 5, seed: int = 0) -> Graph:
    """Uniform random pairs and Gaussian features: nothing to learn, only work to time. About `messages` stored edges."""
    nodes = max(messages // degree, 2)
    generator = stream(seed, "random graph")
    ends = torch.randint(0, nodes, (2, messages // 2), generator=generator)
    y = torch.randint(0, classes, (nodes,), generator=generator)
    mask = torch.zeros(nodes, dtype=torch.bool)
    mask[: nodes // 2] = True
    x = torch.randn(nodes, features, generator=generator)
    return Graph.build(x, ends, y, train_mask=mask, directed=False, num_classes=classes, name=f"random:{messages:.0e}")


def star_or_ring(kind: str, leaves: int, features: int = 64, seed: int = 0) -> Graph:
    """`star`: a hub that every other node is tied to, the worst skew there is. `ring`: as many nodes, one more edge, no hub."""
    nodes, generator = leaves + 1, stream(seed, "star")
    y = torch.randint(0, 5, (nodes,), generator=generator)
    mask = torch.zeros(nodes, dtype=torch.bool)
    mask[: leaves // 2] = True
    ends = torch.arange(nodes)
    edges = torch.stack([torch.zeros(leaves, dtype=torch.int64), ends[1:]] if kind == "star" else [ends, ends.roll(1)])
    x = torch.randn(nodes, features, generator=generator)
    return Graph.build(x, edges, y, train_mask=mask, directed=False, num_classes=5, name=f"{kind}:{leaves}")


def graph_named(name: str) -> Graph:
    """A benchmark, its surrogate where the files are absent, `random:MESSAGES`, `star:LEAVES` or `ring:LEAVES`."""
    kind, _, size = name.partition(":")
    if kind == "random":
        return random_graph(int(float(size)))
    if kind in ("star", "ring"):
        return star_or_ring(kind, int(float(size)))
    known = name if name.startswith("surrogate:") or catalog.is_present(name) else f"surrogate:{name}"
    return catalog.load(known, 0, 0).as_undirected()


class _TwoConvolutions(nn.Module):
    """PyG's layers as its users stack them: conv, relu, dropout, conv. No dropout on the input: it would cost them time."""

    def __init__(self, kind: str, features: int, classes: int) -> None:
        super().__init__()
        conv = GCNConv if kind == "gcn" else partial(GATConv, heads=1)
        self.first, self.second = conv(features, WIDTH), conv(WIDTH, classes)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = nn.functional.dropout(torch.relu(self.first(x, edge_index)), 0.5, self.training)
        return self.second(h, edge_index)


def reference_work(kind: str, graph: Graph) -> Work:
    """PyG's GCN or GAT, two layers of width 64, one head, on dense features."""
    x, y, mask = graph.features.to_dense(), graph.y, graph.train_mask
    with library_draws(0, "weights"):
        model = _TwoConvolutions(kind, graph.num_features, graph.num_classes)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)

    def epoch() -> None:
        model.train()
        optimiser.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(model(x, graph.edge_index)[mask], y[mask]).backward()
        optimiser.step()

    @torch.no_grad()
    def predict() -> None:
        model.eval()
        torch.softmax(model(x, graph.edge_index), -1)

    return Work(epoch, predict)


def with_samples(samples: int) -> SpaMConfig:
    """SpaM with its posterior on, T = 3 coder steps, two layers of width 64, as the paper has it: sampled graphs alone."""
    return SpaMConfig(
        hidden=WIDTH, layers=2, coder="unrolled", coder_steps=STEPS, samples=samples, trusted=(), position="off"
    )


def spam_work(config: SpaMConfig, graph: Graph) -> Work:
    """An epoch and a prediction of SpaM, made for the graph as `train` makes it."""
    model = find("spam").make(Shape.of(graph), config, 0)
    model.begin(graph, 0)
    prepared = model.prepare(graph)
    optimiser = make_optimiser(model, TrainConfig())
    count = 0

    def epoch() -> None:
        nonlocal count
        optimiser.zero_grad(set_to_none=True)
        model.training_loss(prepared, 0, count)["loss"].backward()
        optimiser.step()
        count += 1

    return Work(epoch, lambda: model.predict(prepared, 0, samples=PREDICT_SAMPLES) and None)


def work_named(model: str, graph: Graph, settings: dict[str, Any] | None = None) -> Work:
    """`gcn`, `gat`, `spam-default`, the default preset, or `spam-kN` with N samples while training."""
    if model.startswith("spam-"):
        base = SpaMConfig() if model == "spam-default" else with_samples(int(model.removeprefix("spam-k")))
        return spam_work(base.with_settings(settings or {}), graph)
    return reference_work(model, graph)


def take_turns(
    jobs: dict[str, Callable[[], None]], repeats: int, budget: float, clock: Callable[[], float] = time.process_time
) -> dict[str, Times]:
    """Time each job once per round, after a warm-up; stop early when the budget (seconds) is spent, after two rounds.

    The clock is that of the process, so that other programs take no part; work on several threads needs `time.perf_counter`.
    """
    for job in jobs.values():
        job()
    spent: dict[str, list[float]] = {name: [] for name in jobs}
    started = time.perf_counter()
    for turn in range(repeats):
        if turn >= 2 and time.perf_counter() - started > budget:
            break
        for name, job in jobs.items():
            begun = clock()
            job()
            spent[name].append(clock() - begun)
    return {name: Times.of(values) for name, values in spent.items()}


def measure(
    name: str, *, models: tuple[str, ...] = MODELS, repeats: int = 15, budget: float = 60.0,
    settings: dict[str, Any] | None = None, clock: Callable[[], float] = time.process_time,
) -> dict[str, Any]:  # fmt: skip
    """Seconds of an epoch and of a prediction for each model, and their ratios to GAT and GCN."""
    graph = graph_named(name)
    works = {model: work_named(model, graph, settings) for model in models}
    train = take_turns({model: work.epoch for model, work in works.items()}, repeats, budget, clock)
    predict = take_turns({model: work.predict for model, work in works.items()}, repeats, budget / 2, clock)
    found: dict[str, Any] = {"graph": graph.name, "nodes": graph.num_nodes, "messages": graph.num_edges,
                             "features": graph.num_features, "models": {}}  # fmt: skip
    for model in models:
        found["models"][model] = {
            "train_seconds": train[model].seconds, "train_spread": train[model].spread,
            "predict_seconds": predict[model].seconds, "predict_spread": predict[model].spread,
            "repeats": train[model].repeats,
        }  # fmt: skip
    for other in ("gat", "gcn"):
        if other in models:
            found[f"ratio_to_{other}"] = {m: train[m].seconds / train[other].seconds for m in models}
            found[f"predict_ratio_to_{other}"] = {m: predict[m].seconds / predict[other].seconds for m in models}
    return found


def turns_here(name: str) -> dict[str, Any]:
    """What a process of its own measures of all models; three rounds where one takes long."""
    return measure(name, repeats=3 if name == "random:1e7" else 9, budget=20.0)
