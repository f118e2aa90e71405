"""Entries of files are read strictly; files are written whole or not at all."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from drakebots.core.errors import FileProblem, InvalidInput, UnknownName
from drakebots.core.files import (
    MAX_YAML,
    TOP,
    Fields,
    claimed,
    parse_yaml,
    read_yaml,
    replacing,
)

LIMB = """
name: tail
mass: 8e-3
segments: 6
collide: true
p: [0, 1, 2e-1]
axes: [[1, 0], [0, 1]]
tags: [a, b]
range: {low: -1, high: 1}
3: three
none:
"""


@pytest.fixture
def limb():
    return Fields(parse_yaml(LIMB), "limb 2")


def test_entries(limb):
    assert limb.text("name") == "tail" and limb.text("3") == "three"
    assert limb.text("segments") == "6"
    assert limb.number("mass") == 8e-3 and limb.number("segments") == 6.0
    assert np.array_equal(limb.array("p", (3,)), [0, 1, 0.2])
    assert limb.array("axes", (None, 2)).shape == (2, 2)
    assert limb.items("tags") == ["a", "b"] and limb.items("nothing") == []
    assert limb.fields("range", ("low", "high")).number("low") == -1
    assert list(limb.fields("nothing")) == []
    assert "mass" in limb and "radius" not in limb and "name" in list(limb)
    assert limb.flag("collide") is True


def test_defaults(limb):
    assert limb.number("radius", 2) == 2.0 and limb.number("radius", None) is None
    assert limb.flag("drawn", False) is False and limb.text("parent", "a") == "a"
    assert np.array_equal(limb.array("rpy", (3,), "rad", (0, 0, 0)), np.zeros(3))
    assert limb.get("parent", None) is None and limb.get("none") is None


@pytest.mark.parametrize(
    ("read", "says"),
    [
        (lambda x: x.number("radius"), "limb 2: needs `radius`"),
        (lambda x: x.number("name"), "limb 2 name: 'tail' must be a finite number"),
        (lambda x: x.number("collide"), "must be a finite number"),
        (lambda x: x.number("none", 1.0), "must be a finite number"),
        (lambda x: x.flag("segments"), "must be true or false, got 6"),
        (lambda x: x.text("tags"), "limb 2 tags: must be a text"),
        (lambda x: x.text("collide"), "must be a text, got True"),
        (lambda x: x.text("none"), "must be a text"),
        (lambda x: x.items("name"), "limb 2 name: needs a list"),
        (lambda x: x.fields("name"), "limb 2 name: needs `name: value` entries"),
        (lambda x: x.array("tags", (2,)), "limb 2 tags must be 2 finite numbers"),
        (lambda x: x.array("p", (2,), "m"), "must be 2 finite numbers [m]"),
        (lambda x: x.array("name", (1,)), "must be 1 finite numbers"),
    ],
)
def test_refused(limb, read, says):
    with pytest.raises(InvalidInput) as caught:
        read(limb)
    assert says in str(caught.value) and "\n" not in str(caught.value)


def test_unknown_entries():
    with pytest.raises(UnknownName, match=r"entry of limb 2 'nam'.*mean 'name'"):
        Fields({"nam": "tail"}, "limb 2", ("name", "mass"))
    with pytest.raises(InvalidInput, match="the file: needs"):
        Fields([1, 2], TOP)
    # At the top of a file an entry needs no place.
    with pytest.raises(InvalidInput, match=r"^mass: 'x' must be"):
        Fields({"mass": "x"}, TOP).number("mass")


def test_replacing(tmp_path):
    path = tmp_path / "table.csv"
    for text in ("one", "two"):
        with replacing(path) as part:
            part.write_text(text)
            assert part.parent == tmp_path and part != path
        assert path.read_text() == text
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, OSError])
def test_a_failed_write_changes_nothing(tmp_path, error):
    path = tmp_path / "table.csv"
    path.write_text("before")
    with (
        pytest.raises(FileProblem if error is OSError else error),
        replacing(path) as part,
    ):
        part.write_text("half")
        raise error("in the middle")
    assert path.read_text() == "before" and list(tmp_path.iterdir()) == [path]


def test_no_folder(tmp_path):
    with (
        pytest.raises(FileProblem, match="no folder"),
        replacing(tmp_path / "no" / "table.csv"),
    ):
        raise AssertionError("the body must not run")


@pytest.mark.parametrize("text", ["a: &x 1", "a: &x [1]\nb: *x", "a: *x"])
def test_yaml_with_anchors_is_refused(tmp_path, text):
    """Nine levels of aliases can stand for more than fits in memory."""
    path = tmp_path / "a.yaml"
    path.write_text(text)
    with pytest.raises(FileProblem, match="anchor or alias 'x'"):
        read_yaml(path)


def test_yaml_that_would_never_end(tmp_path):
    os.mkfifo(tmp_path / "pipe.yaml")
    with pytest.raises(FileProblem, match="no regular file"):
        read_yaml(tmp_path / "pipe.yaml")
    large = tmp_path / "large.yaml"
    large.write_bytes(b"#" * (MAX_YAML + 1))
    with pytest.raises(FileProblem, match="larger than 1 MB"):
        read_yaml(large)


def killed(code, path):
    """A process that runs code with `path` and kills itself; its exit code."""
    begin = "import os, sys\nfrom drakebots.core.files import *\n"
    code = f"{begin}path = Path(sys.argv[1])\n{code}\n"
    return subprocess.run([sys.executable, "-c", code, str(path)]).returncode


def test_what_a_killed_process_leaves_is_removed_by_the_next(tmp_path):
    path = tmp_path / "run.nc"
    code = """
with claimed([path]), replacing(path) as part:
    part.write_text("half"); os.kill(os.getpid(), 9)"""
    assert killed(code, path) == -9
    left = [file.name for file in tmp_path.iterdir()]
    assert len(left) == 2 and all(name.startswith(".run.nc.") for name in left)
    other = tmp_path / f".run.nc.part-00000000-{os.getpid()}-0"
    other.write_text("of a process on another host, which may live")
    with claimed([path]), replacing(path) as part, replacing(path) as second:
        # Nor is what a process that lives is writing.
        part.write_text("one")
        second.write_text("two")
    assert path.read_text() == "one"
    assert sorted(tmp_path.iterdir()) == [other, path]


def test_two_runs_do_not_write_one_file(tmp_path):
    path = tmp_path / "run.nc"
    with claimed([tmp_path / "other.nc", path]):
        code = """
try:
    with claimed([path]): pass
except FileProblem as error:
    sys.exit("another run" in str(error) and 7)"""
        assert killed(code, path) == 7
    assert killed("with claimed([path]): pass", path) == 0
    with claimed([Path("/proc/a folder that cannot be written")]):
        pass
    assert list(tmp_path.iterdir()) == []
