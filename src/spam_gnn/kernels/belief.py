"""Belief propagation over an undirected graph on the compiled loops, with its gradient: beliefs of nodes, signs of edges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from spam_gnn.kernels import belief_back, belief_loops
from spam_gnn.kernels.compiled import array, over_range, over_rows
from spam_gnn.kernels.memory import fresh

_COST = 8  # multiply-adds that a logarithm or an exponential is worth


@dataclass(frozen=True, eq=False)
class Mirrored:
    """The structure of an undirected graph: m edges sorted by target, each with its mirror image among them, p = m / 2 pairs.

    Args:
        pointer: (n + 1,), edges pointer[i] .. pointer[i + 1] - 1 arrive at node i.
        source, target, reverse: (m,), the ends of each edge and the place of its mirror image.
        edge: (p,), one edge of each pair.
    """

    pointer: Tensor
    source: Tensor
    target: Tensor
    reverse: Tensor
    edge: Tensor


class Terms(NamedTuple):
    """What an edge means.

    Args:
        weights: (3, C, C), of the signs; noise has one for all pairs of classes, that of support is diagonal.
        rest: (m,), a third of the evidence's factor for z = -1 and for z = 0; the three factors add up to 3. Empty: none.
    """

    weights: Tensor
    rest: Tensor


def propagate(
    structure: Mirrored, log_u: Tensor, heard_by: Terms, judged_by: Terms, weight: Tensor, rounds: int
) -> tuple[Tensor, Tensor]:
    """log q (m, 3) of the edges and log beliefs (n, C) of the nodes after some rounds, see `posterior/belief.py`.

    Args:
        log_u: (n, C), log beliefs before anything is heard.
        heard_by: what an edge says to its ends.
        judged_by: what its sign is judged by once beliefs are there.
        weight: (n,), how far a node believes each of its neighbours.
        rounds: at least 1.
    """
    operands = (*heard_by, *judged_by, weight, rounds)
    return _Propagate.apply(structure, log_u, *operands)  # pyright: ignore[reportReturnType]


def mean_log_agreement(edge_index: Tensor, edges: Tensor, belief: Tensor, ratio: Tensor) -> Tensor:
    """The mean over some edges of log (b_target . R b_source): beliefs (n, C) are constant, R (C, C) has a gradient.

    Args:
        edge_index: (2, m), source and target.
        edges: (p,), which of them; 0 where there are none.
    """
    if belief.device.type != "cpu":
        source, target = edge_index[:, edges]
        joint = ((belief @ ratio.t()).index_select(0, source) * belief.index_select(0, target)).sum(1)
        return (joint + belief_loops.FLOOR).log().mean() if joint.numel() else joint.sum()
    return _MeanLogAgreement.apply(edge_index, edges, belief, ratio)  # pyright: ignore[reportReturnType]


class _MeanLogAgreement(torch.autograd.Function):
    """Value and gradient come from the same pass: the latter is a table of (C, C)."""

    @staticmethod
    def forward(ctx: Any, edge_index: Tensor, edges: Tensor, belief: Tensor, ratio: Tensor) -> Tensor:
        (source, target), count, classes = (array(t) for t in edge_index), edges.numel(), ratio.shape[0]
        threads = max(1, torch.get_num_threads())
        sums, to_ratio = np.zeros((threads, 1)), np.zeros((threads, classes, classes))
        operands = array(edges), source, target, array(belief), array(ratio)
        over_range(count, count * classes * (2 * classes + _COST), lambda thread, a, b: belief_loops.agree_pairs(
            a, b, *operands, sums[thread], to_ratio[thread]
        ))  # fmt: skip
        ctx.to_ratio = torch.from_numpy(to_ratio.sum(0) / max(count, 1)).to(ratio)
        return ratio.new_tensor(sums.sum() / max(count, 1))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, None, None, Tensor]:
        return None, None, None, gradients[0] * ctx.to_ratio


@torch.no_grad()
def propagate_into(
    room: Callable[[int, int], Tensor], structure: Mirrored, log_u: Tensor, heard_by: Terms, judged_by: Terms, weight: Tensor,
    rounds: int,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The same without a gradient, where what is kept of every edge goes to `room(m, columns)`, which may live on disk."""
    passes, (n, classes), m = _Passes(structure, heard_by, judged_by, weight), log_u.shape, structure.source.numel()
    belief, heard, other = torch.softmax(log_u.t(), 0).t().contiguous(), room(0, classes), None
    for _ in range(rounds):
        refined, into = log_u.new_empty(n, classes), room(m, classes) if other is None else other
        passes.hear(array(log_u), array(belief), array(heard), into.numpy(), refined.numpy())
        belief, heard, other = refined, into, heard if len(heard) else None
    log_q = room(m, 3)
    passes.judge(array(belief), array(heard), log_q.numpy())
    return log_q, belief


class _Passes:
    """The compiled passes over one graph, with the operands that all of them share."""

    def __init__(self, structure: Mirrored, heard_by: Terms, judged_by: Terms, weight: Tensor) -> None:
        s, (oppose, noise, support) = structure, heard_by.weights.detach()
        self.pointer, self.edge, self.reverse = array(s.pointer), array(s.edge), array(s.reverse)
        self.source, self.target, self.rest, self.weight = array(s.source), array(s.target), array(heard_by.rest), array(weight)
        self.unlike, self.support = array(oppose + noise), array(support.diagonal())  # one factor for the first two signs
        oppose, noise, support = judged_by.weights.detach()
        self.judged = (array(judged_by.rest), array(oppose), array(noise).dtype.type(noise[0, 0]), array(support.diagonal()))
        self.size = self.source.size * oppose.shape[0] * (oppose.shape[0] + _COST)

    def rows(self, work: Callable[[int, int, int], None]) -> None:
        over_rows(self.pointer, self.size, work)

    def pairs(self, work: Callable[[int, int, int], None]) -> None:
        over_range(self.edge.size, self.size, work)

    def hear(self, prior: Any, belief: Any, before: Any, heard: Any, out: Any) -> None:
        self.rows(lambda _, a, b: belief_loops.hear_rows(
            a, b, self.pointer, self.source, self.reverse, prior, belief, self.weight, before, self.rest, self.unlike,
            self.support, heard, out,
        ))  # fmt: skip

    def judge(self, belief: Any, heard: Any, out: Any) -> None:
        self.pairs(lambda _, a, b: belief_loops.judge_pairs(
            a, b, self.edge, self.reverse, self.source, self.target, belief, self.weight, heard, *self.judged, out
        ))  # fmt: skip


class _Sums:
    """Gradients of weights that add up over all edges, a table for each thread: what is heard has w_- + w_0 (`table`) and the
    diagonal of w_+, what is judged w_-, w_0 and that diagonal."""

    def __init__(self, classes: int) -> None:
        threads = max(1, torch.get_num_threads())
        self.table, self.noise = np.zeros((threads, classes, classes)), np.zeros((threads, 1))
        self.support = np.zeros((threads, classes))

    def _added(self, like: Tensor) -> tuple[Tensor, ...]:
        return tuple(torch.from_numpy(t.sum(0)).to(like.dtype) for t in (self.table, self.noise, self.support))

    def of_heard(self, like: Tensor) -> Tensor:
        unlike, _, support = self._added(like)
        return torch.stack([unlike, unlike, support.diag()])

    def of_judged(self, like: Tensor) -> Tensor:
        opposing, noise, support = self._added(like)
        absent = torch.zeros_like(opposing)
        absent[0, 0] = noise[0]
        return torch.stack([opposing, absent, support.diag()])


class _Propagate(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, structure: Mirrored, log_u: Tensor, weights: Tensor, rest: Tensor, judge: Tensor, judge_rest: Tensor,
        weight: Tensor, rounds: int,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        keep, (n, classes), m = any(ctx.needs_input_grad), log_u.shape, structure.source.numel()
        passes, prior = _Passes(structure, Terms(weights, rest), Terms(judge, judge_rest), weight), array(log_u)
        beliefs, heard = [torch.softmax(log_u.detach().t(), 0).t().contiguous()], [fresh(0, classes, like=log_u)]
        for _ in range(rounds):
            beliefs.append(log_u.new_empty(n, classes))
            heard.append(fresh(m, classes, like=log_u))
            passes.hear(prior, array(beliefs[-2]), array(heard[-2]), array(heard[-1]), array(beliefs[-1]))
            if not keep:
                del beliefs[0], heard[0]
        log_q = fresh(m, 3, like=log_u)
        passes.judge(array(beliefs[-1]), array(heard[-1]), array(log_q))
        if keep:
            ctx.structure = structure
            ctx.save_for_backward(log_u, weights, rest, judge, judge_rest, weight, *beliefs, *heard)
        return log_q, beliefs[-1]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        log_u, weights, rest, judge, judge_rest, weight, *made = ctx.saved_tensors
        beliefs, heard = made[: len(made) // 2], made[len(made) // 2 :]
        passes = _Passes(ctx.structure, Terms(weights, rest), Terms(judge, judge_rest), weight)
        of_heard, of_judged = _Sums(log_u.shape[1]), _Sums(log_u.shape[1])
        to_rest, to_judge_rest = torch.zeros_like(rest), torch.zeros_like(judge_rest)
        to_weight, to_prior = torch.zeros_like(weight), log_u.new_zeros(log_u.shape)  # rows side by side
        to_belief, flows = gradients[1].clone(memory_format=torch.contiguous_format), fresh(*heard[-1].shape, like=log_u)
        _judge_back(passes, of_judged, beliefs[-1], heard[-1], gradients[0], flows, to_judge_rest)
        for turn in range(len(heard) - 1, 0, -1):
            _gather_back(passes, heard[turn], flows, to_belief, to_prior, to_weight)
            onward = fresh(*heard[turn].shape, like=log_u)
            _hear_back(passes, of_heard, beliefs[turn - 1], heard[turn - 1], flows, onward, to_rest)
            flows, to_belief = onward, torch.zeros_like(to_belief)
        _sum_rows(passes, flows, to_belief)
        start = beliefs[0]  # probabilities: nothing was heard before the first round
        to_prior += start * (to_belief - (start * to_belief).sum(1, keepdim=True))
        judged = of_judged.of_judged(judge), to_judge_rest
        return None, to_prior, of_heard.of_heard(weights), to_rest, *judged, to_weight, None


def _judge_back(
    p: _Passes, sums: _Sums, belief: Tensor, heard: Tensor, to_log_q: Tensor, to_heard: Tensor, to_rest: Tensor
) -> None:
    given, results = [array(t) for t in (belief, heard, to_log_q)], [array(t) for t in (to_heard, to_rest)]
    p.pairs(lambda t, a, b: belief_back.judge_pairs_back(
        a, b, p.edge, p.reverse, p.source, p.target, given[0], p.weight, given[1], *p.judged, given[2], *results, sums.table[t],
        sums.noise[t], sums.support[t],
    ))  # fmt: skip


def _gather_back(
    p: _Passes, heard: Tensor, flows: Tensor, to_belief: Tensor, to_prior: Tensor, to_weight: Tensor
) -> None:
    arrays = [array(t) for t in (heard, flows, to_belief, to_prior, to_weight)]
    p.rows(lambda _, a, b: belief_back.gather_rows_back(a, b, p.pointer, p.weight, *arrays))


def _hear_back(
    p: _Passes, sums: _Sums, belief: Tensor, before: Tensor, flows: Tensor, onward: Tensor, to_rest: Tensor
) -> None:
    """Through the messages of one round; `before` it this was heard, and `onward` gets the gradient of that, weighted."""
    given, results = [array(t) for t in (belief, before, flows)], [array(t) for t in (onward, to_rest)]
    p.rows(lambda t, a, b: belief_back.hear_rows_back(
        a, b, p.pointer, p.source, p.reverse, given[0], p.weight, given[1], p.rest, p.unlike, p.support, given[2], *results,
        sums.table[t], sums.support[t],
    ))  # fmt: skip


def _sum_rows(p: _Passes, flows: Tensor, out: Tensor) -> None:
    given, into = array(flows), array(out)
    p.rows(lambda _, a, b: belief_back.sum_rows(a, b, p.pointer, given, into))
