"""The memory plan: what fits is run, what does not is refused before anything is opened, with numbers and a way out."""

from __future__ import annotations

import json
import resource
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from spam_gnn import SpaMConfig, csbm, forward_only
from spam_gnn.commands import planning
from spam_gnn.data.folder import FORM, FolderFacts
from spam_gnn.errors import TooLarge
from spam_gnn.kernels import infer
from spam_gnn.loading.batched import BatchConfig
from spam_gnn.memory_plan import HELD, LASTING, MARGIN, Sizes, bytes_in_batches, bytes_whole, choose
from spam_gnn.position_shape import PositionShape
from spam_gnn.resources import MemoryLimit, memory_limit

GIB = 2**30
C = SpaMConfig()


def sizes(nodes, degree=8, mapped=True):
    return Sizes(nodes, nodes * degree, nodes * 64, 5, mapped)


def test_the_choice_follows_the_limit():
    graph = sizes(300_000)
    whole = bytes_whole(graph, C)
    batches, plan = choose(graph, C, BatchConfig(), MemoryLimit(MARGIN * whole + 1, "free memory"), "g")
    assert (batches.kind, plan.kind, plan.needed) == ("whole", "whole", whole)
    batches, plan = choose(graph, C, BatchConfig(), MemoryLimit(MARGIN * whole - 1, "free memory"), "g")
    assert batches.kind == plan.kind == "neighbours"
    assert plan.needed * MARGIN <= plan.there
    assert "the whole graph at once" in plan.sentence()
    smaller, _ = choose(graph, C, BatchConfig(), MemoryLimit(2 * GIB, "free memory"), "g")
    assert 0 < smaller.size < batches.size
    with pytest.raises(TooLarge, match=r"needs about .* whole and .* in batches.*400 MiB are there \(RLIMIT_DATA\)"):
        choose(graph, C, BatchConfig(), MemoryLimit(400 * 2**20, "RLIMIT_DATA"), "g")


def test_the_plan_knows_how_much_a_prediction_holds():
    """Said twice, because a plan is made before torch is loaded."""
    assert (HELD, LASTING) == (forward_only._HELD, infer.LASTING)
    most, small = replace(C, predict_samples=64), replace(sizes(1_500), classes=1)
    gap = bytes_whole(small, most) - bytes_whole(small, C)
    assert gap > 4 * 3 * 48 * 1_500 * C.hidden  # a row and two of the table for 48 more samples
    assert gap > 4 * 3 * 48 * 1_500 * C.hidden + 5 * 48 * 1_500  # and their probabilities
    gap = bytes_whole(sizes(30_000), replace(C, layers=3)) - bytes_whole(sizes(30_000), C)
    assert gap > 4 * 16 * 30_000 * C.hidden  # two layers' rows at once
    needed = [bytes_whole(sizes(nodes), C) for nodes in range(1_000, 200_000, 500)]
    assert needed == sorted(needed)


def test_what_the_user_asks_for_is_not_replaced():
    asked = BatchConfig(size=64, neighbours=(5, 5))
    assert choose(sizes(1000), C, asked, MemoryLimit(64 * GIB, "free memory"), "g")[0] == asked
    with pytest.raises(TooLarge, match="--batch-size 64"):
        choose(sizes(300_000), C, BatchConfig(size=100_000), MemoryLimit(3 * GIB, "free memory"), "g")


def test_estimates_grow_with_what_they_should():
    small, large = sizes(100_000), sizes(1_000_000)  # in smaller ones what a prediction holds, up to a limit, is most of it
    assert bytes_whole(large, C) > 8 * (bytes_whole(small, C) - bytes_whole(sizes(0), C))
    batches = BatchConfig(size=512)
    assert bytes_in_batches(large, C, batches) < bytes_whole(large, C) / 5
    assert bytes_in_batches(sizes(1_000_000, mapped=False), C, batches) > bytes_in_batches(large, C, batches)
    assert bytes_whole(small, replace(C, samples=8)) > bytes_whole(small, C)
    clusters = BatchConfig(clusters=100, joined=2)
    assert bytes_in_batches(large, C, clusters) < bytes_in_batches(large, C, BatchConfig(clusters=10, joined=2))


def test_networks_that_drop_features_anew_hold_them_anew():
    wide, alone = Sizes(20_000, 160_000, 20_000 * 3000, 4, True, features=3000), replace(C, trusted=())
    assert bytes_whole(wide, C) - bytes_whole(wide, alone) > 2 * 4 * wide.values
    few = replace(wide, features=8)  # of few features none is dropped
    assert bytes_whole(few, C) - bytes_whole(few, alone) < 4 * wide.values


def test_a_graph_in_memory_is_measured():
    graph = csbm(nodes=60, seed=0)
    parts = (int(mask.sum()) for mask in (graph.train_mask, graph.val_mask))
    assert Sizes.of_graph(graph, C) == Sizes(60, graph.num_edges, graph.x.numel(), 3, False, *parts, 16, graph.num_edges)
    doubled = Sizes.of_graph(replace(graph, directed=True), C)
    assert doubled.edges == 2 * graph.num_edges
    assert (doubled.listed, doubled.directed) == (graph.num_edges, True)


def test_positions_of_a_directed_graph_are_counted_as_they_are_made():
    """Rows and columns of the adjacency differ, so there are twice as many directions: the width that the model will have."""
    one, both = (Sizes(100_000, 2_000_000, 0, 5, False, listed=1_000_000, directed=d) for d in (False, True))
    shape = PositionShape.wanted(C.position, C.position_rank, 100_000, 1_000_000, directed=True)
    at_least = 8.0 * 100_000 * (shape.width - PositionShape.wanted("on", 512, 100_000, 1_000_000, directed=False).width)
    assert bytes_whole(both, C) - bytes_whole(one, C) > at_least


def test_a_huge_folder_is_refused_before_it_is_opened(run, tmp_path, monkeypatch):
    folder = tmp_path / "huge"
    folder.mkdir()
    facts = FolderFacts(FORM, "huge", 10**8, 10**9, 10**9, 100, 10**10, False, False, ("a", "b"), (), False, ())
    (folder / "graph.json").write_text(json.dumps(asdict(facts)))  # no array is there to be opened
    monkeypatch.setattr(planning, "memory_limit", lambda: MemoryLimit(4.0 * GIB, "the container's limit"))
    code, _, error = run("train", "--graph", folder, "--out", tmp_path / "run")
    assert code == 3
    assert len(error.strip().splitlines()) == 1
    assert "4.0 GiB are there (the container's limit)" in error
    assert not (tmp_path / "run").exists()


def test_limits_of_process_and_container_count(monkeypatch, tmp_path):
    free = memory_limit().bytes
    assert free > 0
    infinite = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (2**20, 2**20) if kind == resource.RLIMIT_DATA else infinite)
    assert memory_limit() == MemoryLimit(0.0, "RLIMIT_DATA")  # less than what is in use already
    monkeypatch.setattr(resource, "getrlimit", lambda _: infinite)
    box = "/sys/fs/cgroup/box/memory."
    group = {f"{box}max": "1000000\n", f"{box}current": "600000\n", f"{box}stat": "anon 5\nfile 100000\n",
             "/proc/self/cgroup": "0::/box\n"}  # fmt: skip
    read, is_file = Path.read_text, Path.is_file

    def shown(path, *rest):
        if str(path).startswith("/sys/fs/cgroup") and str(path) not in group:
            raise FileNotFoundError(path)
        return group.get(str(path)) or read(path, *rest)

    monkeypatch.setattr(Path, "read_text", shown)
    monkeypatch.setattr(Path, "is_file", lambda path: str(path) in group or is_file(path))
    assert memory_limit() == MemoryLimit(500000.0, "the container's limit")
