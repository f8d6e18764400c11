"""From a sign distribution to K signed graphs, with a gradient that reaches every edge's logits.

A signed graph is two indicator tensors, z+ and z-. Their values are exactly 0 or 1; their gradient is that of a
straight-through estimator, so an edge that was drawn absent still learns what it would have changed.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from spam_gnn.choices import Estimator
from spam_gnn.errors import BadInput
from spam_gnn.graph import Graph
from spam_gnn.kernels import chosen
from spam_gnn.kernels.draws import draw_signs, draw_table, gradient_of_draws, indicators_along, signs_along
from spam_gnn.posterior.base import ABSENT, NEGATIVE, POSITIVE, SignDistribution
from spam_gnn.randomness import edge_uniforms, seed_for
from spam_gnn.structure import Messages

MAX_ENUMERATED = 100_000


@dataclass(frozen=True, eq=False)
class SignedGraphs:
    """K signed graphs over the m stored edges of one graph.

    Args:
        positive: z+, (K, m), 1 where z = +1.
        negative: z-, (K, m), 1 where z = -1. An edge with neither is absent.
        log_weight: (K,), log weights summing to one; uniform for draws, log q(Z) for enumeration.
    """

    positive: Tensor
    negative: Tensor
    log_weight: Tensor

    @property
    def count(self) -> int:
        return self.positive.shape[0]

    @property
    def presence(self) -> Tensor:
        """(K, m): 1 where the edge is there with either sign."""
        return self.positive + self.negative

    def along(self, edge: Tensor) -> SignedGraphs:
        """Rearranged from edge order to the order of some messages: `edge` (m',) says which edge each message uses."""
        return SignedGraphs(self.positive.index_select(1, edge), self.negative.index_select(1, edge), self.log_weight)

    def split(self, size: int) -> list[SignedGraphs]:
        """The same graphs, `size` at a time."""
        if size >= self.count:
            return [self]
        parts = zip(*(t.split(size) for t in (self.positive, self.negative, self.log_weight)), strict=True)
        return [SignedGraphs(*part) for part in parts]


def _uniform_weight(samples: int, like: Tensor) -> Tensor:
    return torch.full((samples,), 1.0 / samples, dtype=like.dtype, device=like.device).log()


@dataclass(frozen=True, eq=False)
class _Slots:
    """The independent draws of a graph: one per pair, or one per stored edge. Kept with the graph, for they never change."""

    first: Tensor  # (p,) identities of the two ends, the order in which the draw is named
    second: Tensor
    of_edge: Tensor  # (m,) which draw each stored edge reads
    chosen: Tensor | None  # (p,) which stored edge stands for the pair, None where every edge stands for itself
    mirror: Tensor | None  # (p,) the other stored edge of the pair

    @staticmethod
    def of(graph: Graph, per_pair: bool) -> _Slots:
        shared = per_pair and not graph.directed
        key = f"sampling/{'pairs' if shared else 'edges'}"
        if key not in graph.derived:
            graph.derived[key] = _Slots._build(graph, shared)
        return graph.derived[key]

    def of_draws(self, values: Tensor) -> Tensor:
        """(m, 3) of the edges -> (p, 3) of the draws."""
        return values if self.chosen is None else values.index_select(0, self.chosen)

    @staticmethod
    def _build(graph: Graph, shared: bool) -> _Slots:
        source, target = graph.identity[graph.edge_index[0]], graph.identity[graph.edge_index[1]]
        if not shared:
            return _Slots(source, target, torch.arange(graph.num_edges), None, None)
        edge, of_edge = graph.pairs
        low, high = torch.minimum(source[edge], target[edge]), torch.maximum(source[edge], target[edge])
        return _Slots(low, high, of_edge, edge, graph.reverse[edge])


class _Draws:
    """A distribution seen through the slots of its graph."""

    def __init__(self, distribution: SignDistribution, graph: Graph, per_pair: bool) -> None:
        slots = _Slots.of(graph, per_pair)
        self.first, self.second, self.of_edge = slots.first, slots.second, slots.of_edge
        self.log_prob = slots.of_draws(distribution.log_prob)

    def to_edges(self, one_hot: Tensor, log_weight: Tensor) -> SignedGraphs:
        """(K, p, 3) indicators per draw -> signed graphs over the stored edges."""
        return SignedGraphs(
            one_hot[..., POSITIVE].index_select(1, self.of_edge),
            one_hot[..., NEGATIVE].index_select(1, self.of_edge),
            log_weight,
        )


def sample_signs(
    distribution: SignDistribution,
    graph: Graph,
    samples: int,
    seed: int,
    *,
    purpose: str = "predict",
    epoch: int = 0,
    per_pair: bool = True,
    estimator: Estimator = "straight-through",
    temperature: float = 0.5,
) -> SignedGraphs:
    """Draw Z^(1..K) ~ q; sample k depends on (seed, purpose, epoch, k) and the edge's two ends, on nothing else.

    `straight-through`: categorical draws; the indicator of sign s carries the gradient of pi_s. Exact in expectation for a
    loss that is linear in each edge's indicators.
    `gumbel`: the paper's choice; the draw is the argmax of log pi + Gumbel noise, the gradient that of the tempered softmax.
    Both give exactly the categorical distribution pi in the forward direction.
    """
    if estimator == "straight-through":
        seeds, slots = [seed_for(seed, purpose, epoch, k) for k in range(samples)], _Slots.of(graph, per_pair)
        negative, positive = _StraightThrough.apply(distribution.log_prob, slots, seeds)  # pyright: ignore[reportGeneralTypeIssues]
        return SignedGraphs(positive, negative, _uniform_weight(samples, positive))
    draws = _Draws(distribution, graph, per_pair)
    seeds = [seed_for(seed, purpose, epoch, k, s) for k in range(samples) for s in range(3)]
    soft = torch.softmax(gumbel_logits(draws.log_prob, draws.first, draws.second, seeds) / temperature, dim=-1)
    one_hot = torch.nn.functional.one_hot(soft.argmax(-1), 3).to(soft.dtype) + (soft - soft.detach())
    return draws.to_edges(one_hot, _uniform_weight(samples, soft))


def sign_table(
    distribution: SignDistribution, graph: Graph, samples: int, seed: int, messages: Messages, *, per_pair: bool = True
) -> Tensor:
    """(m, K) int8: the signs that :func:`sample_signs` draws for a prediction on the CPU, in the order of the messages."""
    draws = _Draws(distribution, graph, per_pair)
    seeds = [seed_for(seed, "predict", 0, k) for k in range(samples)]
    table = draw_table(draws.first, draws.second, seeds, draws.log_prob.exp())
    return signs_along(table, draws.of_edge if messages.in_edge_order else draws.of_edge[messages.edge])


def _compiled(like: Tensor) -> bool:
    return chosen("auto", like.device) == "fused"


def drawn(probability: Tensor, first: Tensor, second: Tensor, seeds: list[int]) -> tuple[Tensor, Tensor]:
    """(K, p) booleans, drawn negative and drawn positive, from (p, 3) probabilities and the identities of the ends (p,)."""
    if _compiled(probability):
        return draw_signs(first, second, seeds, probability)
    uniforms = edge_uniforms(first, second, seeds)  # (K, p)
    low = probability[:, NEGATIVE].to(torch.float64)
    return uniforms <= low, uniforms > low + probability[:, ABSENT]


def gumbel_logits(log_prob: Tensor, first: Tensor, second: Tensor, seeds: list[int]) -> Tensor:
    """(K, p, 3): log pi plus Gumbel noise, of three seeds per sample; the largest is the draw."""
    uniforms = edge_uniforms(first, second, seeds).reshape(len(seeds) // 3, 3, -1).transpose(1, 2)
    return log_prob - (-uniforms.log()).log().to(log_prob.dtype)


class _StraightThrough(torch.autograd.Function):
    """Drawn indicators z- and z+, (K, m) each; the indicator of sign s has the gradient of pi_s, which is pi_s times that of
    log pi_s, added up over samples and over the edges that share a draw."""

    @staticmethod
    def forward(ctx: Any, log_prob: Tensor, slots: _Slots, seeds: list[int]) -> tuple[Tensor, Tensor]:
        probability = slots.of_draws(log_prob).exp()
        ctx.slots = slots
        ctx.save_for_backward(probability)
        if _compiled(probability):
            return indicators_along(draw_table(slots.first, slots.second, seeds, probability), slots.of_edge, probability)
        signs = drawn(probability, slots.first, slots.second, seeds)
        return tuple(sign.index_select(1, slots.of_edge).to(probability.dtype) for sign in signs)  # pyright: ignore

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        (probability,), slots = ctx.saved_tensors, ctx.slots
        to_negative, to_positive = (g[0] if len(g) == 1 else g.sum(0) for g in gradients)
        if _compiled(probability):
            none = slots.of_edge[:0]
            edge, mirror = (none if t is None else t for t in (slots.chosen, slots.mirror))
            return gradient_of_draws(probability, edge, mirror, to_negative, to_positive), None, None
        flows = torch.zeros_like(probability)
        for column, flow in ((NEGATIVE, to_negative), (POSITIVE, to_positive)):
            flows[:, column] = probability[:, column] * flow.new_zeros(len(probability)).scatter_add(0, slots.of_edge, flow)
        if slots.chosen is None:
            return flows, None, None
        return flows.new_zeros(to_negative.numel(), 3).index_copy(0, slots.chosen, flows), None, None


def most_likely_signs(distribution: SignDistribution) -> SignedGraphs:
    """The single graph of the most probable sign of each edge (the HardSign ablation), straight-through gradient."""
    probability = distribution.probability
    hard = torch.nn.functional.one_hot(probability.argmax(-1), 3).to(probability.dtype)
    value = (hard + (probability - probability.detach())).unsqueeze(0)
    return SignedGraphs(value[..., POSITIVE], value[..., NEGATIVE], _uniform_weight(1, probability))


def expected_signs(distribution: SignDistribution) -> SignedGraphs:
    """One graph with fractional indicators pi+ and pi-: expected messages instead of sampled ones."""
    value = distribution.probability.unsqueeze(0)
    return SignedGraphs(value[..., POSITIVE], value[..., NEGATIVE], _uniform_weight(1, value))


def observed_signs(graph: Graph) -> SignedGraphs:
    """The graph as given: every edge present and positive (the NoPosterior ablation)."""
    ones = torch.ones(1, graph.num_edges)
    return SignedGraphs(ones, torch.zeros_like(ones), _uniform_weight(1, ones))


def enumerate_signs(distribution: SignDistribution, graph: Graph, *, per_pair: bool = True) -> SignedGraphs:
    """All 3^p signed graphs with their probabilities under q, for tiny graphs: the exact average to test against."""
    draws = _Draws(distribution, graph, per_pair)
    p = draws.log_prob.shape[0]
    if 3**p > MAX_ENUMERATED:
        raise BadInput(f"enumerate_signs: {p} independent edges make 3^{p} graphs; use at most 10 edges, or sample")
    choice = torch.tensor(list(itertools.product(range(3), repeat=p)), dtype=torch.int64).reshape(-1, p)  # (3^p, p)
    log_weight = draws.log_prob.gather(1, choice.t()).sum(0)
    one_hot = torch.nn.functional.one_hot(choice, 3).to(draws.log_prob.dtype)
    return draws.to_edges(one_hot, log_weight)
