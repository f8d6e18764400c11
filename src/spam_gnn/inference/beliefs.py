"""The posterior in pieces: the same distribution over signs as its forward pass, a range of edges at a time."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from spam_gnn.errors import BadInput
from spam_gnn.inference.encoder import encoded_distribution
from spam_gnn.inference.pieces import edge_ranges, features_of, node_ranges, reverse_of, scratch
from spam_gnn.kernels.belief import Mirrored, Terms, propagate_into
from spam_gnn.loading.cut import Whole
from spam_gnn.model import SpaM
from spam_gnn.posterior import BeliefPosterior, FixedPosterior, GCNPosterior, SignDistribution, SimilarityPosterior
from spam_gnn.posterior.belief import judged, log_message


def sign_distribution(model: SpaM, whole: Whole) -> SignDistribution | None:
    """q(Z) with all training labels as context; log_prob (m, 3) and node logits as `SpaM.edge_distribution` has them."""
    posterior = model.posterior
    if posterior is None:
        return None
    if isinstance(posterior, BeliefPosterior):
        return _Beliefs(model, posterior, whole).distribution()
    if isinstance(posterior, SimilarityPosterior | FixedPosterior):
        return _edge_by_edge(posterior, whole)
    if isinstance(posterior, GCNPosterior):
        return encoded_distribution(model, posterior, whole.graph)
    raise BadInput(f"posterior: found {type(posterior).__name__}, which cannot be evaluated in pieces; predict without batches")


def evidence_of(whole: Whole, edges: slice) -> Tensor:
    """(p, 2): `edge_evidence` of a range of edges."""
    graph, (mean, spread) = whole.graph, whole.evidence
    degree = whole.log_degree[graph.edge_index[0, edges]] + whole.log_degree[graph.edge_index[1, edges]]
    values = (graph.feature_cosine[edges], degree)
    return torch.stack([(v - m) / s for v, m, s in zip(values, mean, spread, strict=True)], dim=1)


def _edge_by_edge(posterior: SimilarityPosterior | FixedPosterior, whole: Whole) -> SignDistribution:
    log_prob = scratch(whole.graph.num_edges, 3)
    for edges in edge_ranges(whole.graph.num_edges):
        if isinstance(posterior, FixedPosterior):
            log_prob[edges] = posterior.get_buffer("log_probability").expand(edges.stop - edges.start, 3)
        else:
            log_prob[edges] = posterior.judge(evidence_of(whole, edges))
    return SignDistribution(log_prob)


class _Beliefs:
    """Belief propagation (see `posterior/belief.py`) over ranges of edges; messages (m, C) are kept in scratch files."""

    def __init__(self, model: SpaM, posterior: BeliefPosterior, whole: Whole) -> None:
        self.model, self.posterior, self.whole, self.graph = model, posterior, whole, whole.graph
        self.logits = self._feature_logits()
        self.prior = posterior._log_beliefs(self.logits, self.graph, self.graph.train_mask)  # (n, C)
        self.weights, self.chance = posterior._sign_weights(self.prior, self.graph)  # (3, C, C), (C, C)
        self.weight = posterior._weight(self.graph)  # (n,)

    def _feature_logits(self) -> Tensor:
        out = torch.empty(self.graph.num_nodes, self.posterior.num_classes)
        for rows in node_ranges(self.graph.num_nodes):
            out[rows] = self.posterior._feature_logits(self.model.scaler.scaled(features_of(self.graph, rows)), None)
        return out

    def distribution(self) -> SignDistribution:
        rounds = self.posterior.config.rounds
        if not rounds:
            return SignDistribution(self._judged(None, None, None), (self.logits,))
        log_prob, belief = self._both_ways(rounds) if self.graph.directed else self._mirrored(rounds)
        return SignDistribution(log_prob, (self.logits, belief))

    def _mirrored(self, rounds: int) -> tuple[Tensor, Tensor]:
        """(m, 3) and beliefs (n, C) of an undirected graph by the compiled loops, which read all of it where it lies."""
        graph, m = self.graph, self.graph.num_edges
        reverse, rest, pairs, done = scratch(m, kind=np.int64), scratch(m), scratch(m // 2, kind=np.int64), 0
        for edges in edge_ranges(m):
            reverse[edges] = reverse_of(graph, edges)
            rest[edges] = self.posterior._rest(evidence_of(self.whole, edges))
            chosen = edges.start + torch.nonzero(graph.edge_index[0, edges] < graph.edge_index[1, edges]).reshape(-1)
            pairs[done : done + len(chosen)] = chosen
            done += len(chosen)
        structure = Mirrored(graph.pointer, graph.edge_index[0], graph.edge_index[1], reverse, pairs[:done])
        heard_by = Terms(self.weights, rest)
        judged_by = self.posterior._judged_by(heard_by, self.chance)
        return propagate_into(scratch, structure, self.prior, heard_by, judged_by, self.weight, rounds)

    def _both_ways(self, rounds: int) -> tuple[Tensor, Tensor]:
        """The same of a directed graph, along whose edges both ends speak."""
        belief, along, against = self.prior, None, None
        for _ in range(rounds):
            belief, along, against = self._round(belief, along, against)
        return self._judged(belief, along, against), belief

    def _heard_by(self, edges: slice) -> Terms:
        return Terms(self.weights, self.posterior._rest(evidence_of(self.whole, edges)))

    def _round(self, belief: Tensor, along: Tensor | None, against: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """One turn of messages from all edges: beliefs (n, C), messages along them and against them, (m, C) each."""
        graph, classes = self.graph, self.prior.shape[1]
        onward, back = (scratch(graph.num_edges, classes) for _ in range(2))
        total, start = self.prior.clone(), torch.softmax(belief, 1)
        for edges in edge_ranges(graph.num_edges):
            source, target, heard_by = *graph.edge_index[:, edges], self._heard_by(edges)
            speak = start[source].t() if against is None else _without(belief, source, against[edges])
            hear = start[target].t() if along is None else _without(belief, target, along[edges])
            onward[edges] = (self.weight[target] * log_message(speak, heard_by)).t()
            back[edges] = (self.weight[source] * log_message(hear, heard_by)).t()
            total.index_add_(0, target, onward[edges])
            total.index_add_(0, source, back[edges])
        return total, onward, back

    def _judged(self, belief: Tensor | None, along: Tensor | None, against: Tensor | None) -> Tensor:
        """(m, 3): one judgement per directed edge, or per pair, written for both directions; by what is believed from the start
        where nothing was heard."""
        out, start = scratch(self.graph.num_edges, 3), self.prior.exp()
        for edges in edge_ranges(self.graph.num_edges):
            source, target = self.graph.edge_index[:, edges]
            if belief is None or along is None or against is None:
                first, second = start[target].t(), start[source].t()
            else:
                first, second = _without(belief, target, along[edges]), _without(belief, source, against[edges])
            log_q = judged(first, second, self.posterior._judged_by(self._heard_by(edges), self.chance)).t()
            if self.graph.directed:
                out[edges] = log_q
            else:
                chosen = torch.nonzero(source < target).reshape(-1)
                out[edges.start + chosen] = out[reverse_of(self.graph, edges)[chosen]] = log_q[chosen]
        return out


def _without(belief: Tensor, end: Tensor, heard: Tensor) -> Tensor:
    """(C, p): `_cavity` of beliefs (n, C) at one end of some edges, without what was heard (p, C) along them.

    Rows are picked before they are turned: of a turned table `index_select` makes a copy first, and with a copy of all nodes
    for every range of edges the time grew with the square of the graph.
    """
    return torch.softmax((belief[end] - heard).t(), 0)
