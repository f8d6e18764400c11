"""Parameters: named the same each time, all trained, all given to the optimiser, finite at the end."""

from __future__ import annotations

from dataclasses import replace

import torch

from spam_gnn.evaluation.checks.lab import Check, Lab, ensure, weights
from spam_gnn.training import make_optimiser

_STEPS = 5  # a gate that starts at zero lets a gradient through only after its first step


def _trains(lab: Lab) -> None:
    ensure(bool(lab.calm), "the model has no weights at all")


def _loss(lab: Lab) -> None:
    model = lab.fresh(lab.small)
    model.begin(lab.small, lab.seed)
    parts = model.training_loss(model.prepare(replace(lab.small)), lab.seed, 0)
    ensure("loss" in parts, f"training_loss returned {sorted(parts)}; one entry must be called 'loss'")
    for name, value in parts.items():
        ensure(value.ndim == 0 and bool(torch.isfinite(value)), f"loss part '{name}' is {value}; it must be one finite number")
    ensure(parts["loss"].requires_grad, "the loss has no gradient")


def _names(lab: Lab) -> None:
    shapes = [{name: tuple(value.shape) for name, value in lab.fresh(lab.small, seed).state_dict().items()} for seed in (0, 1)]
    ensure(shapes[0] == shapes[1], "two fresh models have weights of other names or shapes")


def _gradients(lab: Lab) -> None:
    model = lab.fresh(lab.small)
    model.begin(lab.small, lab.seed)
    prepared, optimiser = model.prepare(replace(lab.small)), make_optimiser(model, lab.config(_STEPS, select=False))
    dead = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    for epoch in range(_STEPS):
        optimiser.zero_grad(set_to_none=True)
        model.training_loss(prepared, lab.seed, epoch)["loss"].backward()
        dead -= {name for name, p in model.named_parameters() if p.grad is not None and bool((p.grad != 0).any())}
        optimiser.step()
        if not dead:
            return
    ensure(not dead, f"no gradient reaches {', '.join(sorted(dead))} in {_STEPS} epochs")


def _groups(lab: Lab) -> None:
    model = lab.fresh(lab.small)
    given = [id(parameter) for group in model.parameter_groups(0.1) for parameter in group["params"]]
    ensure(len(given) == len(set(given)), "a parameter is in two groups")
    missing = [name for name, p in model.named_parameters() if p.requires_grad and id(p) not in given]
    ensure(not missing, f"not in any group: {', '.join(missing)}")


def _finite(lab: Lab) -> None:
    bad = [name for name, value in weights(lab.learned).items() if not bool(torch.isfinite(value).all())]
    ensure(not bad, f"after training NaN or infinite: {', '.join(bad)}")


CHECKS = (
    Check("trains", _trains),
    Check("loss_has_finite_named_parts", _loss, ("trains",)),
    Check("weights_have_stable_names", _names, ("trains",)),
    Check("every_parameter_gets_a_gradient", _gradients, ("trains",)),
    Check("parameter_groups_cover_everything_once", _groups, ("trains",)),
    Check("weights_stay_finite", _finite, ("trains",)),
)
