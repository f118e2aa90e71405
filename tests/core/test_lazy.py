"""Faces: modules load on first use; a function may have its module's name."""

import importlib.util
import subprocess
import sys
import types

import pytest

from drakebots.core.lazy import hide_dask, late, show_dask

FACE = '''"""A robot."""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from robot import tools
    from robot.gait import STEP
    from robot.gait import Gait as Walk
    from robot.simulate import simulate
    from robot.broken import gone, other

__all__, __getattr__, __dir__ = lazy_face(__name__)
'''


@pytest.fixture
def robot(tmp_path, monkeypatch):
    """A package with a face, imported afresh."""
    folder = tmp_path / "robot"
    folder.mkdir()
    (folder / "__init__.py").write_text(FACE)
    (folder / "gait.py").write_text("STEP = 2\nclass Gait: pass\n")
    (folder / "simulate.py").write_text("def simulate(): return 'simulated'\n")
    (folder / "tools.py").write_text("HAMMER = 1\n")
    (folder / "broken.py").write_text("import nothing_of_this_name\n")
    monkeypatch.syspath_prepend(tmp_path)
    import robot

    yield robot
    for name in [n for n in sys.modules if n == "robot" or n.startswith("robot.")]:
        del sys.modules[name]


def test_modules_load_on_first_use(robot):
    assert "robot.gait" not in sys.modules
    assert robot.STEP == 2
    assert "robot.gait" in sys.modules and "robot.simulate" not in sys.modules
    assert "STEP" in vars(robot), "the second access is an ordinary one"
    assert robot.Walk is sys.modules["robot.gait"].Gait


def test_a_function_with_the_name_of_its_module(robot):
    import robot.simulate as module

    assert isinstance(sys.modules["robot.simulate"], types.ModuleType)
    assert robot.simulate() == "simulated"
    from robot.simulate import simulate

    assert simulate is robot.simulate and callable(module)


def test_a_public_module(robot):
    assert robot.tools.HAMMER == 1
    import robot.tools

    assert robot.tools is sys.modules["robot.tools"]


def test_names(robot):
    assert robot.__all__ == ["STEP", "Walk", "gone", "other", "simulate", "tools"]
    assert {"Walk", "simulate", "__doc__"} <= set(dir(robot))
    with pytest.raises(AttributeError, match="'robot' has no attribute 'Gait'"):
        _ = robot.Gait
    with pytest.raises(ImportError):
        exec("from robot import nothing")


def test_an_import_that_fails_says_why(robot):
    with pytest.raises(ModuleNotFoundError, match="nothing_of_this_name"):
        _ = robot.gone


def test_a_name_that_its_module_does_not_have(robot):
    from pathlib import Path

    Path(robot.__file__).with_name("broken.py").write_text("")
    sys.path_importer_cache.clear()
    with pytest.raises(AttributeError, match=r"lists 'other', which 'robot\.broken'"):
        _ = robot.other


def test_only_imports_from_modules(tmp_path, monkeypatch):
    (tmp_path / "odd").mkdir()
    face = FACE.replace("    from robot import tools\n", "    import numpy\n")
    (tmp_path / "odd" / "__init__.py").write_text(face)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(TypeError, match="from module import name"):
        import odd  # noqa: F401


def test_a_package_of_others_is_imported_when_it_is_used(robot):
    tools = late("robot.tools")
    assert "robot.tools" not in sys.modules
    assert tools.HAMMER == 1
    with pytest.raises(AttributeError, match="SAW"):
        _ = tools.SAW


def test_dask_is_not_there_until_it_is_shown(monkeypatch):
    monkeypatch.delitem(sys.modules, "dask", raising=False)
    before = importlib.util.find_spec("dask")
    hide_dask()
    assert importlib.util.find_spec("dask") is None
    with pytest.raises(ImportError):
        import dask  # noqa: F401
    show_dask()
    show_dask()
    assert (importlib.util.find_spec("dask") is None) == (before is None)


def test_dask_that_is_in_use_stays(monkeypatch):
    used = types.ModuleType("dask")
    monkeypatch.setitem(sys.modules, "dask", used)
    hide_dask()
    show_dask()
    assert sys.modules["dask"] is used


COMMAND = """
import atexit, sys
from drakebots.__main__ import entry_point
atexit.register(lambda: print({*sys.modules} & {"dask.base", "distributed"}))
sys.argv = ["drakebots", "simulate", "gecko", "--epsilon", "10cm", "-o", "x.nc"]
entry_point()
"""


@pytest.mark.long
def test_a_command_that_writes_a_result_imports_no_dask(tmp_path):
    run = [sys.executable, "-c", COMMAND]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "x.nc").exists()
    assert done.stdout.splitlines()[-1] == "set()"
