"""The actuator law: its constants, its inverse, and the authors' forces."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import MultibodyPlant

from drakebots import InvalidInput, build_robot, load
from drakebots.core.units import MM_G_MS
from drakebots.model import package_root
from drakebots.robots.hamr.model import (
    ACTUATORS,
    PiezoDrive,
    check_voltages,
    hamr_benders,
)
from drakebots.robots.hamr.model.piezo import Bender
from tests.helpers.scripts import DATA, load_script

HamrParameters = load_script("hamr_visuals.parameters").HamrParameters

# By carbon thickness [mm]: k [N/mm], C0 [N/V], blocked [N], dC [N/(V mm)], df [mm].
TABLE = {
    0.065: (1.15557, 1.441264e-3, 0.32428, 1.711951e-3, 0.28063),
    0.100: (1.69461, 1.693485e-3, 0.38103, 2.510527e-3, 0.22485),
    0.130: (2.34515, 1.909675e-3, 0.42968, 3.474299e-3, 0.18322),
}

volts = st.floats(0, 225)
tips = st.floats(-0.3e-3, 0.3e-3)


@pytest.mark.parametrize("carbon", TABLE)
def test_constants(carbon):
    stiffness, per_volt, blocked, softening, free = TABLE[carbon]
    law = Bender(1e-3 * carbon)
    assert 1e-3 * law.stiffness == pytest.approx(stiffness, abs=6e-6)
    assert law.force_per_volt == pytest.approx(per_volt, abs=6e-10)
    assert law.force(0.0, 0.0) == pytest.approx(blocked, abs=6e-6)
    assert 1e-3 * law.softening == pytest.approx(softening, abs=6e-10)
    assert 1e3 * law.free_deflection == pytest.approx(free, abs=6e-6)
    assert law.bias == 225.0


def test_benders_of_the_robot():
    law = hamr_benders()
    assert ACTUATORS == ("FLs", "FLl", "RLs", "RLl", "FRs", "FRl", "RRs", "RRl")
    assert law.orientation.tolist() == [-1, -1, 1, 1, -1, -1, 1, 1]
    blocked = law.orientation * law.force(0.0, 0.0)
    assert blocked[::2] == pytest.approx(0.32428, abs=6e-6)
    assert blocked[1::2] == pytest.approx(0.38103, abs=6e-6)


def test_model_springs_are_the_actuators():
    # The file carries k as the spring of each actuated joint, to 5 digits.
    law, table = hamr_benders(), HamrParameters(package_root() / "hamr")
    springs = {row.actuator: row.stiffness for row in table.joints if row.actuator}
    assert springs["s"] == pytest.approx(law.stiffness[0], rel=5e-5)
    assert springs["l"] == pytest.approx(law.stiffness[1], rel=5e-5)


@given(volts, volts, tips, tips, st.floats(0, 1))
@settings(deadline=None)
def test_law_is_affine(v1, v2, q1, q2, weight):
    law = hamr_benders()
    between = law.force(
        weight * v1 + (1 - weight) * v2, weight * q1 + (1 - weight) * q2
    )
    mixed = weight * law.force(v1, q1) + (1 - weight) * law.force(v2, q2)
    assert between == pytest.approx(mixed, abs=1e-14)


@pytest.mark.parametrize("bad", [-1.0, 225.1, 1e9])
def test_voltages_out_of_range(bad):
    with pytest.raises(InvalidInput, match=r"outside 0\.\.225 V") as caught:
        check_voltages([112.5, bad])
    assert f"{bad:.1f} V" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_voltages_not_finite(bad):
    with pytest.raises(InvalidInput, match="not finite"):
        check_voltages([0.0, bad])


def test_voltages_in_range_pass():
    assert check_voltages([0, 225, 112.5]).tolist() == [0, 225, 112.5]
    assert check_voltages([]).size == 0


@pytest.fixture(scope="module")
def drive():
    robot = build_robot(load("hamr"), scaling=MM_G_MS)
    return robot, PiezoDrive(robot.plant, robot.scaling)


def drive_output(drive, voltages, tips_mm):
    robot, system = drive
    plant = robot.plant
    plant_context = plant.CreateDefaultContext()
    for index, tip in zip(plant.GetJointActuatorIndices(), tips_mm):
        plant.get_joint_actuator(index).joint().set_translation(plant_context, tip)
    context = system.CreateDefaultContext()
    system.GetInputPort("voltages").FixValue(context, voltages)
    system.GetInputPort("state").FixValue(
        context, plant.GetPositionsAndVelocities(plant_context)
    )
    return system.GetOutputPort("actuation").Eval(context)


def test_drive_is_the_law_in_its_units(drive):
    random = np.random.default_rng(0)
    for _ in range(5):
        voltages = random.uniform(0, 225, 8)
        tips_mm = random.uniform(-0.3, 0.3, 8)
        forces = drive_output(drive, voltages, tips_mm)
        # The unit of force of mm, g, ms is the newton.
        expected = hamr_benders().force(voltages, 1e-3 * tips_mm)
        assert forces == pytest.approx(expected, abs=1e-13)


def test_drive_clips(drive):
    low = drive_output(drive, np.full(8, -40.0), np.zeros(8))
    high = drive_output(drive, np.full(8, 900.0), np.zeros(8))
    assert low == pytest.approx(drive_output(drive, np.zeros(8), np.zeros(8)))
    assert high == pytest.approx(drive_output(drive, np.full(8, 225.0), np.zeros(8)))
    assert low == pytest.approx(-high)
    assert np.abs(low) == pytest.approx(np.abs(hamr_benders().force(0.0, 0.0)))


def test_forces_of_the_authors_simulation():
    path = DATA / "hamr" / "contact_trot60hz_dt0.25ms.csv"
    if not path.is_file():
        pytest.skip(f"the authors' simulation is not at {path}")
    rows = np.genfromtxt(path, delimiter=",", names=True)
    signs = hamr_benders().orientation
    for name, sign in zip(ACTUATORS, signs):
        # Their V2 variant has the swing actuator's carbon in both kinds.
        law = Bender(0.065e-3, sign)
        tip = 1e-3 * rows[f"q_{name[:2]}q{name[2]}act"]
        error = np.abs(law.force(rows[f"V_{name}"], tip) - rows[f"F_{name}"])
        assert error.max() < 3e-9


def test_the_drive_of_a_plant_of_ones_own():
    """Drake's own parser and SI will do: no Robot of ours is needed."""
    plant = MultibodyPlant(1e-4)
    Parser(plant).AddModels(str(load("hamr").path))
    plant.Finalize()
    robot = SimpleNamespace(plant=plant)
    forces = drive_output((robot, PiezoDrive(plant)), np.full(8, 60.0), np.zeros(8))
    assert forces == pytest.approx(hamr_benders().force(np.full(8, 60.0), 0.0))
