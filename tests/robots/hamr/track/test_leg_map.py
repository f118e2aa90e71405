"""H(x, z): against differences of closed-chain kinematics, and the authors' map."""

from __future__ import annotations

import numpy as np
import pytest

from drakebots import load
from drakebots.robots.hamr.model import FORWARD, UP
from drakebots.robots.hamr.reference import CHASSIS
from drakebots.robots.hamr.track import build_leg_map
from drakebots.robots.hamr.track.leg_map import hamr_leg_map
from tests.helpers.scripts import DATA


@pytest.fixture(scope="module")
def table():
    return hamr_leg_map()


def markers(chain, tips):
    """(4, 3) [m] with the tips (8,) [m] there."""
    context = chain.robot.plant.CreateDefaultContext()
    chain.solve(context, dict(zip(chain.joints, np.ravel(tips) * 1e3)))
    return chain.robot.points_positions(context, CHASSIS)


def differences(chain, tips, step=1e-8):
    """H (4, 3, 2) by central differences of the closed chains."""
    H = np.zeros((4, 3, 2))
    for k in range(2):
        change = np.zeros((4, 2))
        change[:, k] = step
        H[:, :, k] = markers(chain, tips + change) - markers(chain, tips - change)
    return H / (2 * step)


def test_whole_table_is_within_reach(table):
    assert table.H.shape == (4, 21, 21, 3, 2)
    assert table.reachable.all()
    # Within the actuators' travel of 0.3 mm.
    assert np.abs(table.actuators).max() < 2.1e-4


def test_entries_against_differences(table, chain):
    for i, j in [(0, 0), (10, 10), (20, 20), (3, 17), (17, 5)]:
        tips = table.actuators[:, i, j]
        legs = markers(chain, tips)
        away = legs - table.neutral
        assert away[:, 0] == pytest.approx(np.full(4, table.x[i]), abs=1e-9)
        assert away[:, 2] == pytest.approx(np.full(4, table.z[j]), abs=1e-9)
        H = differences(chain, tips)
        assert table.H[:, i, j] == pytest.approx(H, abs=1e-4)
        assert table(legs) == pytest.approx(table.H[:, i, j], abs=1e-5)


def test_between_entries(table, chain):
    # Bilinear: measured 0.005 of columns of about 16.
    random = np.random.default_rng(1)
    for _ in range(10):
        tips = random.uniform([-1.5e-4, -1e-4], [1.5e-4, 1e-4], (4, 2))
        legs = markers(chain, tips)
        H = differences(chain, tips)
        assert table(legs) == pytest.approx(H, abs=0.01)
        rates = random.standard_normal(8)
        moved = np.einsum("lij,lj->li", H, rates.reshape(4, 2))
        assert table.velocities(legs, rates) == pytest.approx(moved, abs=0.03)


def test_signs_are_those_of_the_gaits(table):
    H = table(table.neutral)
    assert np.array_equal(np.sign(H[:, 0, 0]), FORWARD)
    assert np.array_equal(np.sign(H[:, 2, 1]), UP)
    # Decoupled where the legs are neutral.
    assert np.abs(H[:, 0, 1]).max() < 1e-6
    assert np.abs(H[:, 2, 0]).max() < 0.01


def test_edge_counts_outside(table):
    far = table.neutral + np.array([0.1, 0.0, -0.1])
    assert table(far) == pytest.approx(table.H[:, -1, 0])


def test_authors_map(table):
    """The authors' Jacobian at the marker's place, to 0.01 of about 16."""
    path = DATA / "hamr" / "actuator_to_marker_map.csv"
    if not path.is_file():
        pytest.skip(f"{path} is absent")
    rows = np.loadtxt(path, delimiter=",", skiprows=1)
    x, z = rows[:, 3] * 1e-3, rows[:, 5] * 1e-3
    inside = (np.abs(x) <= 3e-3) & (z >= -1.5e-3) & (z <= 3e-3)
    assert inside.sum() > 1000
    worst = 0.0
    for row in rows[inside]:
        leg, legs = int(row[0]), table.neutral.copy()
        legs[leg] += row[3:6] * 1e-3
        worst = max(worst, np.abs(table(legs)[leg].ravel() - row[6:]).max())
    assert worst < 0.01


def test_out_of_reach_is_marked():
    wide = np.linspace(-8e-3, 8e-3, 5)
    table = build_leg_map(load("hamr"), x=wide, z=np.linspace(-6e-3, 6e-3, 5))
    assert table.reachable[:, 2, 2].all()
    assert not table.reachable[:, 0, :].any()
    assert np.isfinite(table.H).all()
    # An entry out of reach stops at the ends of the travel.
    assert np.abs(table.actuators).max() == pytest.approx(3e-4)


def test_is_built_once():
    assert hamr_leg_map() is hamr_leg_map()
