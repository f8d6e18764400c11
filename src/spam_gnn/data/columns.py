"""Feature columns: numbers as they are, short texts one-hot, long texts as a bag of words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
import torch
from torch import Tensor

from spam_gnn.data.readers.table import Table, listed, numbers, shown
from spam_gnn.data.reading import ColumnFact
from spam_gnn.features import csr_tensor

MOST_CATEGORIES = 50
MOST_WORDS = 2000
_MOSTLY = 0.9  # share of numbers from which a text among them is a slip rather than a category
_MISSING = frozenset(["", "na", "n/a", "#n/a", "<na>", "nan", "-nan", "null", "none", "?", "."])


class RowBuffer:
    """An array that grows at its end; growing moves pages, it does not copy them."""

    def __init__(self, width: int, dtype: type) -> None:
        self._rows = np.empty((1024, width), dtype=dtype)
        self._used = 0

    def extend(self, rows: int) -> np.ndarray:
        """The next `rows` rows, to be written to."""
        start, self._used = self._used, self._used + rows
        if self._used > len(self._rows):
            self._rows.resize((self._used + self._used // 4, self._rows.shape[1]), refcheck=False)
        return self._rows[start : self._used]

    def finished(self) -> np.ndarray:
        self._rows.resize((self._used, self._rows.shape[1]), refcheck=False)
        return self._rows


@dataclass(frozen=True, eq=False)
class NodeCells:
    """One pass over a node table: the texts of the columns that have a role, and the features."""

    texts: dict[str, np.ndarray]
    x: Tensor
    facts: tuple[ColumnFact, ...]


def read_columns(
    table: Table, roles: Sequence[str], features: Sequence[str], words: Sequence[str], notes: list[str]
) -> NodeCells:
    """Read the columns of `roles` as text and encode `features` in their order, those of `words` as bags of words.

    Only what is not plainly numeric is read a second time, as text: texts take ten times the memory of numbers.
    """
    numeric = [name for name in features if name not in words]
    buffer = RowBuffer(len(numeric), np.float32)
    texts: dict[str, list[np.ndarray]] = {name: [np.empty(0, dtype=object)] for name in (*roles, *words)}
    doubtful: set[str] = set()
    for block in table.blocks(text=list(texts), number=numeric):
        rows = buffer.extend(block.rows)
        for place, name in enumerate(numeric):
            if name in block.number:
                rows[:, place] = block.number[name]
            else:
                doubtful.add(name)
        for name, parts in texts.items():
            parts.append(block.text[name])
        del rows  # a view would keep the buffer from growing in place
    cells = {name: np.concatenate(parts) for name, parts in texts.items()}
    x = buffer.finished()
    if not doubtful and not words:
        return NodeCells(cells, torch.from_numpy(x), tuple(ColumnFact(name, "number", 1) for name in numeric))
    again = [name for name in numeric if name in doubtful]
    text_of = dict(zip(again, table.texts(again), strict=True))
    encoded: dict[str, tuple[ColumnFact, np.ndarray | scipy.sparse.csr_array]] = {}
    for name in features:
        if name in words:
            encoded[name] = _bag_of_words(table, name, cells[name], notes)
        elif name in text_of:
            values = _feature_of_text(table, name, text_of[name], notes)
            encoded[name] = (ColumnFact(name, "number" if values.shape[1] == 1 else "one-hot", values.shape[1]), values)
    return NodeCells(cells, _joined(features, numeric, x, encoded), tuple(
        encoded[name][0] if name in encoded else ColumnFact(name, "number", 1) for name in features
    ))  # fmt: skip


def _joined(
    features: Sequence[str], numeric: Sequence[str], x: np.ndarray,
    encoded: dict[str, tuple[ColumnFact, np.ndarray | scipy.sparse.csr_array]],
) -> Tensor:  # fmt: skip
    """All features in the order of the file; sparse where a bag of words is among them."""
    place = {name: i for i, name in enumerate(numeric)}
    blocks: list[Any] = [encoded[name][1] if name in encoded else x[:, place[name], None] for name in features]
    if any(scipy.sparse.issparse(block) for block in blocks):
        return csr_tensor(scipy.sparse.hstack([scipy.sparse.csr_array(block) for block in blocks], format="csr"))
    return torch.from_numpy(np.concatenate(blocks, axis=1))


def _feature_of_text(table: Table, column: str, cells: np.ndarray, notes: list[str]) -> np.ndarray:
    """(n, columns) of a column that is not plainly numeric; raises where a cell or two keep it from being so."""
    codes, texts = pd.factorize(cells, sort=True)  # each distinct text is looked at once
    with np.errstate(over="ignore"):
        values = numbers(texts).astype(np.float32)
    is_missing = np.array([text.casefold() in _MISSING for text in texts])
    is_text = np.isnan(values) & ~is_missing
    parsed, text = int((~np.isnan(values))[codes].sum()), int(is_text[codes].sum())
    if is_missing.all():
        raise table.defect("every cell is empty; fill the column or delete it", column)
    if text and parsed < _MOSTLY * (parsed + text):
        _check_categories(table, column, cells, len(texts), is_text[codes])
        notes.append(f"column '{column}' one-hot encoded: {listed([shown(t) for t in texts], 5)}")
        return np.eye(len(texts), dtype=np.float32)[codes]
    bad = is_text[codes] if text else ~np.isfinite(values)[codes]
    if not bad.any():
        return values[codes][:, None]
    row, count = int(np.argmax(bad)), int(bad.sum())
    what = shown(cells[row]) if cells[row] else "an empty cell"
    found = f"found {what} in a column of numbers ({count} such cell{'s' * (count != 1)})"
    if text:
        raise table.defect(f"{found}; write a number", column, row)
    if is_missing[codes[row]]:
        raise table.defect(f"{found}; fill it in (perhaps with the column's mean) or delete the column", column, row)
    raise table.defect(f"{found}, infinite or too large for float32; write a finite number", column, row)


def _check_categories(table: Table, column: str, cells: np.ndarray, count: int, is_text: np.ndarray) -> None:
    """Text that is to be one-hot encoded must not be numbers in another notation, nor different in every row."""
    row = int(np.argmax(is_text))
    with_point = numbers(np.array([text.replace(",", ".") for text in pd.unique(cells[is_text])], dtype=object))
    if np.isfinite(with_point).mean() >= _MOSTLY:
        found = f"found {shown(cells[row])}, a number with a comma"
        raise table.defect(f"{found}; write it with a decimal point, as 1234.5", column, row)
    if count > MOST_CATEGORIES:
        found = f"found {count} different texts (first: {shown(cells[row])}), more than {MOST_CATEGORIES}"
        advice = f"take it as a bag of words with --text {column}, merge rare texts, or delete it"
        raise table.defect(f"{found}; {advice}", column)


def _bag_of_words(
    table: Table, column: str, cells: np.ndarray, notes: list[str]
) -> tuple[ColumnFact, scipy.sparse.csr_array]:
    """(n, words) counts of the most frequent words; a node without text has a row of zeros."""
    from sklearn.feature_extraction.text import CountVectorizer  # slow to import, seldom asked for

    # Words of two or more letters or digits, in lower case: scikit-learn's rule.
    vectoriser = CountVectorizer(max_features=MOST_WORDS)
    try:
        counts = scipy.sparse.csr_array(vectoriser.fit_transform(cells), dtype=np.float32)
    except ValueError:
        raise table.defect("found no word of two or more letters; name another column with --text", column) from None
    width = len(vectoriser.vocabulary_)
    empty = int((np.diff(counts.indptr) == 0).sum())
    without = f", {empty} nodes have none of them" if empty else ""
    notes.append(f"column '{column}' counted as {width} words (at most {MOST_WORDS}){without}")
    return ColumnFact(column, "words", width), counts
