"""Exact prediction of SpaM layer by layer: no tensor of (K x nodes x width) or (edges x width) is ever made.

Each layer goes over blocks, ranges of nodes with all they hear, and a few of the K samples at a time. Signs are drawn again
for each block from the identities of its edges, so the result is that of `SpaM.predict` on the whole graph, up to the
rounding of sums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from spam_gnn.coding.unrolled import UnrolledCoder
from spam_gnn.configured import directions_of
from spam_gnn.features import FeatureMatrix
from spam_gnn.graph import Graph
from spam_gnn.inference.beliefs import sign_distribution
from spam_gnn.inference.pieces import Blocks, Rooms, features_of, node_ranges, scratch
from spam_gnn.inference.signs import SignSource
from spam_gnn.kernels import chosen, compile_ahead
from spam_gnn.kernels.memory import give_back
from spam_gnn.kernels.signed import heard_sums, squares_of
from spam_gnn.layer import S2Conv
from spam_gnn.loading.cut import Whole
from spam_gnn.model import SpaM
from spam_gnn.network import POSITION, SignedNetwork, told_beliefs, told_labels
from spam_gnn.norms import ColumnNorm, Moments
from spam_gnn.posterior import SignDistribution
from spam_gnn.prediction import Prediction

_STATE = 1 << 24  # numbers in the states of all nodes that are kept at a time; decides how many samples go together


@dataclass(frozen=True, eq=False)
class Judgement:
    """A prediction for every node, and the posterior over the signs of every stored edge, if the model has one."""

    prediction: Prediction
    distribution: SignDistribution | None


@torch.no_grad()
def predict_layerwise(model: SpaM, graph: Graph, seed: int, samples: int | None = None) -> Judgement:
    """`SpaM.predict` and `SpaM.edge_distribution` of a graph as the user gave it, in memory that does not grow with K.

    Args:
        graph: not prepared; features and edges may live on disk.
        seed, samples: as for `SpaM.predict`.
    """
    with torch.enable_grad():  # it tries a backward pass
        compile_ahead(model.config.kernel, str(model.network.classify_bias.device))
    give_back()  # what training kept for its next batch: a graph that is taken in pieces leaves no room to spare
    whole = Whole.of(model.structure(graph), model.node_columns(graph))
    distribution = sign_distribution(model, whole)
    source = SignSource(model.config, whole.graph, distribution, seed, samples or model.config.predict_samples)
    rooms = Rooms()
    readings = [_reading(model, model.network, whole, source, rooms)]
    for network in model.trusting:
        assert isinstance(network, SignedNetwork)
        readings.append(_reading(model, network, whole, SignSource(network.config, whole.graph, None, seed, 1), rooms))
    return Judgement(model.mixed(readings), distribution)


def _reading(model: SpaM, network: SignedNetwork, whole: Whole, signs: SignSource, rooms: Rooms) -> Prediction:
    going = _Pass(model, network, whole, signs, rooms)
    return going.prediction() if network.layers else going.without_messages()


class _Pass:
    """A network of the model over one graph and its signs."""

    def __init__(self, model: SpaM, network: SignedNetwork, whole: Whole, signs: SignSource, rooms: Rooms) -> None:
        self.model, self.network, self.graph, self.signs, self.rooms = model, network, whole.graph, signs, rooms
        self.position = whole.columns.get(POSITION)
        self.blocks = Blocks(whole.graph, directions_of(network.config))
        kind = chosen(network.config.kernel, network.classify_bias.device)
        self.compiled = network.config.coder in ("uniform", "unrolled") and kind == "fused"

    def prediction(self) -> Prediction:
        c, n = self.network.config, self.graph.num_nodes
        first, hidden = self._entering()
        log_prob = scratch(self.signs.count, n, self.model.num_classes)
        widest = max(conv.projections.shape[1] for conv in self.network.layers)
        size = max(1, min(_STATE // max(1, n * (widest + 2 * c.hidden)), self.signs.count))
        for begin in range(0, self.signs.count, size):
            samples = range(begin, min(begin + size, self.signs.count))
            self._samples(first, hidden, samples, log_prob[begin : samples.stop])
        weight = torch.full((self.signs.count,), 1.0 / self.signs.count).log()
        return Prediction(log_prob, weight)

    def without_messages(self) -> Prediction:
        """Of a network without layers: what it says of a node needs no other."""
        log_prob = scratch(1, self.graph.num_nodes, self.model.num_classes)
        for rows, _, hidden in self._encoded():
            assert hidden is not None
            log_prob[:, rows] = self.network.classify(hidden, 1)
        return Prediction.uniform(log_prob)

    def _encoded(self) -> Iterator[tuple[slice, FeatureMatrix, Tensor | None]]:
        """Chunks of nodes, their features, and H0 (1, chunk, hidden), or None where the first layer reads the features."""
        for rows in node_ranges(self.graph.num_nodes):
            features = self.model.scaler.scaled(features_of(self.graph, rows))
            position = None if self.position is None else self.position[rows]
            yield rows, features, self.network.encode(features, self._told(rows), None, position)

    def _told(self, rows: slice) -> Tensor | None:
        """What the network is told of a chunk of nodes: the posterior's beliefs, or where it has no posterior labels."""
        distribution = self.signs.distribution
        if self.network.encode_belief is None:
            return None
        if distribution is None:
            return told_labels(self.graph.y[rows], self.graph.train_mask[rows], self.model.num_classes)
        return told_beliefs(SignDistribution(distribution.log_prob[:0], tuple(x[rows] for x in distribution.node_logits)))

    def _entering(self) -> tuple[_Entering, Tensor | None]:
        """What enters the first layer, shared by all samples, and H0 (1, n, hidden) where it is kept."""
        n, conv, c = self.graph.num_nodes, self.network.layers[0], self.network.config
        kept = self.rooms.get("encoded", 1, n, c.hidden) if c.encoder and (c.residual or conv.to_self is not None) else None
        out = _Entering.room(self.rooms, "first", conv, 1, n, kept)
        for rows, features, hidden in self._encoded():
            out.put(conv, rows, features if hidden is None else hidden)
            if kept is not None and hidden is not None:
                kept[:, rows] = hidden
        return out, kept

    def _samples(self, entering: _Entering, hidden: Tensor | None, samples: range, result: Tensor) -> None:
        """Fills result (len(samples), n, C) with log probabilities."""
        network, n = self.network, self.graph.num_nodes
        for place, (conv, norm) in enumerate(zip(network.layers, network.norms, strict=True)):
            if place > 0 and hidden is not None:
                entering = _Entering.room(self.rooms, "later", conv, len(samples), n, hidden)
                for rows in node_ranges(n):
                    entering.put(conv, rows, hidden[:, rows])
            last = place + 1 == len(network.layers)
            fresh = None if last else self.rooms.get(f"state {place % 2}", len(samples), n, network.config.hidden)
            squares = torch.stack([squares_of(v) for v in entering.values]) if self.compiled else None
            heard = partial(self._layer, conv, entering, squares, samples=samples)
            for rows, normed in self._normed(norm, heard, len(samples)):
                state = torch.relu(normed)
                if network.config.residual and hidden is not None:
                    state = state + hidden[:, rows]
                if fresh is not None:
                    fresh[:, rows] = state
                else:
                    result[:, rows] = network.classify(state, len(samples))
            hidden = fresh

    def _normed(self, norm: nn.Module, heard: Callable[[slice], Tensor], samples: int) -> Iterator[tuple[slice, Tensor]]:
        """What ranges of nodes heard, after the norm; one over all nodes looks at all of it first."""
        if not isinstance(norm, ColumnNorm):
            for rows in self.blocks.ranges():
                yield rows, norm(heard(rows))
            return
        kept, moments = self.rooms.get("heard", samples, self.graph.num_nodes, self.network.config.hidden), Moments()
        for rows in self.blocks.ranges():
            kept[:, rows] = heard(rows)
            moments.add(kept[:, rows])
        mean, var = moments.found(kept.dtype)
        for rows in node_ranges(self.graph.num_nodes):
            yield rows, norm.with_moments(kept[:, rows], mean, var)

    def _layer(self, conv: S2Conv, entering: _Entering, squares: Tensor | None, rows: slice, samples: range) -> Tensor:
        """One layer for a range of nodes: (len(samples), rows, hidden)."""
        if squares is not None:
            return self._compiled_layer(conv, entering, squares, rows, samples)
        block = self.blocks.block(rows)
        edges, neighbours = torch.cat(block.edges), []
        begin = 0
        for messages in block.neighbours:  # signs are drawn for all directions at once, each message knows its place
            edge = torch.arange(begin, begin + messages.count)
            neighbours.append(type(messages)(messages.num_nodes, messages.source, messages.target, edge))
            begin += messages.count
        signs = self.signs.of(edges, samples)
        values = entering.values.index_select(1, block.nodes)
        target = values if entering.target is None else entering.target.index_select(1, block.nodes)
        return conv.pass_parts(values, target, entering.self_part(conv, rows), tuple(neighbours), signs, block.rows).hidden

    def _compiled_layer(self, conv: S2Conv, entering: _Entering, squares: Tensor, rows: slice, samples: range) -> Tensor:
        """The same where the compiled loops look up who is heard: nothing is gathered, and only listeners get sums."""
        values, target = entering.values, (entering.values if entering.target is None else entering.target)[:, rows]
        own = entering.self_part(conv, rows)
        out = conv.bias if own is None else own + conv.bias
        for way, (messages, edges) in enumerate(self.blocks.arrivals(rows)):
            coder, signs = conv.coders[way], self.signs.of(edges, samples)
            steps, penalty = (coder.steps, coder.penalty) if isinstance(coder, UnrolledCoder) else (0, conv.bias.new_zeros(()))
            sums = heard_sums(messages, target, values, squares, signs.positive, signs.negative, penalty, steps)
            out = out + conv._aggregate(sums, values[:, rows], conv.to_out[way])
        return out


@dataclass(frozen=True, eq=False)
class _Entering:
    """What a layer reads of all nodes, kept apart, so that a block gathers only what is heard: values (K or 1, n, d_val),
    targets where the coder looks at them, and what the self part is made of: hidden states, or where the first layer reads the
    features itself, the product."""

    values: Tensor
    target: Tensor | None
    own: Tensor | None
    hidden: Tensor | None

    @staticmethod
    def room(rooms: Rooms, name: str, conv: S2Conv, samples: int, n: int, hidden: Tensor | None) -> _Entering:
        shape = (samples, n, conv.to_value.shape[1])
        return _Entering(
            rooms.get(f"{name} values", *shape),
            None if conv.config.coder == "uniform" else rooms.get(f"{name} targets", *shape),
            None if conv.to_self is None or hidden is not None else rooms.get(f"{name} self", samples, n, conv.out_channels),
            hidden,
        )

    def put(self, conv: S2Conv, rows: slice, entering: Tensor | FeatureMatrix) -> None:
        for room, weight in ((self.values, conv.to_value), (self.target, conv.to_target), (self.own, conv.to_self)):
            if room is not None and weight is not None:
                room[:, rows] = entering @ weight if isinstance(entering, Tensor) else entering.project(weight)

    def self_part(self, conv: S2Conv, rows: slice) -> Tensor | None:
        """W_self h of a range of nodes, if the layer has one: made where it is needed, since a table of it would be written and
        read as often as one of what is heard."""
        if conv.to_self is None or self.hidden is None:
            return None if self.own is None else self.own[:, rows]
        return self.hidden[:, rows] @ conv.to_self
