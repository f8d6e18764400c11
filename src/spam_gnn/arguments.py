"""The arguments and options that commands share, as typer reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Dataset = Annotated[str | None, typer.Argument(help="A dataset by name, or leave out and give your own files.")]
Out = Annotated[Path, typer.Option("--out", help="Folder for the results.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of everything random.")]
Settings = Annotated[list[str] | None, typer.Option("--set", help="A setting as key=value; may be repeated.")]
Nodes = Annotated[Path | None, typer.Option("--nodes", help="CSV, TSV or Parquet, one row per node.")]
Edges = Annotated[Path | None, typer.Option("--edges", help="CSV, TSV, Parquet, edge list or .mtx, one row per edge.")]
GraphFile = Annotated[Path | None, typer.Option("--graph", help="A graph in one: .npz, .graphml, .gexf or an OGB folder.")]
Format = Annotated[str | None, typer.Option("--format", help="Of --nodes or --graph, where the name does not say.")]
EdgeFormat = Annotated[str | None, typer.Option("--edge-format", help="Of --edges: csv, tsv, parquet, edges or mtx.")]
NoHeader = Annotated[bool, typer.Option("--no-header", help="Tables begin with data; columns are called 1, 2, ...")]
SplitColumn = Annotated[str | None, typer.Option("--split-column", help="Column with train, val or test; 'split' by default.")]
Text = Annotated[list[str] | None, typer.Option("--text", help="Column to take as a bag of words; may be repeated.")]
Weight = Annotated[str | None, typer.Option("--weight", help="Edge weight column; accepted and not used.")]
Id = Annotated[str | None, typer.Option("--id", help="Column with the node's id.")]
Label = Annotated[str | None, typer.Option("--label", help="Column with the label; empty cells are unlabelled.")]
Source = Annotated[str | None, typer.Option("--source", help="Column with an edge's first end.")]
Target = Annotated[str | None, typer.Option("--target", help="Column with an edge's second end.")]
Directed = Annotated[bool, typer.Option("--directed", help="An edge means source to target only.")]
PROTOCOLS = (
    "Splits: geom-gcn, platonov, public, linkx (where the dataset has them), authors, random:0.5/0.25/0.25, "
    "per-class:20. Default: the dataset's own."
)
Device = Annotated[str, typer.Option("--device", help="cpu, the only device this version computes on.")]
