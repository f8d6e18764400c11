"""Markdown tables that say on what they were measured: commit, machine, versions."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Sequence
from pathlib import Path

import torch

from spam_gnn.files import write_durably

HERE = Path(__file__).resolve().parent


def _git(*words: str) -> str:
    return subprocess.run(("git", *words), capture_output=True, text=True, cwd=HERE, check=False).stdout.strip()


def commit() -> str:
    """The commit checked out, in ten digits."""
    return _git("rev-parse", "--short=10", "HEAD") or "unknown"


def source_changed() -> bool:
    """Whether the package differs from that commit."""
    return bool(_git("status", "--porcelain", "--", "../src"))


def provenance() -> str:
    """One line: commit (and whether the tree was changed since), cores, Python, torch."""
    changed = " with uncommitted changes" if source_changed() else ""
    return f"Measured at commit {commit()}{changed}, {machine()}."


def machine() -> str:
    """What all measurements of a process have in common."""
    threads = f"{torch.get_num_threads()} thread(s)"
    return f"{platform.machine()}, {threads}, Python {platform.python_version()}, torch {torch.__version__}"


def write_table(name: str, title: str, about: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """benchmarks/<name>.md: title, what it shows and how, the table, where it was measured."""
    lines = [f"# {title}", "", about, "", f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    write_durably(HERE / f"{name}.md", ("\n".join([*lines, "", provenance()]) + "\n").encode())
