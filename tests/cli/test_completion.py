"""What a shell completes, what numbers and tables look like, JSON alone on stdout."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from drakebots.cli import COMMANDS, complete, main
from drakebots.core.convert import quantity
from drakebots.core.errors import InvalidInput


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("", list(COMMANDS)),
        ("exp", ["export"]),
        ("simulate ha", ["hamr"]),
        ("simulate hamr --ga", ["--gait"]),
        ("simulate hamr --gait p", ["pronk", "pace"]),
        ("simulate gecko --motion f", ["fit"]),
        ("plan beetle --motion lift", ["lift_single", "lift_double"]),
        ("attach skeleton.urdf skin.vtk --between n", ["nearest"]),
        ("export hamr --up ", ["x", "y", "z", "xy", "yz", "zy"]),
        ("simulate hamr -o ru", []),
        ("nothing ", []),
    ],
)
def test_completion(line, wanted):
    assert complete(line.split(" ")) == wanted


def test_bash_completes(tmp_path, capsys):
    """The printed script asks the command, by a stand-in that shows the words."""
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    fake = tmp_path / "drakebots"
    fake.write_text('#!/bin/bash\nprintf "%s\\n" "${@:3}"\n')
    fake.chmod(0o755)
    script += 'COMP_WORDS=(drakebots simulate hamr "--ga" x); COMP_CWORD=3\n'
    script += '_drakebots; printf "%s|" "${COMPREPLY[@]}"'
    done = subprocess.run(
        ["bash", "-c", f"PATH={tmp_path}:$PATH; {script}"],
        capture_output=True,
        text=True,
    )
    assert done.stdout == "simulate|hamr|--ga|", done.stderr


@pytest.mark.parametrize(
    ("unit", "word", "value"),
    [
        ("Hz", "10", 10.0),
        ("Hz", "10Hz", 10.0),
        ("Hz", "0.01 kHz", 10.0),
        ("s", "2.5ms", 2.5e-3),
        ("Pa", "1.1bar", 1.1e5),
        ("rad", "30deg", np.pi / 6),
        ("N m or N", "3mN", 3e-3),
        ("N m or N", "3 N mm", 3e-3),
        ("N/m", "2N/mm", 2000.0),
        ("V", "-5V", -5.0),
        ("", "6e-1", 0.6),
    ],
)
def test_numbers_have_units(unit, word, value):
    assert quantity("--x", unit)(word) == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize(
    ("unit", "word", "why"),
    [
        ("Hz", "10mm", "'mm' is no unit for it; use Hz"),
        ("rad/s", "2Hz", "'Hz' is no unit"),
        ("", "0.6m", "takes no unit"),
        ("", "a lot", "is no number"),
        ("s", "1.2.3", "is no number"),
        ("V", "3A", "'A' is no unit"),
    ],
)
def test_other_units_are_refused(unit, word, why):
    with pytest.raises(InvalidInput, match=f"--x: .*{why}"):
        quantity("--x", unit)(word)


def test_json_is_alone_on_stdout(capsys):
    """And the table is on stderr, in lines of name and value."""
    assert main(["show", "brick", "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["name"] == "brick" and said.out.count("\n") == 1
    assert "mass [kg]: 1\n" in said.err
    assert main(["show", "brick"]) == 0
    said = capsys.readouterr()
    assert "mass [kg]: 1\n" in said.out and not said.err


def test_outputs_need_their_endings(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for flag, name in (("-o", "run.csv"), ("--csv", "run.nc"), ("--html", "run.png")):
        assert main(["simulate", "hamr", flag, name]) == 2
        assert "needs the ending" in capsys.readouterr().err
    assert not list(Path().iterdir())
