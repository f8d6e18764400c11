"""Training: Adam, decay on plateau, clipping, early stopping on validation, and a state that can be written and resumed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from spam_gnn.contract import NodeModel
from spam_gnn.errors import BadInput, Diverged
from spam_gnn.graph import Graph
from spam_gnn.loading.batched import make_feed
from spam_gnn.loading.feed import Feed, Validation
from spam_gnn.settings import BatchConfig, TrainConfig
from spam_gnn.team import Alone, Team

TAKEN_WHOLE, ALONE = BatchConfig(), Alone()
_WORST = (-1.0, float("-inf"))  # validation accuracy, minus validation loss


@dataclass
class TrainState:
    """Everything that the next epoch depends on; written to disk and read back it continues bit for bit."""

    epoch: int = 0  # the next epoch to run
    best_epoch: int = -1  # the last one that any weights were kept of
    best_scores: dict[str, tuple[float, float]] = field(default_factory=dict)  # by part of the model: accuracy, minus loss
    best_weights: dict[str, Tensor] = field(default_factory=dict)
    learning_rate: float = 0.0
    last_decay: int = 0
    seconds: float = 0.0
    history: list[dict[str, float]] = field(default_factory=list)
    finished: bool = False


EpochHook = Callable[[TrainState, NodeModel, torch.optim.Optimizer], None]


def make_optimiser(model: NodeModel, config: TrainConfig) -> torch.optim.Adam:
    """Adam over the model's own parameter groups; groups without parameters are left out."""
    groups = [{"rate_factor": 1.0, **g} for g in model.parameter_groups(config.weight_decay) if g["params"]]
    return torch.optim.Adam(groups, lr=config.learning_rate, fused=True)  # one pass over all weights, also on a CPU


def check_trainable(graph: Graph, config: TrainConfig) -> None:
    """Refuse a graph that cannot be learned from, before any work is done."""
    if not bool(graph.train_mask.any()):
        raise BadInput("train_mask: no training node is labelled; give labels, or a split with training nodes")
    if torch.unique(graph.y[graph.train_mask]).numel() < 2:
        raise BadInput("train_mask: all training nodes have one class; classification needs at least 2")
    if config.select and not bool(graph.val_mask.any()):
        raise BadInput("val_mask: no validation node to select the epoch on; give a split, or set select=false")


def fit(
    model: NodeModel,
    graph: Graph,
    config: TrainConfig,
    seed: int,
    *,
    state: TrainState | None = None,
    optimiser: torch.optim.Optimizer | None = None,
    on_epoch: EpochHook | None = None,
    batches: BatchConfig = TAKEN_WHOLE,
    team: Team = ALONE,
) -> TrainState:
    """Train in place and return the final state; the model ends with the selected weights.

    Args:
        model: with scaling learned already if the run is resumed, otherwise it is learned here.
        graph: as the user gave it; prepared here, once.
        state, optimiser: of an earlier, interrupted call, to continue it.
        on_epoch: called after every epoch (progress, checkpoints); may raise to stop.
        batches: how the graph is cut, if at all.
        team: the processes that share the work; each of them calls this function and ends with the same weights.
    """
    check_trainable(graph, config)
    if state is None:
        model.begin(graph, seed)
        rate = batches.rate if model.training_parts(graph) == 1 else batches.shorter
        state = TrainState(learning_rate=config.learning_rate * rate)
    optimiser = optimiser or make_optimiser(model, config)
    feed = make_feed(model, graph, batches, seed, team)
    loss = team.share(model)
    while state.epoch < config.epochs and not state.finished:
        started = time.perf_counter()
        parts = _train_epoch(model, loss, feed, team, config, optimiser, seed, state)
        seen = feed.evaluate(model, seed, config.val_samples) if config.select else None
        _select(model, config, state, parts, seen)
        state.epoch += 1
        state.seconds += time.perf_counter() - started
        if on_epoch is not None:
            on_epoch(state, model, optimiser)
    state.finished = True
    if config.select:
        model.load_state_dict(state.best_weights)
        feed.evaluate(model, seed, config.val_samples)  # weights kept of different epochs: their readings are weighed together
    return state


def _train_epoch(
    model: NodeModel, loss: nn.Module, feed: Feed, team: Team, config: TrainConfig, optimiser: torch.optim.Optimizer,
    seed: int, state: TrainState,
) -> dict[str, float]:  # fmt: skip
    """The epoch's steps; returns the parts of the loss, averaged over all batches of all processes."""
    for group in optimiser.param_groups:
        group["lr"] = state.learning_rate * group["rate_factor"]
    names: list[str] = []
    sums: list[float] = []
    for pieces in feed.steps(model, seed, state.epoch):
        optimiser.zero_grad(set_to_none=True)
        for place, piece in enumerate(pieces):
            with team.quietly(loss, more=place + 1 < len(pieces)):
                parts = loss(piece.graph, seed, state.epoch)
                numbers = _finite_parts(parts, state.epoch)
                (parts["loss"] * (piece.weight * team.size)).backward()  # the exchange takes the mean over the team
            names, before = list(numbers), sums or [0.0] * len(numbers)
            sums = [total + piece.share * number for total, number in zip(before, numbers.values(), strict=True)]
        size = torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip if config.clip > 0.0 else float("inf"))
        if not bool(torch.isfinite(size)):
            _name_the_culprit(model, state.epoch)
        optimiser.step()
    return dict(zip(names, team.total(torch.tensor(sums, dtype=torch.float64)).tolist(), strict=True))


def _finite_parts(parts: dict[str, Tensor], epoch: int) -> dict[str, float]:
    numbers = {name: float(value.detach()) for name, value in parts.items()}
    for name, value in numbers.items():
        if not _is_finite(value):
            raise Diverged(f"epoch {epoch}: the loss part '{name}' is {value}; lower the learning rate")
    return numbers


def _name_the_culprit(model: NodeModel, epoch: int) -> None:
    for name, parameter in model.named_parameters():
        if parameter.grad is not None and not bool(torch.isfinite(parameter.grad).all()):
            raise Diverged(f"epoch {epoch}: the gradient of '{name}' holds NaN or Inf; lower the learning rate")
    raise Diverged(f"epoch {epoch}: the gradients together are too large for float32; lower the learning rate")


def _select(
    model: NodeModel, config: TrainConfig, state: TrainState, parts: dict[str, float], seen: Validation | None
) -> None:
    """Log the epoch; on a better validation score keep the weights; on a plateau lower the rate, then stop."""
    row = {"epoch": float(state.epoch), **parts, "learning_rate": state.learning_rate, **(seen.numbers if seen else {})}
    if seen is not None:
        _keep_the_best(model, state, seen)
        since = state.epoch - max(state.best_epoch, state.last_decay)
        if since >= config.decay_patience:
            state.learning_rate *= config.decay
            state.last_decay = state.epoch
        state.finished = state.epoch - state.best_epoch >= config.patience
    else:
        state.best_epoch = state.epoch
    state.history.append(row)


def _keep_the_best(model: NodeModel, state: TrainState, seen: Validation) -> None:
    """Parts of the model whose reading has a better score than ever are kept as they are now."""
    chosen_by = model.chosen_by()
    better = {part for part, reading in chosen_by.items() if seen.scores[reading] > state.best_scores.get(part, _WORST)}
    if not better:
        return
    state.best_epoch = state.epoch
    state.best_scores |= {part: seen.scores[chosen_by[part]] for part in better}
    for name, value in model.state_dict().items():
        if max((part for part in chosen_by if name.startswith(part)), key=len) in better:
            state.best_weights[name] = value.detach().clone()


def _is_finite(value: float) -> bool:
    return value - value == 0.0
