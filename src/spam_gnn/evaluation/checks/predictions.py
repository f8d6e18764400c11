"""What a prediction must be, and what predicting must not do."""

from __future__ import annotations

import copy
from dataclasses import replace

import torch

from spam_gnn.evaluation.checks.lab import Check, Lab, difference, ensure, own_copy, weights
from spam_gnn.graph import Graph


def _shape(lab: Lab) -> None:
    found, wanted = tuple(lab.prediction.log_prob.shape), (lab.easy.num_nodes, lab.easy.num_classes)
    ensure(len(found) == 3 and found[1:] == wanted and found[0] >= 1, f"log_prob: shape {found}, wanted (K, {wanted})")


def _finite(lab: Lab) -> None:
    prediction = lab.prediction
    ensure(bool(torch.isfinite(prediction.probability).all()), "a probability is NaN or infinite")
    ensure(not bool(torch.isnan(prediction.log_prob).any()), "a log-probability is NaN")


def _sum(lab: Lab) -> None:
    gap = float((lab.prediction.log_prob.exp().sum(-1) - 1.0).abs().max())
    ensure(gap < 1e-4, f"the probabilities of a node and sample sum to 1 {gap:+.2g} off")


def _not_positive(lab: Lab) -> None:
    top = float(lab.prediction.log_prob.max())
    ensure(top <= 1e-6, f"a log-probability is {top:.2g}, above 0")


def _weights_of_samples(lab: Lab) -> None:
    prediction = lab.prediction
    ensure(prediction.log_weight.shape == prediction.log_prob.shape[:1], "log_weight must have one entry per sample")
    total = float(prediction.log_weight.exp().sum())
    ensure(abs(total - 1.0) < 1e-5, f"the weights of the samples sum to {total:.4f}")


def _no_gradient(lab: Lab) -> None:
    ensure(not lab.prediction.log_prob.requires_grad, "predict must not record gradients; use torch.no_grad()")


def _repeats(lab: Lab) -> None:
    lab.same_prediction(lab.easy, "predicting twice")


def _leaves_weights(lab: Lab) -> None:
    before = weights(lab.learned)
    lab.predict(lab.learned, lab.easy)
    changed = difference(before, weights(lab.learned))
    ensure(changed is None, f"predict changed '{changed}'")


def _leaves_graph(lab: Lab) -> None:
    graph = own_copy(lab.easy)
    graph.y[~graph.train_mask] = (graph.y[~graph.train_mask] + 1) % graph.num_classes  # so that writing answers shows
    tensors = {"x": graph.x, "edge_index": graph.edge_index, "y": graph.y, "train_mask": graph.train_mask}
    before = {name: value.clone() for name, value in tensors.items()}
    lab.learned.predict(lab.learned.prepare(graph), lab.seed)
    changed = [name for name, value in tensors.items() if not torch.equal(value, before[name])]
    ensure(not changed, f"predict changed the graph's {', '.join(changed)}")


def _train_flag(lab: Lab) -> None:
    before = lab.learned.training
    try:
        for flag in (True, False):
            lab.learned.train(flag)
            lab.same_prediction(lab.easy, f"after model.train({flag})")
    finally:
        lab.learned.train(before)


def _copy(lab: Lab) -> None:
    twin = copy.deepcopy(lab.learned)
    gap = float((lab.predict(twin, lab.easy).probability - lab.prediction.probability).abs().max())
    ensure(gap == 0.0, f"a deep copy predicts otherwise, by {gap:.2g}")


def _held_out_labels(lab: Lab) -> None:
    graph = lab.easy
    other = torch.where(graph.train_mask, graph.y, (graph.y + 1) % graph.num_classes)
    lab.same_prediction(replace(graph, y=other), "with other labels of validation and test nodes")


def _unmasked(lab: Lab) -> None:
    """Probabilities exist for nodes of no mask, and do not need the masks of validation and test."""
    none = torch.zeros_like(lab.easy.val_mask)
    lab.same_prediction(replace(lab.easy, val_mask=none, test_mask=none), "without validation and test masks")


def _other_type(lab: Lab) -> None:
    graph = lab.easy
    twin = Graph.build(graph.x.double(), graph.edge_index.int(), graph.y.int(), train_mask=graph.train_mask,
                       val_mask=graph.val_mask, test_mask=graph.test_mask, directed=False)  # fmt: skip
    lab.same_prediction(twin, "features in float64, edges and labels in int32")


_ALL = ("probabilities_are_finite", "prediction_repeats")
CHECKS = (
    Check("prediction_has_one_row_per_node", _shape, ("trains",)),
    Check("probabilities_are_finite", _finite, ("prediction_has_one_row_per_node",)),
    Check("probabilities_sum_to_one", _sum, ("probabilities_are_finite",)),
    Check("log_probabilities_are_not_positive", _not_positive, ("probabilities_sum_to_one",)),
    Check("sample_weights_sum_to_one", _weights_of_samples, ("probabilities_are_finite",)),
    Check("prediction_has_no_gradient", _no_gradient, ("trains",)),
    Check("prediction_repeats", _repeats, ("probabilities_are_finite",)),
    Check("prediction_leaves_weights_alone", _leaves_weights, _ALL),
    Check("prediction_leaves_graph_alone", _leaves_graph, _ALL),
    Check("prediction_ignores_train_flag", _train_flag, _ALL),
    Check("prediction_of_a_copy", _copy, _ALL),
    Check("prediction_ignores_held_out_labels", _held_out_labels, _ALL),
    Check("prediction_needs_no_held_out_masks", _unmasked, (*_ALL, "prediction_ignores_held_out_labels")),
    Check("other_number_types", _other_type, _ALL),
)
