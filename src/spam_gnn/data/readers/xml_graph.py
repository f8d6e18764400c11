"""GraphML and GEXF, through networkx, as a node table and an edge table.

The file is walked once before networkx sees it (`xml_walk.py`), and what networkx found must agree with the walk.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import networkx as nx

from spam_gnn.data.readers.content import whole
from spam_gnn.data.readers.frame import FrameTable
from spam_gnn.data.readers.table import defect
from spam_gnn.data.readers.xml_walk import XmlWalk
from spam_gnn.errors import BadInput


def open_xml(path: Path, form: str, leave_out: Sequence[str] = ()) -> tuple[FrameTable, FrameTable, bool]:
    """Node table (id and one column per attribute), edge table (source, target, attributes), and whether it is directed."""
    file, data = str(path), whole(path)
    if not data.strip():
        raise defect(file, f"the file is empty; write it with networkx.write_{form}")
    walk = XmlWalk(file)
    walk.run(data)
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


def _check_names(file: str, graph: nx.Graph, walk: XmlWalk) -> None:
    """networkx must have seen the very nodes and pairs that the walk saw."""
    ends = {(s, t) for s, t, _ in walk.edges}
    seen = {(str(a), str(b)) for a, b in graph.edges()}
    both = seen if graph.is_directed() else seen | {(b, a) for a, b in seen}
    if set(map(str, graph.nodes)) != set(walk.nodes) or not ends <= both:
        raise defect(file, "found nodes or edges outside of the <graph> element's own lists; write the file again")


def _columns(file: str, graph: nx.Graph, walk: XmlWalk, leave_out: Sequence[str]) -> dict[str, list[Any]]:
    defaults = graph.graph.get("node_default", {})  # networkx reads them and leaves the nodes as they are
    given = (key for _, attributes in graph.nodes(data=True) for key in attributes)
    names = [name for name in dict.fromkeys([*given, *defaults]) if name not in leave_out]
    taken = [str(name) for name in names]
    repeated = next((name for name in taken if taken.count(name) > 1), None)
    if repeated is not None:
        raise defect(file, "found two attributes of this name; rename one", column=repeated)
    columns: dict[str, list[Any]] = {"id": list(walk.nodes)}
    for name in names:
        cells = [graph.nodes[node].get(name, defaults.get(name)) for node in walk.nodes]
        odd = next((i for i, cell in enumerate(cells) if not isinstance(cell, str | int | float | None)), None)
        if odd is not None:
            found = f"found a {type(cells[odd]).__name__}"
            raise defect(file, f"{found}; give one value per node and attribute", list(walk.nodes.values())[odd], str(name))
        columns["id attribute" if str(name) == "id" else str(name)] = cells
    return columns
