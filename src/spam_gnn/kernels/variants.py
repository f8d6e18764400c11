"""What is the same in several samples is made once: nodes whose messages are drawn alike, rows that several samples share.

Half the nodes of a usual graph have one or two neighbours, and a posterior that has learned something is sure of most edges. So
of K samples many agree about a node: in who speaks to it, with which sign, and with which values. Such samples are one variant
of the node, and have one row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spam_gnn.kernels.compiled import array, compiled, inlined, over_rows
from spam_gnn.structure import Messages

SHARED = 0.4  # variants for each node and sample, as a share, up to which rows in common pay (benchmarks/sharing.py)
_LOOKS, _LOOKED_AT = 16, 32  # before all nodes are compared: places in their order, and nodes at each
_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # odd, with bits all over: keys of what differs differ, all but always


@dataclass(frozen=True, eq=False)
class Held:
    """What the nodes of K samples hold.

    Args:
        rows: (r, d), those that the first sample has first, then what the second has beside these, and so on; a sample's own
            are in the order of the nodes.
        place: (n, K) int32, the row of a node in a sample; (n, 1) where all samples share everything.
        begin: (K + 1,), where the own rows of each sample begin.
    """

    rows: Tensor
    place: NDArray[np.int32]
    begin: NDArray[np.int64]

    @classmethod
    def of(cls, hidden: Tensor) -> Held:
        """From (K, n, d), or (1, n, d) where the samples share it; every node of every sample has a row of its own."""
        samples, n, width = hidden.shape
        return cls(hidden.reshape(n * samples, width), *_rows_for_all(n, samples))

    @property
    def all_apart(self) -> bool:
        """Whether no two of several samples share a row."""
        return self.place.shape[1] > 1 and self.rows.shape[0] == self.place.size

    def dense(self) -> Tensor:
        """(K or 1, n, d)."""
        return self.rows[torch.from_numpy(self.place.T.astype(np.int64))]

    def of_sample(self, k: int) -> NDArray[np.int32]:
        """The row of each node in one sample."""
        return np.ascontiguousarray(self.place[:, k])


@dataclass(frozen=True, eq=False)
class Variants:
    """Which samples agree about a node.

    Args:
        leader: (n, K) int32, the first sample that agrees with this one about the node.
        place, begin: as of `Held`, with a row for each variant.
    """

    leader: NDArray[np.int32]
    place: NDArray[np.int32]
    begin: NDArray[np.int64]

    @classmethod
    def each_alone(cls, nodes: int, samples: int) -> Variants:
        """Every sample by itself."""
        return cls(np.tile(np.arange(samples, dtype=np.int32), (nodes, 1)), *_rows_for_all(nodes, samples))

    @property
    def count(self) -> int:
        return int(self.begin[-1])


def _rows_for_all(nodes: int, samples: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Place and begin of one row for each node and sample."""
    place = np.arange(nodes * samples, dtype=np.int32).reshape(samples, nodes).T.copy()
    return place, nodes * np.arange(samples + 1)


def variants_of(messages: Messages, held: Held, signs: Tensor, samples: range) -> Variants:
    """The variants of what a layer makes of the nodes: equal in the node's own row, and in sign and row of those it hears.

    Args:
        signs: (m, all samples) int8, in the order of the messages.
        samples: which of them.
    """
    n, total = messages.num_nodes, len(samples)
    if held.all_apart:
        return Variants(np.tile(np.arange(total, dtype=np.int32), (n, 1)), held.place, held.begin)
    if total == 1:
        return Variants.each_alone(n, total)
    leader, place, begin = np.empty((n, total), np.int32), np.empty((n, total), np.int32), np.zeros(total + 1, np.int64)
    (pointer, source), drawn = messages.arrays, array(signs)

    def work(thread: int, first: int, last: int) -> None:  # noqa: ARG001 - threads share nothing here
        compare_samples(first, last, pointer, source, drawn, samples.start, held.place, leader)

    if n > 2 * _LOOKS * _LOOKED_AT and not _many_agree(leader, work):
        return Variants.each_alone(n, total)
    over_rows(pointer, 2 * (messages.count + 4 * n) * total, work)
    number_variants(leader, begin, place)
    return Variants(leader, place, begin) if begin[-1] <= SHARED * n * total else Variants.each_alone(n, total)


def _many_agree(leader: NDArray[np.int32], compare: Callable[[int, int, int], None]) -> bool:
    """Whether rows in common may pay, by some nodes: to compare the samples of all took 2 % of a prediction."""
    n, samples = leader.shape
    starts = np.linspace(0, n - _LOOKED_AT, _LOOKS).astype(np.int64)
    for first in starts.tolist():
        compare(0, first, first + _LOOKED_AT)
    seen = leader[(starts[:, None] + np.arange(_LOOKED_AT)).reshape(-1)]
    return float((seen == np.arange(samples)).mean()) <= 1.25 * SHARED


@inlined
def keys_of(pointer: Any, source: Any, signs: Any, sample: int, held: Any, i: int, keys: Any) -> None:
    """A number for each sample that is the same where samples agree about node i."""
    if held.shape[1] == 1:
        for k in range(keys.size):
            keys[k] = np.uint64(0)
        for e in range(pointer[i], pointer[i + 1]):
            for k in range(keys.size):
                mixed = (keys[k] ^ np.uint64(signs[e, sample + k])) * _FACTOR
                keys[k] = mixed ^ (mixed >> np.uint64(29))
    else:
        for k in range(keys.size):
            keys[k] = np.uint64(held[i, k])
        for e in range(pointer[i], pointer[i + 1]):
            for k in range(keys.size):
                sign = np.int64(signs[e, sample + k])
                seen = sign + np.int64(4) * (sign * sign) * np.int64(held[source[e], k])
                mixed = (keys[k] ^ np.uint64(seen)) * _FACTOR
                keys[k] = mixed ^ (mixed >> np.uint64(29))


@inlined
def agree(pointer: Any, source: Any, signs: Any, sample: int, held: Any, i: int, k: int, other: int) -> bool:
    """Whether samples k and `other`, counted from `sample` on, hold the same of node i and of those it hears."""
    shared = held.shape[1] == 1
    if not shared and held[i, k] != held[i, other]:
        return False
    for e in range(pointer[i], pointer[i + 1]):
        sign = signs[e, sample + k]
        if sign != signs[e, sample + other]:
            return False
        if sign != 0 and not shared and held[source[e], k] != held[source[e], other]:
            return False
    return True


@inlined
def leads(leader: Any, i: int, here: int, samples: int) -> bool:
    """Whether one of the samples is the first of its variant of node i."""
    for k in range(here, here + samples):  # noqa: SIM110 - compiled: no generators
        if leader[i, k] == k:
            return True
    return False


@compiled
def compare_samples(
    first: int, last: int, pointer: Any, source: Any, signs: Any, sample: int, held: Any, leader: Any
) -> None:
    """The first sample that agrees with each about node i, for i = first .. last - 1."""
    keys = np.empty(leader.shape[1], np.uint64)
    for i in range(first, last):
        keys_of(pointer, source, signs, sample, held, i, keys)
        for k in range(leader.shape[1]):
            found = k
            for v in range(k - 1, -1, -1):
                found = v if keys[v] == keys[k] else found
            if found < k and not agree(pointer, source, signs, sample, held, i, k, found):
                found = k  # two keys that are equal by chance
            leader[i, k] = found


@compiled
def number_variants(leader: Any, begin: Any, place: Any) -> None:
    """Rows for the variants: those whose leader is the first sample first; begin_k is where those of sample k begin."""
    n, samples = leader.shape
    for i in range(n):
        for k in range(samples):
            begin[k + 1] += 1 if leader[i, k] == k else 0
    for k in range(samples):
        begin[k + 1] += begin[k]
    following = begin.copy()
    for i in range(n):
        for k in range(samples):
            if leader[i, k] == k:
                place[i, k] = following[k]
                following[k] += 1
            else:
                place[i, k] = place[i, leader[i, k]]
