"""`mc-dropout`: a GCN whose dropout stays on at prediction, averaged over K masks (Gal and Ghahramani, ICML 2016)."""

from __future__ import annotations

import torch
from torch import Tensor

from spam_gnn.baselines.base import Shape, System
from spam_gnn.baselines.identity_order import node_table_uniforms
from spam_gnn.baselines.projection import LayerStack
from spam_gnn.baselines.sampled import SampledNetwork, SampledSettings
from spam_gnn.baselines.smoothing import smoothing
from spam_gnn.graph import Graph
from spam_gnn.randomness import seed_for, stream


class MonteCarloDropoutGCN(SampledNetwork):
    """p(y | X, A) ~ 1/K sum_k softmax(GCN(X, A; W * mask_k)): trained as the plain GCN, masks drawn again at prediction.

    Decided: at prediction units of hidden layers are dropped, not input features. A mask is keyed by (seed, layer, node
    identity), so that it does not depend on the order of the nodes.
    """

    def __init__(self, shape: Shape, settings: SampledSettings, seed: int) -> None:
        super().__init__(shape, settings)
        sizes = [shape.num_features, *[settings.hidden] * (settings.layers - 1), shape.num_classes]
        self.stack = LayerStack(sizes, stream(seed, "weights"))

    def draws(self, graph: Graph, seeds: list[int], generator: torch.Generator | None) -> Tensor:
        if generator is not None:
            return torch.stack([self.stack(graph.features, self.settings.dropout, generator, smoothing(graph)) for _ in seeds])
        return torch.stack([self._masked(graph, seed) for seed in seeds])

    def _masked(self, graph: Graph, seed: int) -> Tensor:
        rate, width = self.settings.dropout, self.settings.hidden
        h = self.stack.layers[0](graph.features, 0.0, None, smoothing(graph))
        for place, layer in enumerate(list(self.stack.layers)[1:]):
            uniforms = node_table_uniforms(graph.identity, width, [seed_for(seed, "units", place)])[:, 0]
            keep = (uniforms >= rate).to(torch.float32) / (1.0 - rate)
            h = layer(torch.relu(h) * keep, 0.0, None, smoothing(graph))
        return h


SYSTEMS = (
    System(
        "mc-dropout", "MC-dropout GCN", "uncertainty", "Gal and Ghahramani, ICML 2016",
        "A GCN whose dropout stays on at prediction; its spread is the doubt about the weights.",
        MonteCarloDropoutGCN, SampledSettings(), {"weight_decay": 5e-4},
        {"hidden": (16, 64, 256), "dropout": (0.2, 0.5, 0.8), "learning_rate": (0.001, 0.01, 0.05),
         "weight_decay": (0.0, 5e-5, 5e-4, 5e-3)},
    ),
)  # fmt: skip
