"""The gait in time, the camera, and the planner between them."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import DiagramBuilder
from pydrake.systems.primitives import ConstantVectorSource, LogVectorOutput

from drakebots.core.errors import InvalidInput
from drakebots.robots.gecko.engines import PhaseTimes
from drakebots.robots.gecko.engines.controllers import (
    Camera,
    CameraSystem,
    GaitSequencer,
    GeneratorSystem,
)
from drakebots.robots.gecko.model import fixation, gait_law

TIMES = PhaseTimes(0.2, 0.1, 1.0)
Q1, START = np.radians(70.0), gait_law(np.radians(-70.0), 0.1)


class Fake:
    """Returns given gaits, then None; stores the measured poses."""

    def __init__(self, gaits):
        self.gaits, self.seen = list(gaits), []

    def decide(self, position, heading):
        self.seen.append((*position, heading))
        if not self.gaits:
            return None
        q1, q2 = self.gaits.pop(0)
        return SimpleNamespace(q1=q1, q2=q2, target=0, distance=0.1)


def play(source, seconds):
    builder = DiagramBuilder()
    sequencer = builder.AddSystem(GaitSequencer(START, TIMES))
    if isinstance(source, tuple):
        made = builder.AddSystem(ConstantVectorSource([*source, 1.0]))
        builder.Connect(made.get_output_port(), sequencer.get_input_port())
    else:
        pose = builder.AddSystem(ConstantVectorSource([0.1, 0.2, 0.3]))
        camera = builder.AddSystem(CameraSystem())
        brain = builder.AddSystem(GeneratorSystem(source, TIMES.half_cycle))
        builder.Connect(pose.get_output_port(), camera.get_input_port())
        builder.Connect(camera.get_output_port(), brain.get_input_port())
        builder.Connect(
            brain.GetOutputPort("gait_parameters"), sequencer.get_input_port()
        )
    logs = {
        name: LogVectorOutput(
            sequencer.GetOutputPort(name), builder, publish_period=0.01
        )
        for name in ("desired_bending", "fixation", "gait")
    }
    diagram = builder.Build()
    simulator = Simulator(diagram)
    simulator.AdvanceTo(seconds)
    context = simulator.get_context()

    def at(name, time):
        log = logs[name].FindLog(context)
        return log.data()[:, np.argmin(abs(log.sample_times() - time))]

    return at


def test_phases_of_a_half_cycle():
    at = play((Q1, 0.1), 2.7)
    held = fixation(1)
    for start, sign in ((0.0, 1), (1.3, -1)):
        before, after = gait_law(-sign * Q1, 0.1), gait_law(sign * Q1, 0.1)
        assert (at("fixation", start + 0.1) == 1).all()
        np.testing.assert_allclose(at("desired_bending", start + 0.1), before)
        expected = held if sign > 0 else ~held
        assert (at("fixation", start + 0.25) == expected).all()
        np.testing.assert_allclose(at("desired_bending", start + 0.25), before)
        np.testing.assert_allclose(
            at("desired_bending", start + 0.45), (before + after) / 2, atol=0.02
        )
        np.testing.assert_allclose(at("desired_bending", start + 1.25), after)
        assert (at("fixation", start + 1.25) == expected).all()
        gait = at("gait", start + 0.25)
        np.testing.assert_allclose(gait[1:3], [sign * Q1, 0.1])
        assert gait[3] == (1 if sign > 0 else 2)
    assert [at("gait", t)[0] for t in (0.1, 0.25, 0.9)] == [0, 1, 2]


def test_q_is_sampled_once_a_half_cycle_until_arrival():
    fake = Fake([(Q1, 0.1), (0.9, -0.2)])
    at = play(fake, 1.3 * 4)
    assert len(fake.seen) == 4
    np.testing.assert_allclose(fake.seen, [[0.1, 0.2, 0.3]] * 4)
    np.testing.assert_allclose(at("gait", 1.0)[1:3], [Q1, 0.1])
    np.testing.assert_allclose(at("gait", 2.5)[1:3], [-0.9, -0.2])
    # Arrived: all feet hold, the limbs stay as they are.
    assert at("gait", 5.1)[3] == 2
    assert (at("fixation", 5.1) == 1).all()
    np.testing.assert_allclose(at("desired_bending", 5.1), gait_law(-0.9, -0.2))


def see(seconds=1.0, **options):
    builder = DiagramBuilder()
    pose = builder.AddSystem(ConstantVectorSource([0.1, 0.2, 0.3]))
    camera = builder.AddSystem(CameraSystem(Camera(**options)))
    builder.Connect(pose.get_output_port(), camera.get_input_port())
    log = LogVectorOutput(camera.get_output_port(), builder, publish_period=0.1)
    simulator = Simulator(builder.Build())
    simulator.AdvanceTo(seconds)
    return log.FindLog(simulator.get_context()).data().T


def test_camera_samples_with_noise_of_a_seed():
    np.testing.assert_allclose(see(), [[0.1, 0.2, 0.3]] * 11)
    noise = {"position_noise": 2e-3, "heading_noise": 0.01}
    a, b, c = (see(20.0, seed=seed, **noise) for seed in (1, 1, 2))
    assert (a == b).all() and (a != c).any()
    np.testing.assert_allclose(a.std(axis=0), [2e-3, 2e-3, 0.01], rtol=0.3)
    np.testing.assert_allclose(a.mean(axis=0), [0.1, 0.2, 0.3], atol=3e-3)


def test_phase_times():
    assert PhaseTimes() == PhaseTimes(0.2, 0.1, 1.0)
    assert PhaseTimes(0.2004, 0.0001, 1.0).rounded(1e-3) == PhaseTimes(0.2, 1e-3, 1.0)
    assert TIMES.half_cycle == pytest.approx(1.3)


@pytest.mark.parametrize(
    "make",
    [
        lambda: PhaseTimes(fix=0.0),
        lambda: PhaseTimes(move=np.nan),
        lambda: Camera(0.0),
        lambda: Camera(position_noise=-1.0),
        lambda: Camera(heading_noise=np.inf),
    ],
)
def test_bad_values_are_refused(make):
    with pytest.raises(InvalidInput) as caught:
        make()
    assert "\n" not in str(caught.value)
