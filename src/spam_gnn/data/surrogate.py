"""Stand-ins for benchmarks whose files are absent: `surrogate:snap-patents` has the size and shape of snap-patents.

They serve work on speed and memory. Accuracy on a surrogate says nothing about the dataset it is named after.

What is matched: nodes, edges, classes and their shares, unlabelled nodes, edge homophily, the Gini coefficient of the degrees
(log-normal degrees), features and the share of nonzeros. What is not: clustering, diameter, in- against out-degree, the words.
Time and memory are linear in the size of the graph.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from scipy.special import erfinv
from torch import Tensor

from spam_gnn.data.entries import SPECS
from spam_gnn.data.spec import DatasetSpec, Figures
from spam_gnn.errors import BadInput
from spam_gnn.features import SPARSE_BELOW
from spam_gnn.graph import Graph
from spam_gnn.homophily import Homophily
from spam_gnn.randomness import seed_for

PREFIX = "surrogate:"
ASSUMED_GINI = 0.5  # of the degrees where a source does not state it: between Cora's 0.4 and Chameleon's 0.6
ASSUMED_DENSITY = 0.05  # share of nonzeros of features that are stored sparse
ASSUMED_FEATURES = 1000
SIGNAL = 0.3  # share of a node's words that come from its class; or distance of a class mean, in standard deviations
_ROUNDS = 18  # of drawing again what was drawn twice
_BLOCK = 1 << 18  # nodes whose features are drawn at a time


def surrogate_names() -> tuple[str, ...]:
    """Every dataset whose nodes, edges, classes and homophily are known."""
    return tuple(PREFIX + name for name, spec in SPECS.items() if _known(spec.expected))


def _known(figures: Figures) -> bool:
    return None not in (figures.nodes, figures.edges, figures.classes, figures.homophily)


def surrogate(spec: DatasetSpec, seed: int = 0) -> Graph:
    """A graph with the spec's figures, drawn by seed, not yet split."""
    figures = spec.expected
    if not _known(figures):
        known = ", ".join(surrogate_names())
        raise BadInput(f"{PREFIX}{spec.name}: the figures of {spec.name} are not known; use one of {known}")
    unstated = {"degree skew": figures.degree_gini, "class shares": figures.class_shares,
                "share of nonzero features": figures.density, "number of features": figures.features}  # fmt: skip
    assumed = [what for what, value in unstated.items() if value is None]
    x, edges, y = draw(figures, directed=spec.directed, stored_once=spec.stored_once, seed=seed)
    note = f"surrogate: generated to mimic {spec.name}, not the dataset itself; its accuracies mean nothing for {spec.name}"
    notes = (note, *([f"surrogate: {', '.join(assumed)} assumed, the source does not state it"] if assumed else []))
    graph = Graph.build(x, edges, y, directed=spec.directed, num_classes=figures.classes, name=PREFIX + spec.name)
    return replace(graph, notes=(*notes, *graph.notes))


def draw(figures: Figures, *, directed: bool, stored_once: bool, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Features (n, d), edges (2, m) with each undirected pair once, labels (n,)."""
    n, stored, classes = figures.nodes, figures.edges, figures.classes
    assert n is not None
    assert stored is not None
    assert classes is not None
    assert isinstance(figures.homophily, Homophily)
    edges = stored - figures.self_loops if directed or stored_once else (stored - figures.self_loops) // 2
    random = np.random.default_rng(seed_for(seed, "surrogate"))
    shares = np.full(classes, 1.0 / classes) if figures.class_shares is None else np.array(figures.class_shares)
    label = random.permutation(np.searchsorted(shares.cumsum()[:-1] * n, np.arange(n), side="right")).astype(np.int64)
    gini = ASSUMED_GINI if figures.degree_gini is None else figures.degree_gini
    weight = np.exp(2.0 * float(erfinv(min(gini, 0.95))) * random.standard_normal(n))  # Gini coefficient erf(sigma / 2)
    degree = _degrees(_balanced(weight, label, classes, figures.homophily.edge), edges, random)
    pairs = _pairs(degree, label, classes, edges, figures.homophily.edge, random)
    x = _features(figures, label, classes, random)
    if figures.unlabelled:
        label[random.choice(n, figures.unlabelled, replace=False)] = -1
    return x, torch.from_numpy(pairs), torch.from_numpy(label)


def _balanced(weight: np.ndarray, label: np.ndarray, classes: int, homophily: float) -> np.ndarray:
    """(n,) weights of which no class has so many that its edges would have to stay inside it more often than asked."""
    share = np.bincount(label, weights=weight, minlength=classes) / weight.sum()
    largest = int(share.argmax())
    most = (1.0 - homophily) / 2.0 + homophily * share[largest]
    if share[largest] <= most:
        return weight
    return np.where(label == largest, weight * (most / share[largest]) * (1.0 - share[largest]) / (1.0 - most), weight)


def _degrees(weight: np.ndarray, edges: int, random: np.random.Generator) -> np.ndarray:
    """(n,) whole degrees in proportion to the weights, of sum 2 * edges."""
    n = len(weight)
    wanted = np.minimum(weight * (2.0 * edges / weight.sum()), (n - 1) / 2.0)  # no node is joined to more than half of all
    wanted *= 2.0 * edges / wanted.sum()
    degree = np.floor(wanted + random.random(n)).astype(np.int64)  # rounds up with the probability of the fraction
    short = 2 * edges - int(degree.sum())
    if short > 0:
        np.add.at(degree, random.integers(n, size=short), 1)
    elif short < 0:
        degree[random.choice(np.flatnonzero(degree), min(-short, int((degree > 0).sum())), replace=False)] -= 1
    return degree


def _pairs(
    degree: np.ndarray, label: np.ndarray, classes: int, edges: int, homophily: float, random: np.random.Generator
) -> np.ndarray:
    """(2, edges) distinct pairs without loops; a share `homophily` inside classes, node i in about degree[i] of them."""
    n = len(degree)
    found = np.empty(0, dtype=np.int64)
    stubs, share = np.repeat(np.arange(n), degree), homophily
    for turn in range(_ROUNDS):
        first, second = _matched(stubs, label, classes, share, random)
        low, high = np.minimum(first, second), np.maximum(first, second)
        found = _distinct(np.concatenate([found, (low * n + high)[low != high]]))
        missing = edges - len(found)
        if missing <= 0:
            break
        # Pairs drawn twice and loops are drawn again: among nodes that lack edges, and the last hundredth by degree, with a
        # little over, since those may have no partners left; inside classes as often as makes up the share asked for.
        share = float(np.clip((homophily * edges - _inside(found, label)) / missing, 0.0, 1.0))
        lack = np.maximum(degree - np.bincount(found // n, minlength=n) - np.bincount(found % n, minlength=n), 0)
        stubs = np.repeat(np.arange(n), lack)
        if missing < 0.01 * edges or turn >= _ROUNDS // 3:
            stubs = random.choice(np.repeat(np.arange(n), degree), 2 * (missing + missing // 8 + 2))
    chosen = random.permutation(found)[:edges]
    ends = np.stack([chosen // n, chosen % n])
    turned = random.random(ends.shape[1]) < 0.5  # a directed edge points either way
    return np.where(turned, ends[::-1], ends)


def _distinct(keys: np.ndarray) -> np.ndarray:
    """Sorted, each once; numpy's own `unique` hashes integers, which takes minutes at this size."""
    keys.sort()
    return keys[np.concatenate([[True], keys[1:] != keys[:-1]])] if len(keys) else keys


def _inside(pairs: np.ndarray, label: np.ndarray) -> int:
    """How many pairs (as low * n + high) join nodes of one class."""
    return int((label[pairs // len(label)] == label[pairs % len(label)]).sum())


def _matched(
    stubs: np.ndarray, label: np.ndarray, classes: int, homophily: float, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Join stubs (node numbers, one per half-edge) to edges, a share `homophily` of them inside a class.

    Stubs meant for edges between classes stand in class order; each is joined to the one half a turn further on, which is of
    another class as long as no class holds more than half of them. So the largest class gives at most half.
    """
    stubs = random.permutation(stubs)
    stubs = stubs[np.argsort(label[stubs].astype(np.int16), kind="stable")]  # a linear-time sort
    size = np.bincount(label[stubs], minlength=classes)
    start = size.cumsum() - size
    across = _across(size, (1.0 - homophily) * len(stubs))
    inside = [stubs[b + a : b + s - ((s - a) % 2)] for b, s, a in zip(start, size, across, strict=True)]
    between = np.concatenate([stubs[b : b + a] for b, a in zip(start, across, strict=True)])
    half = len(between) // 2
    ends = [(np.split(group, 2)[0], np.split(group, 2)[1]) for group in inside]
    first = np.concatenate([between[:half], *(a for a, _ in ends)])
    second = np.concatenate([between[half : 2 * half], *(b for _, b in ends)])
    return first, second


def _across(size: np.ndarray, total: float) -> np.ndarray:
    """(C,) stubs of each class for edges between classes: in proportion, the largest at most half of all."""
    share = np.minimum(size * (total / max(size.sum(), 1)), size)
    largest = int(share.argmax())
    rest = share.sum() - share[largest]
    if share[largest] > rest:  # the others give more, as far as they can, and the largest as much as they
        others = np.arange(len(size)) != largest
        grown = min(total / 2.0, float(size[others].sum()))
        share[others] *= grown / max(rest, 1e-12)
        share = np.minimum(share, size)
        share[largest] = share[others].sum()
    return np.floor(share).astype(np.int64)


def _features(figures: Figures, label: np.ndarray, classes: int, random: np.random.Generator) -> Tensor:
    """(n, d) float32: words in sparse rows where the original's are mostly zero, otherwise normal around class means."""
    n, d = len(label), ASSUMED_FEATURES if figures.features is None else figures.features
    unstated = ASSUMED_DENSITY if figures.sparse else 1.0
    density = unstated if figures.density is None else figures.density
    if density >= SPARSE_BELOW:
        x = torch.empty(n, d)
        mean = (random.standard_normal((classes, d)) * (SIGNAL / np.sqrt(d))).astype(np.float32)
        for begin in range(0, n, _BLOCK):
            rows = slice(begin, min(begin + _BLOCK, n))
            block = random.standard_normal((rows.stop - begin, d), dtype=np.float32)
            x[rows] = torch.from_numpy(block + mean[label[rows]])
        return x
    return _words(n, d, max(1, round(density * d)), label, random)


def _words(n: int, d: int, per_node: int, label: np.ndarray, random: np.random.Generator) -> Tensor:
    """(n, d) `torch.sparse_csr` of ones, `per_node` distinct columns in each row: one of each of `per_node` strips."""
    columns = torch.empty(n, per_node, dtype=torch.int64)
    width = d // per_node  # strips are disjoint and ascending, so that rows need neither sorting nor merging
    strips = np.arange(per_node) * width
    for begin in range(0, n, _BLOCK):
        rows = slice(begin, min(begin + _BLOCK, n))
        shape = (rows.stop - begin, per_node)
        own = (label[rows, None] * 7 + np.arange(per_node)) % width  # the word that a class prefers in each strip
        other = random.integers(width, size=shape)
        columns[rows] = torch.from_numpy(np.where(random.random(shape, dtype=np.float32) < SIGNAL, own, other) + strips)
    pointer = torch.arange(0, n * per_node + 1, per_node)
    return torch.sparse_csr_tensor(pointer, columns.view(-1), torch.ones(n * per_node), (n, d), check_invariants=False)
