"""Calibration: known distortions are undone, several readings fitted together beat one temperature, old folders are read."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from scipy.optimize import minimize

from spam_gnn.calibration import Calibration, fit_calibration
from spam_gnn.prediction import Prediction

N, EVERYONE = 4000, torch.ones(4000, dtype=torch.bool)


@pytest.fixture(scope="module")
def truth():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(N, 3, generator=generator) * 1.5
    return logits, torch.multinomial(torch.softmax(logits, -1), 1, generator=generator).reshape(-1)


def loss(prediction, y):
    return float(torch.nn.functional.nll_loss(prediction.log_marginal, y))


def mixture(truth):
    """Two readings of halves of the features: one too sure, of three samples, and one not sure enough."""
    logits, y = truth
    noise = torch.randn(4, N, 3, generator=torch.Generator().manual_seed(1))
    sure, unsure = torch.log_softmax((logits + noise[:3]) * 4.0, -1), torch.log_softmax((logits + noise[3:]) * 0.3, -1)
    return Prediction(torch.cat([sure, unsure]), torch.tensor([0.1, 0.1, 0.1, 0.7]).log(), readings=(3, 1)), y


def test_one_temperature_recovers_a_known_distortion(truth):
    logits, y = truth
    sharp = Prediction.uniform(torch.log_softmax(logits * 2.5, -1).unsqueeze(0))
    found = fit_calibration(sharp, y, EVERYONE)
    assert found.temperature == (pytest.approx(2.5, rel=0.1),)
    assert found.share == ()
    assert torch.equal(found(sharp).label, sharp.label)
    assert fit_calibration(sharp, y, ~EVERYONE) == Calibration()


def test_nothing_is_done_without_a_calibration(truth):
    prediction, _ = mixture(truth)
    same = Calibration()(prediction)
    assert torch.equal(same.log_prob, prediction.log_prob)
    assert torch.equal(same.log_weight, prediction.log_weight)


def test_each_reading_gets_its_own_and_the_fit_is_the_joint_optimum(truth):
    """Against scipy on the same objective: temperatures on a log scale, shares by their logits, the weak prior among them."""
    prediction, y = mixture(truth)
    found = fit_calibration(prediction, y, EVERYONE)
    assert found.temperature[0] > 2.0 > 1.0 > found.temperature[1]
    assert sum(found.share) == pytest.approx(1.0)

    def objective(values):
        share = torch.softmax(torch.tensor([values[2], 0.0], dtype=torch.float64), 0)
        guess = Calibration(tuple(float(v) for v in torch.tensor(values[:2]).exp()), tuple(share.tolist()))
        return N * loss(guess(prediction), y) - float(share.log().sum())

    ours = objective([*map(math.log, found.temperature), math.log(found.share[0] / found.share[1])])
    best = minimize(objective, [0.5, -0.5, 0.0], method="Nelder-Mead", options={"xatol": 1e-3, "fatol": 1e-2, "maxiter": 400})
    assert ours <= best.fun + 0.5  # of some 3,100 nats over 4,000 nodes
    alike = replace(prediction, readings=())
    assert loss(found(prediction), y) < loss(fit_calibration(alike, y, EVERYONE)(alike), y) - 0.01


def test_probabilities_stay_probabilities(truth):
    prediction, y = mixture(truth)
    scaled = fit_calibration(prediction, y, EVERYONE)(prediction)
    torch.testing.assert_close(scaled.log_weight.exp().sum(), torch.tensor(1.0))
    torch.testing.assert_close(scaled.probability.sum(-1), torch.ones(N))
    assert scaled.readings == prediction.readings


def test_round_trip_and_folders_of_before(truth):
    prediction, y = mixture(truth)
    found = fit_calibration(prediction, y, EVERYONE)
    assert Calibration.from_json({"calibration": found.to_json()}) == found
    assert Calibration.from_json({"temperature": 1.0}) == Calibration()
    old = Calibration.from_json({"temperature": 2.0})
    torch.testing.assert_close(old(prediction).log_prob, torch.log_softmax(prediction.log_prob / 2.0, -1))
    assert torch.equal(old(prediction).log_weight, prediction.log_weight)
