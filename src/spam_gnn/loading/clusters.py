"""`Clusters`: a graph cut by METIS into parts of equal size that few edges leave; needs the extra `clusters` (pymetis)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spam_gnn.errors import BadInput
from spam_gnn.graph import Graph
from spam_gnn.loading.cut import Chosen
from spam_gnn.loading.neighbourhoods import Neighbourhoods


@dataclass(frozen=True, eq=False)
class Clusters:
    """The parts: which one each node is in, and the nodes of each.

    Args:
        around: the graph's edges at each node.
        part: (n,) number of each node's part.
        order: (n,) nodes, part by part; pointer: (count + 1,) where each part begins in it.
    """

    around: Neighbourhoods
    part: Tensor
    order: Tensor
    pointer: Tensor

    @staticmethod
    def of(graph: Graph, count: int) -> Clusters:
        try:
            import pymetis
        except ImportError:
            raise BadInput("--clusters: pymetis is not installed; run pip install 'spam-gnn[clusters]'") from None
        around = Neighbourhoods.of(graph)
        labels = np.zeros(graph.num_nodes, dtype=np.int64)
        if count > 1:
            _, found = pymetis.part_graph(count, pymetis.CSRAdjacency(around.pointer, around.neighbour))
            labels = np.asarray(found, dtype=np.int64)
        return Clusters.with_labels(around, torch.from_numpy(labels), count)

    @staticmethod
    def with_labels(around: Neighbourhoods, part: Tensor, count: int) -> Clusters:
        """Parts 0 .. count - 1 by the number of each node's part."""
        sizes = torch.bincount(part, minlength=count)
        pointer = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
        return Clusters(around, part, torch.argsort(part, stable=True), pointer)

    @property
    def count(self) -> int:
        return len(self.pointer) - 1

    def nodes(self, group: Tensor) -> Tensor:
        """The nodes of some parts."""
        return torch.cat([self.order[self.pointer[p] : self.pointer[p + 1]] for p in group.tolist()])

    def counts(self, mask: Tensor) -> Tensor:
        """(count,): how many nodes of a mask each part holds."""
        return torch.bincount(self.part[mask], minlength=self.count)

    def induced(self, group: Tensor) -> Chosen:
        """The nodes of some parts and all edges among them: local ends and positions in the whole graph."""
        nodes = self.nodes(group)
        place = np.full(len(self.part), -1, dtype=np.int64)
        place[nodes.numpy()] = np.arange(len(nodes))
        entry, target = _entries(self.around, nodes.numpy())
        source = place[self.around.neighbour[entry]]
        inside = source >= 0
        entry = entry[inside]
        edge = entry if self.around.edge is None else self.around.edge[entry]
        return Chosen(nodes, *(torch.from_numpy(a) for a in (source[inside], target[inside], edge)))


def _entries(around: Neighbourhoods, nodes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positions of all entries at some nodes, and the local number of the node each belongs to."""
    degree = around.degrees(nodes)
    local = np.repeat(np.arange(len(nodes)), degree)
    begins = np.cumsum(degree) - degree
    return np.arange(len(local)) + (around.pointer[nodes] - begins)[local], local
