"""`spam-gnn predict` and `spam-gnn explain`: using a finished run."""

from __future__ import annotations

import difflib
import sys
from dataclasses import replace
from pathlib import Path

from spam_gnn.calibration import Calibration
from spam_gnn.commands.console import OUT, table
from spam_gnn.commands.options import GraphOptions
from spam_gnn.contract import NodeModel
from spam_gnn.errors import BadInput
from spam_gnn.explain import explain_node
from spam_gnn.graph import Graph
from spam_gnn.model import SpaM
from spam_gnn.results import judge, node_names, prediction_table, write_predictions
from spam_gnn.run import RunSettings, column_plan, load_run
from spam_gnn.source import DataSource


def _open(run: Path, source: DataSource | None = None) -> tuple[NodeModel, RunSettings, Calibration, Graph]:
    model, settings, calibration, classes = load_run(run)
    graph = (source or settings.source).open(settings.split, settings.seed, column_plan(run)).graph
    unknown = [name for name in graph.class_names if name not in classes]
    if unknown:
        raise BadInput(f"labels: found class '{unknown[0]}', new to the run in {run}; it knows {', '.join(classes)}")
    return model, settings, calibration, _with_classes(graph, classes)


def _with_classes(graph: Graph, classes: tuple[str, ...]) -> Graph:
    """Number the labels as the run does; a new file may hold fewer classes."""
    if graph.class_names == classes:
        return graph
    number = graph.y.new_tensor([classes.index(name) for name in graph.class_names] + [-1])
    return replace(graph, y=number[graph.y], num_classes=len(classes), class_names=classes)


def run_predict(run: Path, options: GraphOptions, out: Path | None) -> None:
    """Write the prediction table of a run's own graph, or of another one, whose columns line up with the run's by name."""
    source = None
    if options.named:
        own = load_run(run)[1].source
        source = replace(options.data_source(), columns=own.columns, directed=own.directed, formats=own.formats)
    model, settings, calibration, graph = _open(run, source)
    prediction = judge(model, graph, settings.seed, in_pieces=settings.batches.kind != "whole").prediction
    prediction = calibration(prediction)
    if out is None:
        sys.stdout.write(prediction_table(prediction, graph).to_csv(index=False, float_format="%.6g"))
    else:
        for note in graph.notes if source is not None else ():
            OUT.print(f"note: {note}", markup=False)
        write_predictions(out, prediction, graph)
        OUT.print(f"{graph.num_nodes} predictions in {out}")


def run_explain(run: Path, node: str, samples: int, as_json: bool) -> None:
    """Print one row per neighbour."""
    if samples < 1:
        raise BadInput(f"--samples: found {samples}; use 1 or more")
    model, settings, calibration, graph = _open(run)
    names = node_names(graph)
    if node not in names:
        near = difflib.get_close_matches(node, names, n=1)
        hint = f"did you mean '{near[0]}'? " if near else ""
        raise BadInput(f"node: found '{node}', not an id of {graph.name}; {hint}ids run from '{names[0]}' to '{names[-1]}'")
    if not isinstance(model, SpaM):
        raise BadInput(f"{run}: holds a {settings.name} model, which takes every edge as given and has nothing to explain; "
                       "explain a run trained with --model spam")  # fmt: skip
    place = names.index(node)
    frame = explain_node(model, graph, place, settings.seed, samples)
    if as_json:
        sys.stdout.write(f"{frame.to_json(orient='records')}\n")
        return
    prediction = model.predict(model.prepare(graph), settings.seed)
    prediction = calibration(prediction)
    label = int(prediction.label[place])
    OUT.print(
        f"node {node}: {graph.class_names[label]} with probability {float(prediction.probability[place, label]):.3f}; "
        f"uncertainty {float(prediction.total[place]):.3f} nats, of which {float(prediction.structural[place]):.3f} from the "
        f"edges and {float(prediction.disagreement[place]):.3f} from networks that differ"
    )
    if frame.empty:
        OUT.print(f"{node} has no neighbours that it listens to")
        return
    columns = ("neighbour", "verdict", "p_negative", "p_absent", "p_positive", "coefficient", "coefficient_std", "contribution")
    rows = [[str(v) if isinstance(v, str | int) else f"{v:.3f}" for v in row] for row in
            frame[list(columns)].itertuples(index=False)]  # fmt: skip
    header = ("neighbour", "verdict", "p(-1)", "p(0)", "p(+1)", "alpha", "± std", "weight")  # fits 80 columns
    table(f"neighbours of {node}, averaged over {samples} signed graphs", header, rows)
