"""Embedded graphs with known truth: `csbm`, and `digits` with planted wrong edges."""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from sklearn.neighbors import NearestNeighbors
from torch import Tensor

from spam_gnn.data.splits import random_split
from spam_gnn.errors import BadInput
from spam_gnn.graph import Graph
from spam_gnn.randomness import stream


def csbm(
    nodes: int = 600,
    classes: int = 3,
    degree: float = 10.0,
    homophily: float = 0.7,
    noise: float = 0.2,
    feature_strength: float = 1.0,
    features: int = 16,
    seed: int = 0,
) -> Graph:
    """Contextual stochastic block model with true signs (paper appendix, CSBM).

    Features are mu_{y_i} + N(0, I) with class means of norm `feature_strength` in orthogonal directions. Of the edges, a share
    `noise` joins nodes at random, whatever their classes (sign 0). Of the others a share `homophily` joins equal classes
    (sign +1), the rest joins class c with class c + 1 mod C (sign -1), so that opposition has a structure to learn.

    Args:
        nodes, classes, degree: n, C, and mean number of neighbours.
        homophily, noise: shares in [0, 1].
        feature_strength: distance of a class mean from the origin, in standard deviations of a feature.
        features: d, at least C.
        seed: of everything drawn.
    """
    for name, value in (("homophily", homophily), ("noise", noise)):
        if not 0.0 <= value <= 1.0:
            raise BadInput(f"csbm {name}: found {value}; use a share from 0 to 1")
    if classes < 2 or nodes < 2 * classes or features < classes:
        raise BadInput(f"csbm: found {nodes} nodes, {classes} classes, {features} features; "
                       "use at least 2 classes, 2 nodes per class and as many features as classes")  # fmt: skip
    generator = stream(seed, "csbm")
    y = torch.arange(nodes) % classes
    y = y[torch.randperm(nodes, generator=generator)]
    directions = torch.linalg.qr(torch.randn(features, features, generator=generator)).Q[:classes]
    x = feature_strength * directions[y] + torch.randn(nodes, features, generator=generator)
    edges, sign = _csbm_edges(y, classes, round(nodes * degree / 2), homophily, noise, generator)
    graph = Graph.build(x, edges, y, directed=False, edge_sign=sign, num_classes=classes, name="csbm")
    return random_split(graph, seed)


def _csbm_edges(
    y: Tensor, classes: int, count: int, homophily: float, noise: float, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Draw `count` edges: the kind of each first, then an end, then a partner of the class that the kind asks for."""
    n = y.numel()
    by_class = [torch.nonzero(y == c).reshape(-1) for c in range(classes)]
    kind = torch.rand(count, generator=generator)
    sign = torch.where(kind < noise, 0, torch.where(kind < noise + (1 - noise) * homophily, 1, -1))
    first = torch.randint(n, (count,), generator=generator)
    step = torch.where(torch.rand(count, generator=generator) < 0.5, 1, -1)
    wanted = torch.where(sign == 1, y[first], (y[first] + step) % classes)
    place = torch.rand(count, generator=generator)
    second = torch.randint(n, (count,), generator=generator)
    for c, members in enumerate(by_class):
        chosen = (wanted == c) & (sign != 0)
        second[chosen] = members[(place[chosen] * members.numel()).long()]
    # a pair drawn twice keeps its first sign only if both agree on it; disagreeing pairs would have no single truth
    low, high = torch.minimum(first, second), torch.maximum(first, second)
    key = low * n + high
    _, inverse = torch.unique(key, return_inverse=True)
    top = torch.full((int(inverse.max()) + 1,), -2).scatter_reduce(0, inverse, sign, "amax")
    bottom = torch.full_like(top, 2).scatter_reduce(0, inverse, sign, "amin")
    keep = (top == bottom)[inverse] & (low != high)
    return torch.stack([first, second])[:, keep], sign[keep].to(torch.int8)


def digits(
    neighbours: int = 5, wrong_edges: float = 1.5, feature_noise: float = 4.0, labelled: float = 0.05, seed: int = 0
) -> Graph:
    """scikit-learn's 1,797 handwritten digits as a graph with planted wrong edges.

    The graph joins each clean image to its nearest neighbours; then `wrong_edges` times as many edges are added between random
    images of different digits (sign 0, noise). The features a model sees carry Gaussian noise of `feature_noise` grey
    levels (of 16), so that neither features nor edges suffice alone. `labelled` is the share of training labels; as
    many again validate.
    """
    if wrong_edges < 0.0 or feature_noise < 0.0 or not 0.0 < labelled < 0.5:
        raise BadInput(f"digits: found wrong_edges={wrong_edges}, feature_noise={feature_noise}, labelled={labelled}; "
                       "use 0 or more, 0 or more, and a share between 0 and 0.5")  # fmt: skip
    generator = stream(seed, "digits")
    images, labels = load_digits(return_X_y=True)
    clean = torch.tensor(images, dtype=torch.float32)
    y = torch.tensor(labels, dtype=torch.int64)
    n = y.numel()
    # a tree, not matrix products: clean images have equal distances, and products round them by the number of threads
    search = NearestNeighbors(n_neighbors=neighbours + 1, algorithm="kd_tree").fit(clean.numpy())
    near = search.kneighbors(return_distance=False)
    # kneighbors() without argument excludes the point itself
    near = torch.from_numpy(near[:, :neighbours])
    true = torch.stack([near.reshape(-1), torch.arange(n).repeat_interleave(neighbours)])
    key = torch.unique(torch.minimum(true[0], true[1]) * n + torch.maximum(true[0], true[1]))
    good = torch.stack([key // n, key % n])
    wanted = round(wrong_edges * good.shape[1])
    pool = torch.randint(n, (2, 4 * wanted + 16), generator=generator)
    pool_key = torch.minimum(pool[0], pool[1]) * n + torch.maximum(pool[0], pool[1])
    fresh = (y[pool[0]] != y[pool[1]]) & ~torch.isin(pool_key, key)
    bad_key = torch.unique(pool_key[fresh])
    bad_key = bad_key[torch.randperm(bad_key.numel(), generator=generator)[:wanted]]
    bad = torch.stack([bad_key // n, bad_key % n])
    good_sign = torch.where(y[good[0]] == y[good[1]], 1, -1)
    sign = torch.cat([good_sign, torch.zeros(bad.shape[1], dtype=torch.int64)]).to(torch.int8)
    x = clean + feature_noise * torch.randn(clean.shape, generator=generator)
    graph = Graph.build(
        x, torch.cat([good, bad], 1), y, directed=False, edge_sign=sign,
        class_names=[str(c) for c in range(10)], name="digits",
    )  # fmt: skip
    return random_split(graph, seed, fractions=(labelled, labelled))
