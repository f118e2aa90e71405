"""Time stepping with hard contact: the HAMR authors' trajectories, textbook
problems, and the complementarity solver."""

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from pydrake.math import RollPitchYaw, RotationMatrix
from pydrake.multibody.tree import JacobianWrtVariable

import drakebots
from drakebots import build_robot
from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.core.units import MM_G_MS
from drakebots.model import Loop, Point
from drakebots.multibody import TimeStepper, solve_lcp
from drakebots.robots.hamr.model.piezo import Bender
from tests.helpers.scripts import DATA
from tests.helpers.step_residual import step_residual

GRAVITY = 9.81


def table(name):
    """Column names and rows of a data file of the HAMR authors' simulator."""
    path = DATA / "hamr" / name
    if not path.is_file():
        pytest.skip(f"{path} is absent")
    with path.open() as file:
        names = file.readline().strip().split(",")
    return names, np.loadtxt(path, delimiter=",", skiprows=1)


@pytest.fixture(scope="module")
def variant():
    """HAMR as the authors' simulator V2 has it: softer lift actuators."""
    text = drakebots.load("hamr").path.read_text()
    assert "1694.6" in text
    text = text.replace("1694.6", "1155.6")
    return dataclasses.replace(drakebots.load("hamr"), text=text)


@pytest.fixture(scope="module")
def floating(variant):
    return build_robot(variant, scaling=MM_G_MS, base="euler", time_step=0)


@pytest.fixture(scope="module")
def trot(floating):
    """(q, v, forces) of the 60 Hz trot, in the plant's order."""
    names, rows = table("contact_trot60hz_dt0.25ms.csv")
    known = [name.removeprefix("q_") for name in names[17:55]]
    order = [
        known.index(name.replace("hamr_", "").replace("Chassis_", ""))
        for name in floating.plant.GetVelocityNames(always_add_suffix=False)
    ]
    return rows[:, 17:55][:, order], rows[:, 55:93][:, order], rows[:, 9:17]


@pytest.mark.long
def test_white_noise_in_air(variant):
    """5001 steps of 0.4 ms under white-noise voltages, chassis held: actuator
    positions and velocities are the authors' to nine digits."""
    _, rows = table("whitenoise_inair_dt0.4ms.csv")
    robot = build_robot(variant, scaling=MM_G_MS, base="fixed", time_step=0)
    stepper = TimeStepper(robot, 0.4)
    tips = np.argmax(stepper.actuation, axis=0)
    piezo = Bender(0.065e-3)
    mount = np.array([-1, -1, 1, 1, -1, -1, 1, 1.0])
    gain, softening = piezo.force_per_volt, piezo.softening * 1e-3  # N/V, N/(V mm)
    q, v, ours = np.zeros(32), np.zeros(32), []
    for voltage in rows[:, 1:9]:
        ours.append(np.r_[q[tips], v[tips]])
        push = mount * gain * (225 - 2 * voltage) - 225 * softening * q[tips]
        q, v, _ = stepper.step(q, v, push)
    assert len(ours) == 5001
    error, theirs = np.array(ours) - rows[:, 9:], rows[:, 9:]
    assert np.abs(theirs[:, :8]).max() > 0.1  # mm: it moves
    for part in (slice(0, 8), slice(8, 16)):
        rms = np.sqrt((error[:, part] ** 2).mean() / (theirs[:, part] ** 2).mean())
        assert rms < 1e-9


def test_trot_satisfies_the_scheme(floating, trot):
    """Every step of the authors' 60 Hz trot balances momentum, keeps the loops
    and obeys the contact law, to the tolerance of their LCP solver."""
    q, v, force = trot
    stepper = TimeStepper(floating, 0.25, friction=1.0)
    assert len(q) - 1 == 666
    worst = np.max(
        [
            dataclasses.astuple(step_residual(stepper, q[k], v[k], force[k], v[k + 1]))
            for k in range(len(q) - 1)
        ],
        axis=0,
    )
    names = ("momentum", "contact_law", "loops", "penetration", "limits")
    worst = dict(zip(names, worst))
    assert worst["momentum"] < 1e-10  # N, N mm
    assert worst["contact_law"] < 1e-5  # N
    assert worst["loops"] < 2e-7  # mm
    assert worst["penetration"] < 1e-6 and worst["limits"] < 1e-6  # mm
    np.testing.assert_allclose(q[1:], q[:-1] + 0.25 * v[1:], atol=1e-9)


def test_residual_sees_a_wrong_friction(floating, trot):
    """The trot's feet push harder than friction 0.2 allows: the contact law is
    broken by millinewtons, while the momentum still balances."""
    q, v, force = trot
    stepper = TimeStepper(floating, 0.25, friction=0.2)
    residuals = [
        step_residual(stepper, q[k], v[k], force[k], v[k + 1]) for k in range(200)
    ]
    assert max(r.contact_law for r in residuals) > 1e-3
    assert max(r.momentum for r in residuals) < 1e-10


def test_own_steps_satisfy_the_scheme(floating, trot):
    """Our step solves the equations its own residual checks, on the trot."""
    q, v, force = trot
    stepper = TimeStepper(floating, 0.25, friction=1.0)
    touched = 0
    for k in range(0, 666, 18):
        after, v_next, forces = stepper.step(q[k], v[k], force[k])
        r = step_residual(stepper, q[k], v[k], force[k], v_next)
        assert r.momentum < 1e-10 and r.loops < 1e-10
        assert r.contact_law < 1e-8 and r.penetration < 1e-8 and r.limits < 1e-8
        np.testing.assert_allclose(after, q[k] + 0.25 * v_next, atol=1e-14)
        assert (forces.normal >= 0).all()
        sideways = np.abs(forces.friction).sum(axis=1)
        assert (sideways <= forces.normal + 1e-8).all()
        touched += (forces.normal > 1e-6).any()
    assert touched > 10


# ------------------------------------------------------------- textbook problems
def block(folder, radius=0.0):
    """A block of 2 kg with one foot at its centre of mass: a point mass."""
    (folder / "block.sdf").write_text(
        """<sdf version="1.9"><model name="block"><link name="block"><inertial>
        <mass>2</mass><inertia><ixx>0.1</ixx><iyy>0.1</iyy><izz>0.1</izz></inertia>
        </inertial></link></model></sdf>"""
    )
    (folder / "block.drakebots.yaml").write_text(
        f"feet: {{foot: {{body: block, p: [0, 0, 0], radius: {radius}}}}}\n"
    )
    return drakebots.load(folder / "block.sdf")


@pytest.fixture(scope="module")
def mass_point(tmp_path_factory):
    model = block(tmp_path_factory.mktemp("block"))
    return build_robot(model, base="euler", time_step=0)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("mu", [0.0, 0.3, 0.9])
def test_sliding_block(mass_point, mu, axis, sign):
    """Coulomb friction brakes a block by mu g until it stops and stays; after n
    steps x = n h v0 - mu g h^2 n (n+1)/2 exactly."""
    h, v0, steps = 1e-3, 1.0, 400
    stepper = TimeStepper(mass_point, h, friction=mu)
    q, v = np.zeros(6), np.zeros(6)
    v[axis] = sign * v0
    for n in range(1, steps + 1):
        q, v, forces = stepper.step(q, v, np.zeros(0))
        speed = v0 - mu * GRAVITY * h * n
        if speed > 0:
            expected = n * h * v0 - mu * GRAVITY * h**2 * n * (n + 1) / 2
            assert v[axis] == pytest.approx(sign * speed, abs=1e-10)
            assert q[axis] == pytest.approx(sign * expected, abs=1e-10)
            assert forces.friction[0, axis] == pytest.approx(
                -sign * mu * 2 * GRAVITY, abs=1e-9
            )
        elif speed < -mu * GRAVITY * h:
            assert abs(v[axis]) < 1e-10
        assert forces.normal[0] == pytest.approx(2 * GRAVITY, abs=1e-9)
        assert abs(q[2]) < 1e-12 and abs(q[1 - axis]) < 1e-10
    if mu:  # slides v0^2/(2 mu g), to the step's order
        assert abs(q[axis]) == pytest.approx(v0**2 / (2 * mu * GRAVITY), abs=h * v0)


@pytest.mark.parametrize("slope, sticks", [(0.25, True), (0.35, False)])
def test_stiction_under_a_push(mass_point, slope, sticks):
    """A block pushed by m g tan(slope) sticks while tan(slope) < mu (0.3) and
    otherwise accelerates by g (tan(slope) - mu)."""
    stepper = TimeStepper(mass_point, 1e-3, friction=0.3)
    pull = 2 * GRAVITY * np.tan(slope)
    generalized = stepper.generalized_forces
    stepper.generalized_forces = lambda q, v, u: (
        generalized(q, v, u) + pull * np.eye(6)[0]
    )
    q, v = np.zeros(6), np.zeros(6)
    for _ in range(100):
        q, v, forces = stepper.step(q, v, np.zeros(0))
    if sticks:
        assert np.abs(v).max() < 1e-10
        assert forces.friction[0, 0] == pytest.approx(-pull, abs=1e-9)
    else:
        expected = 0.1 * GRAVITY * (np.tan(slope) - 0.3)
        assert v[0] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("radius", [0.0, 0.05])
def test_dropped_ball(tmp_path, radius):
    """A ball falls freely, lands without penetrating or bouncing, and rests on
    a normal force of m g."""
    robot = build_robot(block(tmp_path, radius), base="euler", time_step=0)
    h, height = 2e-3, 0.5
    stepper = TimeStepper(robot, h, friction=0.5)
    q, v = np.zeros(6), np.zeros(6)
    q[2] = height + radius
    for n in range(1, 301):
        q, v, forces = stepper.step(q, v, np.zeros(0))
        assert q[2] >= radius - 1e-10
        fall = GRAVITY * h**2 * n * (n + 1) / 2
        if fall < height:
            assert q[2] == pytest.approx(height + radius - fall, abs=1e-11)
            assert forces.normal[0] == pytest.approx(0, abs=1e-9)
    assert q[2] == pytest.approx(radius, abs=1e-10) and np.abs(v).max() < 1e-10
    assert forces.normal[0] == pytest.approx(2 * GRAVITY, abs=1e-9)


def test_momentum_without_ground(mass_point):
    """Without ground nothing stops the fall: v = -g t, straight through z=0."""
    stepper = TimeStepper(mass_point, 0.01)
    q, v = np.zeros(6), np.zeros(6)
    for _ in range(50):
        q, v, forces = stepper.step(q, v, np.zeros(0))
    assert v[2] == pytest.approx(-GRAVITY * 0.5) and q[2] < -1
    assert forces.normal.size == 0


def test_joint_limit_holds(tmp_path):
    """A slider pulled down by gravity stops at its lower limit, which then
    carries its weight."""
    path = tmp_path / "slider.sdf"
    body = """<inertial><mass>0.5</mass><inertia><ixx>1</ixx><iyy>1</iyy><izz>1</izz>
      </inertia></inertial>"""
    path.write_text(
        f"""<sdf version="1.9"><model name="m"><link name="a">{body}</link>
        <link name="b">{body}</link><joint name="rail" type="prismatic">
        <parent>a</parent><child>b</child><axis><xyz>0 0 1</xyz><limit>
        <lower>-0.1</lower><upper>1</upper><effort>0</effort></limit></axis></joint></model></sdf>"""
    )
    robot = build_robot(drakebots.load(path), base="fixed", time_step=0)
    stepper = TimeStepper(robot, 1e-3)
    q, v = np.zeros(1), np.zeros(1)
    for _ in range(400):
        before = q, v
        q, v, forces = stepper.step(q, v, np.zeros(0))
        assert q[0] >= -0.1 - 1e-12
    assert q[0] == pytest.approx(-0.1, abs=1e-10) and abs(v[0]) < 1e-10
    assert forces.limits[0] == pytest.approx(0.5 * GRAVITY)
    residual = step_residual(stepper, *before, np.zeros(0), v)
    assert max(dataclasses.astuple(residual)) < 1e-10


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    """A link on a vertical hinge, from -0.5 to 0.5 rad, by a motor of 1 N m."""
    path = tmp_path_factory.mktemp("arm") / "arm.urdf"
    path.write_text(
        """<robot name="arm"><link name="base"/><link name="bar"><inertial>
        <mass value="0.5"/><inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0"
        izz="0.01"/></inertial></link><joint name="j" type="revolute">
        <parent link="base"/><child link="bar"/><axis xyz="0 0 1"/>
        <limit lower="-0.5" upper="0.5" effort="1" velocity="9"/></joint></robot>"""
    )
    return build_robot(drakebots.load(path), base="fixed", time_step=0)


def test_motors_keep_their_limits_of_effort(arm):
    """As in Drake's plant: 5 N m asked of a motor of 1 N m turn 0.01 kg m^2 by
    100 rad/s^2."""
    stepper = TimeStepper(arm, 1e-3)
    for asked in (5.0, -5.0, 0.5):
        _, v, _ = stepper.step(np.zeros(1), np.zeros(1), np.array([asked]))
        assert v[0] == pytest.approx(0.1 * np.clip(asked, -1, 1), rel=1e-12)
    with pytest.raises(ValueError):
        stepper.step(np.zeros(1), np.zeros(1), np.zeros(2))


@pytest.mark.parametrize("speed", [50.0, 350.0, -3000.0])
def test_a_stop_holds_whatever_comes(arm, speed):
    """A joint that passes its stop within a step would come back faster than by any
    bounce; the stop takes its angular momentum."""
    stepper = TimeStepper(arm, 1e-3)
    q, v, taken = np.zeros(1), np.array([speed]), 0.0
    for _ in range(20):
        q, v, forces = stepper.step(q, v, np.zeros(1))
        taken -= 1e-3 * forces.limits[0]
        assert abs(q[0]) <= 0.5 + 1e-12
    assert v[0] == pytest.approx(0.0, abs=1e-10)
    assert taken == pytest.approx(0.01 * speed, rel=1e-9)


@pytest.mark.parametrize("mass", [0.1, 0.3, 0.37, 1.7])
def test_loops_that_contradict_each_other_are_refused(tmp_path, mass):
    """A body held at two points 1 mm apart: rows that depend on each other may pass
    Cholesky's method by rounding, as they do at three of these masses."""
    path = tmp_path / "slides.urdf"
    joints = "".join(
        f"""<joint name="{a}" type="prismatic"><parent link="{parent}"/>
        <child link="{child}"/><axis xyz="{axis}"/>
        <limit lower="-1" upper="1" effort="1" velocity="1"/></joint>"""
        for a, parent, child, axis in (
            ("x", "base", "a", "1 0 0"),
            ("z", "a", "b", "0 0 1"),
        )
    )
    path.write_text(
        f"""<robot name="slides"><link name="base"/><link name="a"/><link name="b">
        <inertial><mass value="{mass}"/><inertia ixx="1" ixy="0" ixz="0" iyy="1"
        iyz="0" izz="1"/></inertial></link>{joints}</robot>"""
    )
    y = np.array([0, 1.0, 0])
    loops = tuple(
        Loop(
            f"at {x}",
            "b",
            "base",
            np.zeros(3),
            np.array([x, 0, 0]),
            y,
            y,
            rows="planar",
        )
        for x in (0.0, 1e-3)
    )
    model = dataclasses.replace(drakebots.load(path), loops=loops)
    stepper = TimeStepper(build_robot(model, base="fixed", time_step=0), 1e-3)
    with pytest.raises(InvalidInput, match="depend on each other"):
        stepper.step(*np.zeros((3, 2)))


@pytest.mark.parametrize("mass, h", [(1.0, 1e-5), (100.0, 1e-3), (1e4, 1e-4)])
def test_a_heavy_box_lands_on_its_corners_at_once(tmp_path, mass, h):
    """It stops, and the side of the pyramid that it slides to slows it by mu = 0.4 of
    its fall's speed; the forces' impulse is m (v + g h)."""
    path = tmp_path / "box.urdf"
    path.write_text(
        f"""<robot name="box"><link name="box"><inertial><mass value="{mass}"/>
        <inertia ixx="{mass}" ixy="0" ixz="0" iyy="{mass}" iyz="0" izz="{mass}"/>
        </inertial><collision><geometry><box size="1 0.7 0.2"/></geometry></collision>
        </link></robot>"""
    )
    robot = build_robot(drakebots.load(path), base="euler", time_step=0)
    stepper = TimeStepper(robot, h, friction=0.4)
    q, v = np.array([0, 0, 0.1, 0, 0, 0]), np.array([5.0, 1.0, -5.0, 0, 0, 0])
    _, v_next, forces = stepper.step(q, v, np.zeros(0))
    impulse = mass * (5.0 + 9.81 * h)
    assert h * forces.normal.sum() == pytest.approx(impulse, rel=1e-9)
    slowed = 0.4 * impulse / mass
    assert v_next == pytest.approx([5 - slowed, 1, 0, 0, 0, 0], abs=1e-6)


CUBE = """<robot name="cube"><link name="cube"><inertial><mass value="0.37"/>
<inertia ixx="8e-4" ixy="0" ixz="0" iyy="7e-4" iyz="0" izz="6e-4"/>
</inertial></link></robot>"""


@pytest.fixture(scope="module")
def cube(tmp_path_factory):
    """A free body whose eight feet are the corners of a cube of 0.1 m."""
    path = tmp_path_factory.mktemp("cube") / "cube.urdf"
    path.write_text(CUBE)
    corners = itertools.product([-0.05, 0.05], repeat=3)
    feet = tuple(Point(f"c{i}", "cube", np.array(p)) for i, p in enumerate(corners))
    return dataclasses.replace(drakebots.load(path), feet=feet)


def thrown(cube, base, h):
    """Centre and rotation of the cube 0.1 s after a throw, two corners landed."""
    R_WB, V_WB = RotationMatrix(RollPitchYaw(0.6, -0.6, 0.2)), [1.0, 2, -1, 1, 0, -0.5]
    robot = build_robot(cube, base=base, time_step=0)
    plant, context = robot.plant, robot.plant.CreateDefaultContext()
    stepper = TimeStepper(robot, h, friction=0.3)
    body = plant.GetBodyByName("cube")
    q = plant.GetPositions(context)
    if base == "quaternion":
        q = np.r_[R_WB.ToQuaternion().wxyz(), 0, 0, 0.12]
        v = np.array(V_WB)
    else:
        q = np.r_[0, 0, 0.12, RollPitchYaw(R_WB).vector()[::-1]]
        plant.SetPositions(context, q)
        frame, W = body.body_frame(), plant.world_frame()
        J = plant.CalcJacobianSpatialVelocity(
            context, JacobianWrtVariable.kV, frame, np.zeros(3), W, W
        )
        v = np.linalg.solve(J, V_WB)
    for _ in range(round(0.1 / h)):
        q, v, _ = stepper.step(q, v, np.zeros(0))
    plant.SetPositions(context, q)
    X_WB = plant.EvalBodyPoseInWorld(context, body)
    return X_WB.translation(), X_WB.rotation()


def test_a_body_thrown_moves_alike_on_any_base(cube):
    """Angles and quaternions are two descriptions of one motion: through impacts they
    come to the same as the step shrinks, in proportion to it."""
    apart = []
    for h in (1e-3, 2.5e-4):
        (p, R), (p_euler, R_euler) = (
            thrown(cube, base, h) for base in ("quaternion", "euler")
        )
        assert p[2] > 0.06  # in free fall it were at 0.02
        angle = R.inverse().multiply(R_euler).ToAngleAxis().angle()
        apart.append([np.linalg.norm(p - p_euler), angle])
    ratio = np.array(apart[0]) / apart[1]
    assert max(apart[1]) < 5e-4 and ((ratio > 3) & (ratio < 5)).all()


def test_quaternions_pass_where_angles_cannot(cube):
    """At a pitch of 90 degrees yaw and roll are the same; a body on quaternions turns
    through it, about a principal axis as theta = w t, and stays a unit quaternion."""
    robot = build_robot(cube, base="quaternion", time_step=0)
    stepper = TimeStepper(robot, 1e-3)
    q, v = np.array([1.0, 0, 0, 0, 0, 0, 5]), np.array([0, 10.0, 0, 0, 0, 0])
    for _ in range(300):
        q, v, _ = stepper.step(q, v, np.zeros(0))
        assert np.linalg.norm(q[:4]) == pytest.approx(1, abs=1e-14)
    assert 2 * np.arctan2(q[2], q[0]) == pytest.approx(3.0, abs=1e-4)
    assert v[1] == pytest.approx(10.0, abs=1e-12)


@pytest.mark.parametrize("time_step", [0.0, -1e-3, np.nan])
def test_bad_time_steps_are_refused(mass_point, time_step):
    """Time runs forward."""
    with pytest.raises(InvalidInput, match="time step"):
        TimeStepper(mass_point, time_step)


@pytest.mark.parametrize("which", ["q", "v", "u"])
def test_not_a_number_is_no_state(mass_point, which):
    """A state or input that is NaN raises; it does not end the process (as
    Drake's own check would) or come back as the next state."""
    stepper = TimeStepper(mass_point, 1e-3, friction=0.5)
    state = {"q": np.zeros(6), "v": np.zeros(6), "u": np.zeros(1)}
    state[which][-1] = np.nan
    with pytest.raises(InvalidInput, match="finite"):
        stepper.step(*state.values())


# --------------------------------------------------------------- complementarity
def assert_solves(Z, z0, z, tolerance=1e-8):
    size = 1 + np.abs(z0).max()
    slack = Z @ z + z0
    assert (z >= 0).all()
    assert slack.min() > -tolerance * size
    assert np.abs(z * slack).max() < tolerance * size


def test_lcp_by_hand():
    """2 z1 + z2 >= 5, z1 + 2 z2 >= 6 meet at z = (4/3, 7/3); with z0 >= 0 the
    answer is 0; with one row slack its unknown is 0."""
    Z = np.array([[2.0, 1], [1, 2]])
    np.testing.assert_allclose(solve_lcp(Z, np.array([-5.0, -6])), [4 / 3, 7 / 3])
    np.testing.assert_allclose(solve_lcp(Z, np.array([1.0, 2])), 0, atol=1e-12)
    z = solve_lcp(Z, np.array([-4.0, 1]))
    np.testing.assert_allclose(z, [2, 0], atol=1e-12)


def test_lcp_without_solution():
    """0 z - 1 >= 0 and -z - 1 >= 0 have none with z >= 0: an error, no NaN."""
    for diagonal in (0.0, -1.0):
        with pytest.raises(NoSolution, match="not solved"):
            solve_lcp(np.array([[diagonal]]), np.array([-1.0]))


numbers = st.floats(-2, 2, width=32)


@settings(max_examples=100, deadline=None)
@given(data=st.data(), n=st.integers(1, 6))
def test_lcp_random(data, n):
    """Z = A A' + I/10 has one solution whatever z0 is; it is found."""
    A = data.draw(arrays(float, (n, n), elements=numbers))
    z0 = data.draw(arrays(float, n, elements=numbers))
    Z = A @ A.T + 0.1 * np.eye(n)
    assert_solves(Z, z0, solve_lcp(Z, z0))


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**31), n=st.integers(2, 6), rank=st.integers(1, 3))
def test_lcp_random_singular(seed, n, rank):
    """Redundant contacts (Z singular): a problem known to have a solution is
    solved, whichever of its solutions it gives."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, min(rank, n)))
    Z = A @ A.T
    z, w = rng.uniform(0.1, 2, (2, n))
    on = rng.random(n) < 0.5
    z0 = np.where(on, 0, w) - Z @ np.where(on, z, 0)
    assert_solves(Z, z0, solve_lcp(Z, z0))


def test_lcp_without_an_answer_is_refused():
    """z0 = -1 against a singular Z: Lemke claims success, we do not."""
    with pytest.raises(NoSolution):
        solve_lcp(np.array([[1.0, -1.0], [-1.0, 1.0]]), np.array([-1.0, -1.0]))
