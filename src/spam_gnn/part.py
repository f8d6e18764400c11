"""`Part`: what a batch, which is a graph of its own, knows of the whole graph it was cut from."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, eq=False)
class Part:
    """Facts that the nodes and edges of a batch cannot tell.

    Args:
        counted: (n,) bool, the nodes of the batch that the loss is taken on: its seeds, whose neighbourhoods are there.
        number: of the batch within its epoch; names its dropout masks.
        labelled, others: how many nodes of the whole graph have a training label, and how many have none.
        edges: of the whole graph, as it stores them (an undirected one twice).
        evidence: (2, 2), mean and spread over all edges of the whole graph, of feature similarity and of log degrees.
        degree: (n,), how many neighbours each node of the batch has in the whole graph, 1 where it has none.
    """

    counted: Tensor
    number: int
    labelled: int
    others: int
    edges: int
    evidence: Tensor
    degree: Tensor
