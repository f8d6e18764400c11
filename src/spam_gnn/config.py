"""`SpaMConfig`: every setting of the model on one screen, and the named presets."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, get_args

from spam_gnn.choices import (
    Aggregate,
    ClassLoss,
    Directions,
    Estimator,
    GammaMode,
    KernelName,
    Norm,
    PositionMode,
    PosteriorKind,
    PriorKind,
    Scaling,
    SignMode,
    Verdict,
)
from spam_gnn.errors import BadInput, one_of
from spam_gnn.settings import check_numbers

_WORTH = 0.05  # weight of the agreement term from which a second pass of the trusting networks is worth its time


def unlabelled_share(labelled: int, others: int) -> float:
    """How much of the loss goes to what is guessed of nodes without a label: a tenth for every time that they outnumber the
    labelled ones, at most one. With as many labels as nodes without there is nothing to be learned from guesses
    (docs/trials.md)."""
    return min(max(0.1 * (others / max(labelled, 1) - 1.0), 0.0), 1.0)


@dataclass(frozen=True)
class SpaMConfig:
    """The model. Field names are the keys of `--set key=value` and the parameters of `SpaMClassifier`.

    The ablations of the paper are settings: no posterior (`posterior="none"`), hard sign (`signs="hard"`), no sparsity
    (`coder="uniform"`), no sign (`use_sign=False`).
    """

    # network
    hidden: int = 64
    layers: int = 2
    encoder: bool = True  # H0 = relu(X W); the paper starts from H0 = X
    scaling: Scaling = "auto"  # of features: counts by row or all together, other columns standardised (contract.FeatureScaler)
    dropout: float = 0.5
    norm: Norm = "none"  # layer norm makes the network surer than it is right (docs/trials.md)
    residual: bool = False  # H + layer(H)
    position: PositionMode = "auto"  # degrees and adjacency rows join the features: auto where nodes have many neighbours
    position_rank: int = 2048  # most numbers that a row of the adjacency is shortened to; fewer of many nodes (position_shape)
    position_dropout: float = 0.2
    position_power: float = 0.0  # of singular values in its columns; 0: what suits the training labels best (position.py)
    # layers of further networks, each of which takes every edge as observed (0: hears no messages); mixed in by shares found
    # on validation nodes
    trusted: tuple[int, ...] = (0, 2)
    # of each of these that hears messages, on graphs of fewer nodes than that: there the luck of a start moves it most
    copies: int = 2
    few_nodes: int = 500
    agreement_weight: float = 1.0  # of a trusting network's passes agreeing on unlabelled nodes; grows with their share
    # with fewer features none is dropped, and a deep trusting network without weight decay joins: what a node is lies around it
    few_features: int = 16
    deep_layers: int = 10
    deep_dropout: float = 0.2
    cells: int = 8  # parts, drawn anew each epoch, that it is trained on one after the other, at most (loading/cells.py)
    deep_told: bool = True  # it hears the labels of context nodes beside their features, and learns from the other labels
    # sparse signed layer
    coder: str = "uniform"  # exact, unrolled, amortised, uniform (why this one: docs/trials.md)
    coder_steps: int = 3
    penalty: float = 0.01
    aggregate: Aggregate = "normalised"
    self_term: bool = True  # W_self h_i, with which a node carries itself along (why no residual beside it: docs/trials.md)
    separate_signs: bool = True
    gamma: float = 0.2
    gamma_mode: GammaMode = "learned"
    kernel: KernelName = "auto"  # fused, csr, torch: same results, different speed
    directions: Directions = "undirected"  # of a directed graph: listen to in-, out-, or both kinds of neighbours
    # posterior and sampling
    posterior: PosteriorKind = "belief"
    posterior_hidden: int = 64
    posterior_dropout: float = 0.5
    belief_rounds: int = 2
    noise_quantile: float = 0.25
    verdict: Verdict = "beliefs"  # edges are judged by refined beliefs alone, or by `evidence` once more (posterior/belief.py)
    posterior_gradient: float = 0.1  # share of the class loss's gradient that reaches the posterior; 0 cuts it off
    belief_input: bool = True  # the posterior's class beliefs (context labels among them) join the features, if it has any
    context: float = 0.5  # share of training labels shown to the posterior each epoch; 1.0 shows all
    signs: SignMode = "sample"
    use_sign: bool = True
    per_pair: bool = True  # one draw for both directions of an undirected edge
    estimator: Estimator = "straight-through"
    temperature: float = 0.5  # of the gumbel estimator
    samples: int = 4  # K while training
    predict_samples: int = 16  # K at prediction
    # prior and observation channel
    prior: PriorKind = "labelled-pairs"
    prior_probabilities: tuple[float, float, float] = (1 / 3, 1 / 3, 1 / 3)
    noise_rate: float | None = 0.2
    learn_noise: bool = True
    edge_if_related: float = 0.9
    edge_if_unrelated: float = 0.1
    # objective
    class_loss: ClassLoss = "marginal"
    sparsity_weight: float = 0.01
    structure_weight: float = 0.1
    belief_weight: float = 1.0
    compatibility_weight: float = 0.3  # of the edges as evidence of which classes join; an edge counts as much as a label
    lesson_weight: float = 1.0  # of refined beliefs teaching the feature beliefs on unlabelled nodes; grows with their share

    def __post_init__(self) -> None:
        check_numbers(self)
        for name, kind in _CHOICES.items():
            one_of(getattr(self, name), get_args(kind), name)
        for name in ("hidden", "coder_steps", "posterior_hidden", "position_rank", "samples", "predict_samples",
                     "cells", "copies"):  # fmt: skip
            if getattr(self, name) < 1:
                raise BadInput(f"{name}: found {getattr(self, name)}; use 1 or more")
        fewest = 0 if self.posterior == "none" and self.encoder else 1  # something must be left to learn, and signs to be used
        if self.layers < fewest:
            raise BadInput(f"layers: found {self.layers}; use {fewest} or more")
        object.__setattr__(self, "trusted", tuple(self.trusted))  # a list, where it was read from a file
        if any(layers < 0 for layers in self.trusted) or len(set(self.trusted)) < len(self.trusted):
            raise BadInput(f"trusted: found {self.trusted}; give each network's layers (0: no messages), once each, or none")
        for name in ("dropout", "posterior_dropout", "position_dropout", "deep_dropout"):
            if not 0.0 <= getattr(self, name) < 1.0:
                raise BadInput(f"{name}: found {getattr(self, name)}; use a number from 0 up to, not including, 1")
        for name in ("context", "noise_quantile", "posterior_gradient"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise BadInput(f"{name}: found {getattr(self, name)}; use a number from 0 to 1")
        if self.temperature <= 0.0:
            raise BadInput(f"temperature: found {self.temperature}; use a number above 0")
        weights = tuple(f.name for f in fields(self) if f.name.endswith("_weight"))
        for name in (*weights, "gamma", "belief_rounds", "few_features", "few_nodes", "deep_layers", "position_power"):
            if getattr(self, name) < 0:
                raise BadInput(f"{name}: found {getattr(self, name)}; use 0 or more")

    @staticmethod
    def preset(name: str) -> SpaMConfig:
        """`default`, the strongest found, or `paper`, the text taken literally."""
        return PRESETS[one_of(name, tuple(PRESETS), "preset")]

    def has_deep(self, num_features: int) -> bool:
        """Whether a deep trusting network joins."""
        return self.posterior != "none" and any(self.trusted) and num_features < self.few_features and self.deep_layers > 0

    def further(self, num_features: int, num_nodes: int | None = None) -> list[SpaMConfig]:
        """Settings of each trusting network. Without a posterior the only network trusts every edge itself."""
        copies = self.copies if num_nodes is not None and num_nodes < self.few_nodes else 1
        wanted = () if self.posterior == "none" else self.trusted
        shallow = [self.trusting(layers) for layers in wanted for _ in range(copies if layers > 0 else 1)]
        if not self.has_deep(num_features):
            return shallow
        told = self.deep_told and 0.0 < self.context < 1.0  # some labels to hear, and some to learn from
        deep = self.trusting(self.deep_layers)
        return [*shallow, replace(deep, norm="columns", dropout=self.deep_dropout, belief_input=told)]

    def of_features(self, num_features: int, rate: float) -> float:
        """At which rate features are dropped by a part that drops its hidden units at `rate`: few features, not at all."""
        return 0.0 if num_features < self.few_features else rate

    def passes(self, labelled: int, others: int) -> int:
        """How often a trusting network goes over the graph in an epoch, at most: twice where agreeing on others than the
        labelled nodes weighs enough to be worth the time."""
        return 2 if self.agreement_weight * unlabelled_share(labelled, others) >= _WORTH else 1

    def trusting(self, layers: int) -> SpaMConfig:
        """The settings of a network that takes every edge as observed, if it has layers to hear of them: a residual one, since
        nothing is drawn away."""
        return replace(
            self, posterior="none", layers=layers, encoder=self.encoder or layers == 0, residual=True, coder="uniform",
            self_term=True, aggregate="normalised", gamma_mode="fixed", belief_input=False,
        )  # fmt: skip

    def with_settings(self, settings: dict[str, Any]) -> SpaMConfig:
        """A copy with some fields changed; an unknown key is refused with the nearest known one."""
        for key in settings:
            one_of(key, tuple(f.name for f in fields(self)), "setting")
        return replace(self, **settings)


_CHOICES = {
    "scaling": Scaling, "norm": Norm, "aggregate": Aggregate, "gamma_mode": GammaMode, "directions": Directions,
    "posterior": PosteriorKind, "signs": SignMode, "estimator": Estimator, "prior": PriorKind, "class_loss": ClassLoss,
    "kernel": KernelName, "position": PositionMode, "verdict": Verdict,
}  # fmt: skip

PRESETS: dict[str, SpaMConfig] = {
    "default": SpaMConfig(),
    "paper": SpaMConfig(
        trusted=(), agreement_weight=0.0, few_features=0,
        encoder=False, position="off", norm="layer", self_term=False, residual=False,
        aggregate="plain", coder="amortised", penalty=0.05, separate_signs=False, gamma=1.0, gamma_mode="fixed",
        directions="in", posterior="gcn", context=1.0, estimator="gumbel", samples=5, predict_samples=10, prior="uniform",
        noise_rate=None, learn_noise=False, belief_weight=0.0, compatibility_weight=0.0, lesson_weight=0.0,
        posterior_gradient=1.0, belief_input=False,
    ),
}  # fmt: skip
