"""The CasADi twin is the Drake plant: every quantity agrees to 1e-10.

Agreement is relative to the size of what is compared. With m_i = sqrt(M_ii),
entries of M are held to m_i m_j, and generalized forces, by Cauchy-Schwarz, to

    m_i (|a|_M + rate |v|_M + sqrt(mass) g) + |applied_i|

where |x|_M is the norm of m_j x_j and `rate` the fastest turning rate; so the
small torques of a small robot in SI count as much as its forces.
"""

import types

import casadi as ca
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydrake.math import RigidTransform, RollPitchYaw, RotationMatrix
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import (
    BallRpyJoint,
    BodyIndex,
    FixedOffsetFrame,
    LinearBushingRollPitchYaw,
    LinearSpringDamper,
    MultibodyForces,
    PlanarJoint,
    PrismaticJoint,
    PrismaticSpring,
    QuaternionFloatingJoint,
    RevoluteJoint,
    RevoluteSpring,
    RpyFloatingJoint,
    ScrewJoint,
    SpatialInertia,
    UnitInertia,
    UniversalJoint,
    WeldJoint,
)

import drakebots
from drakebots import build_robot
from drakebots.errors import InvalidInput, UnknownName
from drakebots.multibody.base import BASES
from drakebots.multibody.loops import Loop, LoopClosure
from drakebots.multibody.twin import Twin
from drakebots.multibody.twin_joints import joint_motion
from drakebots.units import MM_G_MS, SI

TOLERANCE = 1e-10


class Numbers:
    """The twin's expressions as one function of (q, v, vdot)."""

    def __init__(self, twin, loops=(), length_unit=1.0):
        q, v, a = (ca.SX.sym(n, k) for n, k in zip("qva", (twin.nq, twin.nv, twin.nv)))
        T = twin.kinetic_energy(q, v)
        poses = twin.poses(q)
        expressions = {
            "T": T,
            "V": twin.potential_energy(q),
            "M": ca.hessian(T, v)[0],
            "tau": twin.inverse_dynamics(q, v, a),
            "applied": twin.conservative_force(q) + twin.damping_force(q, v),
            "rates": twin.rates(q, v),
            "velocities": twin.velocities(q, twin.rates(q, v)),
            "poses": ca.horzcat(
                *[ca.horzcat(poses[i].R, poses[i].p) for i in sorted(poses)]
            ),
            "loops": twin.loops(q, loops, length_unit),
        }
        self.names = list(expressions)
        self.function = ca.Function("twin", [q, v, a], list(expressions.values()))

    def __call__(self, q, v, a) -> types.SimpleNamespace:
        values = [np.array(x) for x in self.function(q, v, a)]
        squeezed = [x[:, 0] if x.shape[1] == 1 else x for x in values]
        return types.SimpleNamespace(**dict(zip(self.names, squeezed)))


def turning_rates(plant, v):
    """The velocities that are angular, among all."""
    slides = np.zeros(plant.num_velocities(), bool)
    for index in plant.GetJointIndices():
        joint = plant.get_joint(index)
        linear = {
            "prismatic": [0],
            "planar": [0, 1],
            "rpy_floating": [3, 4, 5],
            "quaternion_floating": [3, 4, 5],
        }.get(joint.type_name(), [])
        slides[[joint.velocity_start() + k for k in linear]] = True
    return v[~slides]


def assert_close(value, expected, size):
    excess = np.abs(np.asarray(value) - expected) - TOLERANCE * np.asarray(size)
    assert (excess <= 0).all(), f"off by {np.abs(value - expected).max()}, size {size}"


def assert_twin_is_drake(plant, numbers, q, v, a, closure=None):
    """Compares everything at (q, v, vdot)."""
    context = plant.CreateDefaultContext()
    plant.SetPositions(context, q)
    plant.SetVelocities(context, v)
    ours = numbers(q, v, a)

    bodies = [plant.get_body(BodyIndex(i)) for i in range(plant.num_bodies())]
    poses = [plant.EvalBodyPoseInWorld(context, body) for body in bodies]
    theirs = np.hstack([X.GetAsMatrix34() for X in poses])
    reach = np.abs(theirs[:, 3::4]).max()
    assert_close(ours.poses, theirs, np.tile([1.0, 1.0, 1.0, reach], len(poses)))

    M = plant.CalcMassMatrix(context)
    m = np.sqrt(np.diag(M))
    assert_close(ours.M, M, np.outer(m, m))
    assert_close(ours.T, 0.5 * v @ M @ v, 0.5 * (m @ np.abs(v)) ** 2)
    assert_close(ours.T, plant.CalcKineticEnergy(context), 0.5 * (m @ np.abs(v)) ** 2)

    applied, none = MultibodyForces(plant), MultibodyForces(plant)
    plant.CalcForceElementsContribution(context, applied)
    tau = plant.CalcInverseDynamics(context, a, applied)
    force = plant.CalcInverseDynamics(context, a, none) - tau
    mass = plant.CalcTotalMass(context)
    g = np.linalg.norm(plant.gravity_field().gravity_vector())
    rate = np.abs(turning_rates(plant, v)).sum()
    size = np.linalg.norm(m * a) + rate * np.linalg.norm(m * v) + np.sqrt(mass) * g
    size = m * size + np.abs(force)
    assert_close(ours.tau, tau, size)
    assert_close(ours.applied, force, size)
    V = plant.CalcPotentialEnergy(context)
    assert_close(ours.V, V, abs(V) + 2 * mass * g * reach)

    qdot = plant.MapVelocityToQDot(context, v)
    assert_close(ours.rates, qdot, np.abs(qdot).max(initial=0.0))
    back = plant.MapQDotToVelocity(context, qdot)
    assert_close(ours.velocities, back, np.abs(v).max(initial=0.0))
    if closure is not None:
        lengths = [n < 3 for loop in closure.loops for n in range(loop.num_rows)]
        residual = closure.residual(context)
        assert_close(ours.loops, residual, np.where(lengths, reach, 1.0))


# ------------------------------------------------------------------ our models
def robots():
    """Every model of ours, on every base, in both units."""
    for name in drakebots.available_models():
        for base in BASES:
            for unit, scaling in (("si", SI), ("mm_g_ms", MM_G_MS)):
                yield pytest.param(name, base, scaling, id=f"{name}-{base}-{unit}")


def random_state(robot, rng):
    """(q, v, vdot) of the order of 0.3 rad and 0.3 mm, ten times that a ms."""
    mm, ms = 1e-3 / robot.scaling.length, 1e-3 / robot.scaling.time
    lengths = robot.length_positions()
    q_unit, v_unit = (np.where(mask, mm, 1.0) for mask in lengths)
    q = rng.uniform(-0.3, 0.3, len(q_unit)) * q_unit
    v, a = (rng.uniform(-3, 3, len(v_unit)) * v_unit for _ in range(2))
    return unit_quaternions(robot.plant, q), v / ms, a / ms**2


def unit_quaternions(plant, q):
    """q with every quaternion near one, of unit length."""
    for index in plant.GetJointIndices():
        joint = plant.get_joint(index)
        if joint.type_name() == "quaternion_floating":
            part = slice(joint.position_start(), joint.position_start() + 4)
            q[part] += [1, 0, 0, 0]
            q[part] /= np.linalg.norm(q[part])
    return q


@pytest.mark.parametrize("name, base, scaling", list(robots()))
def test_models(name, base, scaling):
    """Energies, dynamics, kinematics and loops at random states."""
    robot = build_robot(drakebots.load(name), scaling=scaling, base=base, time_step=0)
    twin = Twin(robot.plant)
    numbers = Numbers(twin, robot.model.loops, scaling.length)
    rng = np.random.default_rng(1)
    assert twin.velocities_are_rates == (base in ("euler", "fixed"))
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


# ---------------------------------------------------------------- random trees
REVERSIBLE = ("weld", "revolute", "prismatic")
KINDS = (
    *REVERSIBLE,
    "screw",
    "universal",
    "ball_rpy",
    "planar",
    "rpy_floating",
    "quaternion_floating",
)
LINK = st.tuples(
    st.integers(0, 5),  # which of the bodies so far it hangs on, the world first
    st.sampled_from((*KINDS, "free")),
    st.booleans(),  # whether the link is the joint's parent, where Drake allows it
)


def random_unit(rng):
    x = rng.normal(size=3)
    return x / np.linalg.norm(x)


def random_pose(rng):
    """Far from round numbers half of the time, else along the axes."""
    if rng.random() < 0.5:
        R = RotationMatrix(RollPitchYaw(rng.integers(-1, 3, 3) * np.pi / 2))
    else:
        R = RotationMatrix(RollPitchYaw(rng.uniform(-3, 3, 3)))
    return RigidTransform(R, rng.uniform(-1, 1, 3))


def random_inertia(rng):
    """Of a solid box in any place and direction."""
    box = UnitInertia.SolidBox(*rng.uniform(0.1, 1, 3))
    box = box.ReExpress(RotationMatrix(RollPitchYaw(rng.uniform(-3, 3, 3))))
    p = rng.uniform(-1, 1, 3)
    return SpatialInertia(rng.uniform(0.1, 2), p, box.ShiftFromCenterOfMass(p))


def random_axis(rng):
    return random_unit(rng) if rng.random() < 0.5 else np.eye(3)[rng.integers(3)]


def random_joint(kind, name, frames, rng):
    damping = rng.uniform(0, 1)
    make = {
        "weld": lambda: WeldJoint(name, *frames, random_pose(rng)),
        "revolute": lambda: RevoluteJoint(
            name, *frames, random_axis(rng), damping=damping
        ),
        "prismatic": lambda: PrismaticJoint(
            name, *frames, random_axis(rng), damping=damping
        ),
        "screw": lambda: ScrewJoint(
            name, *frames, random_axis(rng), rng.uniform(-1, 1), damping
        ),
        "universal": lambda: UniversalJoint(name, *frames, damping),
        "ball_rpy": lambda: BallRpyJoint(name, *frames, damping),
        "planar": lambda: PlanarJoint(name, *frames, rng.uniform(0, 1, 3)),
        "rpy_floating": lambda: RpyFloatingJoint(
            name, *frames, damping, rng.uniform(0, 1)
        ),
        "quaternion_floating": lambda: QuaternionFloatingJoint(
            name, *frames, damping, rng.uniform(0, 1)
        ),
    }
    return make[kind]()


def random_plant(links, rng):
    """A plant of these links, with springs, dampers, rotors and gravity."""
    plant = MultibodyPlant(0.0)
    heavy, light = (plant.AddModelInstance(name) for name in ("heavy", "light"))
    bodies = [plant.world_body()]
    for k, (on, kind, flip) in enumerate(links):
        inboard = bodies[on % len(bodies)]
        instance = light if rng.random() < 0.3 else heavy
        body = plant.AddRigidBody(f"b{k}", instance, random_inertia(rng))
        bodies.append(body)
        if kind == "free":
            continue
        ends = [inboard, body]
        if flip and kind in REVERSIBLE:
            ends.reverse()
        frames = [
            plant.AddFrame(
                FixedOffsetFrame(
                    f"f{k}{n}",
                    end.body_frame(),
                    random_pose(rng),
                    body.model_instance(),
                )
            )
            for n, end in enumerate(ends)
        ]
        joint = plant.AddJoint(random_joint(kind, f"j{k}", frames, rng))
        if kind == "revolute" and rng.random() < 0.7:
            x0, k0 = rng.uniform(-1, 1), rng.uniform(0, 20)
            plant.AddForceElement(RevoluteSpring(joint, x0, k0))
        if kind == "prismatic" and rng.random() < 0.7:
            x0, k0 = rng.uniform(-1, 1), rng.uniform(0, 20)
            plant.AddForceElement(PrismaticSpring(joint, x0, k0))
        if kind in ("revolute", "prismatic") and rng.random() < 0.7:
            actuator = plant.AddJointActuator(f"a{k}", joint)
            actuator.set_default_rotor_inertia(rng.uniform(0, 1e-2))
            actuator.set_default_gear_ratio(rng.uniform(-10, 10))
    for _ in range(rng.integers(0, 3)):
        A, B = rng.choice(len(bodies), 2, replace=False)
        points = rng.uniform(-2, 2, (2, 3))
        length, stiffness, damping = rng.uniform(0.1, 2, 3)
        plant.AddForceElement(
            LinearSpringDamper(
                bodies[A], points[0], bodies[B], points[1], length, stiffness, damping
            )
        )
    plant.mutable_gravity_field().set_gravity_vector(10 * random_unit(rng))
    if rng.random() < 0.5:
        plant.set_gravity_enabled(light, False)
    plant.Finalize()
    return plant


def random_loops(plant, rng):
    names = [plant.get_body(BodyIndex(i)).name() for i in range(plant.num_bodies())]
    loops = []
    for rows in ("ball", "planar", "hinge"):
        bodies = rng.choice(len(names), 2, replace=False)
        points, axes = rng.uniform(-1, 1, (2, 3)), [random_axis(rng) for _ in range(2)]
        loops.append(Loop(rows, *[names[b] for b in bodies], *points, *axes, rows=rows))
    return loops


def random_tree_state(plant, rng):
    q = unit_quaternions(plant, rng.uniform(-1, 1, plant.num_positions()))
    return q, *(rng.normal(size=plant.num_velocities()) for _ in range(2))


@settings(max_examples=60)
@given(
    links=st.lists(LINK, min_size=1, max_size=5),
    seed=st.integers(0, 2**32 - 1),
    length_unit=st.sampled_from([1.0, 1e-3]),
)
def test_random_trees(links, seed, length_unit):
    """Any tree of Drake's joints, force elements, rotors, offsets, gravity."""
    rng = np.random.default_rng(seed)
    plant = random_plant(links, rng)
    loops = random_loops(plant, rng)
    numbers = Numbers(Twin(plant), loops, length_unit)
    closure = LoopClosure(plant, loops, length_unit=length_unit)
    for _ in range(2):
        state = random_tree_state(plant, rng)
        assert_twin_is_drake(plant, numbers, *state, closure)


@pytest.mark.parametrize("kind", KINDS)
def test_joint_kinds(kind):
    """Each joint below a moving link and carrying another, by itself."""
    rng = np.random.default_rng(5)
    for _ in range(3):
        plant = random_plant([(0, "revolute", 0), (1, kind, 0), (2, "screw", 0)], rng)
        numbers = Numbers(Twin(plant))
        assert_twin_is_drake(plant, numbers, *random_tree_state(plant, rng))


@pytest.mark.parametrize("kind", REVERSIBLE)
def test_child_nearer_to_the_world(kind):
    """Drake allows these joints with their child on the world's side."""
    rng = np.random.default_rng(6)
    for _ in range(3):
        links = [(0, "revolute", 0), (1, kind, True), (2, "prismatic", True)]
        plant = random_plant(links, rng)
        numbers = Numbers(Twin(plant))
        assert_twin_is_drake(plant, numbers, *random_tree_state(plant, rng))


def test_quaternions_of_any_length():
    """R depends on a quaternion's direction only, and N+ N = 1."""
    rng = np.random.default_rng(7)
    plant = random_plant([(0, "quaternion_floating", 0), (1, "revolute", 0)], rng)
    numbers = Numbers(Twin(plant))
    q, v, a = random_tree_state(plant, rng)
    longer = q.copy()
    longer[:4] *= 1.7
    one, other = numbers(q, v, a), numbers(longer, v, a)
    for name in ("T", "V", "M", "poses", "velocities"):
        np.testing.assert_allclose(
            getattr(other, name), getattr(one, name), atol=1e-12, err_msg=name
        )
    np.testing.assert_allclose(other.velocities, v, atol=1e-12)


# -------------------------------------------------------------------- an other
LINKS = ("trunk", "arm", "slide", "tip")
PEER = "".join(
    f"""<link name="{name}"><inertial><origin xyz="0.1 {0.02 * k} -0.05"/>
    <mass value="{1 + 0.3 * k}"/><inertia ixx="0.02" iyy="0.03" izz="0.025"
    ixy="0.001" ixz="-0.002" iyz="0.003"/></inertial></link>"""
    for k, name in enumerate(LINKS)
)
PEER = f"""<robot name="peer"><link name="base"/>{PEER}
<joint name="j0" type="revolute"><parent link="base"/><child link="trunk"/>
  <origin xyz="0 0 0.3" rpy="0.2 0 0.1"/><axis xyz="0 0.6 0.8"/>
  <limit lower="-3" upper="3" effort="1" velocity="1"/></joint>
<joint name="j1" type="revolute"><parent link="trunk"/><child link="arm"/>
  <origin xyz="0.3 0 0" rpy="0 0.4 0"/><axis xyz="1 0 0"/>
  <limit lower="-3" upper="3" effort="1" velocity="1"/></joint>
<joint name="j2" type="prismatic"><parent link="trunk"/><child link="slide"/>
  <origin xyz="0 -0.2 0.1" rpy="0 0 -0.7"/><axis xyz="0 1 0"/>
  <limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
<joint name="j3" type="revolute"><parent link="slide"/><child link="tip"/>
  <origin xyz="0 0.1 0.1" rpy="1 0 0"/><axis xyz="0 0 1"/>
  <limit lower="-3" upper="3" effort="1" velocity="1"/></joint></robot>"""


def test_mujoco_agrees(tmp_path):
    """M and the bias (with gravity) of a branched arm, by another simulator."""
    mujoco = pytest.importorskip("mujoco")
    path = tmp_path / "peer.urdf"
    path.write_text(PEER)
    other = mujoco.MjModel.from_xml_path(str(path))
    other.opt.gravity[:] = [0, 0, -9.81]
    robot = build_robot(drakebots.load(path), base="fixed", time_step=0)
    numbers = Numbers(Twin(robot.plant))
    rng = np.random.default_rng(8)
    names = [f"j{k}" for k in range(4)]
    ours = [robot.plant.GetJointByName(name).velocity_start() for name in names]
    theirs = [other.joint(name).dofadr[0] for name in names]
    for _ in range(5):
        q, v = rng.uniform(-1, 1, (2, 4))
        data = mujoco.MjData(other)
        data.qpos[theirs], data.qvel[theirs] = q, v
        mujoco.mj_forward(other, data)
        columns = []
        for column in np.eye(4):
            product = np.zeros(4)
            mujoco.mj_mulM(other, data, product, column)
            columns.append(product)
        M = np.array(columns)[np.ix_(theirs, theirs)]
        at = np.zeros((2, 4))
        at[:, ours] = q, v
        twin = numbers(*at, np.zeros(4))
        np.testing.assert_allclose(twin.M[np.ix_(ours, ours)], M, atol=1e-10)
        np.testing.assert_allclose(
            twin.tau[ours], data.qfrc_bias[theirs], atol=1e-10 * np.abs(twin.tau).max()
        )


# ---------------------------------------------------------------------- errors
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
