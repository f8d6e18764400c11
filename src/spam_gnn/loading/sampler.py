"""`NeighbourSampler`: neighbour sampling behind PyG's `BaseSampler`, for use with PyG's own `NodeLoader`; needs no pyg-lib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch_geometric.typing
from torch_geometric.data import Data
from torch_geometric.sampler import (
    BaseSampler,
    EdgeSamplerInput,
    NegativeSampling,
    NeighborSampler,
    NodeSamplerInput,
    SamplerOutput,
)

from spam_gnn.errors import BadInput
from spam_gnn.graph import Graph
from spam_gnn.loading.neighbourhoods import Neighbourhoods, forget, sample_hop
from spam_gnn.randomness import library_draws, seed_for


class NeighbourSampler(BaseSampler):
    """Up to `sizes[h]` neighbours of every node found in hop h - 1, uniformly and without replacement.

    Which neighbours a node gets depends on (seed, epoch, hop, node) alone: not on the batch it is met in, nor on the process.

    Args:
        graph: a `Graph`; of a directed one, neighbours at both ends are sampled.
        sizes: neighbours per hop; -1 takes all.
        seed, epoch: name the draw.

    Example:
        >>> from spam_gnn.data.synthetic import csbm
        >>> from torch_geometric.loader import NodeLoader
        >>> graph = csbm(nodes=60, seed=0)
        >>> data = Data(x=graph.x, edge_index=graph.edge_index)
        >>> batch = next(iter(NodeLoader(data, NeighbourSampler(graph, (3, 3)), batch_size=4)))
        >>> batch.batch_size
        4
    """

    def __init__(self, graph: Graph, sizes: Sequence[int], seed: int = 0, epoch: int = 0) -> None:
        if not sizes or any(size < -1 or size == 0 for size in sizes):
            raise BadInput(f"neighbours: found {tuple(sizes)}; give a number of 1 or more for each hop, or -1 for all")
        self.around = Neighbourhoods.of(graph)
        self.sizes, self.seed, self.epoch = tuple(sizes), seed, epoch
        self._place = np.full(self.around.num_nodes, -1, dtype=np.int64)

    def at_epoch(self, epoch: int) -> NeighbourSampler:
        """The same sampler with the draws of another epoch."""
        self.epoch = epoch
        return self

    def sample_from_nodes(self, index: NodeSamplerInput, **_: Any) -> SamplerOutput:
        """The seeds first, then what each hop found; `edge` holds the sampled edges' positions in the graph."""
        around, seeds = self.around, np.ascontiguousarray(index.node.numpy())
        nodes, count, first = seeds, len(seeds), 0
        self._place[seeds] = np.arange(count)
        hops, sizes = [], [count]
        for hop, most in enumerate(self.sizes):
            degree = around.degrees(nodes[first:count])
            room = int((degree if most < 0 else np.minimum(degree, most)).sum())
            nodes = np.concatenate([nodes[:count], np.empty(room, dtype=np.int64)])
            ends = tuple(np.empty(room, dtype=np.int64) for _ in range(3))
            word = np.uint64(seed_for(self.seed, "neighbours", self.epoch, hop))
            found = sample_hop(around.pointer, around.neighbour, nodes, first, count, most, word, self._place, count, *ends)
            hops.append(ends)
            sizes.append(found - count)
            first, count = count, found
        forget(nodes, count, self._place)
        source, target, entry = (torch.from_numpy(np.concatenate(part)) for part in zip(*hops, strict=True))
        edge = entry if around.edge is None else torch.from_numpy(around.edge)[entry]
        return SamplerOutput(
            torch.from_numpy(nodes[:count]), source, target, edge, num_sampled_nodes=sizes,
            num_sampled_edges=[len(ends[0]) for ends in hops], metadata=(index.input_id, None),
        )  # fmt: skip

    def sample_from_edges(self, index: EdgeSamplerInput, neg_sampling: NegativeSampling | None = None) -> SamplerOutput:
        raise NotImplementedError("this sampler starts from nodes")


class LibrarySampler(BaseSampler):
    """PyG's own sampler on pyg-lib, where that is installed, seeded for each batch."""

    def __init__(self, graph: Graph, sizes: Sequence[int], seed: int = 0, epoch: int = 0) -> None:
        self._inner = NeighborSampler(Data(edge_index=graph.edge_index, num_nodes=graph.num_nodes), list(sizes))
        self.seed, self.epoch = seed, epoch

    def at_epoch(self, epoch: int) -> LibrarySampler:
        self.epoch = epoch
        return self

    def sample_from_nodes(self, index: NodeSamplerInput, **_: Any) -> Any:
        with library_draws(self.seed, "neighbours", self.epoch, int(index.node[0])):
            return self._inner.sample_from_nodes(index)

    def sample_from_edges(self, index: EdgeSamplerInput, neg_sampling: NegativeSampling | None = None) -> Any:
        raise NotImplementedError("this sampler starts from nodes")

    @property
    def edge_permutation(self) -> Any:
        return self._inner.edge_permutation


def make_sampler(graph: Graph, sizes: Sequence[int], seed: int) -> NeighbourSampler | LibrarySampler:
    """pyg-lib's sampler for an undirected graph where it is installed, otherwise ours: the same batches in distribution."""
    library = torch_geometric.typing.WITH_PYG_LIB and not graph.directed
    return (LibrarySampler if library else NeighbourSampler)(graph, sizes, seed)
