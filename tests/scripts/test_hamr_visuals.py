"""HAMR-VI's drawing: parts meet at their joints, meshes are sound and small."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from pydrake.geometry import Box, Cylinder, Mesh, Role, Sphere
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import AddMultibodyPlantSceneGraph
from pydrake.systems.framework import DiagramBuilder

from drakebots.model import package_root
from drakebots.robots.hamr.model import LEGS, mirror
from tests.helpers.scripts import load_script

hamr_visuals, mesh_texts, write_meshes = load_script(
    "hamr_visuals.draw", "hamr_visuals", "mesh_texts", "write_meshes"
)
HamrParameters = load_script("hamr_visuals.parameters").HamrParameters
hamr_sdf, joint_origin, link_name, link_positions = load_script(
    "hamr_visuals.sdf", "hamr_sdf", "joint_origin", "link_name", "link_positions"
)

MESHES = package_root() / "hamr" / "meshes"


def parameters() -> HamrParameters:
    """Those of models/hamr."""
    return HamrParameters(package_root() / "hamr")


TEXTS = mesh_texts(parameters())


def read_obj(text: str):
    """Vertices (n, 3), and per face its vertex indices and its normal."""
    rows = [line.split() for line in text.splitlines()]
    vertices = np.array([r[1:] for r in rows if r[0] == "v"], float)
    normals = np.array([r[1:] for r in rows if r[0] == "vn"], float)
    faces = [
        (
            [int(word.split("//")[0]) - 1 for word in row[1:]],
            normals[int(row[1].split("//")[1]) - 1],
        )
        for row in rows
        if row[0] == "f"
    ]
    return vertices, faces


def surface_points(shape) -> np.ndarray:
    """Points all over a shape's surface, at most 0.5 mm apart [m]."""
    if isinstance(shape, Mesh):
        vertices, faces = read_obj(TEXTS[Path(shape.source().path()).name])
        corners = vertices * 1e-3
        triangles = np.array(
            [
                corners[[f[0], f[k], f[k + 1]]]
                for f, _ in faces
                for k in range(1, len(f) - 1)
            ]
        )
        a, b = (v.ravel() for v in np.meshgrid(*2 * [np.linspace(0, 1, 25)]))
        weights = np.array([1 - a, a * (1 - b), a * b])
        return np.einsum("kw,tkx->twx", weights, triangles).reshape(-1, 3)
    if isinstance(shape, Box):
        half = shape.size() / 2
    elif isinstance(shape, Cylinder):
        half = np.array([shape.radius(), shape.radius(), shape.length() / 2])
    else:
        assert isinstance(shape, Sphere)
        half = np.full(3, shape.radius())
    axes = [np.linspace(-h, h, 9) for h in half]
    return np.stack([v.ravel() for v in np.meshgrid(*axes)], axis=1)


@cache
def drawn() -> dict[str, list[tuple[str, np.ndarray]]]:
    """(name, points in the link [m]) of each visual, by link name."""
    builder = DiagramBuilder()
    plant, scene_graph = AddMultibodyPlantSceneGraph(builder, 1e-3)
    parser = Parser(plant)
    parser.SetStrictParsing()
    parser.package_map().AddPackageXml(str(package_root() / "package.xml"))
    text = hamr_sdf(parameters(), hamr_visuals(parameters()))
    parser.AddModelsFromString(text, "sdf")
    plant.Finalize()
    inspector = scene_graph.model_inspector()
    found = {}
    for link in link_positions(parameters()):
        frame = plant.GetBodyFrameIdOrThrow(plant.GetBodyByName(link).index())
        found[link] = [
            (
                inspector.GetName(geometry),
                inspector.GetPoseInFrame(geometry)
                .multiply(surface_points(inspector.GetShape(geometry)).T)
                .T,
            )
            for geometry in inspector.GetGeometries(frame, Role.kIllustration)
        ]
        assert all(
            inspector.GetName(g).endswith("foot")
            for g in inspector.GetGeometries(frame, Role.kProximity)
        )
    return found


def attachments() -> list[tuple[str, str, np.ndarray]]:
    """(joint, link, point in the link [m]) of every joint, loop and foot."""
    table, rows = parameters(), []
    for leg in LEGS:
        for row in table.joints:
            parent = link_name(leg, row.parent)
            rows.append((leg + row.name, parent, joint_origin(leg, row.name, table)))
            rows.append((leg + row.name, leg + row.child, np.zeros(3)))
        for row in table.loops:
            name = leg + row.name
            rows.append((name, link_name(leg, row.link_A), mirror(leg) * row.p_A))
            rows.append((name, link_name(leg, row.link_B), mirror(leg) * row.p_B))
        link, p = table.foot
        rows.append((leg + "foot", leg + link, mirror(leg) * p))
    return rows


@pytest.mark.parametrize(
    ("joint", "link", "p"), attachments(), ids=lambda x: x if isinstance(x, str) else ""
)
def test_every_part_reaches_its_joints(joint, link, p):
    """Within 1.5 mm at the actuators' tips, within 0.4 mm at the hinges."""
    points = np.vstack([points for _, points in drawn()[link]])
    distance = np.linalg.norm(points - p, axis=1).min()
    assert distance < (1.5e-3 if "act" in joint else 0.4e-3)


def test_overall_size():
    """45.1 mm long, and nothing but the feet near the ground."""
    p_ML = link_positions(parameters())
    every = {
        (link, name): points + p_ML[link]
        for link, visuals in drawn().items()
        for name, points in visuals
    }
    x = np.concatenate([points[:, 0] for points in every.values()])
    assert np.ptp(x) == pytest.approx(45.1e-3, abs=0.5e-3)
    assert x.max() + x.min() == pytest.approx(0, abs=1e-6)
    foot_z = -12.54e-3
    for (link, name), points in every.items():
        low = points[:, 2].min()
        assert low > -12.6e-3, (link, name)
        if name.endswith("::foot"):
            assert low == pytest.approx(foot_z, abs=1e-6)
        elif not name.endswith("::sock"):
            assert low > foot_z + 0.3e-3, (link, name)


def test_left_and_right_front_and_rear_are_mirror_images():
    """Each leg's parts are the front-left leg's, mirrored (L1 differs by design)."""
    for leg in LEGS[1:]:
        for link in ("S1", "S2", "S3", "S4", "L2", "L3", "L4"):
            for (name, ours), (_, first) in zip(
                drawn()[leg + link], drawn()["FL" + link]
            ):
                mirrored = mirror(leg) * first
                for f in (np.min, np.max):
                    assert f(ours, 0) == pytest.approx(f(mirrored, 0), abs=2e-6), name


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_meshes_are_closed_and_face_outward(name):
    """Each edge is met once each way, normals agree, every solid has volume > 0."""
    vertices, faces = read_obj(TEXTS[name])
    edges = Counter(
        (a, b) for face, _ in faces for a, b in zip(face, face[1:] + face[:1])
    )
    assert set(edges.values()) == {1}
    assert all((b, a) in edges for a, b in edges)
    part = np.arange(len(vertices))  # the lowest index connected to each vertex
    for _ in range(len(vertices)):
        before = part.copy()
        for face, _ in faces:
            part[face] = part[face].min()
        if (part == before).all():
            break
    volume = np.zeros(len(vertices))
    for face, normal in faces:
        corners = vertices[face]
        area = np.cross(corners, np.roll(corners, -1, 0)).sum(0) / 2
        assert area @ normal > 0.99 * np.linalg.norm(area) > 0
        volume[part[face[0]]] += corners[0] @ area / 3
    assert (volume[np.unique(part)] > 0).all()


def test_meshes_are_deterministic_small_and_written(tmp_path):
    """The same text each time, under 100 KB together, as in the models folder."""
    assert mesh_texts(parameters()) == TEXTS
    paths = write_meshes(parameters(), tmp_path / "meshes")
    assert {path.name: path.read_text() for path in paths} == TEXTS
    assert sum(len(text) for text in TEXTS.values()) < 100_000
    assert {path.name: path.read_text() for path in MESHES.glob("*")} == TEXTS


def test_names_are_unique_and_no_mesh_is_unused():
    """Names are unique in a link; each file is drawn, each drawn file exists."""
    used = set()
    for link, visuals in hamr_visuals(parameters()).items():
        names = [visual.get("name") for visual in visuals]
        assert len(set(names)) == len(names), link
        used |= {uri.text for visual in visuals for uri in visual.iter("uri")}
    assert used == {f"package://drakebots/hamr/meshes/{name}" for name in TEXTS}
