"""`linkx`: the row of the adjacency is a feature like any other (Lim et al., NeurIPS 2021)."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from spam_gnn.baselines.base import Network, Settings, Shape, System
from spam_gnn.baselines.projection import Projection
from spam_gnn.baselines.smoothing import sparse_rows
from spam_gnn.errors import BadInput
from spam_gnn.features import FeatureMatrix
from spam_gnn.graph import Graph
from spam_gnn.randomness import dropout, stream


@dataclass(frozen=True)
class LINKXSettings(Settings):
    """`layers` counts those of the final perceptron; MLP_A and MLP_X are one linear map each, the authors' default."""

    hidden: int = 64


class LINKXNetwork(Network):
    """h_A = A W_A, h_X = X W_X; logits = MLP_f(relu(W [h_A | h_X] + h_A + h_X)) (sec. 4).

    A hidden layer of MLP_f is dropout(batch norm(relu(h W + b))), in the order of the authors' code; PyG's `LINKX`.

    The rows of W_A belong to nodes, known by their identities. The model therefore serves the nodes it was trained on, in any
    order, and refuses others.
    """

    def __init__(self, shape: Shape, settings: LINKXSettings, seed: int) -> None:
        super().__init__(shape, settings)
        generator, hidden = stream(seed, "weights"), settings.hidden
        self.of_edges = Projection(shape.num_nodes, hidden, generator)
        self.register_buffer("identity", torch.arange(shape.num_nodes))
        self.of_features = Projection(shape.num_features, hidden, generator)
        self.join = Projection(2 * hidden, hidden, generator)
        sizes = [*[hidden] * settings.layers, shape.num_classes]
        self.final = nn.ModuleList([Projection(a, b, generator) for a, b in itertools.pairwise(sizes)])
        self.norms = nn.ModuleList([nn.BatchNorm1d(hidden) for _ in sizes[2:]])

    def begin(self, graph: Graph, seed: int) -> None:
        """Remember whose weight each row of W_A is."""
        super().begin(graph, seed)
        self.get_buffer("identity").copy_(graph.identity.sort().values)

    def adjacency(self, graph: Graph) -> FeatureMatrix:
        """(n, n): row i marks the neighbours that node i hears, by the place of their identity among those of training."""
        n, known = self.shape.num_nodes, self.get_buffer("identity")
        if not torch.equal(graph.identity.sort().values, known):
            raise BadInput(f"graph: found {graph.num_nodes} nodes that are not the {n} of training; linkx has a weight for "
                           "each of those and cannot be used on others")  # fmt: skip
        if "linkx-adjacency" not in graph.derived:
            source, target = graph.edge_index
            place = torch.searchsorted(known, graph.identity)
            graph.derived["linkx-adjacency"] = sparse_rows(target, place[source], torch.ones(graph.num_edges), (n, n))
        return graph.derived["linkx-adjacency"]

    def logits(self, graph: Graph, generator: torch.Generator | None) -> Tensor:
        edges, features = self.of_edges(self.adjacency(graph)), self.of_features(graph.features)
        h = torch.relu(self.join(torch.cat([edges, features], 1)) + edges + features)
        for place, norm in enumerate(self.norms):
            h = dropout(norm(torch.relu(self.final[place](h))), self.settings.dropout, generator)
        return self.final[-1](h)


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
