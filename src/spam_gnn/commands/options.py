"""The options that name a graph, the same for every command that takes one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from spam_gnn.data.facts import is_converted
from spam_gnn.data.tables import TableColumns, TableFormats
from spam_gnn.errors import BadInput
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
        self._refuse_idle()
        graph, nodes, edges = (None if path is None else str(path) for path in (self.graph, self.nodes, self.edges))
        columns = TableColumns(self.id, self.label, self.source, self.target, self.split_column, self.text, self.weight)
        formats = TableFormats(self.format, self.edge_format, header=not self.no_header)
        return DataSource(self.dataset, nodes, edges, columns, self.directed, graph, formats, protocol)

    def _refuse_idle(self) -> None:
        """An option that says how files are read means nothing where the graph is known as it is."""
        known = f"the dataset '{self.dataset}'" if self.dataset is not None else (
            f"the converted folder {self.graph}" if self.graph is not None and is_converted(self.graph) else None)  # fmt: skip
        usual = GraphOptions()
        for field in fields(self):
            value = getattr(self, field.name)
            if known and field.name not in ("dataset", "graph", "nodes", "edges") and value != getattr(usual, field.name):
                raise BadInput(f"--{field.name.replace('_', '-')}: found with {known}, which is read as it is; leave it out")
