"""What is measured of a prediction and of an edge posterior. Numbers only; no model, no training."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.metrics import f1_score, roc_auc_score
from torch import Tensor

from spam_gnn.graph import Graph
from spam_gnn.posterior.base import NEGATIVE, POSITIVE, SignDistribution
from spam_gnn.prediction import Prediction

BINS = 15


def node_metrics(prediction: Prediction, y: Tensor, mask: Tensor) -> dict[str, float]:
    """accuracy, macro_f1, nll, brier, ece (15 equal-width bins), and roc_auc for two classes; empty mask, empty dict."""
    if not bool(mask.any()):
        return {}
    probability, labels = prediction.probability[mask].double(), y[mask]
    predicted = probability.argmax(-1)
    one_hot = torch.nn.functional.one_hot(labels, probability.shape[1])
    result = {
        "accuracy": float((predicted == labels).double().mean()),
        "macro_f1": float(f1_score(labels.numpy(), predicted.numpy(), average="macro", zero_division=0)),  # pyright: ignore[reportArgumentType]
        "nll": float(torch.nn.functional.nll_loss(prediction.log_marginal[mask].double(), labels)),
        "brier": float((probability - one_hot).square().sum(1).mean()),
        "ece": expected_calibration_error(probability, labels),
    }
    if probability.shape[1] == 2 and torch.unique(labels).numel() == 2:
        result["roc_auc"] = float(roc_auc_score(labels.numpy(), probability[:, 1].numpy()))
    return result


def reliability(probability: Tensor, y: Tensor, bins: int = BINS) -> list[tuple[float, float, int]]:
    """(mean confidence, accuracy, count) of each equal-width confidence bin; empty bins are (nan, nan, 0)."""
    confidence, predicted = probability.max(-1)
    place = (confidence * bins).long().clamp(max=bins - 1)
    right = (predicted == y).double()
    rows = []
    for b in range(bins):
        inside = place == b
        count = int(inside.sum())
        rows.append((float(confidence[inside].double().mean()), float(right[inside].mean()), count) if count
                    else (float("nan"), float("nan"), 0))  # fmt: skip
    return rows


def expected_calibration_error(probability: Tensor, y: Tensor, bins: int = BINS) -> float:
    """sum over bins of (count / n) |accuracy - confidence|."""
    rows = [row for row in reliability(probability, y, bins) if row[2]]
    total = sum(count for _, _, count in rows)
    return sum(count / total * abs(accuracy - confidence) for confidence, accuracy, count in rows)


def auroc(truth: np.ndarray, score: np.ndarray) -> float:
    """Area under the ROC curve; nan where only one kind is present."""
    return float(roc_auc_score(truth, score)) if np.unique(truth).size == 2 else float("nan")


def edge_sign_auroc(distribution: SignDistribution, graph: Graph) -> tuple[float, str]:
    """How well p(+1) - p(-1) ranks edges, and against what it was held.

    Against planted signs where they are known (z = +1 against the rest); otherwise against "same class" on the pairs with at
    least one label the model has not seen.
    """
    probability = distribution.probability
    score = (probability[:, POSITIVE] - probability[:, NEGATIVE]).numpy()
    if graph.edge_sign is not None:
        return auroc((graph.edge_sign > 0).numpy(), score), "planted signs"
    same, use = same_class_pairs(graph)
    return auroc(same[use].numpy(), score[use.numpy()]), "same class, pairs with an unseen label"


def same_class_pairs(graph: Graph) -> tuple[Tensor, Tensor]:
    """(m,) whether the ends share a class, and (m,) which edges count: both labels exist, at least one unseen in training."""
    i, j = graph.edge_index
    known = (graph.y[i] >= 0) & (graph.y[j] >= 0)
    return graph.y[i] == graph.y[j], known & ~(graph.train_mask[i] & graph.train_mask[j])


def same_class_auroc(distribution: SignDistribution, graph: Graph) -> float:
    """AUROC of p(+1) - p(-1) against "same class" on pairs with an unseen label, whatever else is known."""
    same, use = same_class_pairs(graph)
    score = distribution.probability[:, POSITIVE] - distribution.probability[:, NEGATIVE]
    return auroc(same[use].numpy(), score[use].numpy())


def cosine_auroc(graph: Graph) -> float:
    """The bar: plain cosine similarity of the features as the score, on the same pairs."""
    same, use = same_class_pairs(graph)
    return auroc(same[use].numpy(), graph.feature_cosine[use].numpy())


def noise_auroc(distribution: SignDistribution, graph: Graph) -> float | None:
    """How well p(0) finds planted noise edges (sign 0); None where no truth is known."""
    if graph.edge_sign is None:
        return None
    return auroc((graph.edge_sign == 0).numpy(), distribution.probability[:, 1].numpy())
