"""`PyGNetwork`: any PyTorch Geometric module with `forward(x, edge_index)` as a model of this package."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

import torch
from torch import Tensor, nn

from spam_gnn.baselines.base import Network, Settings, Shape
from spam_gnn.baselines.projection import drawn_seed
from spam_gnn.errors import BadInput
from spam_gnn.graph import Graph
from spam_gnn.randomness import library_draws


class PyGNetwork(Network):
    """Trains, saves, reports and checks a module that is not ours.

    The module gets dense features (scaled as `settings.scaling` says) and the edges, undirected ones in both directions. It
    may draw from torch's global state, when it is made and while it trains: the draws are seeded around it, and the state
    is put back.

    Args:
        shape: of the graph; its d and C must fit the module.
        settings: `dropout`, `hidden` and `layers` are not read here: the module has its own.
        seed: of the module's initial weights.
        module: makes the module; called once.

    Example:
        >>> from torch_geometric.nn import GIN
        >>> from spam_gnn import csbm
        >>> graph = csbm(nodes=60, seed=0)
        >>> shape = Shape.of(graph)
        >>> model = PyGNetwork(shape, Settings(), 0, lambda: GIN(shape.num_features, 8, 2, shape.num_classes))
        >>> model.predict(model.prepare(graph), seed=0).probability.shape
        torch.Size([60, 3])
    """

    def __init__(self, shape: Shape, settings: Settings, seed: int, module: Callable[[], nn.Module]) -> None:
        super().__init__(shape, settings)
        with library_draws(seed, "weights"):
            self.module = module()

    def logits(self, graph: Graph, generator: torch.Generator | None) -> Tensor:
        with library_draws(drawn_seed(generator), "module") if generator is not None else nullcontext():
            out = self.module(graph.features.to_dense(), graph.edge_index)
        wanted = (graph.num_nodes, self.shape.num_classes)
        if tuple(out.shape) != wanted:
            raise BadInput(f"model: forward(x, edge_index) returned shape {tuple(out.shape)}; it must return logits, {wanted}")
        return out
