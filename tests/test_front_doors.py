"""Every system through every front door: run folders and the command line, and `NodeClassifier` in Python."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from spam_gnn import NodeClassifier, SpaMClassifier, TrainConfig, csbm, to_pandas, to_pyg
from spam_gnn.baselines import registry
from spam_gnn.baselines.registry import find, systems
from spam_gnn.errors import BadInput, Interrupted
from spam_gnn.evaluation.checks.subject import quick
from spam_gnn.results import prediction_table
from spam_gnn.run import RunSettings, load_run, train_run
from spam_gnn.source import DataSource


@pytest.fixture(scope="module")
def graph():
    return csbm(nodes=60, feature_strength=2.0, homophily=0.9, noise=0.0, seed=0)


@pytest.fixture(scope="module")
def source(graph, tmp_path_factory):
    """The same graph as two tables."""
    folder = tmp_path_factory.mktemp("tables")
    for name, frame in zip(("nodes", "edges"), to_pandas(graph), strict=True):
        frame.to_csv(folder / f"{name}.csv", index=False)
    return DataSource(nodes=str(folder / "nodes.csv"), edges=str(folder / "edges.csv"))


@pytest.mark.parametrize(("name", "module", "setting"), [("cgnn", "commute", "commute=exact"), ("h2gcn", "h2gcn", "hidden=8")])
def test_a_dense_system_refuses_what_does_not_fit(run, source, tmp_path, monkeypatch, name, module, setting):
    """Exit code 3, one line that names the numbers, and no run folder that looks finished."""
    monkeypatch.setattr(f"spam_gnn.baselines.{module}.available_memory_mb", lambda: 1e-3)
    code, out, err = run("train", "--nodes", source.nodes, "--edges", source.edges, "--model", name, "--set", setting,
                         "--epochs", "2", "--out", tmp_path / "run")  # fmt: skip
    assert (code, out) == (3, "")
    assert re.fullmatch(rf"spam-gnn: {name}: .*\d+ .*are free; .*", err.strip()), err
    assert not (tmp_path / "run" / "metrics.json").exists()


@pytest.mark.parametrize("name", systems())
def test_a_run_folder_of_every_system(name, source, tmp_path):
    """Stopped after an epoch, resumed, complete, and enough alone to predict the same again."""
    system = find(name)
    train = TrainConfig(**{**system.train, "epochs": 3, "patience": 4, "val_samples": 2})
    settings = RunSettings(source, quick(system.settings), train, name=name)
    with pytest.raises(Interrupted):
        train_run(settings, tmp_path / "run", stop_requested=lambda: 130)
    metrics = train_run(settings, tmp_path / "run", resume=True)
    assert metrics["model"] == system.title
    files = {path.name for path in (tmp_path / "run").iterdir()}
    assert files - {"edges.csv"} == {"config.json", "history.csv", "metrics.json", "model.safetensors", "predictions.csv",
                                     "report.html"}  # fmt: skip
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["name"] == name
    assert set(config["model"]) == {field.name for field in dataclasses.fields(system.settings)}
    model, stored, _, _ = load_run(tmp_path / "run")
    assert stored == settings
    again = source.load(0, 0)
    table = prediction_table(model.predict(model.prepare(again), 0), again)
    written = pd.read_csv(tmp_path / "run" / "predictions.csv")
    np.testing.assert_allclose(table.filter(like="p_").to_numpy(), written.filter(like="p_").to_numpy(), atol=1e-5)
    page = (tmp_path / "run" / "report.html").read_text()
    judged = model.edge_distribution(model.prepare(again)) is not None
    assert ('id="edges"' in page, 'id="neighbourhood"' in page, "edges.csv" in files) == (judged, judged, judged)
    assert f"{system.title} report" in page


def test_the_command_line_takes_a_model(run, source, tmp_path):
    data = ["--nodes", source.nodes, "--edges", source.edges]
    code, out, err = run("train", *data, "--model", "gat", "--set", "heads=2", "--set", "patience=5", "--epochs", "2",
                         "--beside", "mlp,appnp", "--out", tmp_path / "r")  # fmt: skip
    assert (code, err) == (0, "")
    assert "GAT" in out
    config = json.loads((tmp_path / "r" / "config.json").read_text())
    assert (config["name"], config["model"]["heads"], config["model"]["hidden"]) == ("gat", 2, 8)
    # the system's own defaults below what the user chose
    assert (config["train"]["learning_rate"], config["train"]["patience"], config["train"]["epochs"]) == (0.005, 5, 2)
    assert set(json.loads((tmp_path / "r" / "summary.json").read_text())["test"]) == {"GAT", "mlp", "appnp"}
    code, out, _ = run("predict", tmp_path / "r")
    assert (code, out) == (0, (tmp_path / "r" / "predictions.csv").read_text())
    code, out, err = run("explain", tmp_path / "r", "3")
    assert (code, out, len(err.strip().splitlines())) == (2, "", 1)
    assert "holds a gat model" in err
    code, _, err = run("train", *data, "--model", "gcn", "--epochs", "2", "--out", tmp_path / "r", "--resume")
    assert code == 2
    assert "name: gat there, gcn now" in err


def test_references_train_their_own_way_below_what_the_user_chose(run, source, tmp_path, monkeypatch):
    import spam_gnn.commands.train as command

    seen = []
    fit = command.fit
    monkeypatch.setattr(command, "fit", lambda m, g, config, *a, **k: (seen.append(config), fit(m, g, config, *a, **k))[1])
    code, _, err = run("train", "--nodes", source.nodes, "--edges", source.edges, "--model", "mlp", "--epochs", "1", "--beside",
                       "gat,gcn", "--set", "learning_rate=0.01", "--out", tmp_path / "r")  # fmt: skip
    assert code == 0, err
    assert [(c.learning_rate, c.weight_decay, c.epochs) for c in seen] == [(0.01, 5e-4, 1), (0.01, 5e-4, 1)]


def test_a_folder_from_before_there_were_models_is_spam(tmp_path, source):
    settings = RunSettings(source, quick(find("spam").settings.with_settings({"copies": 1})), TrainConfig(epochs=1))
    train_run(settings, tmp_path / "old")
    path = tmp_path / "old" / "config.json"
    config = json.loads(path.read_text())
    del config["name"], config["graph"]["num_nodes"]
    path.write_text(json.dumps(config))
    assert load_run(tmp_path / "old")[1] == settings


def test_misspelt_models_and_foreign_options(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for arguments, words in (
        (["--model", "gcm"], "did you mean 'gcn'"),
        (["--model", "gcn", "--set", "heads=2"], "--set: found 'heads'"),
        (["--model", "gcn", "--preset", "paper"], "presets belong to spam"),
        (["--model", "jknet", "--set", "jump=cut"], "did you mean 'cat'"),
        (["--model", "gat", "--set", "heads=0"], "heads: found 0"),
    ):
        code, _, err = run("train", "csbm", *arguments)
        assert code == 2
        assert words in err
        assert len(err.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_models_are_listed(run):
    code, out, _ = run("models", "--json")
    assert code == 0
    listed = json.loads(out)
    assert {row["name"] for row in listed} == set(systems())
    for row in listed:
        assert {"name", "family", "title", "paper", "summary", "settings", "search"} <= set(row)
        assert "\n" not in row["summary"]
    code, out, _ = run("models")
    assert code == 0
    assert all(system.title in out for system in systems().values())


# Python


@pytest.mark.parametrize("name", systems())
def test_node_classifier_of_every_system(name, graph, tmp_path):
    small = dataclasses.asdict(quick(find(name).settings))
    estimator = NodeClassifier(name, **small, epochs=3, random_state=2).fit(graph)
    probability = estimator.predict_proba(graph)
    assert probability.shape == (60, 3)
    np.testing.assert_allclose(probability.sum(1), 1.0, atol=1e-5)
    assert np.array_equal(estimator.predict(graph), probability.argmax(1))
    assert 0.0 <= estimator.score(graph) <= 1.0
    estimator.save(tmp_path / "m")
    again = NodeClassifier.load(tmp_path / "m")
    assert again.get_params() == estimator.get_params()
    assert np.array_equal(again.predict_proba(to_pyg(graph)), probability)


def test_node_classifier_follows_scikit_learn(graph):
    model = NodeClassifier("gat", heads=2, random_state=3)
    assert repr(model) == "NodeClassifier(heads=2, model='gat', random_state=3)"
    twin = clone(model)
    assert twin.get_params() == model.get_params()
    assert model.set_params(hidden=4).hidden == 4
    assert model.set_params(model="gcn").get_params()["model"] == "gcn"
    assert "heads" not in model.get_params()
    with pytest.raises(NotFittedError, match="NodeClassifier is not fitted"):
        model.predict(graph)
    with pytest.raises(BadInput, match="did you mean 'heads'"):
        NodeClassifier("gat", head=3)
    with pytest.raises(BadInput, match="did you mean 'gat'"):
        NodeClassifier("gate")
    assert NodeClassifier().model == "gcn"


def test_own_defaults_hold_unless_chosen(graph):
    assert NodeClassifier("gat")._settings()[1].learning_rate == 0.005
    assert NodeClassifier("gat", learning_rate=0.02)._settings()[1].learning_rate == 0.02
    assert NodeClassifier("gat")._settings()[0] == find("gat").settings


def test_each_kind_is_read_by_its_own_class(graph, tmp_path):
    small = {"epochs": 1, "hidden": 8}
    NodeClassifier("gcn", **small).fit(graph).save(tmp_path / "gcn")
    SpaMClassifier(**small).fit(graph).save(tmp_path / "spam")
    with pytest.raises(BadInput, match="holds a NodeClassifier of 'gcn'"):
        SpaMClassifier.load(tmp_path / "gcn")
    assert isinstance(NodeClassifier.load(tmp_path / "spam"), SpaMClassifier)
    spam = NodeClassifier("spam", **small).fit(graph)
    assert np.array_equal(spam.predict_proba(graph), SpaMClassifier.load(tmp_path / "spam").predict_proba(graph))


# The page docs/models.md


PAGE = Path(__file__).resolve().parents[1] / "docs" / "models.md"


def test_the_examples_of_the_page_run(capsys, monkeypatch):
    """The example of one's own model registers it, passes every check (nothing is printed) and trains it."""
    monkeypatch.setattr(registry, "_ADDED", {})
    first, own = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    exec(compile(first, str(PAGE), "exec"), {})
    assert re.search(r"accuracy 0\.[4-9]", capsys.readouterr().out)
    names = {}
    exec(compile(own, str(PAGE), "exec", dont_inherit=True), names)
    assert capsys.readouterr().out == ""
    assert names["model"].predict_proba(csbm(nodes=90, seed=0)).shape == (90, 3)
    with pytest.raises(BadInput, match="one of that name already"):
        registry.register(names["gin"])


def test_the_page_names_every_plain_system():
    text = PAGE.read_text()
    listed = [system.name for system in systems().values() if system.family in ("homophily", "strong", "spam")]
    assert all(f"`{name}`" in text for name in listed)
