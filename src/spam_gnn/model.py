"""`SpaM`: encode the signs, sample K graphs, pass sparse signed messages on each, predict."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor, nn

from spam_gnn.config import SpaMConfig
from spam_gnn.configured import directions_of, drawn_signs, make_posterior
from spam_gnn.contract import FeatureScaler, NodeModel, batch_stream
from spam_gnn.errors import BadInput
from spam_gnn.features import FeatureMatrix
from spam_gnn.forward_only import log_prob_on, serves
from spam_gnn.graph import Graph
from spam_gnn.initial import glorot
from spam_gnn.kernels import compile_ahead
from spam_gnn.kernels.conv import Activation
from spam_gnn.kernels.infer import Classes
from spam_gnn.layer import S2Config, S2Conv
from spam_gnn.objective import objective
from spam_gnn.outcome import Outcome
from spam_gnn.position import Position
from spam_gnn.position_shape import PositionShape
from spam_gnn.posterior import PriorConfig, SignDistribution, SignPrior, context_mask
from spam_gnn.prediction import Prediction
from spam_gnn.randomness import dropout, stream
from spam_gnn.sampling import SignedGraphs, sign_table
from spam_gnn.structure import Messages

POSITION = "position"  # under which a prepared graph holds its columns
# Numbers in a (K, n, hidden) tensor up to which samples go through the layers together. The compiled layers keep blocks in the
# cache themselves, so this only bounds what a prediction holds. Of the others, predictions keep nothing, so few samples at a
# time stay in the cache; while training, memory blocks of 32 MB and more are given back to the system and cleared by it each
# time, which takes longer than most of the work done in them.
_HELD, _CACHED, _REUSED = 1 << 23, 1 << 20, 7 << 20


class SpaM(NodeModel):
    """Sparse Bayesian message passing (paper Algorithm 1, forward part).

    Args:
        num_features: d.
        num_classes: C.
        config: all settings; `SpaMConfig.preset("paper")` for the literal model.
        seed: of the initial weights.
        position: the size of the training graph, where its nodes' place in it is to join the features (`PositionShape.wanted`).

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
    ) -> None:
        super().__init__()
        self.config = config or SpaMConfig()
        if num_classes < 2:
            raise BadInput(f"labels: found {num_classes} class; classification needs at least 2")
        c, generator = self.config, stream(seed, "weights")
        self.num_features, self.num_classes = num_features, num_classes
        self.posterior = make_posterior(c, num_features, num_classes, stream(seed, "posterior"))
        learn_noise = c.learn_noise and c.posterior != "none"
        self.prior = SignPrior(
            PriorConfig(c.prior, c.prior_probabilities, c.noise_rate, learn_noise, c.edge_if_related, c.edge_if_unrelated)
        )
        self.encode_weight = nn.Parameter(glorot(num_features, c.hidden, generator)) if c.encoder else None
        self.encode_bias = nn.Parameter(torch.zeros(c.hidden)) if c.encoder else None
        hears_beliefs = c.encoder and c.belief_input and c.posterior == "belief"
        self.encode_belief = nn.Parameter(glorot(num_classes, c.hidden, generator)) if hears_beliefs else None
        self.position = None
        if position is not None and c.encoder:
            self.position = Position(position, c.hidden, c.position_dropout, stream(seed, "position weights"))
        layer = S2Config(
            c.coder, c.coder_steps, c.penalty, c.aggregate, c.self_term, c.separate_signs, c.gamma, c.gamma_mode,
            directions_of(c), c.kernel,
        )  # fmt: skip
        sizes = [c.hidden if c.encoder else num_features] + [c.hidden] * c.layers
        self.convs = nn.ModuleList(
            [S2Conv(a, b, c.hidden, layer, generator) for a, b in itertools.pairwise(sizes)]
        )
        self.norms = nn.ModuleList([nn.LayerNorm(c.hidden) if c.norm == "layer" else nn.Identity() for _ in self.convs])
        self.classify_weight = nn.Parameter(glorot(c.hidden, num_classes, generator))
        self.classify_bias = nn.Parameter(torch.zeros(num_classes))
        self.scaler = FeatureScaler(num_features, c.scaling)

    def prepare(self, graph: Graph) -> Graph:
        """Features scaled, direction of edges kept or dropped as configured; compiled code is made ready."""
        compile_ahead(self.config.kernel, str(self.classify_bias.device))
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

    def structure(self, graph: Graph) -> Graph:
        """Direction of edges kept or dropped as configured."""
        return graph.as_undirected() if self.config.directions == "undirected" else graph

    def targets(self, graph: Graph, seed: int, epoch: int) -> Tensor:
        """Training nodes whose label the posterior is not shown this epoch; all of them if all are shown."""
        hidden = graph.train_mask & ~context_mask(graph, self.config.context, seed, epoch)
        return hidden if bool(hidden.any()) else graph.train_mask

    def training_loss(self, graph: Graph, seed: int, epoch: int) -> dict[str, Tensor]:
        """One epoch of the paper's Algorithm 1 up to the optimiser step."""
        context = context_mask(graph, self.config.context, seed, epoch)
        outcome = self(
            graph, context, seed=seed, samples=self.config.samples, purpose="train", epoch=epoch,
            generator=batch_stream(graph, seed, epoch),
        )  # fmt: skip
        return objective(self.config, self.posterior, self.prior, graph, outcome, context).parts()

    @torch.no_grad()
    def predict(self, graph: Graph, seed: int, samples: int | None = None) -> Prediction:
        """Averaged over K graphs drawn with all training labels as context."""
        c, convs = self.config, [conv for conv in self.convs if isinstance(conv, S2Conv)]
        if self.posterior is None or not serves(c) or not all(conv.fuses(self.classify_bias) for conv in convs):
            return self(graph, graph.train_mask, seed=seed, samples=samples).prediction
        (messages,), distribution = self.neighbours(graph), self.posterior(graph, graph.train_mask)
        signs = sign_table(distribution, graph, samples or c.predict_samples, seed, messages, per_pair=c.per_pair)
        hidden = self._encode(graph.features, distribution, None, graph.derived.get(POSITION))
        assert hidden is not None
        classes = Classes(self.classify_weight, self.classify_bias)
        return Prediction.uniform(log_prob_on(convs, classes, messages, hidden, signs))

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
        """Predict every node.

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
            signs = drawn_signs(self.config, graph, distribution, samples or self.config.predict_samples, seed, purpose, epoch)
        if not self.config.use_sign:
            signs = SignedGraphs(signs.presence, torch.zeros_like(signs.negative), signs.log_weight)
        log_prob, norms = self.propagate(graph, distribution, signs, generator)
        return Outcome(Prediction(log_prob, signs.log_weight), distribution, signs, norms)

    def neighbours(self, graph: Graph) -> tuple[Messages, ...]:
        """One set of messages per direction the layers listen to."""
        return tuple(graph.messages(way) for way in directions_of(self.config))

    def propagate(
        self,
        graph: Graph,
        distribution: SignDistribution | None,
        signs: SignedGraphs,
        generator: torch.Generator | None,
    ) -> tuple[Tensor, Tensor]:
        """log p (K, n, C) on K signed graphs, and the code norms (L, K)."""
        hidden = self._encode(graph.features, distribution, generator, graph.derived.get(POSITION))
        return self._pass_in_pieces(graph, hidden, signs, generator)

    def _first_projected(self, graph: Graph, hidden: Tensor | None, generator: torch.Generator | None) -> Tensor:
        """The first layer's projections (1, n, sum of widths), which all samples share; H0 = X is one (sparse) product."""
        conv = self.convs[0]
        assert isinstance(conv, S2Conv)
        if hidden is not None:
            return hidden @ conv.projections
        return graph.features.project(conv.projections, self.config.dropout, generator).unsqueeze(0)

    def _pass_in_pieces(
        self, graph: Graph, hidden: Tensor | None, signs: SignedGraphs, generator: torch.Generator | None
    ) -> tuple[Tensor, Tensor]:
        """`_pass` on as many samples at a time as memory likes: what they share is done once, and no result depends on it.

        While training, all pieces go through a layer before the next, which is the order in which dropout is drawn.
        """
        each, trains = max(graph.num_nodes * self.config.hidden, 1), torch.is_grad_enabled()
        if hidden is not None and all(conv.fuses(hidden) for conv in self.convs if isinstance(conv, S2Conv)):
            pieces = [signs] if trains else signs.split(max(1, _HELD // each))
            done = [self._pass_fused(graph, hidden, part, generator) for part in pieces]
        else:
            projected = self._first_projected(graph, hidden, generator)
            pieces = signs.split(max(1, (_REUSED if trains else _CACHED) // each))
            turns = [pieces] if trains else [[part] for part in pieces]
            done = [self._pass(graph, hidden, projected, parts, generator) for parts in turns]
        log_prob, norms = zip(*done, strict=True)
        return torch.cat(log_prob), torch.cat(norms, 1)

    def _pass_fused(
        self, graph: Graph, hidden: Tensor, signs: SignedGraphs, generator: torch.Generator | None
    ) -> tuple[Tensor, Tensor]:
        """The stacked S2 layers in the compiled loops: log p (K, n, C) and the code norms (L, K)."""
        (messages,), norms = self.neighbours(graph), []
        activation = Activation(self.config.dropout, generator)
        for conv, norm in zip(self.convs, self.norms, strict=True):
            assert isinstance(conv, S2Conv)
            plain = isinstance(norm, nn.Identity)
            out = conv.pass_fused(hidden, messages, signs, activation if plain else None)
            norms.append(out.code_norm)
            new = out.hidden if plain else dropout(torch.relu(norm(out.hidden)), self.config.dropout, generator)
            hidden = new + hidden if self.config.residual else new
        return self._classify(hidden, signs.count), torch.stack(norms)

    def _classify(self, state: Tensor, samples: int) -> Tensor:
        """(K, n, hidden) -> log p (K, n, C)."""
        return torch.log_softmax(state @ self.classify_weight + self.classify_bias, -1).expand(samples, -1, -1)

    def _pass(
        self, graph: Graph, hidden: Tensor | None, projected: Tensor, pieces: list[SignedGraphs],
        generator: torch.Generator | None,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """The stacked S2 layers: log p (K, n, C) and the code norms (L, K). Samples share all work before Z enters."""
        neighbours, norms = self.neighbours(graph), []
        entering, states = [projected] * len(pieces), [hidden] * len(pieces)
        for place, (conv, norm) in enumerate(zip(self.convs, self.norms, strict=True)):
            assert isinstance(conv, S2Conv)
            if place > 0:
                entering = [state @ conv.projections for state in states if state is not None]
            outs = [conv.pass_projected(x, neighbours, signs) for x, signs in zip(entering, pieces, strict=True)]
            norms.append(torch.cat([out.code_norm for out in outs]))
            fresh = [dropout(torch.relu(norm(out.hidden)), self.config.dropout, generator) for out in outs]
            if self.config.residual:
                fresh = [new if old is None else new + old for new, old in zip(fresh, states, strict=True)]
            states = fresh
        log_prob = [self._classify(s, signs.count) for s, signs in zip(states, pieces, strict=True) if s is not None]
        return torch.cat(log_prob), torch.stack(norms)

    def _encode(
        self,
        features: FeatureMatrix,
        distribution: SignDistribution | None,
        generator: torch.Generator | None,
        position: Tensor | None = None,
    ) -> Tensor | None:
        """(1, n, hidden), or None where the first layer reads the features itself (H0 = X).

        Beliefs join without a gradient: they have a loss of their own, and the class loss would make them fit the
        training nodes instead of the labels they stand for.
        """
        if self.encode_weight is None or self.encode_bias is None:
            return None
        rate = self.config.dropout
        hidden = features.project(self.encode_weight, rate, generator) + self.encode_bias
        if self.encode_belief is not None and distribution is not None:
            hidden = hidden + torch.softmax(distribution.node_logits[-1].detach(), -1) @ self.encode_belief
        if self.position is not None:
            assert position is not None, "the graph was not prepared by this model"
            hidden = hidden + self.position(position, generator)
        hidden = torch.relu(hidden)
        return dropout(hidden, rate, generator).unsqueeze(0)

    def first_projections(self, graph: Graph, distribution: SignDistribution | None) -> tuple[Tensor, Tensor]:
        """Targets and values (1, n, d_val) of the first layer, the same for every sample; used by explanations."""
        conv = self.convs[0]
        assert isinstance(conv, S2Conv)
        hidden = self._encode(graph.features, distribution, None, graph.derived.get(POSITION))
        if hidden is not None:
            return hidden @ conv.to_target, hidden @ conv.to_value
        return tuple(graph.features.project(w).unsqueeze(0) for w in (conv.to_target, conv.to_value))  # pyright: ignore
