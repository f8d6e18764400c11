"""Damaged copies of good files: bytes and digits changed, cut, put in; lines and fields dropped, doubled, swapped."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

EXAMPLES = 2000
many = settings(
    max_examples=EXAMPLES, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)  # fmt: skip
PIECES = (
    b",", b";", b"\t", b" ", b"\n", b"\r", b"\r\n", b'"', b'""', b"\0", b"\xff", b"\xc3", "é".encode(), b"-", b"+", b"0", b"1",
    b"9999999999999999999", b"nan", b"inf", b"1e39", b"1e", b"0x1", b"1_0", b"id", b"label", b"#", b"%", b"<", b">", b"&", b"/",
    b"<!DOCTYPE a>", b"True", b".5", b"5.", b"007",
)  # fmt: skip
FRACTION = st.integers(0, 999)
KINDS = ("set", "cut", "put", "drop", "double", "swap", "field", "digit", "digit")
CHANGE = st.tuples(st.sampled_from(KINDS), FRACTION, st.integers(0, 6), st.sampled_from(PIECES))
CHANGES = st.lists(CHANGE, min_size=1, max_size=3)


def mutated(data: bytes, changes: list[tuple[str, int, int, bytes]], separator: bytes = b",") -> bytes:
    """`data` after each change in turn; a place is a thousandth of the length, so that it means something in any file."""
    for kind, fraction, length, piece in changes:
        place = fraction * len(data) // 1000
        if kind == "set" and place < len(data):
            data = data[:place] + bytes([(data[place] + 37 * length + 1) % 256]) + data[place + 1 :]
        elif kind == "cut":
            data = data[:place] + data[place + length + 1 :]
        elif kind == "put":
            data = data[:place] + piece + data[place:]
        elif kind == "digit":
            data = _digit_changed(data, fraction, length)
        else:
            data = _lines_changed(data, kind, fraction, length, piece, separator)
    return data


def _digit_changed(data: bytes, fraction: int, length: int) -> bytes:
    """One digit into another: most often still a good file, with another value in it."""
    digits = [i for i, byte in enumerate(data) if 48 <= byte < 58]
    if not digits:
        return data
    at = digits[fraction * len(digits) // 1000]
    return data[:at] + bytes([48 + (data[at] - 48 + length + 1) % 10]) + data[at + 1 :]


def _lines_changed(data: bytes, kind: str, fraction: int, length: int, piece: bytes, separator: bytes) -> bytes:
    lines = data.split(b"\n")
    at = fraction * len(lines) // 1000
    if kind == "drop":
        del lines[at]
    elif kind == "double":
        lines.insert(at, lines[at])
    elif kind == "swap":
        lines[at], lines[0] = lines[0], lines[at]
    else:
        fields = lines[at].split(separator)
        fields[length % len(fields)] = piece
        lines[at] = separator.join(fields)
    return b"\n".join(lines)
