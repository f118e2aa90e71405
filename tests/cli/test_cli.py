"""The command line: what it prints, writes and refuses."""

from __future__ import annotations

import argparse
import json
import shlex
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from drakebots.cli import COMMANDS, find_command, inputs, main, parse
from drakebots.core.run import Command as Running
from drakebots.core.run import CtrlC
from drakebots.formats import load
from drakebots.results import load_result
from tests.helpers.robot_files import mesh, quadruped, write
from tests.helpers.scripts import is_picture

BOX = """<robot name="box"><link name="box">
<inertial><mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0"
ixz="0" iyz="0"/></inertial>
<visual><geometry><box size="0.2 0.2 0.2"/></geometry></visual>
<collision><geometry><sphere radius="0.1"/></geometry></collision>
</link></robot>"""


def last_json(text: str) -> dict:
    return json.loads(text.strip().splitlines()[-1])


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """One short trot through the command line, with all its files."""
    folder = tmp_path_factory.mktemp("run")
    files = {e: folder / f"run.{e}" for e in ("nc", "csv", "html", "png")}
    argv = ["simulate", "hamr", "--cycles", "1", "-o", str(files["nc"]), "--json"]
    argv += ["--csv", str(files["csv"]), "--html", str(files["html"])]
    assert main([*argv, "--plot", str(files["png"])]) == 0
    return files


@pytest.fixture
def box(tmp_path):
    path = tmp_path / "box.urdf"
    path.write_text(BOX)
    return path


def test_simulate_writes_all_its_files(run):
    """Every file is there, and the folder holds nothing else."""
    assert run["csv"].read_text().startswith("time [s],")
    assert "</html>" in run["html"].read_text()
    assert is_picture(run["png"])
    assert {p.name for p in run["nc"].parent.iterdir()} == {
        p.name for p in run.values()
    }
    assert load_result(run["nc"]).ok


def test_report_gives_the_promised_names(run, capsys):
    """`report --json` carries the figures other programs read."""
    assert main(["report", str(run["nc"]), "--json"]) == 0
    facts = last_json(capsys.readouterr().out)
    assert facts["verdict"] == "success"
    assert facts["cycles"] == 1
    assert 5 < facts["stride_mm_per_cycle"] < 12
    assert 0 < facts["slip"] < 1
    assert 0 < facts["loop_gap_max_mm"] < 1e-3


def test_models_and_show(capsys):
    """The model list and what HAMR contains."""
    assert main(["models", "--json"]) == 0
    names = [m["name"] for m in last_json(capsys.readouterr().out)["models"]]
    assert "hamr" in names
    assert main(["show", "hamr", "--json"]) == 0
    facts = last_json(capsys.readouterr().out)
    assert facts["num_velocities"] == 38
    assert facts["independent_loop_rows"] == 24
    assert len(facts["feet"]) == 4


def test_a_run_is_no_plan(run, tmp_path, monkeypatch, capsys):
    """One line names the kind and those that can be tracked."""
    monkeypatch.chdir(tmp_path)
    assert main(["track", str(run["nc"])]) == 2
    err = capsys.readouterr().err
    assert "'hamr.simulation' cannot be" in err and "hamr.plan" in err
    assert err.count("\n") == 1 and not list(tmp_path.iterdir())


def test_drake_does_not_chat(box, tmp_path):
    """A page that is written prints notes on the model, but not Meshcat's port."""
    command = [sys.executable, "-m", "drakebots", "view", str(box)]
    done = subprocess.run(
        [*command, "--html", str(tmp_path / "box.html")], capture_output=True, text=True
    )
    assert done.returncode == 0
    lines = done.stderr.splitlines()
    assert lines == ["box: " + note for note in load(box).notes]


def test_the_three_notes_that_matter_are_printed_and_the_rest_counted(tmp_path, capsys):
    """What is only ignored comes last, though it stands first in the file."""
    lost = mesh("gone.stl") + mesh("gone.obj", "visual")
    path = write(tmp_path, quadruped(torso=lost, rest="<gazebo/>"))
    argv = ["export", str(path), "--urdf", str(tmp_path / "out.urdf")]
    notes = ["robot: " + note for note in load(path).notes]
    assert len(notes) == 5 and "Drake ignores: <gazebo>" in notes[-1]
    assert all("is not found" in note for note in notes[:2])
    assert main(argv) == 0
    shown = capsys.readouterr().err.splitlines()
    assert shown == [*notes[:3], "robot: (2 more: --notes all)"]
    assert main([*argv, "--notes", "all"]) == 0
    assert capsys.readouterr().err.splitlines() == notes


def test_any_model_falls_and_rests(box, tmp_path, capsys):
    """A user's own URDF comes to rest on the ground at its radius."""
    out = tmp_path / "box.nc"
    argv = ["simulate", str(box), "--duration", "1", "-o", str(out), "--json"]
    assert main(argv) == 0
    assert abs(last_json(capsys.readouterr().out)["final_height_m"] - 0.1) < 1e-3
    assert main(["view", str(out), "--html", str(tmp_path / "box.html")]) == 0
    assert main(["view", str(box), "--html", str(tmp_path / "model.html")]) == 0


def test_live_view_serves_and_ends(box, capsys):
    """Without --html a Meshcat server runs."""
    assert main(["view", str(box), "--seconds", "0.2"]) == 0
    assert "http://" in capsys.readouterr().out


BAD = [
    (["show", "hamrr"], "did you mean 'hamr'"),
    (["show", "missing.urdf"], "no such file"),
    (["show", "hamr", "--units", "inch"], "choose one of"),
    (["show", "hamr", "--feet", "nose"], "unknown foot 'nose'"),
    (["simulate", "hamr", "--gait", "trott"], "did you mean 'trot'"),
    (["simulate", "hamr", "--surface", "ice"], "card, sandpaper, teflon"),
    (["simulate", "hamr", "--frequency", "0"], "must be > 0 Hz"),
    (["simulate", "hamr", "--frequency", "nan"], "not finite"),
    (["simulate", "hamr", "--frequency", "-3"], "must be > 0 Hz"),
    (["simulate", "hamr", "--swing-voltage", "200"], "0..112.5 V"),
    (["simulate", "hamr", "--surface", "nan"], "surface"),
    (["simulate", "hamr", "--surface", "-1"], "surface"),
    (["simulate", "hamr", "--cycles", "0"], "cycles"),
    (["simulate", "hamr", "--time-step", "0.01"], "time step"),
    (["simulate", "hamr", "--duration", "1"], "does not apply"),
    (["simulate", "hamr", "--gait", "jump", "--frequency", "3"], "not periodic"),
    (["report", "missing.nc"], "missing.nc"),
    (["view", "missing.nc"], "missing.nc"),
    (["view", "hamr", "--port", "80"], ">= 1024 and <= 65535"),
]


@pytest.mark.parametrize(("argv", "word"), BAD, ids=lambda x: " ".join(x)[:40])
def test_bad_input_is_one_line(argv, word, tmp_path, monkeypatch, capsys):
    """One line that names the item, exit 2, nothing left behind."""
    monkeypatch.chdir(tmp_path)
    if argv[0] == "simulate":
        argv = [*argv, "-o", "out.nc"]
    assert main(argv) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert word in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("option", ["-o", "--html", "--plot", "--csv"])
def test_unwritable_output_is_found_before_the_work(option, capsys):
    """The folder is checked before anything is simulated."""
    code = main(["simulate", "hamr", "--cycles", "100000", option, "/nowhere/x.nc"])
    assert code == 2
    assert "/nowhere" in capsys.readouterr().err


def test_truncated_result_is_one_line(run, tmp_path, capsys):
    """A result cut in half is refused, by name."""
    cut = tmp_path / "cut.nc"
    cut.write_bytes(run["nc"].read_bytes()[:20000])
    assert main(["report", str(cut)]) == 2
    err = capsys.readouterr().err
    assert "cut.nc" in err
    assert err.count("\n") == 1


@pytest.mark.long
def test_time_limit_keeps_what_was_reached(tmp_path, capsys, monkeypatch):
    """A run out of time exits 1 and its result loads, marked so; nothing is drawn."""
    limit, check, checks = Running.limit, CtrlC.check, iter(range(10**6))

    def late(self):
        if next(checks) == 30:
            limit(running[0], 1e-3)
            time.sleep(0.01)
        check(self)

    running = []
    monkeypatch.setattr(Running, "limit", lambda self, seconds: running.append(self))
    monkeypatch.setattr(CtrlC, "check", late)
    out = tmp_path / "late.nc"
    argv = ["simulate", "hamr", "--cycles", "50", "--time-limit", "100", "-o", str(out)]
    assert main([*argv, "--html", str(tmp_path / "late.html")]) == 1
    err = capsys.readouterr().err
    assert "time limit" in err and f"saved {out}; could not draw" in err
    assert [file.name for file in tmp_path.iterdir()] == ["late.nc"]
    result = load_result(out)
    assert result.verdict == "time limit"
    assert result.data.sizes["time"] > 1


FORMS = [
    (name, form)
    for name in COMMANDS
    for form in (None, *(f.title for f in find_command(name).forms()))
]


@pytest.mark.parametrize(("name", "title"), FORMS, ids=str)
def test_help_has_an_example_that_parses(name, title, capsys, monkeypatch):
    """Every form of every command ends its help with an example the parser takes."""
    command = find_command(name)
    form, words = command.general, []
    if title is not None:
        (found,) = (f for f in command.forms() if f.title == title)
        form = found.load()
        words = [shlex.split(form.example)[2]]
    if name in ("track", "refine") or (name == "export" and title):
        kind = (title or "a result of kind hamr.plan").rpartition(" ")[2]
        plan = SimpleNamespace(kind=kind)
        monkeypatch.setattr(inputs, "stored", lambda path: plan)
    with pytest.raises(SystemExit):
        main([name, *words, "--help"])
    assert form.example in " ".join(capsys.readouterr().out.split())
    assert parse(shlex.split(form.example)[1:]).command == name


HEAVY = (
    "drakebots.identify",
    "drakebots.skin.coupled",
    "scipy.stats",
    "matplotlib",
    "trimesh",
    "casadi",
    "numba",
    "xarray",
    "pydrake",
    "scipy",
)


@pytest.mark.parametrize(
    "words, needed",
    [("--help", ()), ("show hamr", HEAVY[-2:]), ("plan dog.urdf --help", HEAVY[-5:])],
)
def test_commands_import_what_they_need(words, needed):
    """`--help` loads neither Drake nor another heavy library, `show` no more; what
    plans does not load what draws, identifies or bends skins."""
    code = (
        "import sys\nfrom drakebots.cli import main\n"
        f"try: main({words.split()!r})\n"
        "except SystemExit: pass\n"
        f"print(sorted({{*{HEAVY!r}}} - {{*{needed!r}}} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_track_help_shows_all_options_without_a_file(capsys):
    with pytest.raises(SystemExit):
        main(["track", "--help"])
    out = capsys.readouterr().out
    assert "hamr.plan" in out and "--gains" in out
    assert "quads.plan" in out and "--settle" in out


def test_no_room_for_what_is_printed_is_no_traceback():
    command = [sys.executable, "-m", "drakebots", "models", "--json"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    said = done.stderr.splitlines()[-1]
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "No space left" in said and "make room" in said


def test_a_signal_that_comes_out_of_c_as_an_error_claims_no_result(monkeypatch, capsys):
    """As from a conversion of CasADi, before there is anything to keep."""

    def build(args):
        try:
            signal.raise_signal(signal.SIGTERM)
        except KeyboardInterrupt:
            raise SystemError("returned a result with an exception set") from None

    args = argparse.Namespace(command="identify", json=False, run=build)
    monkeypatch.setattr("drakebots.cli.parse", lambda argv: args)
    assert main([]) == 143
    said = capsys.readouterr().err
    assert said == "drakebots: stopped by SIGTERM, before it had a result\n"


PRESSED = """
import os, signal, sys
from drakebots.cli import main
from drakebots.core.run import CtrlC

checks, check = 0, CtrlC.check

def press(self):
    global checks
    checks += 1
    if checks == 30:
        os.kill(os.getpid(), signal.SIGINT)
    check(self)

CtrlC.check = press
sys.exit(main(sys.argv[1:]))
"""
"""The command line, where Ctrl-C comes once the run is well on its way."""


@pytest.mark.long
def test_ctrl_c_keeps_what_was_reached(tmp_path):
    """SIGINT in a long run: exit 130, and a result marked interrupted."""
    out = tmp_path / "cut.nc"
    argv = ["simulate", "hamr", "--cycles", "2000", "-o", str(out)]
    child = subprocess.run(
        [sys.executable, "-c", PRESSED, *argv],
        capture_output=True,
        timeout=300,
        # A parent that ignores SIGINT must not make the child ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    err = child.stderr
    assert child.returncode == 130, err
    assert b"interrupted" in err
    result = load_result(out)
    assert result.verdict == "interrupted"
    assert result.data.sizes["time"] > 10


def test_a_model_is_exported(tmp_path, capsys):
    """All formats at once; and what a model or a result has not is refused."""
    argv = ["export", "skinned_leg", "--mjcf", str(tmp_path / "leg.xml"), "--json"]
    argv += ["--urdf", str(tmp_path / "leg.urdf"), "--sdf", str(tmp_path / "leg.sdf")]
    assert main([*argv, "--friction", "0.5"]) == 0
    assert len(last_json(capsys.readouterr().out)["files"]) == 3
    assert 'name="ground"' in (tmp_path / "leg.xml").read_text()


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (["brick"], "--mjcf, --urdf, --sdf"),
        (["brick", "--csv", "x.csv"], "--csv does not apply to a model"),
        (["brick", "--mjcf", "x.urdf"], "needs the ending .xml"),
        (["brick", "--urdf", "x.urdf", "--friction", "1"], "--friction does not apply"),
        (["RUN"], "say what to write of a result: --csv"),
        (["RUN", "--mjcf", "x.xml"], "--mjcf does not apply to a result"),
        (["RUN", "--csv", "x.nc"], "needs the ending .csv"),
        (["nothing"], "nothing"),
    ],
)
def test_bad_exports(argv, text, run, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    argv = [str(run["nc"]) if word == "RUN" else word for word in argv]
    assert main(["export", *argv]) == 2
    err = capsys.readouterr().err
    assert text in err and err.count("\n") == 1 and not list(tmp_path.iterdir())
