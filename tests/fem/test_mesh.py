"""Meshes: shapes made by rule, checks, files, P2 upgrade, bad input."""

from pathlib import Path

import meshio
import numpy as np
import pytest

import drakebots
from drakebots.core.errors import FileProblem, InvalidInput, UnknownName
from drakebots.fem.assembly.elements import build_space
from drakebots.fem.mesh import (
    TetMesh,
    box_mesh,
    check_mesh,
    read_mesh,
    surface_triangles,
    tet_quality,
    write_mesh,
)
from drakebots.fem.mesh.io import FORMATS
from drakebots.fem.mesh.mesh import surface_faces
from tests.helpers.scripts import load_script
from tests.helpers.skin_energy import on_vertices

hollow_capsule = load_script("capsule_mesh").hollow_capsule

REGULAR = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]], float)


def signed_volume(vertices, triangles):
    """By the divergence theorem: only a closed outward surface gives it."""
    a, b, c = (vertices[triangles[:, k]] for k in range(3))
    return np.einsum("ij,ij->", a, np.cross(b, c)) / 6


def test_a_box_fills_its_volume():
    mesh, report = check_mesh(box_mesh((1, 2, 3), (2, 3, 4)))
    assert report.flipped == report.dropped_vertices == report.slivers == 0
    assert report.pieces == 1 and not report.notes
    assert np.isclose(report.volume, 6) and mesh.volumes.min() > 0
    assert np.isclose(signed_volume(mesh.vertices, surface_triangles(mesh)), 6)


@pytest.mark.parametrize("target", [1038, 4279, 14089])
def test_a_capsule_is_a_closed_wall(target):
    mesh, report = check_mesh(hollow_capsule(target))
    assert report.pieces == 1
    assert abs(report.vertices / target - 1) < 0.05
    assert report.flipped == 0
    R, r, length = 0.1, 0.096, 0.3
    exact = np.pi * (R**2 - r**2) * length + 4 / 3 * np.pi * (R**3 - r**3)
    assert abs(report.volume / exact - 1) < 30 / target
    triangles = surface_triangles(mesh)
    assert np.isclose(signed_volume(mesh.vertices, triangles), report.volume)
    # Two closed spheres: V - E + F = 2 each.
    assert len(mesh.vertices) - len(triangles) / 2 == 4


def test_layers_fill_the_same_wall():
    one, two = (hollow_capsule(1000 * n, layers=n) for n in (2, 4))
    assert np.isclose(check_mesh(two)[1].volume, one.volumes.sum(), rtol=0.03)
    assert check_mesh(two)[1].flipped == 0


def test_quality_is_one_for_a_regular_tet_and_falls_to_zero():
    tet = np.array([[0, 1, 2, 3]])
    assert np.isclose(abs(tet_quality(REGULAR, tet)[0]), 1)
    flat = REGULAR * [1, 1, 1e-3]
    assert abs(tet_quality(flat, tet)[0]) < 0.05


def test_check_mends_and_reports():
    mesh = box_mesh((1, 1, 1), (2, 2, 2))
    tets = mesh.tets.copy()
    tets[5] = tets[5][[1, 0, 2, 3]]
    vertices = np.vstack([[9, 9, 9], mesh.vertices, REGULAR + 5])
    tets = np.vstack([tets + 1, [[len(vertices) - k for k in (4, 3, 2, 1)]]])
    mended, report = check_mesh(TetMesh(vertices, tets))
    assert report.flipped in (1, 2) and report.dropped_vertices == 1
    assert report.pieces == 2 and mended.volumes.min() > 0
    assert len(mended.vertices) == len(vertices) - 1
    assert "reordered" in str(report) and "pieces" in str(report)


def test_slivers_are_named():
    flat = TetMesh(REGULAR * [1, 1, 1e-3], np.array([[0, 1, 2, 3]]))
    assert check_mesh(flat)[1].slivers == 1


@pytest.mark.parametrize(
    "vertices, tets, words",
    [
        (REGULAR[:, :2], [[0, 1, 2, 3]], "vertices: shape"),
        (REGULAR, np.zeros((0, 4), int), "tets: shape"),
        (REGULAR, [[0.0, 1, 2, 3]], "needs integers"),
        (REGULAR, [[0, 1, 2, 4]], "tet 0: corners"),
        (REGULAR * [1, np.nan, 1], [[0, 1, 2, 3]], "not finite"),
    ],
)
def test_a_mesh_that_cannot_be_is_refused(vertices, tets, words):
    with pytest.raises(InvalidInput, match=words):
        TetMesh(vertices, np.array(tets))


@pytest.mark.parametrize(
    "tets, words",
    [
        ([[0, 1, 2, 2]], "repeat a vertex"),
        ([[0, 1, 2, 3], [1, 0, 2, 3]], "listed 2 times"),
    ],
)
def test_degenerate_tets_are_named(tets, words):
    with pytest.raises(InvalidInput, match=words):
        check_mesh(TetMesh(REGULAR, np.array(tets)))
    with pytest.raises(InvalidInput, match="no volume"):
        check_mesh(TetMesh(REGULAR * [1, 1, 0], np.array([[0, 1, 2, 3]])))


def test_a_face_of_three_tets_is_refused():
    vertices = np.vstack([REGULAR, REGULAR[3:] * 2, REGULAR[3:] * 3])
    tets = np.array([[0, 1, 2, 3], [0, 1, 2, 4], [0, 1, 2, 5]])
    with pytest.raises(InvalidInput, match="3 tets"):
        surface_faces(TetMesh(vertices, tets))


@pytest.mark.parametrize("suffix", FORMATS)
def test_files_keep_mesh_and_regions(suffix, tmp_path):
    box = box_mesh((0.1, 0.2, 0.3), (2, 2, 3))
    mesh = TetMesh(box.vertices, box.tets, np.arange(len(box.tets)) % 3)
    write_mesh(tmp_path / f"a{suffix}", mesh)
    back = read_mesh(tmp_path / f"a{suffix}")
    assert np.allclose(back.vertices, mesh.vertices, atol=1e-15)
    assert np.array_equal(back.tets, mesh.tets)
    assert np.array_equal(back.region, mesh.region)


def test_small_files_round_to_single_precision(tmp_path):
    mesh = two_regions()
    sizes = []
    for small in (False, True):
        path = tmp_path / f"{small}.vtu"
        write_mesh(path, mesh, small=small)
        back = read_mesh(path)
        kind = np.float32 if small else np.float64
        assert np.array_equal(back.vertices, mesh.vertices.astype(kind))
        assert np.array_equal(back.tets, mesh.tets)
        assert np.array_equal(back.region, mesh.region)
        sizes.append(path.stat().st_size)
    assert sizes[1] < sizes[0]


def test_meshio_can_be_replaced():
    """One file knows it."""
    root = Path(drakebots.__file__).parent
    code = {path: path.read_text(encoding="utf-8") for path in root.rglob("*.py")}
    assert [p for p in code if "import meshio" in code[p]] == [root / "fem/mesh/io.py"]


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(FileProblem, match="not found"):
        read_mesh(tmp_path / "none.vtk")
    with pytest.raises(FileProblem, match="needs the ending"):
        read_mesh(tmp_path / "a.stl")
    for text in ("", "nonsense\n1 2 3\n"):
        for suffix in FORMATS:
            path = tmp_path / f"bad{suffix}"
            path.write_text(text)
            with pytest.raises(FileProblem):
                read_mesh(path)
    path = tmp_path / "tri.vtk"
    meshio.write(path, meshio.Mesh(REGULAR, [("triangle", np.array([[0, 1, 2]]))]))
    with pytest.raises(FileProblem, match="no linear tets"):
        read_mesh(path)


def two_regions():
    box = box_mesh((1, 1, 1), (3, 2, 2))
    middle = box.vertices[box.tets].mean(axis=1)
    return TetMesh(box.vertices, box.tets, (middle[:, 0] > 0.5).astype(int))


def test_mixed_orders_reproduce_linear_fields_and_stay_continuous():
    space = build_space(two_regions(), quadratic=[1])
    assert {g.order for g in space.groups} == {1, 2}
    rng = np.random.default_rng(0)
    A, b = rng.normal(size=(3, 3)), rng.normal(size=3)
    x = space.nodes @ A.T + b
    for group in space.groups:
        ids = np.maximum(group.nodes, 0)
        F = np.einsum("mai,mqaj->mqij", x[ids], group.gradients)
        assert np.allclose(F, A, atol=1e-12)
        # Slots of bound edges do nothing.
        gone = group.nodes < 0
        assert np.abs(group.gradients.transpose(0, 2, 1, 3)[gone]).max(initial=0) == 0
    # A mid-edge node sits on an edge of P2 tets only.
    linear = next(g for g in space.groups if g.order == 1)
    touched = {tuple(sorted(e)) for t in linear.nodes for e in
               [(t[i], t[j]) for i in range(4) for j in range(i)]}  # fmt: skip
    assert not touched & {tuple(sorted(e)) for e in space.midside.tolist()}


def test_all_quadratic_has_a_node_an_edge():
    mesh = box_mesh((1, 1, 1), (1, 1, 1))
    space = build_space(mesh, mesh.regions)
    assert len(space.nodes) == 8 + 19 and space.groups[0].nodes.min() == 0
    middles = mesh.vertices[space.midside].mean(axis=1)
    assert np.allclose(np.concatenate([mesh.vertices, middles]), space.nodes)
    face = np.flatnonzero(mesh.vertices[:, 0] == 0)
    held = on_vertices(space, face)
    assert np.array_equal(np.sort(held), np.flatnonzero(space.nodes[:, 0] == 0))


def test_bad_shapes_and_regions():
    with pytest.raises(UnknownName, match="region"):
        build_space(two_regions(), quadratic=[7])
    with pytest.raises(InvalidInput, match="box"):
        box_mesh((1, 0, 1), (1, 1, 1))
    with pytest.raises(InvalidInput, match="capsule"):
        hollow_capsule(1000, thickness=0.2)
    with pytest.raises(InvalidInput, match="one integer"):
        TetMesh(REGULAR, np.array([[0, 1, 2, 3]]), np.zeros(2))
