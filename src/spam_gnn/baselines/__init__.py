"""Competing models behind the contract of `NodeModel`."""

from __future__ import annotations

from spam_gnn.baselines.plain import TwoLayer
from spam_gnn.contract import NodeModel
from spam_gnn.errors import one_of
from spam_gnn.graph import Graph

BASELINES = ("mlp", "gcn")


def make_baseline(name: str, graph: Graph, seed: int) -> NodeModel:
    """A fresh reference model for a graph: `mlp` sees features only, `gcn` trusts every edge."""
    one_of(name, BASELINES, "model")
    return TwoLayer(graph.num_features, graph.num_classes, graph_layers=name == "gcn", seed=seed)
