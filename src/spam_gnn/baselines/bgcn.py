"""`bgcn`: GCN averaged over graphs drawn from a block model of the observed one, with Monte Carlo dropout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from spam_gnn.baselines.base import Shape, System
from spam_gnn.baselines.identity_order import check_node_count, identity_order, identity_rank, node_table_uniforms
from spam_gnn.baselines.mmsbm import BlockModel, draw_graph, fit_block_model
from spam_gnn.baselines.pretrain import pretrain
from spam_gnn.baselines.sampled import SampledNetwork, SampledSettings
from spam_gnn.errors import BadInput, one_of
from spam_gnn.graph import Graph
from spam_gnn.initial import glorot
from spam_gnn.kernels.csr import gather_sum
from spam_gnn.randomness import dropout, seed_for, stream
from spam_gnn.structure import Messages

Source = Literal["block-model", "observed"]


@dataclass(frozen=True)
class BGCNSettings(SampledSettings):
    """`graphs`: where graphs come from; `background` is delta; `fit_steps` those of the MAP; `pretrain_epochs` on the
    observed graph."""

    hidden: int = 16
    predict_samples: int = 60
    graphs: Source = "block-model"
    background: float = 1e-4
    fit_steps: int = 200
    fit_rate: float = 0.05
    pretrain_epochs: int = 200

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self.graphs, ("block-model", "observed"), "graphs")
        if not 0.0 < self.background < 1.0:
            raise BadInput(f"background: found {self.background}; use a rate between 0 and 1")
        if min(self.fit_steps, self.pretrain_epochs) < 0 or self.fit_rate <= 0.0:
            raise BadInput(f"fit_steps, pretrain_epochs, fit_rate: found {self.fit_steps}, {self.pretrain_epochs}, "
                           f"{self.fit_rate}; use 0 or more, 0 or more, and above 0")  # fmt: skip


class BayesianGCN(SampledNetwork):
    """p(Z | Y, X, A) ~ 1/K sum_k softmax(GCN(X, G_k, W_k)): G_k from the MAP block model, W_k by dropout (Zhang et al. 2019).

    Before the first epoch the network is trained on the observed graph, its probabilities start the memberships, and the MAP
    of (pi, beta) is stored in buffers, one row per node in the order of identities. Every epoch then trains on one drawn
    graph and a prediction averages K pairs of graph and dropout mask. Decided: dropout at prediction acts on the hidden units
    only, keyed by node identity; the authors collect weights of the last epochs as well, which a model that is a function of
    its weights cannot.

    Shapes: X (n, d), pi (n, C), beta (C,), logits (n, C).
    """

    settings: BGCNSettings

    def __init__(self, shape: Shape, settings: BGCNSettings, seed: int) -> None:
        super().__init__(shape, settings)
        if settings.layers != 2:
            raise BadInput(f"layers: found {settings.layers}; bgcn has 2")
        generator, n, c = stream(seed, "weights"), shape.num_nodes, shape.num_classes
        self.first = nn.Parameter(glorot(shape.num_features, settings.hidden, generator))
        self.first_bias = nn.Parameter(torch.zeros(settings.hidden))
        self.second = nn.Parameter(glorot(settings.hidden, c, generator))
        self.second_bias = nn.Parameter(torch.zeros(c))
        self.register_buffer("memberships", torch.full((n, c), 1.0 / c))
        self.register_buffer("strengths", torch.zeros(c))
        self.register_buffer("fitted", torch.tensor(False))

    def begin(self, graph: Graph, seed: int) -> None:
        super().begin(graph, seed)
        if self.settings.graphs == "observed":
            return
        c, prepared = self.settings, self.prepare(graph)
        self.get_buffer("fitted").fill_(False)
        pretrain(self, prepared, c.pretrain_epochs, 0.01, 5e-4, seed_for(seed, "pretrain"))
        self.eval()
        with torch.no_grad():
            start = torch.softmax(self.forward_on(prepared, prepared.messages("in"), None, None), 1)
        order, rank = identity_order(prepared), identity_rank(prepared)
        ends = rank[prepared.edge_index]
        pairs = ends[:, ends[0] < ends[1]]
        pairs = pairs[:, torch.argsort(pairs[0] * graph.num_nodes + pairs[1])]
        model = fit_block_model(
            pairs, start[order], graph.y[order], graph.train_mask[order],
            c.background, c.fit_steps, c.fit_rate, stream(seed, "block-model"),
        )  # fmt: skip
        self.get_buffer("memberships").copy_(model.memberships)
        self.get_buffer("strengths").copy_(model.strengths)
        self.get_buffer("fitted").fill_(True)

    def drawn_messages(self, graph: Graph, seed: int) -> Messages:
        """The observed edges, or those of a drawn graph, as messages of `graph`'s nodes."""
        if not bool(self.get_buffer("fitted")):
            return graph.messages("in")
        check_node_count(graph, self.shape.num_nodes, "bgcn")
        model = BlockModel(self.get_buffer("memberships"), self.get_buffer("strengths"), self.settings.background)
        first, second = identity_order(graph)[draw_graph(model, stream(seed, "graph"))]
        return Messages.build(torch.cat([first, second]), torch.cat([second, first]), graph.num_nodes)

    def forward_on(
        self, graph: Graph, messages: Messages, generator: torch.Generator | None, mask: Tensor | None
    ) -> Tensor:
        """The two-layer GCN over given messages; `mask` (n, hidden) drops hidden units at prediction."""
        scale = (messages.degree.to(torch.float32) + 1.0).rsqrt()
        weights = (scale[messages.target] * scale[messages.source]).unsqueeze(0)
        spread = lambda h: gather_sum(messages, weights, h.unsqueeze(0))[0] + h * scale.square().unsqueeze(1)  # noqa: E731
        rate = self.settings.dropout
        h = torch.relu(spread(graph.features.project(self.first, rate, generator)) + self.first_bias)
        h = dropout(h, rate, generator) if mask is None else h * mask
        return spread(h @ self.second) + self.second_bias

    def draws(self, graph: Graph, seeds: list[int], generator: torch.Generator | None) -> Tensor:
        return torch.stack([self.draw(graph, seed, generator) for seed in seeds])

    def draw(self, graph: Graph, seed: int, generator: torch.Generator | None) -> Tensor:
        mask, rate = None, self.settings.dropout
        if generator is None and rate > 0.0:
            uniforms = node_table_uniforms(graph.identity, self.settings.hidden, [seed_for(seed, "weights")])[:, 0]
            mask = (uniforms >= rate).to(torch.float32) / (1.0 - rate)
        return self.forward_on(graph, self.drawn_messages(graph, seed), generator, mask)


SYSTEMS = (
    System(
        "bgcn", "BGCN", "uncertainty", "Zhang, Pal, Coates and Ustebay, AAAI 2019",
        "GCN averaged over graphs drawn from an assortative block model fitted to graph and labels.",
        BayesianGCN, BGCNSettings(), {"learning_rate": 0.01, "weight_decay": 5e-4, "epochs": 300, "patience": 100},
        {"hidden": (16, 64), "dropout": (0.3, 0.5), "background": (1e-4, 1e-3), "weight_decay": (5e-4, 5e-3)},
    ),
)  # fmt: skip
