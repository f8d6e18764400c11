"""From text on a command line to typed settings."""

from __future__ import annotations

import types
import typing
from dataclasses import fields
from typing import Any

from spam_gnn.errors import BadInput, one_of
from spam_gnn.settings import BatchConfig, TrainConfig

_WORDS = {"true": True, "false": False, "yes": True, "no": False, "on": True, "off": False}


def parse_settings(model: Any, pairs: list[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """`key=value` texts -> the chosen fields of a system's settings and those of `TrainConfig`.

    Args:
        model: the settings of the system, a dataclass; its field types say how to read a text.
        pairs: as typed. An unknown key is refused with the nearest known one.
    """
    model_types, train_types = typing.get_type_hints(type(model)), typing.get_type_hints(TrainConfig)
    known = tuple(f.name for f in (*fields(model), *fields(TrainConfig)))
    chosen: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals:
            raise BadInput(f"--set {pair}: found no '='; write key=value, such as --set hidden=32")
        key = one_of(key.strip(), known, "--set")
        kind = model_types.get(key) or train_types[key]
        chosen[0 if key in model_types else 1][key] = parse_value(text.strip(), kind, f"--set {key}")
    return chosen


def parse_batches(size: int, neighbours: str, clusters: int, together: int, workers: int) -> BatchConfig:
    """`--batch-size`, `--neighbours` and `--clusters`; neighbours alone are those of batches of 1024 seeds."""
    sizes = tuple(parse_value(part.strip(), int, "--neighbours") for part in neighbours.split(",") if part.strip())
    chosen: dict[str, Any] = {"neighbours": sizes} if sizes else {}
    if sizes and not clusters:
        chosen["size"] = 1024
    if size:
        chosen["size"] = size
    if workers > 1 and not clusters:
        chosen.setdefault("size", 1024)
    return BatchConfig(clusters=clusters, together=together or workers, **chosen)


def parse_value(text: str, kind: Any, what: str) -> Any:
    """One value of the type a configuration field declares."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        if text.lower() in ("none", "null"):
            return None
        return parse_value(text, next(t for t in inner if t is not type(None)), what)
    if origin is typing.Literal:
        return one_of(text, tuple(map(str, inner)), what)
    if origin is tuple and inner[-1] is Ellipsis:
        parts = [] if text.lower() == "none" else text.strip("()[]").split(",")
        return tuple(parse_value(p.strip(), inner[0], what) for p in parts if p.strip())
    if origin is tuple:
        parts = [p for p in text.strip("()[]").split(",") if p.strip()]
        if len(parts) != len(inner):
            raise BadInput(f"{what}: found '{text}'; give {len(inner)} numbers separated by commas")
        return tuple(parse_value(p.strip(), t, what) for p, t in zip(parts, inner, strict=True))
    if kind is bool:
        if text.lower() not in _WORDS:
            raise BadInput(f"{what}: found '{text}'; use true or false")
        return _WORDS[text.lower()]
    if kind is str:
        return text
    try:
        return kind(text)
    except ValueError:
        wanted = "a whole number" if kind is int else "a number"
        raise BadInput(f"{what}: found '{text}'; give {wanted}") from None
