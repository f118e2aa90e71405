"""The space-time program's answers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from pydrake.multibody.tree import JacobianWrtVariable, MultibodyForces

from drakebots.core.errors import InvalidInput
from drakebots.core.run import Verdict
from drakebots.model import find_body
from drakebots.multibody import polygon
from drakebots.results import load_result
from drakebots.robots.quads.motion import MotionInput, margin
from drakebots.robots.quads.motion.gait import Gait, synthesize
from drakebots.robots.quads.motion.library import lift
from drakebots.robots.quads.motion.motion import Footfall
from drakebots.robots.quads.space_time import (
    SpaceTime,
    Weights,
    motion_at_steps,
    plan_space_time,
)
from drakebots.robots.quads.space_time.solve import patch_forces, spline_motion
from drakebots.trajopt.solvers import solve, solve_exact
from tests.helpers.quad_skeletons import cloud_of_skin

pytestmark = pytest.mark.usefixtures("interpreted")


def _walk(quad, **options):
    gait = Gait(
        {"rl": 0.0, "fl": 0.25, "rr": 0.5, "fr": 0.75}, duty=0.8, period=1.0, lift=0.02
    )
    return synthesize(quad, gait, speed=0.05, **options)


@pytest.fixture(scope="module")
def plan(beetle):
    problem = SpaceTime(
        beetle, _walk(beetle), skin=cloud_of_skin(beetle), knot_spacing=10
    )
    return plan_space_time(problem)


@pytest.mark.long
def test_a_walk_is_found_and_holds_every_constraint(plan):
    assert plan.ok, plan.solution.summary()
    problem, parts = plan.problem, plan.parts
    quad, contact = problem.quad, problem.contact
    K = len(problem.knots)
    p, F = parts["p"].reshape(K, -1, 3), parts["F"].reshape(K, -1, 3)
    T = parts["T"].reshape(K, -1, 3)
    assert quad.foot_positions(parts["q"]) == pytest.approx(p, abs=1e-6)
    # (4)
    assert np.abs(p[:-1, :, 2][contact[:-1]]).max() < 1e-6
    stays = contact[1:] & contact[:-1]
    assert np.abs(np.diff(p[..., :2], axis=0)[stays]).max() < 1.1e-5
    assert np.all(p[:-1, :, 2] > -1e-6)
    # (6), with the base's turn
    assert parts["q"][-1, 2:] == pytest.approx(parts["q"][0, 2:], abs=2e-5)
    # (8)
    along = np.linalg.norm(F[..., :2], axis=-1)
    assert np.all(along <= problem.friction * F[..., 2] + 1e-5)
    radius = np.array([s.radius for s in quad.soles])
    grip = np.sum(F**2, axis=-1) - np.sum(T**2, axis=-1) / radius**2
    assert grip.min() > -1e-3
    assert np.all(F[~contact] == 0) and np.all(T[~contact] == 0)
    # (5): in the hull of the soles
    q = parts["q"]
    for k in range(K):
        moment = p[k, :, :2] * F[k, :, 2:] + np.stack([-T[k, :, 1], T[k, :, 0]], 1)
        cop = moment.sum(axis=0) / F[k, :, 2].sum()
        corners = [
            p[k, j, :2] + s.corners @ R[:2, :2].T
            for j, (s, R) in enumerate(zip(quad.soles, quad.sole_axes(q[k])))
            if contact[k, j]
        ]
        assert margin(polygon(np.vstack(corners)), cop) > -1e-4
    assert np.all(np.abs(parts["tau"]) <= problem.limits + 1e-6)


@pytest.mark.long
def test_its_torques_are_drakes_inverse_dynamics(beetle):
    """On a plan without skin: Drake's plant needs the plan's torques, and nothing
    at its base, under the plan's contact forces."""
    plan = plan_space_time(SpaceTime(beetle, _walk(beetle), knot_spacing=10))
    assert plan.ok
    plant, parts = beetle.robot.plant, plan.parts
    context = plant.CreateDefaultContext()
    for k in (0, 3, 11):
        plant.SetPositions(context, parts["q"][k])
        plant.SetVelocities(context, parts["v"][k])
        forces = MultibodyForces(plant)
        plant.CalcForceElementsContribution(context, forces)
        needed = plant.CalcInverseDynamics(context, parts["a"][k], forces)
        for j, sole in enumerate(beetle.soles):
            J = plant.CalcJacobianSpatialVelocity(
                context,
                JacobianWrtVariable.kV,
                find_body(plant, sole.body).body_frame(),
                sole.p_BF,
                plant.world_frame(),
                plant.world_frame(),
            )
            at = slice(3 * j, 3 * j + 3)
            wrench = np.concatenate([parts["T"][k][at], parts["F"][k][at]])
            needed = needed - J.T @ wrench
        assert np.abs(needed[:6]).max() < 1e-5
        assert needed[beetle.actuated] == pytest.approx(parts["tau"][k], abs=1e-5)


def test_motion_at_frames_has_the_knots_rates(plan):
    q, v, a = motion_at_steps(plan)
    at, h = plan.problem.knots, plan.problem.step
    assert v[at] == pytest.approx(plan.parts["v"], abs=1e-6)
    assert a[at] == pytest.approx(plan.parts["a"], abs=1e-4)
    assert q[at] - plan.parts["q"] == pytest.approx(
        h**2 / 6 * plan.parts["a"], abs=1e-6
    )


def test_between_knots_the_motion_is_of_second_order(beetle):
    """Of a smooth path at rest at both ends, at two spacings of knots."""
    motion = lift(beetle, ["fl"], duration=1.0, height=0.02)
    errors = []
    for knot_spacing in (10, 5):
        problem = SpaceTime(beetle, motion, knot_spacing=knot_spacing)
        path = np.cos(2 * np.pi * motion.times)[:, None] * np.ones(beetle.nv)
        q, _, _ = spline_motion(problem, path[problem.knots])
        errors.append(np.abs(q - path).max())
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.1)


@pytest.mark.long
def test_a_plan_holds_between_its_knots(beetle):
    motion = lift(beetle, ["fl"], duration=1.0, height=0.02)
    found = plan_space_time(SpaceTime(beetle, motion, knot_spacing=5))
    assert found.ok
    assert found.result().metrics["frame_dynamics_error"] < 0.01


def test_results_read_back(plan, tmp_path):
    result = plan.result()
    assert result.ok and load_result(result.save(tmp_path / "p.nc")) == result
    data = result.data
    N = len(plan.problem.motion)
    assert data["torque"].shape == (N, 12) and data["contact_force"].shape == (N, 20, 3)
    # Patches carry what feet do.
    total = data["contact_force"].sum("patch").values
    assert total == pytest.approx(data["foot_force"].sum("foot").values, abs=1e-2)
    assert result.metrics["frame_slip"] < 5e-3
    assert np.nanmin(data["cop_margin"].values) > -2e-3


def test_patches_share_a_foots_load(beetle):
    sole, R = beetle.soles[0], np.eye(3)
    F, T = np.array([2.0, -1.0, 20.0]), np.array([0.1, -0.15, 0.05])
    f = patch_forces(sole, R, F, T)
    assert f.sum(axis=0) == pytest.approx(F, abs=1e-4)
    moment = np.cross(sole.points, f).sum(axis=0)
    assert moment == pytest.approx(T, abs=1e-4)
    assert f[:, 2].min() >= 0


@pytest.mark.long
def test_a_motion_to_follow_draws_the_plan(plan):
    """A step to the side is possible, and costs E_COM and E_EE."""
    q, _, _ = motion_at_steps(plan)
    target = q.copy()
    target[:, 1] += 0.01
    gap = []
    for weight in (1.0, 1e6):
        problem = replace(
            plan.problem, follow=target, weights=replace(Weights(), follow=weight)
        )
        found = plan_space_time(problem, warm=plan)
        assert found.ok, found.solution.summary()
        at = found.problem.knots
        gap.append(np.abs(found.parts["q"] - target[at])[:, 1].mean())
    assert gap[0] > 5e-3 and gap[1] < 0.1 * gap[0]


@pytest.mark.long
def test_torque_limits_bind(plan):
    peak = np.abs(plan.parts["tau"]).max(axis=0)
    joint = int(peak.argmax())
    name = plan.problem.quad.joints[joint]
    limit = 0.9 * float(peak[joint])
    problem = replace(plan.problem, torque_limits={name: limit})
    found = plan_space_time(problem, warm=plan)
    assert found.ok, found.solution.summary()
    assert np.abs(found.parts["tau"][:, joint]).max() <= limit + 1e-6


def test_what_fails_names_its_worst_rows(beetle):
    """Cut short: the best iterate, and where it is worst."""
    motion = _walk(beetle)
    problem = SpaceTime(beetle, motion, knot_spacing=10, friction=0.8)
    found = plan_space_time(problem, options={"max_iter": 1})
    assert found.solution.verdict is Verdict.FAILED
    name, value = next(iter(found.solution.residuals.items()))
    assert value > 1e-4 and name.split("[")[0] in found.solution.program.rows
    result = found.result()
    assert not result.ok and name in result.residuals


@pytest.mark.long
def test_snopt_agrees_on_a_small_plan(beetle):
    """Drake's MathematicalProgram with SNOPT comes to the same optimum: five knots
    on four feet, from near it (from inverse kinematics SNOPT takes minutes)."""
    N = 81
    com = np.repeat(beetle.com(beetle.rest), N, axis=0)
    com[:, 1] += 0.01 * np.sin(np.pi * np.arange(N) / (N - 1)) ** 2
    motion = MotionInput(
        Footfall(beetle.feet, np.ones((N, 4), bool), 5e-3),
        com,
        np.repeat(beetle.rest_feet[None], N, axis=0),
    )
    problem = SpaceTime(beetle, motion, knot_spacing=20)
    exact = plan_space_time(problem)
    assert exact.ok
    program, x = exact.solution.program, exact.solution.x
    x0 = x + 1e-3 * program.x_scale * np.sin(np.arange(len(x)))
    x0 = np.clip(x0, program.x_lower, program.x_upper)
    snopt = solve(program, x0, solver="snopt", time_limit=60)
    assert snopt.ok, snopt.summary()
    assert snopt.objective == pytest.approx(exact.solution.objective, rel=1e-3)


@pytest.mark.long
def test_warm_starts_must_fit(plan, quads):
    other = SpaceTime(plan.problem.quad, plan.problem.motion, knot_spacing=5)
    with pytest.raises(InvalidInput, match="warm start"):
        plan_space_time(other, warm=plan)
    again = solve_exact(
        plan.solution.program, plan.solution.x, options={"mu_init": 1e-6}
    )
    assert again.success


def test_loads_begin_and_end_with_the_contact(beetle):
    """A foot that lands or leaves at a knot bears nothing there: with loads that go
    straight from knot to knot it would be loaded in the air."""
    problem = SpaceTime(beetle, _walk(beetle), knot_spacing=5)
    contact = problem.motion.footfall.contact[:, problem.order]
    assert (problem.loaded <= problem.contact).all()
    assert problem.loaded.any(axis=1).all()
    assert (problem.loaded != problem.contact).any()
    for k, f in enumerate(problem.knots):
        # The cycle's last step is its first.
        around = [(f + i) % (len(contact) - 1) for i in range(-2, 3)]
        steady = contact[around].all(axis=0)
        if steady.any():
            np.testing.assert_array_equal(problem.loaded[k], steady)


@pytest.mark.long
def test_its_program_is_open_in_si(plan):
    """Names, forces of the skin, and the momentum with the skin on the links."""
    problem = plan.problem
    program = problem.mathematical_program(start=plan.result())
    K, knot, quad = len(problem.knots), 3, problem.quad
    turning = program.angular_momentum(knot)
    height = program.position(knot, quad.soles[0].name)[2]
    program.prog.AddLinearConstraint(height >= -1e-9)
    result = program.solve()
    again = program.plan(result)
    assert again.ok and again.kind == plan.result().kind
    q, v = program.values(result, "q"), program.values(result, "v")
    feet = quad.foot_positions(q).reshape(K, -1)
    assert program.values(result, "foot_position") == pytest.approx(feet, abs=1e-6)
    torque = problem.skin_forces(q, problem.knots)[:, 6:]
    assert program.values(result, "skin_torque") == pytest.approx(torque, abs=1e-9)
    assert program.values(result, "com")[knot] == pytest.approx(
        [result.GetSolution(e).Evaluate() for e in program.com(knot)]
    )
    # Links with their skin as bodies of Drake's.
    plant = quad.tree.plant
    context = plant.CreateDefaultContext()
    plant.SetPositions(context, q[knot])
    plant.SetVelocities(context, v[knot])
    com = quad.com(q[knot : knot + 1], problem.inertia[knot : knot + 1])[0]
    expected = np.zeros(3)
    for name, (m, hx, hy, hz, *moments) in zip(quad.tree.bodies, problem.inertia[knot]):
        body = find_body(plant, name)
        X, V = body.EvalPoseInWorld(context), body.EvalSpatialVelocityInWorld(context)
        R, h = X.rotation().matrix(), np.array([hx, hy, hz])
        xx, yy, zz, xy, xz, yz = moments
        I_o = R @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ R.T
        p = m * V.translational() + np.cross(V.rotational(), R @ h)
        expected += I_o @ V.rotational() + np.cross(R @ h, V.translational())
        expected += np.cross(X.translation() - com, p)
    found = [result.GetSolution(e).Evaluate() for e in turning]
    assert found == pytest.approx(expected, abs=1e-9)
    assert np.abs(expected).max() > 1e-4
