"""The run store: `<store>/<spec-hash>/<seed>/result.json`, one immutable record per run.

Several processes may work on one store. A run is claimed by a lock that the working process holds (`flock` underneath): the
kernel lets go of it however that process ends, so that a claim of a dead process never stands in the way.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from spam_gnn.errors import BadInput, DiskError
from spam_gnn.experiments.spec import RunSpec
from spam_gnn.files import make_folder, remove_leftovers, write_json

RESULT = "result.json"
Record = dict[str, Any]


class RunStore:
    """A folder of runs. Reading needs no lock: a result is whole or absent."""

    def __init__(self, root: Path) -> None:
        self.root = make_folder(root)

    @property
    def attacks(self) -> Path:
        """Where attacked graphs are kept."""
        return self.root / "attacks"

    def place(self, spec: RunSpec) -> Path:
        return self.root / spec.spec_hash / str(spec.seed) / RESULT

    def read(self, spec: RunSpec) -> Record | None:
        """The record of a run, or None if it has not been made."""
        return read_record(self.place(spec))

    def records(self, specs: Iterable[RunSpec]) -> list[Record]:
        """Those that exist, in the order of the specs, failed runs among them."""
        return [record for spec in specs if (record := self.read(spec)) is not None]

    def write(self, spec: RunSpec, record: Record) -> None:
        """Add a record; the caller holds the claim. A second record of one run is refused."""
        place = self.place(spec)
        if place.exists():
            raise BadInput(f"{place}: holds a result already; results are never overwritten")
        make_folder(place.parent)
        remove_leftovers(place.parent)
        write_json(place, record)

    def forget_failure(self, spec: RunSpec) -> bool:
        """Delete a failed record, so that the run is tried again; a good one stays."""
        record = self.read(spec)
        if record is None or record["status"] == "ok":
            return False
        self.place(spec).unlink(missing_ok=True)
        return True

    @contextmanager
    def claim(self, spec: RunSpec) -> Iterator[bool]:
        """Whether this process may do the run now: nobody else is at it. Look for a result again once inside.

        The lock's file is deleted only when a result exists; whoever locked the deleted file meanwhile finds that result.
        """
        folder = self.place(spec).parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(folder / "claim", blocking=False)
            try:
                lock.acquire()
            except Timeout:
                yield False
                return
        except OSError as error:
            raise DiskError(f"{folder}: cannot be written ({error.strerror}); free space or choose another --store") from None
        try:
            yield True
        finally:
            if self.place(spec).exists():
                (folder / "claim").unlink(missing_ok=True)
            lock.release()


def read_record(place: Path) -> Record | None:
    """One record from its file; None if there is none."""
    try:
        return json.loads(place.read_text())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise BadInput(f"{place}: cannot be read ({error}); delete it to have the run done again") from None
