"""Shared by the tests of HAMR."""

from __future__ import annotations

import pytest

from drakebots import build_robot, load
from drakebots.core.units import MM_G_MS
from drakebots.multibody import ClosedChain
from drakebots.robots.hamr import Simulation, simulate
from drakebots.robots.hamr.reference import recorded_reference


@pytest.fixture(scope="session")
def plan():
    """The last cycle of an open-loop 10 Hz trot on card."""
    walk = simulate(Simulation(cycles=3)).data
    return recorded_reference(
        walk, 0.4, 0.5, periodic=True, friction=0.51, every=2, name="trot"
    )


@pytest.fixture(scope="session")
def chain():
    robot = build_robot(load("hamr"), scaling=MM_G_MS, base="fixed", time_step=0)
    plant = robot.plant
    actuators = [plant.get_joint_actuator(i) for i in plant.GetJointActuatorIndices()]
    return ClosedChain(robot, tuple(a.joint().name() for a in actuators))
