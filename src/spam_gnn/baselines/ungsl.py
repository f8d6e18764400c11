"""`ungsl`: a learned graph whose edges from uncertain nodes are held down, with a threshold per listening node."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from spam_gnn.baselines.base import Network, Settings, Shape, System
from spam_gnn.baselines.identity_order import check_node_count, feature_neighbours, identity_rank
from spam_gnn.baselines.pretrain import pretrain
from spam_gnn.errors import BadInput
from spam_gnn.graph import Graph
from spam_gnn.initial import glorot
from spam_gnn.kernels.csr import edge_dot, gather_scalar, gather_sum
from spam_gnn.randomness import dropout, seed_for, stream
from spam_gnn.structure import Messages


@dataclass(frozen=True)
class UnGSLSettings(Settings):
    """`neighbours` kNN candidates per node; `held_down` is beta; `threshold` starts t_i; `use_thresholds=False` is the base
    learner."""

    neighbours: int = 10
    held_down: float = 0.774
    threshold: float = 0.5
    threshold_rate: float = 0.22
    pretrain_epochs: int = 100
    use_thresholds: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 <= self.held_down <= 1.0:
            raise BadInput(f"held_down: found {self.held_down}; use a number from 0 to 1")
        if self.neighbours < 0 or self.pretrain_epochs < 0 or self.threshold_rate < 0.0:
            raise BadInput(f"neighbours, pretrain_epochs, threshold_rate: found {self.neighbours}, {self.pretrain_epochs}, "
                           f"{self.threshold_rate}; use 0 or more")  # fmt: skip


def candidate_messages(graph: Graph, neighbours: int) -> tuple[Messages, Tensor]:
    """Observed and kNN edges, both ways, as messages, and (m,) 1 for the observed ones."""
    key = f"ungsl/{neighbours}"
    if key not in graph.derived:
        n = graph.num_nodes
        near = feature_neighbours(graph, neighbours)
        both = torch.cat([graph.edge_index, near, near.flip(0)], dim=1)
        keys = torch.unique(both[1] * n + both[0])
        messages = Messages.build(keys % n, keys // n, n)
        observed = torch.isin(messages.target * n + messages.source, graph.edge_index[1] * n + graph.edge_index[0])
        graph.derived[key] = (messages, observed.to(torch.float32).unsqueeze(0))
    return graph.derived[key]


def confidence_weights(confidence: Tensor, thresholds: Tensor, held_down: float) -> Tensor:
    """psi = 2 sigmoid(c_j - t_i) where that is at least 1, otherwise beta (Han et al. 2025), elementwise."""
    weight = 2.0 * torch.sigmoid(confidence - thresholds)
    return torch.where(weight >= 1.0, weight, torch.full_like(weight, held_down))


class UnGSL(Network):
    """A' = A + S o psi, S_ij = relu(cos(e_i, e_j)) on candidates, e = A^ X W_g; then a two-layer GCN on A'.

    The base learner is GRCN's (Yu et al. 2020): similarity of embeddings from a graph convolution, sparsified to k nearest
    neighbours and added to the observed graph. Decided: the candidates are the observed edges and the k nearest by raw
    features, fixed once, instead of a dense n x n similarity sparsified every epoch. Confidence c_j = exp(-entropy_j) comes
    from the base learner trained for `pretrain_epochs` before the first epoch and stays fixed; the thresholds t_i are
    learned, one per node in the order of identities, at `threshold_rate` times the learning rate.

    Shapes: X (n, d), e and h (n, hidden), psi (1, m), logits (n, C).
    """

    settings: UnGSLSettings

    def __init__(self, shape: Shape, settings: UnGSLSettings, seed: int) -> None:
        super().__init__(shape, settings)
        if settings.layers != 2:
            raise BadInput(f"layers: found {settings.layers}; ungsl has 2")
        generator, h = stream(seed, "weights"), settings.hidden
        self.embed = nn.Parameter(glorot(shape.num_features, h, generator))
        self.first = nn.Parameter(glorot(shape.num_features, h, generator))
        self.first_bias = nn.Parameter(torch.zeros(h))
        self.second = nn.Parameter(glorot(h, shape.num_classes, generator))
        self.second_bias = nn.Parameter(torch.zeros(shape.num_classes))
        if settings.use_thresholds:
            self.thresholds = nn.Parameter(torch.full((shape.num_nodes,), settings.threshold))
            self.register_buffer("confidence", torch.ones(shape.num_nodes))

    def begin(self, graph: Graph, seed: int) -> None:
        super().begin(graph, seed)
        if not self.settings.use_thresholds:
            return
        base = UnGSL(self.shape, replace(self.settings, use_thresholds=False), seed_for(seed, "base"))
        base.scaler.learn(graph, seed)
        prepared = base.prepare(graph)
        pretrain(base, prepared, self.settings.pretrain_epochs, 0.01, 5e-4, seed_for(seed, "pretrain"))
        base.eval()
        with torch.no_grad():
            log_prob = torch.log_softmax(base.logits(prepared, None), 1)
        entropy = -(log_prob.exp() * log_prob).sum(1)
        self.get_buffer("confidence")[identity_rank(graph)] = torch.exp(-entropy)

    def parameter_groups(self, weight_decay: float) -> list[dict[str, Any]]:
        groups = super().parameter_groups(weight_decay)
        if not self.settings.use_thresholds:
            return groups
        others = [p for p in groups[1]["params"] if p is not self.thresholds]
        own = {"params": [self.thresholds], "weight_decay": 0.0, "rate_factor": self.settings.threshold_rate}
        return [groups[0], {**groups[1], "params": others}, own]

    def learned_weights(self, graph: Graph, embedding: Tensor) -> tuple[Messages, Tensor]:
        """Messages and their weights A + S o psi, (1, m), before normalisation."""
        messages, observed = candidate_messages(graph, self.settings.neighbours)
        unit = nn.functional.normalize(embedding, dim=1).unsqueeze(0)
        similarity = torch.relu(edge_dot(messages, unit, unit))  # (1, m)
        if self.settings.use_thresholds:
            check_node_count(graph, self.shape.num_nodes, "ungsl")
            rank = identity_rank(graph)
            sure, least = self.get_buffer("confidence")[rank], self.thresholds[rank]
            similarity = similarity * confidence_weights(sure[messages.source], least[messages.target], self.settings.held_down)
        return messages, observed + similarity

    def logits(self, graph: Graph, generator: torch.Generator | None) -> Tensor:
        rate, ones = self.settings.dropout, torch.ones(1, graph.num_edges)
        embedding = spread(graph.messages("in"), ones, graph.features.project(self.embed))
        messages, weights = self.learned_weights(graph, embedding)
        h = torch.relu(spread(messages, weights, graph.features.project(self.first, rate, generator)) + self.first_bias)
        return spread(messages, weights, dropout(h, rate, generator) @ self.second) + self.second_bias


def spread(messages: Messages, weights: Tensor, h: Tensor) -> Tensor:
    """D^-1/2 (A' + I) D^-1/2 h with D the row sums of A' + I: weights (1, m), h (n, d) -> (n, d)."""
    scale = (gather_scalar(messages, weights)[0] + 1.0).rsqrt()
    scaled = weights * scale[messages.target] * scale[messages.source]
    return gather_sum(messages, scaled, h.unsqueeze(0))[0] + h * scale.square().unsqueeze(1)


SYSTEMS = (
    System(
        "ungsl", "UnGSL", "uncertainty", "Han, Zhou, Chen, Hao, Zhou, Wang, Feng, Chen and Wang, WWW 2025",
        "Learned graph in which edges from uncertain nodes are held down, with a threshold per node.",
        UnGSL, UnGSLSettings(), {"learning_rate": 0.01, "weight_decay": 5e-4},
        {"neighbours": (0, 5, 10, 20), "held_down": (0.1, 0.5, 0.774), "threshold": (0.5, 0.8, 0.97),
         "threshold_rate": (0.1, 0.22, 1.0), "weight_decay": (5e-4, 5e-3)},
    ),
)  # fmt: skip
