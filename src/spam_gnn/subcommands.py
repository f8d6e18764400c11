"""The researcher's commands (`reproduce`, `tune`), `doctor`, and those with commands of their own (`bench`, `datasets`)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

bench = typer.Typer(no_args_is_help=True, help="Measure this machine.")


@bench.command("speed")
def bench_speed(
    graphs: Annotated[str, typer.Option("--graphs", help="Names, such as texas,squirrel,random:1e6; empty for a set.")] = "",
    repeats: Annotated[int, typer.Option("--repeats", min=1, help="Rounds, in which every model takes its turn.")] = 15,
    threads: Annotated[int, typer.Option("--threads", min=1, help="Threads for all models.")] = 1,
    memory: Annotated[bool, typer.Option("--memory", help="Also peak memory, in a process of its own.")] = False,
    kernel: Annotated[str, typer.Option("--kernel", help="auto, fused, csr or torch.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """SpaM beside PyG's GCN and GAT: seconds of a training epoch and a prediction, and their ratios.

    Example: `spam-gnn bench speed --graphs texas,squirrel --json`
    """
    from spam_gnn.commands.bench import run_speed

    run_speed(graphs, repeats, threads, memory, kernel, as_json)


datasets_app = typer.Typer(help="List, show, check and fetch benchmark datasets.", invoke_without_command=True)
Json = Annotated[bool, typer.Option("--json", help="Print data instead of a table.")]
Name = Annotated[str, typer.Argument(help="A dataset by name.")]


@datasets_app.callback()
def datasets(context: typer.Context, json: Json = False) -> None:
    """All datasets by name, with what is present on this machine.

    Examples: `spam-gnn datasets`, `spam-gnn datasets show texas`, `spam-gnn datasets check`
    """
    if context.invoked_subcommand is None:
        from spam_gnn.commands.datasets import run_list

        run_list(json)


@datasets_app.command("show")
def datasets_show(name: Name, json: Json = False) -> None:
    """Statistics measured on the files, beside the paper's table, and why they differ.

    Example: `spam-gnn datasets show minesweeper`
    """
    from spam_gnn.commands.datasets import run_show

    run_show(name, json)


@datasets_app.command("check")
def datasets_check(
    names: Annotated[list[str] | None, typer.Argument(help="Datasets; all without any.")] = None, json: Json = False
) -> None:
    """Verify files by SHA-256 and figures by measuring; exit code 2 if one is wrong.

    Example: `spam-gnn datasets check texas cora`
    """
    from spam_gnn.commands.datasets import run_check

    run_check(names or [], json)


@datasets_app.command("fetch")
def datasets_fetch(name: Name) -> None:
    """Fetch a dataset's missing files into the cache, over verified TLS.

    Example: `spam-gnn datasets fetch roman-empire`
    """
    from spam_gnn.commands.datasets import run_fetch

    run_fetch(name)


def reproduce(
    name: Annotated[str | None, typer.Argument(help="A study, or 'all'; a list without it.")] = None,
    store: Annotated[Path, typer.Option("--store", help="Folder of runs; what is there is not done again.")] = Path("runs"),
    out: Annotated[Path, typer.Option("--out", help="Folder of tables and figures.")] = Path("results"),
    page: Annotated[Path, typer.Option("--page", help="The page assembled of all studies in --out.")] = Path("RESULTS.md"),
    workers: Annotated[int, typer.Option("--workers", min=1, help="Processes, one thread each.")] = 1,
    cluster: Annotated[str | None, typer.Option("--cluster", help="Address of a dask scheduler, instead of --workers.")] = None,
    models: Annotated[str, typer.Option("--models", help="Only these systems, such as spam,gcn.")] = "",
    datasets: Annotated[str, typer.Option("--datasets", help="Only these datasets, such as texas,cornell.")] = "",
    splits: Annotated[int | None, typer.Option("--splits", min=1, help="Only the first splits (or seeds).")] = None,
    time_limit: Annotated[float, typer.Option("--time-limit", help="Seconds of computing a run may take.")] = 3600.0,
    memory_limit: Annotated[float | None, typer.Option("--memory-limit", help="GiB a run may take; its share else.")] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Try failed runs again.")] = False,
    render_only: Annotated[bool, typer.Option("--render-only", help="Run nothing; render what is there.")] = False,
    from_records: Annotated[bool, typer.Option("--from-records", help="Render from --out's records; no store.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be run.")] = False,
) -> None:
    """Measure a table or figure of the paper: all its runs, resumable, then Markdown, LaTeX, CSV and figures.

    Examples: `spam-gnn reproduce table-main --workers 2`, `spam-gnn reproduce table-main --models spam,gcn --datasets texas`
    """
    from spam_gnn.commands.reproduce import ReproduceRequest, run_reproduce

    run_reproduce(ReproduceRequest(
        name, store, out, page, workers, cluster, models, datasets, splits, time_limit, memory_limit, retry_failed,
        render_only, from_records, dry_run,
    ))  # fmt: skip


def tune(
    model: Annotated[str, typer.Argument(help="A system by name; see `spam-gnn models`.")],
    dataset: Annotated[str, typer.Argument(help="A dataset by name.")],
    trials: Annotated[int, typer.Option("--trials", min=1, help="Choices of settings, the defaults among them.")] = 30,
    splits: Annotated[int, typer.Option("--splits", min=1, help="Splits whose validation accuracy is averaged.")] = 3,
    epochs: Annotated[int, typer.Option("--epochs", min=1, help="Most epochs of a run.")] = 200,
    seed: Annotated[int, typer.Option("--seed", help="Of the choices.")] = 0,
    store: Annotated[Path, typer.Option("--store", help="Folder of runs; what is there is not done again.")] = Path("runs"),
    out: Annotated[Path, typer.Option("--out", help="Folder of chosen settings.")] = Path("studies"),
    time_limit: Annotated[float, typer.Option("--time-limit", help="Seconds a run may take.")] = 3600.0,
) -> None:
    """Choose a system's settings for a dataset on validation nodes, with the same budget for every system; resumable.

    Example: `spam-gnn tune spam texas --trials 30`
    """
    from spam_gnn.commands.tune import run_tune
    from spam_gnn.experiments.tune import TuneBudget

    run_tune(model, dataset, store, out, TuneBudget(trials, splits, epochs, min(60, epochs), seed), time_limit)


def doctor(json: Annotated[bool, typer.Option("--json", help="Print data instead of a table.")] = False) -> None:
    """Versions, threads, memory, data folders, and a self-test."""
    from spam_gnn.commands.doctor import run_doctor

    run_doctor(json)
