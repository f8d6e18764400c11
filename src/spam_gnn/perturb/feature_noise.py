"""Feature noise: words moved to other columns where features are counts, Gaussian noise where they are measurements."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from spam_gnn.errors import BadInput
from spam_gnn.graph import Graph
from spam_gnn.randomness import stream


def feature_noise(graph: Graph, strength: float, seed: int) -> Graph:
    """The same edges, other features.

    Counts (nonnegative, mostly zero: bags of words): a share `strength` of the nonzero entries moves to columns where the same
    node has a zero, so that no node gains or loses words. Anything else: Gaussian noise of `strength` standard deviations of
    each column.
    """
    generator = stream(seed, "feature noise")
    if graph.features.looks_like_counts():
        if strength > 1.0:
            raise BadInput(f"feature-noise: found strength {strength}; features are counts, use a share from 0 to 1")
        x, note = _moved(graph.features.to_dense().clone(), strength, generator)
        x = x if graph.x.layout == torch.strided else x.to_sparse_csr()
    else:
        dense = graph.features.to_dense()
        spread = graph.features.column_moments()[1]
        x = dense + strength * spread * torch.randn(dense.shape, generator=generator)
        note = f"Gaussian noise of {strength:g} standard deviations added to the features"
    return replace(graph, x=x, notes=(*graph.notes, note))


def _moved(x: Tensor, strength: float, generator: torch.Generator) -> tuple[Tensor, str]:
    rows, columns = x.nonzero(as_tuple=True)
    chosen = torch.randperm(rows.numel(), generator=generator)[: round(strength * rows.numel())]
    for i in rows[chosen].unique().tolist():
        mine = chosen[rows[chosen] == i]
        free = (x[i] == 0).nonzero().reshape(-1)  # before anything leaves, so that no entry returns to its place
        goal = free[torch.randperm(free.numel(), generator=generator)[: mine.numel()]]
        values = x[i, columns[mine]].clone()[: goal.numel()]
        x[i, columns[mine][: goal.numel()]] = 0.0
        x[i, goal] = values
    return x, f"{chosen.numel()} of {rows.numel()} nonzero feature entries moved to other columns"
