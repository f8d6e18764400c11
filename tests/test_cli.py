"""The command line: what it writes, what it refuses, with which words and exit codes."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import time
from dataclasses import replace

import pandas as pd
import pytest
import torch

from spam_gnn import TrainConfig, csbm
from spam_gnn.data import catalog
from spam_gnn.data.tables import TableColumns
from spam_gnn.run import column_plan
from spam_gnn.source import DataSource

QUICK = ["--epochs", "3", "--set", "hidden=8", "--set", "posterior_hidden=8", "--set", "predict_samples=2"]


@pytest.fixture
def tables(tmp_path):
    """Two good tables of 30 nodes: names, a topic with a few unknowns, two numbers and a word; a ring of edges."""
    topics = ["art", "law", ""] * 10
    rows = [f"n{i},{topics[i]},{i % 3}.5,{(i * 7) % 5},{'xy'[i % 2]}" for i in range(30)]
    (tmp_path / "nodes.csv").write_text("id,topic,size,age,kind\n" + "\n".join(rows) + "\n")
    edges = [f"n{i},n{(i + 1) % 30}" for i in range(30)]
    (tmp_path / "edges.csv").write_text("source,target\n" + "\n".join(edges) + "\n")
    return tmp_path


def train_tables(run, folder, *more, out="run"):
    return run("train", "--nodes", folder / "nodes.csv", "--edges", folder / "edges.csv", "--label", "topic",
               "--out", folder / out, *QUICK, *more)  # fmt: skip


def test_two_csv_files_to_a_run_folder(run, tables):
    code, out, err = train_tables(run, tables, "--calibrate")
    assert (code, err) == (0, "")
    assert "accuracy" in out
    folder = tables / "run"
    assert {p.name for p in folder.iterdir()} == {
        "config.json", "edges.csv", "history.csv", "metrics.json", "model.safetensors", "predictions.csv", "report.html",
    }  # fmt: skip
    metrics = json.loads((folder / "metrics.json").read_text())
    for key in ("dataset", "model", "split", "seed", "test", "val", "epochs", "seconds", "peak_memory_mb",
                "edge_sign_auroc", "edge_sign_auroc_against"):  # fmt: skip
        assert key in metrics
    for key in ("accuracy", "macro_f1", "nll", "brier", "ece", "roc_auc"):  # two classes, so roc_auc too
        assert key in metrics["test"]
    predictions = pd.read_csv(folder / "predictions.csv")
    assert list(predictions.columns) == ["id", "prediction", "p_art", "p_law", "total_uncertainty", "structural_uncertainty"]
    assert (predictions[["p_art", "p_law"]].sum(axis=1) - 1).abs().max() < 1e-4
    edges = pd.read_csv(folder / "edges.csv")
    assert len(edges) == 30
    assert list(edges.columns) == ["source", "target", "p_negative", "p_absent", "p_positive", "verdict"]
    assert len(pd.read_csv(folder / "history.csv")) == 3


def test_predict_and_explain_use_the_folder_alone(run, tables):
    train_tables(run, tables)
    code, out, _ = run("predict", tables / "run")
    assert code == 0
    assert out.splitlines()[1:] == (tables / "run" / "predictions.csv").read_text().splitlines()[1:]
    code, out, _ = run("predict", tables / "run", "--nodes", tables / "nodes.csv", "--edges", tables / "edges.csv",
                       "--out", tables / "p.csv")  # fmt: skip
    assert code == 0
    assert len(pd.read_csv(tables / "p.csv")) == 30
    code, out, _ = run("explain", tables / "run", "n4", "--json")
    assert code == 0
    assert {row["neighbour"] for row in json.loads(out)} == {"n3", "n5"}
    code, out, _ = run("explain", tables / "run", "n4")
    assert "n4" in out
    assert "helps" in out or "noise" in out or "opposes" in out


@pytest.fixture
def trained(run, tables):
    """A run on a table with numbers, a category and a sentence, and that table."""
    frame = pd.read_csv(tables / "nodes.csv", keep_default_na=False)
    frame["about"] = [f"{('paint', 'court', 'ship')[i % 3]} often {'never ' * (i % 2)}" for i in range(30)]
    frame.to_csv(tables / "nodes.csv", index=False)
    code, _, err = train_tables(run, tables, "--text", "about")
    assert (code, err) == (0, "")
    return frame


def predicted(run, tables, frame, *more):
    frame.to_csv(tables / "other.csv", index=False)
    return run("predict", tables / "run", "--nodes", tables / "other.csv", "--edges", tables / "edges.csv", *more)


def test_predict_lines_another_file_up_by_name(run, tables, trained):
    """Columns in another order, one more, none for the label: the same features reach the model."""
    other = trained[["about", "kind", "id", "age", "size"]].assign(shoe=7)
    code, out, err = predicted(run, tables, other, "--out", tables / "p.csv")
    assert (code, err) == (0, "")
    assert "note: columns ignored, the model was not trained on them: shoe" in out
    source = DataSource(nodes=str(tables / "nodes.csv"), edges=str(tables / "edges.csv"), columns=TableColumns(label="topic"))
    plan = column_plan(tables / "run")
    assert plan is not None
    own = source.read(plan).graph.x.to_dense()
    assert torch.equal(replace(source, nodes=str(tables / "other.csv")).read(plan).graph.x.to_dense(), own)
    # one category and some words are gone, the columns they had are still there
    fewer = trained.assign(kind="y", about="court ship unheard")
    fewer.to_csv(tables / "other.csv", index=False)
    x = replace(source, nodes=str(tables / "other.csv")).read(plan).graph.x.to_dense()
    words = ["court", "never", "often", "paint", "ship"]
    assert [column.values for column in plan.columns if column.values] == [("x", "y"), tuple(words)]
    assert x[:, 2:].tolist() == [[0, 1, 1, 0, 0, 0, 1]] * 30
    assert predicted(run, tables, fewer)[0] == 0


@pytest.mark.parametrize(("change", "words"), [
    (lambda f: f.assign(kind=["z", *f["kind"][1:]]),
        ":2:kind: found 'z', a category new to the trained model; use one of 'x', 'y'"),
    (lambda f: f.drop(columns=["age", "about"]), "found no column 'age', 'about', which the model was trained on; add it"),
    (lambda f: f.assign(age="old"), ":2:age: found 'old' in a column of numbers (30 such cells); write a number"),
    (lambda f: f.assign(topic=[*f["topic"][:3], "sea", *f["topic"][4:]]),
        ":5:topic: found class 'sea', new to the trained model"),
])  # fmt: skip
def test_predict_refuses_what_does_not_line_up(run, tables, trained, change, words):
    code, out, err = predicted(run, tables, change(trained), "--out", tables / "p.csv")
    assert (code, out) == (2, "")
    assert words in err
    assert len(err.strip().splitlines()) == 1
    assert not (tables / "p.csv").exists()


def test_all_splits_beside_a_reference(run, tmp_path):
    code, out, _ = run("train", "csbm", "--split", "all", "--beside", "mlp", "--out", tmp_path / "r", *QUICK)
    assert code == 0
    assert "10 splits" in out
    assert "10/10" in out
    summary = json.loads((tmp_path / "r" / "summary.json").read_text())
    assert len(summary["test"]["mlp"]) == 10
    code, _, _ = run("train", "csbm", "--split", "all", "--out", tmp_path / "r", "--resume", *QUICK)
    assert code == 0


def test_resume_needs_the_same_settings_and_finished_runs_are_safe(run, tables):
    train_tables(run, tables)
    code, _, err = train_tables(run, tables)
    assert (code, "holds a run already" in err) == (2, True)
    (tables / "run" / "metrics.json").unlink()
    code, _, err = train_tables(run, tables, "--resume", "--seed", "5")
    assert (code, "seed: 0 there, 5 now" in err) == (2, True)


def test_help_version_and_doctor(run):
    code, out, _ = run("--version")
    assert (code, out.startswith("spam-gnn ")) == (0, True)
    for command in ("demo", "train", "predict", "explain", "doctor"):
        code, out, _ = run(command, "--help")
        assert code == 0
        assert "--" in out
    code, out, _ = run("doctor", "--json")
    assert code == 0
    facts = json.loads(out)
    assert all(result.startswith("ok") for result in facts["self-test"].values())


def test_help_does_not_wait_for_torch():
    started = time.monotonic()
    script = "import sys; sys.argv = ['spam-gnn', '--help']; from spam_gnn.cli import main\n"
    script += "try: main()\nexcept SystemExit: pass\n"
    script += "assert 'torch' not in sys.modules, 'torch was imported'"
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, timeout=60)
    assert time.monotonic() - started < 30


def write(name, content):
    def change(folder):
        data = content if isinstance(content, bytes) else content.encode()
        (folder / name).write_bytes(data)

    return change


def edit(name, old, new, count=1):
    def change(folder):
        path = folder / name
        path.write_text(path.read_text().replace(old, new, count))

    return change


def make_directory(folder):
    (folder / "nodes.csv").unlink()
    (folder / "nodes.csv").mkdir()


BAD_TABLES = {
    "missing label column": (edit("nodes.csv", "topic", "subject"), [], "nodes.csv", "topic"),
    "unknown id in edges": (edit("edges.csv", "n4,n5", "n4,n99"), [], "edges.csv:6", "n99"),
    "empty end point": (edit("edges.csv", "n4,n5", "n4,"), [], "edges.csv:6", "empty"),
    "NaN": (edit("nodes.csv", "n3,art,0.5", "n3,art,nan"), [], "nodes.csv:5", "size"),
    "infinite": (edit("nodes.csv", "n3,art,0.5", "n3,art,inf"), [], "nodes.csv:5", "size"),
    "missing number": (edit("nodes.csv", "n3,art,0.5", "n3,art,"), [], "nodes.csv:5", "size"),
    "text in a number": (edit("nodes.csv", "n3,art,0.5", "n3,art,big"), [], "nodes.csv:5", "big"),
    "one class": (edit("nodes.csv", ",law,", ",art,", 99), [], "nodes.csv", "class"),
    "no labels": (lambda f: (edit("nodes.csv", ",law,", ",,", 99)(f), edit("nodes.csv", ",art,", ",,", 99)(f)), [],
                  "nodes.csv", "label"),
    "empty nodes": (write("nodes.csv", ""), [], "nodes.csv", "empty"),
    "empty edges": (write("edges.csv", ""), [], "edges.csv", "empty"),
    "header only": (write("nodes.csv", "id,topic,size\n"), [], "nodes.csv", "row"),
    "duplicate ids": (edit("nodes.csv", "n3,art", "n2,art"), [], "nodes.csv:5", "n2"),
    "empty id": (edit("nodes.csv", "n3,art", ",art"), [], "nodes.csv:5", "empty"),
    "wrong encoding": (write("nodes.csv", "id,topic,a\nn1,caf\xe9,1\n".encode("latin-1")), [], "nodes.csv", "UTF-8"),
    "binary": (write("nodes.csv", b"id,topic\x00\x01\n"), [], "nodes.csv", "NUL"),
    "a spreadsheet": (write("nodes.csv", b"PK\x03\x04rest"), [], "nodes.csv", "zip"),
    "bad gzip": (lambda f: (f / "nodes.csv").write_bytes(gzip.compress(b"id,topic\n")[:10]), [], "nodes.csv", ""),
    "directory": (make_directory, [], "nodes.csv", "director"),
    "file missing": (lambda f: (f / "nodes.csv").unlink(), [], "nodes.csv", "no such file"),
    "ragged row": (edit("nodes.csv", "n3,art", "n3,art,7"), [], "nodes.csv:5", "fields"),
    "duplicate column": (edit("nodes.csv", "size,age", "size,size"), [], "nodes.csv", "size"),
    "one column of edges": (write("edges.csv", "source\nn1\n"), [], "edges.csv", ""),
    "no such option column": (lambda _: None, ["--source", "form"], "edges.csv", "form"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_TABLES)
def test_bad_tables(run, tables, name):
    change, more, place, words = BAD_TABLES[name]
    change(tables)
    code, out, err = train_tables(run, tables, *more)
    assert code == 2, (out, err)
    assert len(err.strip().splitlines()) == 1, err
    assert place in err
    assert words.lower() in err.lower()
    assert "Traceback" not in err
    assert not (tables / "run").exists(), "nothing may be written"


BAD_CALLS = {
    "unknown dataset": (["train", "texass"], 2, "did you mean 'texas'"),
    "nothing named": (["train"], 2, "--nodes and --edges"),
    "only nodes": (["train", "--nodes", "a.csv"], 2, "--edges"),
    "both kinds": (["train", "csbm", "--nodes", "a.csv", "--edges", "b.csv"], 2, "one or the other"),
    "misspelt setting": (["train", "csbm", "--set", "hiden=3"], 2, "did you mean 'hidden'"),
    "setting without value": (["train", "csbm", "--set", "hidden"], 2, "key=value"),
    "text for a number": (["train", "csbm", "--set", "hidden=many"], 2, "whole number"),
    "bad choice": (["train", "csbm", "--set", "coder=lasso"], 2, "use one of exact"),
    "negative": (["train", "csbm", "--set", "gamma=-1"], 2, "gamma"),
    "bad preset": (["train", "csbm", "--preset", "papr"], 2, "did you mean 'paper'"),
    "bad split": (["train", "csbm", "--split", "first"], 2, "--split"),
    "no such split": (["train", "cora-metattack:0.25", "--split", "4"], 2, "split"),
    "no epochs": (["train", "csbm", "--epochs", "0"], 2, "epochs"),
    "no such device": (["train", "csbm", "--device", "tpu"], 2, "--device"),
    "no such reference": (["train", "csbm", "--beside", "mpl"], 2, "did you mean 'mlp'"),
    "unknown option": (["train", "csbm", "--sead", "3"], 2, "--sead"),
    "unknown command": (["trian"], 2, "trian"),
    "no run": (["predict", "absent-run"], 2, "config.json: not found"),
    "no run to explain": (["explain", "absent-run", "3"], 2, "config.json: not found"),
    "nothing to resume": (["train", "--resume", "--out", "absent-run"], 2, "not found"),
    "a rate that is no number": (["train", "csbm", "--set", "learning_rate=nan"], 2, "learning_rate: found nan; give a finite"),
    "an infinite setting": (["train", "csbm", "--set", "gamma=inf"], 2, "gamma: found inf; give a finite number"),
    "no samples to validate": (["train", "csbm", "--set", "val_samples=-2"], 2, "val_samples: found -2; use 1 or more"),
    "weights that grow": (["train", "csbm", "--set", "weight_decay=-1"], 2, "weight_decay: found -1.0; use 0 or more"),
    "steps that grow": (["train", "csbm", "--set", "decay=2"], 2, "decay: found 2.0"),
    "no temperature": (["train", "csbm", "--set", "temperature=0"], 2, "temperature: found 0.0; use a number above 0"),
    "a column of a dataset": (["train", "csbm", "--label", "topic"], 2, "--label: found with the dataset 'csbm'"),
    "a direction of a dataset": (["train", "csbm", "--directed"], 2, "--directed: found with the dataset 'csbm'"),
    "beside itself": (["train", "csbm", "--beside", "mlp,spam"], 2, "--beside: found 'spam', the system that is trained"),
    "another's kernel": (["train", "csbm", "--model", "gat", "--kernel", "csr"], 2, "--kernel: found 'csr' for gat"),
    "batches of a whole": (["train", "csbm", "--model", "linkx", "--batch-size", "8"], 2, "needs the whole graph"),
    "more clusters than nodes": (["train", "csbm", "--clusters", "100000"], 2, "--clusters: found 100000 for"),
}


@pytest.mark.parametrize("name", BAD_CALLS)
def test_bad_calls(run, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    arguments, expected, words = BAD_CALLS[name]
    code, out, err = run(*arguments)
    assert code == expected, (out, err)
    assert len(err.strip().splitlines()) == 1, err
    assert words in err
    assert list(tmp_path.iterdir()) == []


def test_the_users_own_tables_are_not_written_over(run, tables, monkeypatch):
    """The README's file names are those of results: --out . must not replace edges.csv by a table of posteriors."""
    monkeypatch.chdir(tables)
    before = {path.name: path.read_bytes() for path in tables.iterdir()}
    code, _, err = train_tables(run, tables, out=".")
    assert (code, len(err.strip().splitlines())) == (2, 1)
    assert "edges.csv: found, and the run would write over it; choose another --out" in err
    assert {path.name: path.read_bytes() for path in tables.iterdir()} == before


def test_a_run_that_diverges_at_once_leaves_its_folder_free(run, tables):
    code, _, err = train_tables(run, tables, "--set", "learning_rate=1e30")
    assert code == 5, err
    assert not (tables / "run").exists()
    assert train_tables(run, tables)[0] == 0


def test_a_folder_holds_one_run_or_several_splits(run, tables):
    assert train_tables(run, tables)[0] == 0
    code, _, err = train_tables(run, tables, "--split", "all")
    assert (code, "holds a run of one split" in err) == (2, True)
    (tables / "many" / "split-3").mkdir(parents=True)
    (tables / "many" / "split-3" / "config.json").write_text("{}")
    code, _, err = train_tables(run, tables, out="many")
    assert (code, "add --split all to continue them" in err) == (2, True)
    code, _, err = run("predict", tables / "many")
    assert (code, f"give one of them: {tables / 'many' / 'split-3'}" in err) == (2, True)
    code, _, err = run("predict", tables / "run", "--out", tables)
    assert (code, "is a folder; give the name of a file" in err) == (2, True)


def test_a_node_without_neighbours_is_explained_in_words(run, tables):
    with (tables / "nodes.csv").open("a") as handle:
        handle.write("lone,art,1.5,2,x\n")
    assert train_tables(run, tables)[0] == 0
    code, out, err = run("explain", tables / "run", "lone")
    assert (code, err) == (0, "")
    assert "of which 0.000 from the edges and" in out
    assert "lone has no neighbours" in out
    code, out, err = run("explain", tables / "run", "lone", "--json")
    assert (code, err, json.loads(out)) == (0, "", [])


def test_an_unwritable_folder_is_a_disk_error(run, tmp_path):
    (tmp_path / "file").write_text("in the way")
    code, _, err = run("train", "csbm", "--out", tmp_path / "file" / "run", *QUICK)
    assert code == 4, err
    assert len(err.strip().splitlines()) == 1
    assert (tmp_path / "file").read_text() == "in the way"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_a_disk_error(run, tmp_path):
    tmp_path.chmod(0o500)
    code, _, err = run("train", "csbm", "--out", tmp_path / "run", *QUICK)
    tmp_path.chmod(0o700)
    assert code == 4, err


def test_our_own_bugs_say_so(run, monkeypatch, tmp_path):
    monkeypatch.setattr("spam_gnn.commands.train.run_training", lambda _: 1 / 0)
    code, _, err = run("train", "csbm", "--out", tmp_path / "r")
    assert code == 70
    assert "please report it: ZeroDivisionError" in err


def test_the_demo_replaces_its_own_folder_and_no_other(run, tmp_path, monkeypatch):
    monkeypatch.setattr(catalog, "load", lambda *_: csbm(nodes=60, seed=0))  # a small graph instead of the digits
    monkeypatch.setattr("spam_gnn.commands.demo.TrainConfig", lambda **_: TrainConfig(epochs=2))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    code, _, err = run("demo", "--out", tmp_path / "mine")
    assert (code, "was not made by the demo" in err) == (2, True)
    assert [p.name for p in (tmp_path / "mine").iterdir()] == ["thesis.tex"]
    for _ in range(2):
        code, out, err = run("demo", "--out", tmp_path / "demo")
        assert (code, err) == (0, "")
        assert "trusts every edge" in out
        assert (tmp_path / "demo" / "report.html").exists()
