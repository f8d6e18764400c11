"""Work that depends on the order of nodes, done in the order of their identities so that renaming nodes changes nothing."""

from __future__ import annotations

import torch
from torch import Tensor

from spam_gnn.errors import BadInput
from spam_gnn.graph import Graph
from spam_gnn.randomness import edge_uniforms

_BLOCK = 8_000_000  # similarities held at a time
_TIE = 1e-10  # how much a later node loses against an earlier one of equal similarity


def identity_order(graph: Graph) -> Tensor:
    """(n,): position of the node with the smallest identity first, and so on."""
    return torch.argsort(graph.identity)


def identity_rank(graph: Graph) -> Tensor:
    """(n,): where each node stands among the identities; row of a per-node buffer that belongs to it."""
    order = identity_order(graph)
    rank = torch.empty_like(order)
    rank[order] = torch.arange(graph.num_nodes)
    return rank


def check_node_count(graph: Graph, rows: int, model: str) -> None:
    """Models that keep one number per node serve the nodes they were trained on only."""
    if graph.num_nodes != rows:
        raise BadInput(f"{model}: found {graph.num_nodes} nodes; it keeps a value per node and was made for {rows}")


def nearest_rows(table: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` most similar other rows by cosine: (rows, partners), each (p,), never more than a block of an n x n table.

    Similarities are rounded to 1e-5 and ties go to the lower row, so that the answer does not hang on the last bit.
    """
    n, count = table.shape[0], min(count, table.shape[0] - 1)
    if count < 1:
        return torch.zeros(0, dtype=torch.int64), torch.zeros(0, dtype=torch.int64)
    unit = torch.nn.functional.normalize(table.detach(), dim=1)
    late = torch.arange(n, dtype=torch.float64) * _TIE
    partners, block = [], max(1, _BLOCK // n)
    for start in range(0, n, block):
        score = (unit[start : start + block] @ unit.t()).to(torch.float64).mul_(1e5).round_().div_(1e5).sub_(late)  # (block, n)
        score[torch.arange(score.shape[0]), torch.arange(start, start + score.shape[0])] = -2.0
        partners.append(score.topk(count, dim=1).indices.reshape(-1))
    return torch.arange(n).repeat_interleave(count), torch.cat(partners)


def feature_neighbours(graph: Graph, count: int) -> Tensor:
    """(2, p): edges partner -> node to each node from its `count` nearest others by cosine of the prepared features."""
    key = f"feature_neighbours/{count}"
    if key not in graph.derived:
        order = identity_order(graph)
        rows, partners = nearest_rows(graph.features.to_dense()[order], count)
        graph.derived[key] = torch.stack([order[partners], order[rows]])
    return graph.derived[key]


def node_table_uniforms(identity: Tensor, width: int, seeds: list[int]) -> Tensor:
    """(n, K, width) float64 uniforms that belong to (identity, column, seed)."""
    n = identity.shape[0]
    columns = torch.arange(width).repeat(n)
    return edge_uniforms(identity.repeat_interleave(width), columns, seeds).reshape(len(seeds), n, width).transpose(0, 1)


def node_table_normals(identity: Tensor, width: int, seeds: list[int]) -> Tensor:
    """(n, K, width) float32 standard normals that belong to (identity, column, seed)."""
    return torch.special.ndtri(node_table_uniforms(identity, width, seeds)).to(torch.float32)


def pair_uniforms(graph: Graph, edge_index: Tensor, seeds: list[int]) -> Tensor:
    """(len(seeds), m) float64 uniforms, one per unordered pair of identities: both directions of an edge share it."""
    first, second = graph.identity[edge_index[0]], graph.identity[edge_index[1]]
    return edge_uniforms(torch.minimum(first, second), torch.maximum(first, second), seeds)
