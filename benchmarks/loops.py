"""The compiled loops of one layer alone: ns per message and sample, there and back. `python benchmarks/loops.py [GRAPH ...]`

Two versions of the code are compared by running this in turns with PYTHONPATH at the `src` of each.
"""

from __future__ import annotations

import sys
import time

import torch

from spam_gnn.experiments.speed import WIDTH, graph_named
from spam_gnn.kernels.signed import Coding, squares_of, thread_tables
from spam_gnn.randomness import stream

CASES = ((3, 1), (3, 4), (0, 1), (0, 4))  # coder steps, samples with common inputs
PRESENT, REPEATS = 0.3, 12  # share of messages that a sample has, half of them of each sign


def best_times(name: str, steps: int, samples: int) -> tuple[float, float]:
    """Best seconds of a forward and a backward pass over all rows."""
    messages = graph_named(name).messages("in")
    n, m, generator = messages.num_nodes, messages.count, stream(0, "loops benchmark")
    target, values = torch.randn(2, n, WIDTH, generator=generator) / WIDTH**0.5
    drawn = torch.rand(samples, m, generator=generator)
    positive, negative = (drawn < PRESENT / 2).float(), ((drawn >= PRESENT / 2) & (drawn < PRESENT)).float()
    operands = [target, values, squares_of(values), positive, negative]
    coding = Coding(messages, steps, 0.05, halves=True)
    codes, sums, masses = torch.empty(samples, steps, m), torch.empty(samples, n, 2, WIDTH), torch.empty(samples, 2, n)
    flows, to_masses = torch.randn(samples, n, 2, WIDTH, generator=generator), torch.randn(samples, 2, n, generator=generator)
    to_signs, forward, backward = [torch.empty(samples, m) for _ in range(2)], [], []
    for _ in range(REPEATS):
        begun = time.perf_counter()
        coding.forward((0, n), operands, codes, sums, masses, keep=True)
        between = time.perf_counter()
        coding.backward(
            (0, n), operands, codes, sums, masses, flows, to_masses, torch.zeros(n, WIDTH), to_signs, thread_tables(values)
        )
        forward.append(between - begun)
        backward.append(time.perf_counter() - between)
    return min(forward) / (m * samples), min(backward) / (m * samples)


if __name__ == "__main__":
    torch.set_num_threads(1)
    for graph in sys.argv[1:] or ["random:1e6", "squirrel"]:
        for steps, samples in CASES:
            there, back = best_times(graph, steps, samples)
            print(f"{graph}, T = {steps}, {samples} samples: {1e9 * there:.0f}, {1e9 * back:.0f} ns")
