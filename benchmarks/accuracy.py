"""`python benchmarks/accuracy.py [DATASET ...]`: the default preset beside a two-layer MLP and a GCN, same splits and seeds.

Ten fixed splits of texas, cornell and wisconsin; five seeds of Cora clean and with 25 % Metattack edges (its 10/10/80
split). Selected on validation only, test read once. Every finished run is kept in runs/accuracy, so that a rerun goes on.
"""

from __future__ import annotations

import json
import math
import statistics
import sys

import torch

from spam_gnn.baselines.registry import make_baseline
from spam_gnn.config import SpaMConfig
from spam_gnn.data import catalog
from spam_gnn.evaluation.metrics import edge_sign_auroc, node_metrics
from spam_gnn.files import make_folder, write_json
from spam_gnn.model import SpaM
from spam_gnn.training import TrainConfig, fit
from table import HERE, write_table

STORE = HERE.parent / "runs" / "accuracy"
ALL = ("texas", "cornell", "wisconsin", "cora-metattack:0.25", "cora-metattack:0")
MODELS = ("spam", "mlp", "gcn")


def one(dataset: str, model_name: str, split: int, seed: int) -> dict[str, float]:
    """Test metrics of one run, from the store if it is there."""
    path = STORE / f"{dataset.replace(':', '-')}-{model_name}-{split}-{seed}.json"
    if path.exists():
        return json.loads(path.read_text())
    graph = catalog.load(dataset, split, seed)
    spam = SpaM(graph.num_features, graph.num_classes, SpaMConfig(), seed) if model_name == "spam" else None
    model = spam or make_baseline(model_name, graph, seed)
    state = fit(model, graph, TrainConfig(), seed)
    prepared = model.prepare(graph)
    result = node_metrics(model.predict(prepared, seed), graph.y, graph.test_mask)
    result["val_accuracy"], result["seconds"] = state.history[state.best_epoch]["val_accuracy"], state.seconds
    distribution = None if spam is None else spam.edge_distribution(prepared)
    if distribution is not None:
        result["edge_auroc"] = edge_sign_auroc(distribution, prepared)[0]
    write_json(path, result)
    return result


def main(datasets: tuple[str, ...]) -> None:
    torch.set_num_threads(1)
    make_folder(STORE)
    rows = []
    for dataset in datasets:
        if not catalog.is_present(dataset):
            print(f"{dataset}: raw files are absent, left out")
            continue
        fixed = catalog.split_count(dataset) > 1
        plan = [(s, s) for s in range(10)] if fixed else [(0, s) for s in range(5)]
        results = {}
        for name in MODELS:
            results[name] = [one(dataset, name, split, seed) for split, seed in plan]
            print(dataset, name, f"{100 * statistics.fmean(r['accuracy'] for r in results[name]):.2f}", flush=True)
        cells = []
        for name in MODELS:
            values = [100 * r["accuracy"] for r in results[name]]
            cells.append(f"{statistics.fmean(values):.2f} ± {statistics.stdev(values):.2f}")
        gap = [100 * (a["accuracy"] - b["accuracy"]) for a, b in zip(results["spam"], results["mlp"], strict=True)]
        error = statistics.stdev(gap) / math.sqrt(len(gap))
        area = statistics.fmean(r["edge_auroc"] for r in results["spam"])
        seconds = statistics.median(r["seconds"] for r in results["spam"])
        rows.append([dataset, f"{len(plan)} {'splits' if fixed else 'seeds'}", *cells,
                     f"{statistics.fmean(gap):+.2f} ± {error:.2f}", f"{area:.3f}", f"{seconds:.0f}"])  # fmt: skip
    about = ("Test accuracy in percent, mean ± sample standard deviation; the gap to the MLP is paired, mean ± standard error. "
             "One default preset and one training routine for all; selection on validation accuracy. Edge AUROC: p(+1) - p(-1) "
             "against same class, on pairs with an unseen label. Rerun: `python benchmarks/accuracy.py`.")  # fmt: skip
    header = ("dataset", "runs", "SpaM", "MLP", "GCN", "SpaM - MLP", "edge AUROC", "s / run")
    if tuple(datasets) == ALL:
        write_table("accuracy", "Accuracy of the default preset", about, header, rows)
    for row in rows:
        print(" | ".join(row))


if __name__ == "__main__":
    main(tuple(sys.argv[1:]) or ALL)
