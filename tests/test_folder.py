"""Converted graphs: nothing is lost on the way, and training and prediction from the folder are those from memory."""

from __future__ import annotations

import json

import pytest
import torch

from spam_gnn import SpaM, SpaMConfig, TrainConfig, csbm
from spam_gnn.checkpoint import read_tensors
from spam_gnn.data.folder import open_converted, read_facts, write_converted
from spam_gnn.data.reading import Reading
from spam_gnn.errors import BadInput
from spam_gnn.features import column_moments, edge_cosines, looks_like_counts
from spam_gnn.graph import Graph
from spam_gnn.loading.batched import BatchConfig
from spam_gnn.training import fit

SMALL = SpaMConfig(hidden=8, posterior_hidden=8, samples=2, predict_samples=2)


def graphs():
    plain = csbm(nodes=80, seed=0)
    masks = {"train_mask": plain.train_mask, "val_mask": plain.val_mask, "test_mask": plain.test_mask}
    half = plain.edge_index[:, torch.arange(plain.num_edges) % 3 > 0]
    sparse = (plain.x * (plain.x.abs() > 1.5)).to_sparse_csr()
    return {
        "plain": plain,
        "directed": Graph.build(plain.x, half, plain.y, directed=True, **masks),
        "sparse": Graph.build(sparse, half, plain.y, directed=True, node_names=[f"n\n{i}" for i in range(80)], **masks),
    }


@pytest.mark.parametrize("name", ["plain", "directed", "sparse"])
def test_a_graph_survives_the_folder(name, tmp_path):
    graph = graphs()[name]
    facts = write_converted(Reading(graph, ()), tmp_path / "g")
    again = open_converted(tmp_path / "g").graph
    assert (facts.nodes, facts.edges, facts.mirrored) == (80, graph.num_edges, graph.as_undirected().num_edges)
    assert read_facts(tmp_path / "g").nodes == 80
    pairs = [(graph, again), (graph.as_undirected(), again.as_undirected())]
    for before, after in pairs:
        for field in ("edge_index", "y", "train_mask", "val_mask", "test_mask", "identity", "pointer"):
            assert torch.equal(getattr(before, field), getattr(after, field)), field
        assert torch.equal(before.x.to_dense(), after.x.to_dense())
        torch.testing.assert_close(after.feature_cosine, before.feature_cosine)
        assert (before.edge_sign is None) == (after.edge_sign is None)
    assert again.node_names == graph.node_names
    assert (again.directed, again.class_names, again.notes) == (graph.directed, graph.class_names, graph.notes)


def test_training_from_the_folder_is_training_from_memory(tmp_path):
    graph = graphs()["sparse"]
    write_converted(Reading(graph, ()), tmp_path / "g")
    mapped = open_converted(tmp_path / "g").graph
    weights = []
    for g in (graph, mapped):
        model = SpaM(graph.num_features, 3, SMALL)
        fit(model, g, TrainConfig(epochs=3), 0, batches=BatchConfig(size=16, neighbours=(3, 3)))
        weights.append(model.state_dict())
        assert "features" not in g.__dict__  # nobody asked for the features of the whole graph
    for name, value in weights[0].items():
        torch.testing.assert_close(weights[1][name], value, atol=1e-6, rtol=1e-5, msg=name)


def test_the_commands(run, tmp_path):
    folder, out = tmp_path / "g", tmp_path / "run"
    assert run("convert", "csbm", "--out", folder)[0] == 0
    options = ["--epochs", 3, "--set", "hidden=8", "--set", "predict_samples=2", "--batch-size", 100, "--neighbours", "4,4"]
    code, printed, error = run("train", "--graph", folder, *options, "--out", out)
    assert (code, error) == (0, "")
    assert "memory: batches of 100 seeds" in printed
    metrics = json.loads((out / "metrics.json").read_text())
    assert metrics["batches"] == "neighbours"
    assert metrics["memory_plan"]["needed"] > 0
    assert metrics["edge_sign_auroc_against"] == "planted signs"
    code, printed, _ = run("predict", out, "--out", tmp_path / "p.csv")
    assert code == 0
    assert (tmp_path / "p.csv").read_bytes() == (out / "predictions.csv").read_bytes()
    assert read_tensors(out / "model.safetensors")[1]["calibration"] == {"temperature": [], "share": []}


def test_a_folder_is_never_overwritten_and_a_damaged_one_is_one_line(tmp_path):
    graph = graphs()["plain"]
    write_converted(Reading(graph, ()), tmp_path / "g")
    with pytest.raises(BadInput, match="not an empty folder"):
        write_converted(Reading(graph, ()), tmp_path / "g")
    (tmp_path / "g" / "y.npy").write_bytes(b"nonsense")
    with pytest.raises(BadInput, match="cannot be mapped"):
        open_converted(tmp_path / "g")
    (tmp_path / "g" / "graph.json").write_text("{}")
    with pytest.raises(BadInput, match="convert the graph again"):
        open_converted(tmp_path / "g")
    assert not list(tmp_path.glob(".spam-gnn-tmp-*"))


def test_statistics_in_pieces_are_those_of_all(monkeypatch):
    graph = graphs()["plain"]
    sparse = (graph.x.abs() * (graph.x.abs() > 1.5)).to_sparse_csr()
    at_once = [column_moments(x) for x in (graph.x, sparse)]
    kinds = [looks_like_counts(x) for x in (graph.x, sparse, graph.x.abs())]
    cosine = edge_cosines(sparse, graph.edge_index)
    monkeypatch.setattr("spam_gnn.features._PIECE", 7)
    for x, (mean, spread) in zip((graph.x, sparse), at_once, strict=True):
        torch.testing.assert_close(column_moments(x), (mean, spread))
    assert [looks_like_counts(x) for x in (graph.x, sparse, graph.x.abs())] == kinds == [False, True, False]
    torch.testing.assert_close(edge_cosines(sparse, graph.edge_index), cosine)


def test_of_very_many_edges_the_measures_take_some_and_the_table_all(run, tmp_path, monkeypatch):
    monkeypatch.setattr("spam_gnn.results.MOST_EDGES", 1000)
    monkeypatch.setattr("spam_gnn.results._LINES", 700)
    options = ["--epochs", 2, "--set", "hidden=8", "--set", "predict_samples=2", "--batch-size", 200, "--neighbours", "3,3"]
    assert run("train", "csbm", *options, "--out", tmp_path / "run")[0] == 0
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert any("one in 6 stored edges" in note for note in metrics["notes"])
    assert 0.5 < metrics["edge_sign_auroc"] <= 1.0
    lines = (tmp_path / "run" / "edges.csv").read_text().splitlines()
    assert len(lines) == metrics["edges"] + 1
    assert len(set(lines)) == len(lines)
    assert sum(line.startswith("source") for line in lines) == 1
