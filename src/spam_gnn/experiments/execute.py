"""One `RunSpec` -> one record: load, perturb, make, fit, predict once."""

from __future__ import annotations

import importlib
import math
import time
import traceback
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from spam_gnn.baselines.base import Shape
from spam_gnn.baselines.registry import find
from spam_gnn.calibration import fit_calibration
from spam_gnn.contract import NodeModel
from spam_gnn.data import catalog
from spam_gnn.errors import BadInput, DiskError, SpamError, TooLarge
from spam_gnn.evaluation.metrics import edge_sign_auroc, node_metrics, noise_auroc
from spam_gnn.experiments.fitted import Fitted
from spam_gnn.experiments.provenance import code_version, data_checksum, machine, package_versions
from spam_gnn.experiments.spec import RunSpec
from spam_gnn.experiments.store import Record
from spam_gnn.graph import Graph
from spam_gnn.perturb import apply
from spam_gnn.posterior.base import ABSENT
from spam_gnn.prediction import Prediction
from spam_gnn.resources import forget_peak_memory, peak_memory_mb
from spam_gnn.training import TrainState, fit

WAITING = 10.0  # times the limit of computing that a run may take on the clock
_CALIBRATED = ("nll", "brier", "ece")  # what a temperature changes


@dataclass(frozen=True)
class Limits:
    """What one run may take; beyond it, the run is a failed record. None is no limit.

    Seconds are those of computing, so that a busy machine does not decide who fails; a run that waits ten times as long has
    come to nothing as well.
    """

    seconds: float | None = None
    memory_mb: float | None = None

    def __post_init__(self) -> None:
        for name, value in (("time limit", self.seconds), ("memory limit", self.memory_mb)):
            if value is not None and not value > 0:
                raise BadInput(f"{name}: found {value}; use a number above 0")

    def broken(self, computed: float, passed: float, memory_mb: float) -> str | None:
        """Why a run must stop, or None: seconds of computing, seconds on the clock, memory."""
        if self.seconds is not None and computed > self.seconds:
            return f"time limit: not done in {self.seconds:.0f} s of computing"
        if self.seconds is not None and passed > WAITING * self.seconds:
            return f"time limit: not done in {WAITING * self.seconds:.0f} s on the clock"
        if self.memory_mb is not None and memory_mb > self.memory_mb:
            return f"memory limit: {memory_mb:.0f} MiB held, {self.memory_mb:.0f} MiB allowed"
        return None


def execute(spec: RunSpec, limits: Limits | None = None, attacks: Path | None = None) -> Record:
    """The record of a run. Whatever goes wrong inside it is a failed record; a full disk is not the run's fault and raised.

    `attacks` is a folder where attacked graphs are kept, so that models compared on one of them do not attack it anew.
    """
    forget_peak_memory()
    started, begun, computing = datetime.now(UTC), time.perf_counter(), time.process_time()
    try:
        found = _findings(train(spec, limits or Limits(), attacks))
    except DiskError:
        raise
    except Exception as error:
        return failed(spec, _reason(error), "".join(traceback.format_exception(error)[-4:]), started)
    return {
        **_header(spec, "ok", started), **found, "seconds_total": round(time.perf_counter() - begun, 3),
        "cpu_seconds": round(time.process_time() - computing, 3), "peak_memory_mb": round(peak_memory_mb(), 1),
    }  # fmt: skip


def failed(spec: RunSpec, reason: str, detail: str = "", started: datetime | None = None) -> Record:
    """The record of a run that has no result."""
    return {**_header(spec, "failed", started or datetime.now(UTC)), "reason": reason, "detail": detail}


def train(spec: RunSpec, limits: Limits, attacks: Path | None = None) -> Fitted:
    """Everything up to the prediction. Model selection reads validation nodes only."""
    clean = catalog.load(spec.dataset, spec.split, spec.seed, spec.protocol)
    change = spec.perturbation
    graph = clean if change is None else apply(clean, change.name, change.strength, spec.seed, cache=attacks)
    begun, computing = time.perf_counter(), time.process_time()  # whoever comes first makes the attack for all
    model = find(spec.model).make(Shape.of(graph), spec.settings, spec.seed)

    def watch(state: TrainState, model: NodeModel, optimiser: torch.optim.Optimizer) -> None:  # noqa: ARG001
        broken = limits.broken(time.process_time() - computing, time.perf_counter() - begun, peak_memory_mb())
        if broken is not None:
            raise TooLarge(f"{broken}, at epoch {state.epoch}")

    state = fit(model, graph, spec.train, spec.seed, on_epoch=watch)
    prepared = model.prepare(graph)
    return Fitted(spec, clean, graph, prepared, model, state, model.predict(prepared, spec.seed))


def _findings(fitted: Fitted) -> Record:
    graph, state, prediction = fitted.graph, fitted.state, fitted.prediction
    calibration = fit_calibration(prediction, graph.y, graph.val_mask)
    tempered = calibration(prediction)
    measures = {
        name: importlib.import_module(f"spam_gnn.experiments.measures.{name}").measure(fitted) for name in fitted.spec.measures
    }
    return {
        "test": _metrics(prediction, graph, graph.test_mask), "val": _metrics(prediction, graph, graph.val_mask),
        "test_calibrated": _only(_CALIBRATED, _metrics(tempered, graph, graph.test_mask)),
        "val_calibrated": _only(_CALIBRATED, _metrics(tempered, graph, graph.val_mask)),
        "temperature": list(calibration.temperature), "edges": _edge_findings(fitted), "measures": measures,
        "epochs": state.epoch, "best_epoch": state.best_epoch, "seconds": round(state.seconds, 4),
        "seconds_per_epoch": state.seconds / max(state.epoch, 1), "data_sha256": data_checksum(graph),
        "parameters": sum(p.numel() for p in fitted.model.parameters() if p.requires_grad),
        "samples": prediction.log_prob.shape[0],
    }  # fmt: skip


def _edge_findings(fitted: Fitted) -> dict[str, Any]:
    """How well a model with a posterior ranks edges; empty for the others."""
    distribution = fitted.model.edge_distribution(fitted.prepared)
    if distribution is None:
        return {}
    area, against = edge_sign_auroc(distribution, fitted.prepared)
    noise = noise_auroc(distribution, fitted.prepared)
    return {
        "sign_auroc": _finite(area), "sign_auroc_against": against, "noise_auroc": None if noise is None else _finite(noise),
        "mean_p_absent": _finite(float(distribution.probability[:, ABSENT].mean())),
    }  # fmt: skip


def _metrics(prediction: Prediction, graph: Graph, mask: torch.Tensor) -> dict[str, float | None]:
    return {name: _finite(value) for name, value in node_metrics(prediction, graph.y, mask).items()}


def _only(names: tuple[str, ...], values: dict[str, float | None]) -> dict[str, float | None]:
    return {name: values[name] for name in names if name in values}


def _finite(value: float) -> float | None:
    """JSON has no NaN; an undefined number is null."""
    return value if math.isfinite(value) else None


def _header(spec: RunSpec, status: str, started: datetime) -> Record:
    return {
        "status": status, "hash": spec.spec_hash, "spec": spec.to_json(), "code": code_version(),
        "packages": package_versions(), "machine": machine(), "started": started.isoformat(timespec="seconds"),
    }  # fmt: skip


def _reason(error: Exception) -> str:
    """An expected error speaks for itself; another is named."""
    if isinstance(error, SpamError):
        return str(error)
    if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
        return "memory limit: an allocation was refused"
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
