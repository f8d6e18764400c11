"""`spam-gnn convert`: any graph that can be read, as a folder of arrays that training and prediction map into memory."""

from __future__ import annotations

from pathlib import Path

from spam_gnn.commands.console import OUT
from spam_gnn.commands.options import GraphOptions
from spam_gnn.data.folder import write_converted


def run_convert(options: GraphOptions, split: int, protocol: str | None, seed: int, out: Path) -> None:
    """Read, split and write; the masks of the split travel with the graph."""
    facts = write_converted(options.data_source(protocol).open(split, seed), out)
    size = sum(file.stat().st_size for file in out.iterdir()) / 2**20
    for note in facts.notes:
        OUT.print(f"note: {note}", markup=False)
    sizes = f"{facts.nodes} nodes, {facts.edges} stored edges, {facts.features} features"
    OUT.print(f"{facts.name}: {sizes} in {out} ({size:.0f} MiB)")
    OUT.print(f"train from it with: spam-gnn train --graph {out} --batch-size 1024")
