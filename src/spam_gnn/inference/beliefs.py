"""The posterior in pieces: the same distribution over signs as its forward pass, a range of edges at a time."""

from __future__ import annotations

import torch
from torch import Tensor

from spam_gnn.errors import BadInput
from spam_gnn.inference.encoder import encoded_distribution
from spam_gnn.inference.pieces import edge_ranges, features_of, node_ranges, reverse_of, scratch
from spam_gnn.loading.cut import Whole
from spam_gnn.model import SpaM
from spam_gnn.posterior import BeliefPosterior, FixedPosterior, GCNPosterior, SignDistribution, SimilarityPosterior
from spam_gnn.posterior.belief import _cavity, _judged, _log_message


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
        self.weights = posterior._sign_weights(self.prior, self.graph)  # (3, C, C)
        self.weight = posterior._weight(self.graph)  # (n,)

    def _feature_logits(self) -> Tensor:
        out = torch.empty(self.graph.num_nodes, self.posterior.num_classes)
        for rows in node_ranges(self.graph.num_nodes):
            out[rows] = self.posterior._feature_logits(self.model.scaler.scaled(features_of(self.graph, rows)), None)
        return out

    def distribution(self) -> SignDistribution:
        belief, along, against = self.prior, None, None
        for _ in range(self.posterior.config.rounds):
            belief, along, against = self._round(belief, along, against)
        log_prob = scratch(self.graph.num_edges, 3)
        unheard = self._unheard(belief, along)
        for edges in edge_ranges(self.graph.num_edges):
            self._judge(edges, belief, unheard, along, against, log_prob)
        logits = (self.logits,) if along is None else (self.logits, belief)
        return SignDistribution(log_prob, logits)

    def _unheard(self, belief: Tensor, along: Tensor | None) -> Tensor | None:
        """(n, C) beliefs as probabilities, made once where nothing was heard yet: a range needs only a few rows."""
        return torch.softmax(belief, 1) if along is None else None

    def _boost(self, edges: slice) -> Tensor:
        return self.posterior._boost(evidence_of(self.whole, edges))

    def _heard_back(self, edges: slice, along: Tensor | None, against: Tensor | None) -> Tensor | None:
        """(C, p): what the source of each edge heard through it: along the mirrored edge, or against a directed one."""
        if along is None:
            return None
        return along[reverse_of(self.graph, edges)].t() if against is None else against[edges].t()

    def _round(
        self, belief: Tensor, along: Tensor | None, against: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """One turn of messages from all edges: beliefs (n, C), messages along (m, C), and against directed edges."""
        graph, classes = self.graph, self.prior.shape[1]
        fresh = scratch(graph.num_edges, classes)
        back = scratch(graph.num_edges, classes) if graph.directed else None
        total, unheard = self.prior.clone(), self._unheard(belief, along)
        for edges in edge_ranges(graph.num_edges):
            source, target, boost = *graph.edge_index[:, edges], self._boost(edges)
            speak = _without(belief, unheard, source, self._heard_back(edges, along, against))
            fresh[edges] = (self.weight[target] * _log_message(speak, self.weights, boost)).t()
            total.index_add_(0, target, fresh[edges])
            if back is not None:
                hear = _without(belief, unheard, target, None if along is None else along[edges].t())
                back[edges] = (self.weight[source] * _log_message(hear, self.weights, boost)).t()
                total.index_add_(0, source, back[edges])
        return total, fresh, back

    def _judge(
        self, edges: slice, belief: Tensor, unheard: Tensor | None, along: Tensor | None, against: Tensor | None, out: Tensor
    ) -> None:
        """One judgement per pair, written for both directions; one per directed edge."""
        source, target = self.graph.edge_index[:, edges]
        boost, back = self._boost(edges), self._heard_back(edges, along, against)
        heard = None if along is None else along[edges].t()
        first, second = _without(belief, unheard, target, heard), _without(belief, unheard, source, back)
        log_q = _judged(first, second, self.weights, boost).t()
        if self.graph.directed:
            out[edges] = log_q
            return
        chosen = torch.nonzero(source < target).reshape(-1)
        out[edges.start + chosen] = log_q[chosen]
        out[reverse_of(self.graph, edges)[chosen]] = log_q[chosen]


def _without(belief: Tensor, unheard: Tensor | None, end: Tensor, heard: Tensor | None) -> Tensor:
    """`_cavity` of beliefs (n, C) at one end of some edges."""
    return _cavity(belief.t(), end, heard) if unheard is None else unheard[end].t()
