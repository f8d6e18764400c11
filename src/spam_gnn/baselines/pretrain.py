"""A short training without validation, for systems that begin with a trained network."""

from __future__ import annotations

import torch

from spam_gnn.baselines.base import Network
from spam_gnn.graph import Graph


def pretrain(network: Network, graph: Graph, epochs: int, learning_rate: float, weight_decay: float, seed: int) -> None:
    """Adam for a fixed number of epochs on a prepared graph; gradients are cleared afterwards."""
    groups = [{"params": g["params"], "weight_decay": g["weight_decay"], "lr": learning_rate * g.get("rate_factor", 1.0)}
              for g in network.parameter_groups(weight_decay) if g["params"]]  # fmt: skip
    optimiser = torch.optim.Adam(groups, lr=learning_rate)
    for epoch in range(epochs):
        optimiser.zero_grad(set_to_none=True)
        network.training_loss(graph, seed, epoch)["loss"].backward()
        optimiser.step()
    optimiser.zero_grad(set_to_none=True)
