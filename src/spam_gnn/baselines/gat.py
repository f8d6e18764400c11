"""`gat`: attention over neighbours (Velickovic et al., ICLR 2018)."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch_geometric.nn import GATConv

from spam_gnn.baselines.base import Network, Settings, Shape, System
from spam_gnn.baselines.projection import Projection, drawn_seed
from spam_gnn.errors import BadInput
from spam_gnn.graph import Graph
from spam_gnn.randomness import library_draws, stream


@dataclass(frozen=True)
class GATSettings(Settings):
    """`hidden` is the width of one head, as in the publication (8 heads of 8)."""

    hidden: int = 8
    dropout: float = 0.6
    heads: int = 8
    output_heads: int = 1  # averaged
    attention_dropout: float = 0.6

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("heads", "output_heads"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name}: found {getattr(self, name)}; use 1 or more")
        if not 0.0 <= self.attention_dropout < 1.0:
            raise BadInput(f"attention_dropout: found {self.attention_dropout}; use a number from 0 up to, not including, 1")


class AttentionLayer(nn.Module):
    """h_i' = sum_{j in N(i) + i} a_ij W h_j, a_ij = softmax_j LeakyReLU(a^T [W h_i | W h_j]), per head (eq. 3 and 4).

    PyG's `GATConv` does all but W h, which is a `Projection` so that features may stay sparse.
    """

    def __init__(self, inputs: int, width: int, heads: int, *, concat: bool, rate: float, seed: int, bias: bool = True) -> None:
        super().__init__()
        self.project = Projection(inputs, width * heads, stream(seed, "weights"), bias=False)
        with library_draws(seed, "attention weights"):
            self.attend = GATConv(width * heads, width, heads, concat=concat, dropout=rate, bias=bias)
        self.attend.lin = nn.Identity()  # pyright: ignore[reportAttributeAccessIssue]

    def propagate(self, projected: Tensor, graph: Graph, generator: torch.Generator | None) -> Tensor:
        """From W h (n, heads * width) to h'."""
        with library_draws(drawn_seed(generator), "attention") if generator is not None else nullcontext():
            return self.attend(projected, graph.edge_index)


class GATNetwork(Network):
    """Layers of concatenated heads with ELU between them; the last averages its heads into the logits."""

    def __init__(self, shape: Shape, settings: GATSettings, seed: int) -> None:
        super().__init__(shape, settings)
        s, draws = settings, stream(seed, "layers")
        layers, inputs = [], shape.num_features
        for place in range(s.layers):
            last = place == s.layers - 1
            width, heads = (shape.num_classes, s.output_heads) if last else (s.hidden, s.heads)
            layers.append(AttentionLayer(
                inputs, width, heads, concat=not last, rate=s.attention_dropout, seed=drawn_seed(draws)
            ))  # fmt: skip
            inputs = width * heads
        self.layers = nn.ModuleList(layers)

    def logits(self, graph: Graph, generator: torch.Generator | None) -> Tensor:
        h = graph.features
        for place, layer in enumerate(self.layers):
            assert isinstance(layer, AttentionLayer)
            h = layer.propagate(layer.project(h, self.settings.dropout, generator), graph, generator)
            h = h if place == len(self.layers) - 1 else nn.functional.elu(h)
        assert isinstance(h, Tensor)
        return h


SYSTEMS = (
    System(
        "gat", "GAT", "homophily", "Velickovic et al., ICLR 2018", "Learns how much each neighbour counts, by attention.",
        GATNetwork, GATSettings(),
        train={"learning_rate": 0.005, "weight_decay": 5e-4, "epochs": 1000, "patience": 100, "decay": 1.0},
        search={
            "hidden": (8, 16, 32), "heads": (1, 4, 8), "layers": (2, 3), "dropout": (0.2, 0.6),
            "attention_dropout": (0.0, 0.6), "learning_rate": (0.001, 0.005, 0.01), "weight_decay": (0.0, 5e-5, 5e-4),
        },
    ),
)  # fmt: skip
