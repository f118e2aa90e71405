"""Gaits: the authors' trot, the signs of the legs, limits, moves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydrake.multibody.tree import JacobianWrtVariable

from drakebots import InvalidInput, UnknownName, build_robot, load
from drakebots.core.units import MM_G_MS
from drakebots.multibody import ClosedChain
from drakebots.robots.hamr import GaitSource, gait_names, make_waveform
from drakebots.robots.hamr.gaits import FORWARD, UP
from drakebots.robots.hamr.model import hamr_benders

PERIODIC = ["trot", "pronk", "bound", "pace"]


def test_names():
    assert gait_names() == [*PERIODIC, "jump"]


@pytest.mark.parametrize("frequency", [2.0, 10.0, 30.0])
def test_trot_is_the_authors_warm_start(frequency):
    wave, law = make_waveform("trot", frequency), hamr_benders()
    # F sin(2 pi f t + phase); FL, RL, FR, RR, swing then lift.
    phase = np.radians([90, 0, 90, 180, 90, 0, 90, 180])
    for time in np.linspace(0, 5 / frequency, 301):
        size = 0.25 * min(1.0, time * frequency / 2)
        expected = size * np.sin(2 * np.pi * frequency * time + phase)
        forces = law.force(wave.voltages(time), 0.0)
        assert forces == pytest.approx(expected, abs=1e-12)


def test_signs_agree_with_the_transmission():
    model = load("hamr")
    robot = build_robot(model, scaling=MM_G_MS, base="fixed", time_step=0)
    plant = robot.plant
    names = tuple(
        plant.get_joint_actuator(i).joint().name()
        for i in plant.GetJointActuatorIndices()
    )
    chain, context = ClosedChain(robot, names), plant.CreateDefaultContext()
    chain.solve(context, dict.fromkeys(names, 0.0))
    tangent, world = chain.tangent(context), plant.world_frame()
    for leg, foot in enumerate(model.feet):
        J = plant.CalcJacobianTranslationalVelocity(
            context,
            JacobianWrtVariable.kV,
            plant.GetBodyByName(foot.body).body_frame(),
            1e3 * foot.p_BF,
            world,
            world,
        )
        H = J @ tangent
        own = H[:, 2 * leg : 2 * leg + 2]
        assert np.sign(own[0, 0]) == FORWARD[leg]
        assert np.sign(own[2, 1]) == UP[leg]
        # Facts of the model: 14.302 forward and 13.069 up, per tip motion.
        assert np.abs(own[0]) == pytest.approx([14.302, 0], abs=1e-3)
        assert np.abs(own[2]) == pytest.approx([0, 13.069], abs=1e-3)
        others = np.delete(H, [2 * leg, 2 * leg + 1], axis=1)
        assert np.abs(others).max() < 1e-9


@pytest.mark.parametrize("gait", PERIODIC)
def test_feet_swing_forward_while_up(gait):
    # Pronk, bound and pace lead by half a turn: see gaits.yaml.
    wave = make_waveform(gait, 10.0)
    phase = np.linspace(0, 0.1, 400, endpoint=False) + 0.5
    x, z = (np.array(c) for c in zip(*(wave.commands(t) for t in phase)))
    rate = np.gradient(x, phase, axis=0)
    work = (rate * z).mean(axis=0)
    expected = 1 if gait == "trot" else -1
    assert (np.sign(work) == expected).all()


@pytest.mark.parametrize("gait", PERIODIC)
def test_periodic_after_the_ramp(gait):
    wave = make_waveform(gait, 7.0)
    assert wave.periodic
    for time in np.linspace(wave.ramp, wave.ramp + 1, 20) * wave.period:
        later = wave.voltages(time + wave.period)
        assert wave.voltages(time) == pytest.approx(later, abs=1e-9)


@given(
    st.sampled_from([*PERIODIC, "jump"]),
    st.floats(0.1, 200),
    st.floats(0, 112.5),
    st.floats(0, 112.5),
    st.floats(0, 100),
)
@settings(deadline=None)
def test_voltages_stay_in_range(gait, frequency, swing, lift, time):
    frequency = None if gait == "jump" else frequency
    for sizes in ({}, {"swing_voltage": swing, "lift_voltage": lift}):
        voltages = make_waveform(gait, frequency, **sizes).voltages(time)
        assert voltages.shape == (8,)
        assert voltages.min() >= -1e-9
        assert voltages.max() <= 225 + 1e-9


@given(st.floats(0, 0.4))
@settings(deadline=None)
def test_jump_interpolates(time):
    wave = make_waveform("jump")
    x, z = wave.commands(time)
    knots = np.array([0, 25, 75, 95, 250]) * 1e-3
    assert z == pytest.approx(np.full(4, np.interp(time, knots, [0, 1, 1, -1, -1])))
    assert not x.any()
    # Lifts move by 0.36 N, swings rest at half the bias.
    forces = hamr_benders().force(wave.voltages(time), 0.0)
    assert forces[1::2] == pytest.approx(0.36 * UP * z, abs=1e-12)
    assert forces[0::2] == pytest.approx(0, abs=1e-12)


def test_jump_is_a_move():
    wave = make_waveform("jump")
    assert not wave.periodic
    assert wave.period == pytest.approx(0.25)
    with pytest.raises(InvalidInput, match="not periodic"):
        make_waveform("jump", 10.0)


def one_line_error(kind, match, *args, **options):
    with pytest.raises(kind, match=match) as caught:
        make_waveform(*args, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_unknown_gait_suggests():
    message = one_line_error(UnknownName, "unknown gait", "trott")
    assert "did you mean 'trot'?" in message
    assert "jump" in message


@pytest.mark.parametrize("bad", [0.0, -10.0, np.nan, np.inf])
def test_bad_frequency(bad):
    one_line_error(InvalidInput, "frequency must be > 0 Hz", "trot", bad)


@pytest.mark.parametrize("name", ["swing", "lift"])
def test_bad_amplitude(name):
    option = f"{name}_voltage"
    for bad in (112.6, 225.0):
        message = one_line_error(
            InvalidInput, r"within 0\.\.112\.5 V", "trot", **{option: bad}
        )
        assert option in message
    for bad in (-1.0, np.nan, np.inf):
        one_line_error(InvalidInput, f"{option} must be", "trot", **{option: bad})
    assert getattr(make_waveform("trot", **{option: 112.5}), name) == 112.5


def test_source_plays_the_waveform_in_its_clock():
    wave = make_waveform("trot", 10.0)
    source = GaitSource(wave, time_unit=1e-3)
    context = source.CreateDefaultContext()
    for time in (0.0, 0.013, 0.25, 1.7):
        context.SetTime(1e3 * time)
        played = source.GetOutputPort("voltages").Eval(context)
        assert played == pytest.approx(wave.voltages(time), abs=1e-9)


def test_legs_lift_at_the_shares_that_are_given():
    wave = make_waveform("trot", 10.0, phases={"RL": 0.25, "FR": 0.5})
    assert np.allclose(np.degrees(wave.phase), [0, -90, -180, 0])
    _, height = wave.commands(0.225 + 1e-9)  # a quarter of the cycle, after the ramp
    assert height[1] == pytest.approx(0.0, abs=1e-6)
    assert wave.commands(0.23)[1][1] > 0.0
    same = make_waveform("trot", 10.0, phases={"RL": 0.5})
    assert np.allclose(
        same.voltages(0.337), make_waveform("trot", 10.0).voltages(0.337)
    )
    with pytest.raises(UnknownName, match="FL"):
        make_waveform("trot", phases={"left": 0.0})
