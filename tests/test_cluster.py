"""The grid on dask.distributed: a local cluster of processes, one of them killed at work."""

from __future__ import annotations

import os
import signal

import pytest

from grid_parts import comparable, small_runs, undisturbed
from spam_gnn.errors import BadInput
from spam_gnn.experiments.cluster import connect, run_on_cluster
from spam_gnn.experiments.store import RunStore

distributed = pytest.importorskip("distributed", reason="the extra `distributed` is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")  # of the library, while its processes come and go


def test_a_cluster_that_loses_a_worker_makes_the_same_records(tmp_path):
    specs = small_runs(16, faulty=2)
    killed = []

    def kill_one(state):
        if state.done >= 3 and not killed:
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)

    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        state = run_on_cluster(specs, RunStore(tmp_path), client, watch=kill_one)
    assert killed
    assert (state.done, state.failed) == (14, 2)
    assert [comparable(record) for record in RunStore(tmp_path).records(specs)] == undisturbed(specs)
    assert not list(tmp_path.rglob("claim"))


def test_an_address_without_a_scheduler_is_refused_in_one_line(monkeypatch):
    def refuse(*arguments, **options):
        raise OSError("timed out")

    monkeypatch.setattr(distributed, "Client", refuse)
    with pytest.raises(BadInput, match="no scheduler answers"):
        connect("tcp://127.0.0.1:1")
