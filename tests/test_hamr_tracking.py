"""Plans executed with feedback: the parts of the rig, then the whole."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import DiagramBuilder, LeafSystem
from pydrake.systems.primitives import LogVectorOutput

from drakebots import InvalidInput, UnknownName, build_robot, load
from drakebots.multibody.kinematics import ClosedChain
from drakebots.multibody.stepped_system import SteppedPlant
from drakebots.multibody.timestepping import TimeStepper
from drakebots.results import Verdict, load_result
from drakebots.robots.hamr.controller import (
    Command,
    Gains,
    LegController,
    feedback_signs,
)
from drakebots.robots.hamr.estimator import LegEstimator, MotionCapture
from drakebots.robots.hamr.gaits import FORWARD, UP
from drakebots.robots.hamr.leg_map import hamr_leg_map
from drakebots.robots.hamr.piezo import hamr_benders
from drakebots.robots.hamr.recorded import recorded_reference
from drakebots.robots.hamr.reference import BODY, Reference, coordinate_names
from drakebots.robots.hamr.simulate import HamrSimulation, simulate
from drakebots.robots.hamr.tracking import Tracking, track
from drakebots.robots.hamr.variant import hamr_variant
from drakebots.units import MM_G_MS

SAMPLE = 4e-4


@pytest.fixture(scope="module")
def plan():
    """The last cycle of an open-loop 10 Hz trot on card."""
    walk = simulate(HamrSimulation(cycles=3)).data
    return recorded_reference(
        walk, 0.4, 0.5, periodic=True, friction=0.51, stride=2, name="trot"
    )


@pytest.fixture(scope="module")
def chain():
    robot = build_robot(load("hamr"), scaling=MM_G_MS, base="fixed", time_step=0)
    plant = robot.plant
    actuators = [plant.get_joint_actuator(i) for i in plant.GetJointActuatorIndices()]
    return ClosedChain(robot, tuple(a.joint().name() for a in actuators))


class Signal(LeafSystem):
    """A function of time [ms] as an output."""

    def __init__(self, size, function):
        super().__init__()
        self.DeclareVectorOutputPort(
            "y", size, lambda c, out: out.SetFromVector(function(c.get_time()))
        )


# Reference ----------------------------------------------------------------


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


def test_reference_holds_voltages():
    plan = still()
    for t, volts in ((0, 50), (0.0099, 50), (0.01, 150), (0.0299, 150), (0.03, 50)):
        assert plan.voltages_at(t).tolist() == [volts] * 8
        assert plan.voltages_at(t + 3 * plan.duration).tolist() == [volts] * 8
    once = still(periodic=False)
    assert once.voltages_at(1.0).tolist() == [150] * 8
    assert once.voltages_at(-1.0).tolist() == [50] * 8
    assert once.leg_velocities_at(1.0).tolist() == np.zeros((4, 3)).tolist()


def test_reference_legs(plan):
    # What the cycle lacks to close is spread: less than 1 mm, the validation's.
    for k in range(len(plan.time)):
        assert plan.legs_at(plan.time[k]) == pytest.approx(plan.legs[k], abs=1e-3)
    assert plan.legs_at(0.0) == pytest.approx(plan.legs[0], abs=1e-9)
    assert plan.legs_at(plan.duration) == pytest.approx(plan.legs_at(0.0), abs=1e-9)
    for t in (0.013, 0.0999999, 0.1000001, 0.25):
        step = 1e-7
        slope = (plan.legs_at(t + step) - plan.legs_at(t - step)) / (2 * step)
        assert plan.leg_velocities_at(t) == pytest.approx(slope, abs=1e-3)


def bent(name, value):
    q = np.zeros((3, len(coordinate_names())))
    q[-1, coordinate_names().index(name)] = value
    return q


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"time": [0.0]}, "two knots"),
        ({"time": [0.0, 0.02, 0.01]}, "increase"),
        ({"time": [0.01, 0.02, 0.03]}, "start at 0"),
        ({"q": np.zeros((3, 39))}, r"shape \(3, 38\)"),
        ({"v": np.full((3, 38), np.nan)}, "not finite"),
        ({"voltages": np.zeros((3, 8))}, r"shape \(2, 8\)"),
        ({"voltages": np.full((2, 8), 230.0)}, "230.0 V is outside"),
        ({"voltages": "high"}, "voltages"),
        ({"friction": -0.1}, "friction"),
        ({"q": bent("hamr_RLqfb3", 0.3)}, "not periodic: leg RL"),
    ],
)
def test_reference_refuses(change, words):
    with pytest.raises(InvalidInput, match=words) as caught:
        still(**change)
    assert "\n" not in str(caught.value)


def test_recorded_plan_is_the_walk(plan):
    names = coordinate_names()
    assert plan.q.shape == (len(plan.time), len(names))
    assert plan.duration == pytest.approx(0.1)
    # Rates are those of the positions: differences over 2 ms, in the mean.
    rates = np.diff(plan.q, axis=0) / np.diff(plan.time)[:, None]
    middle = 0.5 * (plan.v[1:] + plan.v[:-1])
    for k in range(6):
        assert np.abs(rates - middle)[:, k].mean() < 0.25 * np.abs(rates[:, k]).mean()
    with pytest.raises(InvalidInput, match="simulate longer"):
        recorded_reference(
            simulate(HamrSimulation(gait="jump", time_limit=1e-3)).data,
            0.0,
            9.0,
            periodic=False,
            friction=0.5,
        )


# Motion capture and estimator ----------------------------------------------


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
    estimator = builder.AddSystem(LegEstimator(robot))
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
    return chain.robot.points_positions(context, BODY)


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
    told = times > 33.2 + 1e-6
    assert np.abs(estimated[~told][1:] - before).max() < 1e-12
    assert np.abs(estimated[told] - after).max() < 1e-12


def test_noise_of_the_frames(chain):
    def run(seed):
        rest = np.zeros((4, 2))
        return see(chain, lambda t: rest, end=40, noise=1e-5, seed=seed)[1]

    first = run(1)
    assert np.array_equal(first, run(1))
    assert not np.array_equal(first, run(2))
    noise = first - hamr_leg_map().neutral
    assert noise.std() == pytest.approx(1e-5, rel=0.3)


def test_motion_capture_refuses(chain):
    for option in ({"latency": 0.0}, {"period": -1.0}, {"noise": np.nan}):
        with pytest.raises(InvalidInput, match="motion capture"):
            MotionCapture(chain.robot, **option)


# Controller ----------------------------------------------------------------


def command_voltages(command, legs, velocity=None, gains=None, ticks=1):
    controller = LegController(command, gains)
    simulator = Simulator(controller)
    context = simulator.get_mutable_context()
    controller.GetInputPort("legs").FixValue(context, np.ravel(legs))
    still = np.zeros(12) if velocity is None else np.ravel(velocity)
    controller.GetInputPort("velocity").FixValue(context, still)
    simulator.AdvanceTo((ticks - 0.5) * SAMPLE)
    return controller.GetOutputPort("voltages").Eval(context)


def test_feedback_is_stabilising():
    """More voltage by feedback pushes each foot to where it lacks."""
    law, command = hamr_benders(), Command(still(periodic=False))
    legs = command.reference.legs[0]
    rest = command_voltages(command, legs)
    assert rest == pytest.approx(np.full(8, 50.0))
    for axis, actuators, sense in (
        (0, slice(0, 8, 2), FORWARD),
        (2, slice(1, 8, 2), UP),
    ):
        behind = legs.copy()
        behind[:, axis] -= 1e-4
        volts = command_voltages(command, behind)
        assert np.abs(volts - rest)[actuators] == pytest.approx(np.full(4, 4.0))
        push = law.force(volts, 0.0) - law.force(rest, 0.0)
        assert np.all(push[actuators] * sense > 0)
        assert np.count_nonzero(volts - rest) == 4
        fast = np.zeros((4, 3))
        fast[:, axis] = 0.1
        volts = command_voltages(command, legs, fast)
        assert np.abs(volts - rest)[actuators] == pytest.approx(np.full(4, 5.0))
        push = law.force(volts, 0.0) - law.force(rest, 0.0)
        assert np.all(push[actuators] * sense < 0)


def test_signs_against_the_leg_map():
    # A force moves the foot as its tip does: dx/du of both tells the sign.
    H = hamr_leg_map()(hamr_leg_map().neutral)
    gain = np.column_stack([H[:, 0, 0], H[:, 2, 1]]).ravel()
    per_volt = -hamr_benders().orientation * gain
    assert np.array_equal(feedback_signs(), np.sign(per_volt))


def test_sideways_errors_are_ignored_and_voltages_clipped():
    command = Command(still(periodic=False))
    legs = command.reference.legs[0]
    rest = command_voltages(command, legs)
    assert command_voltages(command, legs + np.array([0, 1e-3, 0])) == pytest.approx(
        rest
    )
    far = command_voltages(command, legs + np.array([5e-3, 0, 5e-3]))
    assert set(far.tolist()) == {0.0, 225.0}


def test_feed_forward_gain_is_about_the_middle():
    command = Command(still(periodic=False))
    legs = command.reference.legs[0]
    volts = command_voltages(command, legs, gains=Gains(0.0, 0.0, 0.9))
    assert volts == pytest.approx(np.full(8, 112.5 + 0.9 * (50 - 112.5)))


def test_ramp(plan):
    faded = Command(plan, ramp=0.2)
    assert faded.voltages(0.0) == pytest.approx(np.full(8, 112.5))
    assert faded.legs(0.0)[0] == pytest.approx(hamr_leg_map().neutral)
    assert np.array_equal(faded.voltages(0.23), plan.voltages_at(0.03))
    assert faded.legs(0.23)[0] == pytest.approx(plan.legs_at(0.03), abs=1e-9)
    half = 0.5 * (plan.voltages_at(0.0) + 112.5)
    assert faded.voltages(0.1) == pytest.approx(half)
    for t in (0.05, 0.15):
        slope = (faded.legs(t + 1e-7)[0] - faded.legs(t - 1e-7)[0]) / 2e-7
        assert faded.legs(t)[1] == pytest.approx(slope, abs=1e-3)
    # What is not periodic waits for the ramp to end.
    once = Command(replace(plan, periodic=False), ramp=0.2)
    assert np.array_equal(once.voltages(0.23), plan.voltages_at(0.03))
    assert np.array_equal(once.voltages(0.2), plan.voltages_at(0.0))


@pytest.mark.parametrize("gains", [{"kp": -1.0}, {"kd": np.nan}, {"kf": np.inf}])
def test_gains_refuse(gains):
    with pytest.raises(InvalidInput, match=f"{next(iter(gains))} must be"):
        Gains(**gains)


# Time stepping as a system ---------------------------------------------------


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


def test_stepped_plant_needs_rates():
    robot = build_robot(load("hamr"), scaling=MM_G_MS, time_step=0)
    with pytest.raises(InvalidInput, match="euler"):
        SteppedPlant(robot, 1e-4)


# The whole -------------------------------------------------------------------


@pytest.fixture(scope="module", params=["sap", "stepping"])
def run(request, plan):
    return track(Tracking(plan, cycles=1, contact=request.param))


def test_tracks(run):
    assert run.verdict is Verdict.SUCCESS
    metrics = run.metrics
    assert metrics["cycles"] == 1
    assert metrics["stride_mm_per_cycle"] > 5
    assert metrics["leg_error_x_mm"] < 0.25
    assert metrics["leg_error_z_mm"] < 0.25
    assert max(metrics["estimator_error_mm"]) < 0.04
    assert metrics["clipped_share"] < 0.02
    assert metrics["loop_gap_max_mm"] < 1e-2
    assert 0 <= metrics["slip"] < 0.6
    assert metrics["body_error"]["z_mm"] < 0.5
    assert metrics["friction"] == 0.51
    assert 8 < metrics["planned_stride_mm"] < 13


def test_data_of_a_run(run, plan, tmp_path):
    data = run.data
    for name in data.data_vars:
        assert data[name].attrs.get("units"), name
    assert data.time.values[-1] == pytest.approx(0.3)
    assert data.leg_planned.dims == ("time", "leg", "axis")
    last = data.sel(time=0.23, method="nearest")
    wanted = plan.legs_at(float(last.time))
    assert last.leg_planned.values == pytest.approx(wanted, abs=1e-6)
    # The base is the chassis, not the first body in Drake's order.
    assert data.base_position.values[0] == pytest.approx([0, 0, 12.69e-3])
    weight = 9.81 * load("hamr").summary.mass
    carried = data.foot_force.sel(axis="z").sum("foot").values[200:].mean()
    assert carried == pytest.approx(weight, rel=0.25)
    assert load_result(run.save(tmp_path / "run.nc")) == run


def test_feedback_helps(run, plan):
    contact = run.metrics["contact"]
    free = track(Tracking(plan, cycles=1, contact=contact, kp=0.0, kd=0.0))
    for name in ("leg_error_x_mm", "leg_error_z_mm"):
        assert run.metrics[name] < 0.75 * free.metrics[name]
    assert free.metrics["clipped_share"] == 0


def test_other_springs_and_noise(plan):
    soft = track(
        Tracking(
            plan,
            cycles=1,
            ramp=1,
            stiffness_scale=0.5,
            serial_stiffness=1e-3,
            kp=10e3,
            kd=2.0,
            mocap_noise=2e-5,
            encoder_noise=1e-6,
        )
    )
    assert soft.ok
    twists = [n for n in soft.data.coordinate.values if n.endswith("twist")]
    assert len(twists) == 4
    bend = np.abs(soft.data.position.sel(coordinate=twists)).max().item()
    assert np.radians(1) < bend < np.radians(15)
    assert soft.metrics["loop_gap_max_mm"] < 1e-2


def test_jump_starts_in_the_plan():
    jump = simulate(HamrSimulation(gait="jump")).data
    plan = recorded_reference(jump, 0.0, 0.25, periodic=False, friction=0.51)
    done = track(Tracking(plan, after=0.0))
    assert done.ok
    assert done.data.time.values[-1] == pytest.approx(0.25)
    # Open loop it rose 12.0 mm; feedback pushes a little harder.
    assert done.metrics["planned_apex_rise_mm"] == pytest.approx(12.0, abs=0.5)
    assert done.metrics["apex_rise_mm"] == pytest.approx(12.5, abs=1.5)


def test_a_jump_goes_on_after_its_plan():
    jump = simulate(HamrSimulation(gait="jump")).data
    plan = recorded_reference(jump, 0.0, 0.1, periodic=False, friction=0.51)
    done = track(Tracking(plan, after=0.02))
    assert done.data.time.values[-1] == pytest.approx(0.12)


def test_cut_short(plan):
    done = track(Tracking(plan, cycles=1, time_limit=0.05))
    assert done.verdict is Verdict.TIME_LIMIT
    assert done.metrics["cycles"] == 0


def test_failed_step_is_what_a_run_reports():
    robot = build_robot(load("hamr"), scaling=MM_G_MS, base="euler", time_step=0)
    system = SteppedPlant(robot, 2e-4, friction=0.5)
    simulator = Simulator(system)
    nan = np.full(8, np.nan)
    system.GetInputPort("actuation").FixValue(simulator.get_mutable_context(), nan)
    with pytest.raises(RuntimeError, match="finite"):
        simulator.AdvanceTo(1.0)


def test_odd_period_counts_every_cycle(plan):
    # A period that no sampling divides.
    odd = replace(plan, time=plan.time * 0.9873)
    done = track(Tracking(odd, cycles=2, ramp=0.5))
    assert done.ok
    assert done.metrics["cycles"] == 2
    assert len(done.metrics["stride_mm"]) == 2


def test_variants():
    standard = load("hamr")
    assert hamr_variant() is not None
    assert hamr_variant().text is None

    def springs(model):
        robot = build_robot(model, base="fixed", time_step=0)
        stepper = TimeStepper(robot, 1e-4)
        n = robot.plant.num_positions()
        return n, stepper.generalized_forces(np.full(n, 1e-3), np.zeros(n), np.zeros(8))

    n, whole = springs(standard)
    _, half = springs(hamr_variant(0.5))
    robot = build_robot(standard, base="fixed", time_step=0)
    lengths = robot.length_positions()[0]
    assert half[lengths] == pytest.approx(whole[lengths], rel=1e-6)
    m, _ = springs(hamr_variant(serial_stiffness=1e-3))
    assert (n, m) == (32, 36)
    with pytest.raises(InvalidInput, match="stiffness scale"):
        hamr_variant(0.0)
    with pytest.raises(InvalidInput, match="serial stiffness"):
        hamr_variant(serial_stiffness=-1.0)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"contact": "soft"}, UnknownName, "contact model 'soft'"),
        ({"cycles": 0}, InvalidInput, "cycles"),
        ({"cycles": 1.5}, InvalidInput, "cycles"),
        ({"kp": -1.0}, InvalidInput, "kp"),
        ({"ramp": np.nan}, InvalidInput, "ramp"),
        ({"mocap_noise": -1e-6}, InvalidInput, "mocap_noise"),
        ({"time_step": 0.0}, InvalidInput, "time_step"),
        ({"time_step": 2e-3}, InvalidInput, "cannot resolve"),
        ({"serial_stiffness": 0.1}, InvalidInput, "too stiff"),
    ],
)
def test_tracking_refuses(change, error, words):
    with pytest.raises(error, match=words) as caught:
        Tracking(still(), **change)
    assert "\n" not in str(caught.value)
