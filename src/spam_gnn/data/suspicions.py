"""What looks wrong in a graph that could be read: columns that give the label away, ids among the features, lost classes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from spam_gnn.data.readers.table import listed
from spam_gnn.data.reading import ColumnFact, Reading
from spam_gnn.graph import Graph
from spam_gnn.homophily import homophily

_TELLS = 0.99  # share of labels a single column may guess before it is taken for the label itself
_GIANT = 0.9
_FEW = 3  # a class needs one node each for training, validation and test
_ENOUGH = 20  # labelled nodes from which a pattern is no accident
_LOOKED_AT = 50_000  # labelled nodes looked at in each column
_COMPARED = 50_000_000  # entries of X up to which rows are compared


def suspicions(reading: Reading, degree: np.ndarray) -> list[str]:
    """One sentence per finding: what was found, and what to do."""
    graph = reading.graph
    return [*_columns(reading), *_classes(graph, degree), *_splits(graph), *_structure(graph, degree)]


def _columns(reading: Reading) -> Iterator[str]:
    graph = reading.graph
    rows = np.flatnonzero((graph.y >= 0).numpy())
    rows = rows[:: max(1, len(rows) // _LOOKED_AT)]
    y = graph.y.numpy()[rows]
    dense = graph.x if graph.x.layout == torch.strided else None
    start, constant, seen, twins = 0, [], {}, []
    for fact in reading.columns:
        place, start = start, start + fact.width
        if fact.width == 0 or fact.kind in ("words", "degree") or dense is None:
            continue
        block = dense[:, place:start].numpy()
        if (block == block[0]).all():
            constant.append(fact.name)
            continue
        values = block[:, 0] if fact.width == 1 else block.argmax(axis=1)
        twin = seen.setdefault(values.tobytes(), fact.name)
        if twin != fact.name:
            twins.append(f"{fact.name} = {twin}")
        share = tells_label(values[rows], y, graph.num_classes)
        if share is not None:
            yield (f"column '{fact.name}' alone tells {100 * share:.0f} % of the labels; if it is the label in another form, "
                   "delete it")  # fmt: skip
        elif _is_id(fact, values, graph):
            yield f"column '{fact.name}' looks like an id or row number, used as a feature; delete it, or name it with --id"
    if constant:
        yield f"{len(constant)} columns have the same value everywhere and say nothing: {listed(constant, 5)}; delete them"
    if twins:
        yield f"{len(twins)} columns repeat another one: {listed(twins, 5)}; keep one of each"


def tells_label(values: np.ndarray, y: np.ndarray, classes: int) -> float | None:
    """The share of labels that one column guesses by itself, where that is nearly all and no accident; else None.

    Either each value goes with one class, or, sorted by value, the classes lie one after the other.
    """
    if len(y) < _ENOUGH or np.bincount(y, minlength=classes).max() > 0.95 * len(y):
        return None
    distinct, code = np.unique(values, return_inverse=True)
    if 2 * len(distinct) <= len(y):
        table = np.bincount(code * classes + y, minlength=len(distinct) * classes).reshape(-1, classes)
        share = float(table.max(axis=1).sum() / len(y))
        return share if share >= _TELLS else None
    order = np.argsort(values, kind="stable")
    runs = int((np.diff(y[order]) != 0).sum()) + 1
    return 1.0 if runs == len(np.unique(y)) else None


def _is_id(fact: ColumnFact, values: np.ndarray, graph: Graph) -> bool:
    n = len(values)
    if fact.kind != "number" or n < _ENOUGH or not (values == np.floor(values)).all() or len(np.unique(values)) < n:
        return False
    steps = np.diff(values)
    compact = values.max() - values.min() == n - 1
    same = graph.node_names is not None and all(name == str(int(v)) for name, v in zip(graph.node_names, values, strict=True))
    return bool(same or compact or (steps > 0).all())


def _classes(graph: Graph, degree: np.ndarray) -> Iterator[str]:
    known = graph.y >= 0
    labelled = int(known.sum())
    counts = torch.bincount(graph.y[known], minlength=graph.num_classes)
    largest = int(counts.argmax())
    if labelled and int(counts[largest]) > _GIANT * labelled:
        yield (f"class '{graph.class_names[largest]}' holds {100 * int(counts[largest]) / labelled:.0f} % of the labels: "
               "accuracy will look good for nothing; look at macro F1")  # fmt: skip
    few = [graph.class_names[c] for c in (counts < _FEW).nonzero().flatten().tolist()]
    if few:
        yield f"{len(few)} classes have fewer than {_FEW} labelled nodes: {listed(few, 5)}; merge or label more"
    if labelled < 0.05 * graph.num_nodes:
        yield f"{100 - 100 * labelled / graph.num_nodes:.1f} % of the nodes have no label; expect wide margins"
    if graph.num_edges:
        touched = torch.from_numpy(degree > 0) & known
        met = torch.bincount(graph.y[touched], minlength=graph.num_classes)
        lost = [graph.class_names[c] for c in ((met == 0) & (counts > 0)).nonzero().flatten().tolist()]
        if lost:
            yield f"{len(lost)} classes are on no edge at all: {listed(lost, 5)}; edges cannot help there, check the edge file"


def _splits(graph: Graph) -> Iterator[str]:
    if not bool(graph.train_mask.any()):
        return
    trained = torch.bincount(graph.y[graph.train_mask], minlength=graph.num_classes)
    unseen = [graph.class_names[c] for c in (trained == 0).nonzero().flatten().tolist()]
    if unseen:
        yield f"{len(unseen)} classes have no training node: {listed(unseen, 5)}; they can never be predicted"
    for part, mask in (("validation", graph.val_mask), ("test", graph.test_mask)):
        if not bool(mask.any()):
            yield f"the split has no {part} nodes; mark some, or leave the split out for a random one"
    shared = _shared_rows(graph)
    if shared > 0.05:
        yield (f"{100 * shared:.0f} % of the test nodes have the features and label of some training node: "
               "perhaps the same thing twice; remove duplicates before splitting")  # fmt: skip


def _shared_rows(graph: Graph) -> float:
    """The share of test nodes whose row and label equal those of a training node."""
    if graph.x.layout != torch.strided or graph.x.numel() > _COMPARED or not bool(graph.test_mask.any()):
        return 0.0
    rows = np.ascontiguousarray(np.column_stack([graph.x.numpy(), graph.y.numpy().astype(np.float32)]))
    if len(np.unique(rows[:, :-1], axis=0)) <= max(50, len(rows) // 10):  # few distinct rows: equal ones are no surprise
        return 0.0
    known = {row.tobytes() for row in rows[graph.train_mask.numpy()]}
    test = rows[graph.test_mask.numpy()]
    return sum(row.tobytes() in known for row in test) / len(test)


def _structure(graph: Graph, degree: np.ndarray) -> Iterator[str]:
    n = graph.num_nodes
    if graph.num_edges == 0:
        yield "there are no edges; a model of the features alone will do as well"
        return
    isolated = int((degree == 0).sum())
    if isolated > 0.3 * n:
        yield f"{100 * isolated / n:.0f} % of the nodes are on no edge; check that both files use the same ids"
    if n > 50 and degree.max() > 0.1 * n:
        name = graph.node_names[int(degree.argmax())] if graph.node_names else str(int(degree.argmax()))
        yield f"node '{name}' is joined to {100 * degree.max() / n:.0f} % of all nodes; is it a placeholder such as 'unknown'?"
    adjusted = homophily(graph).adjusted
    if adjusted < 0.05:
        yield (f"neighbours share a label hardly more often than chance (adjusted homophily {adjusted:.2f}); train "
               "--beside mlp to see whether the edges help")  # fmt: skip
