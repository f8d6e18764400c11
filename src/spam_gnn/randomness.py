"""Randomness as an argument: every draw is a function of (seed, purpose, counters), never of global state.

Two kinds of stream:

- `stream(...)` gives an ordinary `torch.Generator` for weights and dropout masks.
- `edge_uniforms(...)` hashes the *identity* of the two end points, so the draw of an edge does not depend on how nodes
  or edges are ordered, on which other edges are present, or on how many samples are taken in all. A relabelled graph,
  a batch of a graph and the whole graph therefore see the same signed graphs for the same seed.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator

import torch
from torch import Tensor

_GOLDEN = -7046029254386353131  # 0x9E3779B97F4A7C15 as a signed 64-bit number (splitmix64's increment)
_MIX_1 = -4658895280553007687  # 0xBF58476D1CE4E5B9
_MIX_2 = -7723592293110705685  # 0x94D049BB133111EB


def seed_for(seed: int, purpose: str, *counters: int) -> int:
    """A 63-bit seed derived from the user's seed, what it is for, and any counters (epoch, sample, ...)."""
    text = "/".join([str(seed), purpose, *map(str, counters)])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") >> 1


def stream(seed: int, purpose: str, *counters: int) -> torch.Generator:
    """A fresh CPU generator for one purpose; call again with the same arguments for the same numbers."""
    return torch.Generator().manual_seed(seed_for(seed, purpose, *counters))


@contextlib.contextmanager
def library_draws(seed: int, purpose: str, *counters: int) -> Iterator[None]:
    """For library code that draws from torch's global state (PyG's initialisers, dropouts): seeded inside, restored after."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed_for(seed, purpose, *counters))
        yield


def _shift_right(x: Tensor, bits: int) -> Tensor:
    return (x >> bits) & ((1 << (64 - bits)) - 1)  # torch shifts int64 arithmetically; the mask makes it logical


def _splitmix(x: Tensor) -> Tensor:
    """The splitmix64 finaliser: a bijection of 64-bit words whose output bits look independent of its input's."""
    x = x + _GOLDEN
    x = (x ^ _shift_right(x, 30)) * _MIX_1
    x = (x ^ _shift_right(x, 27)) * _MIX_2
    return x ^ _shift_right(x, 31)


def _to_unit(x: Tensor) -> Tensor:
    """64-bit words -> uniforms in (0, 1), never exactly 0 or 1, as float64."""
    return (_shift_right(x, 12).to(torch.float64) + 0.5) * 2.0**-52


def edge_uniforms(first: Tensor, second: Tensor, seeds: list[int]) -> Tensor:
    """Uniforms for edges named by their end points.

    Args:
        first, second: identities of the end points, int64, each of shape (p,). The order matters; sort each pair first
            where one draw must serve both directions.
        seeds: one 63-bit seed per sample.

    Returns:
        float64 of shape (len(seeds), p), each strictly between 0 and 1.
    """
    pair = _splitmix(_splitmix(first) ^ (second * _MIX_2))  # (p,), shared by all samples
    words = torch.tensor(seeds, dtype=torch.int64, device=first.device)
    return _to_unit(_splitmix(pair.unsqueeze(0) ^ _splitmix(words).unsqueeze(1)))  # (K, p)


def node_uniforms(identity: Tensor, seed: int) -> Tensor:
    """One uniform per node identity (n,) -> (n,), independent of the order of the nodes."""
    return _to_unit(_splitmix(_splitmix(identity) ^ seed))


def dropout(x: Tensor, rate: float, generator: torch.Generator | None) -> Tensor:
    """Inverted dropout drawn from an explicit generator; `None` (prediction) or rate 0 leaves `x` as it is.

    One 64-bit word decides four entries, 16 bits each: drawing words is what dropout costs on a CPU. The rate is therefore
    rounded to a multiple of 2^-16, and the scale follows the rounded rate.
    """
    if generator is None or rate <= 0.0:
        return x
    level = min(round(rate * 2**16), 2**16 - 1)
    words = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(2**63), None, generator=generator)
    bits = words.view(torch.int16)[: x.numel()].reshape(x.shape)  # uniform over -2^15 .. 2^15 - 1
    keep = (bits >= level - 2**15).to(x.dtype)
    return x * keep.to(x.device).mul_(1.0 / (1.0 - level / 2**16))
