"""The CasADi twin is the Drake plant, on our models; what has no twin is named."""

import types

import casadi as ca
import numpy as np
import pytest
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import LinearBushingRollPitchYaw, RevoluteJoint

import drakebots
from drakebots import build_robot
from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.core.units import MM_G_MS, SI
from drakebots.multibody import Twin
from drakebots.multibody.base import BASES
from drakebots.multibody.twin_joints import joint_motion
from tests.helpers.random_plants import random_inertia
from tests.helpers.twin_checks import (
    Numbers,
    assert_close,
    assert_twin_is_drake,
    unit_quaternions,
)


def has_free_body(name):
    """Whether a model floats; the gecko keeps to its wall."""
    summary = drakebots.load(name).summary
    return len(summary.positions) > len(summary.velocities)


WITHOUT_TWIN = {"voxel": "LinearBushingRollPitchYaw"}
"""Models that hold an element without a twin, and that element."""


def robots():
    """Every other model of ours, on every base it can have, in both units.

    HAMR is what is planned in mm, g and ms; of the others, that is checked at length.
    """
    for name in sorted(set(drakebots.available_models()) - set(WITHOUT_TWIN)):
        for base in BASES if has_free_body(name) else ("quaternion", "fixed"):
            for unit, scaling in (("si", SI), ("mm_g_ms", MM_G_MS)):
                marks = [pytest.mark.long] if unit != "si" and name != "hamr" else []
                case = f"{name}-{base}-{unit}"
                yield pytest.param(name, base, scaling, id=case, marks=marks)


def random_state(robot, rng):
    """(q, v, vdot) of the order of 0.3 rad and 0.3 mm, ten times that a ms."""
    mm, ms = 1e-3 / robot.scaling.length, 1e-3 / robot.scaling.time
    lengths = robot.length_positions()
    q_unit, v_unit = (np.where(mask, mm, 1.0) for mask in lengths)
    q = rng.uniform(-0.3, 0.3, len(q_unit)) * q_unit
    v, a = (rng.uniform(-3, 3, len(v_unit)) * v_unit for _ in range(2))
    return unit_quaternions(robot.plant, q), v / ms, a / ms**2


@pytest.mark.parametrize("name, base, scaling", list(robots()))
def test_models(name, base, scaling):
    """Energies, dynamics, kinematics and loops at random states."""
    robot = build_robot(drakebots.load(name), scaling=scaling, base=base, time_step=0)
    twin = Twin(robot.plant)
    numbers = Numbers(twin, robot.model.loops, scaling.length)
    rng = np.random.default_rng(1)
    turns_by_quaternion = base == "quaternion" and has_free_body(name)
    assert twin.velocities_are_rates == (not turns_by_quaternion and base != "rpy")
    for _ in range(5):
        state = random_state(robot, rng)
        assert_twin_is_drake(robot.plant, numbers, *state, robot.closure)
    q = state[0]
    points = [(p.body, p.p_BF / scaling.length) for p in robot.model.feet]
    symbols = ca.SX.sym("q", twin.nq)
    feet = ca.horzcat(*[twin.point(symbols, *point) for point in points]).T
    context = robot.plant.CreateDefaultContext()
    robot.plant.SetPositions(context, q)
    expected = robot.feet_positions(context) / scaling.length
    ours = np.array(ca.Function("feet", [symbols], [feet])(q))
    assert_close(ours, expected, np.abs(expected).max())
    np.testing.assert_array_equal(
        twin.actuation_matrix(), robot.plant.MakeActuationMatrix()
    )


@pytest.mark.parametrize("name, element", list(WITHOUT_TWIN.items()))
def test_a_model_without_a_twin_says_why(name, element):
    robot = build_robot(drakebots.load(name), time_step=0)
    with pytest.raises(InvalidInput, match=element):
        Twin(robot.plant)


@pytest.fixture(scope="module")
def hamr():
    return build_robot(
        drakebots.load("hamr"), scaling=MM_G_MS, base="euler", time_step=0
    )


def test_lagrange_equations(hamr):
    """d/dt dL/dv - dL/dq is inverse dynamics, which knows nothing of L."""
    twin = Twin(hamr.plant)
    q, v, a = (ca.SX.sym(n, 38) for n in "qva")
    L = twin.lagrangian(q, v)
    momentum, slope = ca.gradient(L, v), ca.gradient(L, q)
    lagrange = ca.jtimes(momentum, q, v) + ca.jtimes(momentum, v, a) - slope
    lagrange -= twin.damping_force(q, v)
    both = ca.Function("f", [q, v, a], [lagrange, twin.inverse_dynamics(q, v, a)])
    rng = np.random.default_rng(2)
    for _ in range(5):
        ours, newton = (np.array(x).ravel() for x in both(*random_state(hamr, rng)))
        # Massless links of the base have momenta as large as the robot's own.
        assert_close(ours, newton, np.abs(newton).max())


def test_derivatives_are_central_differences(hamr):
    """dL/dq, dL/dv, dc/dq, d tau/dq, d tau/dv, to the error of differences."""
    twin = Twin(hamr.plant)
    q, v, a = (ca.SX.sym(n, 38) for n in "qva")
    x = ca.vertcat(q, v)
    values = ca.vertcat(
        twin.lagrangian(q, v),
        twin.loops(q, hamr.model.loops, MM_G_MS.length),
        twin.inverse_dynamics(q, v, a),
    )
    f = ca.Function("f", [x, a], [values, ca.jacobian(values, x)])
    q, v, a = random_state(hamr, np.random.default_rng(3))
    x, v = np.r_[q, 0.1 * v], 0.1 * v
    J = np.array(f(x, a)[1])
    steps = 1e-5 * np.eye(76)
    differences = np.array(
        [(np.array(f(x + s, a)[0]) - np.array(f(x - s, a)[0])) / 2e-5 for s in steps]
    )[:, :, 0].T
    size = np.abs(J).max(axis=1, keepdims=True)
    assert (np.abs(J - differences) <= 1e-7 * size).all()


def test_relative_pose_depends_on_the_joints_between(hamr):
    """Loops of one leg have no derivative by another leg or the base."""
    twin = Twin(hamr.plant)
    q = ca.SX.sym("q", 38)
    for loop in hamr.model.loops:
        rows = twin.loops(q, [loop], MM_G_MS.length)
        columns = np.flatnonzero(np.array(ca.sum1(ca.jacobian(rows, q).sparsity())))
        assert 0 < len(columns) <= 8


def one_body():
    plant = MultibodyPlant(0.0)
    body = plant.AddRigidBody("body", random_inertia(np.random.default_rng(9)))
    return plant, body


def test_unfinalized_plant():
    with pytest.raises(InvalidInput, match="must be finalized"):
        Twin(one_body()[0])


def test_bushing_has_no_twin():
    plant, body = one_body()
    bushing = LinearBushingRollPitchYaw(
        plant.world_frame(), body.body_frame(), *np.ones((4, 3))
    )
    plant.AddForceElement(bushing)
    plant.Finalize()
    with pytest.raises(
        InvalidInput, match=r"\(LinearBushingRollPitchYaw\) has no twin"
    ):
        Twin(plant)


def test_unknown_joint_type():
    """CurvilinearJoint is not bound in Python, so a stand-in."""
    joint = types.SimpleNamespace(type_name=lambda: "curvilinear", name=lambda: "bend")
    with pytest.raises(InvalidInput, match="'bend' of type 'curvilinear' has no twin"):
        joint_motion(joint, ca.SX.sym("q", 1), ca.SX.sym("v", 1))


def test_loops_are_refused_by_drake_itself():
    """A finalized plant is a tree, so the twin never meets a loop."""
    plant, body = one_body()
    other = plant.AddRigidBody("other", random_inertia(np.random.default_rng(10)))
    world = plant.world_body()
    for k, pair in enumerate([(world, body), (body, other), (world, other)]):
        frames = [end.body_frame() for end in pair]
        plant.AddJoint(RevoluteJoint(f"j{k}", *frames, [1, 0, 0]))
    with pytest.raises(RuntimeError, match="loops"):
        plant.Finalize()


def test_unknown_body():
    plant, _ = one_body()
    plant.Finalize()
    with pytest.raises(UnknownName, match="did you mean 'body'"):
        Twin(plant).point(ca.SX.sym("q", 7), "bode", np.zeros(3))
