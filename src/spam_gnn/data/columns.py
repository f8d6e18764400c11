"""Feature columns: numbers as they are, short texts one-hot, long texts as a bag of words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


Encoded = tuple[ColumnFact, np.ndarray | scipy.sparse.csr_array]
_NO_PLAN: Mapping[str, ColumnFact] = {}


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
    table: Table, roles: Sequence[str], features: Sequence[str], words: Sequence[str], notes: list[str],
    plan: Mapping[str, ColumnFact] = _NO_PLAN,
) -> NodeCells:  # fmt: skip
    """Read the columns of `roles` as text and encode `features` in their order, those of `words` as bags of words.

    Only what is not plainly numeric is read a second time, as text: texts take ten times the memory of numbers. A column of
    the `plan` is encoded as it says, with its categories or words.
    """
    as_text = [name for name in features if name in words or (name in plan and plan[name].kind != "number")]
    numeric = [name for name in features if name not in as_text]
    buffer = RowBuffer(len(numeric), np.float32)
    texts: dict[str, list[np.ndarray]] = {name: [np.empty(0, dtype=object)] for name in (*roles, *as_text)}
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
    if not doubtful and not as_text:
        return NodeCells(cells, torch.from_numpy(x), tuple(ColumnFact(name, "number", 1) for name in numeric))
    again = [name for name in numeric if name in doubtful]
    text_of = {**{name: cells[name] for name in as_text}, **dict(zip(again, table.texts(again), strict=True))}
    encoded: dict[str, Encoded] = {}
    for name in (name for name in features if name in text_of):
        planned = plan.get(name)
        if name in words or (planned is not None and planned.kind == "words"):
            encoded[name] = _bag_of_words(table, name, text_of[name], notes, planned)
        elif planned is not None and planned.kind == "one-hot":
            encoded[name] = planned, _known_categories(table, planned, text_of[name])
        else:
            encoded[name] = _feature_of_text(table, name, text_of[name], notes, number=planned is not None)
    return NodeCells(cells, _joined(features, numeric, x, encoded), tuple(
        encoded[name][0] if name in encoded else ColumnFact(name, "number", 1) for name in features
    ))  # fmt: skip


def _joined(
    features: Sequence[str], numeric: Sequence[str], x: np.ndarray,
    encoded: Mapping[str, Encoded],
) -> Tensor:  # fmt: skip
    """All features in the order of the file; sparse where a bag of words is among them."""
    place = {name: i for i, name in enumerate(numeric)}
    blocks: list[Any] = [encoded[name][1] if name in encoded else x[:, place[name], None] for name in features]
    if any(scipy.sparse.issparse(block) for block in blocks):
        return csr_tensor(scipy.sparse.hstack([scipy.sparse.csr_array(block) for block in blocks], format="csr"))
    return torch.from_numpy(np.concatenate(blocks, axis=1))


def _known_categories(table: Table, planned: ColumnFact, cells: np.ndarray) -> np.ndarray:
    """(n, categories) one-hot in the order of the trained model."""
    codes = pd.Index(planned.values).get_indexer(pd.Index(cells))
    new = np.flatnonzero(codes < 0)
    if len(new):
        count = f" ({len(new)} such cells)" if len(new) > 1 else ""
        found = f"found {shown(str(cells[int(new[0])]))}, a category new to the trained model{count}"
        advice = f"use one of {listed([shown(value) for value in planned.values], 5)}, or train again with this file"
        raise table.defect(f"{found}; {advice}", planned.name, int(new[0]))
    return np.eye(len(planned.values), dtype=np.float32)[codes]


def _feature_of_text(table: Table, column: str, cells: np.ndarray, notes: list[str], *, number: bool) -> Encoded:
    """(n, columns) of a column that is not plainly numeric; raises where a cell or two keep it from being so, or any if it must
    be a `number`."""
    codes, texts = pd.factorize(cells, sort=True)  # each distinct text is looked at once
    with np.errstate(over="ignore"):
        values = numbers(texts).astype(np.float32)
    is_missing = np.array([text.casefold() in _MISSING for text in texts])
    is_text = np.isnan(values) & ~is_missing
    parsed, text = int((~np.isnan(values))[codes].sum()), int(is_text[codes].sum())
    if is_missing.all():
        raise table.defect("every cell is empty; fill the column or delete it", column)
    if text and not number and parsed < _MOSTLY * (parsed + text):
        _check_categories(table, column, cells, len(texts), is_text[codes])
        notes.append(f"column '{column}' one-hot encoded: {listed([shown(t) for t in texts], 5)}")
        fact = ColumnFact(column, "one-hot", len(texts), tuple(str(t) for t in texts))
        return fact, np.eye(len(texts), dtype=np.float32)[codes]
    bad = is_text[codes] if text else ~np.isfinite(values)[codes]
    if not bad.any():
        return ColumnFact(column, "number", 1), values[codes][:, None]
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
    table: Table, column: str, cells: np.ndarray, notes: list[str], planned: ColumnFact | None
) -> Encoded:
    """(n, words) counts of the most frequent words, or of those of the plan; a node without any has a row of zeros."""
    from sklearn.feature_extraction.text import CountVectorizer  # slow to import, seldom asked for

    # Words of two or more letters or digits, in lower case: scikit-learn's rule.
    vectoriser = CountVectorizer(max_features=MOST_WORDS, vocabulary=None if planned is None else list(planned.values))
    try:
        counts = scipy.sparse.csr_array(vectoriser.fit_transform(cells), dtype=np.float32)
    except ValueError:
        raise table.defect("found no word of two or more letters; name another column with --text", column) from None
    known = tuple(vectoriser.get_feature_names_out().tolist())
    empty = int((np.diff(counts.indptr) == 0).sum())
    without = f", {empty} nodes have none of them" if empty else ""
    notes.append(f"column '{column}' counted as {len(known)} words (at most {MOST_WORDS}){without}")
    return ColumnFact(column, "words", len(known), known), counts
