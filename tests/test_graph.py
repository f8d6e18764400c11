"""The graph value: what construction changes, what it refuses, conversions there and back, homophily."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from torch_geometric.data import Data
from torch_geometric.utils import homophily as pyg_homophily

from conftest import tiny_graph
from spam_gnn import Graph, from_networkx, from_pandas, from_pyg, from_scipy, to_networkx, to_pandas, to_pyg, to_scipy
from spam_gnn.errors import BadInput
from spam_gnn.homophily import homophily

X = torch.eye(4)


def test_build_sorts_merges_mirrors_and_says_so():
    edges = torch.tensor([[0, 0, 2, 3, 3], [1, 1, 1, 3, 0]])
    graph = Graph.build(X, edges, directed=False)
    assert graph.edge_index.tolist() == [[1, 3, 0, 2, 1, 0], [0, 0, 1, 1, 2, 3]]
    assert graph.notes == ("1 self-loops dropped (the layer has its own self term)", "1 duplicate edges merged")
    assert torch.equal(graph.edge_index[:, graph.reverse], graph.edge_index.flip(0))
    pairs = graph.pairs
    assert pairs.edge.tolist() == [2, 4, 5]  # 0 -> 1, 1 -> 2, 0 -> 3
    assert pairs.of_edge.tolist() == [0, 2, 0, 1, 1, 2]


def test_direction_is_seen_in_the_edges():
    assert Graph.build(X, torch.tensor([[0, 1], [1, 2]])).directed
    assert not Graph.build(X, torch.tensor([[0, 1], [1, 0]])).directed
    graph = Graph.build(X, torch.tensor([[0, 1], [1, 2]]))
    assert graph.messages("in").target.tolist() == [1, 2]
    assert graph.messages("out").target.tolist() == [0, 1]
    assert graph.as_undirected().num_edges == 4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": torch.zeros(4)}, "give one row of features per node"),
        ({"x": torch.full((4, 2), float("nan"))}, "row 0 is NaN or infinite"),
        ({"edge_index": torch.zeros(3, 2, dtype=torch.int64)}, "give (2, number of edges)"),
        ({"edge_index": torch.tensor([[0.0], [1.0]])}, "give whole numbers"),
        ({"edge_index": torch.tensor([[0], [9]])}, "found node 9"),
        ({"edge_index": torch.tensor([[0], [-1]])}, "in a graph of 4 nodes"),
        ({"y": torch.tensor([0, 1])}, "found 2 labels for 4 nodes"),
        ({"y": torch.tensor([0, 1, -7, 1])}, "found label -7"),
        ({"y": torch.tensor([0, 1, 0.5, 1])}, "fractional labels"),
        ({"y": torch.tensor([0, 1, 5, 1]), "num_classes": 3}, "num_classes=3"),
        ({"y": torch.tensor([0, 1, -1, 1]), "train_mask": torch.ones(4, dtype=torch.bool)}, "1 nodes without a label"),
        ({"y": torch.tensor([0, 1, 0, 1]), "train_mask": torch.ones(4, 2, dtype=torch.bool)}, "one split at a time"),
        ({"y": torch.tensor([0, 1, 0, 1]), "train_mask": torch.ones(4, dtype=torch.bool),
          "test_mask": torch.ones(4, dtype=torch.bool)}, "in both train and test"),
        ({"y": torch.tensor([0, 1, 0, 1]), "class_names": ["a"]}, "1 names for 2 classes"),
        ({"edge_sign": torch.ones(3)}, "one sign per edge"),
    ],
)  # fmt: skip
def test_bad_graphs_are_refused_in_one_line(change, message):
    arguments = {"x": X, "edge_index": torch.tensor([[0], [1]]), **change}
    with pytest.raises(BadInput) as caught:
        Graph.build(**arguments)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_graph_cannot_be_changed():
    with pytest.raises(AttributeError):
        tiny_graph(0).x = X


def test_an_edge_without_its_mirror_is_named():
    graph = tiny_graph(0)
    with pytest.raises(BadInput, match=r"^edge_index: found \d+ -> \d+ without its mirror; Graph.build adds it"):
        replace(graph, edge_index=graph.edge_index[:, :-1]).pairs  # noqa: B018 - asked for, not used


def test_pyg_round_trip():
    graph = tiny_graph(1)
    again = from_pyg(to_pyg(graph))
    for name in ("x", "edge_index", "y", "train_mask", "val_mask", "test_mask"):
        assert torch.equal(getattr(graph, name), getattr(again, name))


def test_pyg_splits_must_be_named():
    mask = torch.eye(4, dtype=torch.bool)
    data = Data(x=X, edge_index=torch.tensor([[0], [1]]), y=torch.arange(4), train_mask=mask)
    with pytest.raises(BadInput, match="found 4 splits; say which"):
        from_pyg(data)
    with pytest.raises(BadInput, match="splits 0 to 3"):
        from_pyg(data, split=4)
    assert from_pyg(data, split=2).train_mask.tolist() == [False, False, True, False]


def test_networkx_round_trip():
    g = nx.Graph()
    g.add_node("a", x=[1.0, 0.0], y="cat", split="train")
    g.add_node("b", x=[0.0, 1.0], y="dog", split="test")
    g.add_node("c", x=[1.0, 1.0])
    g.add_edge("a", "b")
    graph = from_networkx(g)
    assert graph.class_names == ("cat", "dog")
    assert graph.y.tolist() == [0, 1, -1]
    again = to_networkx(graph)
    assert nx.utils.graphs_equal(again, g)
    with pytest.raises(BadInput, match="has no attribute 'x'"):
        from_networkx(nx.path_graph(2))


def test_scipy_and_pandas():
    adjacency = scipy.sparse.csr_array(np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]]))
    features = scipy.sparse.csr_array(np.eye(3))
    graph = from_scipy(adjacency, features, [0, 1, -1])
    assert not graph.directed
    assert graph.x.layout == torch.sparse_csr
    torch.testing.assert_close(graph.features.to_dense(), torch.eye(3))
    nodes = pd.DataFrame({"id": ["u", "v", "w"], "label": ["b", "a", None], "f": [1.0, 2.0, 3.0]})
    edges = pd.DataFrame({"source": ["u", "v"], "target": ["v", "w"]})
    graph = from_pandas(nodes, edges)
    assert graph.y.tolist() == [1, 0, -1]
    assert graph.num_edges == 4
    with pytest.raises(BadInput, match="row 1, column 'target': no node has that id"):
        from_pandas(nodes.iloc[:2], edges)


def test_scipy_and_pandas_round_trips():
    graph = tiny_graph(7)
    again = from_scipy(*to_scipy(graph))
    assert torch.equal(again.edge_index, graph.edge_index)
    assert torch.equal(again.x, graph.x)
    assert torch.equal(again.y, graph.y)
    again = from_pandas(*to_pandas(graph))
    assert torch.equal(again.edge_index, graph.edge_index)
    assert torch.equal(again.y, graph.y)
    torch.testing.assert_close(again.x, graph.x)


def test_homophily_agrees_with_pyg():
    generator = torch.Generator().manual_seed(0)
    y = torch.randint(3, (50,), generator=generator)
    graph = Graph.build(torch.ones(50, 1), torch.randint(50, (2, 200), generator=generator), y, directed=False)
    mine = homophily(graph)
    for name, method in (("edge", "edge"), ("node", "node"), ("class_insensitive", "edge_insensitive")):
        assert getattr(mine, name) == pytest.approx(pyg_homophily(graph.edge_index, y, method=method), abs=1e-6)
    chance = sum((np.bincount(y[graph.edge_index[0]].numpy(), minlength=3) / graph.num_edges) ** 2)
    assert mine.adjusted == pytest.approx((mine.edge - chance) / (1 - chance))


def test_relabelling_carries_everything_along():
    graph = tiny_graph(2)
    order = torch.tensor([3, 1, 0, 5, 2, 4])
    moved = graph.relabel(order)
    assert torch.equal(moved.x, graph.x[order])
    there = {frozenset(order[pair].tolist()) for pair in moved.edge_index.t()}
    here = {frozenset(pair.tolist()) for pair in graph.edge_index.t()}
    assert there == here
