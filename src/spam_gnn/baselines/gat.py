"""`gat`: attention over neighbours (Velickovic et al., ICLR 2018)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from spam_gnn.baselines.base import Network, Settings, Shape, System
from spam_gnn.baselines.projection import Projection
from spam_gnn.errors import BadInput
from spam_gnn.graph import Graph
from spam_gnn.initial import glorot
from spam_gnn.kernels.csr import gather_scalar, gather_sum
from spam_gnn.randomness import dropout, stream
from spam_gnn.structure import Messages


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

    PyG's `GATConv`, computed by sparse products with one head per sample: no (edges x width) tensor exists, where PyG's needs
    several (2.9 GB for four layers of width 256 on the 400,000 edges of squirrel).

    Args:
        inputs, width, heads: columns of h, columns of each head's result, number of heads.
        concat: join the heads (n, heads * width), or average them (n, width).
        rate: dropout of the attention a_ij.
        generator: of the initial weights.
        bias: False where a norm behind takes it out again.
    """

    def __init__(
        self, inputs: int, width: int, heads: int, *, concat: bool, rate: float, generator: torch.Generator, bias: bool = True
    ) -> None:
        super().__init__()
        self.heads, self.concat, self.rate = heads, concat, rate
        self.project = Projection(inputs, width * heads, generator, bias=False)
        self.to_target = nn.Parameter(glorot(heads, width, generator))  # the two halves of the vector a
        self.to_source = nn.Parameter(glorot(heads, width, generator))
        self.bias = nn.Parameter(torch.zeros(width * heads if concat else width)) if bias else None

    def propagate(self, projected: Tensor, graph: Graph, generator: torch.Generator | None) -> Tensor:
        """From W h (n, heads * width) to h'."""
        messages = _messages_with_self(graph)
        values = projected.unflatten(1, (self.heads, -1)).transpose(0, 1).contiguous()  # (heads, n, width)
        at_target = (values @ self.to_target.unsqueeze(2)).squeeze(2)  # (heads, n)
        at_source = (values @ self.to_source.unsqueeze(2)).squeeze(2)
        score = at_target.index_select(1, messages.target) + at_source.index_select(1, messages.source)  # (heads, m)
        share = dropout(_softmax(messages, nn.functional.leaky_relu(score, 0.2)), self.rate, generator)
        out = gather_sum(messages, share, values)  # (heads, n, width)
        out = out.transpose(0, 1).flatten(1) if self.concat else out.mean(0)
        return out if self.bias is None else out + self.bias


def _messages_with_self(graph: Graph) -> Messages:
    """The messages of a graph, and one from each node to itself."""
    if "messages-with-self" not in graph.derived:
        loops = torch.arange(graph.num_nodes)
        source, target = (torch.cat([ends, loops]) for ends in graph.edge_index)
        graph.derived["messages-with-self"] = Messages.build(source, target, graph.num_nodes)
    return graph.derived["messages-with-self"]


def _softmax(messages: Messages, score: Tensor) -> Tensor:
    """(heads, m): exp(score) divided by its sum over the messages that arrive at the same node."""
    index = messages.target.unsqueeze(0).expand_as(score)
    lowest = score.new_full((score.shape[0], messages.num_nodes), float("-inf"))
    top = lowest.scatter_reduce(1, index, score.detach(), "amax")
    raised = torch.exp(score - top.index_select(1, messages.target))
    return raised / gather_scalar(messages, raised).index_select(1, messages.target)


class GATNetwork(Network):
    """Layers of concatenated heads with ELU between them; the last averages its heads into the logits."""

    def __init__(self, shape: Shape, settings: GATSettings, seed: int) -> None:
        super().__init__(shape, settings)
        s, generator = settings, stream(seed, "weights")
        layers, inputs = [], shape.num_features
        for place in range(s.layers):
            last = place == s.layers - 1
            width, heads = (shape.num_classes, s.output_heads) if last else (s.hidden, s.heads)
            layers.append(AttentionLayer(
                inputs, width, heads, concat=not last, rate=s.attention_dropout, generator=generator
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
