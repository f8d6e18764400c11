"""Averages of a prediction are the same however many nodes are taken at a time."""

from __future__ import annotations

import torch

from spam_gnn import prediction
from spam_gnn.prediction import Prediction


def test_averages_do_not_depend_on_how_many_nodes_are_taken_at_a_time(monkeypatch):
    generator = torch.Generator().manual_seed(0)
    log_prob = torch.log_softmax(torch.randn(6, 50, 7, generator=generator), -1)
    found = Prediction(log_prob, torch.log_softmax(torch.randn(6, generator=generator), 0), (4, 1, 1))
    at_once = [found.log_marginal, found.aleatoric, found.structural, found.disagreement]
    monkeypatch.setattr(prediction, "_AT_A_TIME", 300)
    for a, b in zip(at_once, [found.log_marginal, found.aleatoric, found.structural, found.disagreement], strict=True):
        torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-6)
