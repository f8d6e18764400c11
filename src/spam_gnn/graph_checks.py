"""Checks of what a graph is built from: one sentence says what was found and what to do."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from spam_gnn.errors import BadInput
from spam_gnn.structure import adjacency, edge_index_of, with_mirrored


def checked_features(x: Tensor) -> Tensor:
    """(n, d) float32, dense or `torch.sparse_csr`, all finite."""
    if x.ndim != 2:
        raise BadInput(f"x: found a tensor of shape {tuple(x.shape)}; give one row of features per node, shape (n, d)")
    x = x.to(torch.float32)
    if x.layout not in (torch.strided, torch.sparse_csr):
        x = x.to_sparse_coo().coalesce().to_sparse_csr()
    values = x.values() if x.layout == torch.sparse_csr else x
    if bool(values.sum().isfinite()):  # one NaN or infinity would be in the sum as well, and a sum needs no memory
        return x
    bad = ~torch.isfinite(values)
    if bool(bad.any()):
        where = "a stored value" if x.layout == torch.sparse_csr else f"row {int(bad.any(1).nonzero()[0])}"
        raise BadInput(f"x: {where} is NaN or infinite ({int(bad.sum())} such values); impute or drop them first")
    return x


def check_ends(edges: Tensor, n: int) -> None:
    """Every end of an edge is a node."""
    if edges.numel() and (int(edges.min()) < 0 or int(edges.max()) >= n):
        raise BadInput(f"edge_index: found node {int(edges.max())} or below 0 in a graph of {n} nodes; use 0 to {n - 1}")


def checked_edges(
    edge_index: Tensor, sign: Tensor | None, n: int, directed: bool | None
) -> tuple[Tensor, Tensor | None, bool, list[str]]:
    """Edges without loops and repeats, sorted; their signs; whether they are directed; what was changed."""
    if edge_index.ndim != 2 or edge_index.shape[0] != 2:
        raise BadInput(f"edge_index: found shape {tuple(edge_index.shape)}; give (2, number of edges)")
    if edge_index.is_floating_point():
        raise BadInput(f"edge_index: found {edge_index.dtype}; give whole numbers (torch.long)")
    edges = edge_index.to(torch.int64)
    check_ends(edges, n)
    if sign is not None and sign.shape != (edges.shape[1],):
        raise BadInput(f"edge_sign: found shape {tuple(sign.shape)} for {edges.shape[1]} edges; give one sign per edge")
    notes: list[str] = []
    loops = edges[0] == edges[1]
    if bool(loops.any()):
        notes.append(f"{int(loops.sum())} self-loops dropped (the layer has its own self term)")
        edges, sign = edges[:, ~loops], None if sign is None else sign[~loops]
    listed = adjacency(edges, n)
    repeats = edges.shape[1] - listed.nnz
    if repeats:
        notes.append(f"{repeats} duplicate edges merged")
    both = listed if directed else with_mirrored(listed)
    if directed is None:
        directed = both.nnz != listed.nnz
    chosen = edge_index_of(listed if directed else both)
    return chosen, None if sign is None else _carried_sign(edges, sign, chosen, n), directed, notes


def _carried_sign(edges: Tensor, sign: Tensor, chosen: Tensor, n: int) -> Tensor:
    """(m,) int8: the sign of the first listed edge of each stored one; a mirrored edge has the sign of its twin."""
    keys = torch.cat([edges[1] * n + edges[0], edges[0] * n + edges[1]])
    order = torch.argsort(keys, stable=True)
    place = torch.searchsorted(keys[order], chosen[1] * n + chosen[0])
    return torch.cat([sign, sign])[order[place]].to(torch.int8)


def checked_labels(y: Tensor | None, n: int, num_classes: int | None) -> tuple[Tensor, int]:
    """(n,) labels, -1 where unknown, and how many classes there are."""
    labels = torch.full((n,), -1) if y is None else y.reshape(-1)
    if labels.shape[0] != n:
        raise BadInput(f"y: found {labels.shape[0]} labels for {n} nodes; give one each, -1 where unknown")
    if labels.is_floating_point() and not bool((labels == labels.round()).all()):
        raise BadInput("y: found fractional labels; give whole numbers 0 .. C-1, -1 where unknown")
    labels = labels.to(torch.int64)
    if n and int(labels.min()) < -1:
        raise BadInput(f"y: found label {int(labels.min())}; use 0 .. C-1, and -1 where unknown")
    seen = int(labels.max()) + 1 if n else 0
    if num_classes is not None and seen > num_classes:
        raise BadInput(f"y: found label {seen - 1} but num_classes={num_classes}; raise num_classes or mend the labels")
    return labels, num_classes or seen


def checked_mask(mask: Tensor | None, labels: Tensor, name: str) -> Tensor:
    """(n,) bool, only of nodes with a label."""
    if mask is None:
        return torch.zeros_like(labels, dtype=torch.bool)
    if mask.shape != labels.shape:
        raise BadInput(f"{name}: found shape {tuple(mask.shape)} for {labels.shape[0]} nodes; give (n,), one split at a time")
    mask = mask.to(torch.bool)
    unknown = int((mask & (labels < 0)).sum())
    if unknown:
        raise BadInput(f"{name}: selects {unknown} nodes without a label; leave unlabelled nodes out of every mask")
    return mask


def check_disjoint(masks: Sequence[Tensor]) -> None:
    """Training, validation and test nodes, in this order, are different ones."""
    for a, b, what in ((0, 1, "train and validation"), (0, 2, "train and test"), (1, 2, "validation and test")):
        shared = int((masks[a] & masks[b]).sum())
        if shared:
            raise BadInput(f"masks: {shared} nodes are in both {what}; each node may serve only one purpose")
