"""`NodeTable`: one learned row per node, for systems that multiply the adjacency matrix itself with a weight."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from spam_gnn.graph import Graph
from spam_gnn.initial import glorot


class NodeTable(nn.Module):
    """W in A W: row j belongs to node j as a *named* node, so that the product does not depend on how nodes are numbered.

    A weight of shape (n, width) ties a model to the nodes it was trained on. Rows are found by `Graph.identity`, which survives
    relabelling; a node that was not there in training has a row of zeros.

    Args:
        num_nodes, width: shape of the table.
        generator: of its first values.
    """

    def __init__(self, num_nodes: int, width: int, generator: torch.Generator) -> None:
        super().__init__()
        self.weight = nn.Parameter(glorot(num_nodes, width, generator))
        self.register_buffer("known", torch.arange(num_nodes))

    def learn(self, graph: Graph) -> None:
        """Take over the identities of the training graph, once, before training."""
        self.get_buffer("known").copy_(torch.sort(graph.identity).values)

    def forward(self, graph: Graph) -> Tensor:
        """(n, width): the row of each node of this graph."""
        known = self.get_buffer("known")
        place = torch.searchsorted(known, graph.identity).clamp(max=known.numel() - 1)
        rows = self.weight.index_select(0, place)
        return rows * (known[place] == graph.identity).to(rows.dtype).unsqueeze(1)
