"""Accuracy against the number of sampled graphs K at prediction, one training, several prediction seeds."""

from __future__ import annotations

from spam_gnn.experiments.fitted import Fitted
from spam_gnn.randomness import seed_for

COUNTS = (1, 2, 4, 8, 16, 32)
SEEDS = 5


def measure(fitted: Fitted) -> dict[str, list[list[float]]]:
    """Rows by K in `COUNTS`, columns by prediction seed: accuracy, and the mean l1 distance of the probabilities from their
    average over the seeds."""
    graph, test = fitted.prepared, fitted.graph.test_mask
    accuracy, wobble = [], []
    for count in COUNTS:
        predictions = [
            fitted.model.predict(graph, seed_for(fitted.spec.seed, "sample counts", k), samples=count) for k in range(SEEDS)
        ]
        accuracy.append([float((p.label == graph.y)[test].float().mean()) for p in predictions])
        each = [p.probability[test] for p in predictions]
        mean = sum(each[1:], each[0]) / SEEDS
        wobble.append([float((p - mean).abs().sum(1).mean()) for p in each])
    return {"accuracy": accuracy, "probability_change": wobble}
