"""An animal's legs found, a skeleton fitted, thin places thickened, parts joined."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from drakebots.core.errors import InvalidInput, NoSolution, UnknownName
from drakebots.design import DesignProblem, FitSettings
from drakebots.design.animal import stand
from drakebots.design.embed import CLEARANCE, TOLERANCE
from drakebots.design.fit import fit
from drakebots.design.geometry import (
    DistanceGrid,
    HalfSpaceCut,
    Implicit,
    RoundCone,
    Surface,
    mirrored,
)
from drakebots.design.pipeline import _closed, joined_feet, thicken

FEET = {"FL": (0.2, 0.1), "FR": (0.2, -0.1), "RL": (-0.2, 0.1), "RR": (-0.2, -0.1)}
"""Where the animal of these tests has its feet [m]."""


def _animal(radius: float, spacing: float = 8e-3) -> Surface:
    """Four legs, a head held up, a trunk and a tail that reach the ground."""
    legs = [
        RoundCone([x, 0.1, 0.30], [x, 0.1, 0.0], radius, radius) for x in (0.2, -0.2)
    ]
    middle = [
        RoundCone([-0.2, 0, 0.36], [0.2, 0, 0.36], 0.13, 0.13),
        RoundCone([0.25, 0, 0.42], [0.42, 0, 0.52], 0.08, 0.07),
        RoundCone([0.47, 0, 0.50], [0.48, 0, 0.0], 0.035, 0.025),
        RoundCone([-0.30, 0, 0.36], [-0.45, 0, 0.0], 0.03, 0.025),
    ]
    cut = HalfSpaceCut([0, 0, 0.0], [0, 0, -1.0])
    body = Implicit((*middle, *mirrored(legs)), (cut,), 0.02)
    return DistanceGrid.from_implicit(body, spacing).level_set()


@pytest.fixture(scope="module")
def thin():
    """An animal whose legs are too thin for a servo, its grid, and the fit."""
    animal = stand(_animal(0.026))
    grid = DistanceGrid.from_surface(animal.surface, 8e-3, 0.024)
    settings = FitSettings(scale=1.0, template="upright", servo="MG995R")
    return animal, grid, fit(animal, grid, 0.9, settings)


@pytest.mark.parametrize(
    ("place", "axes"),
    [((0, 1, 2), None), ((1, 2, 0), ("z", "y")), ((0, 1, 2), ("-x", "z"))],
)
def test_legs_and_axes_are_found(place, axes):
    """However the file is turned, also with a trunk and a tail on the ground."""
    surface = _animal(0.04, 0.012)
    x = surface.vertices[:, list(place)]
    if axes == ("-x", "z"):
        x = x * [-1, -1, 1]
    animal = stand(Surface(x + np.array([0.7, -0.2, 0.4]), surface.triangles))
    inside = DistanceGrid.from_surface(animal.surface, 0.012, 0.036)
    for name, leg in animal.legs.items():
        away = leg.line[:, :2] - leg.line[0, :2]
        assert np.abs(away[leg.line[:, 2] < 0.2]).max() < 0.012
        # The middle of the feet is the origin.
        np.testing.assert_allclose(leg.line[0, :2], FEET[name], atol=0.012)
        assert 0.15 < leg.top < 0.33
        z = leg.line[:, 2]
        radius = -inside(leg.line[(z > 0.06) & (z < 0.2)])
        np.testing.assert_allclose(radius, 0.04, atol=0.012)
    found = " ".join(animal.notes)
    assert (axes is None and not found) or (
        axes is not None and f"{axes[0]} points forward and its {axes[1]} up" in found
    )


def test_one_axis_is_enough():
    """Of a file with y up that looks along z, only that is said."""
    surface = _animal(0.04, 0.012)
    turned = Surface(surface.vertices[:, [1, 2, 0]], surface.triangles)
    animal = stand(turned, forward="z")
    assert "its y up" in animal.notes[0]
    assert animal.legs["FL"].line[0, 0] > 0 > animal.legs["RL"].line[0, 0]
    with pytest.raises(InvalidInput, match="perpendicular"):
        stand(turned, forward="z", up="-z")


@pytest.mark.long
def test_bent_hind_legs_are_not_taken_for_four():
    """Tail down, hocks and thighs look like four feet; they hang in the air."""
    middle = [
        RoundCone([-0.25, 0, 0.5], [0.25, 0, 0.5], 0.15, 0.15),
        RoundCone([0.36, 0, 0.58], [0.60, 0, 0.74], 0.11, 0.06),
        RoundCone([-0.36, 0, 0.55], [-0.62, 0, 0.70], 0.04, 0.02),
    ]
    joints = [[-0.33, 0.12, 0.45], [-0.26, 0.14, 0.3], [-0.37, 0.14, 0.14]]
    joints += [[-0.34, 0.14, 0.04], [-0.29, 0.14, 0.035]]
    radii = [0.10, 0.06, 0.04, 0.045, 0.04]
    ends = pairwise(zip(joints, radii))
    left = [RoundCone(a, b, r, s) for (a, r), (b, s) in ends]
    left.append(RoundCone([0.28, 0.13, 0.45], [0.3, 0.14, 0.0], 0.06, 0.04))
    cut = HalfSpaceCut([0, 0, 0.0], [0, 0, -1.0])
    body = Implicit((*middle, *mirrored(left)), (cut,), 0.03)
    surface = DistanceGrid.from_implicit(body, 0.012).level_set()
    turned = Surface(surface.vertices[:, [1, 2, 0]], surface.triangles)
    assert stand(turned, up="z").legs
    assert "z points forward and its y up" in stand(turned).notes[0]
    assert not stand(surface).notes


def test_what_stands_on_no_four_legs_is_refused():
    ball = Implicit((RoundCone([-0.2, 0, 0.1], [0.2, 0, 0.1], 0.1, 0.1),))
    with pytest.raises(NoSolution, match="no four legs"):
        stand(DistanceGrid.from_implicit(ball, 0.015).level_set())


def test_joints_lie_on_the_legs_lines(thin):
    animal, _, found = thin
    for hinge in found.skeleton.hinges:
        limb, joint = hinge.name.split("_")
        if joint in ("knee", "ankle"):
            line = animal.legs[limb].at(hinge.p_WJ[2])
            assert np.linalg.norm((hinge.p_WJ - line)[:2]) < 0.03


def test_torque_of_standing_is_that_of_the_quarter_weight(thin):
    """Independent of the fit: the lever of the farthest joint, from positions."""
    _, _, found = thin
    mass = found.skeleton.mass + 1070 * 4e-3 * 0.9
    levers = []
    for sole in found.skeleton.soles:
        foot = found.skeleton.link(sole.link).origin + sole.p_BP[4]
        for hinge in found.skeleton.hinges:
            if hinge.name.startswith(sole.foot):
                across = 0 if abs(hinge.axis[1]) > 0.5 else 1
                levers.append(abs(foot - hinge.p_WJ)[across])
    assert found.torque == pytest.approx(mass * 9.81 / 4 * max(levers), rel=1e-9)


def test_feet_that_grow_together_are_named(thin):
    """Where the body has a gap along its middle, only feet of one side."""
    _, grid, found = thin
    assert not joined_feet(grid, found.skeleton)
    gap = joined_feet(lambda p: 0.01 - abs(p[:, 1]), found.skeleton)
    assert gap == [("FL", "RL"), ("FR", "RR")]
    assert len(joined_feet(lambda p: -np.ones(len(p)), found.skeleton)) == 6


@pytest.mark.long
def test_thickened_body_holds_its_skeleton_and_is_the_old_one_elsewhere(thin):
    animal, grid, found = thin
    assert {"FL_lower", "RR_lower", "FL_foot"} <= set(found.protrusions)
    build = found.template.build
    wide = thicken(grid, found.skeleton, build)
    points, _ = found.skeleton.corners(("shell", "servo"))
    above = points[:, 2] > build.sole_skin + build.wall + 1e-3
    depth = -wide.grid(points[above])
    # Trilinear values of a grid of 8 mm flatten rounded edges.
    assert depth.min() > build.skin + CLEARANCE - 3e-3
    # Nothing moved inward, and head and back stay where they were; the grid rounds
    # the edges of soles.
    x = animal.surface.vertices[animal.surface.vertices[:, 2] > 0.03]
    assert wide.grid(x).max() < 2e-3
    head = x[x[:, 0] > 0.45]
    assert np.abs(wide.grid(head)).max() < 2e-3
    # Left and right alike.
    both = np.random.default_rng(0).uniform([-0.3, 0, 0.02], [0.3, 0.2, 0.3], (400, 3))
    other = wide.grid(both * [1, -1, 1])
    assert np.abs(wide.grid(both) - other).mean() < 2e-3
    assert 0 < wide.share < 0.7


def test_what_no_servo_can_do_is_refused(thin):
    animal, grid, _ = thin
    with pytest.raises(NoSolution, match=r"needs a servo of .* make it thinner"):
        fit(animal, grid, 0.9, FitSettings(), skin=9e-3)
    weak = FitSettings(scale=3.0, template="crouched", servo="MG90S")
    with pytest.raises(
        NoSolution, match=r"servo MG90S has 0\.216 N m; scale .* by [0-2]\."
    ):
        fit(animal, grid, 0.9, weak)


@pytest.mark.long
def test_a_scale_that_is_chosen_takes_the_advice_of_a_refusal():
    """Of a skin so heavy that no scale of the range will do."""
    animal = stand(_animal(0.045))
    grid = DistanceGrid.from_surface(animal.surface, 8e-3, 0.024)
    settings = FitSettings(template="upright", servo="DS5160")
    given = replace(settings, scale=1.0)
    with pytest.raises(NoSolution, match=r"takes 13\.9 N m of a joint; .* by 0\.67"):
        fit(animal, grid, 40.0, given)
    # Without a servo of the user's, it says what walking takes, which is refused.
    with pytest.raises(NoSolution, match=r"and walking 1\.5 times that, 20\.\d N m"):
        fit(animal, grid, 40.0, replace(given, servo=None))
    found = fit(animal, grid, 40.0, settings)
    assert found.load <= 1 and found.scale == pytest.approx(0.67, abs=0.01)


@pytest.mark.long
def test_where_there_is_room_nothing_is_thickened():
    animal = stand(_animal(0.055))
    grid = DistanceGrid.from_surface(animal.surface, 8e-3, 0.024)
    settings = FitSettings(scale=1.5, template="upright", servo="MG995R")
    found = fit(animal, grid, 0.9, settings)
    depth = -1.5 * grid(found.skeleton.corners(("shell", "servo"))[0] / 1.5)
    feet = [k for k in found.protrusions if k.endswith("_foot")]
    assert set(found.protrusions) <= set(feet)
    assert depth.min() > 4e-3 - TOLERANCE - 3e-3


@pytest.mark.long
def test_parts_that_overlap_become_one_body():
    """Two boxes: the volume of their union in closed form."""
    box = np.array(np.meshgrid([0, 1], [0, 1], [0, 1], indexing="ij")).reshape(3, -1).T
    faces = np.array(
        [[0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1],
         [2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3]]
    )  # fmt: skip
    first = box * [0.4, 0.3, 0.3]
    second = box * [0.4, 0.2, 0.2] + [0.203, 0.053, 0.051]
    cross = Surface(np.concatenate([first, second]), np.concatenate([faces, faces + 8]))
    whole, notes = _closed(cross)
    assert whole.volume == pytest.approx(0.036 + 0.203 * 0.04, rel=0.02)
    assert "2 separate pieces: mended" in notes[0]


@pytest.mark.long
def test_a_torn_surface_is_closed_unless_much_is_lost():
    """A hole is closed; legs that hang in the air are no little thing to lose."""
    surface = _animal(0.04, 0.012)
    x, f = surface.vertices, surface.triangles
    middle = x[f].mean(axis=1)
    hole = np.linalg.norm(middle - [0.0, 0.13, 0.36], axis=1) < 0.03
    whole, notes = _closed(Surface(x, f[~hole]))
    assert hole.sum() > 5 and "are open: mended" in notes[0]
    assert whole.volume == pytest.approx(surface.volume, rel=0.01)
    gap = (middle[:, 2] > 0.17) & (middle[:, 2] < 0.2) & (np.abs(middle[:, 0]) < 0.3)
    with pytest.raises(InvalidInput, match=r"are open.* would lose \d+ % of its area"):
        _closed(Surface(x, f[~gap]))


def test_settings_and_problems_refuse_what_cannot_be():
    with pytest.raises(UnknownName, match="template"):
        FitSettings(template="centipede")
    with pytest.raises(UnknownName, match="servo"):
        FitSettings(servo="V8")
    with pytest.raises(InvalidInput, match="scale"):
        FitSettings(scale=0.0)
    surface = _animal(0.04, 0.015)
    with pytest.raises(InvalidInput, match="body or a surface"):
        DesignProblem("a")
    with pytest.raises(InvalidInput, match="needs a template"):
        DesignProblem("a", body=Implicit((RoundCone([0, 0, 0], [1, 0, 0], 1, 1),)))
    for given in ({"scale": 2.0}, {"limits": {"front.upper": (0.1, 0.2)}}):
        with pytest.raises(InvalidInput, match="are for a template"):
            DesignProblem("a", surface=surface, **given)
