"""What keeps Drake from being imported is said in one line; extras; our C parts."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from drakebots.core.errors import InvalidInput
from drakebots.core.installed import Missing, c_part, explain, extra, version_of
from drakebots.core.lazy import late

ROOT = Path(__file__).parents[2]
OLD = (
    "/lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.34' not found (required by "
    "/x/pydrake/lib/libdrake.so)"
)


@pytest.mark.parametrize("name", ["drake/__init__.py", "pydrake.py"])
def test_a_file_that_hides_drake_is_named(tmp_path, name):
    """The command line itself, in a folder with such a file or folder."""
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.touch()
    hides = tmp_path / Path(name).parts[0]
    code = "import sys; from drakebots.cli import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code, "show", "brick"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert f"drakebots: Drake cannot be imported: {hides} hides" in done.stderr
    assert done.stderr.count("\n") == 1 and "rename" in done.stderr


def test_an_old_glibc_is_named():
    """As the loader says it of Drake's library, in the words of a face in Python."""
    with pytest.raises(Missing, match=r"needs glibc 2\.34, .*Ubuntu 22\.04"):
        explain(ImportError(OLD))
    explain(ImportError("libGL.so.1: cannot open shared object file"))  # not known


def _nothing_found(monkeypatch, **system):
    """As on another machine, where there is no Drake on the path."""
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(sys, "version_info", system.get("python", (3, 12, 1)))
    libc = system.get("libc", ("glibc", "2.36"))
    monkeypatch.setattr(platform, "libc_ver", lambda: libc)
    locked = system.get("free_threaded", 0)
    monkeypatch.setattr(sysconfig, "get_config_var", lambda name: locked)
    with pytest.raises(Missing) as raised:
        explain(ModuleNotFoundError("No module named 'pydrake'"))
    return str(raised.value)


@pytest.mark.parametrize(
    "system",
    [
        {"python": (3, 10, 4)},
        {"free_threaded": 1},
        {"libc": ("glibc", "2.31")},
        {"libc": ("", "")},  # musl
    ],
    ids=lambda system: next(iter(system)),
)
def test_a_python_without_a_wheel_is_named(monkeypatch, system):
    if sys.platform != "linux" and "libc" in system:
        pytest.skip("glibc is Linux's")
    said = _nothing_found(monkeypatch, **system)
    python = ".".join(map(str, system.get("python", (3, 12))[:2]))
    assert f"no wheel for Python {python} on" in said and "\n" not in said


def test_drake_that_is_not_installed(monkeypatch):
    said = _nothing_found(monkeypatch)
    assert said.endswith("not installed for this Python; pip install drake")


@pytest.mark.parametrize(
    ("tag", "python", "fits"),
    [
        ("cp311-cp311", (3, 11), True),
        ("cp311-cp311", (3, 13), False),
        ("cp312-abi3", (3, 14), True),
        ("cp312-abi3", (3, 11), False),
    ],
)
def test_a_wheel_of_another_python_is_named(tmp_path, monkeypatch, tag, python, fits):
    (tmp_path / "pydrake" / "common").mkdir(parents=True)
    (tmp_path / "pydrake" / "__init__.py").touch()
    about = tmp_path / "drake-1.60.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Name: drake\nVersion: 1.60\n")
    (about / "WHEEL").write_text(f"Tag: {tag}-manylinux_2_34_x86_64\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setattr(sys, "version_info", python)
    try:
        explain(ImportError("undefined symbol: PyObject_Vectorcall"))
    except Missing as error:
        assert not fits and f"is for Python 3.{tag[3:5]}" in str(error)
    else:
        assert fits


def test_a_required_package_that_is_missing(monkeypatch):
    """It is named as pip knows it, by a face and by what is imported late."""
    monkeypatch.delitem(sys.modules, "skimage.measure", raising=False)
    monkeypatch.setitem(sys.modules, "skimage", None)
    with pytest.raises(Missing, match="skimage is missing; pip install scikit-image"):
        _ = late("skimage.measure").marching_cubes
    monkeypatch.setitem(sys.modules, "skimage", sys)
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'drakebots\.no'"):
        _ = late("drakebots.no").thing


def test_extras_and_c_parts(tmp_path, monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "cadquery", None)
    with pytest.raises(InvalidInput, match=r"STEP .* pip install cadquery"):
        extra("cadquery")
    assert version_of("numpy") and version_of("no-such-package") is None
    with caplog.at_level("INFO", logger="drakebots"):
        assert c_part(tmp_path / "_kkt") is None
    (line,) = caplog.messages
    assert "_kkt.c was not compiled" in line and "drakebots doctor" in line
