"""`SignedNetwork`: encoder, stacked sparse signed layers, classifier: log p(y | X, Z) on signed graphs that are given to it."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor, nn

from spam_gnn.config import SpaMConfig
from spam_gnn.configured import directions_of
from spam_gnn.features import FeatureMatrix
from spam_gnn.forward_only import log_prob_on
from spam_gnn.graph import Graph
from spam_gnn.initial import glorot
from spam_gnn.kernels.activation import dropped, relu_dropout
from spam_gnn.kernels.conv import Activation
from spam_gnn.kernels.infer import Classes
from spam_gnn.layer import S2Config, S2Conv
from spam_gnn.norms import make_norm
from spam_gnn.posterior import SignDistribution
from spam_gnn.randomness import dropout
from spam_gnn.sampling import SignedGraphs
from spam_gnn.structure import Messages

POSITION = "position"  # under which a prepared graph holds its columns
# Numbers in a (K, n, hidden) tensor up to which samples go through the layers together. The compiled layers keep blocks in the
# cache themselves, so this only bounds what a prediction holds. Of the others, predictions keep nothing, so few samples at a
# time stay in the cache; while training, memory blocks of 32 MB and more are given back to the system and cleared by it each
# time, which takes longer than most of the work done in them.
_HELD, _CACHED, _REUSED = 1 << 23, 1 << 20, 7 << 20


def told_beliefs(distribution: SignDistribution | None) -> Tensor | None:
    """(n, C): the class beliefs of a posterior that has any, without a gradient: they have a loss of their own, and the class
    loss would make them fit the training nodes instead of the labels they stand for."""
    if distribution is None or not distribution.node_logits:
        return None
    return torch.softmax(distribution.node_logits[-1].detach().t(), 0).t()  # of few classes, ten times as fast as along rows


def told_labels(y: Tensor, context: Tensor, classes: int) -> Tensor:
    """(n, C): one at the label of each context node, zeros elsewhere."""
    rows = torch.nonzero(context).reshape(-1)
    told = torch.zeros(len(y), classes, device=y.device)
    told[rows, y[rows]] = 1.0
    return told


class SignedNetwork(nn.Module):
    """H0 = relu(X W + b [+ beliefs W_b] [+ position W_p]), L layers `S2Conv`, and a linear classifier.

    Args:
        num_features: d.
        num_classes: C.
        config: settings; those of the posterior are not read.
        generator: of the initial weights.
        position: columns that say where a node stands, 0 for none.
        hears_beliefs: whether the posterior's class beliefs join the features.
    """

    def __init__(
        self,
        num_features: int,
        num_classes: int,
        config: SpaMConfig,
        generator: torch.Generator,
        *,
        position: int = 0,
        hears_beliefs: bool = False,
    ) -> None:
        super().__init__()
        self.config = c = config
        self.input_dropout = c.of_features(num_features, c.dropout)
        self.encode_weight = nn.Parameter(glorot(num_features, c.hidden, generator)) if c.encoder else None
        self.encode_bias = nn.Parameter(torch.zeros(c.hidden)) if c.encoder else None
        beliefs = c.encoder and hears_beliefs
        self.encode_belief = nn.Parameter(glorot(num_classes, c.hidden, generator)) if beliefs else None
        placed = c.encoder and position > 0
        self.encode_position = nn.Parameter(glorot(position, c.hidden, generator)) if placed else None
        layer = S2Config(
            c.coder, c.coder_steps, c.penalty, c.aggregate, c.self_term, c.separate_signs, c.gamma, c.gamma_mode,
            directions_of(c), c.kernel,
        )  # fmt: skip
        sizes = [c.hidden if c.encoder else num_features] + [c.hidden] * c.layers
        self.convs = nn.ModuleList([S2Conv(a, b, c.hidden, layer, generator) for a, b in itertools.pairwise(sizes)])
        self.norms = nn.ModuleList([make_norm(c.norm, c.hidden) for _ in self.convs])
        self.classify_weight = nn.Parameter(glorot(c.hidden, num_classes, generator))
        self.classify_bias = nn.Parameter(torch.zeros(num_classes))

    @property
    def layers(self) -> list[S2Conv]:
        """The sparse signed layers, in order."""
        return [conv for conv in self.convs if isinstance(conv, S2Conv)]

    def neighbours(self, graph: Graph) -> tuple[Messages, ...]:
        """One set of messages per direction the layers listen to."""
        return tuple(graph.messages(way) for way in directions_of(self.config))

    def forward(
        self, graph: Graph, told: Tensor | None, signs: SignedGraphs, generator: torch.Generator | None
    ) -> tuple[Tensor, Tensor]:
        """log p (K, n, C) on K signed graphs, and the code norms (L, K).

        Args:
            graph: prepared.
            told: (n, C) what each node is said to be, where the network hears of it (`told_beliefs`, `told_labels`).
            generator: of dropout masks while training; None at prediction.
        """
        hidden = self.encode(graph.features, told, generator, graph.derived.get(POSITION))
        if hidden is not None and not self.layers:  # no message is heard, and no code has a norm
            return self.classify(hidden, signs.count), hidden.new_zeros(1, signs.count)
        return self._pass_in_pieces(graph, hidden, signs, generator)

    def on_drawn(self, graph: Graph, told: Tensor | None, signs: Tensor) -> Tensor:
        """The same without a gradient for a table of drawn signs (m, K), where `forward_only.serves` the configuration."""
        (messages,) = self.neighbours(graph)
        hidden = self.encode(graph.features, told, None, graph.derived.get(POSITION))
        assert hidden is not None
        return log_prob_on(self.layers, Classes(self.classify_weight, self.classify_bias), messages, hidden, signs)

    def encode(
        self,
        features: FeatureMatrix,
        told: Tensor | None,
        generator: torch.Generator | None,
        position: Tensor | None = None,
    ) -> Tensor | None:
        """(1, n, hidden), or None where the first layer reads the features itself (H0 = X).

        Beliefs join without a gradient: they have a loss of their own, and the class loss would make them fit the
        training nodes instead of the labels they stand for.
        """
        if self.encode_weight is None or self.encode_bias is None:
            return None
        hidden = features.project(self.encode_weight, self.input_dropout, generator, self.encode_bias)
        if self.encode_belief is not None and told is not None:  # added in place: an (n, hidden) less each time
            hidden = hidden.addmm_(told, self.encode_belief)
        if self.encode_position is not None:
            assert position is not None, "the graph was not prepared by this model"
            hidden = hidden.addmm_(dropped(position, self.config.position_dropout, generator), self.encode_position)
        return relu_dropout(hidden, self.config.dropout, generator).unsqueeze(0)

    def classify(self, state: Tensor, samples: int) -> Tensor:
        """(K or 1, n, hidden) -> log p (K, n, C)."""
        weight = self.classify_weight.t().contiguous()  # few classes: so the products of its gradient are five times as fast
        return torch.log_softmax(nn.functional.linear(state, weight, self.classify_bias), -1).expand(samples, -1, -1)

    def first_projections(self, graph: Graph, told: Tensor | None) -> tuple[Tensor, Tensor]:
        """Targets and values (1, n, d_val) of the first layer, the same for every sample; used by explanations."""
        conv, hidden = self.layers[0], self.encode(graph.features, told, None, graph.derived.get(POSITION))
        if hidden is not None:
            return hidden @ conv.to_target, hidden @ conv.to_value
        return tuple(graph.features.project(w).unsqueeze(0) for w in (conv.to_target, conv.to_value))  # pyright: ignore

    def _pass_in_pieces(
        self, graph: Graph, hidden: Tensor | None, signs: SignedGraphs, generator: torch.Generator | None
    ) -> tuple[Tensor, Tensor]:
        """`_pass` on as many samples at a time as memory likes: what they share is done once, and no result depends on it.

        While training, all pieces go through a layer before the next, which is the order in which dropout is drawn.
        """
        each, trains = max(graph.num_nodes * self.config.hidden, 1), torch.is_grad_enabled()
        if hidden is not None and all(conv.fuses(hidden) for conv in self.layers):
            pieces = [signs] if trains else signs.split(max(1, _HELD // each))
            done = [self._pass_fused(graph, hidden, part, generator) for part in pieces]
        else:
            projected = self._first_projected(graph, hidden, generator)
            pieces = signs.split(max(1, (_REUSED if trains else _CACHED) // each))
            turns = [pieces] if trains else [[part] for part in pieces]
            done = [self._pass(graph, hidden, projected, parts, generator) for parts in turns]
        log_prob, norms = zip(*done, strict=True)
        return torch.cat(log_prob), torch.cat(norms, 1)

    def _first_projected(self, graph: Graph, hidden: Tensor | None, generator: torch.Generator | None) -> Tensor:
        """The first layer's projections (1, n, sum of widths), which all samples share; H0 = X is one (sparse) product."""
        conv = self.layers[0]
        if hidden is not None:
            return hidden @ conv.projections
        return graph.features.project(conv.projections, self.input_dropout, generator).unsqueeze(0)

    def _pass_fused(
        self, graph: Graph, hidden: Tensor, signs: SignedGraphs, generator: torch.Generator | None
    ) -> tuple[Tensor, Tensor]:
        """The stacked S2 layers in the compiled loops: log p (K, n, C) and the code norms (L, K)."""
        (messages,), norms = self.neighbours(graph), []
        activation = Activation(self.config.dropout, generator)
        for conv, norm in zip(self.layers, self.norms, strict=True):
            plain = isinstance(norm, nn.Identity)
            out = conv.pass_fused(hidden, messages, signs, activation if plain else None)
            norms.append(out.code_norm)
            new = out.hidden if plain else dropout(torch.relu(norm(out.hidden)), self.config.dropout, generator)
            hidden = new + hidden if self.config.residual else new
        return self.classify(hidden, signs.count), torch.stack(norms)

    def _pass(
        self, graph: Graph, hidden: Tensor | None, projected: Tensor, pieces: list[SignedGraphs],
        generator: torch.Generator | None,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """The stacked S2 layers: log p (K, n, C) and the code norms (L, K). Samples share all work before Z enters."""
        neighbours, norms = self.neighbours(graph), []
        entering, states = [projected] * len(pieces), [hidden] * len(pieces)
        for place, (conv, norm) in enumerate(zip(self.layers, self.norms, strict=True)):
            if place > 0:
                entering = [state @ conv.projections for state in states if state is not None]
            outs = [conv.pass_projected(x, neighbours, signs) for x, signs in zip(entering, pieces, strict=True)]
            norms.append(torch.cat([out.code_norm for out in outs]))
            fresh = [dropout(torch.relu(norm(out.hidden)), self.config.dropout, generator) for out in outs]
            if self.config.residual:
                fresh = [new if old is None else new + old for new, old in zip(fresh, states, strict=True)]
            states = fresh
        log_prob = [self.classify(s, signs.count) for s, signs in zip(states, pieces, strict=True) if s is not None]
        return torch.cat(log_prob), torch.stack(norms)
