"""`spam-gnn doctor`: what is installed, what is there, and whether it works."""

from __future__ import annotations

import json
import platform
import sys
from importlib.metadata import version
from typing import Any

from spam_gnn.commands.console import OUT, table
from spam_gnn.config import SpaMConfig
from spam_gnn.data import catalog
from spam_gnn.data.synthetic import csbm
from spam_gnn.errors import SpamError
from spam_gnn.evaluation.metrics import node_metrics
from spam_gnn.kernels import KERNELS, chosen
from spam_gnn.model import SpaM
from spam_gnn.resources import allowed_threads, available_memory_mb
from spam_gnn.training import TrainConfig, fit
from spam_gnn.version import __version__

PACKAGES = ("torch", "torch_geometric", "numpy", "scipy", "pandas", "scikit-learn", "numba", "networkx", "safetensors")


def run_doctor(as_json: bool) -> None:
    """Print the findings; a self-test that fails ends with our bug's exit code."""
    checks = self_test()
    facts: dict[str, Any] = {
        "spam-gnn": __version__, "python": platform.python_version(), "system": platform.platform(terse=True),
        **{name: version(name) for name in PACKAGES},
        "kernel": f"{chosen('auto')} (auto), of {', '.join(KERNELS[1:])}",
        "threads": f"1 on small graphs, {allowed_threads()} on large ones",
        "memory available, MiB": round(available_memory_mb()),
        "data folders": [f"{folder} ({'found' if folder.is_dir() else 'absent'})" for folder in catalog.data_folders()],
        "datasets present": [name for name in catalog.names() if catalog.is_present(name)],
        "self-test": checks,
    }  # fmt: skip
    if as_json:
        sys.stdout.write(json.dumps(facts, indent=2) + "\n")
    else:
        table("spam-gnn doctor", ("what", "found"), [[name, _text(value)] for name, value in facts.items()])
    failed = [name for name, result in checks.items() if not result.startswith("ok")]
    if failed:
        raise SpamError(f"self-test failed: {', '.join(failed)}; reinstall the package, and report it if that does not help")
    if not as_json:
        OUT.print("all checks passed")


def self_test() -> dict[str, str]:
    """Train a small model on an easy graph with each coder; it must beat guessing by far."""
    graph = csbm(nodes=120, feature_strength=3.0, noise=0.1, seed=0)
    results = {}
    for coder in ("unrolled", "amortised", "exact"):
        config = SpaMConfig(hidden=32, posterior_hidden=16, coder=coder, samples=2, predict_samples=4)
        model = SpaM(graph.num_features, graph.num_classes, config)
        fit(model, graph, TrainConfig(epochs=40), seed=0)
        accuracy = node_metrics(model.predict(model.prepare(graph), 0), graph.y, graph.test_mask)["accuracy"]
        results[f"coder {coder}"] = f"{'ok' if accuracy > 0.7 else 'FAILED'}, accuracy {accuracy:.2f} on an easy graph"
    return results


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return "\n".join(f"{name}: {item}" for name, item in value.items())
    return "\n".join(value) if isinstance(value, list) else str(value)
