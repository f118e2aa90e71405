"""Robots written as files in the world are written: load, feet, stand, simulate.

One small robot of our own for each habit (tests/helpers/robot_files.py). The public
ones are in test_zoo_packages.py.
"""

import numpy as np
import pytest

from drakebots.formats import load
from drakebots.multibody import find_posture
from drakebots.robots.legged import Simulation, simulate
from tests.helpers.robot_files import HABITS

QUICK = ("plain", "mjcf_home")
"""Habits whose robots stand in the tests of seconds; the others in the long ones."""


@pytest.mark.parametrize("name", HABITS)
def test_loads_as_it_is(name, tmp_path):
    """Feet and motors are found, and what is wrong with the file is said."""
    habit = HABITS[name]
    model = load(habit.write(tmp_path))
    assert len({foot.body for foot in model.feet}) == habit.legs
    assert len(model.loops) == habit.loops
    assert len(model.summary.actuators) > 0
    assert np.isfinite(model.summary.mass)
    said = " ".join(model.notes).lower()
    for word in habit.notes:
        assert word in said, model.notes


@pytest.mark.parametrize("name", QUICK)
def test_stands_on_the_ground(name, tmp_path):
    """All feet on the ground, held there by servos."""
    _stand(HABITS[name].write(tmp_path))


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in HABITS if name not in QUICK])
def test_all_stand_on_the_ground(name, tmp_path):
    """The same for every habit."""
    _stand(HABITS[name].write(tmp_path))


def _stand(path):
    model = load(path)
    posture = find_posture(model)
    assert posture.stands, posture.faults
    assert posture.residuals["foot height [m]"] < 1e-3
    assert posture.residuals["loop rows"] < 1e-9
    result = simulate(Simulation(model, duration=0.1, pose=posture.joints))
    assert result.ok, result.message
    height = result.data.base_position.values[:, 2]
    assert np.ptp(height) < 0.02, "it sinks or jumps"
    assert height[0] == pytest.approx(posture.X_WB.translation()[2], abs=2e-3)
