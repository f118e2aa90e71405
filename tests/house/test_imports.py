"""Who imports whom: floors, faces, circles; what `scripts/bench/house.py` counts."""

from __future__ import annotations

import importlib

import pytest

from tests.helpers.scripts import load_script

bench = load_script("house.py")


@pytest.fixture(scope="module")
def house():
    return bench.read_house()


def test_rooms_import_only_from_rooms_above_them(house):
    assert bench.upward_imports(house) == []


def test_no_circles(house):
    assert bench.circles(house) == []


def test_rooms_are_entered_by_their_faces(house):
    assert bench.past_faces(house) == []


def test_imports_stand_at_the_top(house):
    """In functions only for packages that may be missing: none of ours are."""
    assert house.inner == []


def test_every_room_has_a_face(house):
    """A docstring, and names that exist."""
    for name in filter(house.is_package, house.files):
        face = importlib.import_module(name)
        assert (face.__doc__ or "").strip(), name
        assert "TODO" not in face.__doc__, name
        for public in getattr(face, "__all__", ()):
            assert getattr(face, public) is not None, f"{name}.{public}"


def test_folders_are_small(house):
    assert bench.largest_folder(house)[1] <= bench.TARGETS["largest_folder_files"]


def test_no_pydrake_all(house):
    for name, path in house.files.items():
        assert "pydrake.all" not in path.read_text(), name


def test_what_is_counted(tmp_path):
    """A house of four modules with every fault there is."""
    package = tmp_path / "drakebots"
    for room in ("core", "fem", "skin", "robots/a", "robots/b"):
        (package / room).mkdir(parents=True)
        (package / room / "__init__.py").write_text("")
    (package / "__init__.py").write_text("")
    (package / "fem" / "mesh.py").write_text("from drakebots.skin.glue import Glue")
    (package / "skin" / "glue.py").write_text("from drakebots.fem.mesh import Mesh")
    (package / "robots" / "a" / "x.py").write_text("def f():\n import drakebots.fem")
    (package / "robots" / "b" / "y.py").write_text("from drakebots.robots.a.x import f")
    found = bench.read_house(tmp_path)
    assert bench.circles(found) == [["drakebots.fem.mesh", "drakebots.skin.glue"]]
    first, second = bench.upward_imports(found)
    assert "fem.mesh imports drakebots.skin.glue" in first
    assert "robots never do" in second
    assert len(bench.past_faces(found)) == 3
    assert found.inner == [("drakebots.robots.a.x", 2)]
