"""`Plan`: what a run will need and what is there, before the first epoch; whole graph, batches, or an honest refusal.

The estimates are sums of terms in the sizes of the graph and of the model, of anonymous memory (mapped files cost none, their
pages are given back). `_PROCESS`, `_EPOCH` and `_PROBABILITY` were fitted together, by least squares of relative errors, to the
peaks of eighteen whole graphs (`python benchmarks/scaling.py memory`, and those that `limit` trained whole); then "message" and
"guess" were set from two graphs of 100 classes, `_RESULT` by hand to five peaks of batches, `_KEPT_OF_BATCH` to four more,
`_KEPT_BESIDE` to two with 100 and 300 classes. The term of `position` and what a prediction at once holds are reasoned from the
sizes of arrays.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from spam_gnn.config import SpaMConfig
from spam_gnn.data.facts import FolderFacts
from spam_gnn.errors import TooLarge
from spam_gnn.position_shape import PositionShape
from spam_gnn.resources import MemoryLimit
from spam_gnn.settings import TRAIN_LOOKED_AT, BatchConfig

if TYPE_CHECKING:  # a plan is made before torch is loaded
    from spam_gnn.graph import Graph

MARGIN = 1.25  # how far an estimate may be wrong before a run that was let through fails
_SIZES = (8192, 2048, 512, 128)  # seeds of a batch that are tried in turn
_PROCESS = 431.0 * 2**20  # Python, torch, numba and their buffers
# Bytes of a training epoch and a validation per: node, stored edge, stored feature value; and of what is there for a while,
# (sample, node, unit, layer), the same without layers, (sample, edge), (class, edge), (sample, class, node), where a pass of a
# trusting network counts as a sample.
_EPOCH = {"node": 733.0, "edge": 177.0, "value": 7.5, "state": 5.04, "flow": 2.97, "sign": 26.4, "message": 24.0,
          "guess": 17.1}  # fmt: skip
_PROBABILITY = 13.6  # bytes per (sample, class, node) of a prediction of the whole graph, where a trusting network is a sample
HELD, LASTING = 1 << 25, 1 << 24  # numbers that it holds of rows and in a table, or what one sample needs (`kernels/infer.py`)
_DROPPED = 5.0  # bytes of a stored feature value, with its mask, that every further pass over the features drops anew
_KEPT = 512.0 * 2**20  # the most that the compiled loops keep of a training batch for the next (`kernels/memory.py`)
_KEPT_OF_BATCH = 1.3  # of a batch, what is kept of it: some blocks once for training and once for validation
_KEPT_BESIDE = 0.7  # of what is kept, the share that is of no use to the next batch, whose blocks are larger
# Bytes of an exact prediction in pieces and of writing its tables: of its pieces, and per node, stored edge that the measures
# look at, (class, node) and (sample, class, node), where each trusting network counts as a sample.
_RESULT = {"start": 80.0 * 2**20, "node": 20.0, "edge": 113.0, "belief": 10.0, "probability": 8.0}
MOST_EDGES = 4_000_000  # stored edges that the measures and the report look at; of more, an excerpt of that size


@dataclass(frozen=True)
class Sizes:
    """What the memory of a run depends on.

    Args:
        edges: stored edges, as the network sees them.
        values: stored feature values.
        mapped: whether features and edges live on disk.
        labelled, validated: training and validation nodes; 0 where that is not known.
        features: columns, which decide whether a deep network joins.
        listed, directed: edges as the graph came, and whether their direction is known, of which nodes' positions are made.
    """

    nodes: int
    edges: int
    values: int
    classes: int
    mapped: bool
    labelled: int = 0
    validated: int = 0
    features: int = 1 << 30  # columns; unless known, many
    listed: int = 0  # 0: as many as `edges`
    directed: bool = False

    @staticmethod
    def of_folder(facts: FolderFacts, config: SpaMConfig) -> Sizes:
        """Of a converted graph that has not been opened."""
        edges = facts.mirrored if config.directions == "undirected" else facts.edges
        return Sizes(facts.nodes, edges, facts.nonzeros, len(facts.class_names), True, facts.labelled,
                     facts.validated, facts.features, facts.edges, facts.directed)  # fmt: skip

    @staticmethod
    def of_graph(graph: Graph, config: SpaMConfig) -> Sizes:
        """Of a graph in memory; the mirrored edges of a directed one are at most twice as many."""
        doubled = graph.directed and config.directions == "undirected"
        values = graph.x.values().numel() if graph.x.is_sparse_csr else graph.x.numel()
        return Sizes(graph.num_nodes, graph.num_edges * (2 if doubled else 1), values, graph.num_classes, False,
                     int(graph.train_mask.sum()), int(graph.val_mask.sum()), graph.num_features, graph.num_edges,
                     graph.directed)  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """The choice and the numbers behind it, in bytes; the record of a run holds it."""

    kind: str
    batch_size: int
    needed: float
    whole: float
    there: float
    limit: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def sentence(self) -> str:
        """What the run says before it begins."""
        how = "the whole graph at once" if self.kind == "whole" else (
            f"batches of {self.batch_size} seeds" if self.batch_size else "clusters")  # fmt: skip
        more = "" if self.kind == "whole" else f" (the whole graph at once: {_size(self.whole)})"
        return f"memory: {how}, about {_size(self.needed)} needed{more}, {_size(self.there)} there ({self.limit})"


def bytes_whole(sizes: Sizes, c: SpaMConfig) -> float:
    """Peak of training on the whole graph and predicting it at once: while it predicts, what the loops keep of training is
    still there (`kernels/memory.py`)."""
    structure, states = _bytes_of_epoch(sizes, c)
    states = max(states, min(states, _KEPT) + _bytes_of_prediction(sizes, c))
    return _PROCESS + _bytes_of_position(sizes, c) + structure + states


def _bytes_of_prediction(sizes: Sizes, c: SpaMConfig) -> float:
    """Of a graph at once, beside the graph itself."""
    readings = c.predict_samples + len(c.further(sizes.features))
    one, all_rows = sizes.nodes * c.hidden, c.predict_samples * sizes.nodes * c.hidden
    held, table = max(one, min(all_rows, HELD)), max(3 * one, min(3 * all_rows, LASTING))
    predicting = 4.0 * (held * (1 if c.layers <= 2 else 2) + table)
    return predicting + _PROBABILITY * readings * sizes.classes * sizes.nodes


def _bytes_of_epoch(sizes: Sizes, c: SpaMConfig) -> tuple[float, float]:
    """What an epoch needs: of the graph and its features, and beside it while it lasts."""
    samples = max(c.samples, 1)
    # reasoned: a pass of a trusting network holds what the judging one holds of a single sample; `limit` holds it against runs
    most = c.passes(sizes.labelled, sizes.nodes - sizes.labelled) if sizes.labelled else 1
    passes = [(most if network.layers else 1, network) for network in c.further(sizes.features)]
    units = (_EPOCH["state"] * c.layers + _EPOCH["flow"]) * samples + sum(
        times * (_EPOCH["state"] * network.layers + _EPOCH["flow"]) for times, network in passes
    )
    drops = sum(times for times, network in passes if network.of_features(sizes.features, network.dropout) > 0.0)
    structure = (
        _EPOCH["node"] * sizes.nodes
        + _EPOCH["edge"] * sizes.edges
        + (_EPOCH["value"] + _DROPPED * drops) * sizes.values
    )
    signs = _EPOCH["sign"] * samples * sizes.edges + _EPOCH["message"] * sizes.classes * sizes.edges
    guesses = _EPOCH["guess"] * (samples + sum(times for times, _ in passes)) * sizes.classes * sizes.nodes
    return structure, units * sizes.nodes * c.hidden + signs + guesses


def bytes_in_batches(sizes: Sizes, c: SpaMConfig, batches: BatchConfig) -> float:
    """Peak of training in batches, of the validation after it, or of the exact prediction, whichever is largest."""
    batch = sum(_bytes_of_epoch(_batch(sizes, batches, sizes.labelled or sizes.nodes), c))
    kept = min(_KEPT_OF_BATCH * batch, _KEPT)  # stays beside the validation, whose blocks have other sizes
    seen = min(sizes.validated, batches.val_limit) + min(sizes.labelled, TRAIN_LOOKED_AT) if sizes.validated else sizes.nodes
    seen_at_once = _batch(sizes, batches, seen)
    looked = kept + _bytes_of_epoch(seen_at_once, c)[0] + _bytes_of_prediction(seen_at_once, c)
    batch = _PROCESS + max(batch + _KEPT_BESIDE * kept, looked) + _bytes_of_position(sizes, c)
    readings = c.predict_samples + len(c.further(sizes.features))
    result = _PROCESS + (
        _RESULT["start"]
        + _RESULT["node"] * sizes.nodes
        + _RESULT["edge"] * min(sizes.edges, MOST_EDGES)
        + _RESULT["belief"] * sizes.classes * sizes.nodes
        + _RESULT["probability"] * readings * sizes.classes * sizes.nodes
    )
    result += _bytes_of_position(sizes, c)
    held = 0.0 if sizes.mapped else 4.0 * sizes.values + 24.0 * sizes.edges
    return held + max(batch + 24.0 * sizes.nodes, result)


def _bytes_of_position(sizes: Sizes, c: SpaMConfig) -> float:
    """Columns of all nodes that say where they stand (`position.py`), and the singular vectors behind them."""
    listed = sizes.listed or sizes.edges
    shape = PositionShape.wanted(c.position, c.position_rank, sizes.nodes, listed, directed=sizes.directed)
    return 0.0 if shape is None else 16.0 * sizes.nodes * shape.width


def _batch(sizes: Sizes, batches: BatchConfig, starts: float) -> Sizes:
    """The sizes of a batch: what its seeds, out of so many nodes to start from, can reach; no more than there is."""
    if batches.kind == "clusters":
        share = min(1.0, batches.joined / batches.clusters)
        nodes, edges = sizes.nodes * share, sizes.edges * share
    else:
        nodes, edges = _reached(sizes, batches, starts)
    nodes, edges = min(nodes, float(sizes.nodes)), min(edges, float(sizes.edges))
    values = sizes.values * nodes / max(sizes.nodes, 1)
    return replace(sizes, nodes=int(nodes), edges=int(edges), values=int(values))


def _reached(sizes: Sizes, batches: BatchConfig, starts: float) -> tuple[float, float]:
    """Nodes and stored edges of a sampled batch, expected as if neighbours were drawn from all nodes alike."""
    everybody, degree = float(max(sizes.nodes, 1)), sizes.edges / max(sizes.nodes, 1)
    nodes = fresh = min(float(batches.size), starts)
    edges, back = 0.0, 0.0
    for most in batches.neighbours:
        taken = degree if most < 0 else min(float(most), degree)
        picked = fresh * (taken - back)  # of a node that was found itself, the edge it was found by may be picked again
        fresh = (everybody - nodes) * -math.expm1(-picked / everybody)  # who is there already is not found again
        nodes, edges, back = nodes + fresh, edges + 2.0 * picked, taken / max(degree, 1.0)
    return nodes, edges


def choose(sizes: Sizes, config: SpaMConfig, asked: BatchConfig, limit: MemoryLimit, name: str) -> tuple[BatchConfig, Plan]:
    """What the user asked for, if it fits; the whole graph or the largest batches that fit, if nothing was asked for.

    Raises:
        TooLarge: neither fits; the message has the numbers, and what would.
    """
    whole = bytes_whole(sizes, config)
    options = [asked] if asked.kind != "whole" else [asked, *(replace(asked, size=size) for size in _SIZES)]
    tried = [(option, whole if option.kind == "whole" else bytes_in_batches(sizes, config, option)) for option in options]
    for option, needed in tried:
        if needed * MARGIN <= limit.bytes:
            return option, Plan(option.kind, option.size, needed, whole, limit.bytes, limit.what)
    least = min(needed for _, needed in tried)
    smallest = bytes_in_batches(sizes, replace(config, predict_samples=1, samples=1), replace(asked, size=64, clusters=0))
    advice = "use --batch-size 64 --set samples=1 --set predict_samples=1" if smallest * MARGIN <= limit.bytes else (
        "raise the limit, or use a machine with more memory")  # fmt: skip
    if not sizes.mapped:
        advice = f"write it to a folder first (spam-gnn convert) and train from that; {advice}"
    raise TooLarge(
        f"memory: {name} needs about {_size(whole)} whole and {_size(least)} in batches, with a margin of "
        f"{MARGIN - 1:.0%}, and {_size(limit.bytes)} are there ({limit.what}); {advice}"
    )


def _size(count: float) -> str:
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"
