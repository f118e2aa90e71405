"""Multipliers: closed forms of the midpoint rule, feet that catch a fall, and the
finite differences of an independent step of the same mechanics."""

import casadi as ca
import numpy as np
import pytest
from program_robots import SLED, SLED_FEET

from drakebots import build_robot, load
from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.model import package_root
from drakebots.robots.hamr.plan.stored import open_plan
from drakebots.trajopt.contact_implicit.dynamics import interval_block
from drakebots.trajopt.contact_implicit.feedback import Feedback
from drakebots.trajopt.contact_implicit.floquet import CycleMap
from drakebots.trajopt.contact_implicit.newton import Rows
from drakebots.trajopt.contact_implicit.program import ContactImplicit
from drakebots.trajopt.contact_implicit.stepping import VariationalStepper
from drakebots.trajopt.contact_implicit.system import ContactSystem

PLANS = package_root() / "hamr" / "plans"

GRAVITY = 9.81

# A rod on a motor, 1 kg at 0.5 m above it, with two feet as outriggers.
ROD = """<?xml version="1.0"?>
<robot name="rod"><link name="base"/><link name="rod">
<inertial><origin xyz="0 0 0.5"/><mass value="1"/>
<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="weld" type="fixed"><parent link="world"/><child link="base"/></joint>
<joint name="hinge" type="revolute"><parent link="base"/><child link="rod"/>
<axis xyz="0 1 0"/><limit lower="-9" upper="9" effort="9" velocity="99"/>
<dynamics damping="0"/></joint>
<transmission name="turn"><type>transmission_interface/SimpleTransmission</type>
<joint name="hinge"/><actuator name="turn"/></transmission></robot>
"""
INERTIA, FALL = 0.35, GRAVITY * 0.5

STEP, STEPS = 0.05, 8


def at_rest(folder, text, feet, load_on_feet=0.0, periodic=()):
    """A plan of a robot that stays where its coordinates are 0."""
    path = folder / "robot.urdf"
    path.write_text(text)
    (folder / "robot.drakebots.yaml").write_text(feet)
    system = ContactSystem(build_robot(load(path), base="fixed", time_step=0))
    problem = ContactImplicit(
        system, STEPS + 1, (STEP, STEP), friction=0.5, periodic=periodic
    )
    nc = system.num_feet
    parts = {
        "h": np.full((STEPS, 1), STEP),
        "q": np.zeros((STEPS + 1, system.nq)),
        "u": np.zeros((STEPS, system.nu)),
        "gam": np.full((STEPS, nc), load_on_feet),
        "beta": np.zeros((STEPS, 4 * nc)),
        "psi": np.zeros((STEPS, nc)),
        "eta": np.zeros((STEPS, 4 * nc)),
    }
    return problem, parts


def rod(folder, height=1.0):
    feet = f"feet: {{a: {{body: rod, p: [0.3, 0, {height}]}}, "
    feet += f"b: {{body: rod, p: [-0.3, 0, {height}]}}}}"
    return at_rest(folder, ROD, feet)


def servo(kp, kd, **late):
    return Feedback(lambda twin, q: q[:1], np.array([[kp]]), np.array([[kd]]), **late)


def by_size(values):
    return np.sort_complex(np.round(np.asarray(values, complex), 9))


def midpoint_polynomial(kp, kd, delay=0.0):
    """In r, of I (q[2] - 2 q[1] + q[0])/h^2 + ... = 0 with q[k] = r^k, the feedback
    `delay` intervals late, linear in between."""
    inertia = INERTIA / STEP**2 * np.poly([1, 1])
    fall = -FALL / 4 * np.poly([-1, -1])
    held = kp / 4 * np.poly([-1, -1]) + kd / (2 * STEP) * np.poly([1, -1])
    depth = int(np.ceil(delay))
    weights = np.maximum(1 - np.abs(np.arange(depth + 1) - delay), 0)
    late = np.polymul(held, weights)
    return np.polyadd(np.r_[inertia + fall, np.zeros(depth)], late)


@pytest.mark.parametrize("kp, kd", [(0.0, 0.0), (3.0, 0.0), (12.0, 0.0), (12.0, 1.5)])
def test_a_rod_on_a_servo_has_the_multipliers_of_the_midpoint_rule(tmp_path, kp, kd):
    problem, parts = rod(tmp_path)
    found = CycleMap(problem, parts, servo(kp, kd)).multipliers(1e-3)
    expected = np.roots(midpoint_polynomial(kp, kd)) ** STEPS
    np.testing.assert_allclose(
        by_size(found.held), by_size(expected), rtol=1e-7, atol=1e-8
    )
    np.testing.assert_allclose(
        by_size(found.multipliers), by_size(expected), rtol=1e-7, atol=1e-8
    )
    assert (found.largest > 1 + 1e-6) == (kp < FALL)
    assert set(found.names) == {"hinge"}


@pytest.mark.parametrize("delay", [0.5, 1, 1.25, 2])
def test_late_feedback_is_that_of_intervals_before(tmp_path, delay):
    problem, parts = rod(tmp_path)
    late = {"delay": delay * STEP, "rate_delay": delay * STEP}
    motion = CycleMap(problem, parts, servo(12.0, 1.5, **late))
    found = np.linalg.eigvals(motion.held())
    for root in np.roots(midpoint_polynomial(12.0, 1.5, delay)) ** STEPS:
        assert np.abs(found - root).min() < 1e-6 * max(1.0, abs(root))


def test_what_else_a_rod_is_fed_leans_it(tmp_path):
    """It leans until the servo's pull, less gravity's, is the torque added."""
    problem, parts = rod(tmp_path)
    kp, torque = 12.0, 0.1
    motion = CycleMap(problem, parts, servo(kp, 1.5), np.full((STEPS, 1), torque))
    assert motion.settled(40)[0] == pytest.approx(torque / (kp - FALL), rel=1e-6)
    expected = np.roots(midpoint_polynomial(kp, 1.5)) ** STEPS
    found = motion.multipliers(1e-3)
    np.testing.assert_allclose(
        by_size(found.multipliers), by_size(expected), rtol=1e-6, atol=1e-8
    )


def test_a_falling_rod_is_caught_by_its_feet(tmp_path):
    """Balanced: it falls as long as no foot touches; deviations larger than the feet's
    1 mm are cut down to it. The size is a displacement, sqrt(I/m) an angle."""
    problem, parts = rod(tmp_path, height=1e-3)
    motion = CycleMap(problem, parts)
    free = np.abs(np.roots(midpoint_polynomial(0, 0)) ** STEPS).max()
    small, large = motion.multipliers(1e-7), motion.multipliers(1e-2)
    assert small.largest == pytest.approx(free, rel=1e-6)
    angle = 1e-2 / np.sqrt(INERTIA)
    assert large.largest == pytest.approx(1e-3 / 0.3 / angle, rel=0.05)
    assert np.abs(large.held[0]) == pytest.approx(free, rel=1e-6)


def test_a_lifted_sled_lands_and_where_it_stands_is_left_out(tmp_path):
    problem, parts = at_rest(tmp_path, SLED, SLED_FEET, 2 * GRAVITY, periodic=("x",))
    motion = CycleMap(problem, parts)
    assert motion.invariances == ("x",)
    found = motion.multipliers(1e-3)
    assert found.largest < 1e-6
    x = motion.cycle(motion.start(motion.lower(np.array([0.3, 1e-3, 0.0, 0.0]))))
    np.testing.assert_allclose(x, [0.3, 0, 0, 0], atol=1e-9)
    assert np.abs(motion.advance(1e-3)[:, 1:]).max() < 1e-9


def test_a_push_makes_the_sled_slide_until_friction_stops_it(tmp_path):
    """v^2/(2 mu g) of way, to first order in the step."""
    problem, parts = at_rest(tmp_path, SLED, SLED_FEET, 2 * GRAVITY, periodic=("x",))
    motion, v = CycleMap(problem, parts), 1.0
    x = motion.cycle(np.array([0.0, 0.0, 2 * v, 0.0]))
    way = v**2 / (2 * 0.5 * GRAVITY)
    assert x[0] == pytest.approx(way, abs=v * STEP / 2)
    assert abs(x[2]) < 1e-9


def test_what_has_no_multipliers_says_so(tmp_path):
    problem, parts = rod(tmp_path)
    once = ContactImplicit(problem.system, STEPS + 1, (STEP, STEP), friction=0.5)
    with pytest.raises(InvalidInput, match="not periodic"):
        CycleMap(once, parts)
    with pytest.raises(InvalidInput, match="position_gain must be"):
        Feedback(lambda twin, q: q, np.ones(2), np.ones(2))
    wide = Feedback(lambda twin, q: ca.vertcat(q, q), np.ones((1, 1)), np.ones((1, 1)))
    with pytest.raises(InvalidInput, match=r"\(1, 2\)"):
        CycleMap(problem, parts, wide)
    with pytest.raises(InvalidInput, match="fed"):
        CycleMap(problem, parts, fed=np.zeros((STEPS, 3)))
    with pytest.raises(InvalidInput, match="size"):
        CycleMap(problem, parts).multipliers(0.0)


def doing(step):
    """Which feet are loaded, and which of these slide."""
    loaded = step.multipliers["gam"] > 0
    return loaded.tolist(), (loaded & (step.multipliers["psi"] > 0)).tolist()


@pytest.mark.long
def test_intervals_of_a_gait_are_the_slopes_of_its_steps():
    """Central differences of the stepper, where it finds the plan's own solution (the
    forces on sticking feet are not always unique). At the edge of a slip the two sides
    differ in what a foot does, and only the one-sided map follows."""
    _, problem, program, arrays = open_plan(PLANS / "30hz_card.npz")
    parts = program.view(arrays["x"])
    motion = CycleMap(problem, parts)
    stepper = VariationalStepper(
        problem.system, float(parts["h"][0, 0]), friction=problem.friction
    )
    rows, n = Rows(interval_block(problem.system)), problem.system.nq
    random, agreed = np.random.default_rng(0), 0
    for k in range(2, 50, 9):
        before = {m: parts[m][k - 1] for m in ("h", "u", "lam", "gam", "beta")}
        ends = {"q0": parts["q"][k - 1], "q1": parts["q"][k]}
        p = rows({**before, **ends})[0]("after")
        start = motion.lift(1e-6 * random.standard_normal(motion.reduced_size))
        start = motion._closed(k - 1, start)
        try:
            ahead, behind = (
                stepper.step(parts["q"][k] + s * start[:n], p + s * start[n:], u)
                for s, u in ((1, parts["u"][k]), (-1, parts["u"][k]))
            )
        except NoSolution:
            continue
        if np.abs(ahead.q - parts["q"][k + 1]).max() > 1e-3:
            continue
        interval = motion.intervals[k]
        found = interval.held() @ start
        one_sided = (interval.free(start) - interval.free(-start)) / 2
        for part, end in (
            (slice(0, n), lambda step: step.q),
            (slice(n, None), lambda step: step.p),
        ):
            slope = (end(ahead) - end(behind)) / 2
            near = 1e-4 * np.abs(slope).max()
            np.testing.assert_allclose(one_sided[part], slope, atol=near)
            if doing(ahead) == doing(behind):
                np.testing.assert_allclose(found[part], slope, atol=near)
        agreed += 1
    assert agreed >= 3
