"""Node features as a matrix that is only ever multiplied: sparse stays sparse, dropout acts on stored values only."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from spam_gnn.randomness import dropout

# torch announces once per process that CSR tensors are "in beta". Users cannot act on it, so it is spent here.
with warnings.catch_warnings():
    warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")
    torch.sparse_csr_tensor([0, 1], [0], [1.0], (1, 1), check_invariants=False)

_PIECE = 65536  # rows handled at a time where a product would otherwise need an (edges x features) tensor
SKIPPED_BELOW = 0.25  # the same for the compiled product, which predictions use of a matrix that is stored dense
SPARSE_BELOW = 0.1  # share of nonzero entries under which the sparse product wins on one thread


@dataclass(frozen=True, eq=False)
class FeatureMatrix:
    """X as stored for products: either `dense` (n, d), or the CSR arrays of X and of its transpose.

    Args:
        shape: (n, d).
        dense: the matrix itself, or None when the CSR arrays are used.
        rows, columns, values: CSR arrays of X.
        t_rows, t_columns, t_order: CSR structure of X^T and the order that carries X's values into it.
    """

    shape: tuple[int, int]
    dense: Tensor | None
    rows: Tensor | None = None
    columns: Tensor | None = None
    values: Tensor | None = None
    t_rows: Tensor | None = None
    t_columns: Tensor | None = None
    t_order: Tensor | None = None

    @staticmethod
    def of(x: Tensor) -> FeatureMatrix:
        """Choose the form by density; a dense tensor that is mostly zeros is stored sparse."""
        shape = (x.shape[0], x.shape[1])
        if x.layout == torch.strided:
            if x.numel() == 0 or float((x != 0).to(torch.float32).mean()) >= SPARSE_BELOW:
                return FeatureMatrix(shape, x)
            x = x.to_sparse_csr()
        rows, columns, values = x.crow_indices(), x.col_indices(), x.values()
        row_of = torch.repeat_interleave(torch.arange(shape[0]), rows.diff())
        order = torch.argsort(columns * shape[0] + row_of)
        counts = torch.bincount(columns, minlength=shape[1])
        t_rows = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        return FeatureMatrix(shape, None, rows, columns, values, t_rows, row_of[order], order)

    def project(
        self, weight: Tensor, rate: float = 0.0, generator: torch.Generator | None = None, bias: Tensor | None = None
    ) -> Tensor:
        """dropout(X) @ weight + bias: weight (d, h), bias (h,) -> (n, h)."""
        if self.dense is not None:
            if generator is None and not torch.is_grad_enabled() and self._stored is not None:
                rows, columns, values = self._stored
                return _plus(_product(rows, columns, values.to(weight.dtype), self.shape, weight), bias)
            x = _dropped(self.dense, rate, generator)
            return x @ weight if bias is None else torch.addmm(bias, x, weight)  # a sum of its own would be one more (n, h)
        assert self.values is not None
        values = _dropped(self.values, rate, generator)
        if not torch.is_grad_enabled():  # what an autograd function costs by itself is felt on small graphs
            return _plus(_product(self.rows, self.columns, values.to(weight.dtype), self.shape, weight), bias)
        return _plus(_SparseProject.apply(self, values, weight), bias)  # pyright: ignore

    @cached_property
    def _stored(self) -> tuple[Tensor, Tensor, Tensor] | None:
        """CSR arrays of a dense matrix with many zeros, for predictions: while training, dropout is drawn for every entry."""
        if self.dense is None or float((self.dense != 0).sum()) >= SKIPPED_BELOW * self.dense.numel():
            return None
        csr = self.dense.detach().to_sparse_csr()
        return csr.crow_indices(), csr.col_indices(), csr.values()

    def row_scaled(self) -> FeatureMatrix:
        """Rows divided by their Euclidean norms; empty rows stay empty."""
        norms = self.row_norms().clamp(min=1e-12)
        if self.dense is not None:
            return FeatureMatrix(self.shape, self.dense / norms.unsqueeze(1))
        assert self.values is not None
        return replace(self, values=self.values / norms[self._row_of()])

    def times(self, number: float) -> FeatureMatrix:
        """All entries multiplied by one number."""
        if self.dense is not None:
            return FeatureMatrix(self.shape, self.dense * number)
        assert self.values is not None
        return replace(self, values=self.values * number)

    def column_scaled(self, shift: Tensor, scale: Tensor) -> FeatureMatrix:
        """(x - shift) * scale, column by column; the result is dense, since a shifted zero is no longer zero."""
        return FeatureMatrix(self.shape, (self.to_dense() - shift) * scale)

    def to_dense(self) -> Tensor:
        if self.dense is not None:
            return self.dense
        return _csr(self.rows, self.columns, self.values, self.shape).to_dense()

    def column_moments(self) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of each column over the nodes, (d,) each."""
        dense = self.to_dense()
        return dense.mean(0), dense.std(0, correction=0)

    def row_norms(self) -> Tensor:
        """(n,): Euclidean norms of the rows."""
        if self.dense is not None:
            return self.dense.norm(dim=1)
        assert self.values is not None
        return self.values.new_zeros(self.shape[0]).index_add(0, self._row_of(), self.values.square()).sqrt()

    def row_dots(self, left: Tensor, right: Tensor) -> Tensor:
        """(p,): inner products x_left . x_right of row pairs, in pieces so that no (p x d) tensor exists."""
        if self.dense is None:
            rows, columns, values = (t.numpy() for t in (self.rows, self.columns, self.values) if t is not None)
            matrix = scipy.sparse.csr_array((values, columns, rows), shape=self.shape)
            pieces = [
                np.asarray(matrix[a.numpy()].multiply(matrix[b.numpy()]).sum(axis=1)).reshape(-1)
                for a, b in zip(left.split(_PIECE), right.split(_PIECE), strict=True)
            ]
            return torch.from_numpy(np.concatenate([np.zeros(0, np.float32), *pieces])).to(torch.float32)
        pieces = [(self.dense[a] * self.dense[b]).sum(1) for a, b in
                  zip(left.split(_PIECE), right.split(_PIECE), strict=True)]  # fmt: skip
        return torch.cat([self.dense.new_zeros(0), *pieces])

    def _row_of(self) -> Tensor:
        assert self.rows is not None
        return torch.repeat_interleave(torch.arange(self.shape[0]), self.rows.diff())

    @staticmethod
    def of_rows(x: Tensor) -> FeatureMatrix:
        """For products of rows only: sparse features as they are stored, without the transpose that gradients need."""
        shape = (x.shape[0], x.shape[1])
        if x.layout == torch.strided:
            return FeatureMatrix(shape, x)
        return FeatureMatrix(shape, None, x.crow_indices(), x.col_indices(), x.values())

    def looks_like_counts(self) -> bool:
        """Nonnegative and mostly zero: bag-of-words, one-hot and the like, where rows are scaled rather than columns."""
        if self.dense is None:
            assert self.values is not None
            few = int((self.values != 0).sum()) < 0.25 * self.shape[0] * self.shape[1]
            return few and bool((self.values >= 0).all())
        return bool((self.dense >= 0).all()) and float((self.dense != 0).to(torch.float32).mean()) < 0.25


def column_moments(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation (d,) of the columns of raw features, some rows at a time."""
    if x.shape[0] <= _PIECE:
        return FeatureMatrix.of(x).column_moments()
    mean = sum((part.to_dense().sum(0, dtype=torch.float64) for part in _in_pieces(x)), torch.zeros(())) / x.shape[0]
    square = sum(((part.to_dense() - mean).square().sum(0) for part in _in_pieces(x)), torch.zeros(())) / x.shape[0]
    return mean.to(torch.float32), square.sqrt().to(torch.float32)


def looks_like_counts(x: Tensor) -> bool:
    """Nonnegative and mostly zero, see `FeatureMatrix.looks_like_counts`; some rows at a time."""
    if x.shape[0] <= _PIECE:
        return FeatureMatrix.of(x).looks_like_counts()
    nonzero = 0
    for part in _in_pieces(x):
        values = part if part.layout == torch.strided else part.values()
        if not bool((values >= 0).all()):
            return False
        nonzero += int((values != 0).sum())
    return nonzero < 0.25 * x.shape[0] * x.shape[1]


def edge_cosines(x: Tensor, edge_index: Tensor) -> Tensor:
    """(m,): cosine similarity of the raw features of the two ends of each edge, 0 where one has none."""
    rows = FeatureMatrix.of_rows(x)
    norms = rows.row_norms().clamp(min=1e-12)
    out = torch.empty(edge_index.shape[1])
    for begin in range(0, edge_index.shape[1], 16 * _PIECE):
        source, target = edge_index[:, begin : begin + 16 * _PIECE]
        out[begin : begin + 16 * _PIECE] = rows.row_dots(target, source) / (norms[target] * norms[source])
    return out


def _in_pieces(x: Tensor) -> Iterator[Tensor]:
    for begin in range(0, x.shape[0], _PIECE):
        yield rows_of(x, torch.arange(begin, min(begin + _PIECE, x.shape[0])))


def rows_of(x: Tensor, rows: Tensor) -> Tensor:
    """Some rows of a dense or `torch.sparse_csr` matrix, in the order asked for; only what they hold is read from disk."""
    if x.layout == torch.strided:
        return x[rows]
    pointer, columns, values = x.crow_indices(), x.col_indices(), x.values()
    begin, length = pointer[rows], pointer[rows + 1] - pointer[rows]
    fresh = torch.cat([length.new_zeros(1), length.cumsum(0)])
    place = torch.repeat_interleave(begin - fresh[:-1], length) + torch.arange(int(fresh[-1]))
    shape = (len(rows), x.shape[1])
    return torch.sparse_csr_tensor(fresh, columns[place], values[place], shape, check_invariants=False)


def csr_tensor(matrix: Any) -> Tensor:
    """A scipy sparse matrix as a float32 `torch.sparse_csr` tensor, its indices checked."""
    csr = scipy.sparse.csr_array(matrix)
    csr.sum_duplicates()
    rows, columns = (torch.from_numpy(a.astype(np.int64)) for a in (csr.indptr, csr.indices))
    values = torch.from_numpy(csr.data.astype(np.float32))
    return torch.sparse_csr_tensor(rows, columns, values, csr.shape, check_invariants=True)


class _SparseProject(torch.autograd.Function):
    """X @ W for a constant sparse X: the gradient of W is X^T @ g, by the stored transpose."""

    @staticmethod
    def forward(ctx: Any, matrix: FeatureMatrix, values: Tensor, weight: Tensor) -> Tensor:
        ctx.matrix, ctx.values = matrix, values
        return _product(matrix.rows, matrix.columns, values.to(weight.dtype), matrix.shape, weight)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, None, Tensor]:
        (gradient,) = gradients
        m: FeatureMatrix = ctx.matrix
        assert m.t_order is not None
        values = ctx.values.to(gradient.dtype).index_select(0, m.t_order)
        return None, None, _product(m.t_rows, m.t_columns, values, (m.shape[1], m.shape[0]), gradient.contiguous())


def _plus(x: Tensor, bias: Tensor | None) -> Tensor:
    return x if bias is None else x + bias


def _dropped(values: Tensor, rate: float, generator: torch.Generator | None) -> Tensor:
    """Dropout of features, which get no gradient."""
    if generator is None or values.requires_grad:
        return dropout(values, rate, generator)
    from spam_gnn.kernels.activation import dropped  # loaded by those who train: numba takes a second

    return dropped(values, rate, generator)


def _product(rows: Tensor | None, columns: Tensor | None, values: Tensor, shape: tuple[int, int], dense: Tensor) -> Tensor:
    """CSR arrays times a dense matrix, compiled where that is possible."""
    from spam_gnn.kernels.project import sparse_product  # loaded by those who multiply: numba takes a second

    assert rows is not None
    assert columns is not None
    found = sparse_product(rows, columns, values, dense)
    return _csr(rows, columns, values, shape) @ dense if found is None else found


def _csr(rows: Tensor | None, columns: Tensor | None, values: Tensor | None, shape: tuple[int, int]) -> Tensor:
    assert rows is not None
    assert columns is not None
    assert values is not None
    return torch.sparse_csr_tensor(rows, columns, values, shape, check_invariants=False)
