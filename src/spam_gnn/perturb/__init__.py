"""Graph -> Graph: what may have happened to a graph before anybody trains on it. `apply` finds each kind by its name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from spam_gnn.baselines.registry import find
from spam_gnn.errors import BadInput, one_of
from spam_gnn.graph import Graph
from spam_gnn.perturb.adaptive import adaptive_attack
from spam_gnn.perturb.additions import random_additions
from spam_gnn.perturb.deletions import random_deletions
from spam_gnn.perturb.feature_noise import feature_noise
from spam_gnn.perturb.gradient import gradient_attack
from spam_gnn.perturb.remembered import remembered

Kind = Callable[[Graph, float, int], Graph]

RANDOM: dict[str, Kind] = {
    "deletions": random_deletions,
    "additions": random_additions,
    "feature-noise": feature_noise,
}
ATTACKS: dict[str, Kind] = {
    "prbcd": partial(gradient_attack, kind="prbcd"),
    "grbcd": partial(gradient_attack, kind="grbcd"),
    "adaptive": adaptive_attack,
}
NAMES = (*RANDOM, *ATTACKS)


def apply(graph: Graph, name: str, strength: float, seed: int, *, cache: Path | None = None) -> Graph:
    """The perturbed graph; strength 0 is the graph as it was.

    Args:
        graph: with a split; attacks train on its training labels, choose the epoch by its validation labels, read no others.
        name: one of `NAMES`.
        strength: a share of the edges; of nonzero entries or in standard deviations for `feature-noise`.
        seed: same graph, name, strength and seed, same result.
        cache: a folder in which attacked edges are kept, because an attack trains a model of its own.
    """
    one_of(name, NAMES, "perturbation")
    if not 0.0 <= strength < float("inf"):
        raise BadInput(f"{name}: found strength {strength}; use 0 or more")
    if strength == 0.0:
        return graph
    if name in RANDOM:
        return RANDOM[name](graph, strength, seed)
    if cache is None:
        return ATTACKS[name](graph, strength, seed)
    victim = find("spam" if name == "adaptive" else "gcn")  # trained as it is by default
    what = f"{name}/{strength!r}/{seed}/{victim.settings}/{victim.train}"
    return remembered(graph, what, cache, lambda: ATTACKS[name](graph, strength, seed))
