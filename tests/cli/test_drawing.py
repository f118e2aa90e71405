"""A result is saved before it is drawn, and no drawing changes how a run ended."""

from __future__ import annotations

import json
import os

import matplotlib.pyplot as plt
import pytest

from drakebots.cli import main, options
from drakebots.results import load_result
from tests.helpers.hostile import HOSTILE, hostile_robot

BARE = """<robot name="bare"><link name="box"><inertial><mass value="1"/>
<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
</robot>"""


def _fail(*args, **options):
    raise RuntimeError("the browser\nis gone")


@pytest.fixture
def bare(tmp_path):
    path = tmp_path / "bare.urdf"
    path.write_text(BARE)
    return path


@pytest.fixture
def command(bare, tmp_path):
    """A run of 10 ms that is drawn in both ways."""
    out = {flag: tmp_path / f"out{end}" for flag, end in _ENDINGS.items()}
    words = ["simulate", str(bare), "--duration", "0.01", "--json"]
    return [*words, *(str(w) for pair in out.items() for w in pair)], out


_ENDINGS = {"--plot": ".png", "--html": ".html", "-o": ".nc"}


@pytest.mark.parametrize("error", [RuntimeError, SystemExit, MemoryError])
def test_a_failed_drawing_is_a_warning(command, error, monkeypatch, capsys):
    words, out = command

    def fail(*args, **options):
        assert out["-o"].is_file(), "drawn before it was saved"
        raise error("the browser\nis gone")

    monkeypatch.setattr(options, "record", fail)
    code = main(words)
    said = capsys.readouterr()
    result = load_result(out["-o"])
    assert code == (0 if result.ok else 1)
    (line,) = (x for x in said.err.splitlines() if "could not draw" in x)
    assert f"saved {out['-o']}; could not draw {out['--html']}" in line
    assert "the browser is gone" in line
    files = json.loads(said.out.splitlines()[-1])["files"]
    assert files == [str(out["-o"]), str(out["--plot"])]
    assert not out["--html"].exists()


@pytest.mark.parametrize("name", ["plot", "record"])
def test_looking_at_a_result_fails_on_one_line(command, name, monkeypatch, capsys):
    words, out = command
    main(words)
    capsys.readouterr()
    monkeypatch.setattr("drakebots.robots.registry.resolve", lambda name: _fail)
    path = str(out["-o"])
    asked = {
        "plot": ["report", path, "--plot", str(out["--plot"])],
        "record": ["view", path, "--html", str(out["--html"])],
    }
    assert main(asked[name]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "the browser is gone" in said


def test_a_result_is_looked_at_after_its_model_is_gone(command, bare, capsys):
    words, out = command
    main(words)
    bare.unlink()
    capsys.readouterr()
    assert main(["view", str(out["-o"]), "--html", str(out["--html"])]) == 0
    warning = capsys.readouterr().err
    assert warning.count("\n") == 1 and "is gone" in warning


def test_names_are_no_markup(tmp_path, capsys):
    """What a console, a picture or a page would take for markup is shown as it is."""
    path = hostile_robot(tmp_path)
    assert main(["show", str(path)]) == 0
    shown = capsys.readouterr().out
    page, picture = tmp_path / "run.html", tmp_path / "run.png"
    words = ["simulate", str(path), "--duration", "0.01"]
    main([*words, "--html", str(page), "--plot", str(picture)])
    said = capsys.readouterr()
    assert "could not draw" not in said.err and picture.is_file()
    text = page.read_text()
    for name in HOSTILE:
        assert name in shown.replace("\n", "")
        if "<" in name:
            assert name not in text
    assert not plt.get_fignums()


def test_control_characters_are_written_out(tmp_path, capsys):
    """A terminal would obey an escape, and a result holds no line break in a name."""
    path = tmp_path / "a\x1b[31m\nb.urdf"
    path.write_text(BARE)
    out = tmp_path / "run.nc"
    assert main(["show", str(path)]) == 0
    main(["simulate", str(path), "--duration", "0.01", "-o", str(out)])
    said = capsys.readouterr()
    assert "\x1b[31m" not in said.out + said.err
    assert "a\\x1b[31m b" in said.out.replace("\n", "")
    assert load_result(out).model == "a\\x1b[31m b"


def test_a_path_that_no_result_could_name_is_refused_before_the_work(tmp_path, capsys):
    path = tmp_path / os.fsdecode(b"robot\xff.urdf")
    path.write_text(BARE)
    assert main(["simulate", str(path), "--duration", "0.01"]) == 2
    assert "rename it" in capsys.readouterr().err
