"""Sweeps in processes of this machine: failures, kills, going on, the table."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from drakebots import load_result, plot
from drakebots.core.errors import FileProblem, InvalidInput, UnknownName
from drakebots.plots import plot_sweep, shown_metrics
from drakebots.sweeps import case_rows, sweep
from tests.helpers.waiting import Killer, Waiting, runs

ROOTS = (1, 2, 3, 4)


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A sweep of two fields, one case of which raises."""
    folder = tmp_path_factory.mktemp("swept")
    over = {"root": ROOTS, "mode": ("square", "raise")}
    reported = []
    table = sweep(
        Waiting(log=str(folder / "log")),
        over,
        out=folder / "out",
        workers=2,
        progress=lambda *args: reported.append(args),
    )
    return table, folder, reported


def test_table(swept):
    table, folder, reported = swept
    assert (table.kind, table.model) == ("sweep", "waiting")
    data = table.data
    assert data.square.dims == ("root", "mode")
    np.testing.assert_array_equal(data.square.sel(mode="square"), np.square(ROOTS))
    assert data.root.attrs["units"] == "m"
    assert (data.wall_time > 0).all()
    assert reported[0] == ("cases", 0, 8)
    assert reported[-1] == ("cases", 8, 8)
    assert load_result(folder / "out" / "sweep.nc") == table
    lines = (folder / "out" / "sweep.csv").read_text().splitlines()
    assert len(lines) == 9
    assert lines[0].startswith("root,mode,verdict,message,file,wall_time,")


def test_every_result_is_kept(swept):
    table, folder, _ = swept
    one = table.data.sel(root=3, mode="square")
    result = load_result(folder / "out" / one.file.item())
    assert float(result.data.square[0]) == 9


def test_a_case_that_raises_stops_nothing(swept):
    table, folder, _ = swept
    bad = table.data.sel(root=2, mode="raise")
    assert bad.verdict == "error"
    assert "two is too much; worst: gap = 1" in bad.message.item()
    assert np.isnan(bad.square)
    assert bad.file == ""
    assert table.verdict == "failed"
    assert table.message.startswith("1 of 8 cases are no success; root=2, mode=raise: ")
    assert table.metrics["succeeded"] == 7
    assert len(list((folder / "out").glob("*.nc"))) == 7 + 1


def test_only_what_is_missing_is_computed(swept):
    table, folder, _ = swept
    log, out = folder / "log", folder / "out"
    before = Counter(root for root, _ in runs(log))
    file = out / table.data.file.sel(root=1, mode="square").item()
    file.write_bytes(file.read_bytes()[:-7])  # damaged
    over = {"root": (*ROOTS, 5), "mode": ("square", "raise")}
    again = sweep(Waiting(log=str(log)), over, out=out, workers=1)
    after = Counter(root for root, _ in runs(log))
    # Two new cases, the damaged one, and the one that has no result.
    assert after - before == {5.0: 2, 1.0: 1, 2.0: 1}
    assert (again.metrics["found"], again.metrics["computed"]) == (6, 4)
    assert not [p for p in os.listdir(out) if "part" in p]


@pytest.mark.long
@pytest.mark.parametrize(
    ("mode", "verdict", "words", "tries"),
    [
        ("exit", "error", "SystemExit: a failed assertion of Drake", 1),
        ("die", "error", "its process ended 2 times without a result.*exit code 7", 2),
        ("fail", "failed", "waited", 1),
    ],
)
def test_other_ends_of_a_case(tmp_path, mode, verdict, words, tries):
    log = tmp_path / "log"
    problem = Waiting(mode=mode, log=str(log))
    table = sweep(problem, {"root": (1, 2, 3)}, workers=1)
    assert table.data.verdict.values.tolist() == ["success", verdict, "success"]
    assert sum(root == 2 for root, _ in runs(log)) == tries
    assert re.search(words, table.data.message.values[1])


@pytest.mark.long
def test_a_killed_process_loses_nothing(tmp_path):
    """One of two is killed in the middle of a case: that case alone runs twice."""
    log = tmp_path / "log"
    killer = Killer(log)
    killer.start()
    roots = range(1, 9)
    problem = Waiting(seconds=0.3, log=str(log))
    table = sweep(problem, {"root": roots}, out=tmp_path / "out", workers=2)
    killer.join()
    assert table.ok
    np.testing.assert_array_equal(table.data.square, np.square(roots))
    count = Counter(root for root, _ in runs(log))
    assert count == {float(r): 1 + (r == killer.killed[0]) for r in roots}
    assert len({pid for _, pid in runs(log)}) == 3


_SCRIPT = """
from drakebots.sweeps import sweep
from tests.helpers.waiting import Waiting
sweep(Waiting(seconds=0.8, log={log!r}), dict(root=range(1, 9)), out={out!r}, workers=2)
"""


@pytest.mark.long
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_sweep_goes_on(tmp_path, how):
    """No guard `if __name__` in the script; its processes end with it."""
    log, out = str(tmp_path / "log"), tmp_path / "out"
    script = tmp_path / "main.py"
    script.write_text(_SCRIPT.format(log=log, out=str(out)))
    process = subprocess.Popen(
        [sys.executable, str(script)],
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, sys.path))),
    )
    while len(list(out.glob("*.nc"))) < 3:
        time.sleep(0.02)
        assert process.poll() is None
    process.send_signal(how)
    process.wait(20)
    deadline = time.time() + 10
    while any(_alive(pid) for _, pid in runs(log)) and time.time() < deadline:
        time.sleep(0.05)
    assert not any(_alive(pid) for _, pid in runs(log))
    kept = {p.name for p in out.glob("*.nc")} - {"sweep.nc"}
    assert 3 <= len(kept) < 8
    assert (out / "sweep.nc").exists() == (how == signal.SIGINT)
    if how == signal.SIGINT:
        table = load_result(out / "sweep.nc")
        assert table.verdict == "interrupted"
        assert (table.data.verdict == "missing").sum() == 8 - len(kept)
    before = len(runs(log))
    problem = Waiting(seconds=0.8, log=log)
    table = sweep(problem, {"root": range(1, 9)}, out=out, workers=2)
    assert table.ok
    assert table.metrics["found"] == len(kept)
    assert len(runs(log)) - before == 8 - len(kept)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_picture(swept, tmp_path):
    table = swept[0]
    assert shown_metrics(table) == ["square"]  # root_again is the axis
    plot(table, tmp_path / "a.png")
    plot_sweep(table, tmp_path / "b.svg", ["square", "root_again"])
    assert "root_again" in (tmp_path / "b.svg").read_text()
    with pytest.raises(UnknownName, match="did you mean 'square'"):
        plot_sweep(table, tmp_path / "c.png", ["squared"])
    rows = case_rows(table, ["square"])
    assert rows[2] == {"root": 2, "mode": "square", "verdict": "success", "square": 4}


@pytest.mark.parametrize(
    ("alter", "says"),
    [
        (lambda data: data.drop_vars("verdict"), "it has no verdicts"),
        (lambda data: data.drop_vars("mode"), "mode needs numbers or names"),
        (lambda data: data.transpose().assign(square=data.square), "square must be"),
        (lambda data: data.assign(square=data.square * 1e300), "square must be < 1e"),
        (lambda data: data.assign(square=data.message), "square must be numbers"),
        (lambda data: data.isel(root=[]), "it has no verdicts"),
    ],
)
def test_a_table_that_was_altered_is_refused_by_name(swept, alter, says, tmp_path):
    with xr.set_options(keep_attrs=True):
        data = alter(swept[0].data)
    for one in data.data_vars.keys() & {"square"}:
        data[one].attrs["units"] = "as named"
    with pytest.raises(InvalidInput, match=says):
        plot(replace(swept[0], data=data), tmp_path / "p.png")


def test_bad_input(tmp_path):
    with pytest.raises(InvalidInput, match="no problem of a registered robot"):
        sweep(1.0, {"real": (1,)})
    for workers in (-1, 0):
        with pytest.raises(InvalidInput, match="workers must be a whole number"):
            sweep(Waiting(), {"root": (1,)}, workers=workers)
    (tmp_path / "file").write_text("")
    with pytest.raises(FileProblem, match="cannot be made a folder"):
        sweep(Waiting(), {"root": (1,)}, out=tmp_path / "file")
