"""Formats without a PyG class: Platonov et al.'s filtered `.npz`, geom-gcn's split files, Pro-GNN's attacked graphs."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import scipy.sparse
import torch

from spam_gnn.data.spec import FilePaths, Masks, RawGraph
from spam_gnn.errors import BadInput
from spam_gnn.features import csr_tensor


def arrays_of(path: Path, wanted: Sequence[str]) -> dict[str, np.ndarray]:
    """The named arrays of an `.npz`, none of which may be a pickle."""
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
            return {name: stored[name] for name in wanted}
    except (ValueError, OSError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise BadInput(f"{path}: cannot be read as the benchmark's arrays ({error}); fetch it again from its source") from None


def filtered(paths: FilePaths) -> RawGraph:
    """One `.npz`: node_features, node_labels, edges (each undirected pair once), *_masks (splits, n)."""
    (path,) = paths.values()
    keys = ("node_features", "node_labels", "edges", "train_masks", "val_masks", "test_masks")
    stored = arrays_of(path, keys)
    train, val, test = (torch.from_numpy(stored[f"{part}_masks"].astype(bool).T.copy()) for part in ("train", "val", "test"))
    return RawGraph(
        torch.from_numpy(stored["node_features"].astype(np.float32)),
        torch.from_numpy(stored["edges"].astype(np.int64).T.copy()),
        torch.from_numpy(stored["node_labels"].astype(np.int64)),
        {"platonov": (train, val, test)},
    )


def geom_gcn_splits(paths: FilePaths, files: Sequence[str]) -> Masks:
    """geom-gcn's ten `*_split_0.6_0.2_<i>.npz` -> (n, 10) masks."""
    parts = ("train_mask", "val_mask", "test_mask")
    splits = [arrays_of(paths[name], parts) for name in files]
    train, val, test = (torch.from_numpy(np.stack([s[part].astype(bool) for s in splits], axis=1)) for part in parts)
    return train, val, test


def metattack(paths: FilePaths) -> RawGraph:
    """The largest component of a citation graph with Metattack edges (Pro-GNN's release) and its fixed 10/10/80 split."""
    sparse = ("features_data", "features_indices", "features_indptr", "features_shape")
    stored = arrays_of(paths["graph.npz"], ("adj_indices", "adj_indptr", "labels", *sparse))
    n = stored["labels"].shape[0]
    attacked = next((path for name, path in paths.items() if name.startswith("meta_adj_")), None)
    if attacked is None:
        indices, pointer = stored["adj_indices"], stored["adj_indptr"]
        adjacency = scipy.sparse.csr_array((np.ones(len(indices)), indices, pointer), shape=(n, n)).tocoo()
    else:
        adjacency = scipy.sparse.load_npz(attacked).tocoo()
    data, indices, pointer = (stored[name] for name in sparse[:3])
    x = csr_tensor(scipy.sparse.csr_array((data, indices, pointer), shape=tuple(stored["features_shape"].tolist())))
    edges = torch.from_numpy(np.stack([adjacency.row, adjacency.col]).astype(np.int64))
    members = json.loads(paths["splits.json"].read_text())
    masks = [torch.zeros(n, 1, dtype=torch.bool) for _ in range(3)]
    for mask, part in zip(masks, ("train", "val", "test"), strict=True):
        mask[torch.tensor(members[f"idx_{part}"]), 0] = True
    labels = torch.from_numpy(stored["labels"].astype(np.int64))
    return RawGraph(x, edges, labels, {"pro-gnn": (masks[0], masks[1], masks[2])})
