"""`CellFeed`: a graph that is trained on part by part, cut anew in every epoch around nodes drawn at random.

Depth needs many steps of the optimiser, and an epoch on the whole graph is one. Every node belongs to the cell of the root that
is fewest edges away, so a cell is a connected surrounding in which a deep network hears nearly all that it would hear in the
whole graph; an edge that is cut in one epoch is whole in the next. All cells together cost as much as the whole graph.
Validation and prediction take the graph whole.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse
import torch
from scipy.sparse.csgraph import connected_components, dijkstra

from spam_gnn.contract import NodeModel
from spam_gnn.graph import Graph
from spam_gnn.loading.clusters import Clusters
from spam_gnn.loading.cut import Whole
from spam_gnn.loading.feed import Feed, Piece, Validation, WholeFeed
from spam_gnn.loading.neighbourhoods import Neighbourhoods
from spam_gnn.randomness import node_uniforms, seed_for

_UNREACHED = -9999  # what `dijkstra` says of a node that no root reaches


class Cells:
    """Cells of a graph, by the draw of an epoch; the order of the nodes does not matter to them."""

    def __init__(self, graph: Graph) -> None:
        self._identity, self._around = graph.identity, Neighbourhoods.of(graph)
        self._order = torch.argsort(graph.identity).numpy()  # ties between roots are broken in this order
        n, place = graph.num_nodes, np.empty(graph.num_nodes, np.int64)
        place[self._order] = np.arange(n)
        source, target = place[graph.edge_index.numpy()]
        self._links = scipy.sparse.csr_array((np.ones(len(source)), (source, target)), shape=(n, n))
        self._component = connected_components(self._links, directed=False)[1]

    def drawn(self, count: int, seed: int, epoch: int) -> Clusters:
        """`count` cells, fewer where the graph has fewer nodes. What no root reaches goes to a cell component by component."""
        draw = node_uniforms(self._identity, seed_for(seed, "cells", epoch)).numpy()[self._order]
        roots = np.argsort(draw, kind="stable")[:count]
        *_, nearest = dijkstra(
            self._links, directed=False, indices=roots, unweighted=True, min_only=True, return_predecessors=True
        )
        number = np.full(len(draw) + 1, -1)  # its last entry is for nobody
        number[roots] = np.arange(len(roots))
        reached = nearest != _UNREACHED
        cell = np.where(reached, number[np.where(reached, nearest, -1)], self._component % len(roots))
        part = np.empty_like(cell)
        part[self._order] = cell
        return Clusters.with_labels(self._around, torch.from_numpy(part), len(roots))


class CellFeed(Feed):
    """One step per cell that has a training target, in an order that every epoch draws anew."""

    def __init__(self, model: NodeModel, graph: Graph, count: int) -> None:
        self._whole, self._seen_whole, self._count = (
            Whole.of(model.structure(graph), model.node_columns(graph)), WholeFeed(model, graph), count
        )  # fmt: skip
        self._cells = Cells(self._whole.graph)

    def steps(self, model: NodeModel, seed: int, epoch: int) -> Iterator[list[Piece]]:
        targets = model.targets(self._whole.graph, seed, epoch)
        cells = self._cells.drawn(self._count, seed, epoch)
        counts = cells.counts(targets)
        for number in range(cells.count):  # roots are in the order of their draws, so the order of cells is random already
            if counts[number] > 0:
                yield [Piece(model.prepare(self._batch(cells, number)), share=float(counts[number] / counts.sum()))]

    def _batch(self, cells: Clusters, number: int) -> Graph:
        chosen = cells.induced(torch.tensor([number]))
        return self._whole.cut(chosen, torch.ones(len(chosen.nodes), dtype=torch.bool), number)

    def evaluate(self, model: NodeModel, seed: int, samples: int) -> Validation:
        return self._seen_whole.evaluate(model, seed, samples)

