"""`spam-gnn inspect` and the other formats on the command line: what is printed, what is refused, nothing left behind."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from spam_gnn.data.inspection import gini
from spam_gnn.data.suspicions import tells_label
from written import FORMATS, SMALL, WHOLE, write


def where(form, folder):
    if form in WHOLE:
        return ["--graph", folder / "ogb" if form == "ogb" else folder / f"graph.{form}"]
    return ["--nodes", folder / f"nodes.{'csv' if form in ('edges', 'mtx') else form}", "--edges", folder / f"edges.{form}"]


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_can_be_inspected(run, tmp_path, form):
    write(form, tmp_path)
    code, out, err = run("inspect", *where(form, tmp_path), "--json")
    assert (code, err) == (0, "")
    facts = json.loads(out)["facts"]
    assert (facts["nodes"], facts["edges"], facts["features"], facts["unlabelled"]) == (6, 5, 2, 1)
    assert facts["classes"] == {"2": 3, "7": 2}
    assert facts["split"] == {"train": 3, "val": 1, "test": 1}
    assert facts["homophily"]["edge"] == 0.0  # every edge with two known labels joins a 2 and a 7
    assert (facts["components"], facts["largest component"], facts["isolated"]) == (1, 6, 0)


def test_the_page_a_user_sees(run, tmp_path):
    write("csv", tmp_path)
    code, out, _ = run("inspect", *where("csv", tmp_path))
    assert code == 0
    for words in ("what was understood", "id: id", "2 numbers", "train 3, val 1, test 1", "edge 0,", "gini", "look: "):
        assert words in out, out
    code, out, _ = run("inspect", "csbm", "--json")
    assert code == 0
    assert json.loads(out)["facts"]["nodes"] > 100


def test_what_looks_wrong(run, tmp_path):
    n = 60
    y = np.array([0, 1, 2] * 20)
    draws = np.random.default_rng(0)
    frame = pd.DataFrame({
        "id": [f"p{i}" for i in range(n)], "label": [f"c{c}" for c in y], "grade": 10 * y + 5, "score": y + draws.random(n),
        "number": np.arange(n) + 1000, "always": 3, "size": draws.random(n), "colour": np.where(y == 1, "red", "blue"),
    })  # fmt: skip
    frame["again"] = frame["size"]
    frame.to_csv(tmp_path / "nodes.csv", index=False)
    (tmp_path / "edges.csv").write_text("source,target\n" + "".join(f"p0,p{i}\n" for i in range(1, n) if y[i] != 2))
    code, out, _ = run("inspect", *where("csv", tmp_path), "--json")
    assert code == 0
    found = json.loads(out)["warnings"]
    for words in ("column 'grade' alone tells 100 %", "column 'score' alone tells 100 %", "column 'number' looks like an id",
                  "1 columns have the same value everywhere and say nothing: always", "again = size",
                  "1 classes are on no edge at all: c2", "node 'p0' is joined to"):  # fmt: skip
        assert any(words in warning for warning in found), (words, found)
    assert not any("'size' alone" in warning or "'colour' alone" in warning for warning in found)
    frame["label"] = np.where(np.arange(n) < 58, "big", np.where(np.arange(n) < 59, "small", ""))
    frame[["id", "label", "size"]].to_csv(tmp_path / "nodes.csv", index=False)
    found = json.loads(run("inspect", *where("csv", tmp_path), "--json")[1])["warnings"]
    assert any("class 'big' holds 98 %" in warning for warning in found)
    assert any("1 classes have fewer than 3 labelled nodes: small" in warning for warning in found)


def test_what_tells_the_label():
    y = np.array([0, 1] * 20)
    assert tells_label(y * 7.0, y, 2) == 1.0
    assert tells_label(np.arange(40.0), y, 2) is None
    assert tells_label(np.arange(40.0), np.sort(y), 2) == 1.0
    assert tells_label(np.zeros(40), y, 2) is None
    assert tells_label(y[:10] * 1.0, y[:10], 2) is None  # ten nodes prove nothing


def test_gini():
    assert gini(np.array([3, 3, 3])) == pytest.approx(0)
    assert gini(np.array([0, 0, 0, 8])) == pytest.approx(0.75)
    assert gini(np.zeros(4)) == 0.0


QUICK = ["--epochs", "2", "--set", "hidden=8", "--set", "posterior_hidden=8", "--set", "predict_samples=2"]


@pytest.mark.parametrize("form", ["parquet", "mtx", "npz", "ogb"])
def test_train_and_predict_on_other_formats(run, tmp_path, form):
    write(form, tmp_path)
    code, out, err = run("train", *where(form, tmp_path), "--out", tmp_path / "run", *QUICK)
    assert (code, err) == (0, "")
    assert "accuracy" in out
    code, out, err = run("predict", tmp_path / "run", "--out", tmp_path / "p.csv")
    assert (code, err) == (0, "")
    names = pd.read_csv(tmp_path / "p.csv", dtype=str)["id"].tolist()
    assert names == ([str(i) for i in range(6)] if form == "ogb" else SMALL.ids)
    assert run("predict", tmp_path / "run", *where(form, tmp_path))[0] == 0


TWO = ["--nodes", "nodes.csv", "--edges", "edges.csv"]
BAD = {
    "pickle": (["--graph", "graph.pt"], "graph.pt: found a .pt file, which only pickle can open"),
    "damaged npz": (["--graph", "cut.npz"], "cut.npz: this is no .npz file or a damaged one"),
    "entities": (["--graph", "bomb.graphml"], "bomb.graphml:1: found a <!DOCTYPE declaration"),
    "unknown folder": (["--graph", "folder"], "folder: found no folder raw in it"),
    "matrix alone": (["--graph", "edges.mtx"], "data: found a matrix as --graph and no --nodes"),
    "graph and nodes": (["--graph", "graph.npz", "--nodes", "nodes.csv"], "data: found --graph and --nodes together"),
    "graph and edges": (["--graph", "graph.npz", "--edges", "edges.csv"], "data: found --graph and --edges together"),
    "graph and name": (["csbm", "--graph", "graph.npz"], "data: found --graph and dataset 'csbm' together"),
    "unknown format": (["--graph", "graph.npz", "--format", "np"], "--format: found 'np'"),
    "unknown edge format": ([*TWO, "--edge-format", "x"], "--edge-format: found 'x'"),
    "no label named": ([*TWO, "--no-header"], "nodes.csv:1: found no label column among 1,"),
    "no text column": ([*TWO, "--text", "t"], "nodes.csv:1:t: no such column for --text"),
    "no split column": ([*TWO, "--split-column", "f"], "for --split-column"),
    "no weight column": ([*TWO, "--weight", "w"], "edges.csv:1:w: no such column"),
    "npz as nodes": (["--nodes", "graph.npz", "--edges", "edges.csv"], "graph.npz: found a .npz file for --nodes"),
}


@pytest.mark.parametrize("command", ["train", "inspect"])
@pytest.mark.parametrize("name", BAD)
def test_bad_calls(run, tmp_path, monkeypatch, name, command):
    for form in ("csv", "npz", "mtx"):
        write(form, tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "cut.npz").write_bytes((tmp_path / "graph.npz").read_bytes()[:500])
    (tmp_path / "bomb.graphml").write_text('<!DOCTYPE a [<!ENTITY b "' + "c" * 99 + '">]><graphml>&b;</graphml>')
    monkeypatch.chdir(tmp_path)
    before = sorted(p.name for p in tmp_path.iterdir())
    arguments, words = BAD[name]
    code, out, err = run(command, *arguments)
    assert code == 2, (out, err)
    assert len(err.strip().splitlines()) == 1, err
    assert words in err
    assert sorted(p.name for p in tmp_path.iterdir()) == before, "nothing may be written"
