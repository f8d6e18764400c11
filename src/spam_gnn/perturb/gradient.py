"""Adversarial edges by gradient: PRBCD and GRBCD (Geisler et al., NeurIPS 2021, PyG's code) on a trained GCN.

The attack is a poisoning by transfer: a GCN is trained on the clean graph, its edges are flipped so that its own predictions
change most, and the flipped graph is what every model is then trained on. The attacker knows what a user knows: features,
edges, training labels, and validation labels to stop the training by. Its loss uses training labels and, for all other
nodes, what the GCN itself predicts, never a label.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from spam_gnn.baselines.base import Shape
from spam_gnn.baselines.plain import PlainNetwork
from spam_gnn.baselines.registry import find
from spam_gnn.graph import Graph
from spam_gnn.perturb.base import budget_of, flipped, pair_keys
from spam_gnn.randomness import library_draws
from spam_gnn.training import TrainConfig, fit

BLOCK = 50_000  # pairs looked at in one step
STEPS = 125


@cache
def _attacks() -> dict[str, Any]:
    """PyG's two classes; importing `contrib` announces that it may change, which nobody here can act on."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch_geometric.contrib.nn import GRBCDAttack, PRBCDAttack
    return {"prbcd": PRBCDAttack, "grbcd": GRBCDAttack}


def trained_gcn(graph: Graph, seed: int, epochs: int = 200) -> PlainNetwork:
    """The surrogate: the registry's GCN, trained as everywhere else."""
    system = find("gcn")
    model = system.make(Shape.of(graph), system.settings, seed)
    assert isinstance(model, PlainNetwork)
    fit(model, graph, TrainConfig(**{**system.train, "epochs": epochs}), seed)
    return model


class WeightedGCN(nn.Module):
    """The trained GCN as PyG's attacks call it: (X W_1, edges, edge weights) -> logits, differentiable in the weights.

    The first projection does not depend on edges, so it is made once and takes the place of the features.
    """

    def __init__(self, network: PlainNetwork) -> None:
        super().__init__()
        layers = list(network.stack.layers)
        self.weights = [layer.weight.detach() for layer in layers]  # pyright: ignore[reportAttributeAccessIssue, reportCallIssue]
        self.biases = [layer.bias.detach() for layer in layers]  # pyright: ignore[reportAttributeAccessIssue, reportCallIssue]

    def first(self, prepared: Graph) -> Tensor:
        return prepared.features.project(self.weights[0])

    def forward(self, projected: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
        h = smooth(projected, edge_index, edge_weight) + self.biases[0]
        for weight, bias in zip(self.weights[1:], self.biases[1:], strict=True):
            h = smooth(torch.relu(h) @ weight, edge_index, edge_weight) + bias
        return h


def smooth(h: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
    """D~^-1/2 (A_w + I) D~^-1/2 H for weighted edges, D~ from the weights."""
    source, target = edge_index
    degree = torch.ones_like(h[:, 0]).index_add(0, target, edge_weight)
    scale = degree.clamp(min=1e-12).rsqrt()
    message = h.index_select(0, source) * (edge_weight * scale[source] * scale[target]).unsqueeze(1)
    return torch.zeros_like(h).index_add(0, target, message) + h * scale.square().unsqueeze(1)


def attacker_labels(graph: Graph, predicted: Tensor) -> Tensor:
    """(n,): training labels where they are known, the surrogate's own predictions everywhere else."""
    return torch.where(graph.train_mask, graph.y, predicted)


def gradient_attack(graph: Graph, strength: float, seed: int, kind: str, epochs: int = 200, steps: int = STEPS) -> Graph:
    """Flip at most round(strength * pairs) pairs, additions recorded as planted.

    Args:
        graph: directed graphs are attacked as the GCN sees them, undirected; a new edge gets one direction.
        strength: share of the joined pairs.
        seed: of the surrogate's weights and of the attack's draws.
        kind: `prbcd` or `grbcd`.
        epochs, steps: of the surrogate and of the attack; small numbers for tests.
    """
    budget = budget_of(graph, strength)
    if budget == 0:
        return graph
    network = trained_gcn(graph, seed, epochs)
    prepared = network.prepare(graph)
    labels = attacker_labels(graph, network.predict(prepared, seed).label)
    surrogate = WeightedGCN(network)
    pairs = graph.num_nodes * (graph.num_nodes - 1) // 2
    block = min(pairs, max(BLOCK, 10 * budget))
    with library_draws(seed, kind):
        attack = _attacks()[kind](surrogate, block_size=block, epochs=steps, loss="prob_margin", log=False, **(
            {"epochs_resampling": max(1, steps * 4 // 5)} if kind == "prbcd" else {}))  # fmt: skip
        _, ends = attack.attack(surrogate.first(prepared), prepared.edge_index, labels, budget, ~graph.train_mask)
    return flipped(graph, _odd(ends, graph.num_nodes), f"{ends.shape[1]} pairs flipped by {kind} against a GCN")


def _odd(ends: Tensor, n: int) -> Tensor:
    """The greedy attack may flip a pair back: only pairs flipped an odd number of times count."""
    keys, times = torch.unique(pair_keys(ends, n), return_counts=True)
    keys = keys[times % 2 == 1]
    return torch.stack([keys // n, keys % n])
