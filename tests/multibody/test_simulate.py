"""How a run ends: at its end, diverged, failed, stopped; and its labelled data."""

import numpy as np
import pytest
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import DiagramBuilder, EventStatus
from pydrake.systems.primitives import ConstantVectorSource

from drakebots.core.run import Stop, Verdict
from drakebots.core.units import MM_G_MS
from drakebots.formats import load
from drakebots.multibody import Ground, advance, build_robot, trajectory_dataset


def falling(scaling=MM_G_MS):
    """A brick above the ground: its simulator and robot."""
    builder = DiagramBuilder()
    robot = build_robot(load("brick"), builder, scaling=scaling, ground=Ground(0.5))
    if robot.plant.num_actuated_dofs():
        zero = builder.AddSystem(ConstantVectorSource([0.0]))
        builder.Connect(zero.get_output_port(0), robot.plant.get_actuation_input_port())
    simulator = Simulator(builder.Build())
    simulator.Initialize()
    return simulator, robot


def test_the_end_in_seconds():
    simulator, robot = falling()
    heard = []
    end = advance(simulator, robot, 0.1, progress=lambda *news: heard.append(news))
    assert end.ok and end.message == "reached 0.1 s"
    assert end.time == pytest.approx(0.1) and end.steps == 100 == len(heard)
    assert heard[49] == ("simulate", 0.05, 0.1)
    assert simulator.get_context().get_time() == pytest.approx(100)  # ms


def test_poll_period():
    simulator, robot = falling()
    end = advance(simulator, robot, 0.2, poll_period=1e-3)
    assert end.steps == 200


def test_a_stop_of_the_caller():
    simulator, robot = falling()

    def stop():
        late = simulator.get_context().get_time() > 50
        return Stop(Verdict.SUCCESS, "far enough") if late else None

    end = advance(simulator, robot, 0.1, stop=stop)
    assert end.ok and end.message == "far enough"
    assert end.time == pytest.approx(0.051)


def test_divergence():
    simulator, robot = falling()

    def break_state(context):
        if context.get_time() > 30:
            plant_context = robot.plant.GetMyMutableContextFromRoot(context)
            state = plant_context.get_mutable_discrete_state_vector()
            state.SetFromVector(np.full(state.size(), np.nan))
        return EventStatus.DidNothing()

    simulator.set_monitor(break_state)
    end = advance(simulator, robot, 0.1)
    assert end.verdict is Verdict.FAILED and "diverged before 0.03" in end.message


def test_a_failure_inside_drake():
    simulator, robot = falling()

    def fail(context):
        if context.get_time() > 30:
            raise RuntimeError("no\nconvergence")
        return EventStatus.DidNothing()

    simulator.set_monitor(fail)
    end = advance(simulator, robot, 0.1)
    assert end.verdict is Verdict.FAILED and "no convergence" in end.message
    assert end.time <= 0.032


def test_data_in_si():
    """The same motion in two systems of units."""
    data = {}
    for scaling in (MM_G_MS, MM_G_MS.__class__()):
        _, robot = falling(scaling)
        nq, nv = robot.plant.num_positions(), robot.plant.num_velocities()
        state = np.zeros((2, nq + nv))
        state[:, 0] = 1.0
        state[1, 4:7] = np.array([1.0, 2.0, 3.0]) / scaling.length
        state[1, nq + 3 :] = 1.0 / scaling.velocity
        times = np.array([0.0, 0.5]) / scaling.time
        data[scaling.length] = trajectory_dataset(robot, times, state)
    si, scaled = data[1.0], data[1e-3]
    assert list(si.position_unit.values[:4]) == ["rad"] * 4
    assert np.allclose(si.base_position[1], [1, 2, 3])
    assert np.allclose(si.foot_velocity[1], 1.0)
    for name in si.variables:
        if si[name].dtype.kind == "f":
            assert np.allclose(si[name], scaled[name]), name
