"""Plainly spelt numbers straight from the bytes, several times faster than a general parser.

What is not plain (quotes, blanks, nan, more digits than a float64 holds exactly) is left to the general parser, so a number is
the same either way: up to 2**53, times or over a power of ten up to 10**22, a float64 is the nearest to the decimal number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spam_gnn.kernels.compiled import compiled, inlined

_NEWLINE, _QUOTE, _PLUS, _MINUS, _POINT, _ZERO, _BIG_E, _SMALL_E = 10, 34, 43, 45, 46, 48, 69, 101
_EXACT, _LARGEST_POWER = 2**53, 22
_TENS = np.array([10.0**power for power in range(_LARGEST_POWER + 1)])


@dataclass(frozen=True, eq=False)
class PlainNumbers:
    """Args:
    values: (rows, columns asked for) float32; what stands in a column that is not plain has no meaning.
    plain: (columns asked for,) whether all cells of a column were plain.
    rest: the same rows with the fields of all other columns alone.
    """

    values: NDArray[np.float32]
    plain: NDArray[np.bool_]
    rest: bytes


def plain_numbers(data: bytes, starts: NDArray[np.int64], width: int, places: Sequence[int], delimiter: str) -> PlainNumbers:
    """Read the columns at `places` of rows that begin at `starts` and have `width` fields; quotes are known to be in order."""
    number = np.full(width, -1, dtype=np.int64)  # which of the values a field is; -1 leaves it to the rest
    number[list(places)] = np.arange(len(places))
    values = np.empty((len(starts), len(places)), dtype=np.float32)
    plain = np.ones(len(places), dtype=np.bool_)
    rest = np.empty(len(data) + 1, dtype=np.uint8)
    raw = np.frombuffer(data, dtype=np.uint8)
    used = _read(raw, starts, number, ord(delimiter), _TENS, values, plain, rest)
    return PlainNumbers(values, plain, rest[:used].tobytes())


@inlined
def _end_of_field(raw: Any, at: int, delimiter: int) -> int:
    """Where the delimiter or line feed after a field stands that begins at `at`."""
    quoted = False
    while quoted or (raw[at] != delimiter and raw[at] != _NEWLINE):
        quoted ^= raw[at] == _QUOTE  # a doubled quote closes and opens again
        at += 1
    return at


@compiled
def _read(raw: Any, starts: Any, number: Any, delimiter: int, tens: Any, values: Any, plain: Any, rest: Any) -> int:
    used = 0
    for row in range(starts.size):
        at = starts[row]
        begun = False
        for field in range(number.size):
            column = number[field]
            if column < 0:
                if begun:
                    rest[used] = delimiter
                    used += 1
                begun = True
                end = _end_of_field(raw, at, delimiter)
                rest[used : used + end - at] = raw[at:end]
                used, at = used + end - at, end + 1
                continue
            begin = at
            negative = raw[at] == _MINUS
            if negative or raw[at] == _PLUS:
                at += 1
            mantissa, digits, power = np.int64(0), 0, 0
            digit = np.int64(raw[at]) - _ZERO
            while 0 <= digit < 10:
                mantissa, digits, at = min(mantissa, _EXACT) * 10 + digit, digits + 1, at + 1
                digit = np.int64(raw[at]) - _ZERO
            if raw[at] == _POINT:
                at += 1
                digit = np.int64(raw[at]) - _ZERO
                while 0 <= digit < 10:
                    mantissa, digits, power, at = min(mantissa, _EXACT) * 10 + digit, digits + 1, power - 1, at + 1
                    digit = np.int64(raw[at]) - _ZERO
            if digits > 0 and (raw[at] == _SMALL_E or raw[at] == _BIG_E):
                at += 1
                down = raw[at] == _MINUS
                if down or raw[at] == _PLUS:
                    at += 1
                exponent, digits = 0, 0
                digit = np.int64(raw[at]) - _ZERO
                while 0 <= digit < 10:
                    exponent, digits, at = min(exponent, 1000) * 10 + digit, digits + 1, at + 1
                    digit = np.int64(raw[at]) - _ZERO
                power += -exponent if down else exponent
            ended = raw[at] == delimiter or raw[at] == _NEWLINE
            if digits > 0 and ended and mantissa <= _EXACT and -_LARGEST_POWER <= power <= _LARGEST_POWER:
                size = mantissa / tens[-power] if power < 0 else mantissa * tens[power]
                values[row, column] = -size if negative else size
            else:
                plain[column] = False
                at = _end_of_field(raw, begin, delimiter)
            at += 1
        rest[used] = _NEWLINE
        used += 1
    return used
