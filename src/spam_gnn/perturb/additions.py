"""Random additions: new edges between pairs that were not joined, whatever their classes."""

from __future__ import annotations

import torch

from spam_gnn.graph import Graph
from spam_gnn.perturb.base import new_pairs, rewired, slots
from spam_gnn.randomness import stream


def random_additions(graph: Graph, strength: float, seed: int) -> Graph:
    """With round(strength * edges) further edges, each recorded as planted; a directed graph gets them in a random direction.

    With one seed a stronger addition holds the edges of a weaker one, and more.
    """
    count = round(strength * slots(graph).shape[1])
    added = new_pairs(graph, count, stream(seed, "additions"))
    keep = torch.ones(graph.num_edges, dtype=torch.bool)
    return rewired(graph, keep, added, f"{count} random edges added")
