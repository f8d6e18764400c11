"""`Reading`: a graph as it came out of a file, with what was understood of each column; `ColumnPlan`: the same again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from spam_gnn.graph import Graph

ColumnKind = Literal["id", "label", "split", "number", "one-hot", "words", "degree"]


@dataclass(frozen=True)
class ColumnFact:
    """How one column of a node table was taken.

    Args:
        name: as in the file.
        kind: its role, or how it became features.
        width: how many feature columns it became; 0 for an id, a label or a split.
        values: the categories or words behind those feature columns, in their order.
    """

    name: str
    kind: ColumnKind
    width: int = 0
    values: tuple[str, ...] = ()


@dataclass(frozen=True)
class ColumnPlan:
    """What a trained model expects of another file: feature columns by name with their categories and words, and classes."""

    columns: tuple[ColumnFact, ...]
    classes: tuple[str, ...]

    @property
    def features(self) -> dict[str, ColumnFact]:
        return {column.name: column for column in self.columns if column.kind in ("number", "one-hot", "words")}


@dataclass(frozen=True, eq=False)
class Reading:
    """The graph, and the columns it was made of; the widths of the columns add up to the graph's features."""

    graph: Graph
    columns: tuple[ColumnFact, ...]
