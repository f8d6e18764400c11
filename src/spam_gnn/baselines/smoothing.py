"""Fixed sparse operators of a graph: the adjacency, normalised as the publications do, ready to be multiplied.

Each is a `FeatureMatrix`, whose `project` multiplies a dense table and sends the gradient back through the transpose.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from spam_gnn.features import FeatureMatrix
from spam_gnn.graph import Graph

Operator = Literal["symmetric", "mean", "mean-with-self"]


def smoothing(graph: Graph, kind: Operator = "symmetric") -> FeatureMatrix:
    """The operator of a graph, computed once.

    `symmetric` is D~^-1/2 (A + I) D~^-1/2, `mean` is D^-1 A, `mean-with-self` is D~^-1 (A + I).
    Entry (i, j) weighs what node i hears of node j.
    """
    name = f"smoothing-{kind}"
    if name not in graph.derived:
        graph.derived[name] = operator_of(graph.edge_index, graph.num_nodes, kind)
    return graph.derived[name]


def operator_of(edge_index: Tensor, n: int, kind: Operator) -> FeatureMatrix:
    """The operator of a list of edges (source, target) without loops or repeats; a node without any hears 0 (or itself)."""
    source, target = edge_index
    if kind != "mean":
        loops = torch.arange(n)
        source, target = torch.cat([source, loops]), torch.cat([target, loops])
    degree = torch.bincount(target, minlength=n).to(torch.float32).clamp(min=1.0)
    values = (degree[source] * degree[target]).rsqrt() if kind == "symmetric" else degree[target].reciprocal()
    return sparse_rows(target, source, values, (n, n))


def sparse_rows(row: Tensor, column: Tensor, values: Tensor, shape: tuple[int, int]) -> FeatureMatrix:
    """A sparse matrix from its entries in any order, none given twice."""
    order = torch.argsort(row * shape[1] + column)
    counts = torch.bincount(row, minlength=shape[0])
    pointer = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    return FeatureMatrix.of(torch.sparse_csr_tensor(pointer, column[order], values[order], shape, check_invariants=False))
