"""VTU series read back by VTK: shapes, values, volumes."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from drakebots.core.errors import FileProblem, InvalidInput
from drakebots.fem.mesh import surface_triangles, write_cells
from drakebots.formats import load
from drakebots.model import skin_path
from drakebots.skin import write_vtu
from drakebots.skin.file import load_skinned, write_skin
from tests.helpers.result_samples import make
from tests.helpers.skin_runs import made_result, skinned

pyvista = pytest.importorskip("pyvista")


def steps(path):
    """Times and meshes of a series."""
    series = pyvista.get_reader(str(path))
    for time in series.time_values:
        series.set_active_time_value(time)
        yield time, series.read()[0]


def test_a_surface_without_its_file(tmp_path):
    """Triangles where the model's skin is unknown, at the result's own times."""
    result = skinned(tmp_path, 300, 3, 0.5)
    path = write_vtu(result, tmp_path / "run.pvd")
    data, found = result.data, list(steps(path))
    assert [time for time, _ in found] == data.skin_time.values.tolist()
    for (_, mesh), x, stress in zip(found, data.skin_position, data.skin_stress):
        np.testing.assert_allclose(mesh.points, x.values, atol=1e-6)
        np.testing.assert_allclose(mesh["stress"], stress.values, rtol=1e-6)
        away = x.values - data.skin_rest.values
        np.testing.assert_allclose(mesh["displacement"], away, atol=1e-6)
    faces = found[0][1].cells_dict[pyvista.CellType.TRIANGLE]
    np.testing.assert_array_equal(faces, data.skin_triangle.values)


@pytest.mark.parametrize("unit", ["m", "mm"])
def test_tets_of_the_models_skin(tmp_path, unit):
    """Stretched by 10 % along z they have 1.1 times the volume, whatever its unit."""
    robot = load_skinned("skinned_leg")
    mesh, given = robot.mesh, robot.model.path
    folder = shutil.copytree(given.parent, tmp_path / "leg")
    if unit == "mm":
        write_cells(folder / "leg_mm.vtu", 1e3 * mesh.vertices, mesh.tets, {})
        skin = replace(robot.skin, mesh="leg_mm.vtu", unit=unit)
        write_skin(skin_path(folder / given.name), skin)
    model = load(folder / given.name)
    vertices, triangles = mesh.vertices, surface_triangles(mesh)
    places = np.array([vertices, vertices * [1, 1, 1.1]])
    m = {"units": "m"}
    data = xr.Dataset(
        {
            "skin_position": (("skin_time", "vertex", "axis"), places, m),
            "skin_rest": (("vertex", "axis"), vertices.astype(np.float32), m),
            "skin_triangle": (("triangle", "corner"), triangles, {"units": "1"}),
            "skin_glued": ("glued", [0, 5], {"units": "1"}),
        },
        {
            "time": ("time", [0.0, 0.1], {"units": "s"}),
            "skin_time": ("skin_time", [0.0, 0.1], {"units": "s"}),
        },
    )
    result = made_result("skinned_leg", data, model.path)
    path = write_vtu(result, tmp_path / "run.pvd", model)
    (_, first), (_, last) = steps(path)
    assert first.n_cells == len(mesh.tets)
    assert last.volume / first.volume == pytest.approx(1.1, rel=1e-6)
    assert np.flatnonzero(first["glued"]).tolist() == [0, 5]


def test_what_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="no skin"):
        write_vtu(make(), tmp_path / "run.pvd")
    result = skinned(tmp_path, 200, 2, 0.5)
    with pytest.raises(FileProblem, match=r"ending \.pvd"):
        write_vtu(result, tmp_path / "run.vtu")
    assert not list(tmp_path.glob("run*"))
