"""Bracing plates: inside the skin, touched by the glue, as heavy as the rings."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import trimesh
from hypothesis import given, settings
from hypothesis import strategies as st
from pydrake.geometry import Meshcat, MeshcatVisualizer, Role
from pydrake.math import RotationMatrix
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import AddMultibodyPlantSceneGraph
from pydrake.systems.framework import DiagramBuilder

import drakebots
from drakebots.core.errors import InvalidInput
from drakebots.design import (
    SkinSettings,
    design_robot,
    smooth,
    table1_problem,
    table1_template,
)
from drakebots.design.bracing import glue_distance, with_plates
from drakebots.design.bracing.glue import (
    TOUCH,
    brace_vertices,
    mean_edge,
    plate_distances,
)
from drakebots.design.bracing.plates import SWING, rings
from drakebots.design.bracing.sections import inside_of, section
from drakebots.design.fabrication.fabricate import (
    link_part,
    pilot_holes,
    write_step,
)
from drakebots.design.geometry import Surface
from drakebots.design.skeleton import (
    Plate,
    Skeleton,
    Solid,
    link_meshes,
    plate,
    write_sdf,
)
from drakebots.design.table1 import GLUE
from tests.helpers.clashes import clashes
from tests.helpers.robot_fields import coarse_beetle

SQUARE = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) / 2


@pytest.fixture(scope="module")
def design():
    return coarse_beetle()


def _sphere(radius, middle=(0.0, 0.0, 0.0), fine=4):
    ball = trimesh.creation.icosphere(fine, radius)
    return Surface(ball.vertices + np.array(middle), ball.faces.astype(np.int64))


def _winding(points, surface):
    """Of a closed surface around points (n,): 1 inside, 0 outside."""
    total = np.zeros(len(points))
    corners = surface.vertices[surface.triangles]
    for k in range(0, len(points), 200):
        a, b, c = np.moveaxis(corners - points[k : k + 200, None, None], 2, 0)
        la, lb, lc = (np.linalg.norm(v, axis=-1) for v in (a, b, c))
        over = np.einsum("nti,nti->nt", a, np.cross(b, c))
        under = la * lb * lc + lc * (a * b).sum(-1)
        under += la * (b * c).sum(-1) + lb * (c * a).sum(-1)
        total[k : k + 200] = np.arctan2(over, under).sum(axis=1) / (2 * np.pi)
    return total


def _largest_volume_outside(skeleton, inside):
    """Of any plate outside a surface [mm^3]."""
    body = inside_of(inside)
    solids = (
        one.body().translate(link.origin.tolist()).scale([1e3] * 3)
        for link, one in skeleton.solids(Plate)
    )
    return max((solid - body).volume() for solid in solids)


def _points_of(skeleton):
    """Every other vertex of all plates' outlines, on both faces (n, 3) [m]."""
    return np.concatenate(
        [k.origin + p.corners()[::2] for k, p in skeleton.solids(Plate)]
    )


def test_plate_with_a_hole_is_the_hollow_box():
    """Mass, inertia and distance in closed form, turned and off its frame."""
    R = _turned()
    outer, inner = SQUARE * [0.2, 0.1], SQUARE[::-1] * [0.06, 0.04]
    one = plate("p", (outer, inner), 0.006, np.array([0.1, 0.2, 0.3]), R, 1150.0)
    box = Solid(
        "s", "rib", np.array([0.2, 0.1, 0.006]), one.p_BG, R, one.mass,
        np.array([0.06, 0.04, 1.0]),
    )  # fmt: skip
    assert one.volume == pytest.approx(box.volume)
    assert one.mass == pytest.approx(1150 * box.volume)
    np.testing.assert_allclose(one.inertia, box.inertia, rtol=1e-12)
    p_G = np.array([[0, 0, 0], [0.11, 0, 0.003], [0.11, 0.05, 0.013], [0.05, 0, 0]])
    away = one.distance(one.p_BG + p_G @ R.T)
    np.testing.assert_allclose(away, [0.02, 0.01, np.hypot(0.01, 0.01), 0], atol=1e-12)


def _turned():
    return RotationMatrix(
        np.array([[0.36, 0.48, -0.8], [-0.8, 0.6, 0.0], [0.48, 0.64, 0.6]])
    ).matrix()


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.floats(0.02, 0.1), min_size=3, max_size=12),
    st.floats(1e-3, 2e-2),
    st.integers(0, 10),
)
def test_mass_and_inertia_are_those_of_the_mesh(radii, thickness, turn):
    """Star-shaped sections about any point, against trimesh's integrals."""
    angle = np.linspace(0, 2 * np.pi, len(radii), endpoint=False) + turn
    section_C = np.array(radii)[:, None] * np.column_stack(
        [np.cos(angle), np.sin(angle)]
    )
    p = np.array([0.3, -0.1, 0.2])
    one = plate("p", (section_C + 0.05,), thickness, p, _turned(), 1150.0)
    surface = one.surface()
    mesh = trimesh.Trimesh(surface.vertices, surface.triangles, process=False)
    mesh.density = 1150.0
    assert mesh.is_watertight
    assert one.mass == pytest.approx(mesh.mass, rel=1e-5)
    np.testing.assert_allclose(one.p_BG, mesh.center_mass, atol=1e-7)
    inertia = mesh.moment_inertia
    np.testing.assert_allclose(one.inertia, inertia, atol=2e-5 * inertia.max())


def test_section_of_a_ball_is_that_of_its_narrow_face():
    """Over a thickness t a ball of radius R holds a disc of sqrt(R^2 - t^2/4)."""
    R, t, errors = 0.05, 0.02, []
    for fine in (3, 4, 5):
        area = section(inside_of(_sphere(R, fine=fine)), t).area() * 1e-6
        errors.append(np.pi * (R**2 - t**2 / 4) - area)
    assert all(error > 0 for error in errors)
    assert errors[0] > 3 * errors[1] > 9 * errors[2]
    assert errors[2] < 1e-3 * np.pi * R**2


@pytest.mark.long
def test_nothing_of_a_plate_is_outside_of_the_skins_inside(design):
    skeleton, inside = design.skeleton, design.shell.inner
    points = _points_of(skeleton)
    assert len(points) > 1000
    np.testing.assert_allclose(_winding(points, inside), 1.0, atol=1e-6)
    assert _largest_volume_outside(skeleton, inside) == 0.0


@pytest.mark.long
def test_rings_of_the_template_do_stick_out(design):
    """What the plates mend: the check above fails on the rings' boxes."""
    template = design.template.skeleton()
    points, _ = template.corners(["rib"])
    assert (_winding(points, design.shell.inner) < 0.5).sum() > 10


@pytest.mark.long
def test_every_ring_became_a_plate(design):
    template = design.template.skeleton()
    for link in template.links:
        new = design.skeleton.link(link.name)
        mine = [p.name for k, p in design.skeleton.solids(Plate) if k.name == link.name]
        assert mine == [ring.name for ring in rings(link)]
        assert rings(new) == ()
    build = design.template.build
    for _, one in design.skeleton.solids(Plate):
        assert one.thickness == pytest.approx(build.rib)
        assert one.mass == pytest.approx(build.density * one.volume)


@pytest.mark.long
def test_rims_follow_the_skin(design):
    """A limb's plates reach all round the skin, the torso's most of the way."""
    inside = trimesh.Trimesh(design.shell.inner.vertices, design.shell.inner.triangles)
    for link, one in design.skeleton.solids(Plate):
        rim = max(one.contours, key=lambda c: np.ptp(c, axis=0).sum())
        middle = np.column_stack([rim, np.zeros(len(rim))])
        p_W = link.origin + one.p_BG + middle @ one.R_BG.T
        away = trimesh.proximity.closest_point_naive(inside, p_W)[1]
        least = 0.1e-3 if link.parent else 0.0
        assert away.min() > least
        # Flat plates of some thickness in a tapering limb: the wider face is off.
        assert np.median(away) < 0.5 * one.thickness


@pytest.mark.long
def test_glue_touches_the_plates(design):
    vertices = design.shell.mesh.vertices
    touch = TOUCH * mean_edge(design.shell.inner)
    assert sum(map(len, design.glue.values())) == GLUE["beetle"]
    assert 0 < glue_distance(design.skeleton, vertices, design.glue) <= touch
    for name, ids in design.glue.items():
        mine = plate_distances(vertices[ids], design.skeleton.link(name))
        assert (mine <= touch).all()
        for other in design.skeleton.links:
            if other.name != name and not other.name.endswith("_foot"):
                away = plate_distances(vertices[ids], other)
                assert (mine <= away + 1e-12).all() or name.endswith("_foot")
    assert design.report()["glue_to_plate_m"] <= touch


@pytest.mark.long
def test_distance_is_that_of_the_mesh(design):
    """Distances to plates by hand: a vertex against all triangles of the meshes."""
    vertices = design.shell.mesh.vertices
    for name in ("torso", "FL_lower"):
        link = design.skeleton.link(name)
        ids = design.glue[name][:6]
        best = np.full(len(ids), np.inf)
        for k, one in design.skeleton.solids(Plate):
            if k.name == name:
                s = one.surface()
                mesh = trimesh.Trimesh(s.vertices, s.triangles, process=False)
                p_B = vertices[ids] - link.origin
                away = trimesh.proximity.closest_point_naive(mesh, p_B)[1]
                best = np.minimum(best, away)
        np.testing.assert_allclose(
            plate_distances(vertices[ids], link), best, atol=1e-7
        )


@pytest.mark.long
def test_nothing_clashes_at_rest_nor_within_the_swing(design):
    """Plates keep clear of the neighbours' parts as each joint turns."""
    skeleton = design.skeleton
    assert clashes(skeleton) == []
    for joint in ("FL_shoulder", "FL_knee", "FL_ankle"):
        for angle in (-SWING, -SWING / 2, SWING / 2, SWING):
            moved = _pair(skeleton, joint, angle)
            found = [c for c in clashes(moved) if ("rib_" in c.A) != ("rib_" in c.B)]
            assert found == []


def _pair(skeleton, joint, angle):
    """The two links of a hinge, the child turned."""
    hinge = next(h for h in skeleton.hinges if h.name == joint)
    parent, child = skeleton.link(hinge.parent), skeleton.link(hinge.child)
    k = np.cross(np.eye(3), -hinge.axis)
    R = np.eye(3) + np.sin(angle) * k + (1 - np.cos(angle)) * k @ k
    solids = tuple(replace(s, p_BG=R @ s.p_BG, R_BG=R @ s.R_BG) for s in child.solids)
    return Skeleton("pair", (parent, replace(child, solids=solids)), (), ())


@pytest.mark.long
def test_printed_parts_are_whole_and_weigh_what_the_model_says(design):
    build = design.template.build
    for name in ("torso", "FL_upper", "RR_lower"):
        link = design.skeleton.link(name)
        part = link_part(link, build)
        mass = link.mass_of("shell") + link.mass_of("rib")
        assert part.volume * build.density == pytest.approx(mass, rel=0.03)
        bays = sum(s.name.endswith("_bay") for s in link.solids)
        assert len(pilot_holes(link, build)) == 4 * bays


@pytest.mark.long
@pytest.mark.parametrize("name", ["FL_lower", "FL_foot"])
def test_step_file_of_a_plated_link_and_of_a_trimmed_foot(design, tmp_path, name):
    cadquery = pytest.importorskip("cadquery")
    link = design.skeleton.link(name)
    leg = Skeleton("leg", (link,), (), ())
    (path,) = write_step(leg, design.template.build, tmp_path)
    shape = cadquery.importers.importStep(str(path)).val()
    part = link_part(link, design.template.build)
    assert 1e-9 * shape.Volume() == pytest.approx(part.volume, rel=5e-3)


@pytest.mark.long
def test_the_same_again(design):
    template = design.template
    args = template.skeleton(), design.shell.inner
    first, second = (with_plates(*args, gap=template.build.gap) for _ in range(2))
    assert link_meshes(first.skeleton) == link_meshes(second.skeleton)
    written = link_meshes(design.skeleton).items()
    plated = {name: text for name, text in written if name.endswith("_plates.obj")}
    assert link_meshes(first.skeleton) == plated
    assert first.notes == second.notes
    assert min(first.share.values()) > 0.3 and max(first.share.values()) == 1


@pytest.mark.long
def test_drake_loads_and_shows_the_plates(design, tmp_path):
    path = write_sdf(design.skeleton, tmp_path)
    builder = DiagramBuilder()
    plant, scene_graph = AddMultibodyPlantSceneGraph(builder, 1e-3)
    (model,) = Parser(plant).AddModels(str(path))
    plant.Finalize()
    meshcat = Meshcat()
    MeshcatVisualizer.AddToBuilder(builder, scene_graph, meshcat)
    diagram = builder.Build()
    context = diagram.CreateDefaultContext()
    diagram.ForcedPublish(context)
    inspector = scene_graph.model_inspector()
    wanted = {link.name for link, _ in design.skeleton.solids(Plate)}
    assert len(wanted) == 9
    shown = set()
    for link in design.skeleton.links:
        body = plant.GetBodyByName(link.name, model)
        M = body.CalcSpatialInertiaInBodyFrame(plant.GetMyContextFromRoot(context))
        about = M.Shift(M.get_com()).CalcRotationalInertia().CopyToFullMatrix3()
        assert M.get_mass() == pytest.approx(link.mass)
        np.testing.assert_allclose(about, link.inertia, rtol=1e-6, atol=1e-12)
        for g in plant.GetVisualGeometriesForBody(body):
            if inspector.GetName(g).endswith("plates"):
                shown.add(link.name)
                box = inspector.GetShape(g)
                assert "meshes/" in str(box.source().path())
                frame = f"/drake/visualizer/beetle/{link.name}/beetle/plates"
                assert meshcat.HasPath(frame)
    assert shown == wanted
    assert inspector.NumGeometriesWithRole(Role.kProximity) > 0
    assert len(drakebots.load(str(path)).feet) == 20


@cache
def _one_leg():
    """A shin of the template with its two rings, alone."""
    link = table1_template("beetle").skeleton().link("FL_lower")
    return Skeleton("shin", (replace(link, parent=None),), (), ())


def test_a_shin_in_a_ball():
    """Both plates of a lone link: discs of the ball's section, less their holes."""
    skeleton = _one_leg()
    link = skeleton.links[0]
    middle, R = (link.p_WA + link.p_WB) / 2, 0.045
    made = with_plates(skeleton, _sphere(R, middle, fine=5)).skeleton
    for ring, (_, one) in zip(rings(link), made.solids(Plate)):
        away = abs((link.origin + ring.p_BC - middle) @ ring.R_BC[:, 2])
        radius = np.sqrt(R**2 - (away + one.thickness / 2) ** 2)
        rim = max(one.contours, key=lambda c: np.ptp(c, axis=0).sum())
        p_W = link.origin + one.p_BG + rim @ one.R_BG[:, :2].T
        across = (p_W - middle) - np.outer(
            (p_W - middle) @ ring.R_BC[:, 2], ring.R_BC[:, 2]
        )
        # Clearance and chords.
        np.testing.assert_allclose(np.linalg.norm(across, axis=1), radius, atol=6e-4)


def test_a_ring_without_room_is_named():
    skeleton = _one_leg()
    link = skeleton.links[0]
    with pytest.raises(InvalidInput, match=r"ring FL_lower/rib_0 at .* no room"):
        with_plates(skeleton, _sphere(0.01, link.p_WA))


@pytest.mark.long
def test_bad_input(design):
    skeleton, inside = _one_leg(), _sphere(0.07)
    inverted = Surface(inside.vertices, inside.triangles[:, ::-1])
    with pytest.raises(InvalidInput, match="turn its triangles outward"):
        with_plates(skeleton, inverted)
    few = design.shell.mesh.vertices[:40]
    with pytest.raises(InvalidInput, match=r"touch larger than"):
        brace_vertices(few, design.skeleton, SkinSettings(), touch=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["monster", "lizard", "cow"])
def test_the_other_robots(name):
    design = design_robot(smooth(table1_problem(name, vertices=6000)))
    inside, skeleton = design.shell.inner, design.skeleton
    assert _largest_volume_outside(skeleton, inside) == 0.0
    np.testing.assert_allclose(_winding(_points_of(skeleton), inside), 1.0, atol=1e-6)
    touch = TOUCH * mean_edge(inside)
    assert sum(map(len, design.glue.values())) == GLUE[name]
    assert glue_distance(skeleton, design.shell.mesh.vertices, design.glue) <= touch
    assert clashes(skeleton) == []
    for link in skeleton.links:
        link_part(link, design.template.build)
