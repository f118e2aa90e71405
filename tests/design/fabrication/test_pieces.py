"""The skin cut into pieces."""

import numpy as np
import pytest

from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.design import table1_template
from drakebots.design.fabrication.demould import SLACK, best_plane, blocked, lifted
from drakebots.design.fabrication.pieces import (
    Opening,
    SkinPiece,
    bowl_undercut,
    is_sound,
    skin_pieces,
)
from drakebots.design.geometry import (
    DistanceGrid,
    Surface,
    heavy_parts,
    to_manifold,
    to_surface,
)
from drakebots.design.table1 import body_named

Z = np.array([0.0, 0.0, 1.0])


def ball(radius, segments=128):
    import manifold3d as m

    return m.Manifold.sphere(radius, segments)


@pytest.fixture(scope="module")
def beetle():
    skeleton = table1_template("beetle").skeleton()
    grid = DistanceGrid.from_implicit(body_named("beetle", skeleton), 6e-3)
    outer, inner = grid.level_set(0.0), grid.level_set(-0.004)
    parts = to_manifold(inner).decompose()
    inner = to_surface(max(parts, key=lambda part: part.volume()))
    return skeleton, outer, inner


@pytest.fixture(scope="module")
def pieces(beetle):
    skeleton, outer, inner = beetle
    return skin_pieces(outer, inner, skeleton)


@pytest.mark.parametrize("share", [-0.6, 0.0, 0.25, 0.7])
def test_undercut_of_a_ball_is_a_zone(share):
    """Between the plane at height c and the equator: 2 pi R c of 4 pi R^2, less the
    zone whose overhang is below SLACK: (R + SLACK) cos(latitude) > R."""
    surface, R = to_surface(ball(0.05, 256)), 0.05
    height = surface.vertices[surface.triangles].mean(axis=1)[:, 2]
    points, area = lifted(surface), surface.areas
    upper = height > share * R
    held = area @ np.where(
        upper, blocked(points, Z, surface), blocked(points, -Z, surface)
    )
    free = np.sqrt(1 - (R / (R + SLACK)) ** 2)
    expected = max(abs(share) - free, 0.0) / 2
    assert held / area.sum() == pytest.approx(expected, abs=5e-3)


@pytest.mark.parametrize("direction", [(0, 0, 1), (1, 2, -0.5)])
def test_a_ball_is_best_parted_at_its_equator(direction):
    parting = best_plane(to_surface(ball(0.05)), np.array(direction, float))
    assert parting.offset == pytest.approx(0.0, abs=1e-3)
    assert parting.undercut < 0.01
    assert np.linalg.norm(parting.direction) == pytest.approx(1.0)


def test_a_sideways_hole_is_an_undercut():
    """A square hole through a block, of side a, along x: its roof and floor."""
    import manifold3d as m

    block = m.Manifold.cube([0.04, 0.04, 0.04], True)
    hole = m.Manifold.cube([0.1, 0.01, 0.02], True)
    surface = to_surface((block - hole).refine_to_length(0.002))
    across = best_plane(surface, Z)
    along = best_plane(surface, np.array([1.0, 0.0, 0.0]))
    assert along.undercut == pytest.approx(0.0, abs=1e-12)
    # All of the tunnel's four walls lie under its roof or over its floor, but for
    # the half that the best plane leaves to nobody.
    tunnel = 2 * 0.04 * (0.01 + 0.02)
    total = surface.areas.sum()
    assert 0.3 * tunnel / total < across.undercut <= tunnel / total + 1e-9


def test_a_hemispherical_bowl_has_no_undercut():
    outer, _ = ball(0.05).split_by_plane(Z.tolist(), 0.0)
    cavity = ball(0.046)
    half = SkinPiece(
        "bowl",
        to_surface(outer - cavity),
        to_surface(outer),
        to_surface(outer ^ cavity),
        (Opening(np.zeros(3), -Z),),
    )
    assert bowl_undercut(half) < 0.01
    volume = 2 / 3 * np.pi * (0.05**3 - 0.046**3)
    assert half.volume == pytest.approx(volume, rel=5e-3)


@pytest.mark.long
def test_pieces_add_up_to_the_skin(beetle, pieces):
    _, outer, inner = beetle
    total = sum(piece.volume for piece in pieces.values())
    assert total == pytest.approx(outer.volume - inner.volume, rel=1e-9)
    cores = sum(piece.core.volume for piece in pieces.values())
    assert cores == pytest.approx(inner.volume, rel=1e-9)
    for piece in pieces.values():
        whole = piece.volume + piece.core.volume
        assert whole == pytest.approx(piece.filled.volume, rel=1e-9)


@pytest.mark.long
def test_one_piece_a_limb_and_two_of_the_torso(beetle, pieces):
    skeleton, outer, _ = beetle
    limbs = {"FL", "FR", "RL", "RR"}
    torso = set(pieces) - limbs
    assert limbs < set(pieces)
    assert torso in (
        {"torso_left", "torso_right"},
        {"torso_top", "torso_bottom"},
    )
    for name in limbs:
        piece = pieces[name]
        # Closed surfaces, or to_manifold raises; open tubes are one body.
        assert len(heavy_parts(to_manifold(piece.skin))) == 1
        (opening,) = piece.openings
        x = piece.skin.vertices
        assert ((x - opening.p_W) @ opening.normal).max() < 1e-7
        foot = skeleton.link(f"{name}_foot").p_WA
        assert (x.min(axis=0) < foot).all() and (foot < x.max(axis=0)).all()
        assert x[:, 2].min() == pytest.approx(outer.vertices[:, 2].min(), abs=1e-3)
        # The opening shows: the rim of skin lies in the plane.
        assert opening.faces(piece.skin).any()
    for name in torso:
        assert len(heavy_parts(to_manifold(pieces[name].skin))) == 1


@pytest.mark.long
def test_left_and_right_are_alike(pieces):
    for front in "FR":
        left, right = pieces[f"{front}L"], pieces[f"{front}R"]
        assert left.volume == pytest.approx(right.volume, rel=0.1)


def test_a_cut_that_leaves_a_bubble_is_not_sound():
    """Nor one that leaves two parts; of such planes another nearby is taken."""
    one, small = ball(0.05), ball(0.002)
    assert is_sound(one)
    assert not is_sound(one - small)
    assert not is_sound(one + small.translate([0.0, 0.0, 0.1]))


@pytest.mark.long
def test_rims_of_limb_and_torso_match(pieces):
    torso = [k for name, k in pieces.items() if name.startswith("torso")]
    for name in ("FL", "FR", "RL", "RR"):
        opening = pieces[name].openings[0]
        skin = pieces[name].skin
        mine = skin.areas[opening.faces(skin)].sum()
        other = sum(k.skin.areas[opening.faces(k.skin)].sum() for k in torso)
        assert mine == pytest.approx(other, rel=1e-6)


def test_an_inner_surface_outside_is_refused(beetle):
    skeleton, outer, inner = beetle
    with pytest.raises(InvalidInput, match="not inside the outer"):
        skin_pieces(inner, outer, skeleton)


def test_an_open_surface_is_refused(beetle):
    skeleton, outer, inner = beetle
    hole = Surface(outer.vertices, outer.triangles[1:])
    with pytest.raises(InvalidInput, match="outer skin: not a closed surface"):
        skin_pieces(hole, inner, skeleton)


def test_a_skeleton_outside_is_named(beetle):
    skeleton, outer, inner = beetle
    move = np.array([0.0, 0.0, 1.0])
    outer = Surface(outer.vertices + move, outer.triangles)
    inner = Surface(inner.vertices + move, inner.triangles)
    with pytest.raises(InvalidInput, match="FL_foot is not inside"):
        skin_pieces(outer, inner, skeleton)


def test_a_ball_around_everything_has_no_limbs(beetle):
    skeleton, _, _ = beetle
    outer, inner = (
        to_surface(ball(r, 64).translate([0.0, 0.0, 0.2])) for r in (0.5, 0.495)
    )
    with pytest.raises(NoSolution, match="limb FL"):
        skin_pieces(outer, inner, skeleton)
