"""`spam`: this package's own model, in the registry like the others."""

from __future__ import annotations

from spam_gnn.baselines.base import Shape, System
from spam_gnn.config import SpaMConfig
from spam_gnn.model import SpaM
from spam_gnn.position_shape import PositionShape


def _make(shape: Shape, settings: SpaMConfig, seed: int) -> SpaM:
    position = PositionShape.wanted(
        settings.position, settings.position_rank, shape.num_nodes, shape.num_edges, directed=shape.directed
    )
    return SpaM(shape.num_features, shape.num_classes, settings, seed, position, shape.num_nodes or None)


SYSTEMS = (
    System(
        "spam", "SpaM", "spam", "Sparse Bayesian message passing",
        "Learns which edges help, oppose or are noise, and averages over sampled signed graphs.", _make, SpaMConfig(),
        search={
            "hidden": (32, 64, 128), "layers": (1, 2, 3), "dropout": (0.2, 0.5, 0.7), "samples": (2, 4, 8),
            "coder": ("uniform", "amortised", "unrolled"), "gamma": (0.0, 0.2, 1.0), "noise_quantile": (0.1, 0.25, 0.5),
            "posterior_gradient": (0.0, 0.1, 1.0), "directions": ("undirected", "both"), "belief_rounds": (1, 2, 3),
            "learning_rate": (0.003, 0.01, 0.03), "weight_decay": (5e-5, 5e-4, 5e-3),
        },
    ),
)  # fmt: skip
