"""Meshes that Drake can use, made from those it cannot."""

import json

import numpy as np
import pytest
import trimesh
from pydrake.geometry import Mesh

from drakebots import load
from drakebots.core.errors import DrakebotsWarning, ModelProblem
from drakebots.formats.read import meshes
from drakebots.formats.read.meshes import (
    Part,
    coarser,
    collision_mesh,
    mesh_cache,
    obj_mesh,
    read_parts,
    visual_mesh,
)
from tests.helpers.robot_files import link, mesh, write


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def saved(path, mesh):
    mesh.export(path)
    return path


def l_shape() -> trimesh.Trimesh:
    """Two boxes that are no convex body together."""
    low = trimesh.creation.box(bounds=[[0, 0, 0], [2, 1, 1]])
    high = trimesh.creation.box(bounds=[[0, 0, 1], [1, 1, 3]])
    return trimesh.util.concatenate([low, high])


@pytest.mark.parametrize("ending", ["stl", "STL", "dae", "ply"])
def test_what_drake_cannot_read_is_converted(tmp_path, ending):
    """The shape is kept: volume as drawn, and that of the hull as touched."""
    shape = l_shape()
    path = tmp_path / f"leg.{ending}"
    path.write_bytes(trimesh.exchange.export.export_mesh(shape, None, ending.lower()))
    drawn, touched = visual_mesh(path), collision_mesh(path)
    assert drawn.suffix == touched.suffix == ".obj"
    assert mesh_cache() in drawn.parents
    assert trimesh.load(drawn, force="mesh").volume == pytest.approx(4.0)
    hull = trimesh.load(touched, force="mesh")
    assert hull.is_watertight
    assert hull.volume == pytest.approx(shape.convex_hull.volume)
    surface = collision_mesh(path, hull=False)
    assert trimesh.load(surface, force="mesh").volume == pytest.approx(4.0)
    assert Mesh(str(touched)).GetConvexHull().num_vertices() >= 8


def test_a_converted_mesh_is_made_once(tmp_path):
    path = saved(tmp_path / "leg.stl", l_shape())
    first = visual_mesh(path)
    made = first.stat().st_mtime_ns
    assert visual_mesh(path) == first and first.stat().st_mtime_ns == made
    saved(path, trimesh.creation.box())
    assert visual_mesh(path) != first


def test_good_meshes_are_used_as_they_are(tmp_path):
    path = saved(tmp_path / "leg.obj", l_shape())
    assert visual_mesh(path) == collision_mesh(path) == path


BOX = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"


@pytest.mark.parametrize("line", ["mtllib {}", "# mtllib {}", "mtllib\n{}", "mtllib l"])
def test_no_other_file_of_the_machine_is_named(tmp_path, line):
    """Meshcat copies what a mesh names into the page, wherever it lies."""
    secret = tmp_path / "secret"
    secret.write_text("root:x:0\n")
    folder = tmp_path / "robot" / "meshes"
    folder.mkdir(parents=True)
    (folder / "l").symlink_to(secret)
    path = folder / "leg.obj"
    path.write_text(line.format(secret) + "\n" + BOX)
    for use in (visual_mesh, collision_mesh):
        with pytest.warns(DrakebotsWarning, match="drawn without its materials"):
            used = use(path)
        assert "mtllib" not in used.read_text()
        assert trimesh.load(used, force="mesh").volume == pytest.approx(1 / 6)


def test_materials_and_pictures_near_a_mesh_are_kept(tmp_path):
    folder = tmp_path / "robot" / "meshes"
    folder.mkdir(parents=True)
    (folder / "leg.mtl").write_text("# grey\nnewmtl a\nKd 1 0 0\nmap_Kd ../leg.png\n")
    path = folder / "leg.obj"
    path.write_text("mtllib leg.mtl\n" + BOX)
    picture = tmp_path / "robot" / "leg.png"
    picture.write_bytes(b"\x89PNG\r\n\x1a\n")
    assert visual_mesh(path) == path
    picture.write_text("root:x:0\n")  # no picture
    with pytest.warns(DrakebotsWarning, match="leg.mtl"):
        assert visual_mesh(path) != path


def test_a_gltf_with_a_file_from_elsewhere_is_refused(tmp_path):
    sound = trimesh.exchange.gltf.export_gltf(trimesh.Scene(trimesh.creation.box()))
    for name, content in sound.items():
        (tmp_path / name).write_bytes(content)
    path = tmp_path / "model.gltf"
    assert visual_mesh(path) == path
    top = json.loads(path.read_text())
    top["images"] = [{"uri": "/etc/hostname"}]
    path.write_text(json.dumps(top))
    with pytest.raises(ModelProblem, match="names /etc/hostname, which is not below"):
        visual_mesh(path)


def test_a_large_collision_mesh_is_kept_as_its_hull(tmp_path, monkeypatch):
    monkeypatch.setattr(meshes, "LARGE", 100)
    path = saved(tmp_path / "leg.obj", l_shape())
    assert visual_mesh(path) == collision_mesh(path, hull=False) == path
    hull = trimesh.load(collision_mesh(path), force="mesh")
    assert hull.volume == pytest.approx(l_shape().convex_hull.volume)


def test_colors_of_collada_parts_are_kept(tmp_path):
    scene = trimesh.Scene()
    for k, color in enumerate([[255, 0, 0, 255], [0, 0, 255, 255]]):
        box = trimesh.creation.box()
        box.visual = trimesh.visual.ColorVisuals(box, face_colors=color)
        scene.add_geometry(box.apply_translation([2 * k, 0, 0]))
    path = tmp_path / "two.dae"
    path.write_bytes(trimesh.exchange.dae.export_collada(list(scene.geometry.values())))
    colors = sorted(tuple(part.rgba[:3]) for part in read_parts(path))
    assert colors == [(0, 0, 1), (1, 0, 0)]
    drawn = visual_mesh(path)
    assert drawn.read_text().count("usemtl") == 2
    assert "Kd 1 0 0" in drawn.with_suffix(".mtl").read_text()


@pytest.mark.parametrize("painted", ["vertex_colors", "face_colors"])
def test_the_mean_of_many_colors_is_kept(tmp_path, painted):
    shape = l_shape()
    setattr(shape.visual, painted, [255, 0, 51, 255])
    (part,) = read_parts(saved(tmp_path / "leg.ply", shape))
    np.testing.assert_allclose(part.rgba, [1, 0, 0.2, 1])


@pytest.mark.parametrize("ending", ["gltf", "glb"])
def test_a_gltf_becomes_the_obj_that_drake_makes_of_it(tmp_path, ending):
    """Its buffers are files of their own; Drake turns it, as its y is up, and a file
    that holds all of it is the same."""
    scene = trimesh.Scene(l_shape())
    (tmp_path / "model.glb").write_bytes(scene.export(file_type="glb"))
    for name, content in scene.export(file_type="gltf").items():
        (tmp_path / name).write_bytes(content)
    files = tmp_path / "model.gltf", obj_mesh(tmp_path / f"model.{ending}")
    hulls = [Mesh(str(file)).GetConvexHull() for file in files]
    corners = [
        sorted(hull.vertex(k).round(6).tolist() for k in range(hull.num_vertices()))
        for hull in hulls
    ]
    np.testing.assert_allclose(*corners, atol=1e-6)


def test_the_unit_of_collada_counts_and_its_up_axis_does_not(tmp_path):
    """As in RViz, for which most robot files are written."""
    box = trimesh.creation.box([100.0, 20.0, 30.0])
    text = trimesh.exchange.dae.export_collada(box).decode()
    unit, up = '<unit name="cm" meter="0.01"/>', "<up_axis>Y_UP</up_axis>"
    start, end = text.split("</asset>")
    start = start.replace("<up_axis>", "<old>").replace("</up_axis>", "</old>")
    (tmp_path / "cm.dae").write_text(f"{start}{unit}{up}</asset>{end}")
    (part,) = read_parts(tmp_path / "cm.dae")
    np.testing.assert_allclose(np.ptp(part.vertices, axis=0), [1.0, 0.2, 0.3])


def test_a_large_drawn_mesh_is_made_coarser():
    """Its triangles are few, and its size and its volume stay."""
    ball = trimesh.creation.icosphere(5)
    part = coarser(Part(ball.vertices, ball.faces), max_faces=2_000)
    assert 500 < len(part.faces) <= 2_000
    few = trimesh.Trimesh(part.vertices, part.faces)
    assert few.volume == pytest.approx(ball.volume, rel=0.03)
    assert np.abs(few.vertices).max() == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize(
    "name, content, words",
    [
        ("a.stl", b"", "cannot be read|no triangles"),
        ("a.stl", b"solid x\nendsolid x\n", "no triangles|cannot be read"),
        ("a.dae", b"<COLLADA", "cannot be read"),
        ("a.obj", b"v 0 0 0\n", "cannot be used by Drake"),
        ("a.odd", b"abc", "trimesh reads"),
        ("noending", b"abc", "trimesh reads"),
    ],
)
def test_no_meshes(tmp_path, name, content, words):
    path = tmp_path / name
    path.write_bytes(content)
    for use in (visual_mesh, collision_mesh):
        with pytest.raises(ModelProblem, match=words):
            use(path)


def test_a_flat_collision_mesh_is_kept_flat(tmp_path):
    flat = trimesh.Trimesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])
    obj = collision_mesh(saved(tmp_path / "flat.stl", flat))
    assert len(trimesh.load(obj, force="mesh").faces) == 1


def test_an_obj_without_its_materials_is_plain(tmp_path):
    path = tmp_path / "leg.obj"
    text = "mtllib leg.mtl\nusemtl steel\nv 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n"
    path.write_text(text)
    plain = visual_mesh(path)
    assert plain != path and "mtl" not in plain.read_text()
    assert "f 1 2 3" in plain.read_text()
    (tmp_path / "leg.mtl").touch()
    assert visual_mesh(path) == path


def test_a_home_that_cannot_be_written_to(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    path = saved(tmp_path / "leg.stl", l_shape())
    assert visual_mesh(path).is_file()


# --- files that are not there ---

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12\n"


def test_a_pointer_of_git_lfs_is_named_with_its_remedy(tmp_path):
    """One line for all of them, in a URDF, in an MJCF, and for the file itself."""
    for name in ("leg.stl", "body.obj", "robot.urdf"):
        (tmp_path / name).write_text(POINTER)
    shapes = mesh("leg.stl") * 2 + mesh("body.obj", "visual")
    urdf = write(tmp_path, f"<robot name='r'>{link('a', 1, (1, 1, 1), shapes)}</robot>")
    mjcf = write(
        tmp_path,
        "<mujoco><asset><mesh file='leg.stl'/><mesh file='body.obj'/></asset>"
        "<worldbody><body><freejoint/><geom size='1'/><geom type='mesh' mesh='leg'/>"
        "<geom type='mesh' mesh='body'/></body></worldbody></mujoco>",
        "robot.xml",
    )
    lost = [note for note in load(urdf).notes if "Git LFS pointer" in note]
    assert [note.partition(" mesh")[0] for note in lost] == ["a visual", "a collision"]
    assert lost[1].endswith("run `git lfs pull` there: leg.stl (2 times)")
    (note,) = [note for note in load(mjcf).notes if "Git LFS pointer" in note]
    assert note.endswith(": leg.stl, body.obj") and "`git lfs pull`" in note
    urdf.write_text(POINTER)
    with pytest.raises(ModelProblem, match=r"`git lfs pull` there$"):
        load(urdf)


def test_the_package_of_a_lost_mesh_is_named_once(tmp_path):
    shapes = "".join(mesh(f"package://dog/meshes/{k}.stl") for k in "abc")
    text = f"<robot name='r'>{link('a', 1, (1, 1, 1), shapes)}</robot>"
    (note,) = [x for x in load(write(tmp_path, text)).notes if "not found" in x]
    assert "--package dog=FOLDER" in note and note.endswith(": a.stl, b.stl, c.stl")
