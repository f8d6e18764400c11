"""The search of Auto-HeG: train a supernet, shrink it by what each operator does to the predicted heterophily, pick one per
place."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from spam_gnn.baselines.auto_heg_cells import JOINS, OPERATORS, SKIPS, Cells
from spam_gnn.graph import Graph
from spam_gnn.randomness import node_uniforms, seed_for, stream

Weights = tuple[Tensor, Tensor, Tensor]


@dataclass(frozen=True)
class SearchPlan:
    """`keep[s]` operators per layer survive stage s of `epochs` epochs each; then one is chosen."""

    keep: tuple[int, ...]
    epochs: int
    learning_rate: float
    architecture_rate: float
    weight_decay: float = 3e-4


def split_training_nodes(graph: Graph, seed: int) -> tuple[Tensor, Tensor]:
    """Two halves of the training nodes: weights learn from the first, the architecture from the second. Validation nodes are
    not touched."""
    draw = node_uniforms(graph.identity, seed_for(seed, "architecture-half"))
    first = graph.train_mask & (draw < 0.5)
    second = graph.train_mask & ~first
    if not bool(first.any()) or not bool(second.any()):
        return graph.train_mask, graph.train_mask
    return first, second


def class_link_matrix(soft: Tensor, edges: Tensor) -> Tensor:
    """H = (Y^T A Y) / (Y^T A 1): (C, C) share of class c's links that lead to class c', from soft labels (n, C)."""
    links = soft[edges[0]].t() @ soft[edges[1]]
    return links / links.sum(1, keepdim=True).clamp(min=1e-12)


def heterophily_distance(logits: Tensor, graph: Graph, held_out: Tensor) -> float:
    """||H(predictions) - H(labels)||_F over edges among training nodes that touch the held-out half (Zheng et al. 2023).

    The authors use the labels of all nodes; only training labels are read here. Without such an edge the held-out class loss
    serves.
    """
    source, target = graph.edge_index
    chosen = graph.train_mask[source] & graph.train_mask[target] & (held_out[source] | held_out[target])
    if not bool(chosen.any()):
        return float(F.cross_entropy(logits[held_out], graph.y[held_out]))
    edges = graph.edge_index[:, chosen]
    truth = F.one_hot(graph.y.clamp(min=0), logits.shape[1]).to(torch.float32)
    return float((class_link_matrix(torch.softmax(logits, 1), edges) - class_link_matrix(truth, edges)).norm())


def search_architecture(cells: Cells, graph: Graph, plan: SearchPlan, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Indices of the chosen operators (L,), skips (L,) and join (1,); `cells` is used up as the supernet."""
    layers = len(cells.operators)
    alphas = [1e-3 * torch.randn(layers, len(OPERATORS), generator=stream(seed, "alphas")),
              torch.zeros(layers, len(SKIPS)), torch.zeros(1, len(JOINS))]  # fmt: skip
    for alpha in alphas:
        alpha.requires_grad_()
    alive = torch.ones(layers, len(OPERATORS), dtype=torch.bool)
    first, second = split_training_nodes(graph, seed)
    weight_steps = torch.optim.Adam(cells.parameters(), lr=plan.learning_rate, weight_decay=plan.weight_decay)
    architecture_steps = torch.optim.Adam(alphas, lr=plan.architecture_rate, betas=(0.5, 0.999))
    for stage, keep in enumerate((*plan.keep, 1)):
        for epoch in range(plan.epochs):
            for part, (steps, nodes) in enumerate(((weight_steps, first), (architecture_steps, second))):
                generator = stream(seed, "search", stage, epoch, part)
                loss = F.cross_entropy(cells(graph, _mixture(alphas, alive), generator)[nodes], graph.y[nodes])
                steps.zero_grad(set_to_none=True)
                loss.backward()
                steps.step()
        for layer in range(layers):
            alive[layer] = _survivors(cells, graph, _mixture(alphas, alive), 0, layer, alive[layer], keep, second)
    operators = alive.to(torch.int64).argmax(1)
    weights = _mixture(alphas, alive)
    skips = torch.stack([_best(cells, graph, weights, 1, layer, second) for layer in range(layers)])
    if not bool(skips.any()):
        skips[-1] = SKIPS.index("skip")  # a network none of whose layers is read would be a constant
    return operators, skips, _best(cells, graph, weights, 2, 0, second).reshape(1)


def _mixture(alphas: list[Tensor], alive: Tensor) -> Weights:
    operators = torch.softmax(alphas[0].masked_fill(~alive, float("-inf")), 1)
    return operators, torch.softmax(alphas[1], 1), torch.softmax(alphas[2], 1)


@torch.no_grad()
def _distance_without(cells: Cells, graph: Graph, weights: Weights, kind: int, place: int, held_out: Tensor) -> Tensor:
    """(choices,): the heterophily distance with each choice of one place left out in turn; 0 where it has no weight."""
    row = weights[kind][place]
    distances = torch.zeros_like(row)
    for choice in torch.nonzero(row).reshape(-1).tolist():
        if int((row != 0).sum()) == 1:
            break
        changed = [w.clone() for w in weights]
        changed[kind][place, choice] = 0.0
        changed[kind][place] /= changed[kind][place].sum()
        distances[choice] = heterophily_distance(cells(graph, (changed[0], changed[1], changed[2]), None), graph, held_out)
    return distances


def _survivors(
    cells: Cells, graph: Graph, weights: Weights, kind: int, place: int, alive: Tensor, keep: int, held_out: Tensor
) -> Tensor:
    """The `keep` choices whose absence would hurt most."""
    hurt = _distance_without(cells, graph, weights, kind, place, held_out).masked_fill(~alive, -1.0)
    kept = torch.zeros_like(alive)
    kept[torch.argsort(hurt, descending=True, stable=True)[: min(keep, int(alive.sum()))]] = True
    return kept


def _best(cells: Cells, graph: Graph, weights: Weights, kind: int, place: int, held_out: Tensor) -> Tensor:
    return _distance_without(cells, graph, weights, kind, place, held_out).argmax()
