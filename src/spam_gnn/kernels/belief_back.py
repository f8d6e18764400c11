"""Compiled gradients of belief propagation: the passes of `belief_loops` from the last to the first.

What flows back through an edge's cavity belongs to the message along its mirror image and to a node; it is written at that
message, each place once, and nodes add up their rows afterwards. So threads share no result, and sums do not depend on them.
Beliefs and likelihoods are made again: they cost less than the memory they would fill. Sums over all edges are double.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spam_gnn.kernels.belief_loops import BLOCK, FLOOR, cavity, gather, likelihood, likelihoods_of_signs, list_pairs, mix
from spam_gnn.kernels.compiled import compiled, inlined
from spam_gnn.kernels.prefetch import ask_for_row


@inlined
def mix_back(weights: Any, c: int, flow: Any, size: int, out: Any) -> None:
    """out = sum_c' weights_(c', c) flow_c'."""
    for b in range(size):
        out[b] = 0.0
    for other in range(weights.shape[0]):
        w = weights[other, c]
        for b in range(size):
            out[b] += w * flow[other, b]


@inlined
def softmax_back(belief: Any, flow: Any, size: int, inner: Any) -> None:
    """flow becomes the gradient of what the softmax was taken of: b (flow - b . flow)."""
    for b in range(size):
        inner[b] = 0.0
    for c in range(belief.shape[0]):
        for b in range(size):
            inner[b] += belief[c, b] * flow[c, b]
    for c in range(belief.shape[0]):
        for b in range(size):
            flow[c, b] = belief[c, b] * (flow[c, b] - inner[b])


@inlined
def dot_of_three(scale: Any, left: Any, c: int, right: Any, d: int, size: int) -> Any:
    """sum_b scale left_c right_d."""
    total = left.dtype.type(0.0)
    for b in range(size):
        total += scale[b] * left[c, b] * right[d, b]
    return total


@inlined
def outer(scale: Any, left: Any, c: int, right: Any, size: int, out: Any) -> None:
    """out_(c, c') += sum_b scale left_c right_c'."""
    for other in range(right.shape[0]):
        out[c, other] += dot_of_three(scale, left, c, right, other, size)


@compiled
def gather_rows_back(
    first: int, last: int, pointer: Any, weight: Any, heard: Any, flows: Any, to_belief: Any, to_prior: Any, to_weight: Any
) -> None:
    """At nodes first .. last - 1, through belief = prior + weight sum heard; flows (m, C) become gradients of `heard`.

    They come as gradients of the weighted messages from the cavities, whose negative sum is what the belief got from there, to
    be added to `to_belief`, what it got otherwise.
    """
    classes = heard.shape[1]
    for i in range(first, last):
        begin, end, total = pointer[i], pointer[i + 1], to_weight[i]
        for e in range(begin, end):
            for c in range(classes):
                to_belief[i, c] -= flows[e, c]
        for c in range(classes):
            to_prior[i, c] += to_belief[i, c]
        for e in range(begin, end):
            for c in range(classes):
                flow = flows[e, c] + to_belief[i, c]
                total += flow * heard[e, c]
                flows[e, c] = flow * weight[i]
        to_weight[i] = total


@compiled
def sum_rows(first: int, last: int, pointer: Any, flows: Any, out: Any) -> None:
    """out_i += sum of the flows (m, C) that arrive at node i."""
    for i in range(first, last):
        for e in range(pointer[i], pointer[i + 1]):
            for c in range(out.shape[1]):
                out[i, c] += flows[e, c]


@inlined
def likelihood_back(
    rest: Any, start: int, size: int, weights: Any, support: Any, speaker: Any, flow: Any, scale: Any, other_scale: Any,
    mixture: Any, like: Any, gain: Any, to_weights: Any, to_support: Any,
) -> None:  # fmt: skip
    """flow becomes the gradient of the likelihoods; `gain` is that of `rest`, and the weights' tables are added to."""
    kind = rest.dtype.type
    three, six = kind(3.0), kind(6.0)
    for b in range(size):
        scale[b], gain[b] = three * rest[start + b], kind(0.0)
        other_scale[b] = three - kind(2.0) * scale[b]
    for c in range(support.size):
        likelihood(rest, start, size, mixture, weights, support, c, speaker, like)
        own = support[c]
        for b in range(size):
            flow[c, b] /= like[b]
        for b in range(size):
            gain[b] += flow[c, b] * (three * mixture[b] - six * own * speaker[c, b])
        to_support[c] += dot_of_three(other_scale, flow, c, speaker, c, size)
        outer(scale, flow, c, speaker, size, to_weights)


@compiled
def hear_rows_back(
    first: int, last: int, pointer: Any, source: Any, reverse: Any, belief: Any, weight: Any, before: Any, rest: Any,
    weights: Any, support: Any, flows: Any, to_before: Any, to_rest: Any, to_weights: Any, to_support: Any,
) -> None:  # fmt: skip
    """Through the messages to nodes first .. last - 1: `flows` (m, C) is the gradient of the log messages.

    `to_before` (m, C) gets, at each edge's mirror image, the gradient of the weighted message that the cavity left out (without
    `before`, that of the speaker's probabilities); the tables of the weights are the calling thread's own.
    """
    classes, kind, fresh = belief.shape[1], belief.dtype, before.shape[0] == 0
    blocks, rows = np.empty((3, classes, BLOCK), kind), np.empty((5, BLOCK), kind)
    speaker, flow, back = blocks[0], blocks[1], blocks[2]
    top, total, scale, other_scale, gain = rows[0], rows[1], rows[2], rows[3], rows[4]
    sign = kind.type(1.0) if fresh else kind.type(-1.0)
    for start in range(pointer[first], pointer[last], BLOCK):
        size = min(BLOCK, pointer[last] - start)
        if fresh:
            gather(belief, source, start, size, speaker)
        else:
            cavity(belief, weight, before, source, reverse, start, size, speaker, top, total)
        for b in range(size):
            ask_for_row(to_before, reverse[min(start + b + BLOCK, reverse.size - 1)], classes)  # of the next block
            for c in range(classes):
                flow[c, b] = flows[start + b, c]
        likelihood_back(rest, start, size, weights, support, speaker, flow, scale, other_scale, top, total, gain, to_weights,
                        to_support)  # fmt: skip
        for b in range(size):
            to_rest[start + b] += gain[b]
        for c in range(classes):
            mix_back(weights, c, flow, size, top)
            own = support[c]
            for b in range(size):
                back[c, b] = scale[b] * top[b] + other_scale[b] * own * flow[c, b]
        if not fresh:
            softmax_back(speaker, back, size, top)
        for b in range(size):
            r = reverse[start + b]
            for c in range(classes):
                to_before[r, c] = sign * back[c, b]


@inlined
def judgement_back(size: int, boost: Any, like: Any, flow: Any, gain: Any) -> None:
    """flow, the gradient of log q, becomes that of the likelihoods before the boost; `gain` is that of `rest`."""
    kind = like.dtype.type
    three, six, floor = kind(3.0), kind(6.0), kind(FLOOR)
    for b in range(size):
        near, far = three * boost[b], three - six * boost[b]
        a, n, s = near * like[0, b], near * like[1, b], far * like[2, b]
        part = (flow[0, b] + flow[1, b] + flow[2, b]) / (a + n + s + three * floor)
        to_a, to_n, to_s = flow[0, b] / (a + floor) - part, flow[1, b] / (n + floor) - part, flow[2, b] / (s + floor) - part
        gain[b] = three * (to_a * like[0, b] + to_n * like[1, b]) - six * to_s * like[2, b]
        flow[0, b], flow[1, b], flow[2, b] = near * to_a, near * to_n, far * to_s


@compiled
def judge_pairs_back(
    first: int, last: int, edge: Any, reverse: Any, source: Any, target: Any, belief: Any, weight: Any, heard: Any, rest: Any,
    weights: Any, noise: Any, support: Any, flows: Any, to_heard: Any, to_rest: Any, to_weights: Any, to_noise: Any,
    to_support: Any,
) -> None:  # fmt: skip
    """Through the judgement of the pairs first .. last - 1: `flows` (m, 3) is the gradient of log q of every edge.

    `to_heard` (m, C) gets the gradient of the weighted messages, minus that of the belief they were taken from.
    """
    classes, kind = support.size, belief.dtype
    blocks, rows = np.empty((4, classes, BLOCK), kind), np.empty((4, BLOCK), kind)
    at_target, at_source, to_target, to_source = blocks[0], blocks[1], blocks[2], blocks[3]
    top, total, boost, ones = rows[0], rows[1], rows[2], rows[3]
    like, flow = np.empty((3, BLOCK), kind), np.empty((3, BLOCK), kind)
    edges, ends = np.empty((2, BLOCK), np.int64), np.empty((2, BLOCK), np.int64)
    for b in range(BLOCK):
        ones[b] = 1.0
    for start in range(first, last, BLOCK):
        size = min(BLOCK, last - start)
        list_pairs(edge, reverse, source, target, rest, heard, start, size, edges, ends, boost)
        cavity(belief, weight, heard, ends[0], edges[0], 0, size, at_target, top, total)
        cavity(belief, weight, heard, ends[1], edges[1], 0, size, at_source, top, total)
        likelihoods_of_signs(size, at_target, at_source, weights, noise, support, top, like)
        for b in range(size):
            ahead = reverse[edge[min(start + b + BLOCK, edge.size - 1)]]  # of the next block
            ask_for_row(flows, ahead, 3)
            ask_for_row(to_heard, ahead, classes)
            for s in range(3):
                flow[s, b] = flows[edges[0, b], s] + flows[edges[1, b], s]
        judgement_back(size, boost, like, flow, total)
        if to_rest.size > 0:
            for b in range(size):
                to_rest[edges[0, b]] += total[b]
        to_noise[0] += dot_of_three(ones, flow, 1, rows, 3, size)
        for c in range(classes):
            own = support[c]
            to_support[c] += dot_of_three(flow[2], at_target, c, at_source, c, size)
            outer(flow[0], at_source, c, at_target, size, to_weights)
            mix(weights, c, at_target, size, top)
            for b in range(size):
                to_source[c, b] = flow[0, b] * top[b] + flow[2, b] * own * at_target[c, b]
            mix_back(weights, c, at_source, size, top)
            for b in range(size):
                to_target[c, b] = flow[0, b] * top[b] + flow[2, b] * own * at_source[c, b]
        softmax_back(at_target, to_target, size, top)
        softmax_back(at_source, to_source, size, top)
        for b in range(size):
            for c in range(classes):
                to_heard[edges[0, b], c] = -to_target[c, b]
                to_heard[edges[1, b], c] = -to_source[c, b]
