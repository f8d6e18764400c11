"""The large graphs of Lim et al. (2021): arXiv-year from OGB's files, snap-patents from its .mat file, and their fixed splits.

Year classes are quantiles: with q_k the k/5 quantile of the years, class k holds q_k <= year < q_{k+1}.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.io
import scipy.sparse
import torch

from spam_gnn.data.parsers.pickles import read_object_array
from spam_gnn.data.spec import FilePaths, Masks, RawGraph
from spam_gnn.errors import BadInput
from spam_gnn.features import csr_tensor

YEAR_CLASSES = 5


def quantile_classes(years: np.ndarray, count: int = YEAR_CLASSES) -> np.ndarray:
    """(n,) int64: as many years as possible in each class, equal years never parted; -1 where the year is nan."""
    inner = np.nanquantile(years, np.arange(1, count) / count)
    return np.where(np.isnan(years), -1, np.searchsorted(inner, years, side="right")).astype(np.int64)


def fixed_splits(path: Path, nodes: int) -> Masks:
    """LINKX's split file: an array of dicts {train, valid, test} of node numbers -> (n, splits) masks."""
    splits = read_object_array(path)
    masks = [torch.zeros(nodes, len(splits), dtype=torch.bool) for _ in range(3)]
    for place, split in enumerate(splits):
        for mask, part in zip(masks, ("train", "valid", "test"), strict=True):
            members = np.asarray(split[part] if isinstance(split, dict) and part in split else [-1]).astype(np.int64)
            if members.size and (members.min() < 0 or members.max() >= nodes):
                raise BadInput(f"{path}: split {place} has no usable '{part}' for {nodes} nodes; fetch it again")
            mask[torch.from_numpy(members), place] = True
    return masks[0], masks[1], masks[2]


def arxiv_year(paths: FilePaths) -> RawGraph:
    """ogbn-arxiv's `edge`, `node-feat` and `node_year` (csv.gz without header); an edge points from citing to cited paper."""
    years = _table(paths["raw/node_year.csv.gz"], np.float64).reshape(-1)
    features = _table(paths["raw/node-feat.csv.gz"], np.float32)
    edges = _table(paths["raw/edge.csv.gz"], np.int64)
    if len(features) != len(years) or edges.shape[1:] != (2,):
        raise BadInput(f"{paths['raw/edge.csv.gz']}: found {len(features)} rows of features for {len(years)} years and "
                       f"{edges.shape[1]} columns of edges; fetch ogbn-arxiv's files again")  # fmt: skip
    return RawGraph(
        torch.from_numpy(features), torch.from_numpy(edges.T.copy()), torch.from_numpy(quantile_classes(years)),
        _splits(paths, "raw/arxiv-year-splits.npy", len(years)),
    )  # fmt: skip


def snap_patents(paths: FilePaths) -> RawGraph:
    """`edge_index` (2, m), `node_feat` (sparse n x 269) and `years` of the .mat file; an edge points to the cited patent."""
    path = paths["raw/snap_patents.mat"]
    stored = _mat(path, ("edge_index", "node_feat", "years"))
    years = np.asarray(stored["years"], dtype=np.float64).reshape(-1)
    features = scipy.sparse.csr_array(stored["node_feat"])
    if features.shape is None or features.shape[0] != len(years):
        raise BadInput(f"{path}: found {features.shape} features for {len(years)} years; fetch it again from its source")
    edges = torch.from_numpy(np.asarray(stored["edge_index"]).astype(np.int64))
    return RawGraph(csr_tensor(features), edges, torch.from_numpy(quantile_classes(years)),
                    _splits(paths, "raw/snap-patents-splits.npy", len(years)))  # fmt: skip


def _splits(paths: FilePaths, name: str, nodes: int) -> dict[str, Masks]:
    return {"linkx": fixed_splits(paths[name], nodes)} if name in paths else {}


def _table(path: Path, kind: type) -> np.ndarray:
    try:
        return pd.read_csv(path, header=None, dtype=kind, compression="gzip").to_numpy()
    except (ValueError, OSError, EOFError) as error:
        raise BadInput(f"{path}: not a gzipped table of numbers ({error}); fetch it again from its source") from None


def _mat(path: Path, wanted: tuple[str, ...]) -> dict[str, Any]:
    try:
        stored = scipy.io.loadmat(path)
    except Exception as error:  # scipy raises whatever a damaged file makes it stumble over
        raise BadInput(f"{path}: not a MATLAB 5 file ({error}); fetch it again from its source") from None
    missing = [name for name in wanted if name not in stored]
    if missing:
        raise BadInput(f"{path}: found no {', '.join(missing)} among {', '.join(stored)}; fetch it again from its source")
    return stored
