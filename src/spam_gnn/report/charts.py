"""Pictures of calibration and of the edge posterior, as SVG that needs no script."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spam_gnn.report.axes import Scale, compact, frame, horizontal, mean_text, polyline, vertical
from spam_gnn.report.content import VERDICTS, EdgeTable, ReportContent
from spam_gnn.report.markup import count, is_number, number

_BINS = 40
_SMALL_BINS = 20
_SIGNS = {1: "p(+1)", 0: "p(0)", -1: "p(−1)"}

# Textures say what colours say: stripes oppose, dots are noise, plain helps. Referred to by page.css.
TEXTURES = (
    '<svg class="textures" aria-hidden="true" width="0" height="0"><defs>'
    '<pattern id="texture-opposes" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<rect class="ground opposes" width="6" height="6"/><rect class="pale" width="2" height="6"/></pattern>'
    '<pattern id="texture-noise" width="5" height="5" patternUnits="userSpaceOnUse">'
    '<rect class="ground noise" width="5" height="5"/><circle class="pale" cx="2.5" cy="2.5" r="1"/></pattern>'
    "</defs></svg>"
)


def reliability_diagram(content: ReportContent) -> str:
    """Accuracy against confidence, a dot per bin sized by its nodes, and the counts underneath."""
    bins = [(c, a, n) for c, a, n in content.reliability if n > 0 and is_number(c) and is_number(a)]
    if not bins:
        return '<p class="empty">No labelled test nodes, so calibration cannot be measured.</p>'
    left, right, top, bottom, floor = 52, 366, 12, 282, 352
    x, y = Scale(0, 1, left, right), Scale(0, 1, bottom, top)
    largest = max(n for _, _, n in bins)
    ticks = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    body = vertical(y, left, right, ticks, compact)
    body += f'<path class="ideal" d="M{x(0):.1f} {y(0):.1f}L{x(1):.1f} {y(1):.1f}"/>'
    body += f'<path class="trend" d="{polyline([(x(c), y(a)) for c, a, _ in bins])}"/>'
    for confidence, accuracy, size in bins:
        said = f"confidence {number(confidence, 2)}, accuracy {number(accuracy, 2)}, {count(int(size))} nodes"
        px, height, radius = x(confidence), 44 * size / largest, 3 + 5 * (size / largest) ** 0.5
        body += (
            f'<g><title>{said}</title><path class="gap" d="M{px:.1f} {y(confidence):.1f}V{y(accuracy):.1f}"/>'
            f'<circle class="trend-point" cx="{px:.1f}" cy="{y(accuracy):.1f}" r="{radius:.1f}"/>'
            f'<rect class="tally" x="{px - 5:.1f}" y="{floor - height:.1f}" width="10" height="{height:.1f}"/></g>'
        )
    body += f'<text class="note" x="{left + 4}" y="{floor - 46}">nodes per bin, up to {count(int(largest))}</text>'
    body += horizontal(x, floor, "mean confidence", ticks, compact)
    middle = (top + bottom) / 2
    body += f'<text class="axis-title" transform="translate(14 {middle:.0f}) rotate(-90)">accuracy</text>'
    title = f"Reliability diagram, expected calibration error {number(content.ece)}"
    return frame(380, 392, "chart square", title, body)


def balance_histogram(edges: EdgeTable) -> str:
    """Edges by p(+1) - p(-1), stacked by verdict: opposing edges pile up left, helpful ones right."""
    left, right, top, bottom = 48, 546, 14, 236
    limits = np.linspace(-1.0, 1.0, _BINS + 1)
    balance = edges.p_positive - edges.p_negative
    known = np.isfinite(balance)
    stacks = {s: np.histogram(balance[known & (edges.verdict == s)], limits)[0] for s in (0, -1, 1)}
    tallest = int(sum(stacks.values(), np.zeros(_BINS, dtype=np.int64)).max())
    x, y = Scale(-1, 1, left, right), Scale(0, max(tallest, 1), bottom, top)
    body = vertical(y, left, right, [t for t in y.ticks(4) if t == int(t)], lambda t: count(int(t)))
    for i in range(_BINS):
        base = 0
        span = f"{number(limits[i], 2)} to {number(limits[i + 1], 2)}"
        for state, stack in stacks.items():
            size = int(stack[i])
            if size:
                body += (
                    f'<rect class="fill {VERDICTS[state]}" x="{x(limits[i]) + 0.75:.1f}" y="{y(base + size):.1f}" '
                    f'width="{x(limits[1]) - x(limits[0]) - 1.5:.1f}" height="{y(base) - y(base + size):.1f}">'
                    f"<title>{span}: {count(size)} edges judged {VERDICTS[state]}</title></rect>"
                )
                base += size
    body += horizontal(x, bottom, "p(+1) − p(−1)", [-1, -0.5, 0, 0.5, 1], compact)
    body += f'<text class="note" x="{left}" y="{bottom + 33}">← opposes</text>'
    body += f'<text class="note" x="{right}" y="{bottom + 33}" text-anchor="end">helps →</text>'
    return frame(560, 278, "chart wide", "Edges by p(+1) minus p(-1), stacked by verdict", body)


def state_histogram(edges: EdgeTable, state: int) -> str:
    """One probability over all edges, with its mean marked."""
    word = VERDICTS[state]
    values = _finite(edges.probability(state))
    mean = float(values.mean()) if len(values) else float("nan")
    left, right, top, bottom = 4, 356, 26, 66
    sizes = np.histogram(values, np.linspace(0.0, 1.0, _SMALL_BINS + 1))[0]
    x, y = Scale(0, 1, left, right), Scale(0, max(int(sizes.max()), 1), bottom, top)
    width = (right - left) / _SMALL_BINS
    body = f'<text class="small-title" x="{left}" y="14">{_SIGNS[state]} {word}</text>'
    for i, size in enumerate(sizes):
        if size:
            body += (
                f'<rect class="fill {word}" x="{left + i * width + 0.5:.1f}" y="{y(int(size)):.1f}" '
                f'width="{width - 1:.1f}" height="{bottom - y(int(size)):.1f}"><title>{count(int(size))} edges'
                f" between {number(i / _SMALL_BINS, 2)} and {number((i + 1) / _SMALL_BINS, 2)}</title></rect>"
            )
    ticks = "".join(f'<text class="tick" x="{x(t):.0f}" y="{bottom + 15}">{t:g}</text>' for t in (0, 0.5, 1))
    body += f'<path class="axis" d="M{left} {bottom}H{right}"/>{ticks}'
    if is_number(mean):
        body += f'<path class="selected" d="M{x(mean):.1f} {top - 6}V{bottom}"/>'
        body += f'<text class="selected-label" x="{right}" y="14" text-anchor="end">{mean_text(mean)}</text>'
    return frame(360, 84, "chart small", f"Distribution of the probability that an edge {_phrase(state)}", body)


def _phrase(state: int) -> str:
    return {1: "helps", 0: "is noise", -1: "opposes"}[state]


def _finite(values: NDArray[np.floating]) -> NDArray[np.floating]:
    return values[np.isfinite(values)]
