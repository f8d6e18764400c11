"""The training objective (paper Eq. overall-loss), returned as named parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from spam_gnn.config import SpaMConfig, unlabelled_share
from spam_gnn.graph import Graph
from spam_gnn.outcome import Outcome
from spam_gnn.posterior import BeliefPosterior, SignPosterior, SignPrior
from spam_gnn.prediction import Prediction


@dataclass(frozen=True, eq=False)
class Loss:
    """The parts, each unweighted, and their weighted sum.

    Args:
        total: what is minimised.
        class_: negative log-likelihood of the target labels.
        sparsity: (1 / nK) sum ||alpha_i||_1, averaged over layers.
        structure: KL(q || prior) - E_q[log p(A | Z)] per edge.
        belief: cross-entropy of the posterior's own class beliefs on labelled nodes (0 for posteriors without any).
        evidence: minus the log likelihood of all edges under the class compatibility, per label (0 for posteriors without one).
        lesson: cross-entropy by which the feature beliefs learn from the refined ones on unlabelled nodes (0 without any).
        trusted: cross-entropy of the predictions of all networks but the judging one, added up (0 without any).
        agreement: how far their passes with different dropout masks are from their sharpened mean (0 with a single pass each).
    """

    total: Tensor
    class_: Tensor
    sparsity: Tensor
    structure: Tensor
    belief: Tensor
    evidence: Tensor
    lesson: Tensor
    trusted: Tensor
    agreement: Tensor

    def parts(self) -> dict[str, Tensor]:
        """Name -> value, the order they are logged in."""
        return {
            "loss": self.total, "class": self.class_, "sparsity": self.sparsity, "structure": self.structure,
            "belief": self.belief, "evidence": self.evidence, "lesson": self.lesson,
            "trusted": self.trusted, "agreement": self.agreement,
        }  # fmt: skip


def marginal_class_loss(prediction: Prediction, y: Tensor, target: Tensor) -> Tensor:
    """-log (1/K) sum_k p(y_i | X, Z^(k)), averaged over target nodes: the paper's text (L_cls)."""
    return F.nll_loss(prediction.log_marginal[target], y[target])


def expected_class_loss(prediction: Prediction, y: Tensor, target: Tensor) -> Tensor:
    """(1/K) sum_k -log p(y_i | X, Z^(k)), averaged over target nodes: the paper's Algorithm 1."""
    weight = prediction.log_weight.exp()
    each = torch.stack([F.nll_loss(log_prob[target], y[target]) for log_prob in prediction.log_prob])
    return (weight * each).sum()


def labelled_and_others(graph: Graph) -> tuple[int, int]:
    """How many nodes have a training label and how many have none; a batch answers for the graph it was cut from."""
    if graph.part is not None:
        return graph.part.labelled, graph.part.others
    labelled = int(graph.train_mask.sum())
    return labelled, graph.num_nodes - labelled


def edges_per_label(graph: Graph) -> float:
    """Edges of the graph (an undirected one counts once) for each of its training labels.

    The likelihood of a graph is that of its labels times that of its edges. The class loss is a mean over labels; on the same
    scale the edges count as a sum over edges divided by the number of labels. As a mean they would be heard least where labels
    are few, which is where class compatibility must be learned from edges (docs/trials.md).
    """
    labelled, _ = labelled_and_others(graph)
    edges = graph.num_edges if graph.part is None else graph.part.edges
    return (edges if graph.directed else edges / 2) / max(labelled, 1)


def disagreement(passes: Sequence[Tensor]) -> Tensor:
    """Squared distance of each pass (1, n, C) from what all of them say together, sharpened: p_c^2 / sum p^2 of their mean.

    The consistency term of GRAND (Feng et al. 2020), with dropout in place of its random propagation: nodes without a label
    teach a network to be of one mind about them. What is said together is taken as given (no gradient).
    """
    probability = torch.cat(list(passes)).exp()  # (S, n, C)
    sharp = probability.detach().mean(0).square()
    sharp = sharp / sharp.sum(-1, keepdim=True)
    return (probability - sharp).square().sum(-1).mean()


def objective(
    c: SpaMConfig,
    posterior: SignPosterior | None,
    prior: SignPrior,
    graph: Graph,
    outcome: Outcome,
    context: Tensor,
    trusted: Sequence[Sequence[Tensor]] = (),
    heeded: Sequence[float] = (),
    told: Sequence[bool] = (),
) -> Loss:
    """Loss of one forward pass. Targets are the training nodes whose label was not shown (all of them if all were).

    Args:
        trusted: (1, n, C) log p of each pass of each trusting network.
        heeded: how far what the judging and each trusting network guess of unlabelled nodes is learned from (`readings`); in
            full unless given.
        told: whether each trusting network was told the labels of `context`; it learns from the other nodes, as the judging
            network does, and all of them learn from every label unless given.
    """
    target = graph.counted & ~context
    if not bool(target.any()):
        target = graph.counted
    class_loss = marginal_class_loss if c.class_loss == "marginal" else expected_class_loss
    class_ = class_loss(outcome.prediction, graph.y, target)
    sparsity = outcome.code_norm.mean()
    heeded = heeded or [1.0] * (1 + len(trusted))
    zero = class_.new_zeros(())
    structure = belief = evidence = lesson = trusting = agreement = zero
    if outcome.distribution is not None:
        structure = prior.structure(outcome.distribution, graph, context)
        belief = _belief_loss(outcome.distribution.node_logits, graph, target)
        if isinstance(posterior, BeliefPosterior):
            evidence = -edges_per_label(graph) * posterior.edge_log_evidence(outcome.distribution, graph)
            lesson = heeded[0] * _lesson(outcome.distribution.node_logits, graph)
    for passes, heard, hears in zip(trusted, heeded[1:], told or [False] * len(trusted), strict=True):
        nodes = target if hears else graph.counted
        each = [F.nll_loss(log_prob[0, nodes], graph.y[nodes]) for log_prob in passes]
        trusting = trusting + torch.stack(each).mean()
        if len(passes) > 1:
            agreement = agreement + heard * unlabelled_share(*labelled_and_others(graph)) * disagreement(passes)
    total = (
        class_
        + c.sparsity_weight * sparsity
        + c.structure_weight * structure
        + c.belief_weight * belief
        + c.compatibility_weight * evidence
        + c.lesson_weight * lesson
        + trusting
        + c.agreement_weight * agreement
    )
    return Loss(total, class_, sparsity, structure, belief, evidence, lesson, trusting, agreement)


def _belief_loss(node_logits: tuple[Tensor, ...], graph: Graph, target: Tensor) -> Tensor:
    """Feature beliefs learn from every training label (they never see a label as input), refined ones from targets only."""
    loss = torch.zeros(())
    for logits, nodes in zip(node_logits, (graph.train_mask, target), strict=False):
        loss = loss + F.cross_entropy(logits[nodes], graph.y[nodes])
    return loss


def _lesson(node_logits: tuple[Tensor, ...], graph: Graph) -> Tensor:
    """The maximisation step of EM: feature beliefs fit what belief propagation concluded of the nodes without a label.

    Few labels make weak feature beliefs, and propagation over many edges knows better.
    """
    share = unlabelled_share(*labelled_and_others(graph))
    if share == 0.0 or len(node_logits) < 2:  # without propagation there is no teacher
        return torch.zeros(())
    before, after = (logits[~graph.train_mask] for logits in node_logits)
    if before.shape[0] == 0:  # a batch of labelled nodes alone, of a graph that has others
        return torch.zeros(())
    return share * F.cross_entropy(before, torch.softmax(after.detach(), -1))
