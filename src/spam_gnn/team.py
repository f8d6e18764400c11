"""`Team`: the processes that train one model together. Alone or many, the training loop asks the same of it."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager

import torch
from torch import Tensor, nn

from spam_gnn.contract import NodeModel
from spam_gnn.graph import Graph


class LossOf(nn.Module):
    """The training loss of a model as a module's forward pass, which is where gradients are exchanged."""

    def __init__(self, model: NodeModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, graph: Graph, seed: int, epoch: int) -> dict[str, Tensor]:
        return self.model.training_loss(graph, seed, epoch)


class Team(ABC):
    """What a training process knows of the others.

    Attributes:
        rank: number of this process; 0 writes all files.
        size: number of processes.
    """

    rank: int
    size: int

    @abstractmethod
    def share(self, model: NodeModel) -> nn.Module:
        """`LossOf` the model, whose backward pass leaves the same gradient, summed over the team, in every process."""

    @abstractmethod
    def quietly(self, loss: nn.Module, more: bool) -> AbstractContextManager[None]:
        """Where `more` pieces of the same step follow, their gradients are added up here before they are exchanged."""

    @abstractmethod
    def total(self, numbers: Tensor) -> Tensor:
        """The sum over the team, in every process."""

    @abstractmethod
    def from_first(self, content: bytes) -> bytes:
        """What process 0 holds, in every process."""

    def most(self, number: int) -> int:
        """The largest number that any process holds."""
        numbers = torch.zeros(self.size, dtype=torch.float64)
        numbers[self.rank] = number
        return int(self.total(numbers).max())

    def agreed(self, code: int | None) -> int | None:
        """The largest code that any process holds, None if none does: one that is asked to stop stops all."""
        return self.most(code or 0) or None


class Alone(Team):
    """One process; every exchange is the identity."""

    rank, size = 0, 1

    def share(self, model: NodeModel) -> nn.Module:
        return LossOf(model)

    def quietly(self, loss: nn.Module, more: bool) -> AbstractContextManager[None]:  # noqa: ARG002 - nobody to be told
        return contextlib.nullcontext()

    def total(self, numbers: Tensor) -> Tensor:
        return numbers

    def from_first(self, content: bytes) -> bytes:
        return content
