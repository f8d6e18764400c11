"""`DataSource`: where a run's graph comes from, as a value that can be written to `config.json` and opened again."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from spam_gnn.data import catalog
from spam_gnn.data.graph_files import read_graph_file
from spam_gnn.data.protocols import parse_protocol
from spam_gnn.data.readers.formats import is_matrix
from spam_gnn.data.reading import ColumnPlan, Reading
from spam_gnn.data.splits import random_split
from spam_gnn.data.tables import TableColumns, TableFormats, read_pair
from spam_gnn.errors import BadInput
from spam_gnn.graph import Graph


@dataclass(frozen=True)
class DataSource:
    """A dataset by name, a graph in one file or folder, or two files of nodes and edges with the columns to read; and a split
    protocol, if not the data's own."""

    dataset: str | None = None
    nodes: str | None = None
    edges: str | None = None
    columns: TableColumns = field(default_factory=TableColumns)
    directed: bool = False
    graph: str | None = None
    formats: TableFormats = field(default_factory=TableFormats)
    protocol: str | None = None

    def __post_init__(self) -> None:
        if self.graph is not None:
            self._check_graph(self.graph)
        elif self.dataset is None and (self.nodes is None or self.edges is None):
            missing = "--nodes and --edges" if self.nodes is None and self.edges is None else (
                "--nodes" if self.nodes is None else "--edges")  # fmt: skip
            advice = "name a dataset, or give --graph FILE, or both --nodes FILE and --edges FILE"
            raise BadInput(f"data: found no {missing}; {advice}")
        if self.dataset is not None and (self.nodes is not None or self.edges is not None):
            raise BadInput(f"data: found dataset '{self.dataset}' and --nodes/--edges together; give one or the other")

    def _check_graph(self, graph: str) -> None:
        if self.dataset is not None or self.edges is not None:
            other = f"dataset '{self.dataset}'" if self.dataset is not None else "--edges"
            raise BadInput(f"data: found --graph and {other} together; give one or the other")
        matrix = is_matrix(Path(graph), self.formats.edges)
        if matrix != (self.nodes is not None):
            found, advice = ("a matrix as --graph and no --nodes", "give the table of labels as --nodes") if matrix else (
                "--graph and --nodes together", "give one or the other (--nodes goes with a MatrixMarket matrix)")  # fmt: skip
            raise BadInput(f"data: found {found}; {advice}")

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
        return self.open(split, seed).graph

    def open(self, split: int, seed: int, plan: ColumnPlan | None = None) -> Reading:
        """As `load`, with what was understood of the columns of the user's files; of a dataset by name there are none.

        With the `plan` of a trained model, files line up with its columns, and need no labels.
        """
        if self.dataset is not None:
            return Reading(catalog.load(self.dataset, split, seed, self.protocol), ())
        reading = self.read(plan)
        graph = reading.graph
        if self.protocol is not None:
            graph = parse_protocol(self.protocol).draw(graph, split)
        elif not bool(graph.train_mask.any()) and (plan is None or bool((graph.y >= 0).any())):
            graph = random_split(graph, seed + split)
        return Reading(graph, reading.columns)

    def read(self, plan: ColumnPlan | None = None) -> Reading:
        """The user's files as they are, before any split is drawn."""
        if self.nodes is not None:
            edges = Path(self.graph or self.edges or "")
            return read_pair(Path(self.nodes), edges, self.columns, self.formats, directed=self.directed, plan=plan)
        return read_graph_file(
            Path(self.graph or ""), self.formats.nodes, self.columns, directed=self.directed, plan=plan
        )

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(value: dict[str, Any]) -> DataSource:
        columns = TableColumns(**{**value["columns"], "text": tuple(value["columns"].get("text", ()))})
        return DataSource(**{**value, "columns": columns, "formats": TableFormats(**value.get("formats", {}))})
