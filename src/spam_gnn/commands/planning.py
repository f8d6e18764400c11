"""The memory plan of `train`: made from a folder's sizes before anything is opened, or from the graph once it is read.

A folder that cannot fit is refused before torch is loaded, which takes longer than to judge it.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from spam_gnn.commands.console import OUT
from spam_gnn.commands.parse import parse_settings
from spam_gnn.config import SpaMConfig
from spam_gnn.data.facts import is_converted, read_facts
from spam_gnn.memory_plan import Plan, Sizes, choose
from spam_gnn.resources import MEETING_PLACE, MemoryLimit, memory_limit, return_large_blocks
from spam_gnn.settings import BatchConfig

if TYPE_CHECKING:
    from spam_gnn.data.reading import Reading
    from spam_gnn.run import RunSettings
    from spam_gnn.team import Team


def share_of_memory(workers: int) -> MemoryLimit:
    """What each of the processes on this machine may take in all; asked at the start, when a process holds nothing yet."""
    here = os.environ.get("LOCAL_WORLD_SIZE") or (1 if "RANK" in os.environ and MEETING_PLACE not in os.environ else workers)
    limit = memory_limit()
    return limit if limit.what.startswith("RLIMIT") else replace(limit, bytes=limit.bytes / max(int(here), 1))


def refuse_early(graph: Path | None, preset: str, settings: list[str], batches: BatchConfig, there: MemoryLimit) -> None:
    """Judge SpaM on a converted folder by its sizes alone; of any other source nothing is known yet.

    Raises:
        TooLarge: it does not fit, as `planned` would say too.
    """
    if graph is None or not is_converted(graph):
        return
    defaults = SpaMConfig.preset(preset)
    config = defaults.with_settings(parse_settings(defaults, settings)[0])
    choose(Sizes.of_folder(read_facts(graph), config), config, batches, there, str(graph))


def planned(settings: RunSettings, there: MemoryLimit, team: Team) -> tuple[RunSettings, Reading, Plan | None]:
    """Settings with the batches that fit this machine, the graph, and the plan; None for systems that have no estimate."""
    source, reading = settings.source, None
    if not isinstance(settings.model, SpaMConfig):
        return settings, source.open(settings.split, settings.seed), None
    if source.graph is not None and is_converted(Path(source.graph)):
        sizes, name = Sizes.of_folder(read_facts(Path(source.graph)), settings.model), source.graph
    else:
        reading = source.open(settings.split, settings.seed)
        sizes, name = Sizes.of_graph(reading.graph, settings.model), reading.graph.name
    batches, plan = choose(sizes, settings.model, settings.batches, there, name)
    if plan.kind != "whole":
        return_large_blocks()
    if team.rank == 0:
        OUT.print(plan.sentence(), markup=False, highlight=False, soft_wrap=True)
    return replace(settings, batches=batches), reading or source.open(settings.split, settings.seed), plan
