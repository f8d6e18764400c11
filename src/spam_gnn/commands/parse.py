"""From text on a command line to typed settings."""

from __future__ import annotations

import types
import typing
from dataclasses import fields, replace
from typing import Any

from spam_gnn.config import SpaMConfig
from spam_gnn.errors import BadInput, one_of
from spam_gnn.training import TrainConfig

_WORDS = {"true": True, "false": False, "yes": True, "no": False, "on": True, "off": False}


def apply_settings(
    model: SpaMConfig, train: TrainConfig, pairs: list[str]
) -> tuple[SpaMConfig, TrainConfig]:
    """`key=value` texts over both configurations; an unknown key is refused with the nearest known one."""
    model_types, train_types = typing.get_type_hints(SpaMConfig), typing.get_type_hints(TrainConfig)
    known = tuple(f.name for f in (*fields(SpaMConfig), *fields(TrainConfig)))
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals:
            raise BadInput(f"--set {pair}: found no '='; write key=value, such as --set hidden=32")
        key = one_of(key.strip(), known, "--set")
        kind = model_types.get(key) or train_types[key]
        value = parse_value(text.strip(), kind, f"--set {key}")
        if key in model_types:
            model = model.with_settings({key: value})
        else:
            train = replace(train, **{key: value})
    return model, train


def parse_value(text: str, kind: Any, what: str) -> Any:
    """One value of the type a configuration field declares."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        if text.lower() in ("none", "null"):
            return None
        return parse_value(text, next(t for t in inner if t is not type(None)), what)
    if origin is typing.Literal:
        return one_of(text, tuple(map(str, inner)), what)
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
