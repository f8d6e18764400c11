"""`linkx`: the row of the adjacency is a feature like any other (Lim et al., NeurIPS 2021)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from spam_gnn.baselines.base import Network, Settings, Shape, System
from spam_gnn.baselines.projection import LayerStack, Projection
from spam_gnn.baselines.smoothing import sparse_rows
from spam_gnn.errors import BadInput
from spam_gnn.features import FeatureMatrix
from spam_gnn.graph import Graph
from spam_gnn.randomness import stream


@dataclass(frozen=True)
class LINKXSettings(Settings):
    """`layers` counts those of the final perceptron; MLP_A and MLP_X are one linear map each, the authors' default."""

    hidden: int = 64


class LINKXNetwork(Network):
    """h_A = A W_A, h_X = X W_X; logits = MLP_f(relu(W [h_A | h_X] + h_A + h_X)) (sec. 4).

    The weights W_A belong to nodes: column j of A stands for the node whose identity is j. The model therefore serves the
    graph it was trained on (in any order of its nodes) and refuses one with other nodes.
    """

    def __init__(self, shape: Shape, settings: LINKXSettings, seed: int) -> None:
        super().__init__(shape, settings)
        generator, hidden = stream(seed, "weights"), settings.hidden
        self.of_edges = Projection(shape.num_nodes, hidden, generator)
        self.of_features = Projection(shape.num_features, hidden, generator)
        self.join = Projection(2 * hidden, hidden, generator)
        self.final = LayerStack([*[hidden] * settings.layers, shape.num_classes], generator)

    def adjacency(self, graph: Graph) -> FeatureMatrix:
        """(n, n): row i marks the neighbours that node i hears, by identity."""
        if "linkx-adjacency" not in graph.derived:
            n = self.shape.num_nodes
            if graph.num_nodes != n or (n and int(graph.identity.max()) >= n):
                raise BadInput(f"graph: found {graph.num_nodes} nodes; linkx has a weight for each of the "
                               f"{n} nodes it was made for and cannot be used on others")  # fmt: skip
            source, target = graph.edge_index
            ones = torch.ones(graph.num_edges)
            graph.derived["linkx-adjacency"] = sparse_rows(target, graph.identity[source], ones, (n, n))
        return graph.derived["linkx-adjacency"]

    def logits(self, graph: Graph, generator: torch.Generator | None) -> Tensor:
        edges, features = self.of_edges(self.adjacency(graph)), self.of_features(graph.features)
        h = torch.relu(self.join(torch.cat([edges, features], 1)) + edges + features)
        return self.final(h, self.settings.dropout, generator)


SYSTEMS = (
    System(
        "linkx", "LINKX", "homophily", "Lim et al., NeurIPS 2021",
        "Perceptrons on the features and on the rows of the adjacency.",
        LINKXNetwork, LINKXSettings(),
        train={"weight_decay": 1e-3, "epochs": 500, "patience": 200, "decay": 1.0},
        search={
            "hidden": (16, 32, 64, 128, 256), "layers": (1, 2, 3, 4), "dropout": (0.0, 0.5),
            "learning_rate": (0.01, 0.002), "weight_decay": (1e-4, 1e-3),
        },
    ),
)  # fmt: skip
