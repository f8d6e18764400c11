"""Graphs by name: the embedded ones, and the benchmarks whose raw files are found on this machine.

Raw files are looked up in `$SPAM_GNN_DATA`, then in `shared/datasets` beside the checkout, then in the user's cache folder.
PyG's own dataset classes parse them where such a class exists.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch_geometric.data import Data
from torch_geometric.datasets import Actor, HeterophilousGraphDataset, Planetoid, WebKB, WikipediaNetwork

from spam_gnn.convert import from_pyg
from spam_gnn.data import synthetic
from spam_gnn.errors import BadInput, one_of
from spam_gnn.features import csr_tensor
from spam_gnn.graph import Graph

PyGLoader = Callable[[str], Any]  # PyG declares its datasets to return anything; `_benchmark` checks


@dataclass(frozen=True)
class Benchmark:
    """Where PyG expects the raw folder below its root, how it loads, how many fixed splits there are."""

    folder: str
    raw_at: str
    load: PyGLoader
    splits: int
    directed: bool


def _webkb(name: str) -> Benchmark:
    return Benchmark(name, f"{name}/raw", lambda root: WebKB(root, name)[0], 10, True)


def _wiki(name: str) -> Benchmark:
    return Benchmark(name, f"{name}/geom_gcn/raw", lambda root: WikipediaNetwork(root, name)[0], 10, True)


def _planetoid(name: str) -> Benchmark:
    return Benchmark(name, f"{name}/raw", lambda root: Planetoid(root, name)[0], 1, False)


BENCHMARKS: dict[str, Benchmark] = {
    **{name: _webkb(name) for name in ("texas", "cornell", "wisconsin")},
    **{name: _wiki(name) for name in ("chameleon", "squirrel")},
    **{name: _planetoid(name) for name in ("cora", "citeseer", "pubmed")},
    "actor": Benchmark("actor", "raw", lambda root: Actor(root)[0], 10, True),
    "minesweeper": Benchmark(
        "minesweeper", "minesweeper/raw", lambda root: HeterophilousGraphDataset(root, "Minesweeper")[0], 10, False
    ),
}
EMBEDDED = ("csbm", "digits")
ATTACK_RATES = ("0", "0.05", "0.1", "0.15", "0.2", "0.25")
ATTACKED = tuple(f"cora-metattack:{rate}" for rate in ATTACK_RATES)


def names() -> tuple[str, ...]:
    """Every name `load` understands."""
    return (*EMBEDDED, *BENCHMARKS, *ATTACKED)


def split_count(name: str) -> int:
    """How many fixed splits a dataset has; 0 where splits are drawn by seed."""
    return BENCHMARKS[name].splits if name in BENCHMARKS else 1 if name in ATTACKED else 0


def data_folders() -> list[Path]:
    """The folders searched for raw files, in order."""
    given = os.environ.get("SPAM_GNN_DATA")
    beside = Path(__file__).resolve().parents[4] / "shared" / "datasets"
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "spam-gnn" / "datasets"
    return [*([Path(given)] if given else []), beside, cache]


def find_raw(folder: str) -> Path:
    """The first data folder that holds `folder`; otherwise say where it was looked for."""
    for base in data_folders():
        if (base / folder).is_dir():
            return base / folder
    looked = ", ".join(str(base / folder) for base in data_folders())
    raise BadInput(f"dataset folder '{folder}': not found in {looked}; put its raw files there or set SPAM_GNN_DATA")


def is_present(name: str) -> bool:
    """Whether `load(name)` would find its files."""
    if name in EMBEDDED:
        return True
    folder = BENCHMARKS[name].folder + "/raw" if name in BENCHMARKS else "attacked/cora"
    return any((base / folder).is_dir() for base in data_folders())


def load(name: str, split: int = 0, seed: int = 0) -> Graph:
    """A graph by name. `split` chooses among fixed splits; embedded graphs are drawn by `seed + split`."""
    one_of(name, names(), "dataset")
    if split < 0 or (split_count(name) and split >= split_count(name)):
        last = split_count(name) - 1
        raise BadInput(f"split: found {split}; '{name}' has " + (f"splits 0 to {last}" if last > 0 else "only split 0"))
    if name in EMBEDDED:
        return getattr(synthetic, name)(seed=seed + split)
    if name in ATTACKED:
        return _attacked_cora(name)
    return _benchmark(name, split)


def _benchmark(name: str, split: int) -> Graph:
    spec = BENCHMARKS[name]
    raw = find_raw(spec.folder) / "raw"
    with tempfile.TemporaryDirectory() as root:  # PyG writes its parsed copy beside the raw files, which may be read-only
        place = Path(root) / spec.raw_at
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(raw.resolve(), target_is_directory=True)
        with contextlib.redirect_stderr(io.StringIO()):  # "Processing... Done!"
            data = spec.load(root)
    assert isinstance(data, Data)
    return from_pyg(data, split=split, directed=spec.directed, name=name)


def _attacked_cora(name: str) -> Graph:
    """The largest component of Cora with Metattack edges (Pro-GNN's release) and its fixed 10/10/80 split."""
    folder, rate = find_raw("attacked") / "cora", name.partition(":")[2]
    with np.load(folder / "graph.npz", allow_pickle=False) as stored:
        arrays = {key: stored[key] for key in stored.files}
    n = arrays["labels"].shape[0]
    if rate == "0":
        indices, pointer = arrays["adj_indices"], arrays["adj_indptr"]
        adjacency = scipy.sparse.csr_array((np.ones(len(indices)), indices, pointer), shape=(n, n)).tocoo()
    else:
        adjacency = scipy.sparse.load_npz(folder / f"meta_adj_{rate}.npz").tocoo()
    parts = (arrays[f"features_{name}"] for name in ("data", "indices", "indptr"))
    x = csr_tensor(scipy.sparse.csr_array(tuple(parts), shape=tuple(arrays["features_shape"].tolist())))
    indices = json.loads((folder / "splits.json").read_text())
    masks = {part: torch.zeros(n, dtype=torch.bool) for part in ("train", "val", "test")}
    for part, mask in masks.items():
        mask[torch.tensor(indices[f"idx_{part}"])] = True
    edges = torch.from_numpy(np.stack([adjacency.row, adjacency.col]).astype(np.int64))
    graph = Graph.build(
        x, edges, torch.from_numpy(arrays["labels"].astype(np.int64)), train_mask=masks["train"],
        val_mask=masks["val"], test_mask=masks["test"], directed=False,
    )  # fmt: skip
    return replace(graph, name=name)
