"""Motion capture is late; the estimator makes up for it."""

from __future__ import annotations

import numpy as np
import pytest
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import DiagramBuilder, LeafSystem
from pydrake.systems.primitives import LogVectorOutput

from drakebots.robots.hamr.reference import CHASSIS
from drakebots.robots.hamr.track.feedback import LegEstimator, MotionCapture
from drakebots.robots.hamr.track.leg_map import hamr_leg_map

SAMPLE = 4e-4


class Signal(LeafSystem):
    """A function of time [ms] as an output."""

    def __init__(self, size, function):
        super().__init__()
        self.DeclareVectorOutputPort(
            "y", size, lambda c, out: out.SetFromVector(function(c.get_time()))
        )


def see(chain, tips, speeds=None, end=100.0, **options):
    """(times [ms], seen legs, estimated legs, estimated velocities) (T, 4, 3).

    `tips` and `speeds` are functions of time [ms] in m and m/s; the encoders
    tell the speeds of the sample before. What is logged at a moment is from
    before that moment's updates.
    """
    robot, builder = chain.robot, DiagramBuilder()
    plant = robot.plant
    context = plant.CreateDefaultContext()

    def state(t):
        q = chain.solve(context, dict(zip(chain.joints, np.ravel(tips(t)) * 1e3)))
        return np.r_[q, np.zeros(plant.num_velocities())]

    def late(t):
        return np.ravel(speeds(t - SAMPLE * 1e3)) if speeds else np.zeros(8)

    source = builder.AddSystem(Signal(plant.num_multibody_states(), state))
    frames = builder.AddSystem(MotionCapture(robot, **options))
    encoder = builder.AddSystem(Signal(8, late))
    estimator = builder.AddSystem(LegEstimator(robot.scaling.time))
    builder.Connect(source.get_output_port(), frames.GetInputPort("state"))
    for port in ("legs", "time"):
        builder.Connect(frames.GetOutputPort(port), estimator.GetInputPort(port))
    builder.Connect(encoder.get_output_port(), estimator.GetInputPort("velocity"))
    logs = [
        LogVectorOutput(port, builder, publish_period=SAMPLE * 1e3)
        for port in (
            frames.GetOutputPort("legs"),
            estimator.GetOutputPort("legs"),
            estimator.GetOutputPort("velocity"),
        )
    ]
    diagram = builder.Build()
    simulator = Simulator(diagram)
    simulator.AdvanceTo(end)
    found = [log.FindLog(simulator.get_context()) for log in logs]
    columns = [log.data().T.reshape(-1, 4, 3).copy() for log in found]
    return found[0].sample_times().copy(), *columns


def place(chain, tips):
    context = chain.robot.plant.CreateDefaultContext()
    chain.solve(context, dict(zip(chain.joints, np.ravel(tips) * 1e3)))
    return chain.robot.points_positions(context, CHASSIS)


# Swing and lift of each leg out of step, within what the voltages reach.
PHASES = np.linspace(0, 5, 8).reshape(4, 2)
SIZES = np.array([1.5e-4, 1.0e-4])


@pytest.mark.parametrize(("frequency", "bound"), [(10, 1e-6), (30, 7e-6)])
def test_estimator_recovers_a_known_motion(chain, frequency, bound):
    # The bound [m] is on every coordinate at every sample after the first
    # frame; the legs move by +-2 mm. Measured 0.8 and 5.6 um.
    omega = 2 * np.pi * frequency

    def tips(t):
        return SIZES * np.sin(omega * t * 1e-3 + PHASES)

    def speeds(t):
        return SIZES * omega * np.cos(omega * t * 1e-3 + PHASES)

    times, seen, estimated, velocity = see(chain, tips, speeds, end=60.0)
    true = np.array([place(chain, tips(t)) for t in times])
    late = np.flatnonzero(times > 12.0)[1:]
    error = np.abs(estimated[late] - true[late - 1])
    assert error.max() < bound
    # Without it, the frames are late by 11 to 13 ms.
    assert np.abs(seen[late] - true[late - 1]).max() > 100 * bound
    # The velocity is a sample older than the position.
    rate = (true[late - 1] - true[late - 3]) / (2 * SAMPLE)
    assert np.abs(velocity[late] - rate).max() < 0.01 * np.abs(rate).max()


def test_step_shows_up_after_the_latency(chain):
    # The step falls between the frames at 20 and 22 ms.
    def tips(t):
        return np.full((4, 2), 5e-5 if t > 20.3 else 0.0)

    times, seen, estimated, _ = see(chain, tips, end=40.0)
    before, after = place(chain, tips(0.0)), place(chain, tips(30.0))
    shown = times > 33.0 + 1e-6
    # (The very first entry is from before the first update.)
    assert np.abs(seen[~shown] - before).max() < 1e-12
    assert np.abs(seen[shown] - after).max() < 1e-12
    # Without encoders the estimator can do no better; it samples at 33.2 ms.
    reported = times > 33.2 + 1e-6
    assert np.abs(estimated[~reported][1:] - before).max() < 1e-12
    assert np.abs(estimated[reported] - after).max() < 1e-12


def test_noise_of_the_frames(chain):
    def run(seed):
        rest = np.zeros((4, 2))
        return see(chain, lambda t: rest, end=40, noise=1e-5, seed=seed)[1]

    first = run(1)
    assert np.array_equal(first, run(1))
    assert not np.array_equal(first, run(2))
    noise = first - hamr_leg_map().neutral
    assert noise.std() == pytest.approx(1e-5, rel=0.3)
