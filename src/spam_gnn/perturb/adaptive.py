"""An attack made for SpaM: it differentiates through SpaM's own layers and its own judgement of each edge.

A robust model must be tested by an attacker who knows it. This one trains a SpaM on the clean graph and then flips pairs
greedily, in rounds. In each round it looks at a random block of pairs that are not joined and at all that are, and gives each a
presence w (0 or 1). A pair that is present with w takes part in the layers with the expected signs w p(+1) and w p(-1), where p
is what the posterior says (of a new pair: what it would say, by its current beliefs). The score of a flip is the first-order
change of the attacker's loss, the sum of two parts:

- through the layers, the derivative with respect to w;
- through the beliefs: the log message that the pair brings to each end, times the derivative of the loss with respect to that
  end's belief. In training the model cuts this path (beliefs have a loss of their own); the attacker does not.

The loss is taken on unlabelled nodes of whose class this SpaM and a GCN say the same. Those predictions are mostly right; to
change a wrong one would help the victim (on Cora an attack on all predictions raised the accuracy).

The best flips of a round are made, and the posterior judges the changed graph anew. Left out: how a flip changes the judgement
of *other* edges within one round, and that the victim is trained again on the attacked graph.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call

from spam_gnn.baselines.base import Shape
from spam_gnn.baselines.registry import find
from spam_gnn.features import FeatureMatrix
from spam_gnn.graph import Graph
from spam_gnn.model import SpaM
from spam_gnn.network import told_beliefs
from spam_gnn.perturb.base import budget_of, flipped, new_pairs, pair_keys
from spam_gnn.perturb.gradient import attacker_labels, trained_gcn
from spam_gnn.posterior import BeliefPosterior, SignDistribution
from spam_gnn.posterior.base import NEGATIVE, POSITIVE
from spam_gnn.prediction import Prediction
from spam_gnn.randomness import stream
from spam_gnn.sampling import SignedGraphs
from spam_gnn.training import TrainConfig, fit

BLOCK = 20_000  # new pairs looked at in one round
ROUNDS = 10
SCALE = 10.0  # of logits; margins of probabilities have no gradient where SpaM is sure, and attacked less well


@dataclass(frozen=True, eq=False)
class _Victim:
    """The trained model and what the attacker takes for the labels."""

    model: SpaM
    posterior: BeliefPosterior
    labels: Tensor
    attacked: Tensor  # (n,) bool, whose predictions shall change
    cosine: FeatureMatrix  # rows of norm one, for the similarity of any pair

    @staticmethod
    def trained(graph: Graph, seed: int, epochs: int) -> _Victim:
        system = find("spam")
        model = system.make(Shape.of(graph), system.settings, seed)
        assert isinstance(model, SpaM)
        assert isinstance(model.posterior, BeliefPosterior)
        fit(model, graph, TrainConfig(**{**system.train, "epochs": epochs}), seed)
        predicted = model.predict(model.prepare(graph), seed).label
        other = trained_gcn(graph, seed, epochs)
        agreed = predicted == other.predict(other.prepare(graph), seed).label
        rows = FeatureMatrix.of(graph.x).row_scaled()
        return _Victim(model, model.posterior, attacker_labels(graph, predicted), ~graph.train_mask & agreed, rows)


class _Layers(nn.Module):
    """The networks alone, as a module, so that `functional_call` can give every node an encoder bias of its own."""

    def __init__(self, model: SpaM) -> None:
        super().__init__()
        self.model = model

    def forward(self, graph: Graph, distribution: SignDistribution, signs: SignedGraphs, present: SignedGraphs) -> Tensor:
        """(n, C): log p of the mixture of all readings; trusting networks see which edges are `present`."""
        model = self.model
        found = [model.network(graph, told_beliefs(distribution), signs, None)[0], *model.trusted(graph, present, None)]
        return model.mixed([Prediction.uniform(log_prob) for log_prob in found]).log_marginal


def adaptive_attack(graph: Graph, strength: float, seed: int, epochs: int = 200, rounds: int = ROUNDS) -> Graph:
    """Flip exactly round(strength * pairs) pairs against a trained SpaM; additions are recorded as planted."""
    budget = budget_of(graph, strength)
    if budget == 0:
        return graph
    victim = _Victim.trained(graph, seed, epochs)
    current, chosen = graph.as_undirected(), torch.empty(2, 0, dtype=torch.int64)
    rounds = min(rounds, budget)
    for turn in range(rounds):
        count = budget * (turn + 1) // rounds - chosen.shape[1]
        best = _best_flips(victim, current, chosen, count, stream(seed, "adaptive", turn))
        current, chosen = flipped(current, best, "attacked"), torch.cat([chosen, best], 1)
    return flipped(graph, chosen, f"{budget} pairs flipped by an attack through SpaM")


def _best_flips(victim: _Victim, current: Graph, done: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """(2, count): the flips that raise the loss most to first order, none of them made before."""
    n = current.num_nodes
    room = n * (n - 1) // 2 - current.pairs.edge.numel()
    block = new_pairs(current, min(BLOCK, room // 2), generator)
    joined = current.edge_index[:, current.pairs.edge]
    ends = torch.cat([joined, block], 1)
    gain = _gains(victim, current, ends, joined.shape[1])
    gain[torch.isin(pair_keys(ends, n), pair_keys(done, n))] = float("-inf")
    return ends[:, torch.topk(gain, count).indices]


def _gains(victim: _Victim, current: Graph, ends: Tensor, joined: int) -> Tensor:
    """(p,): first-order change of the loss when each pair is flipped; the first `joined` pairs are edges, the rest are not."""
    model, context = victim.model, current.train_mask
    prepared = model.prepare(current)
    distribution = model.edge_distribution(prepared)
    assert distribution is not None
    with torch.no_grad():
        probability, heard = victim.posterior.judge_pairs(
            prepared, context, distribution, ends, _evidence(victim, current, ends)
        )
        probability[:joined] = distribution.probability[current.pairs.edge]
    presence = torch.zeros(ends.shape[1])
    presence[:joined] = 1.0
    presence.requires_grad_(True)
    union = flipped(current, ends[:, joined:], "with the block")
    keys, order = pair_keys(ends, union.num_nodes).sort()
    of_edge = order[torch.searchsorted(keys, pair_keys(union.edge_index, union.num_nodes))]  # the pair of each stored edge
    part = [(presence * probability[:, s])[of_edge].unsqueeze(0) for s in (POSITIVE, NEGATIVE)]
    whole = model.prepare(union)
    whole.derived.update(prepared.derived)  # pairs that are no edges yet have no place in a node's row of the adjacency
    there = presence[of_edge].unsqueeze(0)
    present = SignedGraphs(there, torch.zeros_like(there), torch.zeros(1))
    loss, offset = _loss(victim, whole, distribution, SignedGraphs(part[0], part[1], torch.zeros(1)), present)
    by_layer, by_offset = torch.autograd.grad(loss, [presence, offset])
    by_belief = _belief_gradient(model, distribution, by_offset)  # (n, C)
    spoken = sum((by_belief[end] * message.t()).sum(1) for end, message in zip(ends, heard, strict=True))
    return (by_layer + spoken) * (1.0 - 2.0 * presence.detach())


def _loss(
    victim: _Victim, union: Graph, distribution: SignDistribution, signs: SignedGraphs, present: SignedGraphs
) -> tuple[Tensor, Tensor]:
    """Mean over the attacked nodes of tanh((best wrong logit - right logit) / SCALE), and the bias each node's encoder had."""
    bias = victim.model.network.encode_bias
    assert bias is not None
    offset = bias.detach().expand(union.num_nodes, -1).clone().requires_grad_(True)
    names = {"model.network.encode_bias": offset}
    logits: Tensor = functional_call(_Layers(victim.model), names, (union, distribution, signs, present))
    right = torch.nn.functional.one_hot(victim.labels, logits.shape[1]).bool()
    margin = logits.masked_fill(right, float("-inf")).amax(1) - logits[right]
    return torch.tanh(margin / SCALE)[victim.attacked].mean(), offset


def _belief_gradient(model: SpaM, distribution: SignDistribution, by_offset: Tensor) -> Tensor:
    """(n, C): derivative of the loss in the logits of each node's belief, through the encoder alone."""
    belief = torch.softmax(distribution.node_logits[-1], -1)
    if model.network.encode_belief is None:
        return torch.zeros_like(belief)
    by_probability = by_offset @ model.network.encode_belief.detach().t()
    return belief * (by_probability - (belief * by_probability).sum(1, keepdim=True))


def _evidence(victim: _Victim, current: Graph, ends: Tensor) -> Tensor:
    """(p, 2): similarity and degrees of any pairs on the scale that the graph's own edges have."""
    degree = torch.bincount(current.edge_index[0], minlength=current.num_nodes).to(torch.float32).clamp(min=1.0).log()
    raw = (victim.cosine.row_dots(ends[0], ends[1]), degree[ends[0]] + degree[ends[1]])
    own = (current.feature_cosine, current.edge_log_degree)
    return torch.stack([(a - b.mean()) / b.std(correction=0).clamp(min=1e-6) for a, b in zip(raw, own, strict=True)], 1)
