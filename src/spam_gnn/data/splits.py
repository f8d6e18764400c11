"""A split for graphs that come without one: seeded, stratified by class, the same whatever the order of the nodes."""

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
    labelled = (graph.y >= 0).nonzero().squeeze(1)
    if labelled.numel() == 0:
        raise BadInput(f"{graph.name}: found no labelled node to split; label some nodes of every class")

    # Sorted by class, inside a class by draw, and by identity should two draws ever be equal.
    order = labelled[torch.argsort(graph.identity[labelled], stable=True)]
    order = order[torch.argsort(node_uniforms(graph.identity[order], seed_for(seed, "split")), stable=True)]
    order = order[torch.argsort(graph.y[order], stable=True)]
    label = graph.y[order]

    size = torch.bincount(label, minlength=graph.num_classes)  # (C,)
    train_size, val_size = _sizes(size, train_share, val_share)
    rank = torch.arange(len(order)) - (size.cumsum(0) - size)[label]  # place of each node inside its own class
    train, val, test = (torch.zeros(graph.num_nodes, dtype=torch.bool) for _ in range(3))
    train[order] = rank < train_size[label]
    val[order] = (rank >= train_size[label]) & (rank < (train_size + val_size)[label])
    test[order] = rank >= (train_size + val_size)[label]
    return graph.with_masks(train, val, test)


def _sizes(size: torch.Tensor, train_share: float, val_share: float) -> tuple[torch.Tensor, torch.Tensor]:
    """(C,) training and validation nodes of each class: the rounded share, moved so that no part is left empty."""
    one = torch.ones_like(size)
    train = _between((size * train_share).round().long(), one, size - 2)
    val = _between((size * val_share).round().long(), one, size - train - 1)
    # One or two nodes cannot fill three parts: the first trains, the second validates.
    return torch.where(size < 3, size.clamp(max=1), train), torch.where(size < 3, (size - 1).clamp(min=0), val)


def _between(value: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> torch.Tensor:
    return torch.minimum(torch.maximum(value, low), high)
