"""Units: factors to SI, dimensions, quantities of parameter files, scaled units."""

from pathlib import Path

import numpy as np
import pytest
from pydrake.multibody.tree import UniformGravityFieldElement

from drakebots.core.errors import InvalidInput
from drakebots.core.units import (
    GRAVITY,
    GRAVITY_W,
    MM_G_MS,
    SI,
    dimensions,
    quantity,
    si_factor,
)

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("unit", "factor", "powers"),
    [
        ("1", 1.0, (0, 0, 0)),
        ("deg", np.pi / 180, (0, 0, 0)),
        ("g mm^2", 1e-9, (2, 1, 0)),
        ("N mm/rad", 1e-3, (2, 1, -2)),
        ("mm/s/mA", 1.0, None),
        ("N/(V mm)", 1e3, None),
        ("Hz", 1.0, (0, 0, -1)),
        ("kg/m^3", 1.0, (-3, 1, 0)),
        ("N m s/rad", 1.0, (2, 1, -1)),
        ("m^-1", 1.0, (-1, 0, 0)),
    ],
)
def test_units(unit, factor, powers):
    assert si_factor(unit) == pytest.approx(factor, rel=1e-15)
    assert dimensions(unit) == powers


@pytest.mark.parametrize("unit", ["furlong", "mm^x", "m^999", "N-m"])
def test_unknown_units(unit):
    for read in (si_factor, dimensions):
        with pytest.raises(InvalidInput, match="unknown unit"):
            read(unit)


def test_quantities():
    assert quantity({"value": "2e3", "unit": "mm"}) == 2.0
    for node in ({}, {"value": 1}, {"value": "x", "unit": "m"}, 3, None):
        with pytest.raises(InvalidInput, match="mass: needs"):
            quantity(node, "mass")
    with pytest.raises(InvalidInput, match="not finite"):
        quantity({"value": np.nan, "unit": "m"})


def test_scaled_units():
    assert SI.is_si and not MM_G_MS.is_si
    assert MM_G_MS.force == pytest.approx(1.0) and MM_G_MS.torque == pytest.approx(1e-3)
    assert MM_G_MS.velocity == pytest.approx(1.0)
    assert MM_G_MS.inertia == pytest.approx(1e-9)
    assert MM_G_MS.of(mass=1, time=-2) == pytest.approx(1e3)


def test_gravity_is_that_of_drake_s_plants_and_stated_once():
    assert UniformGravityFieldElement.kDefaultStrength == GRAVITY
    field = UniformGravityFieldElement()
    assert field.gravity_vector() == pytest.approx(GRAVITY_W, abs=0)
    files = [*ROOT.glob("drakebots/**/*.py"), *ROOT.glob("scripts/**/*.py")]
    stated = [path.name for path in files if "9.81" in path.read_text()]
    assert stated == ["units.py"], "use drakebots.core.units.GRAVITY"
