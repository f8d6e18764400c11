"""The command `spam-gnn`: parsing only. Each command imports what it needs, so that `--help` answers at once."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from spam_gnn.arguments import (
    PROTOCOLS,
    Dataset,
    Device,
    Directed,
    EdgeFormat,
    Edges,
    Format,
    GraphFile,
    Id,
    Label,
    Nodes,
    NoHeader,
    Out,
    Seed,
    Settings,
    Source,
    SplitColumn,
    Target,
    Text,
    Weight,
)
from spam_gnn.errors import BadInput, SpamError
from spam_gnn.subcommands import bench, datasets_app, doctor, reproduce, tune
from spam_gnn.version import __version__

app = typer.Typer(
    name="spam-gnn",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="Labels, honest probabilities and a verdict on every edge, for graphs whose edges cannot be trusted.",
    epilog="Exit codes: 0 ok, 2 bad input, 3 too large for memory, 4 disk, 5 diverged, 6 runs failed, 70 our bug, "
    "130/143 interrupted.",
)


app.add_typer(bench, name="bench")
app.add_typer(datasets_app, name="datasets")
app.command()(reproduce)
app.command()(tune)
app.command()(doctor)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"spam-gnn {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    del version
    if debug:
        os.environ["SPAM_GNN_DEBUG"] = "1"


@app.command()
def demo(out: Out = Path("demo-run"), seed: Seed = 0) -> None:
    """Train on handwritten digits with planted wrong edges, beside two baselines; about a minute.

    Example: `spam-gnn demo --out demo-run`, then open demo-run/report.html.
    """
    from spam_gnn.commands.demo import run_demo

    run_demo(out, seed)


def _with_kernel(settings: list[str], kernel: str | None, model: str) -> list[str]:
    """What --set and --kernel ask for together."""
    if kernel is not None and model != "spam":
        raise BadInput(f"--kernel: found '{kernel}' for {model}; kernels belong to spam, leave it out")
    return settings if kernel is None else [*settings, f"kernel={kernel}"]


@app.command()
def train(
    dataset: Dataset = None,
    nodes: Nodes = None,
    edges: Edges = None,
    graph: GraphFile = None,
    format: Format = None,  # noqa: A002 - the option's own name
    edge_format: EdgeFormat = None,
    no_header: NoHeader = False,
    id: Id = None,  # noqa: A002 - the option's own name
    label: Label = None,
    split_column: SplitColumn = None,
    text: Text = None,
    source: Source = None,
    target: Target = None,
    weight: Weight = None,
    directed: Directed = False,
    split: Annotated[str, typer.Option("--split", help="Number of a split, or 'all' (split i with seed + i).")] = "0",
    protocol: Annotated[str | None, typer.Option("--protocol", help=PROTOCOLS)] = None,
    seed: Seed = 0,
    epochs: Annotated[int | None, typer.Option("--epochs", help="Most epochs to train.")] = None,
    model: Annotated[str, typer.Option("--model", help="A system by name; see `spam-gnn models`.")] = "spam",
    preset: Annotated[str, typer.Option("--preset", help="default or paper; of spam only.")] = "default",
    settings: Settings = None,
    kernel: Annotated[str | None, typer.Option("--kernel", help="auto, fused, csr or torch; of spam only.")] = None,
    beside: Annotated[str, typer.Option("--beside", help="References trained on the same splits, such as mlp,gcn.")] = "",
    calibrate: Annotated[bool, typer.Option("--calibrate", help="Fit temperatures on validation nodes.")] = False,
    device: Device = "cpu",
    out: Out = Path("spam-gnn-run"),
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted run in --out.")] = False,
    batch_size: Annotated[int, typer.Option("--batch-size", min=0, help="Seeds of a batch; 0: as memory allows.")] = 0,
    neighbours: Annotated[str, typer.Option("--neighbours", help="Sampled per hop in batches, such as 10,5; -1: all.")] = "",
    clusters: Annotated[int, typer.Option("--clusters", min=0, help="Parts that METIS cuts batches from.")] = 0,
    workers: Annotated[int, typer.Option("--workers", min=1, help="Processes on this machine.")] = 1,
    together: Annotated[int, typer.Option("--together", min=0, help="Batches per step; 0: one per worker.")] = 0,
) -> int:
    """Train SpaM, or a competing system, and write a run folder: weights, metrics, predictions, edges, report.

    Examples: `spam-gnn train texas --split all --beside mlp,tuned-gcn`

    `spam-gnn train cora --model gat --set heads=4`

    `spam-gnn train --nodes nodes.csv --edges edges.csv --label topic --out my-run`
    """
    from spam_gnn.commands.parse import parse_batches
    from spam_gnn.commands.planning import refuse_early, share_of_memory

    workers = int(os.environ.get("WORLD_SIZE", workers))
    chosen = _with_kernel(settings or [], kernel, model)
    batches, there = parse_batches(batch_size, neighbours, clusters, together, workers), share_of_memory(workers)
    if model == "spam" and not resume:
        refuse_early(graph, preset, chosen, batches, there)

    from spam_gnn.commands.options import GraphOptions
    from spam_gnn.commands.train import TrainRequest, run_training

    return run_training(TrainRequest(
        graph=GraphOptions.of(locals()), split=split, protocol=protocol, seed=seed, epochs=epochs, preset=preset, model=model,
        settings=chosen, beside=beside, calibrate=calibrate, device=device, out=out, resume=resume, batches=batches,
        there=there, workers=workers, arguments=tuple(sys.argv[1:]),
    ))  # fmt: skip


@app.command()
def models(json: Annotated[bool, typer.Option("--json", help="Print data instead of a table.")] = False) -> None:
    """List the systems that `--model` and `--beside` take.

    Example: `spam-gnn models --json`
    """
    from spam_gnn.commands.models import run_models

    run_models(json)


@app.command()
def inspect(
    dataset: Dataset = None,
    nodes: Nodes = None,
    edges: Edges = None,
    graph: GraphFile = None,
    format: Format = None,  # noqa: A002 - the option's own name
    edge_format: EdgeFormat = None,
    no_header: NoHeader = False,
    id: Id = None,  # noqa: A002 - the option's own name
    label: Label = None,
    split_column: SplitColumn = None,
    text: Text = None,
    source: Source = None,
    target: Target = None,
    weight: Weight = None,
    directed: Directed = False,
    split: Annotated[int, typer.Option("--split", help="Number of a dataset's split.")] = 0,
    seed: Seed = 0,
    json: Annotated[bool, typer.Option("--json", help="Print data instead of a table.")] = False,
) -> None:
    """Print what is understood of a graph and what looks wrong, before training.

    Example: `spam-gnn inspect --nodes nodes.csv --edges edges.csv --label topic`
    """
    from spam_gnn.commands.inspect import run_inspect
    from spam_gnn.commands.options import GraphOptions

    run_inspect(GraphOptions.of(locals()), split, seed, json)


@app.command()
def convert(
    dataset: Dataset = None,
    nodes: Nodes = None,
    edges: Edges = None,
    graph: GraphFile = None,
    format: Format = None,  # noqa: A002 - the option's own name
    edge_format: EdgeFormat = None,
    no_header: NoHeader = False,
    id: Id = None,  # noqa: A002 - the option's own name
    label: Label = None,
    split_column: SplitColumn = None,
    text: Text = None,
    source: Source = None,
    target: Target = None,
    weight: Weight = None,
    directed: Directed = False,
    split: Annotated[int, typer.Option("--split", help="Number of a dataset's split.")] = 0,
    protocol: Annotated[str | None, typer.Option("--protocol", help=PROTOCOLS)] = None,
    seed: Seed = 0,
    out: Annotated[Path, typer.Option("--out", help="Folder to write; must not exist yet.")] = Path("converted-graph"),
) -> None:
    """Write a graph as a folder of arrays that are mapped into memory, for graphs larger than that.

    Example: `spam-gnn convert surrogate:snap-patents --out patents`, then `spam-gnn train --graph patents --batch-size 4096`
    """
    from spam_gnn.commands.convert import run_convert
    from spam_gnn.commands.options import GraphOptions

    run_convert(GraphOptions.of(locals()), split, protocol, seed, out)


@app.command()
def predict(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    dataset: Annotated[str | None, typer.Option("--dataset", help="Another dataset than the run's own.")] = None,
    nodes: Nodes = None,
    edges: Edges = None,
    graph: GraphFile = None,
    out: Annotated[Path | None, typer.Option("--out", help="CSV to write; standard output without it.")] = None,
) -> None:
    """Predict with a trained run: on its own graph, or on another with the same features.

    Example: `spam-gnn predict my-run --nodes new-nodes.csv --edges new-edges.csv --out predictions.csv`
    """
    from spam_gnn.commands.options import GraphOptions
    from spam_gnn.commands.use import run_predict

    run_predict(run, GraphOptions(dataset, graph, nodes, edges), out)


@app.command()
def explain(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    node: Annotated[str, typer.Argument(help="The node's id.")],
    samples: Annotated[int, typer.Option("--samples", help="Signed graphs to average over.")] = 64,
    json: Annotated[bool, typer.Option("--json", help="Print data instead of a table.")] = False,
) -> None:
    """Show what each neighbour of a node says and how far it is believed.

    Example: `spam-gnn explain demo-run 17`
    """
    from spam_gnn.commands.use import run_explain

    run_explain(run, node, samples, json)


def main() -> None:
    """Run the command; an expected error is one line on standard error and its exit code."""
    # pandas keeps strings with pyarrow where that is installed, whose own allocator sets a GiB aside: too much under a limit
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    try:
        code = app(standalone_mode=False)
    except SpamError as error:
        _fail(str(error), error.exit_code, error)
    except typer.Abort:
        _fail("interrupted", 130)
    except KeyboardInterrupt:
        _fail("interrupted; nothing was left half-written", 130)
    except MemoryError as error:
        _fail("out of memory; use fewer samples, a narrower model or a smaller graph", 3, error)
    except BrokenPipeError:
        os._exit(0)  # the reader of our output has gone; nothing is left to say
    except Exception as error:
        if isinstance(error, RuntimeError) and "can't allocate memory" in str(error):  # torch's way of saying MemoryError
            _fail("out of memory; use --batch-size, fewer samples or a narrower model", 3, error)
        if hasattr(error, "exit_code") and hasattr(error, "format_message"):  # the parser's own complaints
            _fail(" ".join(error.format_message().split()), BadInput.exit_code)  # pyright: ignore[reportAttributeAccessIssue]
        _fail(f"internal error, please report it: {type(error).__name__}: {error}", 70, error)
    sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str, code: int, error: BaseException | None = None) -> NoReturn:
    if error is not None and os.environ.get("SPAM_GNN_DEBUG"):
        raise error
    sys.stderr.write(f"spam-gnn: {' '.join(message.split())}\n")
    sys.exit(code)


if __name__ == "__main__":
    main()
