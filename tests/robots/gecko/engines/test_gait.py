"""Gaits by the pose step: their motion per cycle."""

import numpy as np
import pytest

from drakebots.robots.gecko.engines import cycle_motion
from drakebots.robots.gecko.model import gecko

ROBOT = gecko()


def test_a_settled_cycle_repeats():
    a = cycle_motion(ROBOT, 1.2, 0.4, settle=6)
    b = cycle_motion(ROBOT, 1.2, 0.4, settle=7)
    assert a.rotation == pytest.approx(b.rotation, abs=1e-6)
    assert a.forward == pytest.approx(b.forward, abs=1e-8)


def test_saturation_turns_less_at_large_steps():
    """As the paper's robot did for q1 >= 80 deg."""
    free = cycle_motion(ROBOT, np.radians(90), 0.5)
    bound = cycle_motion(ROBOT, np.radians(90), 0.5, limited=True)
    assert abs(bound.rotation) < abs(free.rotation)
