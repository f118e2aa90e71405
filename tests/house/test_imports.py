"""Who imports whom: floors, faces, circles; what `scripts/bench/house.py` counts."""

from __future__ import annotations

import importlib
import re

import pytest

from tests.helpers.scripts import load_script

bench = load_script("house")


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


def test_faces_name_where_things_are_defined(house):
    """A strict type checker takes what a module only imports for private."""
    for name, face in house.faces.items():
        for public, (module, entry) in face.items():
            imported = {other for _, other, _ in house.texts[module]}
            if module in house.files and not house.is_package(module):
                assert entry not in imported, f"{name}.{public} from {module}"


def test_folders_are_small(house):
    assert bench.largest_folder(house)[1] <= bench.TARGETS["largest_folder_files"]


LIMITS = {
    "code_lines": 51_991,
    "modules": 379,
    "single_importer_modules": 36,
    "functions_over_60_lines": 4,
    "field_declarations": 1,
    "option_bag_fields": 14,
    "upward_strings": 0,
}
"""Limits of the house: a commit lowers these, or says in CHANGELOG.md under "The
house" why it raises one."""


def test_the_house_grows_no_larger(house):
    found = bench.figures(house)
    over = {k: (found[k], most) for k, most in LIMITS.items() if found[k] > most}
    assert not over, "larger than the limit: unify something, or see LIMITS"


def test_no_pydrake_all(house):
    for name, path in house.files.items():
        assert "pydrake.all" not in path.read_text(), name


def test_files_are_looked_for_by_os_path(house):
    """Methods of Path raise for names that no file can have; os.path says no."""
    methods = re.compile(r"\.(?:is_file|is_dir|exists)\(\)")
    # check_output says what the operating system says of a name.
    others = {n: p for n, p in house.files.items() if n != "drakebots.core.files"}
    found = [n for n, path in others.items() if methods.search(path.read_text())]
    assert not found, "use os.path.isfile, isdir or exists"


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
    body = "\n".join(f"    x = {k}  # why" for k in range(70))
    prose = '"""Prose.\n\nMore of it."""\nimport os\n\n# Why.\n'
    late = 'LATE = "drakebots.skin.glue:Glue"\n'
    (package / "core" / "long.py").write_text(f"{prose}{late}def f():\n{body}\n")
    (package / "robots" / "b" / "y.py").write_text("from drakebots.robots.a.x import f")
    found = bench.read_house(tmp_path)
    assert bench.circles(found) == [["drakebots.fem.mesh", "drakebots.skin.glue"]]
    first, second = bench.upward_imports(found)
    assert "fem.mesh imports drakebots.skin.glue" in first
    assert "robots never do" in second
    assert len(bench.past_faces(found)) == 3
    assert found.inner == [("drakebots.robots.a.x", 2)]
    assert found.code_lines["drakebots.core.long"] == 72
    assert found.code_lines["drakebots.fem.mesh"] == 0
    assert found.long_functions == {"drakebots.core.long:f": 71}
    (text,) = bench.upward_strings(found)
    assert text == "drakebots.core.long names drakebots.skin.glue:Glue"
