"""Calibration: temperatures that make validation labels likely, and with several readings the shares of those.

A model with one reading gets the usual single temperature T, its logits divided by T. In a mixture one T would do for all, but
readings err differently: on few labels a network that learned from its own guesses is too sure (T of 2 to 3), one that hears
no messages is not sure enough. So each reading r has its own, and the shares are found again with it,

    (T, w) = argmax sum_{i in validation} log sum_r w_r mean_k softmax(log p_rk(y_i) / T_r) + (a / R) sum_r log w_r,

one coordinate after the other: a line search for each T_r, expectation maximisation for w.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from spam_gnn.prediction import Prediction
from spam_gnn.readings import likeliest_shares

_ROUNDS = 10  # over all coordinates; the likelihood moves by less than 1e-3 of a nat a node after that
_WIDEST = 3.0  # log T is looked for up to this on either side


@dataclass(frozen=True)
class Calibration:
    """What is done to a prediction.

    Args:
        temperature: of each reading; a single one is that of all of them; none leaves the logits as they are.
        share: of each reading; none leaves them as they are.
    """

    temperature: tuple[float, ...] = ()
    share: tuple[float, ...] = ()

    def __call__(self, prediction: Prediction) -> Prediction:
        """Each sample's logits divided by the temperature of its reading, and weighted by its share of that reading's share."""
        sizes = torch.tensor(prediction.readings or (len(prediction.log_weight),))
        log_prob, weight = prediction.log_prob, prediction.log_weight
        if self.temperature:
            each = log_prob.new_tensor(self.temperature).expand(len(sizes)).repeat_interleave(sizes)
            log_prob = torch.log_softmax(log_prob / each[:, None, None], dim=-1)
        if self.share:
            parts = zip(weight.split(sizes.tolist()), self.share, strict=True)
            weight = torch.cat([part - torch.logsumexp(part, 0) + math.log(share) for part, share in parts])
        return replace(prediction, log_prob=log_prob, log_weight=weight)

    def to_json(self) -> dict[str, list[float]]:
        return {"temperature": list(self.temperature), "share": list(self.share)}

    @staticmethod
    def from_json(facts: dict[str, Any]) -> Calibration:
        """From what a run or an estimator keeps; those of before had one temperature."""
        if "calibration" not in facts:
            return Calibration(() if facts["temperature"] == 1.0 else (facts["temperature"],))
        return Calibration(tuple(facts["calibration"]["temperature"]), tuple(facts["calibration"]["share"]))


def fit_calibration(prediction: Prediction, y: Tensor, mask: Tensor) -> Calibration:
    """The likeliest temperatures (and shares) on `mask`, the validation nodes; none without any."""
    if not bool(mask.any()):
        return Calibration()
    sizes, labels = list(prediction.readings) or [len(prediction.log_weight)], y[mask]
    parts = list(zip(prediction.log_prob[:, mask].split(sizes), prediction.log_weight.split(sizes), strict=True))
    share = torch.stack([torch.logsumexp(weight, 0) for _, weight in parts]).double().exp()
    likely = [_likelihood(log_prob, weight, labels, 1.0) for log_prob, weight in parts]
    temperature = [1.0] * len(parts)
    for _ in range(_ROUNDS if len(parts) > 1 else 1):
        for r, (log_prob, weight) in enumerate(parts):
            others = sum(share[q] * likely[q] for q in range(len(parts)) if q != r)
            temperature[r] = _best(log_prob, weight, labels, share[r], others)
            likely[r] = _likelihood(log_prob, weight, labels, temperature[r])
        if len(parts) > 1:
            share = likeliest_shares(torch.stack(likely))
    return Calibration(tuple(temperature), tuple(share.tolist()) if len(parts) > 1 else ())


def _likelihood(log_prob: Tensor, log_weight: Tensor, labels: Tensor, temperature: float) -> Tensor:
    """(v,) double: what one reading gives to the labels, averaged over its samples."""
    own = (log_weight - torch.logsumexp(log_weight, 0))[:, None, None]
    mean = torch.logsumexp(torch.log_softmax(log_prob / temperature, dim=-1) + own, dim=0)
    return mean.gather(1, labels[:, None])[:, 0].double().exp()


def _best(log_prob: Tensor, log_weight: Tensor, labels: Tensor, share: Tensor, others: Tensor | float) -> float:
    """The temperature of one reading beside what the `others` give to the labels."""

    def loss(log_t: float) -> float:
        mixed = share * _likelihood(log_prob, log_weight, labels, math.exp(log_t)) + others
        return -float(mixed.clamp(min=1e-300).log().mean())

    return math.exp(_lowest(loss, -_WIDEST, _WIDEST))


def _lowest(loss: Callable[[float], float], low: float, high: float) -> float:
    """Golden-section search; one temperature of one reading has a unimodal loss."""
    ratio = 0.6180339887498949
    while high - low > 1e-3:
        a, b = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, b) if loss(a) < loss(b) else (a, high)
    return (low + high) / 2

