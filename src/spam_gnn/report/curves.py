"""The training curves: losses and scores by epoch, the kept epoch marked, one slider that reads both charts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from spam_gnn.report.axes import Scale, compact, frame, horizontal, polyline, value_scale, vertical, whole_percent
from spam_gnn.report.content import ReportContent
from spam_gnn.report.markup import escape, finite, number

_WIDTH, _HEIGHT = 480, 270
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 466, 26, 228
_MOST_POINTS = 400
_LABELS = {
    "loss": "total loss",
    "class": "classification part",
    "sparsity": "sparsity part",
    "structure": "structure part",
    "train_accuracy": "training accuracy",
    "val_accuracy": "validation accuracy",
    "test_accuracy": "test accuracy",
}
_SCORES = ("accuracy", "auroc", "auprc", "auc", "f1", "precision", "recall")


def thinned_history(content: ReportContent) -> dict[str, list[float | None]]:
    """The history with at most about _MOST_POINTS epochs, always including the last and the kept one."""
    epochs = list(content.history.get("epoch", ()))
    step = math.ceil(len(epochs) / _MOST_POINTS) or 1
    kept = [i for i, epoch in enumerate(epochs) if i % step == 0 or i == len(epochs) - 1 or epoch == content.best_epoch]
    return {name: finite([series[i] for i in kept], 6) for name, series in content.history.items()}


def training_curves(content: ReportContent) -> str:
    """The two charts and their slider, or a sentence that says why there are none."""
    history = thinned_history(content)
    epochs = [epoch for epoch in history.get("epoch", []) if epoch is not None]
    if not epochs:
        return '<p class="empty">No training history was recorded.</p>'
    names = [name for name, series in history.items() if name != "epoch" and any(v is not None for v in series)]
    scores = [name for name in names if any(part in name.lower() for part in _SCORES)]
    losses = [name for name in names if name not in scores]
    title = "Accuracy" if all("accuracy" in name for name in scores) else "Scores"
    figures = _chart("Loss", losses, history, content.best_epoch) if losses else ""
    figures += _chart(title, scores, history, content.best_epoch) if scores else ""
    start = epochs.index(content.best_epoch) if content.best_epoch in epochs else len(epochs) - 1
    slider = (
        '<div class="control epoch"><label for="epoch">Read the curves at epoch</label>'
        f'<input type="range" id="epoch" min="0" max="{len(epochs) - 1}" step="1" value="{start}">'
        f'<output for="epoch" id="epoch-shown">{epochs[start]:g}</output></div>'
    )
    return f'<div class="columns">{figures}</div>{slider}'


def _chart(title: str, names: Sequence[str], history: Mapping[str, list[float | None]], best: int | None) -> str:
    """One group of series on one pair of axes, with a legend that doubles as the readout."""
    epochs: list[Any] = history["epoch"]
    values = [v for name in names for v in history[name] if v is not None]
    x = Scale(min(epochs), max(epochs), _LEFT, _RIGHT)
    y = value_scale(values, _BOTTOM, _TOP)
    is_score = title != "Loss" and min(values) >= 0.0 and max(values) <= 1.0
    body = vertical(y, _LEFT, _RIGHT, y.ticks(5), whole_percent if is_score else compact)
    body += horizontal(x, _BOTTOM, "epoch", [t for t in x.ticks(6) if t == int(t)], compact)
    if best is not None and x.low <= best <= x.high:
        body += _marker(x(best), best)
    legend = []
    for rank, name in enumerate(names):
        points = [(x(e), y(v)) for e, v in zip(epochs, history[name], strict=True) if v is not None]
        if len(points) == 1:
            body += f'<circle class="point s{rank % 6}" cx="{points[0][0]:.1f}" cy="{points[0][1]:.1f}" r="3"/>'
        body += f'<path class="series s{rank % 6}" d="{polyline(points)}"/>'
        at_best = _value_at(history, name, best)
        legend.append(
            f'<li><svg class="key" viewBox="0 0 26 8" aria-hidden="true"><path class="series s{rank % 6}" d="M0 4H26"/>'
            f"</svg>{escape(_LABELS.get(name, name.replace('_', ' ')))}"
            f'<output for="epoch" data-series="{escape(name)}">{number(at_best)}</output></li>'
        )
    body += f'<path class="cursor" d="M0 {_TOP}V{_BOTTOM}" visibility="hidden"/>'
    span = f' data-left="{_LEFT}" data-right="{_RIGHT}" data-first="{x.low:g}" data-last="{x.high:g}"'
    note = " <small>logarithmic scale</small>" if y.log else ""
    picture = frame(_WIDTH, _HEIGHT, "chart curve", f"{title} by epoch", body, span)
    return f'<figure><h3>{title}{note}</h3>{picture}<ul class="legend">{"".join(legend)}</ul></figure>'


def _marker(x: float, epoch: int) -> str:
    """The line at the kept epoch; its label stays inside the plot."""
    anchor = "start" if x < (_LEFT + _RIGHT) / 2 else "end"
    shift = 5 if anchor == "start" else -5
    return (
        f'<path class="selected" d="M{x:.1f} {_TOP - 12}V{_BOTTOM}"/>'
        f'<text class="selected-label" x="{x + shift:.1f}" y="{_TOP - 5}" text-anchor="{anchor}">'
        f"kept: epoch {epoch}</text>"
    )


def _value_at(history: Mapping[str, list[float | None]], name: str, epoch: int | None) -> float | None:
    """The value at the kept epoch, or the last one."""
    epochs = history["epoch"]
    return history[name][epochs.index(epoch) if epoch in epochs else -1]
