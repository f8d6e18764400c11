"""Tables and figures of a study as values, and the formats they are written in."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spam_gnn.report.markup import MISSING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LATEX = {
    "&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "$": r"\$", "{": r"\{", "}": r"\}", "±": r"$\pm$", "–": "--", "−": "$-$",
    "<": "$<$",
}  # fmt: skip


@dataclass(frozen=True)
class ResultTable:
    """A table as data.

    Args:
        name: of its files, without an ending.
        header, rows: texts or numbers; None is a missing value.
        bold: cells to stress, by (row, column).
    """

    name: str
    header: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    bold: frozenset[tuple[int, int]] = frozenset()

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.header):
                raise ValueError(f"table '{self.name}': a row has {len(row)} cells, the header {len(self.header)}")

    def markdown(self) -> str:
        """The table as GitHub and most viewers read it; numbers with two digits."""
        lines = [f"| {' | '.join(self.header)} |", "|---|" + "---:|" * (len(self.header) - 1)]
        for place, row in enumerate(self.rows):
            cells = [_shown(cell).replace("|", r"\|") for cell in row]
            lines.append("| " + " | ".join(f"**{c}**" if (place, k) in self.bold else c for k, c in enumerate(cells)) + " |")
        return "\n".join(lines) + "\n"

    def latex(self) -> str:
        """A `tabular` with `booktabs` rules, to be input into a document."""
        lines = [rf"\begin{{tabular}}{{l{'r' * (len(self.header) - 1)}}}", r"\toprule"]
        lines += [" & ".join(map(_latex, self.header)) + r" \\", r"\midrule"]
        for place, row in enumerate(self.rows):
            cells = [_latex(_shown(cell)) for cell in row]
            bold = [rf"\textbf{{{c}}}" if (place, k) in self.bold else c for k, c in enumerate(cells)]
            lines.append(" & ".join(bold) + r" \\")
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"

    def csv(self) -> str:
        """Header and rows; numbers with all their digits, nothing where a value is missing."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.header)
        writer.writerows(["" if cell is None else cell for cell in row] for row in self.rows)
        return text.getvalue()


@dataclass(frozen=True)
class ResultFigure:
    """A figure: `draw` makes it when it is wanted, since matplotlib is an extra; written as PNG and SVG.

    Args:
        name: of its files, without an ending.
        caption: what is seen in it.
    """

    name: str
    caption: str
    draw: Callable[[], Figure]


def _shown(cell: Any) -> str:
    if cell is None:
        return MISSING
    return f"{cell:.2f}" if isinstance(cell, float) else str(cell)


def _latex(text: str) -> str:
    return "".join(_LATEX.get(char, char) for char in text)
