"""Scales, ticks and axes: the part of a chart that does not depend on what is drawn in it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from spam_gnn.report.markup import number


@dataclass(frozen=True)
class Scale:
    """Maps values low .. high to pixels start .. end, linearly or by logarithm."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high = self.low, self.high
        if self.log:
            low, high, value = math.log(low), math.log(high), math.log(max(value, low))
        return self.start + (value - low) / ((high - low) or 1.0) * (self.end - self.start)

    def ticks(self, about: int = 5) -> list[float]:
        """Round values inside the scale."""
        if self.log:
            first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
            step = max(1, math.ceil((last - first + 1) / about))
            return [10.0**power for power in range(first, last + 1, step)]
        step = _round_step((self.high - self.low) / max(about, 1))
        first = math.ceil(self.low / step - 1e-9)
        return [index * step for index in range(first, math.floor(self.high / step + 1e-9) + 1)]


def _round_step(step: float) -> float:
    """The next of 1, 2, 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(step)) if step > 0 else 1.0
    return next((factor * power for factor in (1.0, 2.0, 5.0) if factor * power >= step * (1 - 1e-9)), 10.0 * power)


def value_scale(values: Sequence[float], start: float, end: float) -> Scale:
    """A scale that holds all values: logarithmic when they are positive and span more than two decades."""
    low, high = min(values), max(values)
    if low > 0 and high / low > 100:
        return Scale(10.0 ** math.floor(math.log10(low)), high * 1.2, start, end, log=True)
    margin = 0.06 * (high - low) or 0.05 * abs(high) or 1.0
    floor = 0.0 if 0 <= low < 0.4 * high else low - margin
    return Scale(floor, high + margin, start, end)


def compact(value: float) -> str:
    """A tick label: as few digits as say the value."""
    if value != 0 and not 1e-3 <= abs(value) < 1e4:
        return f"{value:.0e}".replace("e-0", "e−").replace("e+0", "e").replace("-", "−")
    return f"{value:.6g}".replace("-", "−")


def whole_percent(value: float) -> str:
    """A tick label for shares."""
    return f"{100 * value:.4g}%"


def horizontal(scale: Scale, y: float, title: str, ticks: Sequence[float], label: Callable[[float], str]) -> str:
    """The axis under a plot, its tick labels and its title."""
    marks = "".join(f'<text class="tick" x="{scale(t):.1f}" y="{y + 16:.0f}">{label(t)}</text>' for t in ticks)
    middle = (scale.start + scale.end) / 2
    return (
        f'<path class="axis" d="M{scale.start:.0f} {y:.1f}H{scale.end:.0f}"/>{marks}'
        f'<text class="axis-title" x="{middle:.0f}" y="{y + 33:.0f}">{title}</text>'
    )


def vertical(scale: Scale, left: float, right: float, ticks: Sequence[float], label: Callable[[float], str]) -> str:
    """Grid lines across the plot with labels at their left end."""
    return "".join(
        f'<path class="grid" d="M{left:.0f} {scale(t):.1f}H{right:.0f}"/>'
        f'<text class="tick left" x="{left - 7:.0f}" y="{scale(t) + 4:.1f}">{label(t)}</text>'
        for t in ticks
    )


def frame(width: int, height: int, css_class: str, title: str, body: str, attributes: str = "") -> str:
    """An SVG image with a title that screen readers announce."""
    return (
        f'<svg class="{css_class}" viewBox="0 0 {width} {height}" role="img" aria-label="{title}"{attributes}>'
        f"<title>{title}</title>{body}</svg>"
    )


def polyline(points: Sequence[tuple[float, float]]) -> str:
    """A path through the points, in tenths of a pixel."""
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def mean_text(value: float) -> str:
    """How a marked mean is written next to its line."""
    return f"mean {number(value, 2)}"
