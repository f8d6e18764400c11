"""The belief posterior: who is probably what decides what an edge between them means.

The paper's own analysis (CSBM appendix) gives the posterior of a sign as p(z | Y_i, Y_j) averaged over what is believed of
Y_i and Y_j. This module computes that average, with

    u_i(c)      class beliefs from the features alone (the label itself where it is context),
    r(c, c')    how much more often classes c and c' are joined by an edge than by chance, learned,
    eta         the noise rate: the share of edges that ignore classes altogether.

An edge of classes (c, c') is then noise with weight eta, and has weight r(c, c') - eta of being there for a reason: a
supporting one (z = +1) where c = c', an opposing one (z = -1) where c != c':

    w_0(c, c') = eta,    w_+(c, c) = max(r(c, c) - eta, 0),    w_-(c, c') = max(r(c, c') - eta, 0),
    q(z_ij = s)  proportional to  exp([s = +1] a . f_ij)  sum_{c, c'} b_i(c) w_s(c, c') b_j(c'),

where f_ij is label-free evidence (feature similarity, degrees); it speaks for or against support only, because what tells
an opposing edge from a noise edge is the pair of classes. With `rounds` > 0 the beliefs b are refined by belief
propagation over the same model; the belief of i used to judge the edge (i, j) is the *cavity* one, which has not heard j
through that edge, so an edge never testifies for itself.

Beliefs that were refined have heard the evidence of every edge, and compatible classes as often as r says. The verdict on an
edge (`verdict="beliefs"`) therefore asks them alone: without f_ij once more, and with one weight of support for all classes,
the mean of w_+(c, c) over chance pairs of one class, so that a pair of a rare class (whose r is large, being compared with
chance) is no surer than one of a common class. `verdict="evidence"` judges by the equations as they stand.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spam_gnn.choices import Verdict
from spam_gnn.features import FeatureMatrix
from spam_gnn.graph import Graph
from spam_gnn.initial import glorot
from spam_gnn.kernels import chosen
from spam_gnn.kernels.activation import relu_dropout
from spam_gnn.kernels.belief import Mirrored, Terms, mean_log_agreement, propagate
from spam_gnn.kernels.csr import edge_dot
from spam_gnn.kernels.segments import segment_sum
from spam_gnn.posterior.base import ABSENT, NEGATIVE, POSITIVE, SignDistribution, SignPosterior, edge_evidence, symmetrise

_FLOOR = 1e-6


@dataclass(frozen=True)
class BeliefConfig:
    """Settings of the belief posterior, with their defaults."""

    hidden: int = 64
    dropout: float = 0.5
    input_dropout: float = 0.5  # of features
    rounds: int = 2  # of belief propagation; 0 judges edges by features and labels alone
    known: float = 0.98  # how far a context label is trusted
    witnesses: float = 64.0  # where W starts: neighbours repeat each other, and all of them together count as at most W
    noise_quantile: float = 0.25  # eta is this quantile of r over class pairs, weighted by chance frequency
    verdict: Verdict = "beliefs"  # what edges are judged by once beliefs are there: they alone, or all of the equations again


class BeliefPosterior(SignPosterior):
    """q(z_ij) from class beliefs and a learned class compatibility; see the module's equations.

    Shapes: features (n, d), beliefs (n, C), compatibility (C, C), result (m, 3).
    """

    def __init__(self, num_features: int, num_classes: int, config: BeliefConfig, generator: torch.Generator) -> None:
        super().__init__()
        self.config = config
        self.num_classes = num_classes
        self.first = nn.Parameter(glorot(num_features, config.hidden, generator))
        self.first_bias = nn.Parameter(torch.zeros(config.hidden))
        self.second = nn.Parameter(glorot(config.hidden, num_classes, generator))
        self.second_bias = nn.Parameter(torch.zeros(num_classes))
        # log r before normalisation; the start says "like joins like, e times chance"
        self.compatibility = nn.Parameter(torch.eye(num_classes) * 0.5)
        self.evidence = nn.Parameter(torch.tensor([0.5, 0.0]))  # a: log-odds of support per unit of similarity, degree
        self.sharpness = nn.Parameter(torch.zeros(()))  # log inverse temperature of the feature beliefs
        self.trust = nn.Parameter(torch.zeros(()))  # logit of how far a neighbour's message is believed
        self.witnesses = nn.Parameter(torch.tensor(float(config.witnesses)).log())  # log of W, see `_weight`

    def forward(self, graph: Graph, context: Tensor, generator: torch.Generator | None = None) -> SignDistribution:
        logits = self._feature_logits(graph.features, generator)
        log_u = self._log_beliefs(logits, graph, context)
        heard_by, judged_by = self._terms(log_u, graph, edge_evidence(graph))
        rounds = self.config.rounds
        if rounds == 0:
            return SignDistribution(self._judge_by_nodes(graph, log_u.exp(), judged_by), (logits,))
        if chosen("auto", log_u.device) == "fused" and not graph.directed:
            log_prob, marginal = propagate(mirrored(graph), log_u, heard_by, judged_by, self._weight(graph), rounds)
            return SignDistribution(log_prob, (logits, marginal))
        cavity, marginal = self._propagate(graph, log_u, heard_by)
        return SignDistribution(self._judge_by_cavity(graph, cavity, judged_by), (logits, marginal))

    def _terms(self, log_u: Tensor, graph: Graph, evidence: Tensor) -> tuple[Terms, Terms]:
        """What edges with this evidence (m, 2) say to their ends, and what their signs are judged by."""
        weights, chance = self._sign_weights(log_u, graph)
        heard_by = Terms(weights, self._rest(evidence))
        return heard_by, self._judged_by(heard_by, chance)

    def _judged_by(self, heard_by: Terms, chance: Tensor) -> Terms:
        """The verdict's terms: one weight of support, and evidence only where no message has carried it."""
        if self.config.verdict == "evidence":
            return heard_by
        (oppose, noise, support), same = heard_by.weights, chance.diagonal()
        one = (same * support.diagonal()).sum() / same.sum()
        weights = torch.stack([oppose, noise, one * torch.eye(self.num_classes, dtype=one.dtype, device=one.device)])
        return Terms(weights, heard_by.rest[:0] if self.config.rounds else heard_by.rest)

    def _feature_logits(self, features: FeatureMatrix, generator: torch.Generator | None) -> Tensor:
        """(n, C): a two-layer perceptron of the features."""
        hidden = features.project(self.first, self.config.input_dropout, generator, self.first_bias)
        hidden = relu_dropout(hidden, self.config.dropout, generator)
        return F.linear(hidden, self.second.t().contiguous(), self.second_bias)

    def _log_beliefs(self, logits: Tensor, graph: Graph, context: Tensor) -> Tensor:
        """(n, C): log u, from the features, or from the label where it is context."""
        log_u = torch.log_softmax((logits * self.sharpness.exp()).t(), 0).t()
        known = F.one_hot(graph.y.clamp(min=0), self.num_classes) * self.config.known
        known = (known + (1.0 - self.config.known) / self.num_classes).log()
        return torch.where(context.unsqueeze(1), known.to(log_u.dtype), log_u)

    def judge_pairs(
        self, graph: Graph, context: Tensor, distribution: SignDistribution, ends: Tensor, evidence: Tensor
    ) -> tuple[Tensor, Tensor]:
        """What pairs would be if they were further edges, judged by the beliefs that the graph's own edges give.

        Args:
            distribution: of this graph under the same context.
            ends: (2, p) pairs of nodes; evidence: (p, 2) as `edge_evidence` has for edges.

        Returns:
            (p, 3) probabilities of the signs, and (2, C, p) the log messages the pair would bring to ends[0] and to ends[1].
        """
        log_u = self._log_beliefs(distribution.node_logits[0], graph, context)
        heard_by, judged_by = self._terms(log_u, graph, evidence)
        belief = torch.softmax(distribution.node_logits[-1].t(), 0)  # (C, n)
        first, second = belief.index_select(1, ends[0]), belief.index_select(1, ends[1])
        heard = torch.stack([log_message(second, heard_by), log_message(first, heard_by)])
        return judged(first, second, judged_by).exp().t(), self._weight(graph)[ends].unsqueeze(1) * heard

    def log_ratio(self, log_u: Tensor, graph: Graph) -> tuple[Tensor, Tensor]:
        """log r (C, C) normalised so that chance has mean 1, and the chance frequency of each class pair (C, C)."""
        theta = self.compatibility + self.compatibility.t()
        ends = graph.edge_ends.to(log_u.dtype)
        share = (ends.unsqueeze(1) * log_u.detach().exp()).sum(0) + _FLOOR
        share = share / share.sum()  # class of a random edge end
        chance = share.unsqueeze(1) * share.unsqueeze(0)
        return theta - torch.logsumexp((theta + chance.log()).reshape(-1), 0), chance

    def _sign_weights(self, log_u: Tensor, graph: Graph) -> tuple[Tensor, Tensor]:
        """(3, C, C): w_-, w_0, w_+ of the module's equations; (C, C): the chance frequency of each pair of classes."""
        log_r, chance = self.log_ratio(log_u, graph)
        ratio = log_r.exp()
        eta = _weighted_quantile(ratio.reshape(-1), chance.reshape(-1), self.config.noise_quantile).clamp(max=1.0)
        reason = F.softplus(20.0 * (ratio - eta)) / 20.0  # max(r - eta, 0), smooth so that no class pair loses its gradient
        same = torch.eye(self.num_classes, dtype=ratio.dtype, device=ratio.device)
        return torch.stack([reason * (1.0 - same), eta.expand_as(ratio), reason * same]), chance

    def _rest(self, evidence: Tensor) -> Tensor:
        """(m,): label-free evidence (m, 2) is a factor for z = +1 against the other two signs, mean one over signs; a third of
        that for z = -1 and for z = 0."""
        return 1.0 / (2.0 + (evidence @ self.evidence).exp())

    def _judge_by_nodes(self, graph: Graph, belief: Tensor, judged_by: Terms) -> Tensor:
        """Edge posterior from node beliefs, as sampled products: no (m x C) tensor."""
        messages = graph.messages("in")
        like = [edge_dot(messages, (belief @ w.t()).unsqueeze(0), belief.unsqueeze(0))[0] for w in judged_by.weights]
        log_q = (torch.stack(like) * _boost(judged_by.rest) + _FLOOR).log()
        return torch.log_softmax(symmetrise(log_q.t(), graph), -1)

    def _propagate(self, graph: Graph, log_u: Tensor, heard_by: Terms) -> tuple[Tensor, Tensor]:
        """Damped belief propagation; returns cavity beliefs (2, C, p) at target and source of the edges to be judged (one of
        each pair, all edges of a directed graph), and (n, C) marginals.

        Classes come first here: every operation then runs along the edges, which is what vector units are good at.
        """
        source, target, back = *graph.edge_index, graph.reverse
        weight, prior = self._weight(graph), log_u.t()
        mixed = backward = None  # (C, m) log messages source -> target, and target -> source along the same edge
        belief = prior  # (C, n)
        for turn in range(self.config.rounds):
            if turn > 0 and not graph.directed:
                assert mixed is not None
                backward = mixed.index_select(1, back)
            speak = _cavity(belief, source, backward)
            hear = _cavity(belief, target, mixed) if graph.directed else None
            mixed = weight[target] * log_message(speak, heard_by)
            backward = None if hear is None else weight[source] * log_message(hear, heard_by)
            belief = prior + self._incoming(graph, mixed, backward)
        assert mixed is not None
        if backward is not None:
            ends = (_cavity(belief, target, mixed), _cavity(belief, source, backward))
        else:
            edge = graph.pairs.edge
            ends = (_cavity(belief, target[edge], mixed.index_select(1, edge)),
                    _cavity(belief, source[edge], mixed.index_select(1, back[edge])))  # fmt: skip
        return torch.stack(ends), belief.t()

    def _weight(self, graph: Graph) -> Tensor:
        """(n,): how far a node believes each of its d neighbours, trust / (1 + d / W).

        Propagation takes neighbours for independent witnesses. They are not: with hundreds of them, beliefs would be certain
        and wrong. In a batch, those that were sampled stand for all: else networks would learn from beliefs that are vaguer
        than what the whole graph gives them when they predict.
        """
        here = (graph.edge_ends if graph.directed else graph.pointer.diff()).to(self.trust.dtype)
        if graph.part is None:
            return torch.sigmoid(self.trust) / (1.0 + here * torch.exp(-self.witnesses))
        degree = graph.part.degree.to(here.dtype)
        return torch.sigmoid(self.trust) * (degree / here.clamp(min=1.0)) / (1.0 + degree * torch.exp(-self.witnesses))

    def _incoming(self, graph: Graph, mixed: Tensor, backward: Tensor | None) -> Tensor:
        """(C, n): the sum of all log messages that reach a node; along a directed edge both ends speak."""
        total = segment_sum(graph.messages("in"), mixed)
        if backward is not None:
            out = graph.messages("out")
            total = total + segment_sum(out, backward.index_select(1, out.edge))
        return total

    def _judge_by_cavity(self, graph: Graph, cavity: Tensor, judged_by: Terms) -> Tensor:
        """(m, 3): one judgement per pair, the same for both directions, because every w is symmetric."""
        if graph.directed:
            return judged(cavity[0], cavity[1], judged_by).t()
        pairs, rest = graph.pairs, judged_by.rest
        log_q = judged(cavity[0], cavity[1], Terms(judged_by.weights, rest[pairs.edge] if rest.numel() else rest))
        return log_q.index_select(1, pairs.of_edge).t()

    def edge_log_evidence(self, distribution: SignDistribution, graph: Graph) -> Tensor:
        """Mean log marginal likelihood of the edges given the feature beliefs: what r is fitted to (empirical Bayes)."""
        log_u = torch.log_softmax(distribution.node_logits[0].detach(), -1)
        log_r, _ = self.log_ratio(log_u, graph)
        edges = torch.arange(graph.num_edges) if graph.directed else graph.pairs.edge  # r is symmetric: one of each pair
        return mean_log_agreement(graph.edge_index, edges, log_u.exp(), log_r.exp())


def mirrored(graph: Graph) -> Mirrored:
    """The structure of an undirected graph as the compiled loops read it."""
    source, target = graph.edge_index
    return Mirrored(graph.pointer, source, target, graph.reverse, graph.pairs.edge)


def _cavity(belief: Tensor, end: Tensor, heard: Tensor | None) -> Tensor:
    """(C, p): what the node at one end of each edge believes without what it heard along that very edge."""
    if heard is None:
        return torch.softmax(belief, 0).index_select(1, end)
    return torch.softmax(belief.index_select(1, end) - heard, 0)


def _boost(rest: Tensor) -> Tensor:
    """(3, m): the evidence as a factor of each sign; (3, 1) ones where there is none."""
    return torch.stack([rest, rest, 1.0 - 2.0 * rest]) * 3.0 if rest.numel() else rest.new_ones(3, 1)


def judged(first: Tensor, second: Tensor, by: Terms) -> Tensor:
    """(3, p): log q of edges whose ends have the beliefs `first` and `second`, (C, p) each.

    Noise has one weight for all pairs of classes, and beliefs sum to one; support is for pairs of the same class.
    """
    both, weights = first * second, by.weights
    oppose, absent = ((weights[NEGATIVE] @ first) * second).sum(0), weights[ABSENT, 0, 0].expand_as(both[0])
    like = torch.stack([oppose, absent, weights[POSITIVE].diagonal() @ both])
    return torch.log_softmax((like * _boost(by.rest) + _FLOOR).log(), 0)


def log_message(speaker: Tensor, by: Terms) -> Tensor:
    """log m(c) = log sum_s boost_s sum_c' w_s(c, c') b(c'): (C, m) beliefs -> (C, m) log messages.

    Evidence speaks for support only, so the other two signs share a factor and one product; w_+ is diagonal.
    """
    boost, weights = _boost(by.rest), by.weights
    unlike = (weights[NEGATIVE] + weights[ABSENT]) @ speaker
    support = weights[POSITIVE].diagonal().unsqueeze(1) * speaker
    return (boost[NEGATIVE] * unlike + boost[POSITIVE] * support + _FLOOR).log()


def _weighted_quantile(values: Tensor, weight: Tensor, level: float) -> Tensor:
    """The value at which the cumulative weight first reaches `level`; differentiable in that value."""
    order = torch.argsort(values.detach())
    reached = torch.searchsorted(weight[order].cumsum(0), torch.tensor(level * float(weight.sum())))
    return values[order[int(reached.clamp(max=values.numel() - 1))]]
