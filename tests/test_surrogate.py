"""Surrogates hold the figures they were asked for, are drawn by seed, and say what they are."""

from __future__ import annotations

import dataclasses
import json

import pytest
import torch

from spam_gnn import cli
from spam_gnn.data import catalog
from spam_gnn.data.entries import SPECS
from spam_gnn.data.spec import Figures
from spam_gnn.data.statistics import degree_gini, degrees
from spam_gnn.data.surrogate import surrogate, surrogate_names
from spam_gnn.errors import BadInput
from spam_gnn.graph import Graph
from spam_gnn.homophily import Homophily, homophily

KNOWN = [name.removeprefix("surrogate:") for name in surrogate_names()]
SMALL = [name for name in KNOWN if (SPECS[name].expected.edges or 0) < 250_000]


@pytest.mark.parametrize("name", SMALL)
def test_achieved_figures_are_those_asked_for(name):
    spec, graph = SPECS[name], surrogate(SPECS[name], seed=1)
    wanted = spec.expected
    assert (graph.num_nodes, graph.num_features, graph.num_classes) == (wanted.nodes, wanted.features, wanted.classes)
    stored = wanted.edges - wanted.self_loops
    assert graph.num_edges == pytest.approx(2 * stored if spec.stored_once else stored, rel=0.002)
    assert homophily(graph).edge == pytest.approx(wanted.homophily.edge, abs=0.01)
    if wanted.degree_gini is not None:
        assert degree_gini(graph) == pytest.approx(wanted.degree_gini, abs=0.1)
    shares = torch.bincount(graph.y, minlength=graph.num_classes).double() / graph.num_nodes
    assert shares.tolist() == pytest.approx(wanted.class_shares or [1 / wanted.classes] * wanted.classes, abs=0.006)
    if wanted.density is not None and wanted.density < 0.1:
        density = float((graph.x.to_dense() != 0).double().mean())
        assert density == pytest.approx(wanted.density, abs=0.5 / wanted.features + 1e-4)
    assert graph.directed == spec.directed


def made(**figures):
    base = Figures(3000, 30000, 20, 4, homophily=Homophily(0.5, 0.5, 0.5, 0.5), degree_gini=0.4)
    return surrogate(dataclasses.replace(SPECS["arxiv-year"], expected=dataclasses.replace(base, **figures)), seed=0)


@pytest.mark.parametrize("share", [0.02, 0.3, 0.9])
def test_homophily_follows_the_request(share):
    assert homophily(made(homophily=Homophily(share, 0.0, 0.0, 0.0))).edge == pytest.approx(share, abs=0.005)


@pytest.mark.parametrize("gini", [0.1, 0.4, 0.6])
def test_degree_skew_follows_the_request(gini):
    assert degree_gini(made(degree_gini=gini)) == pytest.approx(gini, abs=0.03)


def test_a_majority_class_does_not_keep_its_edges_to_itself():
    graph = made(classes=2, class_shares=(0.8, 0.2), homophily=Homophily(0.1, 0.0, 0.0, 0.0))
    assert homophily(graph).edge == pytest.approx(0.1, abs=0.01)


def test_unlabelled_nodes_stay_unlabelled_and_outside_the_split():
    graph = made(unlabelled=500)
    assert int((graph.y < 0).sum()) == 500
    split = catalog.load("surrogate:johnshopkins55", 2)
    assert int((split.y < 0).sum()) == 418
    assert not ((split.train_mask | split.val_mask | split.test_mask) & (split.y < 0)).any()
    assert int(split.train_mask.sum()) == pytest.approx(0.5 * (5180 - 418), abs=2)


def test_features_tell_the_classes_apart_but_not_fully():
    graph = made(features=400, density=0.05)
    means = torch.stack([graph.x.to_dense()[graph.y == c].mean(0) for c in range(4)])
    assert means.max() > 0.25  # the word that a class prefers
    assert means.max() < 0.6


def test_same_seed_same_graph():
    spec = SPECS["texas"]
    first, again, other = surrogate(spec, 3), surrogate(spec, 3), surrogate(spec, 4)
    for value in ("x", "edge_index", "y"):
        a, b = (getattr(g, value).to_dense() for g in (first, again))
        assert torch.equal(a, b)
    assert not torch.equal(first.edge_index, other.edge_index)
    assert isinstance(first, Graph)
    assert int(degrees(first).sum()) == 2 * first.num_edges


def test_figures_that_are_not_known_are_not_invented():
    assert "surrogate:reed98" not in surrogate_names()
    assert "surrogate:snap-patents" in surrogate_names()
    with pytest.raises(BadInput, match="figures of reed98 are not known"):
        catalog.load("surrogate:reed98")
    assert any("assumed" in note for note in surrogate(SPECS["roman-empire"]).notes)
    assert not any("assumed" in note for note in surrogate(SPECS["cora"]).notes)


def test_every_output_says_that_it_is_a_surrogate(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("sys.argv", ["spam-gnn", "train", "surrogate:texas", "--protocol", "per-class:5", "--epochs", "2",
                                     "--set", "hidden=8", "--out", str(tmp_path / "run")])  # fmt: skip
    with pytest.raises(SystemExit) as caught:
        cli.main()
    printed = capsys.readouterr()
    assert caught.value.code == 0, printed.err
    assert "generated to mimic texas, not the dataset itself" in printed.out
    assert "surrogate:texas: test" in printed.out
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert metrics["dataset"] == "surrogate:texas"
    assert metrics["notes"][0].startswith("surrogate: generated")
    assert json.loads((tmp_path / "run" / "config.json").read_text())["source"]["protocol"] == "per-class:5"
    assert "surrogate:texas" in (tmp_path / "run" / "report.html").read_text()
