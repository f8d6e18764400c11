"""One plain style for every figure: matplotlib without global state, colours that a colour-blind reader can tell apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999", "#7B3294", "#8C6D31")
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">")
_GREY = "#555555"


def canvas(columns: int, rows: int = 1, width: float = 4.0, height: float = 3.1) -> tuple[Figure, list[Axes]]:
    """A figure of `rows` x `columns` panels, each `width` x `height` inches, and its axes in reading order."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height * rows), dpi=150, layout="constrained")
    axes = [figure.add_subplot(rows, columns, k + 1) for k in range(rows * columns)]
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
        ax.spines[["left", "bottom"]].set_color(_GREY)
        ax.tick_params(labelsize=8, color=_GREY, labelcolor="#222222")
        ax.grid(visible=True, color="#e6e6e6", linewidth=0.6)
        ax.set_axisbelow(True)
    return figure, axes


def label(ax: Axes, title: str, x: str, y: str) -> None:
    """Title and axis names."""
    ax.set_title(title, fontsize=9.5, loc="left")
    ax.set_xlabel(x, fontsize=8.5)
    ax.set_ylabel(y, fontsize=8.5)


def curve(
    ax: Axes, x: Sequence[float], y: Sequence[float], name: str, place: int, spread: Sequence[float] | None = None, **more: Any
) -> None:
    """A marked line in the colour of its place; `spread` is drawn as a band of one standard deviation."""
    colour = PALETTE[place % len(PALETTE)]
    style = {"linewidth": 1.6, "markersize": 4.0, "marker": MARKS[place % len(MARKS)], "color": colour, **more}
    ax.plot(x, y, label=name, **style)
    if spread is not None:
        low, high = ([a - b for a, b in zip(y, spread, strict=True)], [a + b for a, b in zip(y, spread, strict=True)])
        ax.fill_between(x, low, high, color=style["color"], alpha=0.13, linewidth=0)


def at_ticks(ax: Axes, values: Sequence[float], *, log: bool = False) -> None:
    """Tick exactly the values that were measured, on a logarithmic axis where they double."""
    if log:
        ax.set_xscale("log", base=2)
    ax.set_xticks(list(values), [f"{v:g}" for v in values])
    ax.set_xticks([], minor=True)


def log_y(ax: Axes) -> None:
    """A logarithmic vertical axis with plain numbers at 1, 2 and 5 of each decade."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    ax.set_yscale("log")
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.yaxis.set_minor_formatter(NullFormatter())


def legend(figure: Figure, ax: Axes, columns: int = 6) -> None:
    """One legend for all panels, below them."""
    handles, names = ax.get_legend_handles_labels()
    columns = min(columns, max(1, len(names)), max(2, int(figure.get_figwidth() / 1.6)))
    figure.legend(handles, names, loc="outside lower center", ncols=columns, fontsize=8, frameon=False)


def small_legend(ax: Axes, **more: Any) -> None:
    """A legend inside one panel, if it shows anything."""
    if ax.get_legend_handles_labels()[0]:
        ax.legend(fontsize=7.5, frameon=False, **more)
