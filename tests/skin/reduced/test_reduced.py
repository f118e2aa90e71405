"""A reduced skin: shape, cubature, and the full skin's torques."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydrake.math import RigidTransform, RollPitchYaw

from drakebots.core.errors import FileProblem, InvalidInput, NoSolution
from drakebots.fem.assembly import elastic_force, force_and_tangent, gravity_force
from drakebots.model import moved_positions
from drakebots.multibody import Flat
from drakebots.skin import skin_collisions
from drakebots.skin.coupled import PatchContact, PatchLaw
from drakebots.skin.coupled.laws import minimise
from drakebots.skin.coupled.touch import Pairs
from drakebots.skin.file import load_skinned
from drakebots.skin.file.description import Patches
from drakebots.skin.reduced import (
    ReducedOptions,
    harmonic_weights,
    random_targets,
    read_reduced,
    reduced_stepper,
    train_reduced,
    write_reduced,
)
from drakebots.skin.reduced.basis import (
    LinkMotion,
    Links,
    SkinRun,
    SparseWeights,
    blended,
    blended_columns,
    limb_of,
    pulled_back,
    windows,
)
from drakebots.skin.reduced.cubature import all_points, sparse_weights
from drakebots.skin.reduced.stepper import CondensedSystem, ReducedForces
from drakebots.skin.reduced.training import training_run
from tests.helpers.scripts import load_script

measure_reduced, walk_targets = load_script(
    "reduced_error", "measure_reduced", "walk_targets"
)

DT = 8e-3
SHORT = 0.05
"""What a training run of 0.3 s leaves of torques; a long one leaves 0.01."""
OPTIONS = ReducedOptions(limb_modes=12, shapes=30, tolerance=1e-2)


@pytest.fixture(scope="module")
def robot():
    return load_skinned("skinned_leg")


@pytest.fixture(scope="module")
def run(robot):
    rest = robot.joint_positions(robot.rest_positions)
    return training_run(robot, random_targets(rest, 0.4, 2, rise=0.05), steps=36)


@pytest.fixture(scope="module")
def skin(robot, run):
    return train_reduced(robot, [run], OPTIONS)


@pytest.fixture(scope="module")
def stepper(robot, skin):
    return reduced_stepper(robot, skin, DT)


def bent(robot, hip, knee):
    return robot.rest_positions + np.array([hip, knee])


def some_motion(count=3, columns=4, seed=0):
    rng = np.random.default_rng(seed)
    turn = [
        RollPitchYaw(0.4 * rng.standard_normal(3)).ToRotationMatrix().matrix()
        for _ in range(count)
    ]
    return LinkMotion(
        np.array(turn),
        rng.standard_normal((count, 3)),
        rng.standard_normal((count, 3, columns)),
        rng.standard_normal((count, 3, columns)),
    )


def some_weights(n, links, seed=0):
    weights = np.random.default_rng(seed).random((n, links)) + 0.05
    return SparseWeights.of(weights / weights.sum(axis=1, keepdims=True))


def test_links_that_move_as_one_move_the_skin_rigidly():
    points = np.random.default_rng(1).standard_normal((20, 3))
    X = RigidTransform(RollPitchYaw(0.3, -1.0, 2.0), [1.0, 2.0, 3.0])
    none = np.zeros((3, 3, 0))
    motion = LinkMotion(
        np.tile(X.rotation().matrix(), (3, 1, 1)),
        np.tile(X.translation(), (3, 1)),
        none,
        none,
    )
    moved = blended(points, some_weights(20, 3), motion)
    assert np.abs(moved - X.multiply(points.T).T).max() < 1e-13


def test_pulled_back_is_the_inverse():
    points = np.random.default_rng(1).standard_normal((20, 3))
    weights, motion = some_weights(20, 3), some_motion()
    back = pulled_back(blended(points, weights, motion), weights, motion)
    assert np.abs(back - points).max() < 1e-12


def test_weights_are_shares_and_one_at_the_own_glue(robot):
    names = tuple(robot.glue.by_body())
    weights = harmonic_weights(robot.fem, robot.glue, names)
    assert np.abs(weights.sum(axis=1) - 1).max() < 1e-12
    assert weights.min() >= 0
    for name, rows in robot.glue.by_body().items():
        assert np.all(weights[robot.glue.vertices[rows], names.index(name)] == 1)


def test_columns_are_the_derivative_of_the_shape(robot, skin, stepper):
    links = Links(robot.plant, robot.context, skin.links)
    rng = np.random.default_rng(3)
    q, y = bent(robot, 0.3, -0.5), 0.05 * rng.standard_normal(skin.size)
    nodes = rng.choice(len(skin.rest), 50, replace=False)
    weights, modes = SparseWeights.of(skin.weights).rows(nodes), skin.modes[nodes]

    def shape(d):
        stepper.pose(q, np.zeros(2))
        q_new = moved_positions(robot.plant, stepper.context, d[:2])
        stepper.pose(q_new, np.zeros(2))
        motion = links.motion(stepper.context)
        points = skin.rest[nodes] + modes @ (y + d[2:])
        return blended(points, weights, motion), motion, points

    x, motion, points = shape(np.zeros(2 + skin.size))
    again, J = blended_columns(points, weights, motion, modes)
    assert np.abs(again - x).max() < 1e-15
    d = rng.standard_normal(2 + skin.size)
    h = 1e-5
    slope = (shape(h * d)[0] - shape(-h * d)[0]) / (2 * h)
    assert np.abs(slope - J @ d).max() < 1e-8 * np.abs(slope).max()


def test_glue_stays_on_the_links_whatever_the_modes_do(robot, skin, stepper):
    rng = np.random.default_rng(4)
    q = bent(robot, 0.2, 0.4)
    state = stepper.state(0.0, q, [1.0, -2.0], rng.standard_normal(skin.size))
    full = robot.stepper(DT)
    assert full.glue_gap(stepper.lift(state)) < 1e-12


@pytest.mark.long
def test_all_points_give_the_full_skins_projection(robot, skin, stepper):
    whole = all_points(robot.fem)
    every = replace(
        skin,
        point_nodes=whole.nodes,
        point_gradients=whole.gradients,
        point_weights=whole.weights,
        point_row=whole.row,
        point_domain=np.ones(len(whole.row), int),
        mass_nodes=np.arange(len(skin.rest)),
        masses=robot.fem.node_mass,
    )
    gravity = np.array([0.0, 0.0, -9.81])
    forces = ReducedForces(robot.fem, every, gravity)
    y = 0.1 * np.random.default_rng(5).standard_normal(skin.size)
    stepper.pose(bent(robot, 0.2, -0.3), np.zeros(2))
    motion = stepper.links.motion(stepper.context)
    x, J = blended_columns(
        skin.rest + skin.modes @ y,
        SparseWeights.of(skin.weights),
        motion,
        skin.modes,
    )
    J = J.reshape(-1, J.shape[2])
    g, K, low = forces.elastic(motion, y, DT, False)
    f, values = force_and_tangent(robot.fem, x)
    damped = 1 + robot.fem.materials[0].stiffness_damping / DT
    want = damped * J.T @ (robot.fem.pattern.full(values) @ J)
    assert np.abs(g + J.T @ f.ravel()).max() < 1e-9 * np.abs(g).max()
    assert np.abs(K - want).max() < 1e-9 * np.abs(want).max()
    assert 0 < low < 1
    M, push, _ = forces.inertia(motion, y, 0.0, DT)
    mass = robot.fem.pattern.full(robot.fem.mass) @ J
    assert np.abs(M - J.T @ mass / DT**2).max() < 1e-9 * np.abs(M).max()
    weight = J.T @ gravity_force(robot.fem, gravity).ravel()
    assert np.abs(push - weight).max() < 1e-9 * np.abs(weight).max()


def test_cubature_gives_forces_of_shapes_off_its_training(robot, skin, stepper):
    forces = ReducedForces(robot.fem, skin, np.zeros(3))
    q = bent(robot, 0.15, -0.2)
    stepper.pose(q, np.zeros(2))
    motion, y = stepper.links.motion(stepper.context), np.zeros(skin.size)
    g, _, _ = forces.elastic(motion, y, DT, False)
    x, J = blended_columns(
        skin.rest, SparseWeights.of(skin.weights), motion, skin.modes
    )
    want = -J.reshape(-1, J.shape[2]).T @ elastic_force(robot.fem, x).ravel()
    assert np.linalg.norm(g - want) < 0.05 * np.linalg.norm(want)
    assert len(skin.point_row) < len(all_points(robot.fem).row) / 30


def test_mass_points_keep_mass_and_centre(robot, skin):
    m = robot.fem.node_mass
    assert skin.masses.sum() == pytest.approx(m.sum(), rel=1e-12)
    assert skin.masses.min() > 0
    centre = skin.masses @ skin.rest[skin.mass_nodes] / m.sum()
    size = np.ptp(skin.rest, axis=0).max()
    assert np.abs(centre - m @ skin.rest / m.sum()).max() < 5e-3 * size


def test_torques_of_an_unseen_motion(robot, skin):
    rest = robot.joint_positions(robot.rest_positions)
    targets = random_targets(rest, 0.25, 11, rise=0.05)
    figures, arrays = measure_reduced(robot, skin, targets, steps=30)
    assert figures["torque_error"] < SHORT
    assert figures["position_error_m"] < 2e-3
    off = arrays["reduced_torque"] - arrays["torque"]
    size = np.linalg.norm(arrays["torque"])
    assert figures["torque_error"] == pytest.approx(np.linalg.norm(off) / size)


def test_settled_skin_is_in_equilibrium(robot, stepper):
    q = bent(robot, 0.3, -0.4)
    y = stepper.settled(q)
    stepper.pose(q, np.zeros(2))
    motion = stepper.links.motion(stepper.context)
    forces = stepper.forces
    g, _, _ = forces.elastic(motion, y, np.inf, False)
    _, weight, _ = forces.inertia(motion, y, 0.0, np.inf)
    start, _, _ = forces.elastic(motion, np.zeros_like(y), np.inf, False)
    assert np.abs((weight - g)[2:]).max() < 1e-5 * np.abs(start[2:]).max()


def test_ground_pushes_both_skins_alike(robot, skin):
    low = Patches("tip", "shin", np.array([[0.01, 0.0, -0.1], [-0.01, 0.0, -0.1]]))
    options = {
        "patches": (low,),
        "patch_contact": PatchContact(
            stiffness=500.0, terrain=Flat(tip_height(robot) + 2e-3)
        ),
        "effort_limits": np.full(2, np.inf),
    }
    full = robot.stepper(DT, **options)
    small = reduced_stepper(robot, skin, DT, **options)
    a, b = full.start(), small.start()
    for k in range(15):
        servo = robot.servo(np.array([0.1, -0.2]) * np.sin(np.pi * k / 28) ** 2)
        one, two = full.step(a, servo=servo), small.step(b, servo=servo)
        assert one.converged and two.converged, two.message
        a, b = one.state, two.state
    assert one.patch_forces[:, 2].max() > 0.1
    size = np.abs(one.patch_forces).max()
    assert np.abs(one.patch_forces - two.patch_forces).max() < SHORT * size
    assert np.abs(one.torques - two.torques).max() < SHORT * np.abs(one.torques).max()


def tip_height(robot):
    stepper = robot.stepper(DT)
    stepper.start()
    body = robot.plant.GetBodyByName("shin")
    X = robot.plant.EvalBodyPoseInWorld(stepper.context, body)
    return X.multiply([0.0, 0.0, -0.1])[2]


@pytest.mark.long
@given(st.integers(0, 10**6))
def test_points_with_friction_always_come_to_rest(seed):
    """A frame's minimum is found, whatever the points do: it is convex."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((8, 8))
    R = X @ X.T + 0.5 * np.eye(8)
    system = CondensedSystem(R, rng.standard_normal(8), np.eye(8)[:, :1])
    contact = PatchContact(slip_speed=10 ** rng.uniform(-2, 1))
    n = 5
    law = PatchLaw(
        rng.standard_normal((3 * n, 8)),
        rng.standard_normal(n),
        rng.uniform(1, 100, n),
        rng.uniform(0, 3, n),
        np.full(n, contact.friction),
        contact.slip_speed * DT,
        np.tile(np.eye(3), (n, 1, 1)),
    )
    r = system.right_side()
    z = minimise(system, [law], r, system.back(r))
    left = R @ z - r - law.rows.T @ law.force(law.rows @ z)
    assert np.abs(left).max() < 1e-5 * max(1.0, np.abs(R @ z).max())


def test_small_system_is_the_dense_solve():
    rng = np.random.default_rng(6)
    X, b = rng.standard_normal((9, 9)), rng.standard_normal(9)
    A, B = X @ X.T + np.eye(9), rng.standard_normal((4, 2))
    system = CondensedSystem(A, b, B)
    want = np.linalg.solve(A, b + np.concatenate([B @ [1.0, 2.0], np.zeros(5)]))
    dq = system.back(system.right_side([1.0, 2.0]))
    assert np.allclose(dq, want[:4])
    assert np.allclose(system.modes(dq), want[4:])
    with pytest.raises(NoSolution, match="positive definite"):
        CondensedSystem(-A, b, B)
    with pytest.raises(NoSolution, match="finite"):
        CondensedSystem(A * np.nan, b, B)


def test_pairs_that_touch_push_and_what_they_push_moves():
    """A z = b + P' f with f = max(0, k (d - s) - c s/dt), s = P z, though condensed."""
    rng = np.random.default_rng(8)
    X, b, n = rng.standard_normal((9, 9)), rng.standard_normal(9), 12
    A, P = X @ X.T + np.eye(9), rng.standard_normal((n, 9))
    system = CondensedSystem(A, b, np.eye(4)[:, :2])
    k, c, depth = rng.uniform(5, 50, n), rng.uniform(0, 0.1, n), rng.normal(0, 1, n)
    pairs = Pairs(None, None, None, depth, k, c, None)
    law, moved = system.touching(P, pairs, DT)
    dq = minimise(system, [law], system.right_side(), np.zeros(4))
    f = law.force(law.rows @ dq)
    z = np.concatenate([dq, system.modes(dq) + moved @ f])
    s = P @ z
    assert np.allclose(f, np.maximum(0, k * (depth - s) - c * s / DT), atol=1e-9)
    assert np.allclose(A @ z, b + P.T @ f) and 0 < (f > 0).sum() < n


@pytest.mark.long
def test_links_keep_a_reduced_skin_out(robot, run):
    """A knee folded by 1.4 rad: less than half of the overlap without contact."""
    goal, inf = np.array([0.9, -1.4]), np.full(2, np.inf)
    fold = training_run(robot, lambda t: goal * min(1, t / 0.25), steps=50)
    skin = train_reduced(robot, [run, fold], OPTIONS)
    deepest, all_pairs = [], skin_collisions(robot, "all")
    for collisions in (all_pairs, None):
        given = {"effort_limits": inf, "collisions": collisions}
        stepper = reduced_stepper(robot, skin, 5e-3, **given)
        state = stepper.start()
        for k in range(60):
            servo = robot.servo(goal * min(1, 5e-3 * k / 0.25))
            result = stepper.step(state, servo=servo)
            assert result.converged, result.message
            state = result.state
        full = stepper.lift(state)
        stepper.pose(state.q, state.v)
        pairs = all_pairs.pairs(robot.plant, stepper.context, full.skin, 5e-3)
        deepest.append(pairs.depth.max())
    assert 0 < deepest[0] < deepest[1] / 2


@given(st.integers(0, 10**6), st.integers(1, 6))
def test_sparse_weights_find_what_there_is(seed, count):
    rng = np.random.default_rng(seed)
    G, w = rng.standard_normal((40, 25)), np.zeros(25)
    w[rng.choice(25, count, replace=False)] = rng.uniform(0.5, 2.0, count)
    found = sparse_weights(G, G @ w, tolerance=1e-8, most=25)
    assert np.abs(found - w).max() < 1e-5
    few = sparse_weights(G, G @ w, tolerance=1e-8, most=1)
    assert (few > 0).sum() <= 1 and few.min() >= 0


def test_windows_share_each_node():
    weights = np.random.default_rng(0).dirichlet([0.3, 0.3, 0.3], 200)
    share = windows(weights, np.array([0, 1, 2]))
    assert np.abs(share.sum(axis=1) - 1).max() < 1e-12
    assert share.min() >= 0
    assert np.all(share[weights[:, 1] < 0.05, 1] == 0)


def test_limbs_hang_on_the_base(robot):
    assert set(limb_of(robot.plant, ("thigh", "shin"))) <= {0, 1}


def test_file_keeps_everything(skin, tmp_path):
    path = tmp_path / "x.npz"
    write_reduced(skin, path)
    again = read_reduced(path)
    assert again.links == skin.links
    for name in ("modes", "point_weights", "masses", "point_nodes", "errors"):
        assert np.array_equal(getattr(again, name), getattr(skin, name))
    assert [p.name for p in tmp_path.iterdir()] == ["x.npz"]


@pytest.mark.parametrize("keep", [0, 10, 1000])
def test_damaged_files_are_named(skin, tmp_path, keep):
    path = tmp_path / "x.npz"
    write_reduced(skin, path)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(FileProblem, match=r"x\.npz"):
        read_reduced(path)
    with pytest.raises(FileProblem):
        read_reduced(tmp_path / "none.npz")


def test_bad_input_is_refused(robot, run, skin, stepper):
    with pytest.raises(InvalidInput, match="no shapes"):
        train_reduced(robot, [], OPTIONS)
    other = SkinRun(run.motions[:1], run.positions[:1, :10])
    with pytest.raises(InvalidInput, match="10 nodes"):
        train_reduced(robot, [other], OPTIONS)
    with pytest.raises(InvalidInput, match="another mesh"):
        reduced_stepper(robot, replace(skin, rest=skin.rest + 1e-3), DT)
    with pytest.raises(InvalidInput, match="time step"):
        reduced_stepper(robot, skin, 0.0)
    with pytest.raises(InvalidInput, match="torques"):
        stepper.step(stepper.start(), [1.0])
    with pytest.raises(InvalidInput, match="skeleton's q"):
        stepper.start(np.array([np.nan, 0.0]))
    with pytest.raises(InvalidInput, match="limb_modes"):
        ReducedOptions(limb_modes=0)
    with pytest.raises(InvalidInput, match="tolerance"):
        ReducedOptions(tolerance=0.0)
    with pytest.raises(InvalidInput, match="needs 12"):
        walk_targets(np.zeros(3))
    with pytest.raises(InvalidInput, match="zero or not finite"):
        sparse_weights(np.ones((2, 2)), np.zeros(2), tolerance=0.1, most=1)


def test_forces_on_the_skin_do_their_work(robot, skin, stepper):
    """J' f is the slope of the work of f, by central differences of the shape."""
    rng = np.random.default_rng(5)
    q, y = bent(robot, 0.2, 0.3), 0.1 * rng.standard_normal(skin.size)
    forces = np.zeros_like(skin.rest)
    forces[rng.integers(len(forces), size=5)] = rng.standard_normal((5, 3))
    v, dy = (
        rng.standard_normal(stepper.plant.num_velocities()),
        rng.standard_normal(skin.size),
    )
    stepper.pose(q, v)
    found = stepper.forces.pull(stepper.links.motion(stepper.context), y, forces)
    work, h = [], 1e-6
    for sign in (1, -1):
        stepper.pose(q, v)
        ahead = moved_positions(stepper.plant, stepper.context, sign * h * v)
        stepper.pose(ahead, v)
        x = skin.positions(y + sign * h * dy, stepper.links.motion(stepper.context))
        work.append((forces * x).sum())
    slope = (work[0] - work[1]) / (2 * h)
    assert found @ np.concatenate([v, dy]) == pytest.approx(slope, rel=1e-6)
