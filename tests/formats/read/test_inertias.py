"""Inertias that no body has, and the nearest that one can."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydrake.math import RollPitchYaw
from pydrake.multibody.tree import RotationalInertia

from drakebots.formats.read import Findings
from drakebots.formats.read.masses import nearest_inertia, repair_inertia
from drakebots.formats.read.tree import MOMENTS

moment = st.floats(1e-6, 10.0)
angle = st.floats(-3.0, 3.0)


@given(st.lists(moment, min_size=3, max_size=3), st.tuples(angle, angle, angle))
def test_a_body_can_have_what_comes_out(moments, rpy):
    """Drake's own check passes, and the change is no larger than it must be."""
    R = RollPitchYaw(rpy).ToRotationMatrix().matrix()
    near, change = nearest_inertia(R @ np.diag(moments) @ R.T, mass=1.0)
    xx, yy, zz = np.diag(near)
    inertia = RotationalInertia(xx, yy, zz, near[0, 1], near[0, 2], near[1, 2])
    assert inertia.CouldBePhysicallyValid()
    largest = max(moments)
    excess = max(2 * largest - sum(moments), 0.0)
    assert change * largest == pytest.approx(excess / np.sqrt(3), abs=1e-7 * largest)


def test_the_shortest_way_to_a_flat_body():
    """(0, 0, 1) moves to the plane I3 = I1 + I2 along its normal."""
    near, change = nearest_inertia(np.diag([0.0, 0.0, 1.0]), mass=1.0)
    np.testing.assert_allclose(near, np.diag([1, 1, 2]) / 3, atol=1e-8)
    assert change == pytest.approx(1 / np.sqrt(3))


def test_rounding_about_a_point_is_no_inertia():
    near, change = nearest_inertia(np.diag([1e-20, -1e-21, 0.0]), mass=0.3)
    assert change == 0 and not near.any()


def link_with(moments) -> ET.Element:
    """A link of a URDF."""
    texts = {key: repr(float(value)) for key, value in zip(MOMENTS, moments)}
    link = ET.Element("link", name="a")
    ET.SubElement(ET.SubElement(link, "inertial"), "inertia", texts)
    return link


def repaired(mass, *moments):
    link, findings = link_with(moments), Findings()
    before = dict(link.find("inertial/inertia").attrib)
    repair_inertia(link, mass, findings, diagonal="0")
    after = link.find("inertial/inertia").attrib
    changes = {key: float(after[key]) for key in after if after[key] != before[key]}
    return changes, findings


def test_an_sdf_is_repaired_as_a_urdf_is():
    """Its moments are children, those on the diagonal 1 where they are missing."""
    urdf = link_with([1, 0, 0, 1, 0, 5])
    sdf = ET.fromstring(
        "<link name='a'><inertial><inertia><izz>5</izz></inertia></inertial></link>"
    )
    for link, diagonal in ((urdf, "0"), (sdf, "1")):
        repair_inertia(link, 1.0, Findings(), diagonal=diagonal)
    for key in MOMENTS:
        wanted = urdf.find("inertial/inertia").get(key)
        found = sdf.findtext(f"inertial/inertia/{key}")
        assert float(found) == float(wanted)
    assert float(found) < 5


def test_a_good_inertia_stays():
    changes, findings = repaired(1.0, 1, 0, 0, 1, 0, 1)
    assert changes == {} and findings.notes == ()


def test_an_inertia_without_a_mass_is_dropped():
    changes, findings = repaired(0.0, 1, 0, 0, 1, 0, 1)
    assert changes == {"ixx": 0.0, "iyy": 0.0, "izz": 0.0}
    assert findings.notes == ("an inertia without a mass is not used: a",)


def test_numbers_of_any_size_have_principal_moments():
    """Where LAPACK would take squares of them."""
    changes, findings = repaired(1.0, 1e300, 1e299, 0, 1e300, 0, 1e300)
    assert changes == {} and findings.notes == ()
    for value in (np.nan, np.inf):
        changes, findings = repaired(1.0, value, 0, 0, 1, 0, 1)
        assert changes == {} and "not finite; correct it" in findings.problems[0]


def test_a_negative_one_is_a_problem():
    changes, findings = repaired(1.0, -0.1, 0, 0, 1, 0, 1)
    assert changes == {}
    (problem,) = findings.problems
    assert "link 'a' has a negative inertia" in problem
