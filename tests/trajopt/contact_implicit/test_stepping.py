"""The blocks stepped forward: order of convergence, energy, textbook contact,
agreement with time stepping and with the rows of a program."""

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from drakebots import build_robot, load
from drakebots.core.errors import InvalidInput, NoSolution, UnknownName
from drakebots.multibody import Flat, HeightField, Slope, Step, TimeStepper
from drakebots.robots.hamr.model import ACTUATORS, hamr_benders
from drakebots.robots.hamr.reference import reference_robot
from drakebots.trajopt.contact_implicit import (
    INTEGRATORS,
    ContactImplicit,
    ContactSystem,
    Slack,
)
from tests.helpers.scripts import load_script

SLED, SLED_FEET = load_script("program_robots", "SLED", "SLED_FEET")
MULTIPLIERS, VariationalStepper = load_script(
    "variational_stepper", "MULTIPLIERS", "VariationalStepper"
)

GRAVITY = 9.81

PENDULUM = """<?xml version="1.0"?>
<robot name="pendulum"><link name="base"/><link name="rod">
<inertial><origin xyz="0 0 -0.5"/><mass value="1"/>
<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="weld" type="fixed"><parent link="world"/><child link="base"/></joint>
<joint name="hinge" type="revolute"><parent link="base"/><child link="rod"/>
<axis xyz="0 1 0"/><limit lower="-9" upper="9" effort="9" velocity="99"/>
<dynamics damping="0"/></joint></robot>
"""


def system_of(folder, name, text, feet=None, base="fixed", **options):
    path = folder / f"{name}.urdf"
    path.write_text(text)
    if feet:
        (folder / f"{name}.drakebots.yaml").write_text(feet)
    robot = build_robot(load(path), base=base, time_step=0)
    return ContactSystem(robot, **options)


@pytest.fixture(scope="module")
def brick():
    return ContactSystem(build_robot(load("brick"), base="euler", time_step=0))


@pytest.fixture
def pendulum(tmp_path):
    return system_of(tmp_path, "pendulum", PENDULUM)


@pytest.fixture
def sled(tmp_path):
    def make(**options):
        return system_of(tmp_path, "sled", SLED, SLED_FEET, **options)

    return make


@pytest.fixture(scope="module")
def hamr():
    """HAMR driven by voltages through its actuators."""
    robot, law = reference_robot(), hamr_benders()
    plant, unit = robot.plant, robot.scaling
    tips = [
        plant.get_joint_actuator(i).joint().position_start()
        for i in plant.GetJointActuatorIndices()
    ]
    push = law.orientation * law.force_per_volt / unit.force
    softening = law.bias * law.softening * unit.length / unit.force

    def piezo(twin, q, v, u):
        force = ca.SX(push * law.bias) - ca.SX(2 * push) * u - softening * q[tips]
        return ca.SX(twin.actuation_matrix()) @ force

    return ContactSystem(robot, inputs=piezo, input_names=tuple(ACTUATORS))


def slope(h, error):
    return np.polyfit(np.log(h), np.log(error), 1)[0]


def energy(system, run):
    """T + V at the knots (N,), from momenta."""
    n = system.nq
    q, p = ca.SX.sym("q", n), ca.SX.sym("p", n)
    v = ca.SX.sym("v", n)
    M = ca.hessian(system.twin.kinetic_energy(q, v), v)[0]
    total = ca.dot(p, ca.solve(M, p)) / 2 + system.twin.potential_energy(q)
    return np.array(ca.Function("H", [q, p], [total])(run.q.T, run.p.T)).ravel()


def contact_error(system, stepper, run):
    """Largest of penetration, negative multipliers and complementarity products."""
    n, nc = system.nq, system.num_feet
    q, v = ca.SX.sym("q", n), ca.SX.sym("v", n)
    motion = ca.Function("motion", [q, v], list(system.contact_motion(q, v)))
    phi, speed = (np.array(x).T for x in motion(run.q[1:].T, run.v_mid.T))
    cone = stepper.friction * run.gam - run.beta.reshape(-1, nc, 4).sum(axis=2)
    slip = speed + np.repeat(run.psi, 4, axis=1) - run.eta
    signs = [phi, cone, *(getattr(run, m) for m in ("gam", "beta", "psi", "eta"))]
    products = [phi * run.gam, cone * run.psi, run.eta * run.beta, slip]
    return max(
        max(float((-s).max()) for s in signs),
        max(float(abs(p).max()) for p in products),
    )


# ------------------------------------------------------------- smooth motion
TUMBLING = np.array([1.0, 5.0, 4.0, 0.4, 0.9, 2.5])
AIR = np.array([0, 0, 1.5, 0, 0, np.pi / 2])


@pytest.fixture(scope="module")
def tumbled(brick):
    """Corners after a tumble of 1 s, by Drake's equations of motion."""
    terms_of = TimeStepper(brick.robot, 1.0).terms

    def equations(_, x):
        terms = terms_of(x[:6], x[6:], np.zeros(0))
        return np.r_[x[6:], np.linalg.solve(terms.M, terms.tau)]

    x0 = np.r_[AIR, TUMBLING]
    end = solve_ivp(equations, (0, 1), x0, "DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
    return brick.foot_positions(end[:6])


@pytest.mark.parametrize("integrator, order", [("midpoint", 2.0), ("euler", 1.0)])
def test_order_in_flight(brick, tumbled, integrator, order):
    steps, error = [10, 20, 40, 80], []
    for k in steps:
        one = VariationalStepper(brick, 1 / k, integrator=integrator)
        run = one.run(AIR, TUMBLING, None, k)
        assert run.newton_iterations.max() <= 4
        error.append(np.abs(brick.foot_positions(run.q[-1]) - tumbled).max())
    assert slope(1 / np.array(steps), error) == pytest.approx(order, abs=0.2)


def test_flight_keeps_spin_and_parabola(brick):
    """Momenta that a symmetry keeps are kept to rounding; a parabola is exact."""
    one = VariationalStepper(brick, 0.05)
    run = one.run(AIR, TUMBLING, None, 100)
    # x, y and the angular momentum about the vertical: the yaw's momentum.
    assert np.ptp(run.p[:, [0, 1, 3]], axis=0) == pytest.approx(0, abs=1e-8)
    t = run.time
    parabola = AIR[2] + TUMBLING[2] * t - GRAVITY / 2 * t**2
    assert run.q[:, 2] == pytest.approx(parabola, abs=1e-9)


@pytest.mark.long
def test_energy_of_a_pendulum(pendulum):
    """Midpoints: bounded for 140 periods; Euler: it drifts."""
    h, steps = 0.05, 6000
    drift = {}
    for integrator in INTEGRATORS:
        one = VariationalStepper(pendulum, h, integrator=integrator)
        run = one.run([1.5], [0.0], None, 1000 if integrator == "euler" else steps)
        H = energy(pendulum, run)
        depth = GRAVITY * 0.5 * (1 - np.cos(1.5))
        quarter = len(H) // 4
        drift[integrator] = (H[-quarter:].mean() - H[:quarter].mean()) / depth
        if integrator != "euler":
            assert np.ptp(H) < 0.02 * depth
    assert drift["shake"] == drift["midpoint"]  # there are no loops
    assert abs(drift["midpoint"]) < 1e-4
    assert abs(drift["euler"]) > 100 * abs(drift["midpoint"])


# --------------------------------------------------------------------- loops
CRANK = """<link name="{0}"><inertial><mass value="0.3"/><origin xyz="0 0 -0.3"/>
<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="at_{0}" type="revolute"><parent link="base"/><child link="{0}"/>
<origin xyz="{1} 0 0"/><axis xyz="0 1 0"/>
<limit lower="-9" upper="9" effort="9" velocity="99"/></joint>"""
PARALLELOGRAM = (
    '<?xml version="1.0"?>\n<robot name="parallelogram"><link name="base"/>'
    + CRANK.format("a", 0)
    + CRANK.format("b", 0.4)
    + """<link name="bar"><inertial><mass value="1"/><origin xyz="0.2 0 0"/>
<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="hinge" type="revolute"><parent link="a"/><child link="bar"/>
<origin xyz="0 0 -0.5"/><axis xyz="0 1 0"/>
<limit lower="-9" upper="9" effort="9" velocity="99"/></joint></robot>"""
)
CLOSED = """loops:
  end: {A: bar, p_A: [0.4, 0, 0], B: b, p_B: [0, 0, -0.5], axis: [0, 1, 0]}
"""


@pytest.fixture
def parallelogram(tmp_path):
    """Two cranks of 0.5 m and a bar between their ends: it swings as a pendulum."""
    return system_of(tmp_path, "parallelogram", PARALLELOGRAM, CLOSED)


def swing(time, angle):
    """Angle of the cranks let go at rest (T,): (I + m l^2) a'' = -(moment) sin a."""
    inertia = 2 * (0.01 + 0.3 * 0.3**2) + 1.0 * 0.5**2
    moment = GRAVITY * (2 * 0.3 * 0.3 + 1.0 * 0.5)
    return solve_ivp(
        lambda _, x: [x[1], -moment / inertia * np.sin(x[0])],
        (0, time[-1]),
        [angle, 0.0],
        t_eval=time,
        rtol=1e-11,
        atol=1e-11,
    ).y[0]


def run_of(system, integrator, h, time=1.0, angle=1.0):
    one = VariationalStepper(system, h, integrator=integrator)
    names = system.coordinates
    q0 = np.zeros(3)
    for name, value in (("at_a", angle), ("at_b", angle), ("hinge", -angle)):
        q0[names.index(name)] = value
    return one.run(q0, np.zeros(3), None, round(time / h)), names.index("at_a")


@pytest.mark.parametrize(
    "integrator, order", [("midpoint", 2.0), ("shake", 2.0), ("euler", 1.0)]
)
def test_order_of_a_closed_loop(parallelogram, integrator, order):
    steps, error = [0.04, 0.02, 0.01], []
    for h in steps:
        run, at = run_of(parallelogram, integrator, h)
        error.append(np.abs(run.q[:, at] - swing(run.time, 1.0)).max())
    assert slope(steps, error) == pytest.approx(order, abs=0.2)


@pytest.mark.parametrize("integrator", ["midpoint", "shake"])
def test_energy_of_a_closed_loop(parallelogram, integrator):
    run, _ = run_of(parallelogram, integrator, 0.02, time=8.0)
    H = energy(parallelogram, run)
    depth = GRAVITY * (2 * 0.3 * 0.3 + 1.0 * 0.5) * (1 - np.cos(1.0))
    half = len(H) // 2
    assert abs(H[half:].mean() - H[:half].mean()) < 1e-3 * depth


@pytest.mark.long
def test_where_loops_close(hamr):
    """By SHAKE at knots, by midpoints between them."""
    q = ca.SX.sym("q", 38)
    c, _ = hamr.loop_force(q, ca.SX.zeros(hamr.num_loop_rows))
    gap = ca.Function("c", [q], [c])
    q0 = np.r_[0, 0, 12.69, np.zeros(35)]
    u = 112.5 + 100 * np.sin(np.arange(12)[:, None] + np.arange(8))
    for integrator in ("shake", "midpoint"):
        one = VariationalStepper(hamr, 1.0, friction=0.5, integrator=integrator)
        run = one.run(q0, np.zeros(38), u, 12)
        knots = np.abs(np.array(gap(run.q[1:].T))).max()
        middles = np.abs(np.array(gap((run.q[1:] + run.q[:-1]).T / 2))).max()
        closed, other = (knots, middles)[:: 1 if integrator == "shake" else -1]
        assert closed < 1e-8 < 1e-5 < other


# ------------------------------------------------------------------- contact
@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_sliding_down_a_slope(sled, integrator):
    """x = g (sin - mu cos) t^2 / 2 along the slope, never off it."""
    angle, mu, h, steps = 0.4, 0.2, 0.01, 100
    system = sled(terrain=Slope(angle))
    one = VariationalStepper(system, h, friction=mu, integrator=integrator)
    run = one.run(np.zeros(2), np.zeros(2), None, steps)
    s, c = np.sin(angle), np.cos(angle)
    along = run.q @ [c, -s]
    a, t = GRAVITY * (s - mu * c), run.time
    late = a * h * t / 2 + 1e-12 if integrator == "euler" else 0.0
    assert np.abs(along - a * t**2 / 2).max() <= np.max(late) + a * h * t[-1]
    assert np.diff(along, 2)[2:] / h**2 == pytest.approx(a, rel=1e-8)
    assert run.q @ [s, c] == pytest.approx(0, abs=1e-9)
    assert run.gam[2:].ravel() == pytest.approx(2 * GRAVITY * c, rel=1e-8)
    assert contact_error(system, one, run) < 1e-8


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_comes_to_rest_and_sticks(sled, integrator):
    """Pushed up the slope it stops where Coulomb says and stays for good."""
    angle, mu, v0, h = 0.3, 0.6, 2.0, 0.005
    system = sled(terrain=Slope(angle))
    s, c = np.sin(angle), np.cos(angle)
    one = VariationalStepper(system, h, friction=mu, integrator=integrator)
    run = one.run(np.zeros(2), -v0 * np.array([c, -s]), None, 150)
    along = -(run.q @ [c, -s])
    deceleration = GRAVITY * (s + mu * c)
    stop = v0 / deceleration
    assert along[-1] == pytest.approx(v0**2 / 2 / deceleration, abs=v0 * h)
    stuck = run.time[1:] > stop + 2 * h
    assert np.abs(run.v_mid[stuck]).max() < 1e-8
    # Held by what it takes, less than the cone would allow.
    held = np.abs(run.beta[stuck].reshape(-1, 4) @ [1, 0, -1, 0])
    assert held == pytest.approx(2 * GRAVITY * s, rel=1e-6)
    assert contact_error(system, one, run) < 1e-8


def test_pushed_on_the_flat(sled):
    """A push below mu m g holds, one above accelerates by the difference."""
    system, mu, h = sled(), 0.5, 0.01
    one = VariationalStepper(system, h, friction=mu)
    limit = mu * 2 * GRAVITY
    held = one.run(np.zeros(2), np.zeros(2), [0.95 * limit], 50)
    assert np.abs(held.q).max() < 1e-9
    moved = one.run(np.zeros(2), np.zeros(2), [1.5 * limit], 50)
    acceleration = np.diff(moved.v_mid[2:, 0]) / h
    assert acceleration == pytest.approx(0.25 * 2 * mu * GRAVITY, rel=1e-6)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_impact_is_inelastic(sled, integrator):
    """Dropped with a sideways speed: no rebound, and sideways the impulse of
    friction takes mu times the normal one."""
    h, mu, height, vx = 0.01, 0.3, 0.5, 4.0
    system = sled()
    one = VariationalStepper(system, h, friction=mu, integrator=integrator)
    run = one.run([0, height], [vx, 0], None, 100)
    fall = np.sqrt(2 * height / GRAVITY)
    down = run.time > fall + 2 * h
    assert run.q[down, 1] == pytest.approx(0, abs=1e-10)
    assert run.q[:, 1].min() > -1e-10
    # Sum of friction = mu times sum of normal, as it never sticks.
    assert run.v_mid[-1, 0] > 0.1
    normal = h * run.gam.sum()
    assert vx - run.v_mid[-1, 0] == pytest.approx(mu * normal / 2, rel=1e-8)
    landing = 2 * GRAVITY * run.time[-1]
    assert normal == pytest.approx(landing, rel=0.03)
    assert contact_error(system, one, run) < 1e-8


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_brick_tumbles_to_rest(brick, integrator):
    """Eight feet, of which four rest: exact complementarity, energy only lost."""
    one = VariationalStepper(brick, 0.02, friction=0.8, integrator=integrator)
    q0 = np.array([0, 0, 0.9, 0.1, 0.1, np.pi / 2 - 0.2])
    run = one.run(q0, np.array([0.5, 0.5, 0, 0, 0, 0]), None, 250)
    assert contact_error(brick, one, run) < 1e-7
    assert np.abs(run.v_mid[-1]).max() < 1e-6
    weight = run.gam[-1].sum()
    assert weight == pytest.approx(GRAVITY, rel=1e-6)
    if integrator != "euler":
        H = energy(brick, run)
        assert np.diff(H).max() < 0.02 * H[0]
        assert H[-1] < H[0]


@pytest.mark.long
@pytest.mark.parametrize(
    "terrain",
    [
        Step(-0.6, 5.0, 0.15, rounding=0.05),
        HeightField(
            np.linspace(-3, 3, 9),
            np.linspace(-3, 3, 9),
            0.1 * np.add.outer(np.sin(np.linspace(-3, 3, 9)), np.zeros(9)),
        ),
    ],
    ids=["step", "field"],
)
def test_terrains(brick, terrain):
    """Ends with its corners on or above rough ground."""
    system = ContactSystem(brick.robot, terrain=terrain)
    one = VariationalStepper(system, 0.02, friction=0.8)
    run = one.run([0.1, 0.2, 1.0, 0.2, 0.1, 0.1], np.zeros(6), None, 60)
    assert contact_error(system, one, run) < 1e-7
    assert run.gam.max() > 1


@pytest.mark.long
@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_agrees_with_time_stepping(brick, integrator):
    """Sliding and rocking after an impact: the same motion as h -> 0."""
    q0 = np.array([0, 0, 0.7, 0.0, 0.1, 0.0])
    v0, T, mu = np.array([1.0, 0, 0, 0, 0, 0]), 0.4, 0.5
    reference = TimeStepper(brick.robot, 5e-4, friction=mu)
    q, v = q0, v0
    for _ in range(round(T / 5e-4)):
        q, v, _ = reference.step(q, v, np.zeros(0))
    error = []
    for h in (0.02, 0.005, 0.002):
        one = VariationalStepper(brick, h, friction=mu, integrator=integrator)
        error.append(np.abs(one.run(q0, v0, None, round(T / h)).q[-1] - q).max())
    assert error[-1] < 5e-3
    assert error[-1] < 0.3 * error[0]


@pytest.mark.parametrize("h", [1.0, 0.5])
def test_steps_longer_than_a_fall(brick, h):
    """Where the linearised problem has no answer the step still has one."""
    q0 = AIR + np.array([0.1, -0.1, -0.14, 0.14, 0.09, 0.12])
    one = VariationalStepper(brick, h, friction=0.5)
    run = one.run(q0, np.array([0, 5.0, 0, 0, 0, 0]), None, round(2 / h))
    assert contact_error(brick, one, run) < 1e-7


# ---------------------------------------------------------------------- HAMR
@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_hamr_steps_are_rows_of_a_program(hamr, integrator):
    """Nothing is left of the dynamics, loops and contact of its program."""
    h, K = 1.0, 30
    one = VariationalStepper(hamr, h, friction=0.51, integrator=integrator)
    phase = np.array([np.pi / 2, 0, np.pi / 2, np.pi] * 2)
    turn = 2 * np.pi * 0.01 * h * (np.arange(K)[:, None] + 0.5)
    u = 112.5 + 100 * np.sin(turn + phase)
    q0 = np.r_[0, 0, 12.69, np.zeros(35)]
    run = one.run(q0, np.zeros(38), u, K)
    assert run.gam.max() > 1e-3  # it touches

    free = (np.full(38, -np.inf), np.full(38, np.inf))
    problem = ContactImplicit(
        hamr,
        K + 1,
        (h, h),
        0.51,
        integrator=integrator,
        slack=Slack(0.0, 1.0),
        position_bounds=free,
        loops_at_start=False,
    )
    program = problem.builder().build()
    parts = {name: getattr(run, name) for name in MULTIPLIERS}
    x = program.pack({"h": h, "q": run.q, "u": u, **parts})
    worst = {k: value for k, (value, _) in program.violations(x).items()}
    assert {"dynamics", "start", "loops", "distance", "complementarity"} <= set(worst)
    assert max(worst.values()) < 1e-8


# -------------------------------------------------------------------- errors
def test_bad_input(brick, pendulum):
    for options in (
        {"step": 0.0},
        {"step": np.nan},
        {"step": 0.1, "friction": -1.0},
        {"step": 0.1, "tolerance": 0.0},
    ):
        with pytest.raises(InvalidInput):
            VariationalStepper(brick, **options)
    with pytest.raises(InvalidInput, match="no feet"):
        VariationalStepper(pendulum, 0.1, friction=0.5)
    with pytest.raises(UnknownName, match="midpoint"):
        VariationalStepper(brick, 0.1, integrator="mid")
    one = VariationalStepper(brick, 0.1, friction=0.5)
    with pytest.raises(InvalidInput, match="positions"):
        one.step(np.zeros(5), np.zeros(6))
    with pytest.raises(InvalidInput, match="momentum"):
        one.step(np.zeros(6), np.full(6, np.nan))
    with pytest.raises(InvalidInput, match="inputs"):
        one.run(AIR, np.zeros(6), np.zeros((3, 2)), 4)
    with pytest.raises(InvalidInput, match="steps"):
        one.run(AIR, np.zeros(6), None, 0)


@pytest.mark.long
def test_no_solution_names_rows(tmp_path):
    """Ground that a hanging rod cannot get above."""
    feet = "feet: {tip: {body: rod, p: [0, 0, -1]}}"
    system = system_of(tmp_path, "pole", PENDULUM, feet, terrain=Flat(2.0))
    one = VariationalStepper(system, 0.05, friction=0.5)
    with pytest.raises(NoSolution, match=r"interval 0.*distance\.tip") as caught:
        one.run([1.5], [3.0], None, 3)
    assert "\n" not in str(caught.value)
    assert caught.value.worst
