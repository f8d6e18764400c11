"""`sispde`: a graph neural SDE whose noise is spatially correlated by a Matern kernel of the graph."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from spam_gnn.baselines.base import Shape, System
from spam_gnn.baselines.chebyshev import Operator, chebyshev_sum, coefficients
from spam_gnn.baselines.identity_order import node_table_normals
from spam_gnn.baselines.sampled import SampledNetwork, SampledSettings
from spam_gnn.errors import BadInput
from spam_gnn.graph import Graph
from spam_gnn.initial import glorot, inverse_softplus
from spam_gnn.kernels.csr import gather_sum
from spam_gnn.randomness import dropout, seed_for, stream


@dataclass(frozen=True)
class SISPDESettings(SampledSettings):
    """`layers` counts Euler steps over `time`; `noise` scales the Wiener process; `smoothness` nu and `length` kappa start
    the kernel."""

    layers: int = 4
    predict_samples: int = 10
    time: float = 2.0
    noise: float = 0.5
    smoothness: float = 1.0
    length: float = 2.0
    order: int = 6

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.time <= 0.0 or self.smoothness <= 0.0 or self.length <= 0.0 or self.noise < 0.0 or self.order < 1:
            raise BadInput(f"time, smoothness, length, noise, order: found {self.time}, {self.smoothness}, {self.length}, "
                           f"{self.noise}, {self.order}; use numbers above 0 (noise: 0 or more)")  # fmt: skip


def shifted_laplacian(graph: Graph) -> Operator:
    """h -> (L - I) h = -D^-1/2 A D^-1/2 h for h (n, ...): the symmetric Laplacian, its spectrum [0, 2] moved to [-1, 1]."""
    messages = graph.messages("in")
    degree = messages.degree.to(torch.float32)
    scale = torch.where(degree > 0, degree.clamp(min=1.0).rsqrt(), 0.0)
    weights = -(scale[messages.target] * scale[messages.source]).unsqueeze(0)
    return lambda h: gather_sum(messages, weights, h.reshape(1, h.shape[0], -1))[0].reshape(h.shape)


def matern_root(smoothness: Tensor, length: Tensor, order: int) -> Tensor:
    """(order + 1,): Chebyshev coefficients of lambda -> (2 nu / kappa^2 + lambda)^(-nu / 2), the square root of the Matern
    kernel.

    Scaled so that its square has mean 1 over the Chebyshev points: the amplitude of the noise is left to `noise`.
    """

    def root(x: Tensor) -> Tensor:
        values = (2.0 * smoothness / length.square() + x + 1.0).pow(-smoothness / 2.0)
        return values / values.square().mean().sqrt()

    return coefficients(root, order)


class StructureInformedSPDE(SampledNetwork):
    """dH = (-gamma o L H + tanh(H W + b)) dt + noise sigmoid(H W_g) o dW, W a Wiener process with covariance (2 nu / kappa^2
    + L)^-nu.

    Xu and Markovich 2025: dU = (L U + F(U)) dt + G(U) dW^Phi, whose increments over a step of length dt are sqrt(dt) Phi^1/2
    xi with white xi; Phi^1/2 is applied by a Chebyshev sum on the graph Laplacian. No code is public. Decided: Euler-Maruyama
    steps; F one tanh layer shared by all steps; G a gate; one diffusion coefficient gamma per channel, free in sign so that
    it can also sharpen; nu and kappa are learned from the class loss of sampled paths. xi is keyed by node identity.

    Shapes: X (n, d), H (n, K, hidden), logits (K, n, C).
    """

    settings: SISPDESettings

    def __init__(self, shape: Shape, settings: SISPDESettings, seed: int) -> None:
        super().__init__(shape, settings)
        generator, h = stream(seed, "weights"), settings.hidden
        self.encode = nn.Parameter(glorot(shape.num_features, h, generator))
        self.encode_bias = nn.Parameter(torch.zeros(h))
        self.reaction = nn.Parameter(glorot(h, h, generator))
        self.reaction_bias = nn.Parameter(torch.zeros(h))
        self.gamma = nn.Parameter(torch.ones(h))
        if settings.noise > 0.0:
            self.gate = nn.Parameter(glorot(h, h, generator))
            self.raw_smoothness = nn.Parameter(inverse_softplus(settings.smoothness))
            self.raw_length = nn.Parameter(inverse_softplus(settings.length))
        self.classify = nn.Parameter(glorot(h, shape.num_classes, generator))
        self.classify_bias = nn.Parameter(torch.zeros(shape.num_classes))

    def increment(self, graph: Graph, operator: Operator, seeds: list[int]) -> Tensor:
        """(n, K, hidden): Phi^1/2 xi, one spatially correlated draw per seed and channel."""
        positive = nn.functional.softplus
        root = matern_root(positive(self.raw_smoothness) + 1e-3, positive(self.raw_length) + 1e-3, self.settings.order)
        white = node_table_normals(graph.identity, self.settings.hidden, seeds)
        return chebyshev_sum(operator, [c * white for c in root])

    def draws(self, graph: Graph, seeds: list[int], generator: torch.Generator | None) -> Tensor:
        c, operator = self.settings, shifted_laplacian(graph)
        h = torch.relu(graph.features.project(self.encode, c.dropout, generator) + self.encode_bias)
        h = h.unsqueeze(1).expand(-1, len(seeds) if c.noise > 0.0 else 1, -1)  # (n, K, hidden): all paths start alike
        dt = c.time / c.layers
        for step in range(c.layers):
            drift = torch.tanh(h @ self.reaction + self.reaction_bias) - self.gamma * (operator(h) + h)
            change = dt * drift
            if c.noise > 0.0:
                amplitude = c.noise * dt**0.5 * torch.sigmoid(h @ self.gate)
                change = change + amplitude * self.increment(graph, operator, [seed_for(s, "path", step) for s in seeds])
            h = h + change
        logits = dropout(h, c.dropout, generator) @ self.classify + self.classify_bias
        return logits.transpose(0, 1).expand(len(seeds), -1, -1)


SYSTEMS = (
    System(
        "sispde", "SISPDE", "uncertainty", "Xu and Markovich, NeurIPS 2025",
        "Graph neural SDE with Matern-correlated noise, averaged over sampled paths.",
        StructureInformedSPDE, SISPDESettings(),
        {"learning_rate": 0.01, "weight_decay": 5e-3, "epochs": 400, "patience": 120, "val_samples": 4},
        {"noise": (0.1, 0.5, 1.0), "smoothness": (0.5, 1.0, 2.0), "length": (1.0, 2.0, 4.0), "time": (1.0, 2.0),
         "layers": (2, 4), "weight_decay": (5e-4, 5e-3)},
    ),
)  # fmt: skip
