"""Three graphs to learn from. The bars are far above chance (a third) and far below what a good model reaches."""

from __future__ import annotations

from spam_gnn.evaluation.checks.graphs import noise_graph, structure_graph
from spam_gnn.evaluation.checks.lab import Check, Lab, ensure
from spam_gnn.graph import Graph

EASY, STRUCTURE, NOISE = 0.65, 0.6, 0.5


def _reaches(lab: Lab, graph: Graph, bar: float, what: str) -> None:
    accuracy = lab.accuracy(graph)
    ensure(accuracy >= bar, f"accuracy {accuracy:.2f} on {what}; at least {bar} is expected, chance is 0.33")


def _easy(lab: Lab) -> None:
    _reaches(lab, lab.easy, EASY, "a graph whose features and edges both give the class away")


def _structure(lab: Lab) -> None:
    _reaches(lab, structure_graph(), STRUCTURE, "a graph whose features say nothing and whose edges join equal classes")


def _noise(lab: Lab) -> None:
    _reaches(lab, noise_graph(), NOISE, "a graph whose features give the class away and whose edges are random")


CHECKS = (
    Check("learns_an_easy_graph", _easy, ("probabilities_are_finite",)),
    Check("learns_from_structure", _structure, ("learns_an_easy_graph",)),
    Check("learns_from_features_among_random_edges", _noise, ("learns_an_easy_graph",)),
)
