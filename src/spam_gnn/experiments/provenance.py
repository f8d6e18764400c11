"""On what a run was made: code, packages, machine, data."""

from __future__ import annotations

import hashlib
import platform
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

import spam_gnn
from spam_gnn.graph import Graph
from spam_gnn.version import __version__

_PACKAGES = ("torch", "torch_geometric", "numpy", "scipy", "scikit-learn", "numba")


@cache
def code_version() -> dict[str, Any]:
    """Version, commit, and whether the sources differ from it; commit None outside a checkout. Asked once per process."""
    here = Path(spam_gnn.__file__).resolve().parent
    commit = _git(here, "rev-parse", "HEAD")
    changed = None if commit is None else bool(_git(here, "status", "--porcelain", "--", "."))
    return {"version": __version__, "commit": commit, "dirty": changed}


def _git(folder: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(["git", *words], capture_output=True, text=True, cwd=folder, check=False, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


@cache
def package_versions() -> dict[str, str]:
    return {"python": platform.python_version(), **{name: version(name) for name in _PACKAGES}}


@cache
def machine() -> dict[str, Any]:
    """What times depend on; no host name."""
    return {"system": platform.system(), "processor": platform.machine(), "threads": torch.get_num_threads()}


def data_checksum(graph: Graph) -> str:
    """SHA-256 of what a model is given: features, edges, labels and masks, after any perturbation."""
    digest = hashlib.sha256()
    x = graph.x
    parts = [x.crow_indices(), x.col_indices(), x.values()] if x.layout == torch.sparse_csr else [x]
    for tensor in (*parts, graph.edge_index, graph.y, graph.train_mask, graph.val_mask, graph.test_mask):
        digest.update(f"{tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.contiguous().numpy().tobytes())
    return digest.hexdigest()


def measured_with(records: Sequence[Mapping[str, Any]]) -> str:
    """One sentence on what the records of a study were made with: runs, commits, packages, threads."""
    made = [record["made"] for record in records if record.get("made")]
    commits: dict[str, int] = {}
    for entry in made:
        code = entry["code"]
        name = (code["commit"] or f"version {code['version']}")[:10] + (" with uncommitted changes" if code["dirty"] else "")
        commits[name] = commits.get(name, 0) + 1
    if not made:
        return ""
    last = made[-1]
    where = ", ".join(f"{name} ({count} runs)" for name, count in commits.items())
    return (f"Measured at commit {where}; {last['machine']['processor']}, one thread per run, Python "
            f"{last['packages']['python']}, torch {last['packages']['torch']}.")  # fmt: skip
