"""Durable writes: a finished file is whole or absent, whatever happens while it is written."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from spam_gnn.errors import BadInput, DiskError

TEMPORARY = ".spam-gnn-tmp-"


def write_durably(path: Path, content: bytes | Iterable[bytes]) -> None:
    """Unique temporary file in the same folder, fsync, rename over the target, fsync the folder; pieces as they come."""
    temporary = path.with_name(f"{TEMPORARY}{uuid.uuid4().hex}-{path.name}")
    try:
        with temporary.open("xb") as handle:
            handle.writelines([content] if isinstance(content, bytes) else content)
            handle.flush()
            os.fsync(handle.fileno())
        temporary.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        if path.is_dir():
            raise BadInput(f"{path}: is a folder; give the name of a file") from None
        raise DiskError(f"{path}: cannot be written ({error.strerror}); free space or choose another folder") from None
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_json(path: Path, value: Any) -> None:
    """Indented JSON with a final newline; NaN and infinity are refused rather than written as invalid JSON."""
    write_durably(path, (json.dumps(value, indent=2, allow_nan=False) + "\n").encode())


def remove_leftovers(folder: Path) -> None:
    """Delete temporary files that a killed process left in `folder`."""
    for stray in folder.glob(f"{TEMPORARY}*"):
        stray.unlink(missing_ok=True)


def make_folder(path: Path) -> Path:
    """Create a folder and prove that it can be written to, before any work is spent."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        probe = path / f"{TEMPORARY}{uuid.uuid4().hex}-probe"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise DiskError(f"{path}: cannot be used as an output folder ({error.strerror}); choose another") from None
    return path
