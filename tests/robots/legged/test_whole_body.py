"""Whole-body control: its equations of motion, its limits, and what it does at rest."""

import re

import numpy as np
import pytest
import scipy.linalg

from drakebots.core.units import MM_G_MS, SI
from drakebots.formats import load
from drakebots.multibody import TimeStepper, build_robot, soles_jacobian
from drakebots.robots.legged import (
    Reference,
    Tracking,
    WholeBodyControl,
    reference,
    track,
)
from tests.helpers.scripts import load_script
from tests.helpers.standing_plans import standing_plan

quadruped_urdf, written = load_script("program_robots", "quadruped_urdf", "written")


@pytest.fixture(scope="module")
def standing(tmp_path_factory):
    """A quadruped of twelve motors, its plan to stand, and its control."""
    folder = tmp_path_factory.mktemp("standing")
    model = written(folder, "quadruped", quadruped_urdf(hip_roll=True))
    return _controlled(model)


def _controlled(model, *, limit=np.inf):
    robot = build_robot(model, base="euler", time_step=0)
    planned = reference(standing_plan(model), robot)
    return robot, planned, _control(robot, planned, limit)


def _control(robot, planned, limit=np.inf) -> WholeBodyControl:
    tilt = np.array([3, 4, 5])  # yaw, pitch, roll of base "euler"
    limits = np.full(planned.input.shape[1], limit)
    return WholeBodyControl(robot, planned, friction=0.7, limits=limits, tilt=tilt)


def _random_state(planned, seed: int):
    rng = np.random.default_rng(seed)
    q = planned.q[0] + 0.2 * rng.standard_normal(planned.q.shape[1])
    return q, rng.standard_normal(planned.q.shape[1]), rng


def test_accelerations_are_those_of_drake(standing):
    """M (a + A z) = tau + B u + J'f for any state, inputs and forces."""
    robot, planned, control = standing
    q, v, rng = _random_state(planned, 1)
    a, A = control.dynamics(q, v)
    z = rng.standard_normal(A.shape[1])
    plant, context = robot.plant, robot.plant.CreateDefaultContext()
    plant.SetPositionsAndVelocities(context, np.r_[q, v])
    nu = planned.input.shape[1]
    tau = TimeStepper(robot, 1.0).generalized_forces(q, v, z[:nu])
    force = tau + soles_jacobian(robot, context).T @ z[nu:]
    M = plant.CalcMassMatrix(context)
    assert np.abs(M @ (a + A @ z) - force).max() < 1e-10 * np.abs(force).max()


def test_loops_stay_closed():
    """C vdot + Cdot v = 0 where loops are closed, whatever pushes: HAMR's 24 loops."""
    robot = build_robot(load("hamr"), base="euler", time_step=0, scaling=MM_G_MS)
    plant, context = robot.plant, robot.plant.CreateDefaultContext()
    q, rng = plant.GetPositions(context), np.random.default_rng(2)
    c, C = robot.closure.evaluate(context)
    assert np.abs(c).max() < 1e-6  # [mm]
    v = scipy.linalg.null_space(C) @ rng.standard_normal(C.shape[1] - len(C))
    control = _control(robot, _still(robot, q))
    a, A = control.dynamics(q, v)
    vdot = a + A @ rng.standard_normal(A.shape[1])
    h, ends = 1e-6, []
    for s in (1, -1):
        plant.SetPositions(context, q + s * h * v)
        ends.append(robot.closure.jacobian(context) @ v)
    rate = (ends[0] - ends[1]) / (2 * h)
    assert np.abs(rate).max() > 1e-3
    assert np.abs(C @ vdot + rate).max() < 1e-6 * np.abs(rate).max()


def _still(robot, q) -> Reference:
    """A plan that stays at q, all feet loaded by nothing in particular."""
    feet = len(robot.model.feet)
    two = np.tile(q, (2, 1))
    return Reference(
        time=np.array([0.0, 1.0]),
        q=two,
        v=0 * two,
        base=np.zeros((2, 3)),
        com=np.tile([0.0, 0.0, 10.0], (2, 1)),
        com_velocity=np.zeros((2, 3)),
        feet=np.zeros((2, feet, 3)),
        input=np.zeros((2, robot.plant.num_actuators())),
        force=np.zeros((2, feet, 3)),
        loaded=np.ones((2, feet), bool),
        turn=0.0,
        periodic=True,
    )


def test_at_rest_it_asks_for_the_torques_of_statics(standing):
    _, planned, control = standing
    q, v = planned.q[0], np.zeros(planned.q.shape[1])
    u = control.inputs(0.0, q, v, np.ones(4, bool))
    a, A = control.dynamics(q, v)
    # Nothing moves under these torques and the planned forces.
    assert np.abs(u - planned.input[0]).max() < 0.02 * np.abs(planned.input).max()
    held = a + A @ np.r_[u, planned.force[0].ravel()]
    assert np.abs(held[:6]).max() < 0.1


def test_inputs_stay_within_their_limits(tmp_path):
    model = written(tmp_path, "quadruped", quadruped_urdf(hip_roll=True))
    _, planned, control = _controlled(model, limit=2.0)
    for seed in range(4):
        q, v, _ = _random_state(planned, seed)
        u = control.inputs(0.0, q, v, np.ones(4, bool))
        assert np.abs(u).max() <= 2.0
    assert np.abs(u).max() == pytest.approx(2.0)


def test_a_push_moves_where_feet_land(standing):
    """Displaced by 1.2 times the error of the capture point p + v sqrt(l/g), which the
    feet under it hold; of a fast one no further than 0.7 l."""
    _, planned, control = standing
    ref, down = planned.at(0.0), np.ones(4, bool)
    q, v = planned.q[0].copy(), np.zeros(planned.q.shape[1])
    q[1] += 0.02
    for speed in (0.1, 5.0):
        v[1] = speed
        control.dynamics(q, v)
        expected = 1.2 * (0.02 + speed * np.sqrt(planned.height / 9.81))
        shift = control.displacement(ref, 0.2, ref.feet, down)
        most = 0.7 * planned.height
        assert shift == pytest.approx([0.0, min(expected, most)], abs=1e-6)


@pytest.mark.long
def test_torques_of_sliding_legs_do_not_depend_on_the_units(tmp_path):
    """In SI as in mm, g, ms, out of balance, where tasks contend by their weights."""
    text = quadruped_urdf(hip_roll=True)
    knee = r'(_knee" type=)"revolute"(.*?<axis xyz=)"0 1 0"'
    text = re.sub(knee, r'\1"prismatic"\2"0 0 1"', text, flags=re.DOTALL)
    model = written(tmp_path, "sliding", text)
    plan, found = standing_plan(model), []
    for scaling in (SI, MM_G_MS):
        robot = build_robot(model, base="euler", time_step=0, scaling=scaling)
        planned = reference(plan, robot)
        off = 0.05 * np.random.default_rng(3).standard_normal((2, planned.q.shape[1]))
        q = planned.q[0] + off[0] / robot.position_units()
        u = _control(robot, planned).inputs(
            0.0, q, off[1] / robot.velocity_units(), np.ones(4, bool)
        )
        found.append(u * robot.input_units())
    assert np.abs(found[0] - planned.input[0] * robot.input_units()).max() > 1.0
    assert found[1] == pytest.approx(found[0], abs=1e-4)


ARM = """<link name="arm"><inertial><origin xyz="0 0 0.15"/><mass value="1"/>
<inertia ixx="0.01" iyy="0.01" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="shoulder" type="revolute"><parent link="trunk"/><child link="arm"/>
<origin xyz="0 0 0.1"/><axis xyz="1 0 0"/>
<limit lower="-3" upper="3" effort="20" velocity="20"/></joint>
<transmission name="drive"><type>SimpleTransmission</type>
<joint name="shoulder"/><actuator name="shoulder"/></transmission></robot>"""


def test_an_arm_does_not_flail_when_the_robot_is_pushed(tmp_path):
    """Its momentum would help for a moment, and the robot would have to stop it."""
    text = quadruped_urdf(hip_roll=True).replace("</robot>", ARM)
    plan = standing_plan(written(tmp_path, "with_an_arm", text))
    run = track(Tracking(plan, push=0.6, cycles=1))
    assert run.ok, run.message
    shoulder = run.data.position.sel(coordinate="quadruped_shoulder").values
    assert np.abs(shoulder - shoulder[0]).max() < 0.05
