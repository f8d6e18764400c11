"""Random deletions: a share of the edges goes, whichever they are."""

from __future__ import annotations

import torch

from spam_gnn.errors import BadInput
from spam_gnn.graph import Graph
from spam_gnn.perturb.base import rewired, slots
from spam_gnn.randomness import stream


def random_deletions(graph: Graph, strength: float, seed: int) -> Graph:
    """Without round(strength * edges) of the edges; an undirected edge goes in both directions.

    With one seed a stronger deletion removes what a weaker one removes, and more.
    """
    if strength > 1.0:
        raise BadInput(f"deletions: found strength {strength}; use a share of the edges, from 0 to 1")
    count = slots(graph).shape[1]
    gone = torch.zeros(count, dtype=torch.bool)
    gone[torch.randperm(count, generator=stream(seed, "deletions"))[: round(strength * count)]] = True
    keep = ~(gone if graph.directed else gone[graph.pairs.of_edge])
    nothing = torch.empty(2, 0, dtype=torch.int64)
    return rewired(graph, keep, nothing, f"{int(gone.sum())} of {count} edges deleted at random")
