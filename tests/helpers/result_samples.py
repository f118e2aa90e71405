"""A result for tests, and how files are refused."""

import numpy as np
import pytest
import xarray as xr

from drakebots.core.errors import ResultProblem
from drakebots.core.run import Verdict
from drakebots.results import Result, load_result

N = 5


def make_data(n=N):
    time = np.linspace(0.0, 0.4, n)
    return xr.Dataset(
        {
            "position": (
                ("time", "axis"),
                np.arange(3.0 * n).reshape(n, 3) / 7,
                {"units": "m"},
            ),
            "foot_force": (
                ("time", "foot", "axis"),
                np.full((n, 2, 3), 0.1),
                {"units": "N"},
            ),
            "stance": (("time", "foot"), np.ones((n, 2), bool), {"units": "1"}),
            "mass": ((), 1.5e-3, {"units": "kg", "long_name": "total mass"}),
            "phase": ("time", [f"é{i}" for i in range(n)]),
        },
        coords={
            "time": ("time", time, {"units": "s"}),
            "axis": ["x", "y", "z"],
            "foot": ["front_left", "hinten_übrig"],
        },
        attrs={"title": "trot"},
    )


def make(**changes):
    fields = {
        "kind": "hamr.simulation",
        "model": "hamr",
        "verdict": Verdict.SUCCESS,
        "message": "reached the end",
        "data": make_data(),
        "residuals": {"loop gap": 1e-9, "contact": 2e-6},
        "timings": {"build": 0.25, "run": 1.5},
        "metrics": {"speed": 0.17, "steps": [1, 2], "more": {"a": None, "b": True}},
        "provenance": {"seed": 3, "options": {"step": 1e-4}},
    }
    return Result(**fields | changes)


def problem(path):
    """The one-line message with which a file is refused."""
    with pytest.raises(ResultProblem) as caught:
        load_result(path)
    message = str(caught.value)
    assert "\n" not in message and str(path) in message
    return message


def files(folder):
    return sorted(p.name for p in folder.iterdir())
