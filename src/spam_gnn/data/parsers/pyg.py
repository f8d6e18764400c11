"""PyG's own dataset classes, given the raw files where they look for them, so that nothing is downloaded or written there."""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.datasets import Actor, HeterophilousGraphDataset, LINKXDataset, Planetoid, WebKB, WikipediaNetwork

from spam_gnn.data.parsers.arrays import geom_gcn_splits
from spam_gnn.data.parsers.pickles import read_object_array, read_pickle
from spam_gnn.data.spec import FilePaths, Masks, Parser, RawGraph
from spam_gnn.features import SPARSE_BELOW

PLANETOID_PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")


def geom_gcn_names(prefix: str) -> list[str]:
    """geom-gcn's ten split files. The shares in their names are not those inside: 48/32/20 percent."""
    return [f"raw/{prefix}_split_0.6_0.2_{i}.npz" for i in range(10)]


def webkb(name: str) -> Parser:
    return lambda paths: _all_splits(_load(paths, f"{name}/raw", lambda root: WebKB(root, name)), "geom-gcn")


def wikipedia(name: str) -> Parser:
    place = f"{name}/geom_gcn/raw"
    return lambda paths: _all_splits(_load(paths, place, lambda root: WikipediaNetwork(root, name)), "geom-gcn")


def actor(paths: FilePaths) -> RawGraph:
    return _all_splits(_load(paths, "raw", Actor), "geom-gcn")


def platonov(name: str) -> Parser:
    """`name` as PyG writes it in file names, such as roman_empire."""

    def parse(paths: FilePaths) -> RawGraph:
        data = _load(paths, f"{name}/raw", lambda root: HeterophilousGraphDataset(root, name.replace("_", "-")))
        return _all_splits(data, "platonov")

    return parse


def planetoid(name: str) -> Parser:
    """The graph and its public split; geom-gcn's ten where their files are given. The pickles are vetted first."""

    def parse(paths: FilePaths) -> RawGraph:
        for part in PLANETOID_PARTS[:-1]:
            read_pickle(paths[f"raw/ind.{name}.{part}"])
        data = _load(paths, f"{name}/raw", lambda root: Planetoid(root, name))
        splits: dict[str, Masks] = {"public": _masks(data)}
        if all(file in paths for file in geom_gcn_names(name)):
            splits["geom-gcn"] = geom_gcn_splits(paths, geom_gcn_names(name))
        return RawGraph(data.x, data.edge_index, data.y, splits)  # pyright: ignore[reportArgumentType]  (checked in _load)

    return parse


def linkx(name: str) -> Parser:
    """A Facebook100 graph (gender, one-hot attributes) or genius. PyG unpickles Penn94's splits: they are vetted first."""

    def parse(paths: FilePaths) -> RawGraph:
        for file, path in paths.items():
            if file.endswith(".npy"):
                read_object_array(path)
        data = _load(paths, f"{name}/raw", lambda root: LINKXDataset(root, name))
        splits: dict[str, Masks] = {"linkx": _masks(data)} if "train_mask" in data else {}
        assert isinstance(data.x, Tensor)
        x = data.x.float()
        if float((x != 0).float().mean()) < SPARSE_BELOW:  # six ones among thousands of columns
            x = x.to_sparse_csr()
        return RawGraph(x, data.edge_index, data.y, splits)  # pyright: ignore[reportArgumentType]  (checked in _load)

    return parse


def _load(paths: FilePaths, place: str, load: Callable[[str], Any]) -> Data:
    """Link the files to where the class expects them below a passing root, and let it parse."""
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root) / place
        folder.mkdir(parents=True)
        for path in paths.values():
            (folder / path.name).symlink_to(path.resolve())
        with contextlib.redirect_stderr(io.StringIO()):  # "Processing... Done!"
            data = load(root)[0]
    assert isinstance(data, Data)  # each of these classes holds one graph
    assert all(isinstance(data[key], Tensor) for key in ("x", "edge_index", "y"))
    data.y = data["y"].clamp(min=-1)  # any negative number marks an unknown label
    return data


def _masks(data: Data) -> Masks:
    train, val, test = (mask if mask.ndim == 2 else mask.unsqueeze(1) for mask in
                        (data.train_mask, data.val_mask, data.test_mask))  # fmt: skip
    return train.bool(), val.bool(), test.bool()


def _all_splits(data: Data, protocol: str) -> RawGraph:
    return RawGraph(data.x, data.edge_index, data.y, {protocol: _masks(data)})  # pyright: ignore[reportArgumentType]
