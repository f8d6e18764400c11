"""Pieces of a graph: ranges of nodes and edges, blocks of nodes with all their neighbours, and room for what is kept of all."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spam_gnn.features import FeatureMatrix, rows_of
from spam_gnn.graph import Direction, Graph
from spam_gnn.kernels.compiled import compiled
from spam_gnn.loading.neighbourhoods import Neighbourhoods
from spam_gnn.structure import Messages

NODES_AT_A_TIME, EDGES_AT_A_TIME = 1 << 14, 1 << 16
_IN_MEMORY = 1 << 24  # bytes; larger arrays live in an unnamed file, whose pages the system may give back


def scratch(*shape: int, kind: type[np.number[Any]] = np.float32) -> Tensor:
    """Room for numbers that are kept of all nodes or edges; a large one is backed by a file that has no name."""
    if np.prod(shape) * np.dtype(kind).itemsize <= _IN_MEMORY:
        return torch.from_numpy(np.empty(shape, kind))
    with tempfile.TemporaryFile(prefix="spam-gnn-") as file:
        return torch.from_numpy(np.memmap(file, dtype=kind, mode="w+", shape=shape))


class Rooms:
    """Scratch arrays by name that are used again and again. To be handed a page for the first time costs the system more than
    to write to it: with fresh files for every sample that was a tenth of a large graph's prediction, and grew with its size."""

    def __init__(self) -> None:
        self._held: dict[str, Tensor] = {}

    def get(self, name: str, *shape: int) -> Tensor:
        """Room for float32 numbers; what it held under the same name is lost."""
        size = int(np.prod(shape))
        if name not in self._held or len(self._held[name]) < size:
            self._held[name] = scratch(size)
        return self._held[name][:size].view(shape)


def node_ranges(count: int) -> Iterator[slice]:
    """All nodes, some at a time."""
    return _ranges(count, NODES_AT_A_TIME)


def edge_ranges(count: int) -> Iterator[slice]:
    """All stored edges, some at a time."""
    return _ranges(count, EDGES_AT_A_TIME)


def _ranges(count: int, size: int) -> Iterator[slice]:
    for begin in range(0, count, size):
        yield slice(begin, min(begin + size, count))


def features_of(graph: Graph, rows: slice) -> FeatureMatrix:
    """The raw features of a range of nodes; nothing else is read."""
    return FeatureMatrix.of_rows(rows_of(graph.x, torch.arange(rows.start, rows.stop)))


@dataclass(frozen=True, eq=False)
class Block:
    """A range of nodes and everybody they hear: a small graph in which only they listen.

    Args:
        nodes: (b,) ascending, in the whole graph.
        rows: where the listening nodes are among them.
        neighbours: per direction, the messages in local numbers.
        edges: per direction, the stored edge each message travels along.
    """

    nodes: Tensor
    rows: slice
    neighbours: tuple[Messages, ...]
    edges: tuple[Tensor, ...]


class Blocks:
    """Blocks of a graph for the directions that a network listens to."""

    def __init__(self, graph: Graph, directions: tuple[Direction, ...]) -> None:
        self._count = graph.num_nodes
        self._around = tuple(_arrivals(graph, way) for way in directions)

    def ranges(self) -> Iterator[slice]:
        """Ranges of nodes with about as many messages each; a hub with more than that comes alone."""
        pointer, first = self._around[0].pointer, 0
        while first < self._count:
            last = int(np.searchsorted(pointer, pointer[first] + EDGES_AT_A_TIME, side="right")) - 1
            last = min(max(last, first + 1), first + NODES_AT_A_TIME, self._count)
            yield slice(first, last)
            first = last

    def arrivals(self, rows: slice) -> list[tuple[Messages, slice | Tensor]]:
        """Per direction, what a range of nodes hears: messages from nodes of the whole graph to 0 .. r - 1, and their edges."""
        found: list[tuple[Messages, slice | Tensor]] = []
        for around in self._around:
            part = slice(int(around.pointer[rows.start]), int(around.pointer[rows.stop]))
            degree = np.diff(around.pointer[rows.start : rows.stop + 1])
            target = torch.from_numpy(np.repeat(np.arange(len(degree)), degree))
            source = torch.from_numpy(np.array(around.neighbour[part]))
            edges = part if around.edge is None else torch.from_numpy(around.edge[part])
            found.append((Messages(len(degree), source, target, torch.arange(len(source))), edges))
        return found

    def block(self, rows: slice) -> Block:
        entries = [slice(int(a.pointer[rows.start]), int(a.pointer[rows.stop])) for a in self._around]
        present = np.zeros(self._count, dtype=bool)
        present[rows] = True
        for around, part in zip(self._around, entries, strict=True):
            present[around.neighbour[part]] = True
        nodes = np.flatnonzero(present)
        first = int(np.searchsorted(nodes, rows.start))
        messages, edges = [], []
        for around, part in zip(self._around, entries, strict=True):
            source = torch.from_numpy(np.searchsorted(nodes, around.neighbour[part]))
            degree = np.diff(around.pointer[rows.start : rows.stop + 1])
            target = torch.from_numpy(np.repeat(np.arange(first, first + rows.stop - rows.start), degree))
            messages.append(Messages(len(nodes), source, target, torch.arange(len(source))))
            edge = np.arange(part.start, part.stop) if around.edge is None else around.edge[part]
            edges.append(torch.from_numpy(edge))
        local = slice(first, first + rows.stop - rows.start)
        return Block(torch.from_numpy(nodes), local, tuple(messages), tuple(edges))


def _arrivals(graph: Graph, way: Direction) -> Neighbourhoods:
    """Whom each node hears: along the edges (`in`), or against them (`out`)."""
    source, target = (end.numpy() for end in graph.edge_index)
    if way == "in":
        return Neighbourhoods(graph.pointer.numpy(), source)
    order = np.lexsort((target, source))
    counts = np.bincount(source, minlength=graph.num_nodes)
    return Neighbourhoods(np.concatenate([[0], counts.cumsum()]), target[order], order)


@compiled
def _find_reverse(pointer: Any, source: Any, target: Any, sources: Any, out: Any) -> None:
    for e in range(source.size):
        low, high = pointer[source[e]], pointer[source[e] + 1]
        while low < high:  # among the edges that arrive at `source`, ascending: the one from `target`
            middle = (low + high) // 2
            if sources[middle] < target[e]:
                low = middle + 1
            else:
                high = middle
        out[e] = low


def reverse_of(graph: Graph, edges: slice) -> Tensor:
    """Positions of the mirrored edges of a range of an undirected graph's edges."""
    source, target = (end[edges].numpy() for end in graph.edge_index)
    out = np.empty(len(source), dtype=np.int64)
    _find_reverse(graph.pointer.numpy(), source, target, graph.edge_index[0].numpy(), out)
    return torch.from_numpy(out)
