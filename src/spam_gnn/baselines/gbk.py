"""GBK-GNN: one kernel for alike neighbours, one for unlike ones, and a gate that is taught which edges are which."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from spam_gnn.baselines.base import Network, Settings, Shape, System
from spam_gnn.baselines.operators import check_between
from spam_gnn.graph import Graph
from spam_gnn.initial import glorot
from spam_gnn.kernels.csr import gather_sum
from spam_gnn.randomness import dropout, stream


@dataclass(frozen=True)
class GBKSettings(Settings):
    """Published defaults (hyperparameters_setting.py, run.sh), but for the gate's weight: see :class:`GBKGNN`."""

    hidden: int = 16
    gate_weight: float = 1.0  # lambda
    slope: float = 0.2  # of the leaky ReLU inside the gate

    def __post_init__(self) -> None:
        super().__post_init__()
        check_between(self, 0.0, float("inf"), "gate_weight")
        check_between(self, 0.0, 1.0, "slope")


class GBKConv(nn.Module):
    """h_i' = W_f h_i + mean_{j in N(i)} [g_ij W_s h_j + (1 - g_ij) W_d h_j] + b,
    g_ij = sigmoid(LeakyReLU(a_l^T W_g h_i + a_r^T W_g h_j)) (Du et al. 2022).

    The published code departs from the paper in two places, and the paper is followed: it multiplies the unlike kernel with h_i
    where the paper has h_j, and it gives each kernel half of the columns where the width is even.

    Args:
        in_channels, out_channels: widths.
        slope: of the leaky ReLU.
        generator: of the initial weights.
    """

    def __init__(self, in_channels: int, out_channels: int, slope: float, generator: torch.Generator) -> None:
        super().__init__()
        self.width, self.slope = out_channels, slope
        # W_f, W_s, W_d and W_g side by side, so that (possibly sparse) features are multiplied once
        self.weight = nn.Parameter(torch.cat([glorot(in_channels, out_channels, generator) for _ in range(4)], 1))
        self.at_target = nn.Parameter(glorot(1, out_channels, generator).squeeze(0))
        self.at_source = nn.Parameter(glorot(1, out_channels, generator).squeeze(0))
        self.bias = nn.Parameter(torch.zeros(out_channels))

    def gate_logits(self, graph: Graph, projected: Tensor) -> Tensor:
        """(m,): log-odds that the two ends of each message are alike."""
        messages, seen = graph.messages("in"), projected[:, 3 * self.width :]
        score = (seen @ self.at_target).index_select(0, messages.target)
        score = score + (seen @ self.at_source).index_select(0, messages.source)
        return torch.nn.functional.leaky_relu(score, self.slope)

    def aggregate(self, graph: Graph, projected: Tensor, gate: Tensor) -> Tensor:
        """Gates (m,) -> (n, out)."""
        messages = graph.messages("in")
        own, alike, unlike, _ = projected.split(self.width, 1)
        share = 1.0 / messages.degree.to(gate.dtype).clamp(min=1.0).index_select(0, messages.target)
        heard = gather_sum(messages, (gate * share).unsqueeze(0), alike.contiguous().unsqueeze(0))
        heard = heard + gather_sum(messages, ((1.0 - gate) * share).unsqueeze(0), unlike.contiguous().unsqueeze(0))
        return own + heard.squeeze(0) + self.bias


class GBKGNN(Network):
    """Two or more :class:`GBKConv` with ReLU and dropout; loss = class + lambda sum_l BCE(g^l, [y_i = y_j]).

    The gate's loss is taken over edges whose two ends are training nodes; no other label is read. The published lambda of 30
    belongs to a flatter loss: the code applies a softmax to the gate's two probabilities before its cross-entropy, which bounds
    the gradient. With the cross-entropy of the paper, 1 is used here and 30 stays in the search.
    """

    def __init__(self, shape: Shape, settings: GBKSettings, seed: int) -> None:
        super().__init__(shape, settings)
        generator = stream(seed, "weights")
        self.gate_weight = settings.gate_weight
        sizes = [shape.num_features] + [settings.hidden] * (settings.layers - 1) + [shape.num_classes]
        self.convs = nn.ModuleList([
            GBKConv(a, b, settings.slope, generator) for a, b in itertools.pairwise(sizes)
        ])  # fmt: skip

    def _pass(self, graph: Graph, generator: torch.Generator | None) -> tuple[Tensor, list[Tensor]]:
        """Logits (n, C) and the gate's log-odds (m,) of every layer."""
        h, gates = None, []
        for conv in self.convs:
            assert isinstance(conv, GBKConv)
            if h is None:
                projected = graph.features.project(conv.weight)
            else:
                projected = dropout(torch.relu(h), self.settings.dropout, generator) @ conv.weight
            gates.append(conv.gate_logits(graph, projected))
            h = conv.aggregate(graph, projected, torch.sigmoid(gates[-1]))
        assert h is not None
        return h, gates

    def logits(self, graph: Graph, generator: torch.Generator | None) -> Tensor:
        return self._pass(graph, generator)[0]

    def training_loss(self, graph: Graph, seed: int, epoch: int) -> dict[str, Tensor]:
        """As for every network, with the gate's loss of the same pass."""
        self.train()
        logits, gates = self._pass(graph, stream(seed, "dropout", epoch))
        class_loss = torch.nn.functional.cross_entropy(logits[graph.train_mask], graph.y[graph.train_mask])
        messages = graph.messages("in")
        both = graph.train_mask[messages.target] & graph.train_mask[messages.source]
        gate_loss = class_loss.new_zeros(())
        if bool(both.any()):
            alike = (graph.y[messages.target[both]] == graph.y[messages.source[both]]).to(logits.dtype)
            for gate in gates:
                gate_loss = gate_loss + torch.nn.functional.binary_cross_entropy_with_logits(gate[both], alike)
        return {"loss": class_loss + self.gate_weight * gate_loss, "class": class_loss, "gate": gate_loss}


SYSTEMS = (
    System(
        "gbk-gnn", "GBK-GNN", "heterophily", "Du, Shi, Fu, Ma, Liu, Han and Zhang, WWW 2022",
        "Two kernels, for alike and for unlike neighbours, and a gate trained on labelled edges.",
        GBKGNN, GBKSettings(), {"learning_rate": 0.01, "weight_decay": 1e-3, "epochs": 500, "patience": 100},
        {"learning_rate": (0.001, 0.01), "weight_decay": (1e-4, 1e-3, 1e-2), "hidden": (16, 64), "dropout": (0.2, 0.5),
         "gate_weight": (0.0, 0.1, 1.0, 5.0, 30.0)},
    ),
)  # fmt: skip
