"""`python benchmarks/epoch_choice.py`: whether another rule than validation accuracy should choose the epochs kept.

Texas, Cornell and Wisconsin, ten splits, default preset, all 200 epochs. Test nodes are not looked at: a random half of the
validation nodes chooses the epoch of every network and the networks' shares, the other half is read; forty halves for each
split. Mean accuracy in percent. Finished runs are kept in runs/epoch_choice.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from spam_gnn.baselines.base import Shape
from spam_gnn.baselines.registry import find
from spam_gnn.data import catalog
from spam_gnn.experiments.paper.plan import table_run
from spam_gnn.files import make_folder
from spam_gnn.readings import likeliest_shares
from spam_gnn.training import fit
from table import HERE, write_table

STORE = HERE.parent / "runs" / "epoch_choice"
DATASETS, SPLITS, HALVES, PATIENCE = ("texas", "cornell", "wisconsin"), 10, 40, 60
Curve = np.ndarray


def averaged(curve: Curve, width: int) -> Curve:
    window = np.ones(width)
    return np.convolve(curve, window, "same") / np.convolve(np.ones(len(curve)), window, "same")


RULES: dict[str, Callable[[Curve, Curve], Curve]] = {
    "accuracy, then likelihood (the default)": lambda accuracy, nll: accuracy - 1e-6 * nll,
    "likelihood": lambda _, nll: -nll,
    "accuracy less a tenth of the nll": lambda accuracy, nll: accuracy - 0.1 * nll,
    "accuracy averaged over 5 epochs": lambda accuracy, nll: averaged(accuracy, 5) - 1e-6 * nll,
    "over 11 epochs": lambda accuracy, nll: averaged(accuracy, 11) - 1e-6 * nll,
    "over 21 epochs": lambda accuracy, nll: averaged(accuracy, 21) - 1e-6 * nll,
    "the last epoch": lambda accuracy, _: np.arange(len(accuracy), dtype=float),
}


def validation(dataset: str, split: int) -> tuple[Curve, np.ndarray]:
    """(epochs, R, v, C) log p of every reading of the validation nodes after each epoch, and their labels."""
    path = STORE / f"{dataset}-{split}.npz"
    if not path.exists():
        spec = table_run(dataset, "spam", split, split)
        graph = catalog.load(dataset, split, split, spec.protocol)
        model, kept = find("spam").make(Shape.of(graph), spec.settings, split), []

        def keep(state: Any, model: Any, optimiser: Any) -> None:  # noqa: ARG001
            readings = model.readings(model.prepare(graph), split, samples=spec.train.val_samples)
            kept.append(torch.stack([r.log_marginal[graph.val_mask] for r in readings]).detach().numpy())

        fit(model, graph, replace(spec.train, patience=spec.train.epochs), split, on_epoch=keep)
        np.savez(path, log_prob=np.stack(kept), y=graph.y[graph.val_mask].numpy())
    with np.load(path) as found:
        return found["log_prob"], found["y"]


def kept_epochs(scores: list[Curve]) -> list[int]:
    """The best epoch of every reading until none has become better for so long."""
    best = [np.maximum.accumulate(score) for score in scores]
    better = np.flatnonzero(np.any([np.diff(b, prepend=-np.inf) > 0 for b in best], 0))
    gaps = np.flatnonzero(np.diff(better) > PATIENCE)
    end = better[gaps[0]] + 1 if len(gaps) else len(scores[0])
    return [int(score[:end].argmax()) for score in scores]


def accuracies(dataset: str, split: int) -> dict[str, float]:
    log_prob, y = validation(dataset, split)
    truth, hit = log_prob[:, :, np.arange(len(y)), y], log_prob.argmax(-1) == y
    generator, found = np.random.default_rng(split), {rule: [] for rule in RULES}
    for _ in range(HALVES):
        order = generator.permutation(len(y))
        choosing, read = order[: len(y) // 2], order[len(y) // 2 :]
        accuracy, nll = hit[:, :, choosing].mean(-1), -truth[:, :, choosing].mean(-1)
        for rule, score in RULES.items():
            epochs = kept_epochs([score(accuracy[:, r], nll[:, r]) for r in range(accuracy.shape[1])])
            chosen = log_prob[epochs, range(len(epochs))]  # (R, v, C)
            likelihood = np.exp(truth[epochs, range(len(epochs))][:, choosing])
            share = likeliest_shares(torch.from_numpy(likelihood)).numpy()
            mixed = np.einsum("r,rvc->vc", share, np.exp(chosen[:, read]))
            found[rule].append(float((mixed.argmax(-1) == y[read]).mean()))
    return {rule: statistics.fmean(values) for rule, values in found.items()}


def main() -> None:
    torch.set_num_threads(1)
    make_folder(STORE)
    present = [dataset for dataset in DATASETS if catalog.is_present(dataset)]
    found = {dataset: [accuracies(dataset, split) for split in range(SPLITS)] for dataset in present}
    means = {rule: [100 * statistics.fmean(f[rule] for f in found[d]) for d in present] for rule in RULES}
    rows = [[rule, *(f"{value:.1f}" for value in values), f"{statistics.fmean(values):.1f}"] for rule, values in means.items()]
    about = (__doc__ or "").partition("\n\n")[2].strip() + " Rerun: `python benchmarks/epoch_choice.py`."
    write_table("epoch_choice", "Which epoch is kept", about.replace("\n", " "), ("rule", *present, "mean"), rows)


if __name__ == "__main__":
    main()
