"""The risk bound (paper Theorem "Risk decomposition"): R(p_hat) - R(p_tilde) <= L E ||q - p(Z | I)||_1, both sides computed.

On graphs small enough to enumerate, p_tilde averages a trained SpaM's predictions over the true posterior of all signed graphs
and p_hat over an approximate one. -log p has no Lipschitz constant, so the loss is clipped: l(y, p) = -log max(p_y, eps). Two
distributions differ in one entry by at most half their l1 distance, hence L = 1 / (2 eps).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from spam_gnn.config import SpaMConfig
from spam_gnn.experiments import drawing
from spam_gnn.experiments.theory.tiny_world import CLASSES, FEATURES, Truth, World, product_of, true_posterior
from spam_gnn.graph import Graph
from spam_gnn.model import SpaM
from spam_gnn.randomness import stream
from spam_gnn.sampling import SignedGraphs, enumerate_signs
from spam_gnn.training import TrainConfig, fit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CLIP = 0.05
NODES, LABELLED, MOST_EDGES = 6, 2, 6
SHARPER = (1.0, 2.0, 4.0, 8.0, 16.0)


@dataclass(frozen=True)
class Side:
    """One approximate posterior q, over all instances and unlabelled nodes.

    Args:
        name: which q.
        excess: R(p_hat) - R(p_tilde), the left side.
        distance: E ||q - p||_1.
        bound: L times that, the right side.
        violations: instances whose own left side exceeds its own right side.
    """

    name: str
    excess: float
    distance: float
    bound: float
    violations: int


@dataclass(frozen=True)
class RiskBound:
    """The finding: both sides for each q, and how far the loss changes per unit of ||q - p||_1 when predictions sharpen."""

    instances: int
    lipschitz: float
    sides: tuple[Side, ...]
    sharpness: tuple[float, ...]
    clipped_slope: tuple[float, ...]
    plain_slope: tuple[float, ...]


def trained_family(world: World, seed: int, epochs: int) -> SpaM:
    """p_theta(y | X, Z) and q_phi: a SpaM trained on a larger graph of the same world. Beliefs do not enter its layers, so that
    its predictions depend on X and Z alone."""
    large = world.draw(300, 60, 0.03, stream(seed, "large world"))
    model = SpaM(FEATURES, CLASSES, SpaMConfig(hidden=16, belief_input=False, scaling="none"), seed)
    fit(model, large, TrainConfig(epochs=epochs), seed)
    return model


def measure(instances: int = 200, epochs: int = 100, seed: int = 0, world: World | None = None) -> RiskBound:
    """Both sides, averaged over `instances` tiny graphs."""
    world = world or World()
    model = trained_family(world, seed, epochs)
    found: dict[str, list[tuple[float, float]]] = {}
    slopes = {s: [0.0, 0.0] for s in SHARPER}
    count, turn = 0, 0
    while count < instances:
        graph = world.draw(NODES, LABELLED, 1.0, stream(seed, "tiny world", turn))
        turn += 1
        if not 1 <= graph.pairs.edge.numel() <= MOST_EDGES:
            continue
        count += 1
        truth = true_posterior(world, graph)
        logits = _logits_of_all(model, graph)  # (3^p, n, C)
        for name, q in _approximations(model, graph, truth).items():
            distance = float((q - truth.graphs).abs().sum())
            found.setdefault(name, []).append((_excess(logits, truth, q, graph, CLIP), distance))
            if distance > 1e-6:
                for s, worst in slopes.items():
                    for k, clip in enumerate((CLIP, 0.0)):
                        worst[k] = max(worst[k], _largest_change(s * logits, truth.graphs, q, graph, clip) / distance)
    constant = 1.0 / (2.0 * CLIP)
    sides = tuple(_side(name, values, constant) for name, values in found.items())
    return RiskBound(count, constant, sides, SHARPER, *(tuple(slopes[s][k] for s in SHARPER) for k in (0, 1)))


def _side(name: str, values: list[tuple[float, float]], constant: float) -> Side:
    excess, distance = (sum(v[k] for v in values) / len(values) for k in (0, 1))
    wrong = sum(left > constant * right + 1e-9 for left, right in values)
    return Side(name, excess, distance, constant * distance, wrong)


@torch.no_grad()
def _logits_of_all(model: SpaM, graph: Graph) -> Tensor:
    prepared = model.prepare(graph)
    distribution = model.edge_distribution(prepared)
    assert distribution is not None
    every = enumerate_signs(distribution, prepared)
    signs = SignedGraphs(every.positive.float(), every.negative.float(), torch.zeros(every.count))
    return model(prepared, graph.train_mask, seed=0, signs=signs).prediction.log_prob.double()


@torch.no_grad()
def _approximations(model: SpaM, graph: Graph, truth: Truth) -> dict[str, Tensor]:
    """Each q by name, over all signed graphs."""
    prepared = model.prepare(graph)
    learned = model.edge_distribution(prepared)
    assert learned is not None
    edges = graph.pairs.edge.numel()
    uniform = torch.full((edges, 3), 1 / 3, dtype=torch.float64)
    as_given = torch.tensor([0.0, 0.0, 1.0], dtype=torch.float64).expand(edges, 3)
    hard = torch.nn.functional.one_hot(truth.marginals.argmax(1), 3).double()
    return {
        "SpaM's posterior": product_of(learned.probability[graph.pairs.edge].double()),
        "true marginals": product_of(truth.marginals),
        "nine tenths true": 0.9 * truth.graphs + 0.1 * product_of(uniform),
        "hard signs": product_of(hard),
        "graph as given": product_of(as_given),
        "uniform": product_of(uniform),
    }


def _average(logits: Tensor, weight: Tensor) -> Tensor:
    """(n, C): sum_Z w(Z) p_theta(y | X, Z)."""
    return (weight[:, None, None] * torch.softmax(logits, -1)).sum(0)


def _excess(logits: Tensor, truth: Truth, q: Tensor, graph: Graph, clip: float) -> float:
    """R(p_hat) - R(p_tilde) of one instance: exact expectation over p(Y_i | I), mean over unlabelled nodes."""
    near, exact = (-_average(logits, w).clamp(min=clip).log() for w in (q, truth.graphs))
    return float(((near - exact) * truth.labels).sum(1)[~graph.train_mask].mean())


def _largest_change(logits: Tensor, p: Tensor, q: Tensor, graph: Graph, clip: float) -> float:
    near, exact = (_average(logits, w).clamp(min=max(clip, 1e-300)).log() for w in (q, p))
    return float((near - exact).abs()[~graph.train_mask].max())


def held(finding: RiskBound) -> bool:
    """With the clipped loss; for -log p the statement has no constant."""
    return all(side.violations == 0 for side in finding.sides)


def verdict(finding: RiskBound) -> str:
    wrong = sum(side.violations for side in finding.sides)
    total = finding.instances * len(finding.sides)
    tightest = max(finding.sides, key=lambda s: s.excess / s.bound if s.bound > 0 else 0.0)
    broken = max(finding.plain_slope) > finding.lipschitz
    return (
        f"With the clipped loss the bound {'held' if wrong == 0 else 'failed'} ({wrong} violations in {total} cases), loosely: "
        f"the left side reaches at most {100 * tightest.excess / tightest.bound:.1f} % of the right ({tightest.name}). "
        f"Without clipping the loss changed by up to {max(finding.plain_slope):.1f} per unit of distance, "
        + (f"beyond the constant {finding.lipschitz:g}, so the clip is needed." if broken
           else f"within the constant {finding.lipschitz:g} on these instances.")
    )


def section(finding: RiskBound) -> str:
    rows = "\n".join(
        f"| {s.name} | {s.excess:+.4f} | {s.distance:.3f} | {s.bound:.2f} | {s.violations} |" for s in finding.sides
    )
    return (
        f"{finding.instances} graphs of {NODES} nodes with at most {MOST_EDGES} observed edges, all signed graphs enumerated; "
        f"loss -log max(p, {CLIP:g}), L = {finding.lipschitz:g}.\n\n"
        "| q | R(p_hat) - R(p_tilde) | E l1(q, p) | L E l1(q, p) | violations |\n|---|---|---|---|---|\n" + rows + "\n"
    )


def draw(finding: RiskBound) -> Figure:
    figure, (left, right) = drawing.canvas(2, width=4.4)
    places = list(range(len(finding.sides)))
    left.plot([s.excess for s in finding.sides], places, "o", color=drawing.PALETTE[1], label="left: excess risk")
    left.plot([s.bound for s in finding.sides], places, "s", color=drawing.PALETTE[0], label="right: L E ||q - p||$_1$")
    left.set_xscale("symlog", linthresh=1e-4)
    left.set_xticks([-1e-3, 0, 1e-3, 1e-1, 10], ["-0.001", "0", "0.001", "0.1", "10"])
    left.set_xlim(min(-1e-3, *(2 * s.excess for s in finding.sides)), 60)
    left.set_yticks(places, [s.name for s in finding.sides])
    left.set_ylim(len(places) + 0.4, -0.6)
    drawing.label(left, "Both sides of the bound, by q", "nats", "")
    drawing.small_legend(left, loc="lower left", ncols=2)
    drawing.curve(right, finding.sharpness, finding.plain_slope, "-log p", 1)
    drawing.curve(right, finding.sharpness, finding.clipped_slope, f"-log max(p, {CLIP:g})", 0)
    right.axhline(finding.lipschitz, color="#999999", linestyle="--", linewidth=1.0, label="L = 1 / (2 eps)")
    drawing.log_y(right)
    drawing.at_ticks(right, finding.sharpness, log=True)
    drawing.label(right, "Why the loss must be clipped", "logits multiplied by", "largest |loss change| per ||q - p||$_1$")
    drawing.small_legend(right)
    return figure
