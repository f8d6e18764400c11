"""`l2dgcn`: a label-propagation teacher and a propagation student on a graph that helps nodes of low degree."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spam_gnn.baselines.base import Network, Settings, Shape, System
from spam_gnn.baselines.identity_order import identity_order, nearest_rows
from spam_gnn.errors import BadInput
from spam_gnn.graph import Graph
from spam_gnn.initial import glorot
from spam_gnn.kernels.csr import gather_sum
from spam_gnn.randomness import dropout, stream
from spam_gnn.structure import Messages


@dataclass(frozen=True)
class L2DGCNSettings(Settings):
    """`layers` counts propagation steps; `teacher_restart` and `restart` are alpha and beta; `low_share` of the nodes get kNN
    edges."""

    layers: int = 10
    dropout: float = 0.0
    teacher_restart: float = 0.1
    restart: float = 0.1
    low_share: float = 0.2
    neighbours: int = 10
    confidence: float = 0.9
    pseudo_weight: float = 1.0
    contrast_weight: float = 0.1
    temperature: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("teacher_restart", "restart", "low_share", "confidence"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise BadInput(f"{name}: found {getattr(self, name)}; use a number from 0 to 1")
        if self.neighbours < 0 or self.temperature <= 0.0:
            raise BadInput(f"neighbours, temperature: found {self.neighbours}, {self.temperature}; use 0 or more, and above 0")


def low_degree_nodes(graph: Graph, share: float) -> Tensor:
    """(k,): positions of the share of nodes with the lowest degree, ties by identity, in the order of identities."""
    order = identity_order(graph)
    degree = graph.messages("in").degree[order]
    count = min(round(share * graph.num_nodes), graph.num_nodes - 1)
    low = torch.argsort(degree, stable=True)[:count].sort().values
    return order[low]


def enhanced_messages(graph: Graph, table: Tensor, share: float, neighbours: int) -> Messages:
    """The graph without edges between two low-degree nodes, plus kNN edges among those nodes by `table`, plus self-loops.

    table (n, h) is the student's current representation, so the graph follows the weights ("learnable enhancement").
    """
    n, low = graph.num_nodes, low_degree_nodes(graph, share)
    is_low = torch.zeros(n, dtype=torch.bool)
    is_low[low] = True
    kept = graph.edge_index[:, ~(is_low[graph.edge_index[0]] & is_low[graph.edge_index[1]])]
    rows, partners = nearest_rows(table[low], neighbours)
    near = torch.stack([low[partners], low[rows]])
    loops = torch.arange(n).expand(2, n)
    source, target = torch.cat([kept, near, near.flip(0), loops], dim=1)
    keys = torch.unique(target * n + source)
    return Messages.build(keys % n, keys // n, n)


def restart_propagation(messages: Messages, start: Tensor, restart: float, steps: int) -> Tensor:
    """H <- (1 - r) D^-1 A H + r H_0, `steps` times: (n, d) -> (n, d)."""
    weights = (1.0 / messages.degree.to(start.dtype))[messages.target].unsqueeze(0)
    h = start
    for _ in range(steps):
        h = (1.0 - restart) * gather_sum(messages, weights, h.unsqueeze(0))[0] + restart * start
    return h


class L2DGCN(Network):
    """Teacher: label propagation. Student: restart propagation and a perceptron, trained on labels and confident teacher
    labels.

    H = relu(Prop(X) W_1 + b_1), logits = H W_2 + b_2 with Prop of :func:`restart_propagation` on the enhanced graph;
    propagation is linear, so X W_1 is propagated. Loss = CE(train) + w_p CE(teacher label, where the student's label
    propagation of its own logits is at least `confidence` sure) + w_c prototype contrast: softmax of cosine(H_i, class mean)
    / temperature.

    No code of the authors is public and the abstract fixes no equations; this follows the description in a public
    re-implementation (see docs/models-structure.md). There the enhanced graph is rebuilt every epoch from the last hidden
    table; here it is a function of the weights (kNN by relu(X W_1 + b_1)), because a model must not remember anything between
    calls.

    Shapes: X (n, d), H (n, hidden), logits (n, C).
    """

    settings: L2DGCNSettings

    def __init__(self, shape: Shape, settings: L2DGCNSettings, seed: int) -> None:
        super().__init__(shape, settings)
        generator, h = stream(seed, "weights"), settings.hidden
        self.first = nn.Parameter(glorot(shape.num_features, h, generator))
        self.first_bias = nn.Parameter(torch.zeros(h))
        self.second = nn.Parameter(glorot(h, shape.num_classes, generator))
        self.second_bias = nn.Parameter(torch.zeros(shape.num_classes))

    def student(self, graph: Graph, generator: torch.Generator | None) -> tuple[Tensor, Tensor, Tensor, Messages]:
        """Hidden table, logits, unpropagated logits, and the enhanced graph."""
        c = self.settings
        projected = graph.features.project(self.first, c.dropout, generator)
        alone = torch.relu(projected + self.first_bias)
        messages = enhanced_messages(graph, alone, c.low_share, c.neighbours)
        hidden = torch.relu(restart_propagation(messages, projected, c.restart, c.layers) + self.first_bias)
        logits = dropout(hidden, c.dropout, generator) @ self.second + self.second_bias
        return hidden, logits, alone @ self.second + self.second_bias, messages

    def logits(self, graph: Graph, generator: torch.Generator | None) -> Tensor:
        return self.student(graph, generator)[1]

    def training_loss(self, graph: Graph, seed: int, epoch: int) -> dict[str, Tensor]:
        self.train()
        c, mask = self.settings, graph.train_mask
        hidden, logits, alone, messages = self.student(graph, stream(seed, "dropout", epoch))
        with torch.no_grad():
            given = F.one_hot(graph.y.clamp(min=0), self.shape.num_classes) * mask.unsqueeze(1)
            taught = restart_propagation(messages, given.to(torch.float32), c.teacher_restart, c.layers)
            sure = torch.softmax(restart_propagation(messages, alone, c.restart, c.layers), 1).max(1).values >= c.confidence
            reached = taught.sum(1) > 0  # a node no label has reached has no teacher
            pseudo = ~mask & sure & reached
            labels = torch.where(mask, graph.y, taught.argmax(1))
        class_loss = F.cross_entropy(logits[mask], graph.y[mask])
        parts = {"class": class_loss}
        if bool(pseudo.any()):
            parts["pseudo"] = c.pseudo_weight * F.cross_entropy(logits[pseudo], labels[pseudo])
        contrast = prototype_contrast(hidden, labels, mask | pseudo, self.shape.num_classes, c.temperature)
        parts["contrast"] = c.contrast_weight * contrast
        return {"loss": torch.stack(list(parts.values())).sum(), **parts}


def prototype_contrast(hidden: Tensor, labels: Tensor, reliable: Tensor, classes: int, temperature: float) -> Tensor:
    """-log softmax_c(cosine(h_i, p_c) / t) at the node's own class, averaged over reliable nodes; p_c is the mean unit row of
    class c."""
    unit, own = F.normalize(hidden[reliable], dim=1), labels[reliable]
    present = torch.bincount(own, minlength=classes) > 0
    means = F.normalize(unit.new_zeros(classes, unit.shape[1]).index_add(0, own, unit), dim=1)
    score = (unit @ means.t() / temperature).masked_fill(~present, float("-inf"))
    return F.cross_entropy(score, own)


SYSTEMS = (
    System(
        "l2dgcn", "L2DGCN", "heterophily", "L2DGCN: Learnable Enhancement and Label Selection Dynamic GCN, NeurIPS 2025",
        "Label-propagation teacher and restart-propagation student; nodes of low degree get feature neighbours.",
        L2DGCN, L2DGCNSettings(), {"learning_rate": 0.01, "weight_decay": 5e-5},
        {"restart": (0.1, 0.3, 0.5, 0.9), "low_share": (0.1, 0.2, 0.5), "neighbours": (5, 10), "confidence": (0.7, 0.9),
         "dropout": (0.0, 0.5), "weight_decay": (5e-5, 5e-4, 5e-3)},
    ),
)  # fmt: skip
