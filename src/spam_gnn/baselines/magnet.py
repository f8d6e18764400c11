"""`magnet`: complex Chebyshev filters of the magnetic Laplacian, on two real sparse matrices."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from spam_gnn.baselines.base import Network, Settings, Shape, System
from spam_gnn.baselines.chebyshev import Operator, chebyshev_sum
from spam_gnn.errors import BadInput
from spam_gnn.graph import Graph
from spam_gnn.initial import glorot
from spam_gnn.kernels.csr import gather_sum
from spam_gnn.randomness import dropout, stream
from spam_gnn.structure import Messages


@dataclass(frozen=True)
class MagNetSettings(Settings):
    """`charge` is q, `order` the degree K of the Chebyshev filters."""

    hidden: int = 64
    charge: float = 0.25
    order: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 <= self.charge <= 0.25:
            raise BadInput(f"charge: found {self.charge}; use a number from 0 to 0.25")
        if self.order < 1:
            raise BadInput(f"order: found {self.order}; use 1 or more")


def magnetic_operator(graph: Graph, charge: float) -> Operator:
    """z -> L~ z for L~ = L^(q) - I = -(D_s^-1/2 A_s D_s^-1/2) o exp(i Theta), Theta = 2 pi q (A - A^T) (Zhang et al. 2021).

    A_s = (A + A^T) / 2 and D_s its row sums; the largest eigenvalue of L^(q) is taken as its bound 2, so that 2 L / 2 - I = L
    - I. Complex tables are stored as (2, n, d): real part, imaginary part.
    """
    key = f"magnet/{charge}"
    if key not in graph.derived:
        source, target = graph.edge_index
        one_way = graph.reverse < 0
        # entry (row u, column v) is a message v -> u; A(u, v) = 1 for an edge u -> v, so rows of out-edges turn by +2 pi q
        rows = torch.cat([target, source[one_way]])
        columns = torch.cat([source, target[one_way]])
        turn = torch.cat([torch.where(one_way, -1.0, 0.0), torch.ones(int(one_way.sum()))]) * (2.0 * math.pi * charge)
        size = torch.cat([torch.where(one_way, 0.5, 1.0), torch.full((int(one_way.sum()),), 0.5)])
        messages = Messages.build(columns, rows, graph.num_nodes)
        degree = torch.zeros(graph.num_nodes).index_add(0, rows, size)
        scale = torch.where(degree > 0, degree.clamp(min=1e-12).rsqrt(), 0.0)
        weight = -(scale[rows] * size * scale[columns])[messages.edge]
        turn = turn[messages.edge]
        graph.derived[key] = (messages, (weight * turn.cos()).unsqueeze(0), (weight * turn.sin()).unsqueeze(0))
    messages, real, imaginary = graph.derived[key]

    def apply(z: Tensor) -> Tensor:
        both = torch.cat([z[0], z[1]], dim=1).unsqueeze(0)  # (1, n, 2d): one product serves both parts
        by_real, by_imaginary = (gather_sum(messages, w, both)[0] for w in (real, imaginary))
        d = z.shape[2]
        return torch.stack([by_real[:, :d] - by_imaginary[:, d:], by_imaginary[:, :d] + by_real[:, d:]])

    return apply


def complex_relu(z: Tensor) -> Tensor:
    """z where its real part is not negative, otherwise 0 (Zhang et al. 2021)."""
    return z * (z[:1] >= 0)


class MagNet(Network):
    """X^(l) = sigma(sum_k T_k(L~) X^(l-1) W_k + b), unwound to [Re | Im] before a linear classifier (Zhang et al. 2021).

    Shapes: X (n, d), complex tables (2, n, hidden), unwound (n, 2 hidden), logits (n, C). Filters are real, as published; the
    input has a zero imaginary part, as in the paper's text (its code copies the features into both parts). The bias is real and
    added to both parts.
    """

    reads_direction = True
    settings: MagNetSettings

    def __init__(self, shape: Shape, settings: MagNetSettings, seed: int) -> None:
        super().__init__(shape, settings)
        generator, h, powers = stream(seed, "weights"), settings.hidden, settings.order + 1
        sizes = [shape.num_features] + [h] * (settings.layers - 1)
        # the K + 1 filters of a layer side by side
        self.filters = nn.ParameterList([glorot(size, powers * h, generator) for size in sizes])
        self.biases = nn.ParameterList([torch.zeros(h) for _ in sizes])
        self.classify = nn.Parameter(glorot(2 * h, shape.num_classes, generator))
        self.classify_bias = nn.Parameter(torch.zeros(shape.num_classes))

    def logits(self, graph: Graph, generator: torch.Generator | None) -> Tensor:
        operator = magnetic_operator(graph, self.settings.charge)
        z = None
        for weight, bias in zip(self.filters, self.biases, strict=True):
            if z is None:  # X W_k first: features may stay sparse, and L~ acts on fewer columns
                real = graph.features.project(weight)
                mixed = torch.stack([real, torch.zeros_like(real)])
            else:
                mixed = z @ weight
            z = complex_relu(chebyshev_sum(operator, list(mixed.split(self.settings.hidden, dim=2))) + bias)
        assert z is not None
        unwound = dropout(torch.cat([z[0], z[1]], dim=1), self.settings.dropout, generator)
        return unwound @ self.classify + self.classify_bias


SYSTEMS = (
    System(
        "magnet", "MagNet", "directed", "Zhang, He, Brugnone, Perlmutter and Hirn, NeurIPS 2021",
        "Complex spectral filters of a Laplacian whose phase holds the direction of each edge.",
        MagNet, MagNetSettings(), {"learning_rate": 0.005, "weight_decay": 5e-4, "epochs": 500, "patience": 100},
        {"charge": (0.0, 0.05, 0.15, 0.25), "order": (1, 2), "hidden": (16, 32, 64), "layers": (2, 3),
         "dropout": (0.0, 0.5), "learning_rate": (0.01, 0.005, 0.001)},
    ),
)  # fmt: skip
