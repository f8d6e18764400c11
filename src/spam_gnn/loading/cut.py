"""Cutting: from chosen nodes and edges of a whole graph to a batch, a `Graph` of its own that keeps identities and evidence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from spam_gnn.features import rows_of
from spam_gnn.graph import Graph
from spam_gnn.part import Part
from spam_gnn.posterior.base import evidence_moments

_EDGES_AT_A_TIME = 1 << 22


class Chosen(NamedTuple):
    """Nodes (b,) of a whole graph, and edges among them: local numbers of their ends, and positions in the whole graph."""

    nodes: Tensor
    source: Tensor
    target: Tensor
    edge: Tensor


@dataclass(frozen=True, eq=False)
class Whole:
    """A graph that batches are cut from, with the facts that every one of them carries.

    Args:
        graph: as `NodeModel.structure` returns it; its features and edges may live on disk.
        log_degree: (n,) log of each node's degree in the whole graph.
        evidence: see `Part`.
        labelled: nodes with a training label.
        columns: see `NodeModel.node_columns`.
    """

    graph: Graph
    log_degree: Tensor
    evidence: Tensor
    labelled: int
    columns: dict[str, Tensor]

    @staticmethod
    def of(graph: Graph, columns: dict[str, Tensor] | None = None) -> Whole:
        ends = graph.edge_index.reshape(-1) if graph.directed else graph.edge_index[0]
        degree = torch.bincount(ends, minlength=graph.num_nodes).to(torch.float32).clamp(min=1.0).log()
        return Whole(graph, degree, _moments(graph, degree), int(graph.train_mask.sum()), columns or {})

    def part(self, nodes: Tensor, counted: Tensor, number: int) -> Part:
        others, degree = self.graph.num_nodes - self.labelled, self.log_degree[nodes].exp()
        return Part(counted, number, self.labelled, others, self.graph.num_edges, self.evidence, degree)

    def cut(self, chosen: Chosen, counted: Tensor, number: int) -> Graph:
        """The chosen nodes and edges as a batch; an undirected edge is stored in both directions, whichever was chosen."""
        whole, (nodes, source, target, edge) = self.graph, chosen
        if whole.directed:  # sampled at either end; the edge itself knows which way it points
            along = whole.edge_index[1][edge] == nodes[target]
            source, target = torch.where(along, source, target), torch.where(along, target, source)
        ends, edge = _sorted(source, target, edge, len(nodes), mirrored=not whole.directed)
        batch = Graph(
            x=rows_of(whole.x, nodes), edge_index=ends, y=whole.y[nodes], train_mask=whole.train_mask[nodes],
            val_mask=whole.val_mask[nodes], test_mask=whole.test_mask[nodes], num_classes=whole.num_classes,
            directed=whole.directed, identity=whole.identity[nodes], class_names=whole.class_names, name=whole.name,
            part=self.part(nodes, counted, number),
        )  # fmt: skip
        degree = self.log_degree[nodes]
        batch.__dict__.update(
            feature_cosine=whole.feature_cosine[edge], edge_log_degree=degree[ends[0]] + degree[ends[1]]
        )
        batch.derived.update({name: column[nodes] for name, column in self.columns.items()})
        return batch


def _sorted(source: Tensor, target: Tensor, edge: Tensor, n: int, *, mirrored: bool) -> tuple[Tensor, Tensor]:
    """(2, m) ends sorted by (target, source), each once, and the edge of the whole graph behind each."""
    keys = target * n + source
    if mirrored:
        keys, edge = torch.cat([keys, source * n + target]), torch.cat([edge, edge])
    keys, order = torch.sort(keys, stable=True)
    fresh = torch.ones(len(keys), dtype=torch.bool)
    fresh[1:] = keys[1:] != keys[:-1]
    keys = keys[fresh]
    return torch.stack([keys % max(n, 1), keys // max(n, 1)]), edge[order[fresh]]


def _moments(graph: Graph, log_degree: Tensor) -> Tensor:
    """`evidence_moments`; of many edges a range at a time, so that nothing as long as the list of edges is made."""
    m = graph.num_edges
    if m <= _EDGES_AT_A_TIME:
        return evidence_moments(graph)

    def pieces() -> Iterator[Tensor]:
        for begin in range(0, m, _EDGES_AT_A_TIME):
            source, target = graph.edge_index[:, begin : begin + _EDGES_AT_A_TIME]
            similarity = graph.feature_cosine[begin : begin + _EDGES_AT_A_TIME]
            yield torch.stack([similarity, log_degree[source] + log_degree[target]]).double()

    mean = torch.stack([part.sum(1) for part in pieces()]).sum(0) / m
    square = torch.stack([(part - mean.unsqueeze(1)).square().sum(1) for part in pieces()]).sum(0) / m
    return torch.stack([mean, square.sqrt().clamp(min=1e-6)]).to(torch.float32)
