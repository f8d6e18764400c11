"""`spam-gnn demo`: the whole story on one embedded graph."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from spam_gnn.baselines.registry import make_baseline
from spam_gnn.commands.console import OUT, epoch_bar, polite_stop, table
from spam_gnn.config import SpaMConfig
from spam_gnn.errors import BadInput
from spam_gnn.evaluation.metrics import node_metrics
from spam_gnn.files import make_folder, write_durably
from spam_gnn.homophily import homophily
from spam_gnn.resources import use_threads
from spam_gnn.run import RunSettings, train_run
from spam_gnn.source import DataSource
from spam_gnn.training import TrainConfig, fit

_MARK = "demo.txt"


def run_demo(out: Path, seed: int) -> None:
    """Train SpaM, a features-only and a plain-GCN baseline on `digits`, compare, and leave the report."""
    started = time.perf_counter()
    _take_folder(out)
    # shorter than the default, for all three models alike: the demo should end within a minute or two anywhere
    settings = RunSettings(DataSource("digits"), SpaMConfig(), TrainConfig(epochs=120, patience=40), 0, seed)
    graph = settings.source.load(0, seed)
    assert graph.edge_sign is not None
    bad = int((graph.edge_sign == 0).sum()) // 2
    OUT.print(
        f"digits: {graph.num_nodes} noisy images, {graph.num_edges // 2} edges of which {bad} are planted wrong ones, "
        f"{int(graph.train_mask.sum())} training labels, edge homophily {homophily(graph).edge:.2f}"
    )
    use_threads(graph, settings.model.hidden, settings.model.samples)
    with polite_stop() as stop, epoch_bar("SpaM", settings.train.epochs) as bar:
        metrics = train_run(settings, out, progress=bar, stop_requested=stop, graph=graph)
    rows = [["SpaM (posterior over signed graphs)", *_numbers(metrics["test"])]]
    for name, meaning in (("mlp", "features only"), ("gcn", "trusts every edge")):
        model = make_baseline(name, graph, seed)
        with epoch_bar(name, settings.train.epochs) as bar:
            fit(model, graph, settings.train, seed, on_epoch=lambda state, *_, bar=bar: bar(state))
        rows.append([f"{name} ({meaning})", *_numbers(
            node_metrics(model.predict(model.prepare(graph), seed), graph.y, graph.test_mask))])  # fmt: skip
    table(f"test nodes of digits, in percent (one split, seed {seed})", ("model", "accuracy", "NLL", "ECE"), rows)
    OUT.print(
        f"planted wrong edges: AUROC {metrics['noise_auroc']:.3f} of p(absent); "
        f"edge signs: AUROC {metrics['edge_sign_auroc']:.3f} against {metrics['edge_sign_auroc_against']}"
    )
    OUT.print(f"done in {time.perf_counter() - started:.0f} s; open {out / 'report.html'}")


def _take_folder(out: Path) -> None:
    """A new or empty folder, or one that an earlier demo made and marked; anything else is the user's and stays untouched."""
    if (out / _MARK).exists():
        shutil.rmtree(out)
    elif out.is_dir() and any(out.iterdir()):
        raise BadInput(f"{out}: is not empty and was not made by the demo; choose another --out")
    make_folder(out)
    write_durably(out / _MARK, b"Written by `spam-gnn demo`, which replaces this folder when it runs again.\n")


def _numbers(test: dict[str, float]) -> list[str]:
    return [f"{100 * test['accuracy']:.1f}", f"{test['nll']:.3f}", f"{100 * test['ece']:.1f}"]
