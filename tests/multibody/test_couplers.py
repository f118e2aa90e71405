"""Joints that follow others: rows of c(q), in any units, and in motion."""

import casadi as ca
import numpy as np
import pytest
from pydrake.systems.analysis import Simulator

from drakebots import build_robot, load
from drakebots.core.errors import InvalidInput
from drakebots.core.units import MM_G_MS, SI, Scaling
from drakebots.model import Coupler
from drakebots.multibody import TimeStepper, Twin
from tests.helpers.coupled_robots import linkage
from tests.model.test_loops import FOUR_BAR

ODD = Scaling(length=0.02, mass=3e-3, time=0.7)
DRIVEN = np.array([0.7])
"""Torque of the linkage's motor [N m]."""


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return linkage(tmp_path_factory.mktemp("linkage"))


def moving(robot, angle=0.3, rate=2.0):
    """q and v of the linkage with its first joint at an angle and a rate."""
    q = robot.closure.followed(np.array([angle, 0, 0, 0]))
    C = robot.closure.jacobian(robot.plant.CreateDefaultContext())
    rows = np.vstack([C, np.eye(4)[:1]])
    return q, np.linalg.solve(rows, [0, 0, 0, rate])


def sap_steps(model, q, v, time_step, steps):
    """q and v after steps of Drake's own simulation, under the motor's torque."""
    robot = build_robot(model, time_step=time_step, base="fixed")
    simulator = Simulator(robot.plant)
    context = simulator.get_mutable_context()
    robot.plant.SetPositionsAndVelocities(context, np.concatenate([q, v]))
    robot.plant.get_actuation_input_port().FixValue(context, DRIVEN)
    simulator.AdvanceTo(steps * time_step)
    state = robot.plant.GetPositionsAndVelocities(simulator.get_context())
    return state[:4], state[4:]


# --- rows ---


@pytest.mark.parametrize("scaling", [SI, MM_G_MS, ODD], ids=["si", "mm", "odd"])
def test_rows_say_what_the_file_says(model, scaling):
    """c in SI whatever the plant's units: a length where the follower slides."""
    robot = build_robot(model, time_step=0, base="fixed", scaling=scaling)
    context = robot.plant.CreateDefaultContext()
    assert robot.closure.row_names == ("k.j", "s.j", "t.s")
    j, k, s, t = q = np.array([0.3, -0.2, 0.05, 0.4])
    robot.plant.SetPositions(context, q / robot.position_units())
    row_units = np.array([1.0, scaling.length, 1.0])
    expected = [k + 2 * j - 0.1, s - 0.05 * j - 0.02, t - 7 * s]
    found = robot.closure.residual(context) * row_units
    np.testing.assert_allclose(found, expected, atol=1e-14)
    slips = robot.closure.slips(context) * row_units
    np.testing.assert_allclose(slips, np.abs(expected), atol=1e-14)


@pytest.mark.parametrize("scaling", [SI, MM_G_MS, ODD], ids=["si", "mm", "odd"])
def test_the_jacobian_and_the_twin(model, scaling):
    """C(q) against central differences of c(q), and both against CasADi's."""
    robot = build_robot(model, time_step=0, base="fixed", scaling=scaling)
    plant, closure = robot.plant, robot.closure
    context = plant.CreateDefaultContext()
    q = np.random.default_rng(1).uniform(-1, 1, 4)
    symbol = ca.SX.sym("q", 4)
    rows = Twin(plant).closure(symbol, closure)
    twin = ca.Function("c", [symbol], [rows, ca.jacobian(rows, symbol)])
    plant.SetPositions(context, q)
    c, C = closure.evaluate(context)
    ends = []
    for step in np.vstack([np.eye(4), -np.eye(4)]) / 2:
        plant.SetPositions(context, q + step)
        ends.append(closure.residual(context))
    np.testing.assert_allclose(C.T, np.subtract(ends[:4], ends[4:]), atol=1e-13)
    ours = [np.array(x) for x in twin(q)]
    np.testing.assert_allclose(ours[0][:, 0], c, atol=1e-13)
    np.testing.assert_array_equal(ours[1], C)


def test_motions_of_the_joints_that_lead(model):
    """v = T v_l keeps all rows, C T = 0, with T = 1 for the joint that leads."""
    robot = build_robot(model, time_step=0, base="fixed", scaling=ODD)
    T = robot.closure.leading()
    C = robot.closure.jacobian(robot.plant.CreateDefaultContext())
    assert T.shape == (4, 1) and T[0, 0] == 1
    np.testing.assert_allclose(C @ T, 0, atol=1e-14)


def test_the_default_positions_follow(model):
    """Offsets move the joints that follow; a note names them."""
    robot = build_robot(model, time_step=0, base="fixed")
    plant = robot.plant
    q = plant.GetPositions(plant.CreateDefaultContext())
    np.testing.assert_allclose(q, [0, 0.1, 0.02, 0.14], atol=1e-15)
    assert any("are put there: k, s" in note for note in model.notes)
    assert model.summary.loop_rows == model.summary.independent_rows == 3


# --- motion ---


def test_accelerations(model):
    """[M -C'; C 0] (a, lam) = (tau, 0), as C is constant: time stepping has it at any
    step, and Drake's coupler, which is a stiff spring, to one part in a hundred."""
    robot, h = build_robot(model, time_step=0, base="fixed"), 1e-5
    q, v = moving(robot)
    stepper = TimeStepper(robot, h)
    tau = stepper.generalized_forces(q, v, DRIVEN)
    M = robot.plant.CalcMassMatrix(stepper.context)
    C = robot.closure.jacobian(stepper.context)
    rows = np.block([[M, -C.T], [C, np.zeros((3, 3))]])
    a = np.linalg.solve(rows, np.concatenate([tau, np.zeros(3)]))[:4]
    _, after, _ = stepper.step(q, v, DRIVEN)
    np.testing.assert_allclose((after - v) / h, a, rtol=1e-7)
    _, after = sap_steps(model, q, v, h, 1)
    np.testing.assert_allclose((after - v) / h, a, atol=1e-2 * np.abs(a).max())


def test_the_forces_do_no_work(model):
    """(C'lam)'v = 0 at every step of a motion, and the energy of the free linkage
    changes by the truncation of first order only: half as much at half the step."""
    robot = build_robot(model, time_step=0, base="fixed")
    plant, context = robot.plant, robot.plant.CreateDefaultContext()
    C = robot.closure.jacobian(context)

    def energy(q, v):
        plant.SetPositionsAndVelocities(context, np.concatenate([q, v]))
        return plant.CalcKineticEnergy(context) + plant.CalcPotentialEnergy(context)

    changes = []
    for h in (1e-3, 5e-4):
        stepper, (q, v) = TimeStepper(robot, h), moving(robot)
        start = energy(q, v)
        for _ in range(round(0.1 / h)):
            q, v, forces = stepper.step(q, v, np.zeros(1))
            pull = C.T @ forces.loops
            assert abs(pull @ v) < 1e-9 * np.abs(pull).max() * np.abs(v).max()
        changes.append(abs(energy(q, v) - start))
    assert changes[0] / changes[1] == pytest.approx(2, rel=0.05)
    assert changes[0] < 2e-2 * abs(start)


@pytest.mark.long
def test_drakes_simulation_is_the_same_motion(model):
    """SAP, which holds the file's couplers itself, and time stepping by our rows."""
    h, steps = 1e-4, 1500
    robot = build_robot(model, time_step=0, base="fixed")
    stepper, (q, v) = TimeStepper(robot, h), moving(robot)
    q_sap, v_sap = sap_steps(model, q, v, h, steps)
    for _ in range(steps):
        q, v, _ = stepper.step(q, v, DRIVEN)
    np.testing.assert_allclose(q_sap, q, atol=2e-3)
    np.testing.assert_allclose(v_sap, v, atol=2e-2)
    assert abs(q[0] - 0.3) > 0.05


# --- plants in other units, and other solvers ---


@pytest.mark.parametrize("scaling", [MM_G_MS, ODD], ids=["mm", "odd"])
def test_scaled_plants_couple_their_joints(model, scaling):
    """A discrete plant in other units holds followers as one in SI does."""
    robot = build_robot(model, time_step=1e-4, base="fixed", scaling=scaling)
    plant, closure = robot.plant, robot.closure
    assert plant.num_constraints() == 3
    simulator = Simulator(plant)
    context = simulator.get_mutable_context()
    q, v = moving(robot, rate=2.0 * scaling.time)
    plant.SetPositionsAndVelocities(context, np.concatenate([q, v]))
    plant.get_actuation_input_port().FixValue(context, DRIVEN / scaling.torque)
    simulator.AdvanceTo(0.05 / scaling.time)
    si = build_robot(model, time_step=0, base="fixed")
    expected, _ = sap_steps(model, *moving(si), 1e-4, 500)
    found = plant.GetPositions(simulator.get_context()) * robot.position_units()
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert closure.slips(simulator.get_context()).max() < 1e-3


@pytest.mark.parametrize("in_file", [False, True])
def test_scaled_plants_with_loops_keep_their_couplers(tmp_path, in_file):
    """A loop of the YAML beside the file and a mimic, in mm, g and ms; where the file
    closes the loop itself the mimic used to be lost without a word."""
    lines = "loops: {cut: {A: rod, p_A: [2, 0, 0], B: rocker, p_B: [0, 0, 1], "
    lines += f"rows: ball, in_file: {str(in_file).lower()}}}}}"
    (tmp_path / "bar.drakebots.yaml").write_text(lines)
    mimic = '<drake:mimic joint="j1" multiplier="1" offset="0"/></joint>'
    head, tail = FOUR_BAR.rsplit("</joint>", 1)
    text = f"{head}{mimic}{tail}".replace(
        "<sdf ", '<sdf xmlns:drake="http://drake.mit.edu" '
    )
    if in_file:
        ball = "".join(
            f"<drake:ball_constraint_{key}>{value}</drake:ball_constraint_{key}>"
            for key, value in (
                ("body_A", "rod"),
                ("p_AP", "2 0 0"),
                ("body_B", "rocker"),
                ("p_BQ", "0 0 1"),
            )
        )
        ball = f"<drake:ball_constraint>{ball}</drake:ball_constraint>"
        text = text.replace("</model>", f"{ball}</model>")
    (tmp_path / "bar.sdf").write_text(text)
    model = load(tmp_path / "bar.sdf")
    # A parallelogram's crank and rocker turn alike: one row of three is no news.
    assert model.summary.loop_rows == 4 and model.summary.independent_rows == 2
    for scaling in (SI, MM_G_MS):
        robot = build_robot(model, time_step=1e-3, scaling=scaling)
        assert robot.plant.num_constraints() == 2
        assert robot.closure.num_rows == 2


def test_tamsi_is_refused(model):
    with pytest.raises(InvalidInput, match=r"'k' follows another.* TAMSI"):
        build_robot(model, contact="tamsi", base="fixed")


@pytest.mark.parametrize("name", [np.array(["a", "b"]), 3, None])
def test_followers_and_leaders_are_names(name):
    with pytest.raises(InvalidInput, match="follower must be of type str"):
        Coupler(name, name)
    with pytest.raises(InvalidInput, match="cannot follow itself"):
        Coupler("a", "a")
