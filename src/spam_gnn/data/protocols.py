"""Split protocols by name: fixed ones that come with a benchmark's files, and drawn ones that any graph can have.

| name | what it means |
|---|---|
| `geom-gcn` | ten fixed splits, 48/32/20 percent (Pei et al. 2020) |
| `platonov` | ten fixed splits, 50/25/25 percent (Platonov et al. 2023) |
| `public` | Planetoid's one split, 20 training nodes per class |
| `linkx` | five fixed splits, 50/25/25 percent of the labelled nodes (Lim et al. 2021) |
| `pro-gnn` | one fixed split, 10/10/80 percent, of the attacked graphs (Jin et al. 2020) |
| `random:A/B/C` | shares of each class, drawn by the split's number |
| `per-class:K` or `per-class:K/V` | K training and V (otherwise K) validation labels per class, all others test |
| `authors` | 10/45/45 percent of all nodes, ten splits, as in the published code of the paper's authors |

The number of a split alone decides a drawn split, whatever the seed of the model: two models meet on the same nodes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from spam_gnn.data.splits import few_labels, permuted_split, random_split
from spam_gnn.errors import BadInput, one_of
from spam_gnn.graph import Graph

FIXED = ("geom-gcn", "platonov", "public", "linkx", "pro-gnn")
_FORMS = "geom-gcn, platonov, public, linkx, pro-gnn, authors, random:0.5/0.25/0.25 or per-class:20"


@dataclass(frozen=True)
class Protocol:
    """A parsed name. `numbers` are the shares of `random`, or the labels per class of `per-class`."""

    name: str
    kind: Literal["fixed", "random", "per-class", "authors"]
    numbers: tuple[float, ...] = ()

    @property
    def count(self) -> int:
        """Splits of a drawn protocol; 0 for any number."""
        return 10 if self.kind == "authors" else 0

    def draw(self, graph: Graph, split: int) -> Graph:
        """The graph under the split of that number."""
        if self.kind == "random":
            return random_split(graph, split, (self.numbers[0], self.numbers[1]))
        if self.kind == "per-class":
            return few_labels(graph, split, int(self.numbers[0]), int(self.numbers[1]))
        if self.kind == "authors":
            return permuted_split(graph, split, (0.1, 0.45))
        raise BadInput(f"protocol: '{graph.name}' comes without {self.name} splits; use random:0.5/0.25/0.25 or per-class:20")


def parse_protocol(text: str) -> Protocol:
    """From what a user types to a `Protocol`."""
    head, colon, tail = text.partition(":")
    if head == "random" and colon:
        shares = _numbers(tail, text)
        if len(shares) != 3 or min(shares) <= 0 or not math.isclose(sum(shares), 1.0, abs_tol=1e-6):
            raise BadInput(f"protocol: found '{text}'; give three shares above 0 that add up to 1, as random:0.5/0.25/0.25")
        return Protocol(text, "random", shares)
    if head == "per-class" and colon:
        labels = _numbers(tail, text)
        if len(labels) not in (1, 2) or any(value < 1 or value != int(value) for value in labels):
            raise BadInput(f"protocol: found '{text}'; give whole numbers of at least 1, as per-class:20 or per-class:20/30")
        return Protocol(text, "per-class", (labels[0], labels[-1]))
    if text == "authors":
        return Protocol(text, "authors")
    if text in FIXED:
        return Protocol(text, "fixed")
    if head in ("random", "per-class"):
        raise BadInput(f"protocol: found '{text}'; say how much, as random:0.5/0.25/0.25 or per-class:20")
    one_of(text, (*FIXED, "authors", "random:0.5/0.25/0.25", "per-class:20"), "protocol")
    raise AssertionError("one_of has raised")


def _numbers(text: str, whole: str) -> tuple[float, ...]:
    try:
        values = tuple(float(part) for part in text.split("/"))
    except ValueError:
        raise BadInput(f"protocol: found '{whole}', where '{text}' is not numbers parted by '/'; use {_FORMS}") from None
    if not all(math.isfinite(value) for value in values):
        raise BadInput(f"protocol: found '{whole}'; give finite numbers; use {_FORMS}")
    return values
