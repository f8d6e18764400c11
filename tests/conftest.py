"""Shared by all tests: one thread, the command in this process, and tiny graphs to enumerate."""

from __future__ import annotations

import sys

import pytest
import torch

from spam_gnn.cli import main
from spam_gnn.graph import Graph


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture
def run(monkeypatch, capsys):
    """Call the command in this process: (exit code, standard output, standard error)."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["spam-gnn", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        printed = capsys.readouterr()
        return stop.value.code or 0, printed.out, printed.err

    return call


def tiny_graph(seed: int, nodes: int = 6, edges: int = 5, features: int = 4, classes: int = 3) -> Graph:
    """A random undirected graph small enough for all 3^edges signed graphs."""
    generator = torch.Generator().manual_seed(seed)
    pairs = torch.combinations(torch.arange(nodes))
    chosen = pairs[torch.randperm(len(pairs), generator=generator)[:edges]].t()
    y = torch.arange(nodes) % classes
    y = y[torch.randperm(nodes, generator=generator)]
    train = torch.zeros(nodes, dtype=torch.bool)
    train[torch.randperm(nodes, generator=generator)[: nodes // 2 + 1]] = True
    x = torch.randn(nodes, features, generator=generator)
    return Graph.build(x, chosen, y, train_mask=train, val_mask=~train, directed=False, num_classes=classes)
