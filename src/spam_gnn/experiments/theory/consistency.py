"""Posterior consistency (paper Theorem "Posterior consistency of signed edges"): q(z_ij) -> p*(z_ij | Y_i, Y_j) as labels grow.

On a CSBM the limit is known: of the edges within a class a share p*(+1) is there for that reason and the rest is noise; of the
edges between classes a share p*(-1) opposes and the rest is noise. Measured against the number of labels: how well q ranks true
signs, whether its probabilities are calibrated, and its mean distance from p*. The encoder is the package's (`belief`) or the
paper's (`gcn`, same network otherwise).
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from spam_gnn.config import SpaMConfig
from spam_gnn.data.splits import few_labels
from spam_gnn.data.synthetic import csbm
from spam_gnn.evaluation.metrics import auroc, edge_sign_auroc, expected_calibration_error
from spam_gnn.experiments import drawing
from spam_gnn.graph import Graph
from spam_gnn.model import SpaM
from spam_gnn.training import TrainConfig, fit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CLASSES, HOMOPHILY, NOISE, NODES = 3, 0.5, 0.2, 900
LABELS = (2, 5, 10, 25, 50, 100, 200)  # of each class
ENCODERS = ("belief", "gcn")


@dataclass(frozen=True)
class Point:
    """One encoder at one number of labels: means and standard deviations over seeds."""

    encoder: str
    labels: int
    auroc: float
    auroc_std: float
    ece: float
    distance: float
    distance_std: float


@dataclass(frozen=True)
class Consistency:
    """The finding, and the AUROC that p* itself reaches on the same edges."""

    seeds: int
    limit_auroc: float
    points: tuple[Point, ...]


def limit_posterior(graph: Graph, classes: int = CLASSES, homophily: float = HOMOPHILY, noise: float = NOISE) -> Tensor:
    """(m, 3): p*(z | Y_i, Y_j) of an edge of `csbm`; with three classes every pair of different classes may oppose."""
    related, chance = 1.0 - noise, noise / classes
    alike = related * homophily / (related * homophily + chance)
    opposed = related * (1.0 - homophily) / (related * (1.0 - homophily) + noise - chance)
    same = graph.y[graph.edge_index[0]] == graph.y[graph.edge_index[1]]
    return torch.where(same.unsqueeze(1), torch.tensor([0.0, 1.0 - alike, alike]), torch.tensor([opposed, 1.0 - opposed, 0.0]))


def measure(
    labels: tuple[int, ...] = LABELS,
    seeds: int = 3,
    nodes: int = NODES,
    epochs: int = 150,
    encoders: tuple[str, ...] = ENCODERS,
) -> Consistency:
    """Train at every number of labels; `nodes` must leave some to validate on."""
    points, limits = [], []
    for encoder in encoders:
        for count in labels:
            rows = []
            for seed in range(seeds):
                graph = csbm(nodes=nodes, classes=CLASSES, homophily=HOMOPHILY, noise=NOISE, seed=seed)
                graph = few_labels(graph, seed, count, max(5, nodes // 60))
                rows.append(_one(graph, encoder, epochs, seed))
                limits.append(_auroc(limit_posterior(graph), graph))
            area, ece, distance = (list(column) for column in zip(*rows, strict=True))
            points.append(Point(encoder, count, statistics.fmean(area), _std(area), statistics.fmean(ece),
                                statistics.fmean(distance), _std(distance)))  # fmt: skip
    return Consistency(seeds, statistics.fmean(limits), tuple(points))


def _std(values: list[float]) -> float:
    return statistics.stdev(values) if len(values) > 1 else 0.0


def _one(graph: Graph, encoder: str, epochs: int, seed: int) -> tuple[float, float, float]:
    """AUROC of p(+1) - p(-1), calibration error of the three sign probabilities, mean l1 distance from p*."""
    config = SpaMConfig(posterior=encoder, hidden=32)  # pyright: ignore[reportArgumentType]
    model = SpaM(graph.num_features, graph.num_classes, config, seed)
    fit(model, graph, TrainConfig(epochs=epochs), seed)
    prepared = model.prepare(graph)
    distribution = model.edge_distribution(prepared)
    assert distribution is not None
    assert prepared.edge_sign is not None
    q = distribution.probability
    area, _ = edge_sign_auroc(distribution, prepared)
    distance = float((q - limit_posterior(prepared)).abs().sum(1).mean())
    return area, expected_calibration_error(q, prepared.edge_sign.long() + 1), distance


def _auroc(probability: Tensor, graph: Graph) -> float:
    assert graph.edge_sign is not None
    return auroc((graph.edge_sign > 0).numpy(), (probability[:, 2] - probability[:, 0]).numpy())


def held(finding: Consistency) -> bool:
    """Some encoder comes within 0.1 of p*, in l1 distance of at most 2, at the largest number of labels."""
    most = max(p.labels for p in finding.points)
    return min(p.distance for p in finding.points if p.labels == most) < 0.1


def verdict(finding: Consistency) -> str:
    parts = []
    for encoder in dict.fromkeys(p.encoder for p in finding.points):
        mine = [p for p in finding.points if p.encoder == encoder]
        first, last = mine[0], mine[-1]
        falls = last.distance < first.distance - max(first.distance_std, last.distance_std)
        parts.append(
            f"with the {encoder} encoder the distance from p* (0 to 2) went from {first.distance:.2f} to {last.distance:.2f} "
            f"({first.labels} to {last.labels} labels per class; it {'falls' if falls else 'does not fall'}), the AUROC from "
            f"{first.auroc:.3f} to {last.auroc:.3f} (p* itself: {finding.limit_auroc:.3f})"
        )
    return "Convergence to p* was " + ("" if held(finding) else "not ") + "reached: " + "; ".join(parts) + "."


def section(finding: Consistency) -> str:
    rows = "\n".join(
        f"| {p.encoder} | {p.labels} | {p.auroc:.3f} ± {p.auroc_std:.3f} | {p.ece:.3f} "
        f"| {p.distance:.3f} ± {p.distance_std:.3f} |"
        for p in finding.points
    )
    return (
        f"CSBM of {CLASSES} classes, homophily {HOMOPHILY:g}, {100 * NOISE:g} % noise edges, mean and standard deviation over "
        f"{finding.seeds} seeds. Ranking by p* itself has AUROC {finding.limit_auroc:.3f}.\n\n"
        "| encoder | labels per class | AUROC of the sign | ECE of q | l1 distance from p* |\n|---|---|---|---|---|\n"
        + rows + "\n"
    )


def draw(finding: Consistency) -> Figure:
    figure, (left, middle, right) = drawing.canvas(3, width=3.6)
    for place, encoder in enumerate(dict.fromkeys(p.encoder for p in finding.points)):
        mine = [p for p in finding.points if p.encoder == encoder]
        x = [p.labels for p in mine]
        drawing.curve(left, x, [p.auroc for p in mine], encoder, place, [p.auroc_std for p in mine])
        drawing.curve(middle, x, [p.ece for p in mine], encoder, place)
        drawing.curve(right, x, [p.distance for p in mine], encoder, place, [p.distance_std for p in mine])
    left.axhline(finding.limit_auroc, color="#999999", linestyle="--", linewidth=1.0, label="p* itself")
    for ax, title, y in ((left, "Ranking of signs", "AUROC"), (middle, "Calibration of q", "ECE of sign probabilities"),
                         (right, "Distance from the limit", "mean ||q - p*||$_1$")):  # fmt: skip
        drawing.at_ticks(ax, [p.labels for p in finding.points if p.encoder == finding.points[0].encoder], log=True)
        drawing.label(ax, title, "labels per class", y)
        ax.set_ylim(bottom=0.4 if ax is left else 0.0)
    drawing.legend(figure, left)
    return figure
