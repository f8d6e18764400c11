"""Imports point one way: no cycle among modules, and the front doors are imported by nobody behind them."""

from __future__ import annotations

import ast
import graphlib
import os
import subprocess
import sys
from pathlib import Path

import spam_gnn

ROOT = Path(spam_gnn.__file__).parent


def modules():
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def imported(path, names):
    """Modules of the package a file imports when it is loaded; `TYPE_CHECKING` blocks and function bodies do not count."""
    tree = ast.parse(path.read_text())
    found = set()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("spam_gnn"):
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                found.add(whole if whole in names else node.module)
        elif isinstance(node, ast.Import):
            found |= {a.name for a in node.names if a.name.startswith("spam_gnn")}
    return found


def test_no_cycles():
    names = dict(modules())
    graph = {name: imported(path, names) - {name, "spam_gnn"} for name, path in names.items()}
    order = list(graphlib.TopologicalSorter(graph).static_order())  # raises CycleError with the cycle
    assert order.index("spam_gnn.graph") < order.index("spam_gnn.layer") < order.index("spam_gnn.model")
    assert order.index("spam_gnn.training") < order.index("spam_gnn.run")


def test_nobody_imports_the_command_line():
    names = dict(modules())
    for name, path in names.items():
        if name not in ("spam_gnn.__main__",) and not name.startswith("spam_gnn.commands"):
            found = imported(path, names)
            assert "spam_gnn.cli" not in found, name
            assert not any(f.startswith("spam_gnn.commands") for f in found), name


def test_every_public_name_can_be_imported():
    for name in spam_gnn.__all__:
        assert getattr(spam_gnn, name) is not None


def test_idle_threads_sleep_unless_the_user_says_otherwise():
    """Set before torch is loaded, which is when OpenMP reads it; a value of the user's stays."""
    code = "import sys, os, spam_gnn; print(os.environ['OMP_WAIT_POLICY'], 'torch' in sys.modules)"
    for given, wanted in ((None, "passive False"), ("active", "active False")):
        environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
        environment |= {"OMP_WAIT_POLICY": given} if given else {}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
        assert done.stdout.strip() == wanted
