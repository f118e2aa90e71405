"""HAMR-VI walks; runs cut short keep what they reached; energy is not made."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from pydrake.math import RigidTransform, RollPitchYaw
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import DiagramBuilder

from drakebots import Ground, InvalidInput, UnknownName, build_robot, load
from drakebots.core.run import Verdict
from drakebots.core.units import MM_G_MS
from drakebots.formats import terrain_of
from drakebots.multibody import Slope
from drakebots.results import load_result
from drakebots.robots.hamr import Simulation, build, simulate
from drakebots.robots.hamr.model import parameters
from drakebots.robots.hamr.track import Tracking
from drakebots.robots.hamr.track.track import build_tracking_diagram
from tests.helpers.still_reference import still


@pytest.fixture(scope="module")
def walk():
    return simulate(Simulation(cycles=2, log_period=1e-4))


def test_walks(walk):
    assert walk.verdict is Verdict.SUCCESS
    assert walk.ok
    metrics = walk.metrics
    assert metrics["cycles"] == 2
    assert metrics["stride_mm_per_cycle"] > 5
    assert metrics["loop_gap_max_mm"] < 1e-3
    assert metrics["peak_voltage_V"] <= 225
    assert metrics["lowest_voltage_V"] >= 0
    assert (metrics["surface"], metrics["friction"]) == ("card", 0.51)
    assert 0 <= metrics["slip"] < 1
    assert max(walk.residuals.values()) < 1e-6
    assert len(walk.residuals) == 12


def test_data_of_the_walk(walk):
    data = walk.data
    for name in data.data_vars:
        assert data[name].attrs.get("units"), name
    assert data.time.values[0] == 0
    assert data.time.values[-1] == pytest.approx(0.4)
    assert np.diff(data.time.values) == pytest.approx(1e-4)
    numbers = (v for v in data.data_vars.values() if v.dtype.kind == "f")
    assert all(np.isfinite(v.values).all() for v in numbers)
    assert data.sizes["foot"] == 4
    assert data.sizes["actuator"] == 8
    # On average over two cycles the ground carries the weight: of every step, as forces
    # come in spikes.
    weight = 9.81 * load("hamr").summary.mass
    load_z = data.foot_force.sel(axis="z").sum("foot").values[2000:]
    assert load_z.mean() == pytest.approx(weight, rel=0.03)
    # Found from the generalized forces of the step before; the ground pushes only, to
    # 1 % of its largest push.
    normal = data.foot_force.sel(axis="z").values
    assert normal.min() > -0.01 * normal.max()
    assert data.sizes["cycle_time"] == 3


@pytest.mark.long
def test_walks_up_a_slope(walk):
    """It starts and ends as high above the ground as on a flat one, along its slope."""
    slope = Slope(-np.radians(3))
    run = simulate(Simulation(cycles=2, terrain=slope, surface=0.51))
    assert run.ok and terrain_of(run) == slope
    assert run.metrics["friction"] == 0.51
    x, y, z = run.data.base_position.values.T
    assert x[-1] - x[0] > 8e-3 and np.ptp(slope.heights(x, y)) > 4e-4
    above = z - slope.heights(x, y)
    # On flat ground its feet start 0.15 mm up.
    stance = parameters().number("stance") - 1.5e-4
    assert above[0] == pytest.approx(stance, abs=5e-5)
    assert above[-1] == pytest.approx(above[0], abs=1e-3)
    pitch = run.data.base_rpy.values[:, 1]
    assert pitch[0] == pytest.approx(slope.angle)
    assert np.abs(pitch - slope.angle).max() < 0.15
    for name, near in {"height_mean_mm": 0.2, "clearance_min_mm": 0.5}.items():
        assert run.metrics[name] == pytest.approx(walk.metrics[name], abs=near)


def test_saved_walk_is_equal(walk, tmp_path):
    path = walk.save(tmp_path / "walk.nc")
    assert load_result(path) == walk


def start_of(problem):
    """The base's x, y, z, roll, pitch, yaw [m, rad] at a run's start."""
    make = build_tracking_diagram if isinstance(problem, Tracking) else build
    built = make(problem)
    context = built.diagram.CreateDefaultContext()
    built.place(context, problem.start_offset())
    plant = built.robot.plant
    pose = plant.EvalBodyPoseInWorld(
        plant.GetMyContextFromRoot(context), plant.GetBodyByName("Chassis")
    )
    p_WB = built.robot.scaling.length * pose.translation()
    return np.r_[p_WB, RollPitchYaw(pose.rotation()).vector()]


@pytest.mark.long
@pytest.mark.parametrize(
    "problem", [Simulation(), Tracking(still()), Tracking(still(), ramp=0)]
)
def test_starts_differ_by_the_error_of_their_seed(problem):
    exact, error = start_of(problem), 1e-3
    for seed in (0, 1):
        changed = replace(problem, start_error=error, seed=seed)
        offset = changed.start_offset()
        assert (np.abs(offset) > 0).all() and np.abs(offset).max() <= error
        assert start_of(changed) - exact == pytest.approx(offset, abs=1e-12)
    assert np.abs(offset - replace(changed, seed=0).start_offset()).min() > 0


@pytest.mark.long
def test_repeats(walk):
    again = simulate(Simulation(cycles=2, log_period=1e-4))
    assert again.data.identical(walk.data)


def test_interrupted_run_keeps_its_data():
    def progress(stage, time, end):
        assert end == pytest.approx(0.3)
        if time > 0.02:
            raise KeyboardInterrupt

    result = simulate(Simulation(cycles=1), progress=progress)
    assert result.verdict is Verdict.INTERRUPTED
    assert "kept" in result.message
    assert 0.02 < result.data.time.values[-1] < 0.03
    assert result.data.sizes["time"] > 30
    assert result.metrics["cycles"] == 0


def test_time_limit():
    result = simulate(Simulation(cycles=5, time_limit=0.05))
    assert result.verdict == "time limit"
    assert "raise it" in result.message
    assert 0 < result.data.time.values[-1] < 0.7


@pytest.mark.parametrize(
    "problem, kind, match",
    [
        ({"surface": "ice"}, UnknownName, "card"),
        ({"surface": "sandpapr"}, UnknownName, "did you mean 'sandpaper'"),
        ({"gait": "trott"}, UnknownName, "did you mean 'trot'"),
        ({"frequency": 0.0}, InvalidInput, "frequency"),
        ({"swing_voltage": 200.0}, InvalidInput, "swing_voltage"),
    ],
)
def test_cannot_be_built(problem, kind, match):
    for run in (simulate, build):
        with pytest.raises(kind, match=match) as caught:
            run(Simulation(**problem))
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "name, values",
    [
        ("surface", [np.nan, -0.1, np.inf]),
        ("cycles", [0, -1, 1.5]),
        ("start_error", [np.nan, -1e-9]),
        ("time_step", [0.0, -1e-4, np.nan, 2e-3]),
        ("log_period", [0.0, np.inf]),
        ("time_limit", [0.0, -1.0, np.nan]),
    ],
)
def test_bad_values(name, values):
    for value in values:
        with pytest.raises(InvalidInput, match=name.replace("time_step", "time.step")):
            Simulation(**{name: value})


STIFFNESS = 1e4


@pytest.fixture(scope="module")
def drop():
    """Energies [mJ] each ms of a drop by 0.15 mm: kinetic + potential, contact."""
    builder = DiagramBuilder()
    robot = build_robot(
        load("hamr"),
        builder,
        time_step=1e-4,
        scaling=MM_G_MS,
        ground=Ground(0.51, STIFFNESS, 500.0),
    )
    simulator = Simulator(builder.Build())
    plant = robot.plant
    context = plant.GetMyMutableContextFromRoot(simulator.get_mutable_context())
    plant.get_actuation_input_port().FixValue(context, np.zeros(8))
    robot.set_base_pose(context, RigidTransform([0, 0, 0.01269]))
    simulator.Initialize()
    mechanical, contact = [], []
    for time in range(201):
        simulator.AdvanceTo(time)
        kinetic = plant.EvalKineticEnergy(context)
        mechanical.append(kinetic + plant.EvalPotentialEnergy(context))
        depth = np.maximum(-robot.feet_positions(context)[:, 2], 0)
        # Springs of point contact [N/m], in mJ.
        contact.append(1e3 * 0.5 * STIFFNESS * (depth**2).sum())
    fallen = 1e6 * robot.model.summary.mass * 9.81 * 0.15e-3 * 1e-3
    return np.array(mechanical), np.array(contact), fallen


def test_energy_never_exceeds_the_start(drop):
    mechanical, contact, fallen = drop
    assert (mechanical[1:] < mechanical[0]).all()
    assert (mechanical + contact)[1:].max() < mechanical[0]
    # The drop's energy is gone at the end, and a little more: the legs yield.
    assert mechanical[0] - mechanical[-1] > fallen


def test_energy_does_not_grow(drop):
    mechanical, contact, fallen = drop
    assert np.diff(mechanical + contact).max() < 1e-4 * fallen
    # Without the springs of contact it grows while they give back what they
    # took at the first impact: by 0.8 % of the drop's energy in 1 ms, then no
    # more. They hold at most 4 % of it.
    growth = np.diff(mechanical)
    assert growth.max() < 1e-2 * fallen
    assert contact.max() < 0.05 * fallen
    assert growth[10:].max() < 1e-4 * fallen
