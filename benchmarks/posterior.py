"""`python benchmarks/posterior.py`: which posterior detects edges, with and without the class-loss gradient.

AUROC of p(+1) - p(-1) against "same class" on pairs with an unseen label, beside cosine similarity of the raw features;
mean p(0); test accuracy of the model on top. One seed, split 0, one thread. Finished runs are kept in runs/posterior.
"""

from __future__ import annotations

import json
import statistics

import torch

from spam_gnn.config import SpaMConfig
from spam_gnn.data import catalog
from spam_gnn.evaluation.metrics import cosine_auroc, node_metrics, same_class_auroc
from spam_gnn.files import make_folder, write_json
from spam_gnn.model import SpaM
from spam_gnn.training import TrainConfig, fit
from table import HERE, write_table

STORE = HERE.parent / "runs" / "posterior"
DATASETS = ("csbm", "digits", "cora-metattack:0.25", "texas")
SEEDS = (0,)
VARIANTS = {
    "belief, no class gradient": {"posterior": "belief", "posterior_gradient": 0.0},
    "belief, a tenth (default)": {"posterior": "belief", "posterior_gradient": 0.1},
    "belief, full class gradient": {"posterior": "belief", "posterior_gradient": 1.0},
    "belief, judged by evidence once more": {"posterior": "belief", "verdict": "evidence"},
    "gcn, no class gradient": {"posterior": "gcn", "posterior_gradient": 0.0},
    "gcn, full class gradient": {"posterior": "gcn", "posterior_gradient": 1.0},
    "similarity": {"posterior": "similarity", "posterior_gradient": 1.0},
}


def one(dataset: str, variant: str, seed: int) -> dict[str, float]:
    path = STORE / f"{dataset.replace(':', '-')}-{variant.replace(' ', '_').replace(',', '')}-{seed}.json"
    if path.exists():
        return json.loads(path.read_text())
    graph = catalog.load(dataset, 0, seed)
    config = SpaMConfig().with_settings(VARIANTS[variant])
    model = SpaM(graph.num_features, graph.num_classes, config, seed)
    fit(model, graph, TrainConfig(), seed)
    prepared = model.prepare(graph)
    distribution = model.edge_distribution(prepared)
    assert distribution is not None
    result = {
        "auroc": same_class_auroc(distribution, prepared), "cosine": cosine_auroc(prepared),
        "absent": float(distribution.probability[:, 1].mean()),
        "accuracy": node_metrics(model.predict(prepared, seed), graph.y, graph.test_mask)["accuracy"],
    }  # fmt: skip
    write_json(path, result)
    return result


def main() -> None:
    torch.set_num_threads(1)
    make_folder(STORE)
    rows = []
    for dataset in DATASETS:
        if not catalog.is_present(dataset):
            print(f"{dataset}: raw files are absent, left out")
            continue
        for variant in VARIANTS:
            runs = [one(dataset, variant, seed) for seed in SEEDS]
            mean = {key: statistics.fmean(r[key] for r in runs) for key in runs[0]}
            rows.append([dataset, variant, f"{mean['auroc']:.3f}", f"{mean['cosine']:.3f}", f"{mean['absent']:.2f}",
                         f"{100 * mean['accuracy']:.1f}"])  # fmt: skip
            print(" | ".join(rows[-1]), flush=True)
    about = (__doc__ or "").partition("\n\n")[2].strip() + " Rerun: `python benchmarks/posterior.py`."
    header = ("dataset", "posterior", "AUROC", "cosine", "mean p(0)", "accuracy, %")
    write_table("posterior", "Which posterior detects edges", about.replace("\n", " "), header, rows)


if __name__ == "__main__":
    main()
