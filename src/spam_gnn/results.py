"""What a finished run says: tables, metrics and the report, from a trained model and its graph."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from spam_gnn.contract import NodeModel
from spam_gnn.evaluation.metrics import edge_sign_auroc, node_metrics, noise_auroc, reliability
from spam_gnn.files import write_durably
from spam_gnn.graph import Graph
from spam_gnn.posterior.base import ABSENT, NEGATIVE, POSITIVE, SignDistribution
from spam_gnn.prediction import Prediction, fit_temperature
from spam_gnn.report.content import EdgeTable, NodeTable, ReportContent
from spam_gnn.report.page import render_report
from spam_gnn.resources import peak_memory_mb
from spam_gnn.training import TrainState

VERDICTS = ("opposes", "noise", "helps")


def node_names(graph: Graph) -> list[str]:
    """The user's ids, or 0 .. n-1."""
    return list(graph.node_names) if graph.node_names is not None else [str(i) for i in range(graph.num_nodes)]


def prediction_table(prediction: Prediction, graph: Graph) -> pd.DataFrame:
    """id, prediction, p_<class> for each class, confidence, total and structural uncertainty (nats)."""
    probability = prediction.probability.numpy()
    labels = prediction.label.tolist()
    frame = pd.DataFrame({"id": node_names(graph), "prediction": [graph.class_names[c] for c in labels]})
    for c, name in enumerate(graph.class_names):
        frame[f"p_{name}"] = probability[:, c]
    frame["total_uncertainty"] = prediction.total.numpy()
    frame["structural_uncertainty"] = prediction.structural.numpy()
    return frame


def listed_edges(graph: Graph) -> torch.Tensor:
    """Positions of the edges a table lists: each undirected pair once, each directed edge."""
    if graph.directed:
        return torch.arange(graph.num_edges)
    return torch.nonzero(graph.edge_index[0] < graph.edge_index[1]).reshape(-1)


def edge_table(distribution: SignDistribution | None, graph: Graph, *, names: bool = True) -> pd.DataFrame:
    """source, target, p_negative, p_absent, p_positive, verdict, and the true sign where it is known."""
    listed = listed_edges(graph)
    ends = graph.edge_index[:, listed]
    if distribution is None:
        probability = torch.tensor([0.0, 0.0, 1.0]).expand(listed.numel(), 3)
    else:
        probability = distribution.probability[listed]
    called = node_names(graph) if names else None
    frame = pd.DataFrame({
        "source": ends[0].tolist() if called is None else [called[i] for i in ends[0].tolist()],
        "target": ends[1].tolist() if called is None else [called[i] for i in ends[1].tolist()],
        "p_negative": probability[:, NEGATIVE].numpy(), "p_absent": probability[:, ABSENT].numpy(),
        "p_positive": probability[:, POSITIVE].numpy(),
    })  # fmt: skip
    frame["verdict"] = [VERDICTS[c] for c in probability.argmax(-1).tolist()]
    if graph.edge_sign is not None:
        frame["true_sign"] = graph.edge_sign[listed].numpy()
    return frame


def _write_csv(path: Path, frame: pd.DataFrame) -> None:
    text = io.StringIO()
    frame.to_csv(text, index=False, float_format="%.6g")
    write_durably(path, text.getvalue().encode())


def _number(value: float) -> float | None:
    """JSON has no NaN; an undefined number is null."""
    return value if math.isfinite(value) else None


def write_results(
    folder: Path, model: NodeModel, title: str, graph: Graph, state: TrainState, split: int, seed: int, calibrate: bool
) -> dict[str, Any]:
    """Write history.csv, predictions.csv, report.html and, if the model judges edges, edges.csv; return the metrics."""
    prepared = model.prepare(graph)
    prediction = model.predict(prepared, seed)
    temperature = fit_temperature(prediction, graph.y, graph.val_mask) if calibrate else 1.0
    prediction = prediction.tempered(temperature) if calibrate else prediction
    distribution = model.edge_distribution(prepared)
    edge_facts: dict[str, Any] = {"edge_sign_auroc": None, "edge_sign_auroc_against": "no posterior"}
    if distribution is not None:
        area, against = edge_sign_auroc(distribution, prepared)
        noise = noise_auroc(distribution, prepared)
        edge_facts = {
            "edge_sign_auroc": _number(area), "edge_sign_auroc_against": against,
            "noise_auroc": None if noise is None else _number(noise),
            "mean_p_absent": float(distribution.probability[:, ABSENT].mean()) if graph.num_edges else None,
        }  # fmt: skip
    metrics: dict[str, Any] = {
        "dataset": graph.name, "model": title, "split": split, "seed": seed,
        "test": node_metrics(prediction, graph.y, graph.test_mask), "val": node_metrics(prediction, graph.y, graph.val_mask),
        "epochs": state.epoch, "best_epoch": state.best_epoch, "seconds": round(state.seconds, 3),
        "peak_memory_mb": round(peak_memory_mb(), 1), "temperature": temperature,
        "samples": prediction.log_prob.shape[0], "nodes": graph.num_nodes, "edges": int(listed_edges(graph).numel()),
        **edge_facts, "notes": list(graph.notes),
    }  # fmt: skip
    _write_csv(folder / "history.csv", pd.DataFrame(state.history))
    _write_csv(folder / "predictions.csv", prediction_table(prediction, graph))
    if distribution is not None:
        _write_csv(folder / "edges.csv", edge_table(distribution, prepared))
    page = render_report(report_content(metrics, prediction, distribution, prepared, state))
    write_durably(folder / "report.html", page.encode())
    return metrics


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
                                                     "seconds")}, "peak memory": f"{metrics['peak_memory_mb']:.0f} MiB"},
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
