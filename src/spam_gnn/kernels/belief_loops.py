"""Compiled belief propagation over an undirected graph, some edges at a time: see `posterior/belief.py` for its equations.

Tables in memory are (edges, C) and (nodes, C), so that what is looked up lies side by side; within a block of edges classes
come first, so that every operation runs along the edges, in vector registers. `heard` (m, C) holds log messages before they
are weighted by how far the listener believes them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spam_gnn.kernels.compiled import compiled, inlined
from spam_gnn.kernels.elementary import exp, log
from spam_gnn.kernels.prefetch import ask_for_row

BLOCK = 256  # edges that are dealt with together: their tables stay in the first-level cache
FLOOR = 1e-6  # added to every likelihood, so that no logarithm is of zero


@inlined
def gather(table: Any, nodes: Any, start: int, size: int, out: Any) -> None:
    """out_c,b = table of the listed node, class c."""
    for b in range(size):
        j = nodes[start + b]
        for c in range(out.shape[0]):
            out[c, b] = table[j, c]


@inlined
def cavity(
    belief: Any, weight: Any, heard: Any, nodes: Any, edges: Any, start: int, size: int, out: Any, top: Any, total: Any
) -> None:  # fmt: skip
    """What the listed nodes believe without what they heard along the listed edges: softmax of the difference."""
    classes = out.shape[0]
    for b in range(size):
        ask_for_row(heard, edges[min(start + b + BLOCK, edges.size - 1)], classes)  # of the next block
        j, e = nodes[start + b], edges[start + b]
        w = weight[j]
        for c in range(classes):
            out[c, b] = belief[j, c] - w * heard[e, c]
    for b in range(size):
        top[b] = out[0, b]
        total[b] = 0.0
    for c in range(1, classes):
        for b in range(size):
            top[b] = out[c, b] if out[c, b] > top[b] else top[b]
    for c in range(classes):
        for b in range(size):
            out[c, b] = exp(out[c, b] - top[b])
        for b in range(size):
            total[b] += out[c, b]
    for b in range(size):
        total[b] = total.dtype.type(1.0) / total[b]
    for c in range(classes):
        for b in range(size):
            out[c, b] *= total[b]


@inlined
def mix(weights: Any, c: int, beliefs: Any, size: int, out: Any) -> None:
    """out = sum_c' weights_(c, c') beliefs_c'."""
    for b in range(size):
        out[b] = 0.0
    for other in range(weights.shape[1]):
        w = weights[c, other]
        for b in range(size):
            out[b] += w * beliefs[other, b]


@inlined
def likelihood(
    rest: Any, start: int, size: int, mixture: Any, weights: Any, support: Any, c: int, speaker: Any, out: Any
) -> None:  # fmt: skip
    """out = boost_- (weights speaker)_c + boost_+ support_c speaker_c + floor, boosts 3 rest and 3 - 6 rest."""
    kind = rest.dtype.type
    mix(weights, c, speaker, size, mixture)
    three, six, floor, own = kind(3.0), kind(6.0), kind(FLOOR), support[c]
    for b in range(size):
        r = rest[start + b]
        out[b] = three * r * mixture[b] + (three - six * r) * own * speaker[c, b] + floor


@compiled
def hear_rows(
    first: int, last: int, pointer: Any, source: Any, reverse: Any, prior: Any, belief: Any, weight: Any, before: Any,
    rest: Any, weights: Any, support: Any, heard: Any, out: Any,
) -> None:  # fmt: skip
    """One round at the nodes first .. last - 1: their incoming log messages `heard` (m, C), and log beliefs `out` (n, C).

    `before` are the messages of the round before; without any, `belief` holds probabilities and nothing is taken away.
    """
    classes, kind, fresh = prior.shape[1], prior.dtype, before.shape[0] == 0
    speaker, found = np.empty((classes, BLOCK), kind), np.empty((classes, BLOCK), kind)
    top, total = np.empty(BLOCK, kind), np.empty(BLOCK, kind)
    for start in range(pointer[first], pointer[last], BLOCK):
        size = min(BLOCK, pointer[last] - start)
        if fresh:
            gather(belief, source, start, size, speaker)
        else:
            cavity(belief, weight, before, source, reverse, start, size, speaker, top, total)
        for c in range(classes):
            likelihood(rest, start, size, top, weights, support, c, speaker, total)
            for b in range(size):
                found[c, b] = log(total[b])
        for b in range(size):
            for c in range(classes):
                heard[start + b, c] = found[c, b]
    for i in range(first, last):
        for c in range(classes):
            found[c, 0] = 0.0
        for e in range(pointer[i], pointer[i + 1]):
            for c in range(classes):
                found[c, 0] += heard[e, c]
        for c in range(classes):
            out[i, c] = prior[i, c] + weight[i] * found[c, 0]


@inlined
def list_pairs(
    edge: Any, reverse: Any, source: Any, target: Any, rest: Any, heard: Any, start: int, size: int, edges: Any, ends: Any,
    boost: Any,
) -> None:  # fmt: skip
    """Of some pairs: the edge that stands for each and its mirror image, the nodes that these arrive at, and `rest`, a third
    where there is no evidence.

    What was heard along the mirror images of the next block is asked for.
    """
    even, third = rest.size == 0, boost.dtype.type(1.0 / 3.0)
    for b in range(size):
        ask_for_row(heard, reverse[edge[min(start + b + BLOCK, edge.size - 1)]], heard.shape[1])
        e = edge[start + b]
        edges[0, b], edges[1, b], ends[0, b], ends[1, b] = e, reverse[e], target[e], source[e]
        boost[b] = third if even else rest[e]


@inlined
def likelihoods_of_signs(
    size: int, at_target: Any, at_source: Any, weights: Any, noise: Any, support: Any, mixture: Any, out: Any
) -> None:
    """out_s = sum_(c, c') of weight_s and the two beliefs, before the boost: opposing, absent, supporting."""
    for b in range(size):
        out[0, b] = 0.0
        out[1, b] = noise
        out[2, b] = 0.0
    for c in range(support.size):
        mix(weights, c, at_target, size, mixture)
        own = support[c]
        for b in range(size):
            out[0, b] += mixture[b] * at_source[c, b]
            out[2, b] += own * at_target[c, b] * at_source[c, b]


@compiled
def judge_pairs(
    first: int, last: int, edge: Any, reverse: Any, source: Any, target: Any, belief: Any, weight: Any, heard: Any, rest: Any,
    weights: Any, noise: Any, support: Any, out: Any,
) -> None:  # fmt: skip
    """log q (m, 3) of the pairs first .. last - 1, the same for both directions; `edge` (p,) stands for each pair."""
    classes, kind = support.size, belief.dtype
    at_target, at_source = np.empty((classes, BLOCK), kind), np.empty((classes, BLOCK), kind)
    top, total, boost, like = np.empty(BLOCK, kind), np.empty(BLOCK, kind), np.empty(BLOCK, kind), np.empty((3, BLOCK), kind)
    edges, ends = np.empty((2, BLOCK), np.int64), np.empty((2, BLOCK), np.int64)
    three, six, floor = kind.type(3.0), kind.type(6.0), kind.type(FLOOR)
    for start in range(first, last, BLOCK):
        size = min(BLOCK, last - start)
        list_pairs(edge, reverse, source, target, rest, heard, start, size, edges, ends, boost)
        cavity(belief, weight, heard, ends[0], edges[0], 0, size, at_target, top, total)
        cavity(belief, weight, heard, ends[1], edges[1], 0, size, at_source, top, total)
        likelihoods_of_signs(size, at_target, at_source, weights, noise, support, top, like)
        for b in range(size):
            ask_for_row(out, edges[1, b], 3)
        for b in range(size):
            like[0, b] = three * boost[b] * like[0, b] + floor
            like[1, b] = three * boost[b] * like[1, b] + floor
            like[2, b] = (three - six * boost[b]) * like[2, b] + floor
            total[b] = like[0, b] + like[1, b] + like[2, b]
        for b in range(size):
            total[b] = log(total[b])
        for s in range(3):
            for b in range(size):
                like[s, b] = log(like[s, b]) - total[b]
        for b in range(size):
            for s in range(3):
                out[edges[0, b], s] = like[s, b]
                out[edges[1, b], s] = like[s, b]


@compiled
def agree_pairs(
    first: int, last: int, edge: Any, source: Any, target: Any, belief: Any, ratio: Any, out: Any, to_ratio: Any
) -> None:
    """Of the pairs first .. last - 1: the sum of log (b_target . R b_source + floor), and its gradient in R (C, C)."""
    classes, kind = belief.shape[1], belief.dtype
    blocks, rows, ends = np.empty((2, classes, BLOCK), kind), np.empty((2, BLOCK), kind), np.empty((2, BLOCK), np.int64)
    at_target, at_source, mixture, total = blocks[0], blocks[1], rows[0], rows[1]
    floor, one, found = kind.type(FLOOR), kind.type(1.0), 0.0
    for start in range(first, last, BLOCK):
        size = min(BLOCK, last - start)
        for b in range(size):
            ends[0, b], ends[1, b], total[b] = target[edge[start + b]], source[edge[start + b]], floor
        gather(belief, ends[0], 0, size, at_target)
        gather(belief, ends[1], 0, size, at_source)
        for c in range(classes):
            mix(ratio, c, at_source, size, mixture)
            for b in range(size):
                total[b] += mixture[b] * at_target[c, b]
        here = kind.type(0.0)
        for b in range(size):
            here += log(total[b])
            mixture[b] = one / total[b]
        found += here
        for c in range(classes):
            for other in range(classes):
                here = kind.type(0.0)
                for b in range(size):
                    here += mixture[b] * at_target[c, b] * at_source[other, b]
                to_ratio[c, other] += here
    out[0] = found
