"""Coders: how a node decides which of its present neighbours to listen to."""

from __future__ import annotations

from typing import Protocol

import torch

from spam_gnn.coding.amortised import AmortisedCoder
from spam_gnn.coding.base import Coder, Codes
from spam_gnn.coding.uniform import UniformCoder
from spam_gnn.coding.unrolled import UnrolledCoder
from spam_gnn.errors import one_of

CODERS = ("exact", "unrolled", "amortised", "uniform")


class CoderSettings(Protocol):
    """What of a layer's configuration concerns its coder."""

    @property
    def coder(self) -> str: ...
    @property
    def coder_steps(self) -> int: ...
    @property
    def penalty(self) -> float: ...
    @property
    def kernel(self) -> str: ...


def make_coder(settings: CoderSettings, width: int, generator: torch.Generator) -> Coder:
    """The coder a configuration names, for values of size `width`."""
    name = one_of(settings.coder, CODERS, "coder")
    if name == "exact":
        from spam_gnn.coding.exact import ExactCoder  # numba is loaded only by those who use it

        return ExactCoder(penalty=settings.penalty, kernel=settings.kernel)
    if name == "unrolled":
        return UnrolledCoder(settings.coder_steps, settings.penalty, kernel=settings.kernel)
    if name == "amortised":
        return AmortisedCoder(width, threshold=settings.penalty, generator=generator, kernel=settings.kernel)
    return UniformCoder(settings.kernel)


__all__ = ["CODERS", "AmortisedCoder", "Coder", "Codes", "UniformCoder", "UnrolledCoder", "make_coder"]
