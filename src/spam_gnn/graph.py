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
from spam_gnn.part import Part
from spam_gnn.structure import Messages, adjacency, edge_index_of, with_mirrored

Direction = Literal["in", "out"]
_EDGE_CACHES = ("pairs", "reverse", "edge_log_degree", "_messages")


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
        x = _checked_features(x)
        edges, sign, is_directed, notes = _checked_edges(edge_index, edge_sign, n, directed)
        labels, classes = _checked_labels(y, n, num_classes)
        masks = [_checked_mask(m, labels, name) for m, name in
                 ((train_mask, "train_mask"), (val_mask, "val_mask"), (test_mask, "test_mask"))]
        for a, b, what in ((0, 1, "train and validation"), (0, 2, "train and test"), (1, 2, "validation and test")):
            shared = int((masks[a] & masks[b]).sum())
            if shared:
                raise BadInput(f"masks: {shared} nodes are in both {what}; each node may serve only one purpose")
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
        """The same graph under another split; the cached structure is built anew only when it is asked for."""
        checked = [_checked_mask(m, self.y, "mask") for m in (train, val, test)]
        return replace(self, train_mask=checked[0], val_mask=checked[1], test_mask=checked[2])

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
        if not self.directed:
            return self
        return Graph.build(
            self.x, self.edge_index, self.y, train_mask=self.train_mask, val_mask=self.val_mask,
            test_mask=self.test_mask, directed=False, num_classes=self.num_classes, edge_sign=self.edge_sign,
            identity=self.identity, class_names=self.class_names, node_names=self.node_names, name=self.name,
        )  # fmt: skip


def _checked_features(x: Tensor) -> Tensor:
    if x.ndim != 2:
        raise BadInput(f"x: found a tensor of shape {tuple(x.shape)}; give one row of features per node, shape (n, d)")
    x = x.to(torch.float32)
    if x.layout == torch.sparse_coo:
        x = x.coalesce().to_sparse_csr()
    values = x.values() if x.layout == torch.sparse_csr else x
    bad = ~torch.isfinite(values)
    if bool(bad.any()):
        where = "a stored value" if x.layout == torch.sparse_csr else f"row {int(bad.any(1).nonzero()[0])}"
        raise BadInput(f"x: {where} is NaN or infinite ({int(bad.sum())} such values); impute or drop them first")
    return x


def _checked_edges(
    edge_index: Tensor, sign: Tensor | None, n: int, directed: bool | None
) -> tuple[Tensor, Tensor | None, bool, list[str]]:
    if edge_index.ndim != 2 or edge_index.shape[0] != 2:
        raise BadInput(f"edge_index: found shape {tuple(edge_index.shape)}; give (2, number of edges)")
    if edge_index.is_floating_point():
        raise BadInput(f"edge_index: found {edge_index.dtype}; give whole numbers (torch.long)")
    edges = edge_index.to(torch.int64)
    if edges.numel() and (int(edges.min()) < 0 or int(edges.max()) >= n):
        raise BadInput(f"edge_index: found node {int(edges.max())} or below 0 in a graph of {n} nodes; use 0 to {n - 1}")
    if sign is not None and sign.shape != (edges.shape[1],):
        raise BadInput(f"edge_sign: found shape {tuple(sign.shape)} for {edges.shape[1]} edges; give one sign per edge")
    notes: list[str] = []
    loops = edges[0] == edges[1]
    if bool(loops.any()):
        notes.append(f"{int(loops.sum())} self-loops dropped (the layer has its own self term)")
        edges, sign = edges[:, ~loops], None if sign is None else sign[~loops]
    listed = adjacency(edges, n)
    repeats = edges.shape[1] - listed.nnz
    if repeats:
        notes.append(f"{repeats} duplicate edges merged")
    both = listed if directed else with_mirrored(listed)
    if directed is None:
        directed = both.nnz != listed.nnz
    chosen = edge_index_of(listed if directed else both)
    return chosen, None if sign is None else _carried_sign(edges, sign, chosen, n), directed, notes


def _carried_sign(edges: Tensor, sign: Tensor, chosen: Tensor, n: int) -> Tensor:
    """(m,) int8: the sign of the first listed edge of each stored one; a mirrored edge has the sign of its twin."""
    keys = torch.cat([edges[1] * n + edges[0], edges[0] * n + edges[1]])
    order = torch.argsort(keys, stable=True)
    place = torch.searchsorted(keys[order], chosen[1] * n + chosen[0])
    return torch.cat([sign, sign])[order[place]].to(torch.int8)


def _checked_labels(y: Tensor | None, n: int, num_classes: int | None) -> tuple[Tensor, int]:
    labels = torch.full((n,), -1) if y is None else y.reshape(-1)
    if labels.shape[0] != n:
        raise BadInput(f"y: found {labels.shape[0]} labels for {n} nodes; give one each, -1 where unknown")
    if labels.is_floating_point() and not bool((labels == labels.round()).all()):
        raise BadInput("y: found fractional labels; give whole numbers 0 .. C-1, -1 where unknown")
    labels = labels.to(torch.int64)
    if n and int(labels.min()) < -1:
        raise BadInput(f"y: found label {int(labels.min())}; use 0 .. C-1, and -1 where unknown")
    seen = int(labels.max()) + 1 if n else 0
    if num_classes is not None and seen > num_classes:
        raise BadInput(f"y: found label {seen - 1} but num_classes={num_classes}; raise num_classes or mend the labels")
    return labels, num_classes or seen


def _checked_mask(mask: Tensor | None, labels: Tensor, name: str) -> Tensor:
    if mask is None:
        return torch.zeros_like(labels, dtype=torch.bool)
    if mask.shape != labels.shape:
        raise BadInput(f"{name}: found shape {tuple(mask.shape)} for {labels.shape[0]} nodes; give (n,), one split at a time")
    mask = mask.to(torch.bool)
    unknown = int((mask & (labels < 0)).sum())
    if unknown:
        raise BadInput(f"{name}: selects {unknown} nodes without a label; leave unlabelled nodes out of every mask")
    return mask
