"""The four robots in models/ against the paper's Table 1, and that they stand."""

from __future__ import annotations

import manifold3d as m
import numpy as np
import pytest
import trimesh
from pydrake.geometry import Box
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import AddMultibodyPlantSceneGraph
from pydrake.multibody.tree import BodyIndex
from pydrake.systems.framework import DiagramBuilder

from drakebots.design import JOINTS, design_robot, table1_problem
from drakebots.design.bracing.sections import inside_of
from drakebots.design.geometry import Surface, distances, to_manifold
from drakebots.design.table1 import GLUE, MASSES, SIZES, VERTICES, WEIGHTS
from drakebots.fem.material import SILICONE
from drakebots.fem.mesh import tet_quality
from drakebots.model import bodies_of, package_root
from drakebots.skin import SkinSimulation, simulate_skinned
from drakebots.skin.file import load_skinned
from tests.helpers.wall_surfaces import wall_surfaces

NAMES = tuple(JOINTS)


@pytest.fixture(scope="module", params=NAMES)
def robot(request):
    return load_skinned(request.param)


def test_numbers_of_table_1(robot):
    name, report = robot.model.name, robot.report()
    assert report["joints"] == JOINTS[name]
    assert report["skin_vertices"] == pytest.approx(VERTICES[name], rel=0.05)
    assert report["glue_vertices"] == pytest.approx(GLUE[name], rel=0.05)
    np.testing.assert_allclose(report["size_m"], SIZES[name], rtol=0.05)


def test_tets_are_good_and_the_skin_stands_on_the_ground(robot):
    mesh = robot.mesh
    assert mesh.volumes.min() > 0
    assert tet_quality(mesh.vertices, mesh.tets).min() >= 0.1
    assert mesh.vertices[:, 2].min() == pytest.approx(0.0, abs=1e-3)


def test_masses_come_of_one_silicone(robot):
    """Nothing is fitted to Table 1 but the plates, to the beetle's skeleton."""
    volume = robot.mesh.volumes.sum()
    assert robot.skin.material == SILICONE
    assert robot.skin_mass == pytest.approx(volume * 1070)
    name, report = robot.model.name, robot.report()
    assert report["mass_kg"] == pytest.approx(WEIGHTS[name], rel=0.4)
    if name == "beetle":
        assert report["skeleton_mass_kg"] == pytest.approx(MASSES[name][0], rel=0.03)


def test_patches_lie_under_the_feet(robot):
    plant, context = robot.plant, robot.context
    assert len(robot.skin.patches) == 4
    for patch in robot.skin.patches:
        frame = plant.GetFrameByName(patch.body)
        p = plant.CalcPointsPositions(
            context, frame, patch.p_BC.T.copy(), plant.world_frame()
        )
        np.testing.assert_allclose(p[2], 0.0, atol=1e-6)
        assert p.shape[1] == 5


def test_glue_is_where_the_skin_lies(robot):
    """At rest the links hold the glue just where the mesh has it."""
    state = robot.stepper(5e-3).start()
    away = state.skin.positions - robot.fem.rest
    assert np.abs(away).max() < 1e-6


@pytest.mark.slow
def test_the_model_is_what_the_design_gives_today(robot):
    """Skin, glue and masses of the stored robot are those of its design, made anew."""
    design = design_robot(table1_problem(robot.model.name))
    mesh, stored = design.shell.mesh, robot.mesh
    np.testing.assert_array_equal(mesh.tets, stored.tets)
    np.testing.assert_allclose(mesh.vertices, stored.vertices, atol=1e-9)
    for link, ids in design.glue.items():
        assert set(ids) == set(robot.skin.glue[link])
    masses = {link.name: link.mass for link in design.skeleton.links}
    for body in bodies_of(robot.plant)[1:]:
        assert body.default_mass() == pytest.approx(masses[body.name()], rel=1e-6)


@pytest.mark.long
def test_what_is_drawn_of_the_links_lies_within_the_skin(robot):
    """All of it: bays, foot plates and boxes are trimmed to it."""
    inner, _ = wall_surfaces(robot.mesh)
    body = inside_of(inner)
    through = {}
    for name, solid in _drawn(robot):
        out = solid - body
        if out.volume() > 1e-3:
            points = out.refine_to_length(1.5).to_mesh64().vert_properties
            through[name] = distances(inner, points[:, :3] / 1e3).max()
    assert max(through.values(), default=0.0) < 5e-5


def _drawn(robot):
    """Names and solids [mm] of the visual geometry of all links, at rest."""
    plant, context = robot.plant, robot.context
    inspector = plant.get_geometry_query_input_port().Eval(context).inspector()
    for index in map(BodyIndex, range(1, plant.num_bodies())):
        link = plant.get_body(index)
        X_WB = plant.EvalBodyPoseInWorld(context, link)
        for geometry in plant.GetVisualGeometriesForBody(link):
            shape = inspector.GetShape(geometry)
            if isinstance(shape, Box):
                solid = m.Manifold.cube(shape.size().tolist(), True)
            else:
                mesh = trimesh.load(shape.source().path(), process=False)
                solid = to_manifold(Surface(mesh.vertices, mesh.faces))
            X_WG = X_WB.multiply(inspector.GetPoseInFrame(geometry))
            placed = solid.transform(X_WG.GetAsMatrix34())
            name = f"{link.name()}/{inspector.GetName(geometry)}"
            yield name, placed.scale([1e3] * 3)


@pytest.mark.parametrize("name", NAMES)
def test_loads_with_the_stock_parser(name):
    plant, _ = AddMultibodyPlantSceneGraph(DiagramBuilder(), 1e-3)
    Parser(plant).AddModels(str(package_root() / name / f"{name}.sdf"))
    plant.Finalize()
    assert plant.num_actuators() == JOINTS[name]


@pytest.mark.parametrize("name", NAMES)
def test_files_are_small(name):
    folder = package_root() / name
    assert sum(f.stat().st_size for f in folder.iterdir()) < 2e6


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_stands_for_two_seconds(name):
    """Servos hold the rest pose; the torso sinks less than 1 cm and stays level."""
    result = simulate_skinned(
        SkinSimulation(
            model=name,
            duration=2.0,
            time_step=1e-2,
            motion="hold",
            collisions="none",
        )
    )
    assert result.ok, result.message
    q = result.data.position.values
    assert np.abs(q[-1, 6] - q[0, 6]) < 0.01
    assert np.linalg.norm(q[-1, 1:4]) < 0.02
    com = result.data.com.values
    assert np.abs(com[-1] - com[-20]).max() < 1e-3
