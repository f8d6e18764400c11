"""The options that name a graph, the same for every command that takes one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from spam_gnn.data.tables import TableColumns, TableFormats
from spam_gnn.source import DataSource


@dataclass(frozen=True)
class GraphOptions:
    """As typed: a dataset by name, `--graph`, or `--nodes` and `--edges` with what their columns mean."""

    dataset: str | None = None
    graph: Path | None = None
    nodes: Path | None = None
    edges: Path | None = None
    format: str | None = None
    edge_format: str | None = None
    no_header: bool = False
    id: str | None = None
    label: str | None = None
    split_column: str | None = None
    text: tuple[str, ...] = ()
    source: str | None = None
    target: str | None = None
    weight: str | None = None
    directed: bool = False

    @staticmethod
    def of(given: Mapping[str, Any]) -> GraphOptions:
        """Those among the arguments of a command, by their names."""
        own = {field.name: given[field.name] for field in fields(GraphOptions)}
        return GraphOptions(**{**own, "text": tuple(own["text"] or ())})

    @property
    def named(self) -> bool:
        """Whether any graph is named at all."""
        return any(value is not None for value in (self.dataset, self.graph, self.nodes, self.edges))

    def data_source(self, protocol: str | None = None) -> DataSource:
        """Checked, but nothing read yet."""
        graph, nodes, edges = (None if path is None else str(path) for path in (self.graph, self.nodes, self.edges))
        columns = TableColumns(self.id, self.label, self.source, self.target, self.split_column, self.text, self.weight)
        formats = TableFormats(self.format, self.edge_format, header=not self.no_header)
        return DataSource(self.dataset, nodes, edges, columns, self.directed, graph, formats, protocol)
