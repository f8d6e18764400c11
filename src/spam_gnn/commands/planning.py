"""The memory plan of `train`: made from a folder's sizes before anything is opened, or from the graph once it is read."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from spam_gnn.commands.console import OUT
from spam_gnn.config import SpaMConfig
from spam_gnn.data.folder import is_converted, read_facts
from spam_gnn.data.reading import Reading
from spam_gnn.distributed import MEETING_PLACE
from spam_gnn.memory_plan import Plan, Sizes, choose
from spam_gnn.resources import MemoryLimit, memory_limit
from spam_gnn.run import CONFIG, RunSettings, read_settings
from spam_gnn.team import Team


def planned(settings: RunSettings, folder: Path, resume: bool, team: Team) -> tuple[RunSettings, Reading, Plan | None]:
    """Settings with the batches that fit this machine, the graph, and the plan; None for systems that have no estimate.

    A resumed run keeps the batches it was begun with, if nothing else is asked for.
    """
    if resume and settings.batches.kind == "whole" and (folder / CONFIG).exists():
        settings = replace(settings, batches=read_settings(folder).batches)
    source, reading = settings.source, None
    if not isinstance(settings.model, SpaMConfig):
        return settings, source.open(settings.split, settings.seed), None
    if source.graph is not None and is_converted(Path(source.graph)):
        sizes, name = Sizes.of_folder(read_facts(Path(source.graph)), settings.model), source.graph
    else:
        reading = source.open(settings.split, settings.seed)
        sizes, name = Sizes.of_graph(reading.graph, settings.model), reading.graph.name
    batches, plan = choose(sizes, settings.model, settings.batches, _share_of_memory(), name)
    if team.rank == 0:
        OUT.print(plan.sentence(), markup=False, highlight=False, soft_wrap=True)
    return replace(settings, batches=batches), reading or source.open(settings.split, settings.seed), plan


def _share_of_memory() -> MemoryLimit:
    """What each of the processes on this machine may take."""
    here = os.environ.get("LOCAL_WORLD_SIZE") or (os.environ.get("WORLD_SIZE", "1") if MEETING_PLACE in os.environ else "1")
    limit = memory_limit()
    return limit if limit.what.startswith("RLIMIT") else replace(limit, bytes=limit.bytes / max(int(here), 1))
