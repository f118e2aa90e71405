"""Closed-chain kinematics: actuators to leg tips, as the HAMR authors have it."""

import numpy as np
import pytest
from pydrake.multibody.tree import JacobianWrtVariable

import drakebots
from drakebots import build_robot
from drakebots.core.errors import InvalidInput, NoSolution, UnknownName
from drakebots.core.units import MM_G_MS
from drakebots.multibody import ClosedChain
from tests.helpers.scripts import DATA


@pytest.fixture(scope="module")
def hamr():
    model = drakebots.load("hamr")
    return build_robot(model, scaling=MM_G_MS, base="fixed", time_step=0)


@pytest.fixture(scope="module")
def names(hamr):
    plant = hamr.plant
    return tuple(
        plant.get_joint_actuator(i).joint().name()
        for i in plant.GetJointActuatorIndices()
    )


@pytest.fixture(scope="module")
def chain(hamr, names):
    return ClosedChain(hamr, names)


@pytest.mark.long
def test_actuator_to_marker_map(hamr, chain, names):
    """Markers on the legs move with swing and lift as in the authors' table, to
    1e-4 mm, and so do the Jacobian's columns, to 1e-3 mm/mm."""
    path = DATA / "hamr" / "actuator_to_marker_map.csv"
    if not path.is_file():
        pytest.skip(f"{path} is absent")
    rows = np.loadtxt(path, delimiter=",", skiprows=1)
    plant, world = hamr.plant, hamr.plant.world_frame()
    context = plant.CreateDefaultContext()
    markers = [
        (plant.GetBodyByName(p.body).body_frame(), p.p_BF * 1e3)
        for p in hamr.model.points
    ]

    def place(leg):
        return plant.CalcPointsPositions(context, *markers[leg], world).ravel()

    home = [place(leg) for leg in range(4)]
    assert len(rows) == 1764 and set(rows[:, 0]) == {0, 1, 2, 3}
    worst, worst_column = 0.0, 0.0
    # All four legs at once: their tables are over the same grid.
    grid = rows[rows[:, 0] == 0][:, 1:3]
    by_leg = [rows[rows[:, 0] == leg] for leg in range(4)]
    for table in by_leg:
        np.testing.assert_array_equal(table[:, 1:3], grid)
    for k, (swing, lift) in enumerate(grid):
        chain.solve(context, dict(zip(names, 4 * (swing, lift))))
        T = chain.tangent(context)
        for leg, table in enumerate(by_leg):
            worst = max(worst, np.abs(place(leg) - home[leg] - table[k, 3:6]).max())
            J = plant.CalcJacobianTranslationalVelocity(
                context, JacobianWrtVariable.kV, *markers[leg], world, world
            )
            columns = (J @ T[:, 2 * leg : 2 * leg + 2]).ravel()
            worst_column = max(worst_column, np.abs(columns - table[k, 6:]).max())
    assert worst < 1e-4
    assert worst_column < 1e-3


def test_solve_closes_the_loops(hamr, chain, names):
    """The solution has the actuators where asked and every loop closed."""
    context = hamr.plant.CreateDefaultContext()
    values = np.random.default_rng(1).uniform(-0.15, 0.15, 8)
    q = chain.solve(context, dict(zip(names, values)))
    np.testing.assert_array_equal(q, hamr.plant.GetPositions(context))
    at = [hamr.plant.GetJointByName(name).position_start() for name in names]
    np.testing.assert_array_equal(q[at], values)
    assert hamr.closure.gaps(context).max() < 1e-11
    assert np.abs(hamr.closure.residual(context)).max() < 1e-12


def test_tangent(hamr, chain, names):
    """T is the derivative of the solution, and C T = 0."""
    context = hamr.plant.CreateDefaultContext()
    values = np.random.default_rng(2).uniform(-0.1, 0.1, 8)

    def solve(x):
        return chain.solve(context, dict(zip(names, x)))

    step = 1e-5
    numeric = np.array(
        [(solve(values + e) - solve(values - e)) / (2 * step) for e in step * np.eye(8)]
    ).T
    solve(values)
    T = chain.tangent(context)
    np.testing.assert_allclose(T, numeric, atol=1e-6)
    assert np.abs(hamr.closure.jacobian(context) @ T).max() < 1e-12


def test_the_base_stays(chain, names):
    """Coordinates that no loop touches keep the values of the first guess."""
    model = chain.robot.model
    robot = build_robot(model, scaling=MM_G_MS, base="euler", time_step=0)
    context = robot.plant.CreateDefaultContext()
    z = robot.plant.GetJointByName("Chassis_z").position_start()
    q = robot.plant.GetPositions(context).copy()
    q[z] = 12.5
    robot.plant.SetPositions(context, q)
    floating = ClosedChain(robot, names)
    q = floating.solve(context, dict.fromkeys(names, 0.05))
    assert q[z] == 12.5
    assert np.abs(floating.tangent(context)[z]).max() == 0


def test_out_of_reach_names_rows(hamr, chain, names):
    """An actuator pulled further than the links are long leaves loops open; the
    error tells which."""
    context = hamr.plant.CreateDefaultContext()
    values = dict.fromkeys(names, 0.0) | {names[0]: 30.0}
    with pytest.raises(NoSolution, match="do not close") as caught:
        chain.solve(context, values)
    assert len(caught.value.worst) == 3
    assert set(caught.value.worst) <= set(hamr.closure.row_names)


def test_wrong_joints(hamr, names):
    """Joints that do not exist, or too few of them, are refused."""
    with pytest.raises(UnknownName, match=names[0]):
        ClosedChain(hamr, (*names[:-1], names[-1] + "x"))
    with pytest.raises(InvalidInput, match="7 joints leave 25"):
        ClosedChain(hamr, names[:-1])


def test_quaternion_base_is_refused(hamr, names):
    """Velocities must be the rates of positions."""
    robot = build_robot(hamr.model, scaling=MM_G_MS, time_step=0)
    with pytest.raises(InvalidInput, match="euler"):
        ClosedChain(robot, names)
