"""Durable writes: a finished file is whole or absent, whatever happens while it is written."""

from __future__ import annotations

import json
import os
import uuid
from pathlib import Path
from typing import Any

from spam_gnn.errors import DiskError

_MARK = ".spam-gnn-tmp-"


def write_durably(path: Path, content: bytes) -> None:
    """Unique temporary file in the same folder, fsync, rename over the target, fsync the folder."""
    temporary = path.with_name(f"{_MARK}{uuid.uuid4().hex}-{path.name}")
    try:
        with temporary.open("xb") as handle:
            handle.write(content)
            handle.flush()
            os.fsync(handle.fileno())
        temporary.replace(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise DiskError(f"{path}: cannot be written ({error.strerror}); free space or choose another folder") from None
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_json(path: Path, value: Any) -> None:
    """Indented JSON with a final newline; NaN and infinity are refused rather than written as invalid JSON."""
    write_durably(path, (json.dumps(value, indent=2, allow_nan=False) + "\n").encode())


def remove_leftovers(folder: Path) -> None:
    """Delete temporary files that a killed process left in `folder`."""
    for stray in folder.glob(f"{_MARK}*"):
        stray.unlink(missing_ok=True)


def make_folder(path: Path) -> Path:
    """Create a folder and prove that it can be written to, before any work is spent."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        probe = path / f"{_MARK}{uuid.uuid4().hex}-probe"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise DiskError(f"{path}: cannot be used as an output folder ({error.strerror}); choose another --out") from None
    return path
