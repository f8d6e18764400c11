"""Support recovery (paper Theorem "Support recovery of sparse coding"): does LASSO select exactly the same-class neighbours?

Nodes of a CSBM, t_i = mu + noise, half of the neighbours of the own class and half of other classes, class means orthogonal.
The exact coder's support is compared with {j : Y_j = Y_i} for many penalties and noise levels: precision (is what it selects of
the same class), recall (does it select all of them), and how often the two sets are equal, which the theorem claims with high
probability.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from spam_gnn.coding.exact import ExactCoder
from spam_gnn.experiments import drawing
from spam_gnn.randomness import stream
from spam_gnn.structure import Messages

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CLASSES, WIDTH, NEIGHBOURS = 3, 16, 12
PENALTIES = (0.01, 0.03, 0.1, 0.3, 0.6, 1.0, 1.5)
NOISES = (0.05, 0.1, 0.2, 0.4)  # standard deviation of each entry; class means have norm 1


@dataclass(frozen=True)
class Cell:
    """One penalty at one noise level, over all nodes; precision over nodes that select anything."""

    penalty: float
    noise: float
    precision: float
    recall: float
    exact: float
    empty: float


@dataclass(frozen=True)
class Support:
    """The finding; `chance` is the precision of selecting at random."""

    nodes: int
    chance: float
    cells: tuple[Cell, ...]


def measure(
    nodes: int = 300, penalties: tuple[float, ...] = PENALTIES, noises: tuple[float, ...] = NOISES, seed: int = 0
) -> Support:
    cells = [_cell(nodes, penalty, noise, seed) for noise in noises for penalty in penalties]
    return Support(nodes, 0.5, tuple(cells))


def _cell(nodes: int, penalty: float, noise: float, seed: int) -> Cell:
    """Every node is a star of its own: node i listens to its NEIGHBOURS leaves."""
    generator = stream(seed, "support", round(1000 * noise))
    own = torch.randint(CLASSES, (nodes,), generator=generator)
    same = torch.arange(NEIGHBOURS).expand(nodes, -1) < NEIGHBOURS // 2  # (nodes, NEIGHBOURS)
    other = (own.unsqueeze(1) + torch.randint(1, CLASSES, same.shape, generator=generator)) % CLASSES
    y = torch.cat([own, torch.where(same, own.unsqueeze(1), other).reshape(-1)])
    means = torch.eye(CLASSES, WIDTH, dtype=torch.float64)
    h = (means[y] + noise * torch.randn(y.numel(), WIDTH, dtype=torch.float64, generator=generator)).unsqueeze(0)
    leaves = nodes + torch.arange(nodes * NEIGHBOURS)
    messages = Messages.build(leaves, torch.arange(nodes).repeat_interleave(NEIGHBOURS), y.numel())
    code = ExactCoder(penalty)(messages, h, h, torch.ones(1, leaves.numel(), dtype=torch.float64)).positive
    chosen = code.reshape(nodes, NEIGHBOURS) != 0  # messages are sorted by (target, source), the order they were made in
    hits, size = (chosen & same).sum(1).double(), chosen.sum(1).double()
    some = size > 0
    precision = float((hits[some] / size[some]).mean()) if bool(some.any()) else float("nan")
    return Cell(penalty, noise, precision, float((hits / same.sum(1)).mean()), float((chosen == same).all(1).double().mean()),
                float((~some).double().mean()))  # fmt: skip


def held(finding: Support) -> bool:
    """Exact recovery with high probability at some penalty, for every noise level."""
    return all(max(c.exact for c in finding.cells if c.noise == noise) > 0.95 for noise in {c.noise for c in finding.cells})


def verdict(finding: Support) -> str:
    best = max(finding.cells, key=lambda c: c.exact)
    recall = max(finding.cells, key=lambda c: c.recall)
    precise = max((c for c in finding.cells if c.empty < 0.5), key=lambda c: c.precision)
    return (
        f"Exact recovery of the same-class neighbours {'held' if held(finding) else 'did not hold'}: at best "
        f"{100 * best.exact:.1f} % of nodes (lambda {best.penalty:g}, noise {best.noise:g}). What LASSO selects is of the same "
        f"class up to {100 * precise.precision:.1f} % (chance: {100 * finding.chance:.0f} %), but it leaves out alike "
        f"neighbours: at that setting recall is {100 * precise.recall:.1f} %, and the highest recall anywhere is "
        f"{100 * recall.recall:.1f} %, with precision {100 * recall.precision:.1f} %."
    )


def section(finding: Support) -> str:
    rows = "\n".join(
        f"| {c.noise:g} | {c.penalty:g} | {100 * c.precision:.1f} | {100 * c.recall:.1f} | {100 * c.exact:.1f} "
        f"| {100 * c.empty:.1f} |"
        for c in finding.cells
    )
    return (
        f"{finding.nodes} nodes with {NEIGHBOURS} neighbours each, half of the own class; {CLASSES} orthogonal class means of "
        f"norm 1 in {WIDTH} dimensions; percent.\n\n"
        "| noise | lambda | precision | recall | exactly right | nothing selected |\n|---|---|---|---|---|---|\n" + rows + "\n"
    )


def draw(finding: Support) -> Figure:
    figure, axes = drawing.canvas(3, width=3.6)
    for place, noise in enumerate(dict.fromkeys(c.noise for c in finding.cells)):
        mine = [c for c in finding.cells if c.noise == noise]
        for ax, part in zip(axes, ("precision", "recall", "exact"), strict=True):
            percent = [100 * getattr(c, part) for c in mine]
            drawing.curve(ax, [c.penalty for c in mine], percent, f"noise {noise:g}", place)
    axes[0].axhline(100 * finding.chance, color="#999999", linestyle="--", linewidth=1.0, label="chance")
    for ax, title in zip(axes, ("Precision", "Recall", "Support exactly right"), strict=True):
        ax.set_xscale("log")
        ax.set_ylim(-4, 104)
        drawing.label(ax, title, "penalty $\\lambda$", "%")
    drawing.small_legend(axes[0], loc="lower left")
    return figure
