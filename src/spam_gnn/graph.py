"""`Graph`: the one value every part of the package takes. Built and checked once, frozen afterwards.

Rules, the same for every source of graphs:

- self-loops are dropped (the layer has a self term) and duplicate edges merged; both are counted in `notes`;
- an undirected edge is stored in both directions and shares one sign draw; a directed edge is stored once;
- labels are 0 .. C-1, and -1 where unknown; a mask may only select nodes whose label is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from spam_gnn.errors import BadInput
from spam_gnn.features import FeatureMatrix
from spam_gnn.graph_checks import check_disjoint, checked_edges, checked_features, checked_labels, checked_mask
from spam_gnn.part import Part
from spam_gnn.structure import Messages, row_pointer

Direction = Literal["in", "out"]
_EDGE_CACHES = ("pairs", "reverse", "edge_log_degree", "edge_ends", "_messages", "pointer")


class Pairs(NamedTuple):
    """edge (p,): the stored edge that stands for each pair; of_edge (m,): the pair each stored edge belongs to."""

    edge: Tensor
    of_edge: Tensor


@dataclass(frozen=True, eq=False)
class Graph:
    """n nodes with d features, m stored edges, C classes.

    Args:
        x: (n, d) float32 features, dense or `torch.sparse_csr`.
        edge_index: (2, m) int64, row 0 the source, row 1 the target, sorted by (target, source), no loops, no repeats.
        y: (n,) int64 labels, -1 where unknown.
        train_mask, val_mask, test_mask: (n,) bool, disjoint.
        num_classes: C.
        directed: whether an edge means only source -> target.
        edge_sign: (m,) int8 true signs where they are known (planted data), otherwise None.
        identity: (n,) int64, a name for each node that survives relabelling; random draws are keyed by it.
        class_names: C names, as the user wrote them.
        node_names: n names, as the user wrote them, or None for 0 .. n-1.
        name: what outputs call this graph.
        notes: what construction changed, one sentence each.
        part: of which graph this one is a batch, or None.

    Use :meth:`Graph.build` (or `spam_gnn.convert`), which sorts, checks and fills in the rest.
    """

    x: Tensor
    edge_index: Tensor
    y: Tensor
    train_mask: Tensor
    val_mask: Tensor
    test_mask: Tensor
    num_classes: int
    directed: bool
    identity: Tensor
    class_names: tuple[str, ...]
    edge_sign: Tensor | None = None
    node_names: tuple[str, ...] | None = None
    name: str = "graph"
    notes: tuple[str, ...] = field(default=())
    part: Part | None = None

    @staticmethod
    def build(
        x: Tensor,
        edge_index: Tensor,
        y: Tensor | None = None,
        *,
        train_mask: Tensor | None = None,
        val_mask: Tensor | None = None,
        test_mask: Tensor | None = None,
        directed: bool | None = None,
        num_classes: int | None = None,
        edge_sign: Tensor | None = None,
        identity: Tensor | None = None,
        class_names: Sequence[str] | None = None,
        node_names: Sequence[str] | None = None,
        name: str = "graph",
    ) -> Graph:
        """Check, drop self-loops, merge duplicates, mirror undirected edges, sort.

        `directed=None` looks: a list in which every edge is mirrored is undirected, any other is directed.
        """
        n = x.shape[0]
        x = checked_features(x)
        edges, sign, is_directed, notes = checked_edges(edge_index, edge_sign, n, directed)
        labels, classes = checked_labels(y, n, num_classes)
        masks = [checked_mask(m, labels, name) for m, name in
                 ((train_mask, "train_mask"), (val_mask, "val_mask"), (test_mask, "test_mask"))]
        check_disjoint(masks)
        names = tuple(class_names) if class_names is not None else tuple(str(c) for c in range(classes))
        if len(names) != classes:
            raise BadInput(f"class_names: found {len(names)} names for {classes} classes; give one each")
        return Graph(
            x=x, edge_index=edges, y=labels, train_mask=masks[0], val_mask=masks[1], test_mask=masks[2],
            num_classes=classes, directed=is_directed, edge_sign=sign, class_names=names,
            identity=torch.arange(n) if identity is None else identity,
            node_names=None if node_names is None else tuple(node_names), name=name, notes=tuple(notes),
        )  # fmt: skip

    @property
    def num_nodes(self) -> int:
        return self.x.shape[0]

    @property
    def num_features(self) -> int:
        return self.x.shape[1]

    @property
    def num_edges(self) -> int:
        """Stored edges m; an undirected edge counts twice."""
        return self.edge_index.shape[1]

    @property
    def counted(self) -> Tensor:
        """(n,) bool: training nodes that the loss may be taken on; in a batch, the seeds among them."""
        return self.train_mask if self.part is None else self.train_mask & self.part.counted

    @cached_property
    def pointer(self) -> Tensor:
        """(n + 1,): edges pointer[i] .. pointer[i + 1] - 1 arrive at node i."""
        return row_pointer(self.edge_index[1], self.num_nodes)

    @cached_property
    def reverse(self) -> Tensor:
        """(m,): position of the mirrored edge j -> i of each edge i -> j, or -1 where there is none."""
        n = self.num_nodes
        keys = self.edge_index[1] * n + self.edge_index[0]  # ascending by construction
        wanted = self.edge_index[0] * n + self.edge_index[1]
        place = torch.searchsorted(keys, wanted).clamp(max=max(self.num_edges - 1, 0))
        if self.num_edges == 0:
            return place
        return torch.where(keys[place] == wanted, place, torch.full_like(place, -1))

    @cached_property
    def pairs(self) -> Pairs:
        """The undirected pairs {i, j} of an undirected graph; both stored edges of a pair share a number."""
        edge = torch.nonzero(self.edge_index[0] < self.edge_index[1]).reshape(-1)
        if bool((self.reverse < 0).any()):  # compiled loops would read beyond their tables
            source, target = self.edge_index[:, int((self.reverse < 0).nonzero()[0])].tolist()
            raise BadInput(f"edge_index: found {source} -> {target} without its mirror; Graph.build adds it; or set directed")
        number = torch.empty(self.num_edges, dtype=torch.int64)
        number[edge] = number[self.reverse[edge]] = torch.arange(edge.numel())
        return Pairs(edge, number)

    @cached_property
    def features(self) -> FeatureMatrix:
        """The features in the form that is cheapest to multiply."""
        return FeatureMatrix.of(self.x)

    @cached_property
    def feature_cosine(self) -> Tensor:
        """(m,): cosine similarity of the raw features of the two ends, 0 where one has none."""
        norms = self.features.row_norms().clamp(min=1e-12)
        return self.features.row_dots(self.edge_index[1], self.edge_index[0]) / (
            norms[self.edge_index[1]] * norms[self.edge_index[0]]
        )

    @cached_property
    def edge_log_degree(self) -> Tensor:
        """(m,): log of the product of the degrees of the two ends (in plus out, each edge counted once)."""
        ends = self.edge_index.reshape(-1) if self.directed else self.edge_index[0]
        degree = torch.bincount(ends, minlength=self.num_nodes).to(torch.float32).clamp(min=1.0).log()
        return degree[self.edge_index[0]] + degree[self.edge_index[1]]

    @cached_property
    def edge_ends(self) -> Tensor:
        """(n,) int64: how many stored edges begin or end at each node."""
        return torch.bincount(self.edge_index.reshape(-1), minlength=self.num_nodes)

    @cached_property
    def derived(self) -> dict[str, Any]:
        """What models have computed of this very graph (two-hop edges, a spectrum), by name; empty on every fresh copy."""
        return {}

    @cached_property
    def _messages(self) -> dict[Direction, Messages]:
        return {}

    def messages(self, direction: Direction = "in") -> Messages:
        """Messages along the edges (`in`: a node hears its in-neighbours) or against them (`out`)."""
        if direction not in self._messages:
            source, target = self.edge_index if direction == "in" else self.edge_index.flip(0)
            self._messages[direction] = Messages.build(source, target, self.num_nodes)
        return self._messages[direction]

    def with_masks(self, train: Tensor, val: Tensor, test: Tensor) -> Graph:
        """The same graph under another split; what was computed of edges and features is kept."""
        checked = [checked_mask(m, self.y, "mask") for m in (train, val, test)]
        check_disjoint(checked)
        twin = replace(self, train_mask=checked[0], val_mask=checked[1], test_mask=checked[2])
        kept = (*_EDGE_CACHES, "features", "feature_cosine")
        twin.__dict__.update({k: v for k, v in self.__dict__.items() if k in kept})
        if "_mirrored" in self.__dict__:
            twin.__dict__["_mirrored"] = self._mirrored.with_masks(train, val, test)
        return twin

    def with_features(self, features: FeatureMatrix) -> Graph:
        """The same graph whose `features` are another form of the same columns; what was computed of edges is kept."""
        known = {k: v for k, v in self.__dict__.items() if k in _EDGE_CACHES}
        twin = replace(self)
        twin.__dict__.update(known, feature_cosine=self.feature_cosine, features=features)
        return twin

    def relabel(self, order: Tensor) -> Graph:
        """The same graph with node `order[i]` renamed i; identities travel with their nodes, so draws stay the same."""
        position = torch.empty_like(order)
        position[order] = torch.arange(self.num_nodes)
        dense = self.x.to_dense() if self.x.layout != torch.strided else self.x
        x = dense[order]
        return Graph.build(
            x if self.x.layout == torch.strided else x.to_sparse_csr(), position[self.edge_index], self.y[order],
            train_mask=self.train_mask[order], val_mask=self.val_mask[order], test_mask=self.test_mask[order],
            directed=self.directed, num_classes=self.num_classes, edge_sign=self.edge_sign,
            identity=self.identity[order], class_names=self.class_names, name=self.name,
            node_names=None if self.node_names is None else [self.node_names[i] for i in order.tolist()],
        )  # fmt: skip

    def as_undirected(self) -> Graph:
        """Every edge in both directions, sharing one draw; identity for a graph that is undirected already."""
        return self._mirrored if self.directed else self

    @cached_property
    def _mirrored(self) -> Graph:
        return Graph.build(
            self.x, self.edge_index, self.y, train_mask=self.train_mask, val_mask=self.val_mask,
            test_mask=self.test_mask, directed=False, num_classes=self.num_classes, edge_sign=self.edge_sign,
            identity=self.identity, class_names=self.class_names, node_names=self.node_names, name=self.name,
        )  # fmt: skip
