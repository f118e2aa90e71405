"""Printed parts, pilot holes, lists."""

from dataclasses import replace

import meshio
import numpy as np
import pytest

from drakebots.core.errors import InvalidInput
from drakebots.design import table1_template
from drakebots.design.fabrication import servo_map
from drakebots.design.fabrication.fabricate import (
    bill_of_materials,
    link_part,
    pilot_holes,
    write_step,
)
from drakebots.design.geometry import write_surface
from drakebots.design.skeleton import Skeleton, edit
from drakebots.design.skeleton.parameters import MG995R

ROBOTS = ("beetle", "monster", "lizard", "cow")


@pytest.fixture(scope="module", params=ROBOTS)
def printed(request):
    template = table1_template(request.param)
    skeleton = template.skeleton()
    made = [link_part(link, template.build) for link in skeleton.links]
    return template, skeleton, made


def _mesh_volume(vertices, triangles):
    a, b, c = (vertices[triangles[:, k]] for k in range(3))
    return np.einsum("ni,ni->n", a, np.cross(b, c)).sum() / 6


def test_parts_are_closed_and_weigh_what_the_model_says(printed):
    template, skeleton, made = printed
    assert len(made) == len(skeleton.links)
    for part, link in zip(made, skeleton.links):
        x, f = part.vertices, part.triangles
        edges = np.concatenate([f[:, [i, (i + 1) % 3]] for i in range(3)])
        key = edges[:, 0] * len(x) + edges[:, 1]
        back = edges[:, 1] * len(x) + edges[:, 0]
        assert np.array_equal(np.sort(key), np.sort(back))
        volume = _mesh_volume(x, f)
        assert volume == pytest.approx(part.volume, rel=1e-9)
        mass = link.mass_of("shell") + link.mass_of("rib")
        # Boxes that overlap and the holes: a few per cent.
        assert volume * template.build.density == pytest.approx(mass, rel=0.04)


def test_four_pilot_holes_a_motor(printed):
    template, skeleton, _ = printed
    holes = [pilot_holes(link, template.build) for link in skeleton.links]
    assert sum(map(len, holes)) == 4 * len(skeleton.hinges)


def _hole_diameters(link, build):
    """Of the pilot holes, from the mesh's vertices beside their axes."""
    part, found = link_part(link, build), []
    for hole in pilot_holes(link, build):
        r = part.vertices - hole.p_BH
        along = r @ hole.axis
        radius = np.linalg.norm(r - np.outer(along, hole.axis), axis=1)
        near = radius < 0.75 * hole.diameter
        assert near.sum() >= 24
        found.append(2 * radius[near].max())
    return np.array(found)


@pytest.mark.parametrize("upper, wall", [(0.098, 0.003), (0.15, 0.0035), (0.2, 0.004)])
def test_pilot_holes_keep_their_size_when_a_link_grows(upper, wall):
    changes = {"front.upper": upper, "hind.upper": upper, "build.wall": wall}
    template = edit(table1_template("beetle"), changes)
    link = template.skeleton().link("FL_upper")
    found = _hole_diameters(link, template.build)
    np.testing.assert_allclose(found, 0.0025, atol=2e-6)
    part = link_part(link, template.build)
    assert np.ptp(part.vertices[:, 2]) > 0.7 * upper


def test_a_larger_servo_makes_a_larger_bay():
    template = table1_template("beetle")
    size, screws = (0.05, 0.02, 0.038), (0.0587, 0.01)
    longer = replace(MG995R, name="long", size=size, screws=screws)
    new = edit(template, {"build.servo": longer, "front.upper": 0.12})
    old, big = (
        next(s for s in t.skeleton().link("FL_upper").solids if s.name.endswith("bay"))
        for t in (template, new)
    )
    assert big.size[0] - old.size[0] == pytest.approx(0.0092)
    found = _hole_diameters(new.skeleton().link("FL_upper"), new.build)
    np.testing.assert_allclose(found, 0.0025, atol=2e-6)


def test_screws_are_in_the_end_walls():
    template = table1_template("cow")
    link = template.skeleton().link("FL_upper")
    bay = next(s for s in link.solids if s.name.endswith("bay"))
    for hole in pilot_holes(link, template.build):
        x = np.abs(bay.R_BG.T @ (hole.p_BH - bay.p_BG))[0]
        half = hole.diameter / 2
        assert bay.hole[0] / 2 + half < x < bay.size[0] / 2 - half


def test_stl_files(tmp_path):
    template = table1_template("beetle")
    skeleton = template.skeleton()
    path, part = tmp_path / "x.stl", link_part(skeleton.links[1], template.build)
    write_surface(path, part, "mm")
    mesh = meshio.read(path)
    size = 1e3 * np.ptp(part.vertices, axis=0)
    np.testing.assert_allclose(np.ptp(mesh.points, axis=0), size, atol=1e-3)
    before = path.read_bytes()
    write_surface(path, link_part(skeleton.links[1], template.build), "mm")
    assert path.read_bytes() == before


def test_loose_part_is_refused():
    template = edit(
        table1_template("beetle"),
        {"torso.struts": (("neck", (0.2, 0.0, 0.3), (0.3, 0.0, 0.3)),)},
    )
    with pytest.raises(InvalidInput, match="torso: loose pieces"):
        link_part(template.skeleton().links[0], template.build)


def test_step_files(tmp_path):
    cadquery = pytest.importorskip("cadquery")
    template = table1_template("beetle")
    skeleton = template.skeleton()
    leg = Skeleton("leg", skeleton.links[1:2], (), ())
    (path,) = write_step(leg, template.build, tmp_path)
    shape = cadquery.importers.importStep(str(path)).val()
    part = link_part(leg.links[0], template.build)
    assert shape.isValid()
    # Round holes against polygons of 24 sides.
    assert 1e-9 * shape.Volume() == pytest.approx(part.volume, rel=5e-3)


def test_bill_of_materials_adds_up(printed):
    template, skeleton, _ = printed
    rows = bill_of_materials(skeleton, template.build)
    mass = sum(row["count"] * row["mass_each_kg"] for row in rows)
    assert mass == pytest.approx(skeleton.mass, abs=1e-4)
    servos = [row for row in rows if row["kind"] == "servo"]
    assert sum(row["count"] for row in servos) == len(skeleton.hinges)


def test_servo_map(printed):
    template, skeleton, _ = printed
    rows = servo_map(skeleton)
    assert [row["joint"] for row in rows] == [h.name for h in skeleton.hinges]
    assert len({row["channel"] for row in rows}) == len(rows) <= 32
    travel = np.degrees(template.build.servo.travel)
    for row in rows:
        assert row["zero_deg"] + row["lower_deg"] >= 0
        assert row["zero_deg"] + row["upper_deg"] <= travel + 1e-9


def test_shafts_point_out_of_the_robot():
    skeleton = table1_template("lizard").skeleton()
    direction = {row["joint"]: row["direction"] for row in servo_map(skeleton)}
    assert direction["FL_knee"] == -direction["FR_knee"] == 1
    assert direction["FL_abduction"] == direction["FR_abduction"] == 1
    assert direction["RL_abduction"] == direction["RR_abduction"] == -1
    assert direction["tail_yaw"] == 1


def test_servo_map_refuses_too_many_joints():
    skeleton = table1_template("lizard").skeleton()
    twice = Skeleton("twice", skeleton.links, 2 * skeleton.hinges, skeleton.soles)
    with pytest.raises(InvalidInput, match="34 joints"):
        servo_map(twice)


def test_servo_map_refuses_limits_beyond_the_travel():
    template = table1_template("beetle")
    short = replace(template.build.servo, travel=1.0)
    skeleton = edit(template, {"build.servo": short}).skeleton()
    with pytest.raises(InvalidInput, match="limits exceed the travel"):
        servo_map(skeleton)
