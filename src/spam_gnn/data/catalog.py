"""Graphs by name: embedded ones, benchmarks whose raw files are found or fetched, and surrogates of benchmarks.

`load` is the front door. What is known of each benchmark stands in `data/entries/`, how its files are found in `data/store.py`.
"""

from __future__ import annotations

import difflib
import re
from functools import partial

from spam_gnn.data import parsed, store, synthetic
from spam_gnn.data.entries import SPECS
from spam_gnn.data.entries.attacked import RATES, attacked_spec
from spam_gnn.data.protocols import Protocol, parse_protocol
from spam_gnn.data.spec import DatasetSpec, RawGraph
from spam_gnn.data.store import data_folders
from spam_gnn.data.surrogate import PREFIX, surrogate, surrogate_names
from spam_gnn.errors import BadInput
from spam_gnn.graph import Graph

__all__ = ["EMBEDDED", "data_folders", "default_protocol", "is_present", "load", "load_raw", "names", "spec_of", "split_count"]

EMBEDDED = ("csbm", "digits")
_SURROGATE_SPLITS = "random:0.5/0.25/0.25"
_ATTACKED = re.compile(r"([a-z0-9_]+)-metattack:([0-9.]+)")


def names() -> tuple[str, ...]:
    """Every name `load` understands, surrogates apart; attacked graphs beside Cora's are listed where their files are."""
    found = {folder.name for base in store.data_folders() for folder in (base / "attacked").glob("*") if folder.is_dir()}
    others = (f"{graph}-metattack:{rate}" for graph in sorted(found - {"cora"}) for rate in RATES)
    return (*EMBEDDED, *SPECS, *others)


def spec_of(name: str) -> DatasetSpec | None:
    """A benchmark's spec; of a surrogate, that of the benchmark it mimics; None for an embedded graph.

    Raises:
        BadInput: no dataset has that name.
    """
    plain = name.removeprefix(PREFIX)
    if plain in SPECS:
        return SPECS[plain]
    attacked = _ATTACKED.fullmatch(name)
    if attacked and attacked[2] in RATES:
        return attacked_spec(attacked[1], attacked[2])
    if name in EMBEDDED:
        return None
    near = difflib.get_close_matches(name, (*names(), *surrogate_names()), n=1)
    hint = f"did you mean '{near[0]}'? " if near else ""
    raise BadInput(f"dataset: found '{name}'; {hint}use a name that `spam-gnn datasets` lists")


def split_count(name: str, protocol: str | None = None) -> int:
    """How many splits a dataset has; 0 for any number, drawn by the split's number (embedded graphs: by seed + split)."""
    spec = None if name.startswith(PREFIX) else spec_of(name)
    chosen = None if protocol is None else _protocol(name, protocol)
    if spec is not None and (chosen is None or chosen.name == spec.protocols[0]):
        return spec.splits
    if chosen is None:
        return 0
    return {"geom-gcn": 10, "platonov": 10, "linkx": 5}.get(chosen.name, 1) if chosen.kind == "fixed" else chosen.count


def default_protocol(name: str) -> str | None:
    """The protocol that `load` takes if none is named; None for embedded graphs, which are split as they are drawn."""
    spec = spec_of(name)
    return None if spec is None else _SURROGATE_SPLITS if name.startswith(PREFIX) else spec.protocols[0]


def is_present(name: str, protocol: str | None = None) -> bool:
    """Whether `load(name)` would find its files on this machine."""
    spec = spec_of(name)
    return spec is None or name.startswith(PREFIX) or store.is_present(spec, protocol)


def load(name: str, split: int = 0, seed: int = 0, protocol: str | None = None) -> Graph:
    """A graph by name, under one split.

    Args:
        name: as `spam-gnn datasets` lists it; `surrogate:` before it for a generated stand-in.
        split: which of the protocol's splits.
        seed: of what is generated: embedded graphs (drawn by seed + split) and surrogates. Files do not depend on it.
        protocol: a split protocol (`spam_gnn.data.protocols`); the dataset's own by default.
    """
    spec = spec_of(name)
    chosen = None if protocol is None else _protocol(name, protocol)
    count = split_count(name, protocol)
    if split < 0 or (count and split >= count):
        raise BadInput(f"split: found {split}; '{name}' has " + (f"splits 0 to {count - 1}" if count > 1 else "only split 0"))
    if spec is None:
        graph = getattr(synthetic, name)(seed=seed + split)
        return graph if chosen is None else chosen.draw(graph, split)
    if name.startswith(PREFIX):
        graph = surrogate(spec, seed)
        return (chosen or parse_protocol(_SURROGATE_SPLITS)).draw(graph, split)
    chosen = chosen or parse_protocol(spec.protocols[0])
    raw, build = load_raw(spec, chosen.name)
    if chosen.kind != "fixed":
        return chosen.draw(build(), split)
    if chosen.name not in raw.fixed:
        have = ", ".join([*raw.fixed, "random:0.5/0.25/0.25"])
        raise BadInput(f"{name}: its files hold no {chosen.name} splits; use one of {have}")
    train, val, test = (mask[:, split] for mask in raw.fixed[chosen.name])
    return build(train_mask=train, val_mask=val, test_mask=test)


def load_raw(spec: DatasetSpec, protocol: str | None = None) -> tuple[RawGraph, partial[Graph]]:
    """The verified, parsed files, and what builds the graph of them (masks may be given)."""
    raw = parsed.read(spec, store.ensure(spec, protocol))
    return raw, partial(Graph.build, raw.x, raw.edge_index, raw.y, directed=spec.directed, name=spec.name)


def _protocol(name: str, text: str) -> Protocol:
    """A protocol that the dataset can have: a fixed one must be among its own."""
    protocol = parse_protocol(text)
    spec = None if name.startswith(PREFIX) else spec_of(name)
    own = () if spec is None else spec.protocols
    if protocol.kind == "fixed" and protocol.name not in own:
        have = ", ".join([*own, "random:0.5/0.25/0.25", "per-class:20"])
        raise BadInput(f"protocol: found '{text}', which {name} does not have; use {have}")
    return protocol
