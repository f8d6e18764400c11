"""`DatasetSpec`: all that is known of a benchmark before its files are opened. One value per dataset, in `data/entries/`.

Figures are written down only where they were measured on the verified files or are published; None means not known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Literal

from torch import Tensor

import spam_gnn.kernels  # noqa: F401 - spends torch's announcement that sparse tensors are in beta
from spam_gnn.homophily import Homophily

Masks = tuple[Tensor, Tensor, Tensor]  # train, validation, test: (n, splits) bool each
Origin = Literal["measured", "published"]


@dataclass(frozen=True, eq=False)
class RawGraph:
    """What a parser returns: the benchmark as its source stores it, before self-loops and duplicates are taken out.

    Args:
        x: (n, d) features, dense or `torch.sparse_csr`.
        edge_index: (2, edges as stored).
        y: (n,) labels, -1 where unknown.
        fixed: the splits that came with the files, by protocol name.
    """

    x: Tensor
    edge_index: Tensor
    y: Tensor
    fixed: Mapping[str, Masks] = field(default_factory=dict)


FilePaths = Mapping[str, Path]
Parser = Callable[[FilePaths], RawGraph]


@dataclass(frozen=True)
class RawFile:
    """One file of a dataset.

    Args:
        name: path below the dataset's folder.
        url: where it is fetched from; None where no public address serves it as it is.
        member: path inside the fetched zip archive, where the address is one of an archive.
        protocol: the only split protocol that needs it; None when the graph itself does.
    """

    name: str
    url: str | None = None
    member: str | None = None
    protocol: str | None = None


@dataclass(frozen=True)
class Figures:
    """Sizes and measures of a graph. Edges are counted as stored by the source (PyG's class, or the file where there is none).

    `density` is the share of nonzero features, `sparse` whether they are stored so; `degree_gini` the Gini coefficient of the
    degrees, in plus out.
    """

    nodes: int | None = None
    edges: int | None = None
    features: int | None = None
    classes: int | None = None
    unlabelled: int = 0
    self_loops: int = 0
    homophily: Homophily | None = None
    degree_gini: float | None = None
    density: float | None = None
    sparse: bool = False
    class_shares: tuple[float, ...] | None = None
    origin: Origin = "measured"
    source: str = "the verified files"


@dataclass(frozen=True)
class PaperRow:
    """The dataset's column in the paper's tables of statistics."""

    nodes: int
    edges: int
    features: int
    classes: int
    homophily: float


@dataclass(frozen=True)
class DatasetSpec:
    """A benchmark.

    Args:
        name: what users type.
        title: what it is, in a few words.
        folder: its folder below a data folder.
        files: its raw files.
        parser: from paths by file name to a `RawGraph`.
        directed: whether an edge means source -> target only.
        protocols: names of split protocols that suit it, the default first.
        splits: how many splits the default has; 0 for any number, drawn by split number.
        expected: figures that `datasets check` holds the files to.
        paper: the paper's figures, and `differences` what disagrees and why, one sentence each.
        metric: accuracy, with roc_auc beside it where there are two classes.
        source: who publishes it. `licence`: what the source states. `defects`: what is known to be wrong with it.
        stored_once: whether `edges` counts each undirected pair once (a file without a PyG class).
    """

    name: str
    title: str
    folder: str
    files: tuple[RawFile, ...]
    parser: Parser
    directed: bool
    protocols: tuple[str, ...]
    splits: int
    expected: Figures
    source: str
    licence: str
    paper: PaperRow | None = None
    differences: tuple[str, ...] = ()
    defects: tuple[str, ...] = ()
    stored_once: bool = False

    @property
    def metric(self) -> str:
        return "accuracy, roc_auc" if self.expected.classes == 2 else "accuracy"

    def files_for(self, protocol: str | None) -> tuple[RawFile, ...]:
        """The files that a protocol needs; without one, those of the default."""
        wanted = protocol or self.protocols[0]
        return tuple(f for f in self.files if f.protocol in (None, wanted))

    def sha256(self, file: RawFile) -> str | None:
        """The file's SHA-256 where it is known."""
        return known_checksums().get(f"{self.folder}/{file.name}")


@cache
def known_checksums() -> dict[str, str]:
    """SHA-256 by path below a data folder: `checksums.txt`, in the format that `sha256sum --check` reads."""
    lines = files("spam_gnn.data").joinpath("checksums.txt").read_text().splitlines()
    return {path: digest for digest, path in (line.split(maxsplit=1) for line in lines)}
