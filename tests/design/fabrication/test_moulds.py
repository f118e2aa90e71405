"""Moulds of skin pieces, and all files of a robot."""

import csv
from types import SimpleNamespace

import meshio
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from drakebots.core.errors import InvalidInput
from drakebots.design import table1_template
from drakebots.design.fabrication import fabricate
from drakebots.design.fabrication.moulds import (
    PIN_CLEARANCE,
    PRINT,
    SIDES,
    two_part_mould,
)
from drakebots.design.fabrication.pieces import Opening, SkinPiece
from drakebots.design.geometry import (
    DistanceGrid,
    Surface,
    heavy_parts,
    to_manifold,
    to_surface,
)
from drakebots.design.table1 import body_named

Z = np.array([0.0, 0.0, 1.0])
BARE = {"sprue": 0.0, "vent": 0.0, "pin": 0.0}


def _piece(outer, cavity, openings):
    core = outer ^ cavity
    return SkinPiece(
        "test",
        to_surface(outer - cavity),
        to_surface(outer),
        to_surface(core),
        openings,
    )


@pytest.fixture(scope="module")
def bowl():
    import manifold3d as m

    outer, _ = m.Manifold.sphere(0.05, 96).split_by_plane(Z.tolist(), 0.0)
    return _piece(outer, m.Manifold.sphere(0.045, 96), (Opening(np.zeros(3), -Z),))


@pytest.fixture(scope="module")
def tube():
    """A closed tube along z, 12 cm long, open at z = 0, with a flange at its end."""
    import manifold3d as m

    def rod(r, z0, z1):
        return m.Manifold.cylinder(z1 - z0, r, r, 48).translate([0, 0, z0])

    outer = (rod(0.025, 0, 0.12) + rod(0.035, 0.09, 0.12)).refine_to_length(0.006)
    cavity = rod(0.021, -0.01, 0.116) + rod(0.031, 0.094, 0.116)
    return _piece(outer, cavity.refine_to_length(0.006), (Opening(np.zeros(3), -Z),))


def _volume(mould):
    return sum(body.volume for body in mould.bodies.values()) + mould.cast.volume


def _overlap(mould):
    solids = [to_manifold(b) for b in (*mould.bodies.values(), mould.cast)]
    return sum((a ^ b).volume() for k, a in enumerate(solids) for b in solids[k + 1 :])


@pytest.mark.long
def test_a_bowl_takes_two_halves(bowl):
    mould = two_part_mould(bowl, **BARE)
    assert mould.core is None and set(mould.bodies) == {"upper", "lower"}
    assert mould.undercut < 0.01
    np.testing.assert_allclose(mould.parting.direction, Z, atol=1e-12)
    assert _volume(mould) == pytest.approx(np.prod(mould.size), rel=1e-9)
    # The core stands on the lower half: a half ball on a plate.
    plate = mould.size[0] * mould.size[1] * 0.015
    core = mould.lower.volume - plate
    assert core == pytest.approx(2 / 3 * np.pi * 0.045**3, rel=0.01)


@pytest.mark.parametrize("turn", [(10.0, 20.0, 30.0), (-77.0, 5.0, 123.0)])
def test_no_film_is_left_at_the_rim_of_a_turned_bowl(bowl, turn):
    def turned(surface):
        return to_surface(to_manifold(surface).rotate(turn).translate([0.3, 0.1, -0.2]))

    parts = [turned(k) for k in (bowl.skin, bowl.filled, bowl.core)]
    R = Rotation.from_euler("xyz", turn, degrees=True).as_matrix()
    opening = Opening(np.array([0.3, 0.1, -0.2]), -R @ Z)
    mould = two_part_mould(SkinPiece("turned", *parts, (opening,)))
    assert mould.core is None
    level = two_part_mould(bowl)
    np.testing.assert_allclose(mould.parting.direction, R @ Z, atol=1e-9)
    assert mould.cast.volume == pytest.approx(level.cast.volume, rel=1e-9)
    # The lower half's core is joined to its plate, the upper one is open below.
    probe = -1e-3 * Z
    upper = to_manifold(mould.upper)
    assert not upper.ray_cast(probe.tolist(), (0.04 * Z).tolist())


@pytest.mark.long
def test_a_tube_takes_a_loose_core(tube):
    mould = two_part_mould(tube, **BARE)
    assert set(mould.bodies) == {"upper", "lower", "core"}
    assert _volume(mould) == pytest.approx(np.prod(mould.size), rel=1e-9)
    assert mould.parting.undercut < 0.01
    assert abs(mould.parting.direction @ Z) < 0.2
    # The core is held by its print; it is longer than the cavity by that.
    print_volume = mould.core.volume - tube.core.volume
    disc = 24 * np.sin(2 * np.pi / 48) * 0.021**2
    assert print_volume == pytest.approx(disc * PRINT, rel=1e-3)
    # Pulled out, it is held by the ring inside the flange.
    ring = np.pi * (0.031**2 - 0.021**2)
    assert mould.undercut * (tube.filled.areas.sum() + tube.core.areas.sum()) > ring
    # Without a core, the halves could not leave the inside.
    assert mould.undercut_without_core > 0.1 > mould.parting.undercut


@pytest.mark.long
@pytest.mark.parametrize("name", ["bowl", "tube"])
def test_bodies_do_not_overlap(name, request):
    mould = two_part_mould(request.getfixturevalue(name))
    assert _overlap(mould) < 1e-6 * mould.cast.volume


@settings(max_examples=8, deadline=None)
@given(
    pin=st.floats(0.003, 0.0075),
    sides=st.tuples(*[st.floats(0.02, 0.06)] * 3),
)
def test_pins_holes_and_sprue_are_all_that_is_missing(pin, sides):
    import manifold3d as m

    solid = to_surface(m.Manifold.cube(list(sides), True))
    block = SkinPiece("block", solid, solid, None, ())
    plain = two_part_mould(block, parting_direction=Z, **BARE)
    pinned = two_part_mould(block, parting_direction=Z, sprue=0.006, vent=0.0, pin=pin)
    unit = SIDES / 2 * np.sin(2 * np.pi / SIDES) / 4  # area over diameter^2
    hole = pin + PIN_CLEARANCE
    assert pinned.lower.volume - plain.lower.volume == pytest.approx(
        4 * unit * pin**3, rel=1e-6
    )
    sprue = unit * 0.006**2 * 0.015
    assert plain.upper.volume - pinned.upper.volume == pytest.approx(
        4 * unit * hole**3 + sprue, rel=1e-6
    )
    assert plain.undercut == pytest.approx(0.0, abs=1e-12)


@pytest.mark.long
def test_sprue_and_vents_reach_the_cavity(tube):
    mould = two_part_mould(tube)
    bare = two_part_mould(tube, **BARE)
    np.testing.assert_allclose(mould.size, bare.size)
    assert len(mould.vents) >= 1
    assert mould.upper.volume < bare.upper.volume
    upper, top = to_manifold(mould.upper), mould.size[2]
    for mouth in (mould.sprue, *mould.vents):
        # Nothing of the upper half above the mouth: open to the outside.
        end = mouth + top * Z
        start = mouth + 1e-6 * Z
        assert not upper.ray_cast(start.tolist(), end.tolist())
        assert to_manifold(bare.upper).ray_cast(start.tolist(), end.tolist())
    highest = mould.cast.vertices[:, 2].max()
    assert mould.vents[:, 2].max() == pytest.approx(highest, abs=1e-3)


def test_halves_meet_at_the_plane(tube):
    mould = two_part_mould(tube, pin=0.0)
    assert mould.upper.vertices[:, 2].min() == pytest.approx(0.0, abs=1e-9)
    assert mould.lower.vertices[:, 2].max() == pytest.approx(0.0, abs=1e-9)
    # The mould's frame takes the cast back to the piece's place.
    R, p = mould.X_WM[:, :3], mould.X_WM[:, 3]
    back = mould.cast.vertices @ R.T + p
    np.testing.assert_allclose(
        back.min(axis=0), tube.skin.vertices.min(axis=0), atol=1e-9
    )


def test_a_given_direction_is_kept(bowl):
    mould = two_part_mould(bowl, parting_direction=np.array([2.0, 0.0, 0.0]))
    np.testing.assert_allclose(mould.parting.direction, [1.0, 0.0, 0.0])
    assert mould.core is not None
    assert mould.undercut >= two_part_mould(bowl).undercut


def test_a_direction_of_no_length_is_refused(bowl):
    with pytest.raises(InvalidInput, match="direction must be a direction, not zero"):
        two_part_mould(bowl, np.zeros(3))


@pytest.mark.parametrize("bad", [{"sprue": -1.0}, {"vent": np.nan}, {"pin": 0.01}])
def test_bad_sizes(bowl, bad):
    with pytest.raises(InvalidInput, match=f"mould {next(iter(bad))} must be"):
        two_part_mould(bowl, **bad)


def test_an_open_piece_is_refused():
    open_one = Surface(np.eye(3), np.array([[0, 1, 2]]))
    with pytest.raises(InvalidInput, match="not a closed surface"):
        two_part_mould(SkinPiece("open", open_one, open_one, None, ()))


@pytest.fixture(scope="module")
def robot():
    template = table1_template("beetle")
    skeleton = template.skeleton()
    grid = DistanceGrid.from_implicit(body_named("beetle", skeleton), 8e-3)
    outer, inner = grid.level_set(0.0), grid.level_set(-0.004)
    parts = to_manifold(inner).decompose()
    inner = to_surface(max(parts, key=lambda part: part.volume()))
    mesh = SimpleNamespace(
        vertices=np.zeros((0, 3)), tets=np.zeros((0, 4), int), region=np.zeros(0)
    )
    return SimpleNamespace(
        template=template,
        skeleton=skeleton,
        shell=SimpleNamespace(outer=outer, inner=inner, mesh=mesh),
        materials={0: SimpleNamespace(density=1000.0)},
    )


@pytest.mark.long
def test_fabrication_files(robot, tmp_path):
    outer, inner = robot.shell.outer, robot.shell.inner
    heard = []
    made = fabricate(robot, tmp_path / "fab", progress=lambda *news: heard.append(news))
    assert [k for _, k, _ in heard] == list(range(heard[0][2]))
    assert all(path.is_file() for path in made.paths)
    with open(tmp_path / "fab" / "skin_pieces.csv") as file:
        rows = {row["piece"]: row for row in csv.DictReader(file)}
    assert set(rows) == set(made.pieces) and len(rows) == 6
    grams = sum(float(row["silicone_g"]) for row in rows.values())
    assert grams == pytest.approx(1e6 * (outer.volume - inner.volume), abs=0.01)
    for name in ("bill_of_materials", "servo_map"):
        with open(tmp_path / "fab" / f"{name}.csv") as file:
            assert len(list(csv.DictReader(file))) >= 12
    for name, mould in made.moulds.items():
        assert int(rows[name]["mould_parts"]) == len(mould.bodies)
        assert (mould.core is None) == name.startswith("torso")
        # Upper and lower half are single bodies, all of them closed.
        for body in mould.bodies.values():
            assert len(heavy_parts(to_manifold(body))) == 1
        missing = np.prod(mould.size) - _volume(mould)
        assert 0 < missing < 0.005 * np.prod(mould.size)
    stl = meshio.read(tmp_path / "fab" / "skin" / "FL.stl")
    size = 1e3 * np.ptp(made.pieces["FL"].skin.vertices, axis=0)
    np.testing.assert_allclose(np.ptp(stl.points, axis=0), size, rtol=1e-5)
    names = {path.relative_to(tmp_path / "fab").as_posix() for path in made.paths}
    for wanted in (
        "moulds/FL_core.stl",
        "moulds/RR_upper.stl",
        "links/torso.stl",
        "servo_map.csv",
        "bill_of_materials.csv",
    ):
        assert wanted in names


def test_fabrication_refuses_before_it_writes(robot, tmp_path):
    outer, inner = robot.shell.outer, robot.shell.inner
    swapped = SimpleNamespace(outer=inner, inner=outer, mesh=robot.shell.mesh)
    bad = SimpleNamespace(**vars(robot) | {"shell": swapped})
    with pytest.raises(InvalidInput, match="not inside the outer"):
        fabricate(bad, tmp_path / "no")
    assert not (tmp_path / "no").exists()
