"""Large results of the compiled loops, in memory that is used again.

Memory that the system hands out is cleared page by page on first touch, and on a virtual machine the host may have to find the
page first: touching 100 MB for the first time took 0.02 to 0.4 s where writing them again took 0.007. So blocks that are no
longer referred to are kept for the next tensor of about their size, up to a limit.
"""

from __future__ import annotations

import math
import threading
import weakref
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spam_gnn.resources import memory_limit

SMALLEST = 1 << 20  # bytes under which the allocator has memory at hand anyway
LARGE = 100 << 20  # bytes above which a block is a large one: only graphs taken whole have them
LIMIT = 1 << 29  # bytes of blocks that are not large, kept while nobody uses them
PLENTY, SPARED = 1 << 32, 0.2  # large blocks are kept where more is there than this, up to this share of what lies beyond
WASTE = 1.25  # a block serves tensors of its size divided by this, and larger ones
LINE = 64  # bytes of a cache line: tensors begin with one, so that no row of a usual width lies in one more than it fills


class Blocks:
    """Blocks of bytes that are free, smallest first; a block comes back when the last view of its tensor is gone.

    Args:
        limit: bytes kept in blocks that are not large.
        spared: bytes kept in large ones; unless given, as memory allows when the first of them comes back. With 10^7 messages,
            giving them back and having them cleared again was a tenth of an epoch.
    """

    def __init__(self, limit: float = LIMIT, spared: float | None = None) -> None:
        self.limit, self.free, self.lock = limit, list[NDArray[np.uint8]](), threading.RLock()
        self._spared = spared

    @property
    def spared(self) -> float:
        if self._spared is None:
            self._spared = max(0.0, SPARED * (memory_limit().bytes - PLENTY))
        return self._spared

    def take(self, size: int) -> NDArray[np.uint8]:
        """A block of at least `size` bytes."""
        with self.lock:
            for place, block in enumerate(self.free):
                if block.size >= size:
                    if block.size <= size * WASTE:
                        return self.free.pop(place)
                    break
        return np.empty(size, np.uint8)  # NumPy asks for large pages, torch does not

    def give(self, block: NDArray[np.uint8]) -> None:
        """Keep a block for later; where that is more than the limit of its kind, the smallest of the kind are let go."""
        large = block.size > LARGE
        with self.lock:
            self.free.insert(sum(other.size < block.size for other in self.free), block)
            first = sum(other.size <= LARGE for other in self.free) if large else 0  # where the blocks of its kind begin
            most = self.spared if large else self.limit
            while sum(other.size for other in self.free if (other.size > LARGE) == large) > most:
                self.free.pop(first)

    def let_go(self) -> None:
        """Keep none any longer."""
        with self.lock:
            self.free.clear()


_BLOCKS = Blocks()


def give_back() -> None:
    """Give the system back what nobody uses, where something else follows that needs memory."""
    _BLOCKS.let_go()


def fresh(*shape: int, like: Tensor, blocks: Blocks = _BLOCKS) -> Tensor:
    """An uninitialised contiguous CPU tensor of the type of `like`, for a large result."""
    size = math.prod(shape) * like.element_size()
    if size < SMALLEST:
        return torch.empty(shape, dtype=like.dtype)
    kind: np.dtype[Any] = like.detach()[:0].numpy().dtype
    block = blocks.take(size + LINE)
    start = -block.ctypes.data % LINE
    numbers = block[start : start + size].view(kind).reshape(shape)
    owner = numbers.view()  # the one that the tensor's storage refers to, whatever becomes of the tensor's views
    weakref.finalize(owner, blocks.give, block).atexit = False
    return torch.from_numpy(owner)
