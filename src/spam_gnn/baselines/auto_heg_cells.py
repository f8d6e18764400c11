"""The search space of Auto-HeG: aggregators, skips and joins, mixed by weights; a weight of exactly 0 costs nothing."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn import ChebConv, FAConv, GATConv, GCN2Conv, GCNConv, GINConv, JumpingKnowledge, SAGEConv

from spam_gnn.baselines.base import Shape
from spam_gnn.graph import Graph
from spam_gnn.initial import glorot
from spam_gnn.kernels.csr import gather_sum
from spam_gnn.randomness import dropout, library_draws, stream

HOMOPHILIC = ("gcn", "sage", "gat", "gin")
HETEROPHILIC = ("cheb", "gcnii", "fagcn", "gprgnn")
OPERATORS = HOMOPHILIC + HETEROPHILIC
SKIPS = ("none", "skip")
JOINS = ("max", "cat", "lstm")
HEADS = 4
_HOPS = 2  # of the generalised PageRank operator, as in the authors' code


class GeneralisedPageRank(nn.Module):
    """sum_k gamma_k A^^k h with learned gamma, started at PPR weights with restart 0.5 (Chien et al. 2021)."""

    def __init__(self) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.tensor([0.5, 0.25, 0.25]))

    def forward(self, h: Tensor, graph: Graph) -> Tensor:
        messages = graph.messages("in")
        scale = (messages.degree.to(h.dtype) + 1.0).rsqrt()
        weights = (scale[messages.target] * scale[messages.source]).unsqueeze(0)
        total = self.gamma[0] * h
        for hop in range(_HOPS):
            h = gather_sum(messages, weights, h.unsqueeze(0))[0] + h * scale.square().unsqueeze(1)
            total = total + self.gamma[hop + 1] * h
        return total


def make_operator(name: str, hidden: int) -> nn.Module:
    """One aggregator of the space, width kept, without dropout of its own (the cells have it)."""
    if name == "gcn":
        return GCNConv(hidden, hidden, add_self_loops=False)
    if name == "sage":
        return SAGEConv(hidden, hidden)
    if name == "gat":
        return GATConv(hidden, hidden // HEADS, heads=HEADS, add_self_loops=False)
    if name == "gin":
        return GINConv(nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, hidden)))
    if name == "cheb":
        return ChebConv(hidden, hidden, K=3)
    if name == "gcnii":
        return GCN2Conv(hidden, alpha=0.5)
    if name == "fagcn":
        return FAConv(hidden)
    return GeneralisedPageRank()


class Cells(nn.Module):
    """x -> encoder -> `layers` aggregators -> skips -> join -> classifier (Zheng et al. 2023), every choice a weighted sum.

    h_l = elu(sum_o w_lo O_o(h_{l-1}, h_0)); s_l = h_l times the weight of `skip`; z = sum_j u_j elu(join_j(s_1 .. s_L)). With
    one-hot weights this is one architecture, and only its parts run. All layers use the observed one-hop edges (the authors'
    option `origin`); their default of a denser l-hop graph in layer l does not fit large graphs.

    Shapes: X (n, d), h and z (n, hidden), logits (n, C).
    """

    def __init__(self, shape: Shape, hidden: int, layers: int, rate: float, seed: int) -> None:
        super().__init__()
        self.rate = rate
        generator = stream(seed, "weights")
        self.encode = nn.Parameter(glorot(shape.num_features, hidden, generator))
        self.encode_bias = nn.Parameter(torch.zeros(hidden))
        with library_draws(seed, "operators"):
            self.operators = nn.ModuleList(
                [nn.ModuleList([make_operator(name, hidden) for name in OPERATORS]) for _ in range(layers)]
            )
            self.joins = nn.ModuleList([JumpingKnowledge(name, hidden, layers) for name in JOINS])
            self.mixers = nn.ModuleList([nn.Linear(hidden * layers if name == "cat" else hidden, hidden) for name in JOINS])
        self.classify = nn.Parameter(glorot(hidden, shape.num_classes, generator))
        self.classify_bias = nn.Parameter(torch.zeros(shape.num_classes))

    def forward(self, graph: Graph, weights: tuple[Tensor, Tensor, Tensor], generator: torch.Generator | None) -> Tensor:
        """weights: operators (L, 8), skips (L, 2), joins (1, 3) -> (n, C)."""
        by_operator, by_skip, by_join = weights
        start = dropout(graph.features.project(self.encode) + self.encode_bias, self.rate, generator)
        h, kept = start, []
        for layer, operators in enumerate(self.operators):
            assert isinstance(operators, nn.ModuleList)
            outputs = [
                w * F.elu(self._aggregate(name, operator, h, start, graph))
                for w, name, operator in zip(by_operator[layer], OPERATORS, operators, strict=True) if bool(w != 0)
            ]  # fmt: skip
            h = dropout(torch.stack(outputs).sum(0), self.rate, generator)
            kept.append(by_skip[layer, SKIPS.index("skip")] * h)
        joined = [
            w * F.elu(mixer(torch.relu(join(kept))))
            for w, join, mixer in zip(by_join[0], self.joins, self.mixers, strict=True) if bool(w != 0)
        ]  # fmt: skip
        z = dropout(torch.stack(joined).sum(0), self.rate, generator)
        return z @ self.classify + self.classify_bias

    def _aggregate(self, name: str, operator: nn.Module, h: Tensor, start: Tensor, graph: Graph) -> Tensor:
        if name == "gprgnn":
            return operator(h, graph)
        if name in ("gcnii", "fagcn"):
            return operator(h, start, graph.edge_index)
        return operator(h, graph.edge_index)
