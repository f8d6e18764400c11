"""Several processes as one `Team`: torch.distributed under torchrun, or the workers that `--workers` starts on this machine."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from spam_gnn.contract import NodeModel
from spam_gnn.errors import WorkerLost
from spam_gnn.resources import MEETING_PLACE
from spam_gnn.team import Alone, LossOf, Team

PATIENCE = timedelta(minutes=30)  # of a process that waits for a slower one; a dead one is noticed at once


class Together(Team):
    """This process as one of several. Gradients are exchanged by PyTorch's distributed data parallel module."""

    def __init__(self) -> None:
        self.rank, self.size = dist.get_rank(), dist.get_world_size()

    def share(self, model: NodeModel) -> nn.Module:
        # a batch may leave a parameter without a gradient, so every exchange looks which ones have one
        return DistributedDataParallel(LossOf(model), find_unused_parameters=True)

    def quietly(self, loss: nn.Module, more: bool) -> AbstractContextManager[None]:
        assert isinstance(loss, DistributedDataParallel)
        return loss.no_sync() if more else contextlib.nullcontext()

    def total(self, numbers: Tensor) -> Tensor:
        result = numbers.clone()
        dist.all_reduce(result)
        return result

    def from_first(self, content: bytes) -> bytes:
        size = torch.tensor([len(content)])
        dist.broadcast(size, 0)
        data = torch.zeros(int(size), dtype=torch.uint8)
        if self.rank == 0 and content:
            data = torch.frombuffer(bytearray(content), dtype=torch.uint8)
        dist.broadcast(data, 0)
        return data.numpy().tobytes()


def backend() -> str:
    """How tensors travel: by gloo, and those on a GPU by nccl where there is one."""
    return "cpu:gloo,cuda:nccl" if torch.cuda.is_available() and dist.is_nccl_available() else "gloo"


@contextlib.contextmanager
def gathered() -> Iterator[Team]:
    """The team that the environment describes (RANK and WORLD_SIZE, as torchrun sets them), or this process alone."""
    if "RANK" not in os.environ or int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield Alone()
        return
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    place = os.environ.get(MEETING_PLACE)
    try:
        dist.init_process_group(
            backend(), init_method="env://" if place is None else f"file://{place}", rank=rank, world_size=size,
            timeout=PATIENCE,
        )  # fmt: skip
        yield Together()
        dist.destroy_process_group()
    except (RuntimeError, dist.DistError) as error:
        if not _is_loss(error):
            raise
        atexit.register(_leave)
        if place is not None:  # `--workers` watches and says it once, for all
            raise SystemExit(WorkerLost.exit_code) from None
        raise WorkerLost(f"process {rank} of {size}: another process has gone; continue with --resume") from None


def _leave() -> None:
    """End without taking gloo's threads down: some still wait for the process that has gone, and would abort this one."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(WorkerLost.exit_code)


def _is_loss(error: BaseException) -> bool:
    """Whether the exchange failed because its other end is no longer there; gloo says so in words only."""
    words = ("gloo", "nccl", "Connection closed", "Connection reset", "Broken pipe", "connectFullMesh", "recvValue failed")
    return isinstance(error, dist.DistError) or any(word in str(error) for word in words)
