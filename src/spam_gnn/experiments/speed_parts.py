"""Where the time goes: the parts of a SpaM epoch, the exact coder against scikit-learn, memory, and growth in edges."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from sklearn.linear_model import Lasso

from spam_gnn.coding.exact import ExactCoder
from spam_gnn.configured import drawn_signs
from spam_gnn.experiments.speed import WIDTH, Times, graph_named, take_turns, with_samples, work_named
from spam_gnn.kernels.csr import gather_sum
from spam_gnn.model import SpaM
from spam_gnn.network import told_beliefs
from spam_gnn.objective import objective
from spam_gnn.posterior import context_mask
from spam_gnn.randomness import stream
from spam_gnn.resources import peak_memory_mb, use_threads
from spam_gnn.training import TrainConfig, make_optimiser


def parts_of_epoch(name: str, samples: int = 4, repeats: int = 7) -> dict[str, float]:
    """Median seconds of each part of an epoch, and of one CSR product over the same messages (`csr product`)."""
    graph = graph_named(name)
    config = with_samples(samples)
    model = SpaM(graph.num_features, graph.num_classes, config)
    model.begin(graph, 0)
    prepared, optimiser = model.prepare(graph), make_optimiser(model, TrainConfig())
    assert model.posterior is not None
    messages = prepared.messages("in")
    unit = torch.ones(1, messages.count), torch.randn(1, messages.num_nodes, WIDTH)
    spent: dict[str, list[float]] = {}

    def timed(what: str, job: Callable[[], Any]) -> Any:
        begun = time.process_time()
        value = job()
        spent.setdefault(what, []).append(time.process_time() - begun)
        return value

    for epoch in range(repeats + 1):
        with torch.no_grad():
            timed("csr product", lambda: gather_sum(messages, *unit))
        generator, context = stream(0, "dropout", epoch), context_mask(prepared, 0.5, 0, epoch)
        q = timed("posterior", lambda g=generator, c=context: model.posterior(prepared, c, g))  # pyright: ignore
        signs = timed("draws", lambda e=epoch, d=q: drawn_signs(model.config, prepared, d, samples, 0, "train", e))
        hidden = timed("encoder", lambda g=generator, d=q: model.network.encode(prepared.features, told_beliefs(d), g))
        layers = hidden
        for place, conv in enumerate(model.network.layers):
            layers = timed(f"layer {place + 1}", lambda c=conv, h=layers, z=signs:
                           torch.relu(c.pass_messages(h, model.network.neighbours(prepared), z).hidden))  # fmt: skip
        optimiser.zero_grad(set_to_none=True)
        outcome = model(prepared, context, seed=0, samples=samples, purpose="train", epoch=epoch, generator=generator)
        loss = timed("objective", lambda o=outcome, c=context: objective(config, model.posterior, model.prior, prepared, o, c))
        timed("backward", loss.total.backward)
        timed("optimiser", optimiser.step)
    return {what: Times.of(values[1:]).seconds for what, values in spent.items()}


def lasso_against_sklearn(name: str, penalty: float = 0.1, width: int = WIDTH) -> dict[str, float]:
    """Every node's LASSO over its neighbours: the exact coder, on the threads set, against scikit-learn in a loop."""
    graph = graph_named(name)
    messages = graph.messages("in")
    generator = stream(0, "lasso benchmark")
    target, values = torch.randn(2, 1, graph.num_nodes, width, generator=generator) / width**0.5
    presence = torch.ones(1, messages.count)
    coder = ExactCoder(penalty=penalty)
    coder(messages, target, values, presence)  # compiled before it is timed
    spent, ours = [], np.zeros(0)
    for _ in range(5):
        begun = time.perf_counter()
        ours = coder(messages, target, values, presence).positive[0].numpy()
        spent.append(time.perf_counter() - begun)
    seconds = Times.of(spent).seconds
    solver = Lasso(alpha=penalty / (2 * width), fit_intercept=False, tol=1e-8, max_iter=100_000)
    pointer, source = messages.row_pointer.numpy(), messages.source.numpy()
    rows, answers = values[0].double().numpy(), target[0].double().numpy()
    theirs = np.zeros_like(ours)
    begun = time.perf_counter()
    for node in range(graph.num_nodes):
        span = slice(pointer[node], pointer[node + 1])
        if span.stop > span.start:
            theirs[span] = solver.fit(rows[source[span]].T, answers[node]).coef_
    loop = time.perf_counter() - begun
    return {"nodes": graph.num_nodes, "threads": torch.get_num_threads(), "messages": messages.count,
            "exact_seconds": seconds, "sklearn_seconds": loop, "ratio": loop / seconds,
            "largest_difference": float(np.abs(ours - theirs).max())}  # fmt: skip


def thread_gain(name: str, repeats: int = 7) -> dict[str, float]:
    """Epoch of SpaM (K = 4) on one thread over that on as many as a run would use on this graph, taking turns."""
    graph = graph_named(name)
    work = work_named("spam-k4", graph)
    before = torch.get_num_threads()
    chosen = use_threads(graph, WIDTH, 4)

    def on(threads: int) -> Callable[[], None]:
        def job() -> None:
            torch.set_num_threads(threads)
            work.epoch()

        return job

    try:
        times = take_turns({"one": on(1), "chosen": on(chosen)}, repeats, 60.0, time.perf_counter)
    finally:
        torch.set_num_threads(before)
    one, several = times["one"].seconds, times["chosen"].seconds
    return {"threads": chosen, "one": one, "chosen": several, "gain": one / several}


def peak_memory(name: str, model: str, threads: int = 1) -> float:
    """Peak resident MiB of a fresh process that loads the graph, trains two epochs and predicts."""
    return float(in_fresh_process("speed_parts.peak_after", name, model, threads=threads))


def epoch_alone(name: str, model: str) -> float:
    """CPU seconds of an epoch, the median of several, in a fresh process on one thread that nothing else takes turns in."""
    return float(in_fresh_process("speed_parts.epoch_here", name, model))


def in_fresh_process(what: str, *arguments: str, threads: int = 1) -> Any:
    """What a function of `speed` or `speed_parts` finds when a process of its own does nothing else."""
    module, _, function = what.partition(".")
    code = (
        f"import json, spam_gnn, torch; torch.set_num_threads({threads});"
        f"from spam_gnn.experiments.{module} import {function}; print(json.dumps({function}(*{arguments!r})))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.strip().splitlines()[-1])


def peak_after(name: str, model: str) -> float:
    """What the process of :func:`peak_memory` does."""
    work = work_named(model, graph_named(name))
    work.epoch()
    work.epoch()
    work.predict()
    return peak_memory_mb()


def epoch_here(name: str, model: str) -> float:
    """What the process of :func:`epoch_alone` does; three epochs where one takes long."""
    graph = graph_named(name)
    return take_turns({model: work_named(model, graph).epoch}, 3 if graph.num_edges > 5_000_000 else 9, 30.0)[model].seconds
