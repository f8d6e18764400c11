"""`XmlWalk`: GraphML or GEXF walked once, element by element, for what networkx reads without a word although it is wrong.

A document type (which could name entities that grow without bound or stand for other files), a node that is there twice, an
edge to a node that is not, two values of one attribute, a direction that is no direction, and numbers in a spelling that Python
alone understands (1_0) are refused, each with its line.
"""

from __future__ import annotations

import re
from typing import Any
from xml.parsers import expat

from spam_gnn.data.readers.table import defect, shown
from spam_gnn.errors import BadInput

_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|inf(inity)?)|nan", re.ASCII | re.IGNORECASE)
_NUMERIC = frozenset(["int", "integer", "long", "float", "double", "short", "byte"])
_DIRECTIONS = {
    "edgedefault": ("directed", "undirected"), "defaultedgetype": ("directed", "undirected", "mutual"),
    "directed": ("true", "false"), "type": ("directed", "undirected", "mutual"),
}  # fmt: skip


class XmlWalk:
    """What stands where: nodes and edges with their lines."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.nodes: dict[str, int] = {}
        self.edges: list[tuple[str, str, int]] = []
        self._graphs = 0
        self._declared: dict[tuple[str, str], tuple[str, str]] = {}  # (class, id) to (name, type)
        self._class = ""  # of the GEXF attributes being declared
        self._owners: list[dict[str, int] | None] = []  # per open node or edge: attribute name to line; None for an edge
        self._kind: str | None = None  # the type of the value whose text is being read, None outside
        self._text: list[str] = []
        self._parser = expat.ParserCreate(namespace_separator=" ")
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.StartDoctypeDeclHandler = self._doctype

    def run(self, data: bytes) -> None:
        """Walk the document and check what can only be checked at its end."""
        try:
            self._parser.Parse(data, True)
        except expat.ExpatError as error:
            reason = expat.ErrorString(error.code)
            raise defect(self.file, f"this is no well-formed XML ({reason}); write the file again", error.lineno) from None
        except BadInput:
            raise
        except (ValueError, LookupError) as error:  # an encoding that Python does not know
            raise defect(self.file, f"this cannot be read as XML ({error}); save it as UTF-8") from None
        self._check()

    def _defect(self, found: str, column: str | None = None) -> BadInput:
        return defect(self.file, found, self._parser.CurrentLineNumber, column)

    def _doctype(self, *_: Any) -> None:
        advice = "delete that line: entities could read other files or fill the memory, and no graph needs them"
        raise self._defect(f"found a <!DOCTYPE declaration; {advice}")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition(" ")[2]
        if name == "graph":
            self._graphs += 1
            self._check_direction(attributes, ("edgedefault", "defaultedgetype"))
        elif name == "node":
            self._node(attributes)
        elif name == "edge":
            self._edge(attributes)
        elif name == "attributes":
            self._class = attributes.get("class", "")
        elif name == "key":
            self._declare("", attributes.get("id", ""), attributes.get("attr.name", ""), attributes.get("attr.type", "string"))
        elif name == "attribute":
            self._declare(self._class, attributes.get("id", ""), attributes.get("title", ""), attributes.get("type", ""))
        elif name == "default":
            self._text = []
        elif name == "data":
            self._kind, self._text = self._value("", attributes.get("key", "")), []
        elif name == "attvalue":
            self._attvalue(attributes)

    def _node(self, attributes: dict[str, str]) -> None:
        node = attributes.get("id", "")
        if not node.strip():
            raise self._defect("found a node without an id; give every node an id")
        if node in self.nodes:
            found = f"found node {shown(node)} again, it is on line {self.nodes[node]} already"
            raise self._defect(f"{found}; keep one of them")
        self.nodes[node] = self._parser.CurrentLineNumber
        self._owners.append({})

    def _edge(self, attributes: dict[str, str]) -> None:
        self._check_direction(attributes, ("directed", "type"))
        source, target = attributes.get("source", ""), attributes.get("target", "")
        for end, which in ((source, "source"), (target, "target")):
            if not end:
                raise self._defect(f"found an edge without a {which}; give the ids of two nodes")
        line = self._parser.CurrentLineNumber
        self.edges.append((source, target, line))
        if attributes.get("type") == "mutual":
            self.edges.append((target, source, line))
        self._owners.append(None)

    def _check_direction(self, attributes: dict[str, str], names: tuple[str, ...]) -> None:
        for name in names:
            if name in attributes and attributes[name] not in _DIRECTIONS[name]:
                found = f"found {name} {shown(attributes[name])}"
                raise self._defect(f"{found}; write {' or '.join(_DIRECTIONS[name])}")

    def _declare(self, owner: str, key: str, name: str, kind: str) -> None:
        if self.nodes:
            raise self._defect("found an attribute declared after the first node; declare all of them first", name)
        if (owner, key) in self._declared:
            raise self._defect(f"found attribute {shown(key)} declared again; keep one declaration", name)
        self._declared[owner, key] = (name, kind)
        self._kind = kind  # of the <default> that may follow

    def _value(self, owner: str, key: str) -> str | None:
        """The type of a value that begins here; a node's second value of one name is an error."""
        if not self._owners:  # an attribute of the graph itself
            return None
        name, kind = self._declared.get((owner, key), (key, ""))
        seen = self._owners[-1]
        if seen is not None:
            if name in seen:
                raise self._defect(f"found a second value of this attribute, the first is on line {seen[name]}; keep one", name)
            seen[name] = self._parser.CurrentLineNumber
        return kind

    def _attvalue(self, attributes: dict[str, str]) -> None:
        if "value" not in attributes:  # networkx would take it for the text "None"
            raise self._defect("found an <attvalue> without a value; give it one, or delete it")
        owner = "edge" if self._owners and self._owners[-1] is None else "node"
        self._check_number(self._value(owner, attributes.get("for", "")), attributes["value"])

    def _end(self, tag: str) -> None:
        name = tag.rpartition(" ")[2]
        if name in ("node", "edge") and self._owners:
            self._owners.pop()
        elif name in ("data", "default"):
            self._check_number(self._kind, "".join(self._text))
            self._kind = None

    def _characters(self, text: str) -> None:
        if self._kind is not None:
            self._text.append(text)

    def _check_number(self, kind: str | None, text: str) -> None:
        if kind in _NUMERIC and text.strip() and _NUMBER.fullmatch(text.strip()) is None:
            raise self._defect(f"found {shown(text.strip())} for an attribute of type {kind}; write a number, as 1234.5")

    def _check(self) -> None:
        if self._graphs != 1:
            found = f"found {self._graphs or 'no'} <graph> element{'s' * (self._graphs != 1)}"
            raise defect(self.file, f"{found}; give a file with one graph, and no graph inside a node")
        for source, target, line in self.edges:
            for end, which in ((source, "source"), (target, "target")):
                if end not in self.nodes:
                    found = f"found an edge whose {which} {shown(end)} is no node of the file"
                    raise defect(self.file, f"{found}; add the node or delete the edge", line)
        if not self.nodes:
            raise defect(self.file, "found no nodes; give at least a few labelled ones")
