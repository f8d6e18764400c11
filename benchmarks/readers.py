"""`python benchmarks/readers.py`: what reading two files as a checked graph costs beside a bare read of the same files.

Files are drawn from a seed into a temporary folder: nodes with a whole-number id, a text label of ten classes and numbers with
four decimals; edges with two whole-number ids. "bare" is `pandas.read_csv` or `pandas.read_parquet` of both files and nothing
else; "ours" is `read_tables`, which also checks every row, finds each id, merges duplicates and sorts the edges in both
directions. Each read is a process of its own on one thread, the two sides in turn. Each first reads files of a hundred rows, so
that seconds leave out imports; the peak of resident memory includes them. The machine is shared, so the seconds of the
processor stand beside those of the clock. Median of the rounds.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
FORMATS = ("csv", "parquet")
SEED = 0


def generate(folder: Path, nodes: int, features: int, edges: int) -> None:
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    draws = np.random.default_rng(SEED)
    names = pa.array([f"class{c}" for c in range(10)])
    node_columns = {"id": pa.array(np.arange(nodes)), "label": names.take(pa.array(draws.integers(0, 10, nodes)))}
    for place in range(features):
        node_columns[f"x{place}"] = pa.array(np.round(draws.standard_normal(nodes), 4))
    ends = draws.integers(0, nodes, (2, edges))
    tables = {"nodes": pa.table(node_columns), "edges": pa.table({"source": ends[0], "target": ends[1]})}
    for name, table in tables.items():
        pyarrow.csv.write_csv(table, folder / f"{name}.csv")
        pyarrow.parquet.write_table(table, folder / f"{name}.parquet")


def read_once(side: str, form: str, folder: Path) -> dict[str, float]:
    """In the worker: read both files, say how long it took and how much memory there was at most."""
    import pyarrow as pa

    pa.set_cpu_count(1)
    if side == "bare":  # without torch, which alone is a third of a gigabyte
        import pandas as pd

        def read(place: Path) -> object:
            one = pd.read_csv if form == "csv" else pd.read_parquet
            return [one(place / f"{name}.{form}") for name in ("nodes", "edges")]
    else:
        import torch

        from spam_gnn.data.tables import read_tables

        torch.set_num_threads(1)

        def read(place: Path) -> object:
            return read_tables(place / f"nodes.{form}", place / f"edges.{form}")

    read(folder / "small")
    clock, processor = time.perf_counter(), time.process_time()
    kept = read(folder)
    clock, processor = time.perf_counter() - clock, time.process_time() - processor
    del kept
    return {"clock": clock, "processor": processor, "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def in_a_process(side: str, form: str, folder: Path) -> dict[str, float]:
    words = [sys.executable, __file__, "--side", side, "--format", form, "--folder", str(folder)]
    return json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def measure(form: str, folder: Path, rounds: int) -> list[str]:
    runs: dict[str, list[dict[str, float]]] = {"bare": [], "ours": []}
    for turn in range(rounds):
        for side in ("bare", "ours") if turn % 2 == 0 else ("ours", "bare"):
            runs[side].append(in_a_process(side, form, folder))
            print(form, side, {k: round(v, 2) for k, v in runs[side][-1].items()}, flush=True)
    size = sum((folder / f"{name}.{form}").stat().st_size for name in ("nodes", "edges")) / 2**20
    row = [form, f"{size:.0f}"]
    for what, digits in (("clock", 1), ("processor", 1), ("memory", 0)):
        bare, ours = (statistics.median(run[what] for run in runs[side]) for side in ("bare", "ours"))
        row += [f"{bare:.{digits}f}", f"{ours:.{digits}f}", f"{ours / bare:.2f}"]
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--edges", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dry", action="store_true", help="print the rows, leave readers.md as it is")
    for hidden in ("--side", "--format", "--folder"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.side:
        print(json.dumps(read_once(given.side, given.format, Path(given.folder))))
        return
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "small").mkdir()
        generate(Path(name) / "small", 100, given.features, 100)
        generate(Path(name), given.nodes, given.features, given.edges)
        rows = [measure(form, Path(name), given.rounds) for form in FORMATS]
    for row in rows:
        print(" | ".join(row))
    if given.dry:
        return
    from table import write_table

    size = f"{given.nodes:,} nodes x {given.features} features, {given.edges:,} edges, {given.rounds} rounds"
    explained = (__doc__ or "").partition("\n")[2].strip()
    about = " ".join(f"{explained} Here: {size}. Rerun: `python benchmarks/readers.py`.".split())
    header = ("format", "files, MiB", "bare, s", "ours, s", "ratio", "bare, CPU s", "ours, CPU s", "ratio",
              "bare, MiB", "ours, MiB", "ratio")  # fmt: skip
    write_table("readers", "Reading large files", about, header, rows)


if __name__ == "__main__":
    main()
