"""Ids, labels and splits: the columns of a node table that say which node, which class and which purpose."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch
from pandas.util import hash_array
from torch import Tensor

from spam_gnn.data.readers.table import Table, listed, numbers, shown, suggestion

_FEW_CLASSES = 20  # up to here a label column may well have one node per class
_DOUBTFUL_CLASSES = frozenset(
    ["na", "n/a", "#n/a", "<na>", "nan", "-nan", "null", "none", "?", ".", "-1", "unknown", "unlabelled", "unlabeled"]
)
_TRAIN, _VAL, _TEST, _NONE = range(4)
_SPLIT_WORDS = {
    "train": _TRAIN, "training": _TRAIN, "val": _VAL, "valid": _VAL, "validation": _VAL, "test": _TEST,
    "testing": _TEST, "": _NONE, "none": _NONE, "other": _NONE, "unused": _NONE,
}  # fmt: skip


def checked_ids(table: Table, column: str, ids: np.ndarray) -> np.ndarray:
    """(n,) texts, none empty, none twice."""
    if len(ids) == 0:
        raise table.defect("found a header and no rows; give one row per node")
    empty = np.flatnonzero(ids == "")
    if len(empty):
        raise table.defect(f"the id is empty ({len(empty)} such rows); give every node an id", column, int(empty[0]))
    again = np.flatnonzero(pd.Series(ids, dtype=object).duplicated())
    if len(again):
        row = int(again[0])
        first = table.place(int(np.flatnonzero(ids == ids[row])[0]))
        raise table.defect(
            f"found id {shown(ids[row])} again, it is on line {first} already ({len(again)} such rows); keep one row "
            "per node",
            column,
            row,
        )
    return ids


def identity_of(ids: np.ndarray) -> Tensor:
    """(n,) int64 hash of each id, so that a node keeps its draws when rows are reordered, added or taken away."""
    hashed = hash_array(ids, categorize=False)  # pyright: ignore[reportCallIssue]  (pandas loads it lazily)
    return torch.from_numpy(hashed.view(np.int64))


def encoded_labels(
    table: Table, column: str, cells: np.ndarray, notes: list[str], classes: Sequence[str] = ()
) -> tuple[Tensor, list[str]]:
    """(n,) int64 labels, -1 where the cell is empty, and the class names in ascending order.

    With `classes`, those of a trained model, labels are numbered as it does, and may all be empty.
    """
    if classes:
        return _known_labels(table, column, cells, classes), list(classes)
    known = cells != ""
    codes, names = pd.factorize(cells[known])
    if len(names) == 0:
        raise table.defect("every label is empty; label at least a few nodes of each class", column)
    if len(names) == 1:
        raise table.defect(f"found one class only, {shown(names[0])}; at least two are needed to tell apart", column)
    number = numbers(names)
    numeric = bool(np.isfinite(number).all())
    fractional = numeric and bool((number != np.floor(number)).any())
    if len(names) > _FEW_CLASSES and (len(names) == len(codes) or (fractional and 2 * len(names) > len(codes))):
        raise table.defect(
            f"found {len(names)} different labels on {len(codes)} nodes (first: {shown(names[0])}), so this is an id "
            "or a measurement; name a column of classes with --label (regression is not supported)",
            column,
        )
    order = sorted(range(len(names)), key=lambda c: (number[c] if numeric else 0.0, names[c]))
    place = np.empty(len(names), dtype=np.int64)
    place[order] = np.arange(len(names))
    labels = np.full(len(cells), -1, dtype=np.int64)
    labels[known] = place[codes]
    doubtful = [name for name in names if name.casefold() in _DOUBTFUL_CLASSES and (name != "-1" or len(names) > 2)]
    notes.extend(f"'{name}' is taken for a class; leave the label empty where it is unknown" for name in doubtful)
    return torch.from_numpy(labels), [names[c] for c in order]


def _known_labels(table: Table, column: str, cells: np.ndarray, classes: Sequence[str]) -> Tensor:
    labels = pd.Index(classes).get_indexer(pd.Index(cells)).astype(np.int64)
    new = np.flatnonzero((labels < 0) & (cells != ""))
    if len(new):
        found = f"found class {shown(str(cells[int(new[0])]))}, new to the trained model"
        raise table.defect(f"{found}; it knows {listed(classes)}: leave the cell empty, or train again", column, int(new[0]))
    return torch.from_numpy(labels)


def masks_of(table: Table, column: str, cells: np.ndarray, labels: Tensor) -> list[Tensor]:
    """The train, validation and test mask that the words of the split column say."""
    codes, words = pd.factorize(cells)
    for code, word in enumerate(words):
        if word.casefold() not in _SPLIT_WORDS:
            hint = suggestion(word, ("train", "val", "test"))
            advice = f"{hint}use train, val, test, or leave the cell empty (rename the column if it is a feature)"
            raise table.defect(f"found {shown(word)}; {advice}", column, int(np.argmax(codes == code)))
    part = np.array([_SPLIT_WORDS[word.casefold()] for word in words])[codes]
    unlabelled = np.flatnonzero((labels.numpy() < 0) & (part != _NONE))
    if len(unlabelled):
        row = int(unlabelled[0])
        found = f"found {shown(cells[row])} for a node without a label ({len(unlabelled)} such rows)"
        raise table.defect(f"{found}; label the node or leave its split empty", column, row)
    if not (part == _TRAIN).any():
        raise table.defect("no node is marked train; mark some, or delete the column for a random split", column)
    return [torch.from_numpy(part == name) for name in (_TRAIN, _VAL, _TEST)]
