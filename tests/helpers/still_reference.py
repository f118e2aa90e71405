"""A reference that stands still, for tests."""

from __future__ import annotations

import numpy as np

from drakebots.robots.hamr import Reference
from drakebots.robots.hamr.reference import coordinate_names


def still(**change):
    n = len(coordinate_names())
    values = {
        "time": [0.0, 0.01, 0.03],
        "q": np.zeros((3, n)),
        "v": np.zeros((3, n)),
        "voltages": np.array([np.full(8, 50.0), np.full(8, 150.0)]),
        "periodic": True,
        "friction": 0.5,
    }
    return Reference(**(values | change))
