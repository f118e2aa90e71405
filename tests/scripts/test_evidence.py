"""The scripts that hold models against real measurements, on made-up data."""

from __future__ import annotations

import numpy as np
import pytest

from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.core.units import GRAVITY
from tests.helpers.scripts import load_script

TENTACLE = load_script("tentacle")
PACKS = load_script("measured")

E, R, L, B = 4e5, 0.01, 0.3, 0.006


def rod(radii=(R, R), slope=0.0, step=0.01, **more):
    """A rod of 30 cm with one tendon beside its axis and markers at middle and end."""
    tendon = TENTACLE.Tendon(np.radians(30), B, slope, L)
    markers = np.array([L / 2, L]), np.array([[0, 0, 0.02], [0.005, 0, 0]])
    shape = TENTACLE.Shape(np.array([0, L]), np.array(radii), (tendon,), *markers)
    return TENTACLE.Rod(shape, step, **more)


def bend_and_stretch(one, q):
    """Angle of the tip [rad] and what the slides give [m]."""
    slides = np.array(["stretch" in x for x in one.plant.GetPositionNames()])
    return q[~slides].sum(), q[slides].sum()


def test_a_tendon_beside_the_axis_is_a_follower_moment():
    """Without gravity: curvature T b/(E I) and strain -T/(E A), all along."""
    tension, area, inertia = 4.0, np.pi * R**2, np.pi * R**4 / 4
    turn, shorter = tension * B * L / (E * inertia), tension * L / (E * area)
    assert turn > 2  # a large bend
    off = []
    for step in (0.02, 0.01):
        one = rod(step=step)
        q = one.rest([tension], E, 0.0)
        angle, stretch = bend_and_stretch(one, q)
        off.append(np.abs([angle / turn - 1, stretch / shorter + 1]))
    # Of second order, but for slides along the tangent before a limb, not its chord.
    assert (off[1] < off[0] / 3).all()
    assert off[1].max() < 2e-3
    # The tip of an arc of that angle and length, seen in the tendon's plane.
    length = L + stretch
    found = one.markers(q, one.plane([tension]))[1]
    radius = length / angle
    aside = radius * (1 - np.cos(angle)) + 0.005 * np.sin(angle)
    down = radius * np.sin(angle) + 0.005 * np.cos(angle)
    # y and z of the section are y and x of the robot.
    expected = [aside * np.sin(np.radians(30)), aside * np.cos(np.radians(30)), -down]
    assert found == pytest.approx(expected, abs=3e-4)
    assert one.residual(q, [tension], E, 0.0) < 1e-8


def test_a_cone_bends_by_the_integral_of_its_compliance():
    r0, r1, tension = 0.012, 0.006, 0.8
    one = rod((r0, r1), step=0.01)
    angle, stretch = bend_and_stretch(one, one.rest([tension], E, 0.0))
    slope = (r0 - r1) / L
    compliance = 4 / np.pi * (r1**-3 - r0**-3) / (3 * slope)
    assert angle == pytest.approx(tension * B * compliance / E, rel=5e-3)
    assert stretch == pytest.approx(-tension * L / (E * np.pi * r0 * r1), rel=5e-3)


def test_a_hanging_rod_stretches_by_its_own_weight():
    density = 1200.0
    for step, rel in ((0.03, 0.15), (0.005, 0.03)):
        one = rod(step=step)
        q = one.rest([0.0], E, density)
        angle, stretch = bend_and_stretch(one, q)
        assert angle == pytest.approx(0, abs=1e-9)
        assert stretch == pytest.approx(density * GRAVITY * L**2 / (2 * E), rel=rel)
    assert one.markers(q, 0.0)[0] == pytest.approx([0.02, 0, -L / 2], abs=4e-3)


def test_an_axis_that_does_not_give_way_keeps_its_length():
    one = rod(stretches=False)
    q = one.rest([2.0], E, 1200.0)
    points = [
        one.plant.GetBodyByName(tip).EvalPoseInWorld(at).translation()
        for at in [one.plant.CreateDefaultContext()]
        for tip in one.tips
        if one.plant.SetPositions(at, q) is None
    ]
    assert np.linalg.norm(np.diff(points, axis=0), axis=1).sum() == pytest.approx(L)


def test_the_residual_sees_a_pose_that_is_not_at_rest():
    one = rod()
    q = one.rest([2.0], E, 1200.0)
    assert one.residual(q, [2.0], E, 1200.0) < 1e-8
    assert one.residual(1.01 * q, [2.0], E, 1200.0) > 1e-3
    with pytest.raises(NoSolution):
        one.rest([2.0], E, 1200.0, np.full(len(q), np.nan))


def test_a_planted_modulus_is_found():
    """From markers of a rod of 90 kPa less, with the poses that are not fitted on."""
    one = rod(step=0.05)
    tensions = np.array([[0.5], [1.5]])
    made = [one.markers(one.rest(t, 3.1e5, 1200.0), one.plane(t)) for t in tensions]
    zeros = np.zeros((2, 2))
    poses = TENTACLE.Poses(["a", "b"], zeros, tensions, np.array(made), np.array(made))
    found = TENTACLE.Predictions(one, poses).identify(np.array([False, True]), 1200.0)
    assert found == pytest.approx(3.1e5, rel=2e-3)


def test_absent_data_is_one_line(tmp_path, monkeypatch):
    """It says where it looked, and what to set; a given folder may be the pack."""
    with pytest.raises(InvalidInput, match=r"a\.csv.*DRAKEBOTS_DATA"):
        PACKS.pack_folder("x", tmp_path, ["a.csv"])
    pack = tmp_path / "real" / "x"
    pack.mkdir(parents=True)
    (pack / "a.csv").write_text("name,v\none,\ntwo,2.5\n")
    monkeypatch.setenv("DRAKEBOTS_DATA", str(tmp_path))
    for given in (None, tmp_path, pack):
        assert PACKS.pack_folder("x", given, ["a.csv"]) == pack
    one, two = PACKS.read_rows(pack / "a.csv")
    assert np.isnan(one["v"]) and two == {"name": "two", "v": 2.5}
