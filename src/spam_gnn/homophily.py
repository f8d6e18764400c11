"""How alike the ends of edges are, by the four measures in use; each on the edges whose two labels are known."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from spam_gnn.graph import Graph


@dataclass(frozen=True)
class Homophily:
    """Four readings of one graph; nan where no edge has two known labels."""

    edge: float  # share of edges that join equal labels (Zhu et al. 2020, the paper's G_h)
    node: float  # mean over nodes of the share of equal neighbours (Pei et al. 2020)
    class_insensitive: float  # excess over class shares, averaged over classes (Lim et al. 2021)
    adjusted: float  # edge homophily corrected for chance by degrees (Platonov et al. 2023)


def homophily(graph: Graph) -> Homophily:
    """Measure a graph; a directed edge is read as its source's neighbourhood relation, as the sources cited do."""
    source, target = graph.edge_index
    known = (graph.y[source] >= 0) & (graph.y[target] >= 0)
    source, target = source[known], target[known]
    if source.numel() == 0:
        nan = float("nan")
        return Homophily(nan, nan, nan, nan)
    y, n, classes = graph.y, graph.num_nodes, graph.num_classes
    same = (y[source] == y[target]).double()
    edge = float(same.mean())
    degree = torch.bincount(source, minlength=n).double()
    matches = torch.zeros(n, dtype=torch.float64).index_add(0, source, same)
    has = degree > 0
    node = float((matches[has] / degree[has]).mean())
    labelled = y >= 0
    share = torch.bincount(y[labelled], minlength=classes).double() / int(labelled.sum())
    out_of = torch.bincount(y[source], minlength=classes).double()
    matched = torch.zeros(classes, dtype=torch.float64).index_add(0, y[source], same)
    per_class = torch.where(out_of > 0, matched / out_of.clamp(min=1.0), torch.zeros_like(matched))
    insensitive = float((per_class - share).clamp(min=0.0).sum() / (classes - 1)) if classes > 1 else float("nan")
    ends = torch.bincount(y[torch.cat([source, target])], minlength=classes).double()
    chance = float((ends / ends.sum()).square().sum())
    adjusted = (edge - chance) / (1.0 - chance) if chance < 1.0 else float("nan")
    return Homophily(edge, node, insensitive, adjusted)
