"""Plans executed with feedback: the whole, and other springs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from drakebots import InvalidInput, UnknownName, build_robot, load
from drakebots.core.run import Verdict
from drakebots.multibody import Slope, TimeStepper
from drakebots.results import load_result
from drakebots.robots.hamr import Simulation, simulate
from drakebots.robots.hamr.model import Plates, hamr_variant
from drakebots.robots.hamr.reference import recorded_reference
from drakebots.robots.hamr.track import Gains, Mismatch, Noise, Tracking, track
from tests.helpers.still_reference import still

pytestmark = pytest.mark.long


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
    free = track(Tracking(plan, cycles=1, contact=contact, gains=Gains(kp=0.0, kd=0.0)))
    for name in ("leg_error_x_mm", "leg_error_z_mm"):
        assert run.metrics[name] < 0.75 * free.metrics[name]
    assert free.metrics["clipped_share"] == 0


def test_other_springs_and_noise(plan):
    soft = track(
        Tracking(
            plan,
            cycles=1,
            ramp=1,
            gains=Gains(kp=10e3, kd=2.0),
            mismatch=Mismatch(stiffness=0.5, serial_stiffness=1e-3),
            noise=Noise(mocap=2e-5, encoder=1e-6),
        )
    )
    assert soft.ok
    twists = [n for n in soft.data.coordinate.values if n.endswith("twist")]
    assert len(twists) == 4
    bend = np.abs(soft.data.position.sel(coordinate=twists)).max().item()
    assert np.radians(1) < bend < np.radians(15)
    assert soft.metrics["loop_gap_max_mm"] < 1e-2


def test_encoders_measure_by_another_circuit(plan):
    """A current of 0.8 makes every velocity 0.8 of the true one, and the legs are
    estimated as far behind as they move in the latency of the motion capture."""
    plates = Plates(current=0.8)
    posed = Tracking(plan, cycles=1, ramp=0, log_period=4e-4)
    right = track(posed)
    wrong = track(replace(posed, mismatch=Mismatch(plates=plates)))
    measured, true = wrong.data.encoder_velocity.values, wrong.data.actuator_velocity
    # The encoders' state begins uncharged, and is over its start after ten samples.
    assert measured[11:] == pytest.approx(0.8 * true.values[10:-1], abs=1e-7)
    for x in (0, 2):
        error = wrong.metrics["estimator_error_mm"][x]
        assert error > 3 * right.metrics["estimator_error_mm"][x]


def test_jump_starts_in_the_plan():
    jump = simulate(Simulation(gait="jump")).data
    plan = recorded_reference(jump, 0.0, 0.25, periodic=False, friction=0.51)
    done = track(Tracking(plan, after=0.0))
    assert done.ok
    assert done.data.time.values[-1] == pytest.approx(0.25)
    # Open loop it rose 9.6 mm; feedback pushes a little harder.
    assert done.metrics["planned_apex_rise_mm"] == pytest.approx(9.6, abs=0.5)
    assert done.metrics["apex_rise_mm"] == pytest.approx(10.6, abs=1.5)


def test_a_jump_goes_on_after_its_plan():
    jump = simulate(Simulation(gait="jump")).data
    plan = recorded_reference(jump, 0.0, 0.1, periodic=False, friction=0.51)
    done = track(Tracking(plan, after=0.02))
    assert done.data.time.values[-1] == pytest.approx(0.12)


def test_cut_short(plan):
    done = track(Tracking(plan, cycles=1, time_limit=0.05))
    assert done.verdict is Verdict.TIME_LIMIT
    assert done.metrics["cycles"] == 0


def test_odd_period_counts_every_cycle(plan):
    # A period that no sampling divides.
    odd = replace(plan, time=plan.time * 0.9873)
    done = track(Tracking(odd, cycles=2, ramp=0.5))
    assert done.ok
    assert done.metrics["cycles"] == 2
    assert len(done.metrics["stride_mm"]) == 2


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"contact": "soft"}, UnknownName, "contact model 'soft'"),
        ({"cycles": 0}, InvalidInput, "cycles"),
        ({"cycles": 1.5}, InvalidInput, "cycles"),
        ({"seed": -1}, InvalidInput, "seed"),
        ({"ramp": np.nan}, InvalidInput, "ramp"),
        ({"time_step": 0.0}, InvalidInput, "time_step"),
        ({"time_step": 2e-3}, InvalidInput, "cannot resolve"),
        ({"contact": "stepping", "terrain": Slope(0.1)}, InvalidInput, "flat ground"),
        ({"mismatch": Mismatch(serial_stiffness=0.1)}, InvalidInput, "too stiff"),
        (
            {"mismatch": Mismatch(serial_stiffness=1e-3), "contact": "stepping"},
            InvalidInput,
            "at most 0.00025 N m/rad",
        ),
    ],
)
def test_tracking_refuses(change, error, words):
    with pytest.raises(error, match=words) as caught:
        Tracking(still(), **change)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("part", "change", "words"),
    [
        (Gains, {"kp": -1.0}, "kp must be"),
        (Gains, {"kd": np.nan}, "kd must be"),
        (Gains, {"kf": np.inf}, "kf must be"),
        (Noise, {"mocap": -1e-6}, "noise: mocap"),
        (Mismatch, {"friction": -0.1}, "mismatch: friction"),
        (Mismatch, {"stiffness": 0.0}, "mismatch: stiffness"),
    ],
)
def test_parts_of_tracking_refuse(part, change, words):
    with pytest.raises(InvalidInput, match=words):
        part(**change)


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
    for name in ("stiffness", "serial_stiffness"):
        with pytest.raises(InvalidInput, match=name):
            Mismatch(**{name: -1.0})
