"""`Neighbourhoods`: who is next to whom, as CSR arrays that may live on disk; and the compiled loop that samples from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spam_gnn.graph import Graph
from spam_gnn.kernels.compiled import compiled
from spam_gnn.kernels.draws import splitmix

ALL = -1  # as a number of neighbours: every one
_S11 = np.uint64(11)


@dataclass(frozen=True, eq=False)
class Neighbourhoods:
    """The edges at each node: entry pointer[i] .. pointer[i + 1] - 1 of the arrays belongs to node i.

    Args:
        pointer: (n + 1,).
        neighbour: the node at the other end.
        edge: which stored edge of the graph it is; None where entry e is edge e.
    """

    pointer: NDArray[np.int64]
    neighbour: NDArray[np.int64]
    edge: NDArray[np.int64] | None = None

    @staticmethod
    def of(graph: Graph) -> Neighbourhoods:
        """Arriving edges of an undirected graph, which are all; arriving and leaving ones of a directed graph."""
        source, target = (end.numpy() for end in graph.edge_index)
        if not graph.directed:
            return Neighbourhoods(graph.pointer.numpy(), source)
        node, other = np.concatenate([target, source]), np.concatenate([source, target])
        order = np.argsort(node, kind="stable")
        counts = np.bincount(node, minlength=graph.num_nodes)
        return Neighbourhoods(np.concatenate([[0], counts.cumsum()]), other[order], order % max(graph.num_edges, 1))

    @property
    def num_nodes(self) -> int:
        return len(self.pointer) - 1

    def degrees(self, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        return self.pointer[nodes + 1] - self.pointer[nodes]


@compiled
def sample_hop(
    pointer: Any, neighbour: Any, nodes: Any, first: Any, last: Any, most: Any, word: Any, place: Any, count: Any,
    source: Any, target: Any, entry: Any,
) -> Any:  # fmt: skip
    """Up to `most` entries, without replacement, at each of nodes[first:last]; new neighbours are appended to `nodes`.

    The draw of a node depends on `word` and the node alone (Floyd's algorithm on a splitmix64 stream). Writes local numbers of
    both ends and the entry; `place` maps nodes to local numbers, -1 where a node is new. Returns the number of nodes.
    """
    e = 0
    for t in range(first, last):
        v = nodes[t]
        begin, degree = pointer[v], pointer[v + 1] - pointer[v]
        take = degree if most < 0 or degree <= most else most
        state = splitmix(word ^ splitmix(np.uint64(v)))
        for step in range(take):
            chosen = step
            if take < degree:
                last_one = degree - take + step
                state = splitmix(state)
                chosen = np.int64((state >> _S11) * 2.0**-53 * (last_one + 1))
                for seen in range(e - step, e):
                    if entry[seen] == begin + chosen:
                        chosen = last_one
                        break
            u = neighbour[begin + chosen]
            if place[u] < 0:
                place[u] = count
                nodes[count] = u
                count += 1
            source[e], target[e], entry[e] = place[u], t, begin + chosen
            e += 1
    return count


@compiled
def forget(nodes: Any, count: Any, place: Any) -> None:
    """Clear the local numbers of a batch, so that the next one starts clean without touching all n entries."""
    for t in range(count):
        place[nodes[t]] = -1
