"""The space-time program: derivatives, dynamics against Drake, and its answers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from pydrake.multibody.tree import JacobianWrtVariable, MultibodyForces
from quad_skeletons import sprawled, upright

from drakebots.errors import InvalidInput
from drakebots.multibody.loops import find_body
from drakebots.results import Verdict, load_result
from drakebots.robots.quads import space_time_blocks as blocks
from drakebots.robots.quads.coordinates import Coordinates
from drakebots.robots.quads.footfall import Footfall
from drakebots.robots.quads.gait import Gait, synthesize
from drakebots.robots.quads.links_skin import (
    SkinInfluence,
    coupling_forces,
    frame_inertia,
    nearest_links,
    vertices_on_links,
)
from drakebots.robots.quads.motion import MotionInput
from drakebots.robots.quads.motion_library import lift
from drakebots.robots.quads.space_time import SpaceTime, Weights
from drakebots.robots.quads.space_time_result import (
    frame_motion,
    patch_forces,
    spline_motion,
)
from drakebots.robots.quads.space_time_run import plan_space_time
from drakebots.robots.quads.support import margin, polygon, support_polygon
from drakebots.trajopt.ipopt_exact import solve_exact
from drakebots.trajopt.solve import solve


@pytest.fixture(scope="module", autouse=True)
def interpreted():
    """Compiling takes longer than these programs do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRAKEBOTS_COMPILE", "0")
        yield


@pytest.fixture(scope="module")
def quads(tmp_path_factory):
    folder = tmp_path_factory.mktemp("quads")
    return {"sprawled": sprawled(folder), "upright": upright(folder)}


@pytest.fixture(scope="module")
def beetle(quads):
    return quads["sprawled"]


def _walk(quad, **options):
    gait = Gait(
        {"rl": 0.0, "fl": 0.25, "rr": 0.5, "fr": 0.75}, duty=0.8, period=1.0, lift=0.02
    )
    return synthesize(quad, gait, speed=0.05, **options)


def _skin(quad, mass=1.1, seed=0):
    """A cloud of vertices about the robot on its nearest links."""
    rng = np.random.default_rng(seed)
    p = rng.uniform([-0.15, -0.15, 0.05], [0.15, 0.15, 0.22], (300, 3))
    weights, bodies = nearest_links(quad, p)
    return vertices_on_links(quad, p, np.full(300, mass / 300), weights, bodies)


@pytest.fixture(scope="module")
def plan(beetle):
    problem = SpaceTime(beetle, _walk(beetle), skin=_skin(beetle), stride=10)
    return plan_space_time(problem)


# ------------------------------------------------------------- derivatives
def _blocks(quad):
    n = quad.nv
    return {
        "dynamics": blocks.dynamics_block(quad),
        "kinematics": blocks.kinematics_block(quad),
        "sole": blocks.sole_block(quad, 0.9),
        "friction": blocks.friction_block(quad, 0.8, 0.04, 40.0),
        "flat": blocks.flat_block(quad),
        "squares": blocks.squares_block("x", 5),
        "motion": blocks.motion_block(n, 0.02, "inner"),
        "start": blocks.motion_block(n, 0.02, "start"),
        "wrap": blocks.wrap_block(n, 0.02, 0.3, False),
        "end": blocks.wrap_block(n, 0.02, 0.3, True),
    }


@pytest.mark.parametrize(
    "name",
    "dynamics kinematics sole friction flat squares motion start wrap end".split(),
)
def test_blocks_have_the_derivatives_of_their_values(beetle, name):
    """Along random directions, central differences of values and of Jacobians."""
    block = _blocks(beetle)[name]
    rng = np.random.default_rng(1)
    w = rng.normal(0, 0.5, block.num_inputs)
    d = rng.uniform(0.1, 0.5, block.d.shape[0])
    mu = rng.normal(0, 1, block.num_rows)
    value = block.value_function
    H = np.zeros((block.num_inputs,) * 2)
    if len(block.hessian_pattern[0]):
        H[block.hessian_pattern] = block.functions["hessian"](w, d, mu).full().ravel()
    H = H + np.triu(H, 1).T
    J = block.jacobian(w, d)
    e = 1e-5
    for _ in range(3):
        u = rng.normal(0, 1, len(w))
        difference = (value(w + e * u, d) - value(w - e * u, d)).full().ravel()
        scale = max(1.0, np.abs(J @ u).max())
        assert difference / (2 * e) == pytest.approx(J @ u, abs=1e-6 * scale)
        turned = mu @ (block.jacobian(w + e * u, d) - block.jacobian(w - e * u, d))
        scale = max(1.0, np.abs(H @ u).max())
        assert turned / (2 * e) == pytest.approx(H @ u, abs=1e-6 * scale)


# ----------------------------------------------------------------- dynamics
@pytest.mark.parametrize("name", ["sprawled", "upright"])
def test_inverse_dynamics_and_contact_are_drakes(quads, name):
    quad = quads[name]
    plant, tree = quad.robot.plant, quad.tree
    context = plant.CreateDefaultContext()
    rng = np.random.default_rng(2)
    for _ in range(5):
        q = quad.rest + rng.normal(0, 0.3, quad.nv)
        v, a = rng.normal(0, 2, (2, quad.nv))
        F, T = rng.normal(0, 10, (2, len(quad.soles), 3))
        plant.SetPositions(context, q)
        plant.SetVelocities(context, v)
        forces = MultibodyForces(plant)
        plant.CalcForceElementsContribution(context, forces)
        expected = plant.CalcInverseDynamics(context, a, forces)
        ours = tree.dynamics_function(q, v, a, tree.inertia.ravel()).full().ravel()
        assert ours == pytest.approx(expected, abs=1e-10)
        world = plant.world_frame()
        pulled = np.zeros(quad.nv)
        for sole, f, t in zip(quad.soles, F, T):
            frame = find_body(plant, sole.body).body_frame()
            J = plant.CalcJacobianSpatialVelocity(
                context, JacobianWrtVariable.kV, frame, sole.p_BF, world, world
            )
            pulled += J.T @ np.concatenate([t, f])
        J = tree.contact_jacobian(quad.soles)(q).full()
        wrench = np.concatenate([F.ravel(), T.ravel()])
        assert J.T @ wrench == pytest.approx(pulled, abs=1e-10)
        tau = rng.normal(0, 1, len(quad.joints))
        block = blocks.dynamics_block(quad)
        data = np.concatenate([tree.inertia.ravel(), np.zeros(quad.nv)])
        w = np.concatenate([q, v, a, F.ravel(), T.ravel(), tau])
        rows = block.value_function(w, data).full().ravel()
        assert rows == pytest.approx(expected - pulled - quad.B @ tau, abs=1e-10)


def test_momentum_rows_are_the_rate_of_momentum(beetle):
    """First three: d/dt of the linear momentum Drake has, minus weight and forces."""
    quad, plant = beetle, beetle.robot.plant
    context = plant.CreateDefaultContext()
    rng = np.random.default_rng(3)
    q, v, a = quad.rest + rng.normal(0, 0.2, quad.nv), *rng.normal(0, 1, (2, quad.nv))

    def momentum(t):
        plant.SetPositions(context, q + t * v + t * t / 2 * a)
        plant.SetVelocities(context, v + t * a)
        h = plant.CalcSpatialMomentumInWorldAboutPoint(context, np.zeros(3))
        return h.translational()

    e = 1e-4
    rate = (momentum(e) - momentum(-e)) / (2 * e)
    F = rng.normal(0, 5, (4, 3))
    w = np.concatenate([q, v, a, F.ravel(), np.zeros(12), np.zeros(12)])
    data = np.concatenate([quad.tree.inertia.ravel(), np.zeros(quad.nv)])
    rows = blocks.dynamics_block(quad).value_function(w, data).full().ravel()
    weight = quad.mass * np.array([0, 0, -9.81])
    assert rows[:3] == pytest.approx(rate - weight - F.sum(axis=0), abs=1e-6)


def test_coordinates_go_to_drakes_quaternions_and_back(beetle):
    convert, rng = Coordinates(beetle), np.random.default_rng(4)
    q = beetle.rest + rng.normal(0, 0.4, (6, beetle.nv))
    v = rng.normal(0, 1, q.shape)
    positions, velocities = convert.positions(q), convert.velocities(q, v)
    assert convert.from_positions(positions) == pytest.approx(q, abs=1e-12)
    assert convert.from_velocities(q, velocities) == pytest.approx(v, abs=1e-12)
    f = rng.normal(0, 1, velocities.shape)
    power = np.sum(f * velocities, axis=1)
    ours = np.sum(convert.forces(q, f) * v, axis=1)
    assert ours == pytest.approx(power, abs=1e-12)
    free, euler = convert.free.plant, beetle.robot.plant
    a, b = free.CreateDefaultContext(), euler.CreateDefaultContext()
    free.SetPositions(a, positions[0])
    free.SetVelocities(a, velocities[0])
    euler.SetPositions(b, q[0])
    euler.SetVelocities(b, v[0])
    foot = beetle.soles[0].body
    seen = []
    for plant, context in ((free, a), (euler, b)):
        body = find_body(plant, foot)
        X = plant.EvalBodyPoseInWorld(context, body).GetAsMatrix34()
        V = plant.EvalBodySpatialVelocityInWorld(context, body).get_coeffs()
        seen.append((X, V))
    for ours, theirs in zip(*seen):
        assert ours == pytest.approx(theirs, abs=1e-12)


# ------------------------------------------------------------ skin on links
def test_skin_on_links_has_the_skins_mass_and_centre(beetle):
    rng = np.random.default_rng(5)
    p = rng.uniform(-0.1, 0.3, (200, 3))
    mass = rng.uniform(1e-3, 1e-2, 200)
    share = rng.uniform(0, 1, (200, len(beetle.tree.bodies)))
    share /= share.sum(axis=1, keepdims=True)
    skin = vertices_on_links(beetle, p, mass, share, beetle.tree.bodies)
    assert skin.mass.sum() == pytest.approx(mass.sum())
    both = beetle.tree.inertia + skin.inertia
    own = beetle.com(beetle.rest)[0]
    expected = (beetle.mass * own + mass @ p) / (beetle.mass + mass.sum())
    assert beetle.com(beetle.rest, both)[0] == pytest.approx(expected, abs=1e-12)
    with pytest.raises(InvalidInput, match="weights of vertex"):
        vertices_on_links(beetle, p, mass, 0.5 * share, beetle.tree.bodies)


def test_a_rigid_skins_forces_leave_nothing_over(beetle):
    """lambda of a skin that moves with its links is minus its own inverse
    dynamics; then the coupling adds nothing to links with skin."""
    skin, N = _skin(beetle), 11
    rng = np.random.default_rng(6)
    q, v, a = (
        beetle.rest + rng.normal(0, 0.3, (N, beetle.nv)),
        *rng.normal(0, 1, (2, N, beetle.nv)),
    )
    zero = np.zeros((N, len(beetle.tree.bodies), 3))
    both = beetle.tree.inertia + skin.inertia

    def needed(inertia):
        f = beetle.tree.dynamics_function.map(N)
        d = np.repeat(inertia.reshape(-1, 1), N, axis=1)
        return f(q.T, v.T, a.T, d).full().T

    force = -(needed(both) - needed(beetle.tree.inertia))
    influence = SkinInfluence(force, zero, q, v, a, base=True)
    frames = np.arange(N)
    delta = coupling_forces(beetle, skin, influence, frames)
    assert np.abs(delta).max() < 1e-10
    # What a joint's skin pulls besides goes into its torque row as it is.
    extra = np.zeros_like(force)
    extra[:, 8] = 0.3
    pulled = replace(influence, force=force + extra, base=False)
    assert coupling_forces(beetle, skin, pulled, frames) == pytest.approx(
        extra, abs=1e-10
    )


def test_a_shift_of_the_skin_moves_the_com(beetle):
    skin = _skin(beetle)
    torso = beetle.tree.bodies.index("torso")
    shift = np.zeros((2, len(beetle.tree.bodies), 3))
    shift[1, torso] = [0.01, 0.0, 0.02]
    zero = np.zeros((2, beetle.nv))
    influence = SkinInfluence(zero, shift, zero, zero, zero)
    inertia = frame_inertia(beetle, skin, influence, [0, 1])
    c = beetle.com(np.stack([beetle.rest] * 2), inertia)
    share = skin.mass[torso] / (beetle.mass + skin.mass.sum())
    assert c[1] - c[0] == pytest.approx(share * shift[1, torso], abs=1e-12)


# ------------------------------------------------------------------ answers
def test_a_walk_is_found_and_holds_every_constraint(plan):
    assert plan.ok, plan.solution.summary()
    problem, parts = plan.problem, plan.parts
    quad, contact = problem.quad, problem.contact
    K = len(problem.frames)
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
            p[k, j, :2]
            + s.corners @ quad.tree.sole_axes_function(s)(q[k]).full()[:2, :2].T
            for j, s in enumerate(quad.soles)
            if contact[k, j]
        ]
        assert margin(polygon(np.vstack(corners)), cop) > -1e-4
    assert np.all(np.abs(parts["tau"]) <= problem.limits + 1e-6)


def test_its_torques_are_drakes_inverse_dynamics(beetle):
    """On a plan without skin: Drake's plant needs the plan's torques, and nothing
    at its base, under the plan's contact forces."""
    plan = plan_space_time(SpaceTime(beetle, _walk(beetle), stride=10))
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
    q, v, a = frame_motion(plan)
    at, h = plan.problem.frames, plan.problem.step
    assert v[at] == pytest.approx(plan.parts["v"], abs=1e-6)
    assert a[at] == pytest.approx(plan.parts["a"], abs=1e-4)
    assert q[at] - plan.parts["q"] == pytest.approx(
        h**2 / 6 * plan.parts["a"], abs=1e-6
    )


def test_between_knots_the_motion_is_of_second_order(beetle):
    """Of a smooth path at rest at both ends, at two strides."""
    motion = lift(beetle, ["fl"], duration=1.0, height=0.02)
    errors = []
    for stride in (10, 5):
        problem = SpaceTime(beetle, motion, stride=stride)
        path = np.cos(2 * np.pi * motion.times)[:, None] * np.ones(beetle.nv)
        q, _, _ = spline_motion(problem, path[problem.frames])
        errors.append(np.abs(q - path).max())
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.1)


def test_a_plan_holds_between_its_knots(beetle):
    motion = lift(beetle, ["fl"], duration=1.0, height=0.02)
    found = plan_space_time(SpaceTime(beetle, motion, stride=5))
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


def test_a_motion_to_follow_draws_the_plan(plan):
    """A step to the side is possible, and costs E_COM and E_EE."""
    q, _, _ = frame_motion(plan)
    target = q.copy()
    target[:, 1] += 0.01
    gap = []
    for weight in (1.0, 1e6):
        problem = replace(
            plan.problem, follow=target, weights=replace(Weights(), follow=weight)
        )
        found = plan_space_time(problem, warm=plan)
        assert found.ok, found.solution.summary()
        at = found.problem.frames
        gap.append(np.abs(found.parts["q"] - target[at])[:, 1].mean())
    assert gap[0] > 5e-3 and gap[1] < 0.1 * gap[0]


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
    problem = SpaceTime(beetle, motion, stride=10, friction=0.8)
    found = plan_space_time(problem, options={"max_iter": 1})
    assert found.solution.verdict is Verdict.FAILED
    name, value = next(iter(found.solution.residuals.items()))
    assert value > 1e-4 and name.split("[")[0] in found.solution.program.rows
    result = found.result()
    assert not result.ok and name in result.residuals


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
    problem = SpaceTime(beetle, motion, stride=20)
    exact = plan_space_time(problem)
    assert exact.ok
    program, x = exact.solution.program, exact.solution.x
    x0 = x + 1e-3 * program.x_scale * np.sin(np.arange(len(x)))
    x0 = np.clip(x0, program.x_lower, program.x_upper)
    snopt = solve(program, x0, solver="snopt", time_limit=60)
    assert snopt.ok, snopt.summary()
    assert snopt.objective == pytest.approx(exact.solution.objective, rel=1e-3)


def test_warm_starts_must_fit(plan, quads):
    other = SpaceTime(plan.problem.quad, plan.problem.motion, stride=5)
    with pytest.raises(InvalidInput, match="warm start"):
        plan_space_time(other, warm=plan)
    again = solve_exact(
        plan.solution.program, plan.solution.x, options={"mu_init": 1e-6}
    )
    assert again.success


def test_support_polygon_of_flat_soles(beetle):
    hull = support_polygon(beetle, beetle.rest_feet, [1, 1, 1, 1], 0.0)
    low = beetle.rest_feet[:, :2].min(axis=0) - [0.025, 0.02]
    assert hull.min(axis=0) == pytest.approx(low)
