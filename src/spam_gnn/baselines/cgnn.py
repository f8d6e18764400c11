"""`cgnn`: Commute GNN, neighbours weighed by how soon a random walk returns from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch_geometric.utils import softmax

from spam_gnn.baselines.base import Shape, System
from spam_gnn.baselines.commute import edge_commute_times
from spam_gnn.baselines.two_way import TwoWayNetwork, TwoWaySettings
from spam_gnn.errors import BadInput, one_of
from spam_gnn.graph import Direction, Graph
from spam_gnn.kernels.csr import gather_sum

Commute = Literal["auto", "exact", "local", "none"]


@dataclass(frozen=True)
class CGNNSettings(TwoWaySettings):
    """`commute`: how times are found; `auto` is exact up to `exact_nodes` nodes and local above; `none` weighs neighbours
    equally."""

    commute: Commute = "auto"
    exact_nodes: int = 8000
    self_term: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self.commute, ("auto", "exact", "local", "none"), "commute")
        if self.exact_nodes < 0:
            raise BadInput(f"exact_nodes: found {self.exact_nodes}; use 0 or more")


def commute_weights(graph: Graph, direction: Direction, commute: Commute, exact_nodes: int) -> Tensor:
    """(1, m): softmax over a node's messages of -c_ij / mean(c), which is exp(-c) with rows scaled to sum one.

    Raw commute times are at least of the order of n, where exp(-c) underflows; dividing by their mean over the edges keeps
    the order and makes the weights comparable between graphs. The published code leaves the scale open.
    """
    key = f"cgnn/{direction}/{commute}/{exact_nodes}"
    if key not in graph.derived:
        messages = graph.messages(direction)
        times = torch.zeros(graph.num_edges)
        if commute != "none":
            times = edge_commute_times(graph, commute == "exact" or (commute == "auto" and graph.num_nodes <= exact_nodes))
        closeness = -times[messages.edge] / times.mean().clamp(min=1e-12) if times.numel() else times
        graph.derived[key] = softmax(closeness, messages.target, num_nodes=graph.num_nodes).unsqueeze(0)
    return graph.derived[key]


class CommuteGNN(TwoWayNetwork):
    """h_i' = relu(sum_{j in out(i)} c~_ij W_1 h_j + sum_{j in in(i)} c~_ij W_2 h_j + b), plus W_0 h_i with `self_term` (Zhuo
    et al. 2025).

    c~ are the row-normalised commute weights of :func:`commute_weights`. Rows of h are scaled to norm 1 and the layers joined
    by their maximum, as in the authors' configuration for Chameleon.

    Shapes: X (n, d), h (n, hidden), logits (n, C).
    """

    settings: CGNNSettings

    def __init__(self, shape: Shape, settings: CGNNSettings, seed: int) -> None:
        super().__init__(shape, settings, seed, self_term=settings.self_term, jump="max")

    def mix(self, graph: Graph, values: Tensor) -> Tensor:
        c = self.settings
        out, into, *own = values.chunk(3 if c.self_term else 2, dim=1)
        weigh = lambda way: commute_weights(graph, way, c.commute, c.exact_nodes)  # noqa: E731
        around = gather_sum(graph.messages("out"), weigh("out"), out.unsqueeze(0))[0]
        around = around + gather_sum(graph.messages("in"), weigh("in"), into.unsqueeze(0))[0]
        return around + own[0] if own else around


SYSTEMS = (
    System(
        "cgnn", "CGNN", "heterophily", "Zhuo, Yu, Tan and Li, ICML 2025 (Commute GNN)",
        "Neighbours weighed by the commute time of a random walk on the directed graph.",
        CommuteGNN, CGNNSettings(), {"learning_rate": 0.005, "weight_decay": 0.0, "epochs": 600, "patience": 200},
        {"layers": (2, 3, 5), "hidden": (64, 128), "normalise": (True, False), "self_term": (True, False),
         "dropout": (0.0, 0.5), "learning_rate": (0.01, 0.005, 0.001), "weight_decay": (0.0, 5e-4)},
        {"learns_from_features_among_random_edges": "the default has no self term (chosen on validation): a "
                                                    "node hears its neighbours only"},
    ),
)  # fmt: skip
