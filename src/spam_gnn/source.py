"""`DataSource`: where a run's graph comes from, as a value that can be written to `config.json` and opened again."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from spam_gnn.data import catalog
from spam_gnn.data.protocols import parse_protocol
from spam_gnn.data.splits import random_split
from spam_gnn.data.tables import TableColumns, read_tables
from spam_gnn.errors import BadInput
from spam_gnn.graph import Graph


@dataclass(frozen=True)
class DataSource:
    """Either a dataset by name, or two tables with the columns to read; and a split protocol, if not the data's own."""

    dataset: str | None = None
    nodes: str | None = None
    edges: str | None = None
    columns: TableColumns = field(default_factory=TableColumns)
    directed: bool = False
    protocol: str | None = None

    def __post_init__(self) -> None:
        if self.dataset is None and (self.nodes is None or self.edges is None):
            missing = "--nodes and --edges" if self.nodes is None and self.edges is None else (
                "--nodes" if self.nodes is None else "--edges")  # fmt: skip
            raise BadInput(f"data: found no {missing}; name a dataset, or give both --nodes FILE and --edges FILE")
        if self.dataset is not None and (self.nodes is not None or self.edges is not None):
            raise BadInput(f"data: found dataset '{self.dataset}' and --nodes/--edges together; give one or the other")

    def split_count(self) -> int:
        """How many fixed splits there are; 0 where a split is drawn by seed."""
        if self.dataset is None:
            return 0 if self.protocol is None else parse_protocol(self.protocol).count
        return catalog.split_count(self.dataset, self.protocol)

    def split_protocol(self) -> str | None:
        """The protocol by name; None where the split is the table's own or drawn with the graph."""
        return self.protocol or (None if self.dataset is None else catalog.default_protocol(self.dataset))

    def load(self, split: int, seed: int) -> Graph:
        """The graph under one split. Tables without a split column get a stratified 48/32/20 one, drawn by seed + split."""
        if self.dataset is not None:
            return catalog.load(self.dataset, split, seed, self.protocol)
        graph = read_tables(Path(self.nodes or ""), Path(self.edges or ""), self.columns, directed=self.directed)
        if self.protocol is not None:
            return parse_protocol(self.protocol).draw(graph, split)
        return graph if bool(graph.train_mask.any()) else random_split(graph, seed + split)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(value: dict[str, Any]) -> DataSource:
        return DataSource(**{**value, "columns": TableColumns(**value["columns"])})
