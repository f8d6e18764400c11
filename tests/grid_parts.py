"""What the tests of grids share: a list of small runs, what of a record must be equal, and a disk that can be full."""

from __future__ import annotations

import sys
from pathlib import Path

from spam_gnn.experiments.execute import execute
from spam_gnn.experiments.grid import run_grid
from spam_gnn.experiments.spec import Perturbation, RunSpec
from spam_gnn.experiments.store import RunStore

COMPARED = ("status", "hash", "spec", "test", "val", "test_calibrated", "edges", "epochs", "best_epoch", "data_sha256")
# loaded by every Python that finds it on its path: fsync refuses while the file of that name exists, as on a full disk
FULL_DISK = """
import errno, os
_fsync, _flag = os.fsync, os.environ.get("TEST_DISK_FULL")
def fsync(number):
    if _flag and os.path.exists(_flag):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    _fsync(number)
os.fsync = fsync
"""


def small_runs(count, faulty=0):
    """Short trainings of an MLP; the last ones fail by themselves, in two ways."""
    good = [RunSpec.of("csbm", "mlp", seed=k, train={"epochs": 2 + k % 3, "patience": 5}) for k in range(count - faulty)]
    diverging = {"epochs": 3, "learning_rate": 1e30}
    bad = [
        RunSpec.of("csbm", "mlp", seed=k, train=diverging) if k % 2
        else RunSpec.of("csbm", "mlp", seed=k, perturbation=Perturbation("no such change", 0.1))
        for k in range(faulty)
    ]  # fmt: skip
    return good[: count // 2] + bad + good[count // 2 :]


def comparable(record):
    """A record without times, memory and provenance."""
    return {key: record[key] for key in COMPARED if key in record}


def undisturbed(specs):
    """The same runs one after the other in this very process."""
    return [comparable(execute(spec)) for spec in specs]


def main() -> None:
    """A grid in a process of its own: STORE COUNT FAULTY."""
    store, count, faulty = sys.argv[1:]
    run_grid(small_runs(int(count), int(faulty)), RunStore(Path(store)), workers=1)


if __name__ == "__main__":
    main()
