"""`Messages`: who listens to whom, sorted once so that every later pass is a sparse product.

A message goes from `source` to `target`. Messages are sorted by (target, source), which is exactly the row order of a
CSR matrix whose row is the listening node; the permutation to the transposed order is kept for gradients.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Messages:
    """The m directed messages of a graph with n nodes, in CSR order.

    Args:
        num_nodes: n.
        source: (m,) int64, the speaking node of each message.
        target: (m,) int64, the listening node, ascending.
        edge: (m,) int64, which edge of the graph each message travels along (its posterior, its drawn sign).
    """

    num_nodes: int
    source: Tensor
    target: Tensor
    edge: Tensor

    @staticmethod
    def build(source: Tensor, target: Tensor, num_nodes: int) -> Messages:
        """Sort (target, source); `edge` maps each message back to its position in the input."""
        order = torch.argsort(target * num_nodes + source, stable=True)
        return Messages(num_nodes, source[order], target[order], order)

    @property
    def count(self) -> int:
        return self.source.numel()

    @cached_property
    def row_pointer(self) -> Tensor:
        """(n + 1,): messages row_pointer[i] .. row_pointer[i + 1] - 1 arrive at node i."""
        return row_pointer(self.target, self.num_nodes)

    @cached_property
    def arrays(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """`row_pointer` and `source` as compiled loops read them: made once, since small graphs feel each conversion."""
        return self.row_pointer.contiguous().numpy(), self.source.long().contiguous().numpy()

    @cached_property
    def in_edge_order(self) -> bool:
        """Whether message e travels along edge e, so that nothing has to be rearranged."""
        return bool((self.edge == torch.arange(self.count, device=self.edge.device)).all())

    @cached_property
    def degree(self) -> Tensor:
        """(n,) int64: how many messages arrive at each node."""
        return self.row_pointer.diff()

    @cached_property
    def transpose_order(self) -> Tensor:
        """(m,): the permutation that sorts the messages by (source, target), the CSR order of the transpose."""
        return torch.argsort(self.source * self.num_nodes + self.target, stable=True)

    @cached_property
    def transposed(self) -> Messages:
        """The same messages travelling backwards, sorted in their own right; `edge` indexes *these* messages."""
        order = self.transpose_order
        return Messages(self.num_nodes, self.target[order], self.source[order], order)

    @cached_property
    def blocks(self) -> dict[tuple[int, bool], tuple[Tensor, Tensor]]:
        """Block-diagonal copies of the structure by (samples, shared columns), filled on first use."""
        return {}


def row_pointer(rows: Tensor, num_nodes: int) -> Tensor:
    """(n + 1,): where each row begins among ascending row numbers."""
    counts = torch.bincount(rows, minlength=num_nodes)
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])


def adjacency(edges: Tensor, n: int) -> scipy.sparse.csr_array:
    """(n, n), row the target, columns ascending, each edge once: counting instead of sorting, a third of the time."""
    width = np.int32 if n < 2**31 else np.int64
    source, target = (end.numpy().astype(width) for end in edges)
    ones = np.ones(len(source), dtype=np.int8)
    return _with_ones(scipy.sparse.csr_array(scipy.sparse.coo_array((ones, (target, source)), shape=(n, n))))


def _with_ones(matrix: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    matrix.data[:] = 1  # repeats were added up, and 256 of them would be 0 in a byte
    return matrix


def with_mirrored(matrix: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    """Each edge in both directions, once."""
    return _with_ones(matrix + scipy.sparse.csr_array(matrix.T))


def edge_index_of(matrix: scipy.sparse.csr_array) -> Tensor:
    """(2, m) int64, sorted by (target, source)."""
    edges = np.empty((2, matrix.nnz), dtype=np.int64)
    edges[0] = matrix.indices
    edges[1] = np.repeat(np.arange(len(matrix.indptr) - 1, dtype=matrix.indices.dtype), np.diff(matrix.indptr))
    return torch.from_numpy(edges)
