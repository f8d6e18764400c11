"""GraphML and GEXF, through networkx, as a node table and an edge table.

The file is walked once before networkx sees it: a document type (which could name entities that grow without bound or
stand for other files) is refused, and what networkx mends without a word is found: a node that is there twice, an edge to a
node that is not.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.parsers import expat

import networkx as nx

from spam_gnn.data.readers.content import whole
from spam_gnn.data.readers.frame import FrameTable
from spam_gnn.data.readers.table import defect, shown
from spam_gnn.errors import BadInput


class _Walk:
    """What stands where: nodes and edges with their lines."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.nodes: dict[str, int] = {}
        self.edges: list[tuple[str, str, int]] = []
        self.graphs = 0
        self._parser = expat.ParserCreate(namespace_separator=" ")
        self._parser.StartElementHandler = self._start
        self._parser.StartDoctypeDeclHandler = self._doctype

    def run(self, data: bytes) -> None:
        try:
            self._parser.Parse(data, True)
        except expat.ExpatError as error:
            reason = expat.ErrorString(error.code)
            raise defect(self.file, f"this is no well-formed XML ({reason}); write the file again", error.lineno) from None
        except BadInput:
            raise
        except (ValueError, LookupError) as error:  # an encoding that Python does not know
            raise defect(self.file, f"this cannot be read as XML ({error}); save it as UTF-8") from None

    def _doctype(self, *_: Any) -> None:
        advice = "delete that line: entities could read other files or fill the memory, and no graph needs them"
        raise defect(self.file, f"found a <!DOCTYPE declaration; {advice}", self._parser.CurrentLineNumber)

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        name, line = tag.rpartition(" ")[2], self._parser.CurrentLineNumber
        if name == "graph":
            self.graphs += 1
        elif name == "node":
            node = attributes.get("id", "")
            if not node.strip():
                raise defect(self.file, "found a node without an id; give every node an id", line)
            if node in self.nodes:
                found = f"found node {shown(node)} again, it is on line {self.nodes[node]} already"
                raise defect(self.file, f"{found}; keep one of them", line)
            self.nodes[node] = line
        elif name == "edge":
            ends = attributes.get("source", ""), attributes.get("target", "")
            for end, which in zip(ends, ("source", "target"), strict=True):
                if not end:
                    raise defect(self.file, f"found an edge without a {which}; give the ids of two nodes", line)
            self.edges.append((*ends, line))
        elif name == "attvalue" and "value" not in attributes:  # networkx would take it for the text "None"
            raise defect(self.file, "found an <attvalue> without a value; give it one, or delete it", line)

    def check(self) -> None:
        if self.graphs != 1:
            found = f"found {self.graphs or 'no'} <graph> element{'s' * (self.graphs != 1)}"
            raise defect(self.file, f"{found}; give a file with one graph, and no graph inside a node")
        for source, target, line in self.edges:
            for end, which in ((source, "source"), (target, "target")):
                if end not in self.nodes:
                    found = f"found an edge whose {which} {shown(end)} is no node of the file"
                    raise defect(self.file, f"{found}; add the node or delete the edge", line)
        if not self.nodes:
            raise defect(self.file, "found no nodes; give at least a few labelled ones")


def open_xml(path: Path, form: str, leave_out: Sequence[str] = ()) -> tuple[FrameTable, FrameTable, bool]:
    """Node table (id and one column per attribute), edge table (source, target, attributes), and whether it is directed."""
    file, data = str(path), whole(path)
    if not data.strip():
        raise defect(file, f"the file is empty; write it with networkx.write_{form}")
    walk = _Walk(file)
    walk.run(data)
    walk.check()
    graph = _by_networkx(file, data, form)
    _check_names(file, graph, walk)
    columns = _columns(file, graph, walk, leave_out)
    edges = {"source": [s for s, _, _ in walk.edges], "target": [t for _, t, _ in walk.edges]}
    if any("weight" in attributes for *_, attributes in graph.edges(data=True)):
        edges["weight"] = [""] * len(walk.edges)  # never read: weights are accepted and not used
    lines = [line for *_, line in walk.edges]
    return FrameTable(file, columns, list(walk.nodes.values())), FrameTable(file, edges, lines), graph.is_directed()


def _by_networkx(file: str, data: bytes, form: str) -> nx.Graph:
    read = nx.read_graphml if form == "graphml" else nx.read_gexf
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of attributes without a type and the like, which are then read as text
            return read(io.BytesIO(data), node_type=str)
    except BadInput:
        raise
    except Exception as error:  # networkx raises KeyError, ValueError, AttributeError ... on what it does not expect
        reason = " ".join(str(error).split())[:120] or type(error).__name__
        advice = f"write it again with networkx.write_{form}"
        raise defect(file, f"networkx cannot read this as {form} ({reason}); {advice}") from None


def _check_names(file: str, graph: nx.Graph, walk: _Walk) -> None:
    """networkx must have seen the very nodes and pairs that the walk saw."""
    ends = {(s, t) for s, t, _ in walk.edges}
    seen = {(str(a), str(b)) for a, b in graph.edges()}
    both = seen if graph.is_directed() else seen | {(b, a) for a, b in seen}
    if set(map(str, graph.nodes)) != set(walk.nodes) or not ends <= both:
        raise defect(file, "found nodes or edges outside of the <graph> element's own lists; write the file again")


def _columns(file: str, graph: nx.Graph, walk: _Walk, leave_out: Sequence[str]) -> dict[str, list[Any]]:
    names = dict.fromkeys(key for _, attributes in graph.nodes(data=True) for key in attributes if key not in leave_out)
    taken = [str(name) for name in names]
    repeated = next((name for name in taken if taken.count(name) > 1), None)
    if repeated is not None:
        raise defect(file, "found two attributes of this name; rename one", column=repeated)
    columns: dict[str, list[Any]] = {"id": list(walk.nodes)}
    for name in names:
        cells = [graph.nodes[node].get(name) for node in walk.nodes]
        odd = next((i for i, cell in enumerate(cells) if not isinstance(cell, str | int | float | None)), None)
        if odd is not None:
            found = f"found a {type(cells[odd]).__name__}"
            raise defect(file, f"{found}; give one value per node and attribute", list(walk.nodes.values())[odd], str(name))
        columns["id attribute" if str(name) == "id" else str(name)] = cells
    return columns
