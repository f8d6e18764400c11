"""The scikit-learn front door, checked as its users would use it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from torch_geometric.data import Data

from spam_gnn import NodeClassifier, SpaMClassifier, csbm, to_pyg
from spam_gnn.calibration import Calibration
from spam_gnn.errors import BadInput

QUICK = {"epochs": 5, "hidden": 8, "posterior_hidden": 8, "samples": 2, "predict_samples": 4}


@pytest.fixture(scope="module")
def graph():
    return csbm(nodes=90, feature_strength=2.0, seed=0)


@pytest.fixture(scope="module")
def fitted(graph):
    return SpaMClassifier(**QUICK, random_state=3).fit(graph)


def test_parameters_follow_scikit_learn():
    model = SpaMClassifier(hidden=8, random_state=3)
    assert model.get_params()["hidden"] == 8
    assert model.get_params()["layers"] is None
    twin = clone(model)
    assert twin is not model
    assert twin.get_params() == model.get_params()
    assert model.set_params(layers=3).layers == 3
    assert repr(model) == "SpaMClassifier(hidden=8, layers=3, random_state=3)"
    with pytest.raises(BadInput, match="did you mean 'hidden'"):
        SpaMClassifier(hiden=3)


def test_unfitted_models_say_so(graph):
    for call in ("predict", "predict_proba", "score", "edge_posterior"):
        with pytest.raises(NotFittedError):
            getattr(SpaMClassifier(), call)(graph)


def test_fit_predict_score(graph, fitted):
    assert fitted.fit(graph) is fitted
    probability = fitted.predict_proba(graph)
    assert probability.shape == (90, 3)
    np.testing.assert_allclose(probability.sum(1), 1.0, atol=1e-5)
    assert np.array_equal(fitted.predict(graph), probability.argmax(1))
    right = fitted.predict(graph)[graph.test_mask.numpy()] == graph.y[graph.test_mask].numpy()
    assert fitted.score(graph) == pytest.approx(right.mean())
    assert list(fitted.classes_) == [0, 1, 2]
    assert fitted.n_features_in_ == graph.num_features
    assert len(fitted.history_) == 5


def test_edge_posterior_and_explanation(graph, fitted):
    frame = fitted.edge_posterior(graph)
    assert list(frame.columns[:5]) == ["source", "target", "p_negative", "p_absent", "p_positive"]
    assert len(frame) == graph.num_edges // 2
    np.testing.assert_allclose(frame[["p_negative", "p_absent", "p_positive"]].sum(axis=1), 1.0, atol=1e-5)
    assert set(fitted.explain(graph, 0)["neighbour"]) == set(graph.edge_index[0][graph.edge_index[1] == 0].tolist())


def test_pyg_data_gives_the_same_numbers(graph, fitted):
    again = SpaMClassifier(**QUICK, random_state=3).fit(to_pyg(graph))
    assert np.array_equal(again.predict_proba(to_pyg(graph)), fitted.predict_proba(graph))


def test_splits_of_pyg_data(graph):
    data = to_pyg(graph)
    for part in ("train", "val", "test"):
        data[f"{part}_mask"] = torch.stack([data[f"{part}_mask"], data[f"{part}_mask"].roll(1)], 1)
    with pytest.raises(BadInput, match="say which"):
        SpaMClassifier(**QUICK).fit(data)
    assert SpaMClassifier(**QUICK, split=1).fit(data).score(data) >= 0


def test_data_without_masks_is_split(graph):
    data = Data(x=graph.x, edge_index=graph.edge_index, y=graph.y)
    model = SpaMClassifier(**QUICK).fit(data)
    assert model.graph_.train_mask.any()
    assert model.graph_.test_mask.any()
    assert 0.0 <= model.score(data) <= 1.0


def test_save_and_load(tmp_path, graph, fitted):
    fitted.save(tmp_path / "m")
    again = SpaMClassifier.load(tmp_path / "m")
    assert again.get_params() == fitted.get_params()
    assert np.array_equal(again.predict_proba(graph), fitted.predict_proba(graph))
    with pytest.raises(BadInput, match="not found"):
        SpaMClassifier.load(tmp_path / "absent")


def test_a_split_of_its_own_is_kept_and_context_without_labels(tmp_path, graph):
    """Fitted without masks, it draws a split; saved and loaded, or given the graph without labels, it predicts the same."""
    data = Data(x=graph.x, edge_index=graph.edge_index, y=graph.y)
    model = SpaMClassifier(**QUICK).fit(data)
    model.save(tmp_path / "m")
    again = SpaMClassifier.load(tmp_path / "m")
    expected = model.predict_proba(data)
    assert np.array_equal(again.predict_proba(data), expected)
    assert again.score(data) == model.score(data)
    bare = Data(x=graph.x, edge_index=graph.edge_index)
    assert np.array_equal(model.predict_proba(bare), expected)
    assert np.array_equal(again.predict_proba(bare), expected)
    hidden = Data(x=graph.x, edge_index=graph.edge_index, y=torch.where(model.graph_.test_mask, -1, graph.y))
    assert np.array_equal(again.predict_proba(hidden), expected)
    other = Data(x=graph.x, edge_index=graph.edge_index[:, 2:])  # another graph is not taken for the fitted one
    assert not np.array_equal(again.predict_proba(other), expected)


def test_another_system_brings_its_parameters():
    model = NodeClassifier("gcn").set_params(model="gat", heads=3)
    assert (model.get_params()["model"], model.get_params()["heads"]) == ("gat", 3)
    with pytest.raises(BadInput, match="did you mean 'heads'"):
        model.set_params(haeds=3)


@pytest.mark.parametrize(("setting", "words"), [
    ({"epochs": 2.5}, "epochs: found 2.5; give a whole number"), ({"hidden": "8"}, "hidden: found '8'; give a whole number"),
    ({"learning_rate": float("nan")}, "learning_rate: found nan; give a finite number"),
])  # fmt: skip
def test_parameters_of_the_wrong_kind_are_named(graph, setting, words):
    with pytest.raises(BadInput, match=words):
        SpaMClassifier(**{**QUICK, **setting}).fit(graph)


def test_calibration_scales_probabilities_only(graph):
    plain = SpaMClassifier(**QUICK).fit(graph)
    scaled = SpaMClassifier(**QUICK, calibrate=True).fit(graph)
    assert plain.calibration_ == Calibration()
    assert len(scaled.calibration_.temperature) == len(scaled.calibration_.share) == len(scaled.model_.believed())
    assert not np.array_equal(plain.predict_proba(graph), scaled.predict_proba(graph))


def test_other_inputs_are_refused(graph, fitted):
    with pytest.raises(BadInput, match="found list"):
        fitted.predict([1, 2])
    with pytest.raises(BadInput, match="random_state"):
        SpaMClassifier(**QUICK, random_state=None).fit(graph)
    with pytest.raises(BadInput, match="was made for"):
        fitted.predict(csbm(nodes=90, features=8, seed=0))
