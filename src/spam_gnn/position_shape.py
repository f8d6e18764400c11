"""`PositionShape`: how many columns say where a node stands (`position.py`), as far as the sizes of a graph decide it."""

from __future__ import annotations

from dataclasses import dataclass

from spam_gnn.choices import PositionMode

MANY = 10.0  # edge ends per node from which `auto` looks at the rows of the adjacency
LARGEST = 200_000  # nodes up to which it does: beyond, the singular directions cost more time and memory than the training
ENOUGH, ROOM = 512, 1 << 24  # singular directions that every graph may have; numbers up to which it has more
SIZES = 3  # in-degree, out-degree, norm of the features


@dataclass(frozen=True)
class PositionShape:
    """n, how many singular directions, and whether rows and columns of the adjacency differ."""

    num_nodes: int
    rank: int
    directed: bool

    @property
    def ways(self) -> int:
        return 2 if self.directed else 1

    @property
    def width(self) -> int:
        return SIZES + self.ways * self.rank

    @staticmethod
    def wanted(mode: PositionMode, rank: int, num_nodes: int, num_edges: int, *, directed: bool) -> PositionShape | None:
        """What a graph of this size gets; None for no columns at all. Edges of an undirected graph count in both directions.

        `rank` is the most it gets: all rows together take up to `ROOM` numbers, or `ENOUGH` for each node if that is more.
        """
        ends = num_edges * (2 if directed else 1) / max(num_nodes, 1)
        if mode == "off" or num_nodes < 3 or (mode == "auto" and (ends < MANY or num_nodes > LARGEST)):
            return None
        most = max(ENOUGH, ROOM // (num_nodes * (2 if directed else 1)))
        return PositionShape(num_nodes, min(rank, most, num_nodes - 1), directed)
