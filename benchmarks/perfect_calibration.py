"""`python benchmarks/perfect_calibration.py`: which ECE a perfectly calibrated prediction would have on as few test nodes.

The default preset on the public splits, seed 0, after a temperature. Labels of the test nodes are drawn 2000 times from the
probabilities that were predicted, which are perfectly calibrated for them; ECE with 15 bins, in percent.
"""

from __future__ import annotations

import torch

from spam_gnn.calibration import fit_calibration
from spam_gnn.data import catalog
from spam_gnn.evaluation.metrics import expected_calibration_error
from spam_gnn.experiments.execute import Limits, train
from spam_gnn.experiments.paper.plan import table_run
from spam_gnn.randomness import stream
from table import write_table

DATASETS = ("cora", "citeseer", "pubmed")
DRAWS, GOALS = 2000, {"cora": 4.0, "citeseer": 5.0, "pubmed": 2.5}


def row(dataset: str) -> list[str]:
    fitted = train(table_run(dataset, "spam", 0, 0), Limits(), None)
    graph = fitted.graph
    tempered = fit_calibration(fitted.prediction, graph.y, graph.val_mask)(fitted.prediction)
    predicted, y = tempered.log_marginal[graph.test_mask].exp(), graph.y[graph.test_mask]
    drawn = torch.multinomial(predicted, DRAWS, replacement=True, generator=stream(0, "perfect calibration"))
    errors = 100 * torch.tensor([expected_calibration_error(predicted, labels) for labels in drawn.T])
    own, goal = 100 * expected_calibration_error(predicted, y), GOALS[dataset]
    return [dataset, f"{len(y)}", f"{own:.2f}", f"{errors.mean():.2f} ± {errors.std():.2f}", f"{goal:g}",
            f"{(errors <= goal).double().mean():.2f}"]  # fmt: skip


def main() -> None:
    torch.set_num_threads(1)
    rows = []
    for dataset in DATASETS:
        if not catalog.is_present(dataset):
            print(f"{dataset}: raw files are absent, left out")
            continue
        rows.append(row(dataset))
        print(" | ".join(rows[-1]), flush=True)
    about = (__doc__ or "").partition("\n\n")[2].strip() + " Rerun: `python benchmarks/perfect_calibration.py`."
    header = ("dataset", "test nodes", "ECE of SpaM", "ECE of a perfect prediction", "goal", "share of draws within the goal")
    write_table("perfect_calibration", "What an ECE of few test nodes can be", about.replace("\n", " "), header, rows)


if __name__ == "__main__":
    main()
