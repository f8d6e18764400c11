"""The same graph written in another way is the same graph."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from spam_gnn.evaluation.checks.lab import Check, Lab
from spam_gnn.graph import Graph
from spam_gnn.randomness import stream

# Sums taken in another order differ in the last bits, and a deep model may amplify that a little.
ROUNDING = 1e-4


def _relabelling(lab: Lab) -> None:
    order = torch.randperm(lab.easy.num_nodes, generator=stream(0, "relabel"))
    lab.same_prediction(lab.easy.relabel(order), "with the nodes in another order", ROUNDING, order)


def _rebuilt(graph: Graph, x: Tensor, edges: Tensor) -> Graph:
    return Graph.build(x, edges, graph.y, train_mask=graph.train_mask, val_mask=graph.val_mask, test_mask=graph.test_mask,
                       directed=False, num_classes=graph.num_classes)  # fmt: skip


def _edge_order(lab: Lab) -> None:
    graph = lab.easy
    order = torch.randperm(graph.num_edges, generator=stream(0, "edges"))
    lab.same_prediction(_rebuilt(graph, graph.x, graph.edge_index[:, order]), "with the edges in another order")


def _repeats_and_loops(lab: Lab) -> None:
    graph = lab.easy
    loops = torch.arange(5).expand(2, 5)
    edges = torch.cat([graph.edge_index, graph.edge_index[:, :7], loops], dim=1)
    lab.same_prediction(_rebuilt(graph, graph.x, edges), "with duplicate edges and self-loops in the input")


def _sparse(lab: Lab) -> None:
    graph = lab.easy
    lab.same_prediction(_rebuilt(graph, graph.x.to_sparse_csr(), graph.edge_index), "with sparse features", ROUNDING)


def _names(lab: Lab) -> None:
    names = tuple(f"node {i}" for i in range(lab.easy.num_nodes))
    lab.same_prediction(replace(lab.easy, node_names=names, name="another"), "with names for the nodes")


_NEEDS = ("probabilities_are_finite", "prediction_repeats")
CHECKS = (
    Check("node_order_does_not_matter", _relabelling, _NEEDS),
    Check("edge_order_does_not_matter", _edge_order, _NEEDS),
    Check("duplicate_edges_and_loops_do_not_matter", _repeats_and_loops, _NEEDS),
    Check("sparse_features_equal_dense_ones", _sparse, _NEEDS),
    Check("names_do_not_matter", _names, _NEEDS),
)
