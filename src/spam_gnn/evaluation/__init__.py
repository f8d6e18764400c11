"""Metrics, and the battery of checks that every model of this package passes."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spam_gnn.evaluation.checks.battery import CheckFailed, CheckResult, check_node_classifier

_HOME = {"CheckFailed": "checks.battery", "CheckResult": "checks.battery", "check_node_classifier": "checks.battery"}

__all__ = ["CheckFailed", "CheckResult", "check_node_classifier"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"spam_gnn.evaluation.{_HOME[name]}"), name)
    raise AttributeError(f"module 'spam_gnn.evaluation' has no attribute '{name}'")
