"""`ReportContent`: everything the report page shows, as plain Python and numpy values.

The page is a view of this value alone: it needs no model, no tensor and no run folder, so it can be rendered again
later, and tested without training anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# The three states of an edge, as the model writes them, and what the page calls them.
VERDICTS: dict[int, str] = {1: "helps", 0: "noise", -1: "opposes"}


class MetricRow(NamedTuple):
    """One line of the metrics table; a plain (name, validation, test) tuple does as well."""

    name: str
    validation: float | None
    test: float | None


class ReliabilityBin(NamedTuple):
    """The nodes of one confidence bin; a plain (confidence, accuracy, nodes) tuple does as well."""

    confidence: float
    accuracy: float
    nodes: int


@dataclass(frozen=True, eq=False)
class EdgeTable:
    """The posterior of m edges: undirected pairs listed once, or directed edges.

    Args:
        source, target: (m,) node indices.
        p_negative, p_absent, p_positive: (m,) probabilities of opposes (-1), noise (0) and helps (+1).
        directed: whether an edge means source -> target only.
        truth: (m,) true signs in {-1, 0, 1} where they are known (planted data), otherwise None.
        judged: False for a model without a posterior, which takes every edge as given; the page then leaves edges out.
    """

    source: NDArray[np.integer]
    target: NDArray[np.integer]
    p_negative: NDArray[np.floating]
    p_absent: NDArray[np.floating]
    p_positive: NDArray[np.floating]
    directed: bool = False
    truth: NDArray[np.integer] | None = None
    judged: bool = True

    def __post_init__(self) -> None:
        columns = (self.target, self.p_negative, self.p_absent, self.p_positive, self.truth)
        if any(column is not None and len(column) != len(self.source) for column in columns):
            raise ValueError("EdgeTable: every column must have one entry per edge")
        if self.truth is not None and not np.isin(self.truth, list(VERDICTS)).all():
            raise ValueError("EdgeTable: truth must be -1, 0 or 1")

    @property
    def count(self) -> int:
        return len(self.source)

    @cached_property
    def verdict(self) -> NDArray[np.int8]:
        """(m,): the most probable state of each edge; a tie counts as noise, the claim that says least."""
        stacked = np.nan_to_num(np.stack([self.p_absent, self.p_positive, self.p_negative]), nan=0.0)
        return np.array([0, 1, -1], dtype=np.int8)[stacked.argmax(0)]

    def probability(self, state: int) -> NDArray[np.floating]:
        """(m,): the probability of one of the three states."""
        return {-1: self.p_negative, 0: self.p_absent, 1: self.p_positive}[state]

    def share(self, state: int) -> float:
        """The share of edges whose verdict is `state`; NaN without edges."""
        return float((self.verdict == state).mean()) if self.count else float("nan")


@dataclass(frozen=True, eq=False)
class NodeTable:
    """What the model says of n nodes.

    Args:
        names: n names, as the user wrote them.
        prediction: (n,) predicted class.
        label: (n,) known class, -1 where unknown.
        confidence: (n,) probability of the predicted class.
        total: (n,) entropy of the averaged prediction, in nats.
        structural: (n,) the part of `total` that is due to not knowing the graph, in nats.
    """

    names: Sequence[str]
    prediction: NDArray[np.integer]
    label: NDArray[np.integer]
    confidence: NDArray[np.floating]
    total: NDArray[np.floating]
    structural: NDArray[np.floating]

    def __post_init__(self) -> None:
        columns = (self.prediction, self.label, self.confidence, self.total, self.structural)
        if any(len(column) != len(self.names) for column in columns):
            raise ValueError("NodeTable: every column must have one entry per node")

    @property
    def count(self) -> int:
        return len(self.names)


@dataclass(frozen=True, eq=False)
class ReportContent:
    """The whole page. Non-finite and missing numbers are allowed anywhere and shown as a dash.

    Args:
        title: the heading, usually the dataset's name.
        facts: what was run (dataset, model, split, seed, epochs, seconds, ...), in the order to show.
        metrics: rows (name, validation, test); the row called "accuracy" feeds the headline.
        history: "epoch" and any of "loss", "class", "sparsity", "structure", "train_accuracy", "val_accuracy", ...;
            every series as long as "epoch", NaN where it was not measured.
        best_epoch: the epoch (a value of history["epoch"]) whose weights were kept, or None.
        class_names: C names.
        confusion: (C, C) counts on the test nodes, rows true, columns predicted; empty without test labels.
        reliability: (mean confidence, accuracy, nodes) per bin of the test nodes.
        ece: expected calibration error of those nodes; NaN without test labels.
        edges: the edge posterior.
        nodes: the predictions.
        edge_detection: facts on how well the posterior finds known noise or signs ("AUROC", "against", ...).
        notes: sentences the reader should know, such as what was dropped from the input.
    """

    title: str
    facts: Mapping[str, str]
    metrics: Sequence[MetricRow | tuple[str, float | None, float | None]]
    history: Mapping[str, Sequence[float]]
    best_epoch: int | None
    class_names: Sequence[str]
    confusion: NDArray[np.integer]
    reliability: Sequence[ReliabilityBin | tuple[float, float, int]]
    ece: float
    edges: EdgeTable
    nodes: NodeTable
    edge_detection: Mapping[str, float | str] = field(default_factory=dict)
    notes: Sequence[str] = ()

    def __post_init__(self) -> None:
        epochs = len(self.history.get("epoch", ()))
        if any(len(series) != epochs for series in self.history.values()):
            raise ValueError("ReportContent: every history series must be as long as history['epoch']")
        classes = len(self.class_names)
        if self.confusion.size and self.confusion.shape != (classes, classes):
            raise ValueError(f"ReportContent: confusion is {self.confusion.shape}, expected ({classes}, {classes})")
        ends = (self.edges.source, self.edges.target)
        if self.edges.count and not all(end.min() >= 0 and end.max() < self.nodes.count for end in ends):
            raise ValueError("ReportContent: an edge refers to a node that is not in `nodes`")

    def metric(self, name: str) -> MetricRow:
        """The row of that name, whatever its case; a row of None if there is none."""
        for row in self.metrics:
            if row[0].casefold() == name.casefold():
                return MetricRow(*row)
        return MetricRow(name, None, None)
