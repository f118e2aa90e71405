"""What a shell completes, what numbers and tables look like, JSON alone on stdout."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from drakebots.cli import COMMANDS, complete, main
from drakebots.cli.options import choices_of, quantity
from drakebots.core.errors import InvalidInput
from drakebots.robots.hamr import Simulation


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("", list(COMMANDS)),
        ("exp", ["export"]),
        ("simulate ha", ["hamr"]),
        ("simulate hamr --ga", ["--gait"]),
        ("simulate hamr --gait p", ["pace", "pronk"]),
        ("simulate gecko --motion-model f", ["fit"]),
        ("plan beetle --motion lift", ["lift_single", "lift_double"]),
        ("attach skeleton.urdf skin.vtk --between n", ["nearest"]),
        ("export hamr --up ", ["x", "y", "z"]),
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
    ("text", "word", "value"),
    [
        ("stride frequency [Hz]", "10", 10.0),
        ("stride frequency [Hz]", "10Hz", 10.0),
        ("stride frequency [Hz]", "0.01 kHz", 10.0),
        ("time [s]", "2.5ms", 2.5e-3),
        ("pressure [Pa]", "1.1bar", 1.1e5),
        ("tilt [rad]", "30deg", np.pi / 6),
        ("effort [N m, N]", "3mN", 3e-3),
        ("effort [N m, N]", "3 N mm", 3e-3),
        ("stiffness [N/m]", "2N/mm", 2000.0),
        ("voltage [V]", "-5V", -5.0),
        ("friction", "6e-1", 0.6),
    ],
)
def test_numbers_have_units(text, word, value):
    assert quantity("--x", text)(word) == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize(
    ("text", "word", "why"),
    [
        ("stride frequency [Hz]", "10mm", "'mm' is no unit for it; use Hz"),
        ("rate [rad/s]", "2Hz", "'Hz' is no unit"),
        ("friction", "0.6m", "takes no unit"),
        ("friction", "a lot", "is no number"),
        ("time [s]", "1.2.3", "is no number"),
        ("voltage [V]", "3A", "'A' is no unit"),
    ],
)
def test_other_units_are_refused(text, word, why):
    with pytest.raises(InvalidInput, match=f"--x: .*{why}"):
        quantity("--x", text)(word)


def test_choices_are_those_of_the_problem(capsys):
    assert choices_of(Simulation, "surface") == ("card", "sandpaper", "teflon")
    assert choices_of(Simulation, "model") == ()
    with pytest.raises(SystemExit):
        main(["track", "hamr:10hz_card", "--help"])
    assert "sap" in capsys.readouterr().out


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
