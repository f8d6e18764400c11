"""`SpaM`: encode the signs, sample K graphs, pass sparse signed messages on each, predict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from spam_gnn.config import SpaMConfig
from spam_gnn.configured import drawn_signs, make_posterior
from spam_gnn.contract import FeatureScaler, NodeModel, batch_stream
from spam_gnn.errors import BadInput
from spam_gnn.forward_only import serves
from spam_gnn.graph import Graph
from spam_gnn.kernels import compile_ahead
from spam_gnn.network import POSITION, SignedNetwork, told_beliefs, told_labels
from spam_gnn.objective import labelled_and_others, objective
from spam_gnn.outcome import Outcome
from spam_gnn.position import Position
from spam_gnn.position_shape import PositionShape
from spam_gnn.posterior import PriorConfig, SignDistribution, SignPrior, context_mask
from spam_gnn.prediction import Prediction
from spam_gnn.randomness import stream
from spam_gnn.readings import NO_MESSAGES, Shares
from spam_gnn.sampling import SignedGraphs, observed_signs, sign_table

_DEEP_RATE = 2.0  # steps of a deep network, beside those of the others
_LABELS_OF_CELL = 512  # training labels for each part of a graph that a deep network is trained on


def _names(networks: Sequence[SpaMConfig], *, deep: bool) -> Iterator[str]:
    """Of trusting networks, of which the last may be a deep one; what is there again from another start is numbered."""
    seen: Counter[str] = Counter()
    for place, network in enumerate(networks):
        kind = "deep" if deep and place == len(networks) - 1 else "trusted"
        name = f"{kind} ({network.layers} layer{'s' if network.layers > 1 else ''})" if network.layers else NO_MESSAGES
        seen[name] += 1
        yield name if seen[name] == 1 else f"{name}, start {seen[name]}"


class SpaM(NodeModel):
    """Sparse Bayesian message passing (paper Algorithm 1, forward part), beside other readings of the same graph.

    The *judging* network passes messages on signed graphs drawn from the posterior. *Trusting* networks (`trusted`) take every
    edge as it was observed; one of no layers reads each node by itself. `Shares` says how far each is believed. Without further
    networks this is the paper's model.

    Args:
        num_features: d.
        num_classes: C.
        config: all settings; `SpaMConfig.preset("paper")` for the literal model.
        seed: of the initial weights.
        position: the size of the training graph, where its nodes' place in it is to join the features (`PositionShape.wanted`).
        num_nodes: of the training graph, where a small one is to have `copies` of trusting networks; unknown, there are none.

    Example:
        >>> from spam_gnn.data.synthetic import csbm
        >>> graph = csbm(nodes=60, seed=0)
        >>> model = SpaM(graph.num_features, graph.num_classes)
        >>> model(model.prepare(graph), graph.train_mask, seed=0).prediction.probability.shape
        torch.Size([60, 3])
    """

    takes_batches = True

    def __init__(
        self,
        num_features: int,
        num_classes: int,
        config: SpaMConfig | None = None,
        seed: int = 0,
        position: PositionShape | None = None,
        num_nodes: int | None = None,
    ) -> None:
        super().__init__()
        self.config = c = config or SpaMConfig()
        if num_classes < 2:
            raise BadInput(f"labels: found {num_classes} class; classification needs at least 2")
        self.num_features, self.num_classes = num_features, num_classes
        self.posterior = make_posterior(c, num_features, num_classes, stream(seed, "posterior"))
        learn_noise = c.learn_noise and c.posterior != "none"
        self.prior = SignPrior(
            PriorConfig(c.prior, c.prior_probabilities, c.noise_rate, learn_noise, c.edge_if_related, c.edge_if_unrelated)
        )
        self.position = None if position is None or not c.encoder else Position(position, c.position_power)
        width = 0 if self.position is None else self.position.shape.width
        hears = c.posterior == "belief" and c.belief_input
        self.network = SignedNetwork(
            num_features, num_classes, c, stream(seed, "weights"), position=width, hears_beliefs=hears
        )
        further = c.further(num_features, num_nodes)
        self.trusting = nn.ModuleList([
            SignedNetwork(
                num_features, num_classes, settings, stream(seed, "trusting", place),
                position=width, hears_beliefs=settings.belief_input,
            )
            for place, settings in enumerate(further)
        ])  # fmt: skip
        self.shares = Shares(("judged", *_names(further, deep=c.has_deep(num_features))))
        # position says how large features are, and rows need not; a preset without it (`paper`) leaves labels unasked
        self.scaler = FeatureScaler(num_features, c.scaling, ask=self.position is None and c.position == "auto")

    def prepare(self, graph: Graph) -> Graph:
        """Features scaled, direction of edges kept or dropped as configured; compiled code is made ready."""
        compile_ahead(self.config.kernel, str(self.network.classify_bias.device))
        prepared = self.scaler(self.structure(graph))
        if self.position is not None:  # of the graph as it came, with its directions; a batch has brought its own
            columns = graph.derived[POSITION] if graph.part is not None else self.position.columns(graph)
            prepared = prepared.with_features(prepared.features)  # a copy: what is derived belongs to this model
            prepared.derived[POSITION] = columns
        return prepared

    def node_columns(self, graph: Graph) -> dict[str, Tensor]:
        """The nodes' place in the whole graph, where the encoder hears of it."""
        return {} if self.position is None else {POSITION: self.position.columns(graph)}

    def begin(self, graph: Graph, seed: int) -> None:
        """Scaling and position are learned once, from the training graph."""
        super().begin(graph, seed)
        if self.position is not None:
            self.position.learn(graph, seed)

    def parameter_groups(self, weight_decay: float) -> list[dict[str, Any]]:
        """As for every model, but the weights of a deep network do not decay: few features leave little to be guarded against,
        and what decays in every layer does not reach far. Its steps are longer, since depth takes longer to be trained than an
        equal budget lasts (docs/trials.md)."""
        groups = super().parameter_groups(weight_decay)
        if not self.config.has_deep(self.num_features):
            return groups
        deep = {id(parameter) for parameter in self.trusting[-1].parameters()}
        others = [{**group, "params": [p for p in group["params"] if id(p) not in deep]} for group in groups]
        spared = [p for group in groups for p in group["params"] if id(p) in deep]
        return [*others, {"params": spared, "weight_decay": 0.0, "rate_factor": _DEEP_RATE}]

    def training_parts(self, graph: Graph) -> int:
        """Several where a deep network joins and labels are plenty: it is not done after as many steps as there are epochs."""
        if not self.config.has_deep(self.num_features):
            return 1
        return min(max(int(graph.train_mask.sum()) // _LABELS_OF_CELL, 1), self.config.cells)

    def structure(self, graph: Graph) -> Graph:
        """Direction of edges kept or dropped as configured."""
        return graph.as_undirected() if self.config.directions == "undirected" else graph

    def targets(self, graph: Graph, seed: int, epoch: int) -> Tensor:
        """Training nodes whose label the posterior is not shown this epoch; all of them if all are shown."""
        hidden = graph.train_mask & ~context_mask(graph, self.config.context, seed, epoch)
        return hidden if bool(hidden.any()) else graph.train_mask

    def training_loss(self, graph: Graph, seed: int, epoch: int) -> dict[str, Tensor]:
        """One epoch of the paper's Algorithm 1 up to the optimiser step, and that of the other networks."""
        context = context_mask(graph, self.config.context, seed, epoch)
        generator = batch_stream(graph, seed, epoch)
        outcome = self(
            graph, context, seed=seed, samples=self.config.samples, purpose="train", epoch=epoch, generator=generator
        )
        heeded = self.shares.get_buffer("heeded").tolist()
        trusted = self._passes(graph, context, generator, heeded)
        return objective(self.config, self.posterior, self.prior, graph, outcome, context, trusted, heeded, self.told).parts()

    @property
    def told(self) -> tuple[bool, ...]:
        """Whether each trusting network is told the labels of context nodes."""
        return tuple(network.encode_belief is not None for network in self.trusting)

    def _passes(
        self, graph: Graph, context: Tensor, generator: torch.Generator, heeded: Sequence[float]
    ) -> list[list[Tensor]]:
        """(1, n, C) log p of each trusting network, as often as it goes over the graph: once where no guess of it is heeded."""
        observed, most = observed_signs(graph), self.config.passes(*labelled_and_others(graph))
        shown = context & (graph.counted & ~context).any()  # none where the loss is taken on the context itself
        return [
            [network(graph, labels, observed, generator)[0] for _ in range(most if heard > 0.0 else 1)]
            for network, labels, heard in zip(self.trusting, self._labels(graph, shown), heeded[1:], strict=True)
        ]

    def _labels(self, graph: Graph, shown: Tensor) -> list[Tensor | None]:
        """What each trusting network is told of every node: the labels that are shown, or nothing."""
        labels = told_labels(graph.y, shown, self.num_classes) if any(self.told) else None
        return [labels if told else None for told in self.told]

    def trusted(self, graph: Graph, signs: SignedGraphs, generator: torch.Generator | None) -> list[Tensor]:
        """(1, n, C) log p of each trusting network on the edges that `signs` has."""
        told = self._labels(graph, graph.train_mask)
        return [network(graph, labels, signs, generator)[0] for network, labels in zip(self.trusting, told, strict=True)]

    @torch.no_grad()
    def readings(self, graph: Graph, seed: int, samples: int | None = None) -> tuple[Prediction, ...]:
        """What each reading of the graph predicts, in the order of `shares.names`; all training labels are context."""
        distribution = None if self.posterior is None else self.posterior(graph, graph.train_mask)
        judged = self._judged(graph, distribution, seed, samples or self.config.predict_samples)
        trusted = self.trusted(graph, observed_signs(graph), None)
        return (judged, *(Prediction.uniform(log_prob) for log_prob in trusted))

    def chosen_by(self) -> dict[str, int]:
        """Each trusting network by its own predictions, all else by those of the judging network."""
        return {"": 0, **{f"trusting.{place}.": 1 + place for place in range(len(self.trusting))}}

    def weigh(self, likelihood: Sequence[Tensor], total: Callable[[Tensor], Tensor]) -> None:
        """Find the shares of the readings on validation nodes."""
        self.shares.weigh(likelihood, total)

    def validated(self, accuracy: Sequence[float], nodes: int) -> None:
        """Find how far the readings' guesses of unlabelled nodes are heeded."""
        self.shares.heed(accuracy, nodes)

    def believed(self) -> dict[str, float]:
        return dict(zip(self.shares.names, self.shares.get_buffer("share").tolist(), strict=True))

    def mixed(self, readings: Sequence[Prediction]) -> Prediction:
        return self.shares.mix(readings)

    def predict(self, graph: Graph, seed: int, samples: int | None = None) -> Prediction:
        """The mixture of all readings; that of the judging network is averaged over K graphs."""
        return self.mixed(self.readings(graph, seed, samples))

    def _judged(self, graph: Graph, distribution: SignDistribution | None, seed: int, samples: int) -> Prediction:
        """The paper's averaged prediction, in loops of their own where the configuration allows it."""
        c, network = self.config, self.network
        fuses = all(conv.fuses(network.classify_bias) for conv in network.layers)
        if distribution is not None and serves(c) and fuses:
            (messages,) = network.neighbours(graph)
            signs = sign_table(distribution, graph, samples, seed, messages, per_pair=c.per_pair)
            return Prediction.uniform(network.on_drawn(graph, told_beliefs(distribution), signs))
        signs = self._used(drawn_signs(c, graph, distribution, samples, seed, "predict", 0))
        return Prediction(network(graph, told_beliefs(distribution), signs, None)[0], signs.log_weight)

    def _used(self, signs: SignedGraphs) -> SignedGraphs:
        """The graphs as the layers see them: without the sign where it is not used, every present edge supports."""
        if self.config.use_sign:
            return signs
        return SignedGraphs(signs.presence, torch.zeros_like(signs.negative), signs.log_weight)

    def edge_distribution(self, graph: Graph) -> SignDistribution | None:
        """q(Z) of a prepared graph with all training labels as context, without gradient."""
        with torch.no_grad():
            return None if self.posterior is None else self.posterior(graph, graph.train_mask)

    def forward(
        self,
        graph: Graph,
        context: Tensor,
        *,
        seed: int,
        samples: int | None = None,
        purpose: str = "predict",
        epoch: int = 0,
        generator: torch.Generator | None = None,
        signs: SignedGraphs | None = None,
    ) -> Outcome:
        """The judging network's prediction of every node, and what it came from.

        Args:
            graph: as returned by :meth:`prepare`.
            context: (n,) bool, whose labels the posterior may read.
            seed, purpose, epoch: name the draws; the same names give the same graphs.
            samples: K; the configuration's number for prediction unless given.
            generator: of dropout masks while training; None at prediction.
            signs: signed graphs to use instead of drawing (enumeration, explanation).
        """
        distribution = None if self.posterior is None else self.posterior(graph, context, generator)
        if signs is None:
            count = samples or self.config.predict_samples
            signs = drawn_signs(self.config, graph, distribution, count, seed, purpose, epoch)
        signs = self._used(signs)
        log_prob, norms = self.network(graph, told_beliefs(distribution), signs, generator)
        return Outcome(Prediction(log_prob, signs.log_weight), distribution, signs, norms)
