"""What every perturbation shares: pairs as numbers, a graph with other edges, and the truth about planted ones."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from spam_gnn.errors import BadInput
from spam_gnn.graph import Graph

PLANTED = 0  # the sign of an edge that is there for no reason, as in `data.synthetic`
_BATCH = 65536  # pairs drawn at a time; fixed, so that a larger count continues a smaller one


def pair_keys(ends: Tensor, n: int) -> Tensor:
    """(p,): one number per unordered pair of a (2, p) list."""
    return torch.minimum(ends[0], ends[1]) * n + torch.maximum(ends[0], ends[1])


def slots(graph: Graph) -> Tensor:
    """(2, p): what counts as one edge: a pair of an undirected graph, a stored edge of a directed one."""
    return graph.edge_index if graph.directed else graph.edge_index[:, graph.pairs.edge]


def true_signs(graph: Graph) -> Tensor:
    """(m,) int8: what is known of the edges before anything is planted.

    Planted truth where the graph has it. Otherwise +1 for ends of one class and -1 for ends of two; an edge with an unlabelled
    end counts as +1. Models never read signs: they serve to measure edge detection only.
    """
    if graph.edge_sign is not None:
        return graph.edge_sign
    i, j = graph.y[graph.edge_index]
    return torch.where((i == j) | (i < 0) | (j < 0), 1, -1).to(torch.int8)


def rewired(graph: Graph, keep: Tensor, added: Tensor, note: str) -> Graph:
    """The graph with the stored edges `keep` (m,) and the new ones `added` (2, a); nothing else changes.

    Where edges are added, the result has `edge_sign`, 0 for each of them.
    """
    sign = graph.edge_sign
    if added.shape[1]:
        sign = torch.cat([true_signs(graph)[keep], torch.full((added.shape[1],), PLANTED, dtype=torch.int8)])
    elif sign is not None:
        sign = sign[keep]
    built = Graph.build(
        graph.x, torch.cat([graph.edge_index[:, keep], added], 1), graph.y,
        train_mask=graph.train_mask, val_mask=graph.val_mask, test_mask=graph.test_mask, directed=graph.directed,
        num_classes=graph.num_classes, edge_sign=sign, identity=graph.identity, class_names=graph.class_names,
        node_names=graph.node_names, name=graph.name,
    )  # fmt: skip
    return replace(built, notes=(*graph.notes, note))


def flipped(graph: Graph, ends: Tensor, note: str) -> Graph:
    """Remove the pairs of `ends` (2, b) that are joined, in whichever directions, and join the others."""
    n = graph.num_nodes
    there, wanted = pair_keys(graph.edge_index, n), pair_keys(ends, n)
    return rewired(graph, ~torch.isin(there, wanted), ends[:, ~torch.isin(wanted, there)], note)


def new_pairs(graph: Graph, count: int, generator: torch.Generator) -> Tensor:
    """(2, count): distinct unordered pairs that are not joined, uniformly drawn; the first ones do not depend on `count`."""
    n = graph.num_nodes
    taken = torch.unique(pair_keys(graph.edge_index, n))
    room = n * (n - 1) // 2 - taken.numel()
    if count > room // 2:
        raise BadInput(f"additions: found {count} edges to add where {room} pairs are not joined; add at most half of them")
    found = torch.empty(2, 0, dtype=torch.int64)
    while found.shape[1] < count:
        drawn = torch.randint(n, (2, _BATCH), generator=generator)
        found = torch.cat([found, drawn[:, drawn[0] != drawn[1]]], 1)
        found = found[:, first_places(pair_keys(found, n))]
        found = found[:, ~torch.isin(pair_keys(found, n), taken)]
    return found[:, :count]


def first_places(keys: Tensor) -> Tensor:
    """Positions at which each number appears first, in their order."""
    order = torch.argsort(keys, stable=True)
    sorted_keys = keys[order]
    first = torch.ones_like(sorted_keys, dtype=torch.bool)
    first[1:] = sorted_keys[1:] != sorted_keys[:-1]
    return order[first].sort().values


def budget_of(graph: Graph, strength: float) -> int:
    """How many pairs an attack may flip: a share of the joined pairs, directions not counted."""
    return round(strength * torch.unique(pair_keys(graph.edge_index, graph.num_nodes)).numel())
