"""Time stepping as a system of Drake."""

from __future__ import annotations

import numpy as np
import pytest
from pydrake.systems.analysis import Simulator

from drakebots import build_robot, load
from drakebots.core.units import MM_G_MS
from drakebots.multibody import SteppedPlant, TimeStepper


def test_stepped_plant_is_the_stepper():
    robot = build_robot(load("hamr"), scaling=MM_G_MS, base="euler", time_step=0)
    system = SteppedPlant(robot, 2e-4, friction=0.5)
    simulator = Simulator(system)
    context = simulator.get_mutable_context()
    nq = robot.plant.num_positions()
    start = np.zeros(2 * nq)
    start[2] = 12.54
    system.SetPositionsAndVelocities(context, start)
    assert np.array_equal(system.GetPositionsAndVelocities(context), start)
    u = 0.1 * np.ones(8)
    system.GetInputPort("actuation").FixValue(context, u)
    simulator.AdvanceTo(9.5 * 0.2)
    stepper = TimeStepper(robot, 0.2, friction=0.5)
    q, v = start[:nq], start[nq:]
    for _ in range(10):
        q, v, forces = stepper.step(q, v, u)
    found = system.GetOutputPort("state").Eval(context)
    assert found == pytest.approx(np.r_[q, v], abs=1e-12)
    contact = system.GetOutputPort("contact").Eval(context)
    # The base's z row is the sum of the normal forces.
    assert contact[2] == pytest.approx(forces.normal.sum(), abs=1e-12)
    assert forces.normal.sum() > 0


def test_failed_step_is_what_a_run_reports():
    robot = build_robot(load("hamr"), scaling=MM_G_MS, base="euler", time_step=0)
    system = SteppedPlant(robot, 2e-4, friction=0.5)
    simulator = Simulator(system)
    nan = np.full(8, np.nan)
    system.GetInputPort("actuation").FixValue(simulator.get_mutable_context(), nan)
    with pytest.raises(RuntimeError, match="finite"):
        simulator.AdvanceTo(1.0)
