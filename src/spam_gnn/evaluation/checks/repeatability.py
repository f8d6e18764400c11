"""A training is a function of the seed and of the labels it may see; stopped and continued it ends the same."""

from __future__ import annotations

import contextlib
import random
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from spam_gnn.checkpoint import load_state, read_tensors, save_state, write_tensors
from spam_gnn.contract import NodeModel
from spam_gnn.evaluation.checks.lab import SHORT, Check, Lab, difference, ensure, weights
from spam_gnn.training import TrainState, fit


class _StoppedError(Exception):
    """Ends a training between two epochs."""


def _same_seed(lab: Lab) -> None:
    """Whatever the global generators hold, the same seed gives the same bits."""
    first = lab.calm
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(12345)
        again = weights(lab.train(lab.small, select=True))
    changed = difference(first, again)
    ensure(changed is None, f"two trainings with one seed end with different '{changed}'")


def _other_seed(lab: Lab) -> None:
    model = lab.train(lab.small, select=True, seed=lab.seed + 1)
    ensure(difference(lab.calm, weights(model)) is not None, "another seed gives the same weights, bit for bit")


def _global_state(lab: Lab) -> None:
    torch_state, numpy_state, python_state = torch.get_rng_state(), np.random.get_state(), random.getstate()  # noqa: NPY002
    lab.predict(lab.train(lab.small, select=True), lab.small)
    ensure(torch.equal(torch_state, torch.get_rng_state()), "torch's global generator has moved; draw from one of your own")
    same = all(np.array_equal(a, b) for a, b in zip(numpy_state, np.random.get_state(), strict=True))  # noqa: NPY002
    ensure(same, "NumPy's global generator has moved; use numpy.random.default_rng(seed)")
    ensure(python_state == random.getstate(), "Python's global generator has moved; use random.Random(seed)")


def _without_leak(lab: Lab, changed: Tensor, whose: str, *, select: bool) -> None:
    other = torch.where(changed, (lab.small.y + 1) % lab.small.num_classes, lab.small.y)
    model = lab.train(replace(lab.small, y=other), select=select)
    name = difference(lab.calm if select else lab.last, weights(model))
    ensure(name is None, f"other labels of {whose} change the trained '{name}'")


def _test_labels(lab: Lab) -> None:
    _without_leak(lab, lab.small.test_mask, "test nodes", select=True)


def _validation_labels(lab: Lab) -> None:
    _without_leak(lab, lab.small.val_mask, "validation nodes", select=False)


def _other_labels(lab: Lab) -> None:
    graph = lab.small
    _without_leak(lab, ~(graph.train_mask | graph.val_mask | graph.test_mask), "nodes outside the masks", select=True)


def _round_trip(lab: Lab) -> None:
    """Weights on disk, read into a fresh model of another seed: the same predictions."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        write_tensors(path, lab.learned.state_dict(), {})
        again = lab.fresh(lab.easy, lab.seed + 1)
        again.load_state_dict(read_tensors(path)[0])
    gap = float((lab.predict(again, lab.easy).probability - lab.prediction.probability).abs().max())
    ensure(gap == 0.0, f"saved and loaded, probabilities differ by up to {gap:.2g}; is all that was learned in buffers?")


def _resume(lab: Lab) -> None:
    config = lab.config(SHORT, select=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.safetensors"

        def stop(state: TrainState, model: NodeModel, optimiser: torch.optim.Optimizer) -> None:
            save_state(path, state, model, optimiser)
            raise _StoppedError

        with contextlib.suppress(_StoppedError):
            lab.train(lab.small, select=True, hook=stop)
        model = lab.fresh(lab.small, lab.seed + 1)
        state, optimiser = load_state(path, model, config)
        fit(model, replace(lab.small), config, lab.seed, state=state, optimiser=optimiser)
    changed = difference(lab.calm, weights(model))
    ensure(changed is None, f"stopped after an epoch and continued, training ends with a different '{changed}'")


_NEEDS = ("trains", "same_seed_same_weights")
CHECKS = (
    Check("same_seed_same_weights", _same_seed, ("trains",)),
    Check("other_seed_other_weights", _other_seed, _NEEDS),
    Check("global_random_state_is_left_alone", _global_state, _NEEDS),
    Check("test_labels_do_not_leak", _test_labels, _NEEDS),
    Check("validation_labels_do_not_leak", _validation_labels, _NEEDS),
    Check("other_labels_do_not_leak", _other_labels, _NEEDS),
    Check("save_and_load", _round_trip, ("prediction_repeats", "prediction_ignores_train_flag")),
    Check("resume_equals_undisturbed", _resume, (*_NEEDS, "save_and_load")),
)
