"""SpaM: sparse Bayesian message passing for graphs whose edges cannot be trusted."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

from spam_gnn.version import __version__

# Read by OpenMP when torch is loaded: its idle threads sleep instead of spinning on the cores that the compiled loops use in
# between (benchmarks/speed.md). Without effect where torch was loaded before, or where the user has set it.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

if TYPE_CHECKING:
    from spam_gnn.config import SpaMConfig
    from spam_gnn.convert import from_networkx, from_pandas, from_pyg, from_scipy, to_networkx, to_pandas, to_pyg, to_scipy
    from spam_gnn.data.synthetic import csbm, digits
    from spam_gnn.estimator import NodeClassifier, SpaMClassifier
    from spam_gnn.graph import Graph
    from spam_gnn.layer import S2Config, S2Conv
    from spam_gnn.model import SpaM
    from spam_gnn.posterior import SignPosterior
    from spam_gnn.training import TrainConfig

# Public names and where they live. They load on first use, so that `spam-gnn --help` does not wait for torch.
_HOME = {
    "Graph": "graph", "NodeClassifier": "estimator",
    "S2Config": "layer", "S2Conv": "layer", "SignPosterior": "posterior", "SpaM": "model",
    "SpaMClassifier": "estimator", "SpaMConfig": "config", "TrainConfig": "training", "csbm": "data.synthetic",
    "digits": "data.synthetic", "from_networkx": "convert", "from_pandas": "convert", "from_pyg": "convert",
    "from_scipy": "convert", "to_networkx": "convert", "to_pandas": "convert", "to_pyg": "convert", "to_scipy": "convert",
}  # fmt: skip

__all__ = [
    "Graph", "NodeClassifier", "S2Config", "S2Conv", "SignPosterior", "SpaM", "SpaMClassifier", "SpaMConfig", "TrainConfig",
    "__version__",
    "csbm", "digits", "from_networkx", "from_pandas", "from_pyg", "from_scipy", "to_networkx", "to_pandas",
    "to_pyg", "to_scipy",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"spam_gnn.{_HOME[name]}"), name)
    raise AttributeError(f"module 'spam_gnn' has no attribute '{name}'")
