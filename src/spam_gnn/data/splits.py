"""Splits for graphs that come without one: seeded; stratified ones are the same whatever the order of the nodes."""

from __future__ import annotations

import torch

from spam_gnn.errors import BadInput
from spam_gnn.graph import Graph
from spam_gnn.randomness import node_uniforms, seed_for


def random_split(graph: Graph, seed: int, fractions: tuple[float, float] = (0.48, 0.32)) -> Graph:
    """Divide the labelled nodes of each class into train, validation and, with what is left, test.

    Every class has a training node; from two nodes on also one for validation, from three on one of each kind.

    Args:
        graph: any graph with labels; masks it has are replaced, unlabelled nodes stay outside every mask.
        seed: same seed, same split. The draw of a node depends on its identity alone, not on its place in the graph.
        fractions: of train and of validation in each class; together less than one.
    """
    train_share, val_share = fractions
    if not (train_share > 0 and val_share > 0 and train_share + val_share < 1):
        raise BadInput(
            f"fractions: found {train_share} for training and {val_share} for validation; give two numbers above 0 "
            "whose sum is below 1, so that test nodes remain"
        )
    size = _class_sizes(graph)
    train, val = _sizes(size, (size * train_share).round().long(), (size * val_share).round().long())
    return _stratified(graph, seed, train, val)


def few_labels(graph: Graph, seed: int, train: int, val: int) -> Graph:
    """`train` labelled nodes of each class to learn from, `val` of each to choose by, all others to test on.

    A class that has fewer keeps one node for each part before the wishes are met.
    """
    if train < 1 or val < 1:
        raise BadInput(f"per-class: found {train} training and {val} validation labels; give whole numbers of at least 1")
    size = _class_sizes(graph)
    return _stratified(graph, seed, *_sizes(size, torch.full_like(size, train), torch.full_like(size, val)))


def permuted_split(graph: Graph, seed: int, fractions: tuple[float, float]) -> Graph:
    """Cut one permutation of the labelled nodes, drawn by `seed` alone and without regard to class.

    With 10/45/45 percent and seeds 0 to 9 these are the splits of the paper's authors' published code.
    """
    labelled = (graph.y >= 0).nonzero().squeeze(1)
    order = labelled[torch.randperm(labelled.numel(), generator=torch.Generator().manual_seed(seed))]
    ends = [int(labelled.numel() * share) for share in (fractions[0], fractions[0] + fractions[1])]
    masks = [torch.zeros(graph.num_nodes, dtype=torch.bool) for _ in range(3)]
    for mask, members in zip(masks, order.tensor_split(ends), strict=True):
        mask[members] = True
    return graph.with_masks(*masks)


def _class_sizes(graph: Graph) -> torch.Tensor:
    """(C,) labelled nodes of each class."""
    labels = graph.y[graph.y >= 0]
    if labels.numel() == 0:
        raise BadInput(f"{graph.name}: found no labelled node to split; label some nodes of every class")
    return torch.bincount(labels, minlength=graph.num_classes)


def _stratified(graph: Graph, seed: int, train_size: torch.Tensor, val_size: torch.Tensor) -> Graph:
    """Of each class, in an order drawn by seed, the first `train_size` train, the next `val_size` validate, the rest test."""
    # Sorted by class, inside a class by draw, and by identity should two draws ever be equal.
    labelled = (graph.y >= 0).nonzero().squeeze(1)
    order = labelled[torch.argsort(graph.identity[labelled], stable=True)]
    order = order[torch.argsort(node_uniforms(graph.identity[order], seed_for(seed, "split")), stable=True)]
    order = order[torch.argsort(graph.y[order], stable=True)]
    label = graph.y[order]

    size = torch.bincount(label, minlength=graph.num_classes)  # (C,)
    rank = torch.arange(len(order)) - (size.cumsum(0) - size)[label]  # place of each node inside its own class
    train, val, test = (torch.zeros(graph.num_nodes, dtype=torch.bool) for _ in range(3))
    train[order] = rank < train_size[label]
    val[order] = (rank >= train_size[label]) & (rank < (train_size + val_size)[label])
    test[order] = rank >= (train_size + val_size)[label]
    return graph.with_masks(train, val, test)


def _sizes(size: torch.Tensor, train: torch.Tensor, val: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """(C,) training and validation nodes of each class: those wished for, moved so that no part is left empty."""
    one = torch.ones_like(size)
    train = _between(train, one, size - 2)
    val = _between(val, one, size - train - 1)
    # One or two nodes cannot fill three parts: the first trains, the second validates.
    return torch.where(size < 3, size.clamp(max=1), train), torch.where(size < 3, (size - 1).clamp(min=0), val)


def _between(value: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> torch.Tensor:
    return torch.minimum(torch.maximum(value, low), high)
