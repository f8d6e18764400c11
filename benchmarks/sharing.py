"""`python benchmarks/sharing.py`: what it is worth that samples which agree about a node share its row; writes sharing.md.

K = 8 graphs are drawn around one common graph, each message differing from it with a probability; the network predicts on them
with rows shared (as it does by itself) and with every sample alone, taking turns in one process on one thread.
"""

# ruff: noqa: I001 - the package comes before torch: it lets idle threads of OpenMP sleep, which is read when torch is loaded
from __future__ import annotations

import spam_gnn  # noqa: F401

import time
from statistics import median

import torch

from spam_gnn.experiments.speed import graph_named, with_samples
from spam_gnn.kernels import variants
from spam_gnn.kernels.variants import Held, variants_of
from spam_gnn.model import SpaM
from table import HERE, provenance

GRAPHS, DIFFER, SAMPLES, TURNS, PRESENT = ("pubmed", "minesweeper"), (0.5, 0.1, 0.03, 0.01), 8, 9, 0.7


def rows() -> list[tuple[str, float, float, float, float]]:
    """Graph, probability to differ, rows left in the first layer, ms with rows shared and apart."""
    found, usual = [], variants.SHARED
    for name in GRAPHS:
        graph = graph_named(name)
        model = SpaM(graph.num_features, graph.num_classes, with_samples(4))
        model.begin(graph, 0)
        prepared = model.prepare(graph)
        with torch.no_grad():
            distribution, (messages,) = model.edge_distribution(prepared), model.network.neighbours(prepared)
            assert distribution is not None
            for probability in DIFFER:
                generator = torch.Generator().manual_seed(0)
                common = (torch.rand(messages.count, 1, generator=generator) < PRESENT).to(torch.int8)
                other = torch.rand(messages.count, SAMPLES, generator=generator) < probability
                signs = torch.where(other, 1 - common, common).contiguous()
                taken: dict[float, list[float]] = {usual: [], 0.0: []}
                for _ in range(TURNS):
                    for variants.SHARED in taken:
                        begun = time.process_time()
                        model.network.on_drawn(prepared, distribution, signs)
                        taken[variants.SHARED].append(1e3 * (time.process_time() - begun))
                variants.SHARED = 1.0
                left = variants_of(messages, Held.of(torch.ones(1, graph.num_nodes, 1)), signs, range(SAMPLES)).count
                variants.SHARED = usual
                found.append((name, probability, left / graph.num_nodes / SAMPLES, median(taken[usual]), median(taken[0.0])))
    return found


def main() -> None:
    torch.set_num_threads(1)
    lines = ["| graph | a message differs with | rows left | ms, shared | ms, apart | ratio |", "|---|---|---|---|---|---|"]
    lines += [f"| {name} | {p} | {left:.2f} | {with_:.1f} | {without:.1f} | {with_ / without:.2f} |"
              for name, p, left, with_, without in rows()]  # fmt: skip
    about = (__doc__ or "").partition("\n\n")[2].strip().replace("\n", " ")
    text = f"# Rows shared between samples\n\n{about} CPU time. `python benchmarks/sharing.py`\n\n" + "\n".join(lines)
    (HERE / "sharing.md").write_text(f"{text}\n\n{provenance()}\n")


if __name__ == "__main__":
    main()
