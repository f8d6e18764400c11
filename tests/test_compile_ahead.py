"""Compiled code is ready before an epoch is timed: in a process of its own, since other tests compile more than they need."""

from __future__ import annotations

import json
import subprocess
import sys

SCRIPT = """
import importlib, json, pkgutil
from numba.core.dispatcher import Dispatcher
from spam_gnn import SpaM, SpaMConfig, kernels
from spam_gnn.data.synthetic import csbm

def loaded():
    modules = [importlib.import_module(m.name) for m in pkgutil.iter_modules(kernels.__path__, "spam_gnn.kernels.")]
    made = {f"{m.__name__}.{name}": thing for m in modules for name, thing in vars(m).items() if isinstance(thing, Dispatcher)}
    return {name: len(thing.signatures) for name, thing in made.items()}

kernels.compile_ahead("auto", "cpu")
before = loaded()
for features in (5, 64):
    graph = csbm(nodes=200, features=features, seed=0).as_undirected()
    for config in (SpaMConfig(), SpaMConfig(coder="unrolled", trusted=(), position="off")):
        model = SpaM(features, graph.num_classes, config)
        model.begin(graph, 0)
        prepared = model.prepare(graph)
        model.training_loss(prepared, 0, 0)["loss"].backward()
        for samples in (1, 4, 8):
            model.predict(prepared, 0, samples=samples)
late = {name: count for name, count in loaded().items() if count > before.get(name, 0)}
print(json.dumps({"ready": sum(before.values()), "late": late}))
"""


def test_a_run_compiles_nothing_that_was_not_made_ready():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, timeout=600)
    found = json.loads(done.stdout)
    assert found["late"] == {}
    assert found["ready"] > 20
