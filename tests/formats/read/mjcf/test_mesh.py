"""The meshes of MJCF: MuJoCo's own format, meshes without a file, fitted shapes."""

import os

import numpy as np
import pytest
import trimesh

from drakebots.core.errors import ModelProblem
from drakebots.formats import load
from tests.helpers.model_files import write
from tests.helpers.mujoco_peer import assert_as_mujoco

WEDGE = trimesh.convex.convex_hull(
    [[0, 0, 0], [0.4, 0, 0], [0, 0.2, 0], [0.4, 0.2, 0], [0, 0, 0.1], [0.1, 0.1, 0.1]]
)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def numbers(values):
    return " ".join(map(repr, np.ravel(values).tolist()))


def model(mesh, geom='type="mesh" mesh="m"', folder=""):
    return f"""<mujoco><compiler {folder}/><asset><mesh name="m" {mesh}/></asset>
      <worldbody><body name="a"><joint name="j" axis="1 1 0"/><geom {geom}/></body>
      </worldbody></mujoco>"""


def test_meshes_without_a_file(tmp_path):
    faces = f'vertex="{numbers(WEDGE.vertices)}" face="{numbers(WEDGE.faces)}"'
    assert_as_mujoco(write(tmp_path, model(faces), "m.xml"), tolerance=1e-6)
    hull = f'vertex="{numbers(WEDGE.vertices)}" inertia="convex"'
    assert_as_mujoco(write(tmp_path, model(hull), "m.xml"), tolerance=1e-6)


def test_own_format_of_mujoco(tmp_path):
    """The same as an .obj of the same triangles."""
    counts = np.array([len(WEDGE.vertices), 0, 0, len(WEDGE.faces)], "<i4")
    data = counts.tobytes() + WEDGE.vertices.astype("<f4").tobytes()
    write(tmp_path, data + WEDGE.faces.astype("<i4").tobytes(), "m.msh")
    WEDGE.export(tmp_path / "m.obj")
    masses = []
    for ending in ("msh", "obj"):
        path = write(tmp_path, model(f'file="m.{ending}"'), "m.xml")
        masses.append(load(path).summary.mass)
    assert masses[0] == pytest.approx(masses[1], rel=1e-6)
    assert masses[0] == pytest.approx(1000 * WEDGE.volume, rel=1e-6)


@pytest.mark.parametrize("kind", ["box", "sphere", "ellipsoid"])
def test_shapes_fitted_to_a_mesh(tmp_path, kind):
    """A box of the same inertia as the mesh has its mass and centre."""
    WEDGE.export(tmp_path / "m.stl")
    geom = f'type="{kind}" mesh="m" pos=".1 .2 .3" euler="10 20 30"'
    path = write(tmp_path, model('file="m.stl" inertia="exact"', geom), "m.xml")
    assert_as_mujoco(path, tolerance=1e-5)


@pytest.mark.parametrize(
    "content", [None, b"", b"\0" * 10, b"\xff" * 200, b"\1\0\0\0" * 4]
)
@pytest.mark.parametrize("ending", ["stl", "obj", "msh", "ply", ""])
def test_a_mesh_that_cannot_be_read_is_left_out(tmp_path, ending, content):
    """The rest of the robot loads; what has only such a mesh has no mass."""
    name = f"part.{ending}".rstrip(".")
    if content is not None:
        write(tmp_path, content, name)
    text = model(f'file="{name}"')
    path = write(tmp_path, text.replace("</body>", '<geom size=".1"/></body>'), "m.xml")
    assert any(name in note for note in load(path).notes)
    path = write(tmp_path, text, "m.xml")
    with pytest.raises(ModelProblem, match=f"mass .* of moving .* mesh {name} is "):
        load(path)


def test_a_flat_mesh_can_be_drawn(tmp_path):
    """Drake has no hull of a flat mesh; as a shape without mass it is no matter."""
    flat = 'vertex="0 0 0 1 0 0 0 1 0 1 1 0" face="0 1 2 1 3 2" inertia="shell"'
    geom = 'type="mesh" mesh="m" contype="0" conaffinity="0"/><geom size=".1"'
    assert load(write(tmp_path, model(flat, geom), "m.xml")).summary.mass > 0


@pytest.mark.parametrize("vertices", ["0 0 0 1 0 0 0 1 0 1 1 0", "0 0 0 1 0 0"])
def test_vertices_without_a_hull(tmp_path, vertices):
    path = write(tmp_path, model(f'vertex="{vertices}"'), "m.xml")
    with pytest.raises(ModelProblem, match=r"coplanar|at least 4 vertices"):
        load(path)


def test_a_pipe_in_place_of_a_mesh(tmp_path):
    """MuJoCo would wait for it; and for a texture, which nobody needs."""
    os.mkfifo(tmp_path / "m.stl")
    text = model('file="m.stl"').replace("</body>", '<geom size=".1"/></body>')
    look = '<texture name="t" type="2d" file="m.stl"/><material name="t" texture="t"/>'
    path = write(tmp_path, text.replace("<asset>", f"<asset>{look}"), "m.xml")
    assert any("(is no file): m.stl" in note for note in load(path).notes)
