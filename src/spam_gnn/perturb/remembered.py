"""Attacked edges kept on disk: an attack trains a model of its own, and every system is then trained on the same result."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from spam_gnn.files import make_folder, write_json
from spam_gnn.graph import Graph
from spam_gnn.perturb.base import first_places, flipped, pair_keys
from spam_gnn.version import __version__


def remembered(graph: Graph, what: str, cache: Path, attack: Callable[[], Graph]) -> Graph:
    """The attacked graph, from the file that holds its flips if there is one; `what` names the attack, its settings and those
    of the model it attacks.

    The file's name is a digest of everything an attack depends on: the graph, the split, the labels it may read, `what` and
    the version of this package. Two processes that make it at once write the same file.
    """
    path = cache / f"{_digest(graph, what)}.json"
    if not path.exists():
        attacked = attack()
        if attacked is graph:  # a budget of no edge at all
            return graph
        ends = _flips(graph, attacked)
        make_folder(cache)
        write_json(path, {"attack": what, "graph": graph.name, "note": attacked.notes[-1], "flips": ends.tolist()})
    stored = json.loads(path.read_text())
    return flipped(graph, torch.tensor(stored["flips"], dtype=torch.int64).reshape(2, -1), stored["note"])


def _flips(before: Graph, after: Graph) -> Tensor:
    """(2, b): the pairs joined in one graph only; an added edge in the direction it has."""
    a, b = pair_keys(before.edge_index, before.num_nodes), pair_keys(after.edge_index, before.num_nodes)
    ends = torch.cat([before.edge_index[:, ~torch.isin(a, b)], after.edge_index[:, ~torch.isin(b, a)]], 1)
    return ends[:, first_places(pair_keys(ends, before.num_nodes))]


def _digest(graph: Graph, what: str) -> str:
    seen = torch.where(graph.train_mask | graph.val_mask, graph.y, -1)
    digest = hashlib.blake2b(f"{what}/{__version__}".encode(), digest_size=12)
    for part in (graph.features.to_dense(), graph.edge_index, graph.train_mask, graph.val_mask, seen):
        digest.update(part.contiguous().numpy().tobytes())
    return digest.hexdigest()
