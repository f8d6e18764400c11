"""Batched feeds: neighbour-sampled batches through PyG's `NodeLoader`, and clusters of the graph."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.loader import NodeLoader

from spam_gnn.contract import NodeModel
from spam_gnn.errors import BadInput
from spam_gnn.graph import Graph
from spam_gnn.loading.cells import CellFeed
from spam_gnn.loading.clusters import Clusters
from spam_gnn.loading.cut import Chosen, Whole
from spam_gnn.loading.feed import Feed, Piece, Tally, Validation, WholeFeed
from spam_gnn.loading.sampler import make_sampler
from spam_gnn.randomness import node_uniforms, seed_for, stream
from spam_gnn.settings import TRAIN_LOOKED_AT, BatchConfig
from spam_gnn.team import Team


def check_feed(model: NodeModel, graph: Graph, config: BatchConfig, team: Team) -> None:
    """Whether this graph can be taken in this way, by this model and so many processes."""
    if config.kind == "whole" and team.size > 1:
        raise BadInput(f"--workers: found {team.size} for a graph taken whole; add --batch-size or --clusters")
    if config.kind != "whole" and not model.takes_batches:
        raise BadInput(f"batches: {type(model).__name__} needs the whole graph; leave --batch-size and --clusters out")
    if config.clusters > graph.num_nodes:
        raise BadInput(f"--clusters: found {config.clusters} for {graph.num_nodes} nodes; use fewer")


def make_feed(model: NodeModel, graph: Graph, config: BatchConfig, seed: int, team: Team) -> Feed:
    """The feed a configuration names."""
    check_feed(model, graph, config, team)
    if config.kind == "whole":
        cells = model.training_parts(graph)
        return CellFeed(model, graph, cells) if cells > 1 else WholeFeed(model, graph)
    whole = Whole.of(model.structure(graph), model.node_columns(graph))
    if config.kind == "clusters":
        return ClusterFeed(whole, config, seed, team)
    return NeighbourFeed(whole, config, seed, team)


@dataclass(frozen=True, eq=False)
class _Job:
    """A batch to be made: its number, what it starts from, and its share of step and epoch."""

    number: int
    start: Tensor
    weight: float
    share: float


@dataclass(eq=False)
class BatchedFeed(Feed):
    """What both kinds share: batches in a seeded order, dealt out to the processes of a team, weighted by their targets."""

    whole: Whole
    config: BatchConfig
    seed: int
    team: Team

    @abstractmethod
    def starts(self, targets: Tensor, seed: int, epoch: int) -> list[tuple[Tensor, int]]:
        """What each batch of an epoch starts from, and how many targets it has; `targets` (n,) bool."""

    @abstractmethod
    def batches(self, jobs: list[tuple[int, Tensor]], epoch: int) -> Iterator[Graph]:
        """The batches, cut but not prepared, of (number, start) pairs."""

    def steps(self, model: NodeModel, seed: int, epoch: int) -> Iterator[list[Piece]]:
        targets = model.targets(self.whole.graph, seed, epoch)
        jobs = self._jobs(self.starts(targets, seed, epoch))
        mine = [job for step in jobs for job in step]
        graphs = self.batches([(job.number, job.start) for job in mine], epoch)
        for step in jobs:
            yield [Piece(model.prepare(next(graphs)), job.weight, job.share) for job in step]

    def _jobs(self, starts: list[tuple[Tensor, int]]) -> list[list[_Job]]:
        """Step by step, the jobs of this process; one that has none left helps with weight 0, so that all meet."""
        rank, size, together = self.team.rank, self.team.size, self.config.together
        total, steps = sum(count for _, count in starts), []
        for begin in range(0, len(starts), together):
            numbers = range(begin, min(begin + together, len(starts)))
            here = sum(starts[i][1] for i in numbers)
            own = [_Job(i, starts[i][0], starts[i][1] / here, starts[i][1] / total) for i in numbers[rank::size]]
            steps.append(own or [_Job(begin, starts[begin][0], 0.0, 0.0)])
        return steps

    def _looked_at(self) -> Tensor:
        """(n,) bool: validation nodes, at most as many as configured, and some training nodes."""
        graph = self.whole.graph
        draw = node_uniforms(graph.identity, seed_for(0, "looked at"))
        return _first(graph.val_mask, draw, self.config.val_limit) | _first(graph.train_mask, draw, TRAIN_LOOKED_AT)


def _first(mask: Tensor, draw: Tensor, most: int) -> Tensor:
    """The `most` nodes of a mask with the smallest draws."""
    if int(mask.sum()) <= most:
        return mask
    return mask & (draw <= draw[mask].kthvalue(most).values)


class NeighbourFeed(BatchedFeed):
    """Training nodes in random order, `size` at a time, each with sampled neighbours of its neighbours.

    Nodes whose label is shown this epoch are seeds too: networks that are shown none learn from them.
    """

    def starts(self, targets: Tensor, seed: int, epoch: int) -> list[tuple[Tensor, int]]:
        nodes = torch.nonzero(targets | self.whole.graph.train_mask).reshape(-1)
        order = nodes[torch.randperm(len(nodes), generator=stream(seed, "batches", epoch))]
        parts = [(part, int(targets[part].sum())) for part in order.split(self.config.size)]
        return [(part, count) for part, count in parts if count]

    def batches(self, jobs: list[tuple[int, Tensor]], epoch: int) -> Iterator[Graph]:
        nodes = torch.cat([start for _, start in jobs])
        cuts = torch.tensor([len(start) for _, start in jobs]).cumsum(0).tolist()
        places = [list(range(a, b)) for a, b in zip([0, *cuts[:-1]], cuts, strict=True)]
        graph = self.whole.graph
        data = Data(edge_index=graph.edge_index, num_nodes=graph.num_nodes)
        sampler = make_sampler(graph, self.config.neighbours, self.seed).at_epoch(epoch)
        loader = NodeLoader(data, sampler, nodes, batch_sampler=places)
        for (number, _), batch in zip(jobs, loader, strict=True):
            counted = torch.arange(len(batch.n_id)) < batch.batch_size
            chosen = Chosen(batch.n_id, batch.edge_index[0], batch.edge_index[1], batch.e_id)
            yield self.whole.cut(chosen, counted, number)

    def evaluate(self, model: NodeModel, seed: int, samples: int) -> Validation:
        tally, looked = Tally(), torch.nonzero(self._looked_at()).reshape(-1)
        parts = list(looked.split(self.config.size))
        jobs = list(enumerate(parts))[self.team.rank :: self.team.size]
        for batch in self.batches(jobs, 0) if jobs else ():
            seeds = batch.part.counted if batch.part is not None else batch.train_mask
            tally.add(model.readings(model.prepare(batch), seed, samples), seeds, batch)
        return tally.result(model, self.team)


@dataclass(eq=False)
class ClusterFeed(BatchedFeed):
    """Parts of the graph that few edges leave (METIS), `joined` of them at a time with the edges among them."""

    parts: Clusters = field(init=False)

    def __post_init__(self) -> None:
        self.parts = Clusters.of(self.whole.graph, self.config.clusters)

    def _groups(self, seed: int, epoch: int) -> list[Tensor]:
        order = torch.randperm(self.parts.count, generator=stream(seed, "clusters", epoch))
        return list(order.split(self.config.joined))

    def starts(self, targets: Tensor, seed: int, epoch: int) -> list[tuple[Tensor, int]]:
        counts = self.parts.counts(targets)
        groups = [(group, int(counts[group].sum())) for group in self._groups(seed, epoch)]
        return [(group, count) for group, count in groups if count]

    def batches(self, jobs: list[tuple[int, Tensor]], epoch: int) -> Iterator[Graph]:  # noqa: ARG002 - parts do not change
        for number, group in jobs:
            chosen = self.parts.induced(group)
            yield self.whole.cut(chosen, torch.ones(len(chosen.nodes), dtype=torch.bool), number)

    def evaluate(self, model: NodeModel, seed: int, samples: int) -> Validation:
        tally, looked = Tally(), self._looked_at()
        jobs = list(enumerate(self._groups(self.seed, 0)))[self.team.rank :: self.team.size]
        for (_, group), batch in zip(jobs, self.batches(jobs, 0), strict=True):
            seen = looked[self.parts.nodes(group)]
            tally.add(model.readings(model.prepare(batch), seed, samples), seen, batch)
        return tally.result(model, self.team)
