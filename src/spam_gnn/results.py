"""What a finished run says: tables, metrics and the report, from a trained model and its graph."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from spam_gnn.calibration import Calibration, fit_calibration
from spam_gnn.contract import NodeModel
from spam_gnn.evaluation.metrics import edge_sign_auroc, node_metrics, noise_auroc, reliability
from spam_gnn.files import write_durably
from spam_gnn.graph import Graph
from spam_gnn.inference.layerwise import predict_layerwise
from spam_gnn.memory_plan import MOST_EDGES
from spam_gnn.model import SpaM
from spam_gnn.posterior.base import ABSENT, NEGATIVE, POSITIVE, SignDistribution
from spam_gnn.prediction import Prediction
from spam_gnn.report.content import EdgeTable, NodeTable, ReportContent
from spam_gnn.report.page import render_report
from spam_gnn.resources import peak_memory_mb
from spam_gnn.training import TrainState

VERDICTS = ("opposes", "noise", "helps")
RESULTS = ("history.csv", "predictions.csv", "edges.csv", "report.html")  # what `write_results` leaves in a folder
ALL = slice(None)
_LINES, _CELLS = 200_000, 2_000_000  # of a table, written at a time


@dataclass(frozen=True, eq=False)
class Judged:
    """What a model says of a graph, as it sees it: nodes, and edges where it judges them."""

    graph: Graph
    prediction: Prediction
    distribution: SignDistribution | None


def judge(model: NodeModel, graph: Graph, seed: int, *, in_pieces: bool = False) -> Judged:
    """Predict all at once, or layer by layer (`in_pieces`) with a model that can; the numbers are the same."""
    if in_pieces and isinstance(model, SpaM):
        found = predict_layerwise(model, graph, seed)
        return Judged(model.structure(graph), found.prediction, found.distribution)
    prepared = model.prepare(graph)
    return Judged(prepared, model.predict(prepared, seed), model.edge_distribution(prepared))


def node_names(graph: Graph, rows: slice = ALL) -> list[str]:
    """The user's ids, or 0 .. n-1, of a range of nodes."""
    if graph.node_names is not None:
        return list(graph.node_names[rows])
    return [str(i) for i in range(graph.num_nodes)[rows]]


def prediction_table(prediction: Prediction, graph: Graph, rows: slice = ALL) -> pd.DataFrame:
    """id, prediction, p_<class> for each class, total and structural uncertainty (nats); of a range of nodes."""
    prediction = prediction if rows == ALL else replace(prediction, log_prob=prediction.log_prob[:, rows])
    probability = prediction.probability.numpy()
    labels = prediction.label.tolist()
    return pd.DataFrame({
        "id": node_names(graph, rows), "prediction": [graph.class_names[c] for c in labels],
        **{f"p_{name}": probability[:, c] for c, name in enumerate(graph.class_names)},
        "total_uncertainty": prediction.total.numpy(), "structural_uncertainty": prediction.structural.numpy(),
    })  # fmt: skip


def listed_edges(graph: Graph, first: int = 0, last: int | None = None) -> torch.Tensor:
    """Positions of the edges a table lists: each undirected pair once, each directed edge; of a range of stored edges."""
    last = graph.num_edges if last is None else min(last, graph.num_edges)
    if graph.directed:
        return torch.arange(first, last)
    ends = graph.edge_index[:, first:last]
    return first + torch.nonzero(ends[0] < ends[1]).reshape(-1)


def _excerpt(graph: Graph, distribution: SignDistribution | None) -> tuple[Graph, SignDistribution | None, list[str]]:
    """The edges that measures and the report look at: all, or of very many every so manyth, which is then said."""
    step = -(-graph.num_edges // MOST_EDGES)
    if step <= 1:
        return graph, distribution, []
    part = slice(None, None, step)
    shown = replace(
        graph, edge_index=graph.edge_index[:, part], edge_sign=None if graph.edge_sign is None else graph.edge_sign[part]
    )
    judged = None if distribution is None else SignDistribution(distribution.log_prob[part], distribution.node_logits)
    return shown, judged, [f"edge measures and the report look at one in {step} stored edges; edges.csv lists all"]


def edge_table(
    distribution: SignDistribution | None, graph: Graph, *, names: bool = True, listed: torch.Tensor | None = None
) -> pd.DataFrame:
    """source, target, p_negative, p_absent, p_positive, verdict, and the true sign where it is known; of all listed edges."""
    listed = listed_edges(graph) if listed is None else listed
    ends = graph.edge_index[:, listed]
    if distribution is None:
        probability = torch.tensor([0.0, 0.0, 1.0]).expand(listed.numel(), 3)
    else:
        probability = distribution.log_prob[listed].exp()
    frame = pd.DataFrame({
        "source": _called(graph, ends[0]) if names else ends[0].numpy(),
        "target": _called(graph, ends[1]) if names else ends[1].numpy(),
        "p_negative": probability[:, NEGATIVE].numpy(), "p_absent": probability[:, ABSENT].numpy(),
        "p_positive": probability[:, POSITIVE].numpy(),
    })  # fmt: skip
    frame["verdict"] = np.array(VERDICTS, dtype=object)[probability.argmax(-1).numpy()]
    if graph.edge_sign is not None:
        frame["true_sign"] = graph.edge_sign[listed].numpy()
    return frame


def _called(graph: Graph, nodes: torch.Tensor) -> list[str]:
    names = graph.node_names
    return [str(i) if names is None else names[i] for i in nodes.tolist()]


def _write_csv(path: Path, frames: Iterable[pd.DataFrame]) -> None:
    """One file of consecutive pieces of a table, so that no more than a piece is ever text in memory."""
    texts = (frame.to_csv(index=False, float_format="%.6g", header=place == 0) for place, frame in enumerate(frames))
    write_durably(path, (text.encode() for text in texts))


def write_predictions(path: Path, prediction: Prediction, graph: Graph) -> None:
    """The prediction table of all nodes as CSV."""
    lines = max(1, min(_LINES, _CELLS // graph.num_classes))  # with many classes a line is long, and its text is held at once
    begins = range(0, max(graph.num_nodes, 1), lines)
    _write_csv(path, (prediction_table(prediction, graph, slice(a, min(a + lines, graph.num_nodes))) for a in begins))


def _number(value: float) -> float | None:
    """JSON has no NaN; an undefined number is null."""
    return value if math.isfinite(value) else None


def write_results(
    folder: Path, model: NodeModel, title: str, graph: Graph, state: TrainState, split: int, seed: int, calibrate: bool,
    *, in_pieces: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Write history.csv, predictions.csv, report.html and, if the model judges edges, edges.csv; return the metrics.

    `in_pieces` predicts layer by layer, for a graph that is too large to be taken whole.
    """
    begun = time.perf_counter()
    judgement = judge(model, graph, seed, in_pieces=in_pieces)
    spent = time.perf_counter() - begun
    prepared, prediction, distribution = judgement.graph, judgement.prediction, judgement.distribution
    calibration = fit_calibration(prediction, graph.y, graph.val_mask) if calibrate else Calibration()
    prediction = calibration(prediction)
    edge_facts: dict[str, Any] = {"edge_sign_auroc": None, "edge_sign_auroc_against": "no posterior"}
    shown, judged, notes = _excerpt(prepared, distribution)
    if judged is not None:
        area, against = edge_sign_auroc(judged, shown)
        noise = noise_auroc(judged, shown)
        edge_facts = {
            "edge_sign_auroc": _number(area), "edge_sign_auroc_against": against,
            "noise_auroc": None if noise is None else _number(noise),
            "mean_p_absent": float(judged.probability[:, ABSENT].mean()) if graph.num_edges else None,
        }  # fmt: skip
    readings = model.believed()
    metrics: dict[str, Any] = {
        "dataset": graph.name, "model": title, "split": split, "seed": seed,
        "test": node_metrics(prediction, graph.y, graph.test_mask), "val": node_metrics(prediction, graph.y, graph.val_mask),
        "epochs": state.epoch, "best_epoch": state.best_epoch, "seconds": round(state.seconds, 3),
        "prediction_seconds": round(spent, 3),
        "peak_memory_mb": round(peak_memory_mb(), 1), "calibration": calibration.to_json(),
        "samples": prediction.log_prob.shape[0] - max(len(readings) - 1, 0), "readings": readings, "nodes": graph.num_nodes,
        "edges": graph.num_edges if graph.directed else graph.num_edges // 2,
        **edge_facts, "notes": [*graph.notes, *notes],
    }  # fmt: skip
    _write_csv(folder / "history.csv", [pd.DataFrame(state.history)])
    write_predictions(folder / "predictions.csv", prediction, graph)
    if distribution is not None:
        parts = (listed_edges(prepared, begin, begin + 2 * _LINES) for begin in range(0, prepared.num_edges or 1, 2 * _LINES))
        _write_csv(folder / "edges.csv", (edge_table(distribution, prepared, listed=part) for part in parts))
    page = render_report(report_content(metrics, prediction, judged, shown, state))
    write_durably(folder / "report.html", page.encode())
    return metrics


def _shares(readings: dict[str, float]) -> dict[str, str]:
    """How far each reading of the graph is believed, as the page says it."""
    shown = ", ".join(f"{name} {share:.0%}" for name, share in sorted(readings.items(), key=lambda item: -item[1]))
    return {"readings": shown} if len(readings) > 1 else {}


def report_content(
    metrics: dict[str, Any],
    prediction: Prediction,
    distribution: SignDistribution | None,
    graph: Graph,
    state: TrainState,
) -> ReportContent:
    """The run as the page shows it."""
    edges = edge_table(distribution, graph, names=False)
    test, label = graph.test_mask, prediction.label
    confusion = np.zeros((0, 0), dtype=np.int64)
    if bool(test.any()):
        cells = graph.y[test] * graph.num_classes + label[test]
        confusion = torch.bincount(cells, minlength=graph.num_classes**2).reshape(graph.num_classes, -1).numpy()
    columns = sorted({key for row in state.history for key in row} - {"learning_rate"})
    detection: dict[str, Any] = {}
    if metrics["edge_sign_auroc"] is not None:
        detection = {"AUROC of p(+1) - p(-1)": metrics["edge_sign_auroc"], "against": metrics["edge_sign_auroc_against"]}
        if metrics.get("noise_auroc") is not None:
            detection["AUROC of p(0) against planted noise"] = metrics["noise_auroc"]
    measured = sorted({*metrics["val"], *metrics["test"]})
    return ReportContent(
        title=graph.name,
        facts={**{key: str(metrics[key]) for key in ("dataset", "model", "split", "seed", "nodes", "edges", "epochs", "samples",
                                                     "seconds")},
               "peak memory": f"{metrics['peak_memory_mb']:.0f} MiB", **_shares(metrics["readings"])},
        metrics=[(name, metrics["val"].get(name), metrics["test"].get(name)) for name in measured],
        history={key: [row.get(key, float("nan")) for row in state.history] for key in columns},
        best_epoch=state.best_epoch,
        class_names=graph.class_names,
        confusion=confusion,
        reliability=reliability(prediction.probability[test], graph.y[test]) if bool(test.any()) else [],
        ece=metrics["test"].get("ece", float("nan")),
        edges=EdgeTable(
            source=edges["source"].to_numpy(), target=edges["target"].to_numpy(), directed=graph.directed,
            judged=distribution is not None, p_negative=edges["p_negative"].to_numpy(), p_absent=edges["p_absent"].to_numpy(),
            p_positive=edges["p_positive"].to_numpy(),
            truth=edges["true_sign"].to_numpy() if "true_sign" in edges else None,
        ),
        nodes=NodeTable(
            names=node_names(graph), prediction=label.numpy(), label=graph.y.numpy(),
            confidence=prediction.probability.max(-1).values.numpy(), total=prediction.total.numpy(),
            structural=prediction.structural.numpy(),
        ),
        edge_detection=detection,
        notes=list(graph.notes),
    )  # fmt: skip
