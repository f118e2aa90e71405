"""What every command's options have in common: files to write, words not known."""

from __future__ import annotations

import json

import pytest

from drakebots.cli import inputs, main, parse
from drakebots.results import load_result

BOX = """<robot name="box"><link name="box">
<inertial><mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0"
ixz="0" iyz="0"/></inertial>
<collision><geometry><sphere radius="0.1"/></geometry></collision>
</link></robot>"""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A robot's file and a run of it."""
    folder = tmp_path_factory.mktemp("box")
    box, run = folder / "box.urdf", folder / "run.nc"
    box.write_text(BOX)
    assert main(["simulate", str(box), "--duration", "0.01", "-o", str(run)]) == 0
    return box, run


BAD = [
    ([], "COMMAND"),
    (["simulat", "BOX"], "did you mean 'simulate'"),
    (["show"], "required: model"),
    (["simulate", "lizzard", "--motion", "sine"], "did you mean 'lizard'"),
    (["plan", "none.json", "--target", "1,3,4:x=5mm"], "none.json"),
    (["export", "none.nc", "--servos", "x.csv"], "none.nc: there is no such file"),
    (["track", "BOX", "--imu"], "is not a netCDF file"),
    (["show", "BOX", "--units"], "expected one argument"),
    (["show", "BOX", "--unit", "SI"], "did you mean --units?"),
    (["report", "RUN", "other.nc"], "other.nc does not apply to `drakebots report`"),
    (["simulate", "BOX", "--duration", "long"], "'long'"),
    (["simulate", "BOX", "--time", "1"], "--time-step or --time-limit"),
    (["plan", "hamr", "--time", "1"], "did you mean --time-limit?"),
    (["plan", "hamr", "--resume", "BOX"], "--checkpoint"),
    (["plan", "hamr", "--time-limit", "-1"], "must be > 0 s"),
    (["simulate", "BOX", "--plot", "x.doc", "-o", "x.nc"], ".png, .pdf or .svg"),
    (["simulate", "BOX", "-o", "x.nc", "--csv", "./x.nc"], "--output and --csv"),
    (["simulate", "BOX", "-o", "BOX"], "would be overwritten"),
    (["report", "RUN", "--csv", "RUN"], "would be overwritten"),
    (["design", "beetle", "-o", "BOX"], "is a file; name a folder"),
    (["design", "beetle", "-o", "BOX/out"], "is a file; name a folder"),
    (["design", "beetle", "-o", "/proc/out/deep"], "cannot write into /proc"),
    (["limbs", "BOX", "none.yaml", "-o", "BOX"], "would be overwritten"),
    (["view", "BOX", "--seconds", "-1"], "seconds"),
    (["view", "BOX", "--slow", "2"], "--slow"),
    (["view", "RUN", "--html", "/nowhere/x.html"], "/nowhere"),
]


@pytest.mark.parametrize(
    ("argv", "word"), BAD, ids=lambda x: x if isinstance(x, str) else " ".join(x)[:40]
)
def test_one_line_and_nothing_written(argv, word, files, tmp_path, monkeypatch, capsys):
    """One line, exit 2; neither a new file nor one that is changed."""
    monkeypatch.chdir(tmp_path)
    before = [path.read_bytes() for path in files]
    box, run = map(str, files)
    assert main([w.replace("BOX", box).replace("RUN", run) for w in argv]) == 2
    err = capsys.readouterr().err
    assert word in err and err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
    assert [path.read_bytes() for path in files] == before


def test_a_run_may_replace_an_older_one(files, tmp_path):
    """Only what the command reads is safe from it."""
    out = tmp_path / "run.nc"
    out.write_bytes(files[1].read_bytes())
    argv = ["simulate", str(files[0]), "--duration", "0.02", "-o", str(out)]
    assert main(argv) == 0
    assert load_result(out).data.time.values[-1] == pytest.approx(0.02)


def test_the_model_may_stand_behind_a_switch(capsys):
    """`show --json skinned_leg` is of the skinned robot, not of its skeleton."""
    facts = []
    for argv in (["show", "--json", "skinned_leg"], ["show", "skinned_leg", "--json"]):
        assert main(argv) == 0
        facts.append(json.loads(capsys.readouterr().out.strip().splitlines()[-1]))
    assert facts[0] == facts[1] and facts[0]["skin_vertices"] > 0


def test_the_value_of_an_option_is_no_model(files):
    """A robot's name elsewhere on the line does not make it that robot."""
    args = parse(["simulate", str(files[0]), "--feet", "hamr", "--height", "1"])
    assert args.height == 1


def test_a_result_is_read_once(files, monkeypatch, tmp_path):
    """To know what it is and to use it; anew when the file has changed."""
    run = tmp_path / "run.nc"
    run.write_bytes(files[1].read_bytes())
    read = []

    def load(path):
        read.append(path)
        return load_result(path)

    monkeypatch.setattr(inputs.results, "load_result", load)
    assert inputs.kind_of(str(run)) == "legged.simulation"
    assert inputs.stored(run).ok
    assert len(read) == 1
    load_result(run).save(run)
    inputs.stored(run)
    assert len(read) == 2


@pytest.mark.parametrize(
    "command, words",
    [
        ("mpc mini_cheetah", "iterations (2), delay [s]"),
        ("mpc monster", "skin (reduced), time_step [s] (0.005)"),
        ("simulate gecko", "Drake: incline [rad] (0)"),
        ("plan beetle", "torque [N m], cop_margin [m] (0)"),
    ],
)
def test_help_names_what_is_in_a_part(command, words, capsys):
    with pytest.raises(SystemExit):
        main([*command.split(), "--help"])
    assert words in " ".join(capsys.readouterr().out.split())


def test_help_of_a_choice_names_each_once(capsys):
    """Not the classes between, and the fields of what an option says several times."""
    with pytest.raises(SystemExit):
        main(["plan", "any.urdf", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "Motion:" not in text and "_Steps" not in text
    assert text.count("Hop: height [m]") == 1
    assert "base or feet pass; with what, p_W [m], share, time [s]" in text
