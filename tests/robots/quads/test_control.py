"""A skinned robot under feedback: its nominal model, its ground, pushes, open loop."""

from __future__ import annotations

import os
import signal
from dataclasses import replace

import numpy as np
import pytest
from pydrake.multibody.tree import MultibodyForces

from drakebots.control import Command, Gait, Mpc, Push, ReferenceMotion
from drakebots.core.errors import FileProblem, InvalidInput, NoSolution, UnknownName
from drakebots.core.run import Verdict
from drakebots.multibody import Flat, Mesh, Slope, Step
from drakebots.results import load_result
from drakebots.robots.quads import Control, Skinned, build, control
from drakebots.robots.quads.control import BoxOn
from drakebots.robots.quads.plant import SkinnedPlant, nominal_robot, standing
from drakebots.robots.quads.robot import load_planned
from drakebots.skin.coupled import PatchContact, whole_com
from tests.helpers.small_quad import small_quad


@pytest.fixture(scope="module")
def robot(tmp_path_factory):
    return load_planned(small_quad(tmp_path_factory.mktemp("small")))


@pytest.fixture(scope="module")
def nominal(robot):
    return nominal_robot(robot)


def test_the_nominal_model_has_the_skins_mass(robot, nominal):
    """Mass, centre of mass and gravity's torques are those of links with skin."""
    plant, quad = nominal.plant, robot.quad
    context = plant.CreateDefaultContext()
    assert plant.CalcTotalMass(context) == pytest.approx(robot.mass, rel=1e-9)
    q = quad.rest + 0.1 * np.random.default_rng(0).standard_normal(quad.nv)
    plant.SetPositions(context, q)
    inertia = quad.tree.inertia + robot.link_skin.inertia
    com = plant.CalcCenterOfMassPositionInWorld(context)
    assert np.allclose(com, quad.com(q, inertia)[0], atol=1e-9)


def test_the_nominal_model_has_the_skins_stiffness(robot, nominal):
    """At rest without speed, gravity aside, a turned joint is pushed back by K_jj d."""
    plant, quad = nominal.plant, robot.quad
    context, zero = plant.CreateDefaultContext(), np.zeros(quad.nv)
    forces = MultibodyForces(plant)

    def springs(q):
        plant.SetPositions(context, q)
        plant.CalcForceElementsContribution(context, forces)
        total = plant.CalcInverseDynamics(context, zero, forces)
        return plant.CalcGravityGeneralizedForces(context) + total

    assert np.abs(springs(quad.rest)).max() < 1e-9
    d = 0.1
    turned = springs(quad.rest + np.r_[np.zeros(6), np.full(quad.nv - 6, d)])
    assert turned[6:] == pytest.approx(d * np.diag(robot.link_skin.stiffness))
    assert turned[6:].max() > 0.2


def test_a_slope_pushes_along_its_normal(robot):
    """Forces of a slope, back in the world, lie along its normal."""
    angle, stepper = 0.2, robot.skinned.stepper(5e-3)
    q, v = stepper.home
    ground = PatchContact(terrain=Slope(angle))
    stepper.pose(q, v)
    patches = robot.skinned.skin.patches
    plain = PatchContact().law(stepper.plant, stepper.context, patches, 5e-3)
    law = ground.law(stepper.plant, stepper.context, patches, 5e-3)
    force = law.force(np.zeros(len(law.rows)))
    assert force.reshape(-1, 3)[:, 2].max() > 1.0
    pulled, n = law.rows.T @ force, [np.sin(angle), 0, np.cos(angle)]
    along = np.outer(force.reshape(-1, 3)[:, 2], n).ravel()
    assert np.allclose(pulled, plain.rows.T @ along, atol=1e-9)


def test_a_box_lies_on_any_ground():
    box = Step(0.1, 0.3, 0.01)
    flat, slope = BoxOn(Flat(), box), BoxOn(Slope(-0.2), box)
    points = np.array([[0.2, 0.0, 0.05], [0.5, 0.1, 0.05], [0.0, 0.0, 0.02]])
    assert np.allclose(flat.evaluate(points)[0], [0.04, 0.05, 0.02], atol=1e-12)
    c, s = np.cos(0.2), np.sin(0.2)
    turned = points @ np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])
    assert np.allclose(slope.evaluate(turned)[0], flat.evaluate(points)[0], atol=1e-12)


def test_it_stands_and_steps_on_a_slope(robot, nominal):
    """Soles lie on a slope, and the reference's feet and base go along it."""
    angle, quad = np.radians(2), robot.quad
    q = standing(nominal, quad.rest, Slope(-angle))
    context = nominal.plant.CreateDefaultContext()
    nominal.plant.SetPositions(context, q)
    feet = nominal.feet_positions(context)
    assert np.abs(feet[:, 2] - np.tan(angle) * feet[:, 0]).max() < 3e-3
    rise = float(np.tan(angle))
    reference = ReferenceMotion(
        nominal, q, step=0.05, knots=10, speed=0.1, gait=Gait(), terrain=Slope(-angle)
    )
    asked = reference.sample(np.linspace(0, 1, 21), q)[0]
    assert asked[-1, 0] - q[0] == pytest.approx(0.1, rel=0.1)
    # Its height is that over its soles, which are 3 mm off the ground at most.
    assert asked[0, 2] == pytest.approx(q[2], abs=1.5e-3)
    assert np.allclose(asked[:, 2] - asked[0, 2], rise * (asked[:, 0] - q[0]))
    with pytest.raises(NoSolution, match="degrees"):
        standing(nominal, quad.rest, Slope(-0.69))


@pytest.mark.long
@pytest.mark.parametrize("degrees", [10.0, -10.0])
def test_strides_are_within_reach_on_steep_slopes(degrees):
    """The monster's soles stay on the ground under its trunk through a cycle, in one
    branch of the knees and within their limits."""
    monster, clock = load_planned("monster"), Gait(0.5, 0.6, 0.035)
    nominal, angle = nominal_robot(monster), np.radians(degrees)
    plant, ground = nominal.plant, Slope(-angle)
    q = standing(nominal, monster.quad.rest, ground, 0.2 * clock.period * clock.duty)
    reference = ReferenceMotion(
        nominal, q, step=0.05, knots=10, speed=0.2, gait=clock, terrain=ground
    )
    times, context = np.linspace(0, clock.period, 21), plant.CreateDefaultContext()
    for t, asked in zip(times, reference.sample(times, q)[0]):
        assert (asked[6:] > plant.GetPositionLowerLimits()[6:]).all()
        assert (asked[6:] < plant.GetPositionUpperLimits()[6:]).all()
        plant.SetPositions(context, asked)
        down = clock.swing(t, reference.phases) == 0
        gaps = ground.evaluate(nominal.feet_positions(context)[down])[0]
        assert np.abs(gaps).max() < 3e-3


def test_hands_from_two_sides_push_with_their_sum(robot):
    """In flight, whoever else pushes: the centre of mass moves by h^2 (F/m + g)."""
    h, stepper = 5e-3, robot.skinned.stepper(5e-3)
    skinned, home = robot.skinned, stepper.home[0]
    target = home[stepper.actuated]

    def moved(*forces):
        plant = SkinnedPlant(robot, stepper, stepper.start(), target)
        places = []
        for step in (False, True):
            if step:
                plant.advance(Command(np.zeros(len(target)), target), forces)
            _, q, _, x = plant.seen()
            stepper.pose(q, np.zeros_like(stepper.home[1]))
            places.append(whole_com(stepper.plant, stepper.context, skinned.fem, x))
        return robot.mass / h**2 * (places[1] - places[0])

    weight = moved()
    assert weight == pytest.approx([0, 0, -9.81 * robot.mass], abs=1e-4)
    ahead, aside = np.array([1.0, 0, 0]), np.array([0, 2.0, 0])
    for forces in ((ahead,), (aside,), (ahead, aside), (ahead, aside, -3 * ahead)):
        gained = moved(*forces) - weight
        assert gained == pytest.approx(sum(forces), abs=1e-3)


@pytest.fixture(scope="module")
def problem(robot):
    return Control(
        str(robot.skinned.model.path),
        speed=0.0,
        gait=Gait(0.5, 0.7, 0.01),
        pushes=(Push(1.0, 0.1, 0.05),),
        plant=Skinned("full"),
        controller=Mpc(0.05, 6, 0.02, delay=0.02),
        duration=0.3,
    )


@pytest.mark.long
def test_it_steps_in_its_skin_and_its_targets_replay(problem, monkeypatch):
    """Control holds the robot up; its targets, played again, repeat the run exactly."""
    monkeypatch.setenv("DRAKEBOTS_COMPILE", "0")  # takes longer than the run
    built = build(problem)
    run = control(problem, built=built)
    assert run.ok, run.message
    metrics = run.metrics
    assert metrics["largest_roll_deg"] < 10 and metrics["largest_pitch_deg"] < 10
    assert metrics["solves"] == 15 and metrics["solve_hz"] > 0
    again = control(problem, replay=run, built=built)
    assert np.array_equal(again.data.position.values, run.data.position.values)
    with pytest.raises(InvalidInput, match="multiple"):
        control(replace(problem, plant=Skinned("full", 0.007)), built=built)
    with pytest.raises(InvalidInput, match="differ in"):
        control(replace(problem, speed=0.1), built=built)
    with pytest.raises(InvalidInput, match="no servo targets"):
        control(problem, replay=replace(run, kind="quads.track"), built=built)
    cut = control(replace(problem, time_limit=1e-9), replay=run, built=built)
    assert cut.verdict is Verdict.TIME_LIMIT


@pytest.mark.long
def test_a_reduced_skin_does_what_all_tetrahedra_do(problem, tmp_path, monkeypatch):
    """Both stand on their weight; paths are within 0.2 mm, torques within 5 %."""
    monkeypatch.setenv("DRAKEBOTS_COMPILE", "0")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    runs = [control(replace(problem, plant=Skinned(s))) for s in ("full", "reduced")]
    assert [run.metrics["plant"] for run in runs] == ["full", "reduced"]
    for run in runs:
        assert run.ok and not run.metrics["frames_refined"], run.message
    full, reduced = (run.data for run in runs)
    off = full.base_position.values - reduced.base_position.values
    assert 0 < np.abs(off).max() < 2e-4
    rms = [np.sqrt(np.mean(x**2)) for x in (full.torque, full.torque - reduced.torque)]
    assert rms[1] < 0.05 * rms[0]


@pytest.mark.long
def test_an_interrupted_run_keeps_its_record(problem, tmp_path, monkeypatch):
    monkeypatch.setenv("DRAKEBOTS_COMPILE", "0")

    def progress(stage, done, end):
        if done >= 0.1 - 1e-9:
            os.kill(os.getpid(), signal.SIGINT)

    run = control(problem, progress=progress)
    assert run.verdict is Verdict.INTERRUPTED and run.metrics["plant"] == "full"
    assert 0.1 <= float(run.data.time[-1]) < problem.duration
    assert len(run.data.command) == round(float(run.data.time[-1]) / 5e-3)
    run.save(tmp_path / "run.nc")
    assert load_result(tmp_path / "run.nc").data.equals(run.data)


@pytest.mark.long
def test_a_measured_delay_is_that_of_the_solves(problem, monkeypatch):
    """By default an answer is as late as its solve; each period has one, or is passed
    over and counted."""
    monkeypatch.setenv("DRAKEBOTS_COMPILE", "0")
    assert Control("monster").controller.delay is None
    own = replace(problem.controller, delay=None, period=0.04)
    run = control(replace(problem, controller=own, duration=0.1))
    assert run.metrics["solves"] + run.metrics["solve_late"] == 3


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Control("monster", terrain=Mesh("no.obj")), "no.obj"),
        (lambda: Skinned("none"), "'none'"),
        (lambda: Skinned("full", -1.0), "plant: time_step"),
        (lambda: Control("monster", controller=Mpc(feedback="servos")), "feedback"),
    ],
)
def test_bad_problems_are_refused(make, says):
    with pytest.raises((FileProblem, InvalidInput, UnknownName), match=says):
        make()
