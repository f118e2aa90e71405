"""What passes the skin is measured as it is, and trimmed as far as servos allow."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import trimesh

from drakebots.design.bracing import through_skin, trim_to_skin, with_plates
from drakebots.design.bracing.sections import inside_of
from drakebots.design.bracing.trim import _MOUTH, SAMPLE, WALL, _kept
from drakebots.design.fabrication.fabricate import link_part, pilot_holes
from drakebots.design.geometry import Surface, distances
from drakebots.design.skeleton import (
    Build,
    Link,
    Skeleton,
    Solid,
    Trimmed,
    link_meshes,
    motor,
    plate,
    trimmed,
)
from tests.helpers.robot_fields import coarse_beetle

MM = 1e-3
X, Y, Z = np.eye(3)
BUILD = Build()


@pytest.fixture(scope="module")
def design():
    return coarse_beetle()


def _surface(mesh):
    return Surface(np.array(mesh.vertices), np.array(mesh.faces, dtype=np.int64))


def _ball(radius, middle=(0.0, 0.0, 0.0), fine=4):
    ball = trimesh.creation.icosphere(fine, radius)
    ball.apply_translation(middle)
    return _surface(ball)


def _room(size, middle=(0.0, 0.0, 0.0)):
    box = trimesh.creation.box(size)
    box.apply_translation(middle)
    return _surface(box)


def _mm(body):
    """A solid in millimetres, in which cuts are exact."""
    return body.scale([1e3] * 3)


def _alone(*solids, origin=(0.0, 0.0, 0.0), name="arm"):
    """A skeleton of one link, whose origin is anywhere."""
    A = np.array(origin)
    link = Link(name, None, A, A + 0.1 * Z, solids, p_WO=A)
    return Skeleton("one", (link,), (), ())


def _box(size, p, kind="shell", name="box"):
    size = np.array(size)
    mass = 1150.0 * float(np.prod(size))
    return Solid(name, kind, size, np.array(p), np.eye(3), mass, np.zeros(3))


def _bay(R=60.0, **change):
    """A motor bay around the middle of its servo, turned, in a ball of R mm."""
    axis = np.array([0.36, 0.48, -0.8])
    build = replace(BUILD, **change)
    bay, servo = motor(build, "knee", np.zeros(3), axis, np.array([0.8, -0.6, 0.0]))
    skeleton = _alone(bay, servo, origin=(0.2, 0.1, 0.3))
    return skeleton, _ball(R * MM, skeleton.links[0].origin + bay.p_BG, fine=6)


def test_box_through_a_wall_is_measured_in_closed_form():
    """A cube of 20 mm, 3 mm beyond the inside and 1 mm beyond the outside."""
    p_WO = np.array([0.2, -0.1, 0.3])
    inside = _room([0.1, 0.1, 0.1], p_WO - 0.05 * X)
    outside = _room([0.104, 0.104, 0.104], p_WO - 0.05 * X)
    cube = _box([0.02] * 3, [-0.007, 0.0, 0.0])
    clear = _box([0.02] * 3, [-0.06, 0.0, 0.0], name="clear")
    (row,) = through_skin(_alone(cube, clear, origin=p_WO), inside, outside)
    assert (row.link, row.solid, row.kind) == ("arm", "box", "shell")
    assert row.inner.depth == pytest.approx(3 * MM)
    assert row.inner.volume == pytest.approx(3 * 400 * MM**3)
    assert row.outer.depth == pytest.approx(1 * MM)
    assert row.outer.volume == pytest.approx(400 * MM**3)
    assert row.figures()["part"] == "arm/box"


def test_deepest_point_may_lie_within_a_face():
    """A rod across a notch of the skin is deepest in the middle of the notch."""
    room = trimesh.creation.box([0.2, 0.2, 0.2])
    notch = trimesh.creation.cylinder(0.02, 0.4)
    inside = trimesh.boolean.difference([room, notch], engine="manifold")
    rod = _box([0.1, 0.004, 0.004], [0.0, 0.0, 0.0])
    (row,) = through_skin(_alone(rod), _surface(inside), _room([0.3] * 3))
    # Its vertices are within 1 mm of the skin; sampled, it is found within SAMPLE.
    assert 0.02 - SAMPLE < row.inner.depth <= 0.02
    assert row.outer.volume == row.outer.depth == 0


def test_distances_are_trimeshs():
    ball = _ball(0.05, fine=3)
    points = np.random.default_rng(1).uniform(-0.1, 0.1, (200, 3))
    mesh = trimesh.Trimesh(ball.vertices, ball.triangles)
    expected = trimesh.proximity.closest_point_naive(mesh, points)[1]
    np.testing.assert_allclose(distances(ball, points), expected, atol=1e-12)


def test_mass_and_inertia_are_those_of_what_is_left():
    """A box cut to a slice is the box of that slice; a ball's are trimesh's."""
    whole = _box([0.04, 0.03, 0.02], [0.1, 0.2, 0.3])
    left = trimmed(whole, _room([0.03, 0.03, 0.02], [0.095, 0.2, 0.3]))
    slice_ = _box([0.03, 0.03, 0.02], [0.095, 0.2, 0.3])
    assert left.mass == pytest.approx(slice_.mass)
    np.testing.assert_allclose(left.p_BGcm, slice_.p_BG)
    np.testing.assert_allclose(left.inertia, slice_.inertia, rtol=1e-9, atol=1e-18)
    ball = _ball(0.01, (0.11, 0.2, 0.3), fine=3)
    round_ = trimmed(whole, ball)
    mesh = trimesh.Trimesh(ball.vertices, ball.triangles)
    mesh.density = 1150.0
    inertia = mesh.moment_inertia
    np.testing.assert_allclose(round_.inertia, inertia, atol=1e-9 * inertia.max())
    link = _alone(round_, slice_).links[0]
    both = mesh.mass * mesh.center_mass + slice_.mass * slice_.p_BG
    np.testing.assert_allclose(link.com, both / link.mass)


@pytest.mark.long
def test_bay_is_trimmed_and_its_servo_and_screws_keep_a_wall():
    skeleton, ball = _bay(33.0)
    (row,) = through_skin(skeleton, ball, _ball(1.0))
    assert row.solid == "knee_bay" and row.inner.depth > 2 * MM
    done = trim_to_skin(skeleton, ball, BUILD)
    assert through_skin(done, ball, _ball(1.0)) == ()
    before, after = skeleton.links[0].solids[0], done.links[0].solids[0]
    assert done.links[0].solids[1] is skeleton.links[0].solids[1]
    # What goes is what was outside, and a gap of 0.3 mm; nothing within what stays.
    gone = _mm(before.body()) - _mm(after.body())
    assert gone.volume() == pytest.approx(1e9 * (before.volume - after.volume))
    stays = _mm(_kept(skeleton.links[0], before, BUILD))
    assert (gone ^ stays).volume() < 1e-3
    assert 1 < gone.volume() / (1e9 * row.inner.volume) < 2
    assert after.mass == pytest.approx(BUILD.density * after.volume)
    link_part(done.links[0], BUILD)  # it is whole
    assert len(pilot_holes(done.links[0], BUILD)) == 4


def test_what_stays_is_a_wall_around_servo_and_screws():
    skeleton, _ = _bay()
    bay, servo = skeleton.links[0].solids
    stays = _kept(skeleton.links[0], bay, BUILD)
    points = bay.p_BG + _directions(500) @ bay.R_BG.T
    for p in points:
        # From the servo's side outward: WALL beyond its hole, which has a clearance.
        inside = servo.size / 2 + BUILD.clearance
        at = (p - bay.p_BG) @ bay.R_BG
        away = np.linalg.norm(np.maximum(np.abs(at[:2]) - inside[:2], 0))
        if away < WALL and abs(at[2]) < bay.size[2] / 2:
            assert stays.ray_cast(p.tolist(), (p + 1.0).tolist()).__len__() % 2 == 1


def _directions(count):
    random = np.random.default_rng(3)
    return random.uniform(-0.03, 0.03, (count, 3))


@pytest.mark.long
def test_servo_that_does_not_fit_is_named_and_its_wall_kept():
    """In a ball too small for the servo itself, as far in as it may be trimmed."""
    skeleton, ball = _bay(29.0)
    done = trim_to_skin(skeleton, ball, BUILD)
    rows = {row.solid: row for row in through_skin(done, ball, _ball(1.0))}
    servo = skeleton.links[0].solids[1]
    corner = np.linalg.norm(servo.size / 2)
    assert rows["knee_servo"].inner.depth == pytest.approx(corner - 29 * MM, abs=2e-5)
    hole = np.append(servo.size[:2] / 2 + BUILD.clearance + WALL, servo.size[2] / 2)
    # The pilot holes' walls reach farther: at x, y of the screws, off the bay's ends.
    screws = np.array(BUILD.servo.screws) / 2
    round_ = np.linalg.norm(screws) + BUILD.pilot_hole / 2 + WALL
    pilot = np.hypot(round_, servo.size[2] / 2 - _MOUTH)
    deepest = max(np.linalg.norm(hole), pilot) - 29 * MM
    assert rows["knee_bay"].inner.depth == pytest.approx(deepest, abs=5e-5)


def test_parts_that_fit_or_would_be_lost_stay():
    inside = _room([0.1, 0.1, 0.1])
    fits = _box([0.02] * 3, [0.039, 0.0, 0.0], name="fits")
    half = _box([0.02] * 3, [0.0, 0.05, 0.0], name="half")
    motor_ = _box([0.02] * 3, [0.0, 0.0, 0.045], kind="servo", name="servo")
    outline = 0.01 * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    brace = plate("rib", (outline,), 0.01, np.array([0, 0, -0.05]), np.eye(3), 1.0)
    skeleton = _alone(fits, half, motor_, brace)
    assert trim_to_skin(skeleton, inside, BUILD).links[0].solids == (
        fits, half, motor_, brace,
    )  # fmt: skip
    rows = {
        row.solid: row.inner.depth for row in through_skin(skeleton, inside, inside)
    }
    assert rows == pytest.approx({"half": 0.01, "servo": 0.005, "rib": 0.005})


@pytest.mark.long
def test_nothing_of_a_design_passes_the_skin_but_what_it_says(design):
    """Boxes of the template do, deeper: the check is not empty."""
    shell, build = design.shell, design.template.build
    surfaces = shell.inner, shell.outer
    braced = with_plates(design.template.skeleton(), shell.inner, gap=build.gap)
    before = {
        f"{r.link}/{r.solid}": r for r in through_skin(braced.skeleton, *surfaces)
    }
    after = design.report()["through_skin"]
    assert sum("plate" in name for name in before) == 4
    assert sum("bay" in name for name in before) >= 2
    assert sum(row["inner_volume_m3"] for row in after) < 0.1 * sum(
        row.inner.volume for row in before.values()
    )
    body = inside_of(shell.inner)
    for row in after:
        name, _, part = row["part"].partition("/")
        link = design.skeleton.link(name)
        solid = next(s for s in link.solids if s.name == part)
        assert row["inner_depth_m"] <= before[row["part"]].inner.depth
        assert row["outer_volume_m3"] == 0
        named = any(row["part"] in note for note in design.notes)
        assert named == (row["inner_depth_m"] > 5e-5)
        if solid.kind == "servo":
            continue
        # Nothing but the walls around servo and screws.
        out = _mm(solid.body().translate(link.origin.tolist())) - body
        stays = _mm(_kept(link, solid, build).translate(link.origin.tolist()))
        assert (out - stays).volume() < 1e-2


@pytest.mark.long
def test_masses_parts_and_pictures_of_a_design_are_of_what_is_left(design):
    build = design.template.build
    meshes = link_meshes(design.skeleton)
    seen = 0
    for link in design.skeleton.links:
        mine = [s for s in link.solids if isinstance(s, Trimmed)]
        seen += len(mine)
        if not mine:
            assert f"meshes/{link.name}_trimmed.obj" not in meshes
            continue
        mesh = trimesh.load(
            trimesh.util.wrap_as_stream(meshes[f"meshes/{link.name}_trimmed.obj"]),
            file_type="obj",
        )
        assert mesh.volume == pytest.approx(sum(s.volume for s in mine), rel=1e-3)
        part = link_part(link, build)
        mass = link.mass_of("shell") + link.mass_of("rib")
        assert part.volume * build.density == pytest.approx(mass, rel=0.03)
    assert seen == design.report()["trimmed_parts"] >= 6
    feet = [design.skeleton.link(s.link) for s in design.skeleton.soles]
    for foot in feet:
        whole = design.template.skeleton().link(foot.name)
        assert 0 < whole.mass - foot.mass < 2e-3
