"""Sweeps on a real cluster of dask: two worker processes, one of them killed."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from drakebots import load_result
from drakebots.core.errors import InvalidInput
from drakebots.sweeps import sweep
from tests.helpers.waiting import Killer, Waiting, runs

distributed = pytest.importorskip("distributed")


@pytest.mark.slow
def test_one_of_two_workers_is_killed_and_nothing_is_lost(tmp_path):
    log, roots = tmp_path / "log", range(1, 9)
    killer = Killer(log)
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        dashboard_address=None,
        local_directory=tmp_path,
    ) as cluster:
        killer.start()
        table = sweep(
            Waiting(seconds=0.3, mode="raise", log=str(log)),
            {"root": roots},
            out=tmp_path / "out",
            scheduler=cluster.scheduler_address,
        )
        # A client of the user's own, which is the process's default, does as well.
        with distributed.Client(cluster) as client:
            again = sweep(
                Waiting(seconds=0.3, mode="raise", log=str(log)),
                {"root": (*roots, 9)},
                out=tmp_path / "out",
                scheduler=client,
            )
    killer.join()
    root, killed = killer.killed
    assert root in [again for again, pid in runs(log) if pid != killed]
    assert again.metrics["computed"] == 2  # the new one, and the one that raised
    assert table.data.verdict.sel(root=2) == "error"
    assert "two is too much" in table.data.message.sel(root=2).item()
    good = table.data.drop_sel(root=2)
    np.testing.assert_array_equal(good.square, good.root**2)
    for file, square in zip(good.file.values, good.square.values):
        assert load_result(tmp_path / "out" / file).data.square[0] == square


@pytest.mark.long
def test_nobody_answers():
    with pytest.raises(InvalidInput, match="does not answer"):
        sweep(Waiting(), {"root": (1,)}, scheduler="tcp://127.0.0.1:9")


def test_without_dask(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InvalidInput, match="needs distributed; pip install"):
        sweep(Waiting(), {"root": (1,)}, scheduler="tcp://127.0.0.1:9")
