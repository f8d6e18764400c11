"""FSGNN: hop features with and without the node itself, each with its own weights, and one learned share per hop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from spam_gnn.baselines.base import Network, Settings, Shape, System
from spam_gnn.baselines.operators import check_between, degree_operator
from spam_gnn.graph import Graph
from spam_gnn.initial import glorot
from spam_gnn.randomness import dropout, stream


@dataclass(frozen=True)
class FSGNNSettings(Settings):
    """Published defaults (node_class.py, run_classification_3_hop.sh)."""

    hops: int = 3
    hop_norm: bool = True  # rows of each hop divided by their norm
    share_decay: float = 1e-3  # weight decay of the shares; published per dataset, 0 to 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_between(self, 1, 64, "hops")
        check_between(self, 0.0, float("inf"), "share_decay")


class FSGNN(Network):
    """relu(concat_t [s_t norm(X_t W_t + b_t)]) W + b, s = softmax(shares), X_t in {X, A^ X, A~ X, ..., A^^K X, A~^K X}
    (Maurya, Liu and Murata 2022); A^ symmetric without, A~ symmetric with self-loops.

    X_t W_t is computed as A^^k (X W_t), which is the same and keeps the features sparse.
    """

    def __init__(self, shape: Shape, settings: FSGNNSettings, seed: int) -> None:
        super().__init__(shape, settings)
        generator, terms = stream(seed, "weights"), 2 * settings.hops + 1
        self.fs = settings
        self.first = nn.Parameter(torch.cat([glorot(shape.num_features, settings.hidden, generator) for _ in range(terms)], 1))
        self.first_bias = nn.Parameter(torch.zeros(terms * settings.hidden))
        self.shares = nn.Parameter(torch.ones(terms))
        self.second = nn.Parameter(glorot(terms * settings.hidden, shape.num_classes, generator))
        self.second_bias = nn.Parameter(torch.zeros(shape.num_classes))

    def parameter_groups(self, weight_decay: float) -> list[dict[str, Any]]:
        return [
            {"params": [self.first, self.second], "weight_decay": weight_decay},
            {"params": [self.first_bias, self.second_bias], "weight_decay": 0.0},
            {"params": [self.shares], "weight_decay": self.fs.share_decay},
        ]

    def hop_features(self, graph: Graph) -> Tensor:
        """(n, 2 K + 1, hidden): X W_0, then for every hop the term without and the term with self-loops."""
        own, without, looped = graph.features.project(self.first).split(
            [self.fs.hidden, self.fs.hops * self.fs.hidden, self.fs.hops * self.fs.hidden], 1
        )
        terms = [own]
        for columns, loops in ((without, False), (looped, True)):
            operator = degree_operator(graph, -0.5, -0.5, loops=loops)
            for _ in range(self.fs.hops):  # block k needs the k-th power: multiply what is left, keep one block
                columns = operator(columns.contiguous())
                terms.append(columns[:, : self.fs.hidden])
                columns = columns[:, self.fs.hidden :]
        return torch.stack(terms, 1) + self.first_bias.reshape(len(terms), -1)

    def logits(self, graph: Graph, generator: torch.Generator | None) -> Tensor:
        h = self.hop_features(graph)
        if self.fs.hop_norm:
            h = torch.nn.functional.normalize(h, dim=2)
        h = torch.relu(torch.softmax(self.shares, 0).unsqueeze(1) * h).flatten(1)
        return dropout(h, self.fs.dropout, generator) @ self.second + self.second_bias


SYSTEMS = (
    System(
        "fsgnn", "FSGNN", "heterophily", "Maurya, Liu and Murata, Journal of Computational Science 2022",
        "Hop features with and without the node itself, one learned share per hop.",
        FSGNN, FSGNNSettings(), {"learning_rate": 0.01, "weight_decay": 1e-3, "epochs": 1000, "patience": 100},
        {"learning_rate": (0.005, 0.01, 0.02), "weight_decay": (0.0, 1e-4, 1e-3), "hidden": (64,), "dropout": (0.5, 0.6, 0.7),
         "hops": (3, 8), "hop_norm": (True, False), "share_decay": (0.0, 1e-3, 0.1)},
    ),
)  # fmt: skip
