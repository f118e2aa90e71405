"""The zoo: what does not load, crashes or never ends is a row; known rows are kept."""

from __future__ import annotations

import csv
import json
import os
import signal
import sys
import threading
import time

import numpy as np
import pytest
import xarray as xr

from drakebots.core.errors import FileProblem, InvalidInput
from tests.helpers.scripts import last_json, load_script

Children, Limits = load_script("robot_zoo.children", "Children", "Limits")
find_files, is_legged = load_script("robot_zoo.finding", "find_files", "is_legged")
Try = load_script("robot_zoo.stages").Try
counts, row_of = load_script("robot_zoo.table", "counts", "row_of")
false_successes = load_script("robot_zoo.recompute").false_successes

LEG = """<link name="{0}_foot"><inertial><mass value="0.1"/>
<inertia ixx="1e-4" iyy="1e-4" izz="1e-4" ixy="0" ixz="0" iyz="0"/></inertial>
<collision><geometry><sphere radius="0.02"/></geometry></collision></link>
<joint name="{0}" type="revolute"><parent link="base"/><child link="{0}_foot"/>
<origin xyz="{1} -0.2"/><axis xyz="0 1 0"/>
<limit lower="-1" upper="1" effort="5" velocity="9"/></joint>"""
ROBOT = (
    '<robot name="two"><link name="base"><inertial><mass value="1"/>'
    '<inertia ixx="1e-2" iyy="1e-2" izz="1e-2" ixy="0" ixz="0" iyz="0"/></inertial>'
    "</link>" + LEG.format("left", "0 0.1") + LEG.format("right", "0 -0.1") + "</robot>"
)


def run(zoo, capsys, *argv):
    """What the script returns, having printed it as its last line."""
    result = zoo.main(list(map(str, argv)))
    assert last_json(capsys.readouterr().out).items() <= result.items()
    return result


def rows(folder):
    with open(folder / "table.csv", newline="") as file:
        return {row["name"]: row for row in csv.DictReader(file)}


@pytest.mark.long
def test_a_robot_and_a_broken_file(tmp_path, capsys):
    """One row each; the second run finds both known and starts nothing."""
    (tmp_path / "two.urdf").write_text(ROBOT)
    (tmp_path / "broken.urdf").write_text(ROBOT.replace("</robot>", ""))
    (tmp_path / "list.txt").write_text("two.urdf 2\nbroken.urdf  # half of a file\n")
    zoo, out = load_script("zoo"), tmp_path / "out"
    argv = (tmp_path / "list.txt", "-o", out, "--stages", "show", "--json")
    first = run(zoo, capsys, *argv)
    assert (first["of"], first["loaded"], first["feet_found"]) == (2, 1, 1)
    assert first["ended"] == "done"
    found = rows(out)
    assert found["two"]["show"] == "ok" and found["two"]["legs"] == "2"
    assert found["broken"]["show"] == "refused" and "XML" in found["broken"]["why"]
    states = {p: p.stat().st_mtime_ns for p in out.glob("*/show.out")}
    assert run(zoo, capsys, *argv) == first
    assert {p: p.stat().st_mtime_ns for p in out.glob("*/show.out")} == states
    (tmp_path / "two.urdf").write_text(
        ROBOT.replace('mass value="1"', 'mass value="2"')
    )
    run(zoo, capsys, *argv)
    assert float(rows(out)["two"]["mass_kg"]) == pytest.approx(2.2)


def test_stages_that_cannot_be_tried(tmp_path, capsys):
    """A file that does not load is neither held nor planned for."""
    (tmp_path / "broken.urdf").write_text("<robot")
    zoo, out = load_script("zoo"), tmp_path / "out"
    run(zoo, capsys, tmp_path / "broken.urdf", "-o", out, "--json")
    row = rows(out)["broken"]
    assert {row[s] for s in ("stand", "simulate", "plan", "track")} == {"not tried"}


@pytest.mark.parametrize(
    "program, word",
    [
        ("print('{}')", "ok"),
        ("raise SystemExit(1)", "failed"),
        ("raise SystemExit(2)", "refused"),
        ("1 / 0", "traceback"),
        ("import os; os.abort()", "crashed"),
        ("while True: pass", "time limit"),
        ("x = bytearray(10**10)", "out of memory"),
    ],
)
def test_children(tmp_path, program, word):
    """Every way to end is reported by its word, and takes seconds at most."""
    limits = Limits(1.0, memory=2.0)
    with Children() as children:
        command = [sys.executable, "-c", program]
        outcome = children.run(command, limits, log=tmp_path / "log")
    assert outcome.word == word
    assert outcome.cpu < 3


def test_a_sleeping_child_is_ended(tmp_path):
    """The limit of processor time bounds the wait too."""
    with Children() as children:
        command = [sys.executable, "-c", "import time; time.sleep(60)"]
        outcome = children.run(command, Limits(0.3), log=tmp_path / "log")
    assert outcome.word == "time limit" and outcome.wall < 10


def test_interrupt(tmp_path, capsys):
    """Ctrl-C ends the child, keeps what was done, and the table is written."""
    (tmp_path / "two.urdf").write_text(ROBOT)
    zoo, out = load_script("zoo"), tmp_path / "out"

    def interrupt():
        while not any(out.rglob("*.out")):  # until the child writes
            time.sleep(0.002)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    result = run(zoo, capsys, tmp_path / "two.urdf", "-o", out, "--stages", "show")
    assert result["ended"] == "interrupted" and result["loaded"] == 0
    assert "two" in rows(out)


def test_which_files_are_legged(tmp_path):
    """By the names of links and joints; neither arms nor other XML."""
    path = tmp_path / "robot.urdf"
    for text, legged in [
        (ROBOT, True),
        (ROBOT.replace("foot", "hand"), False),
        (ROBOT.replace("foot", "footprint"), False),
        (ROBOT.replace("revolute", "fixed"), False),
        (ROBOT.replace("robot", "html"), False),
        ('<mujoco><body name="L_Shin"><joint/><joint name="k"/></body></mujoco>', True),
    ]:
        path.write_text(text)
        assert is_legged(path) == legged, text[:60]


def test_names_differ(tmp_path):
    """Files of one name are told apart by the folders that tell something."""
    for folder in ("a/urdf", "b/urdf"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "robot.urdf").write_text(ROBOT)
    (tmp_path / "solo.urdf").write_text(ROBOT)
    names = {robot.name for robot in find_files([str(tmp_path)])}
    assert names == {"a-robot", "b-robot", "solo"}


def test_bad_lists(tmp_path):
    with pytest.raises(FileProblem, match="no such file"):
        find_files([str(tmp_path / "none.urdf")])
    with pytest.raises(InvalidInput, match="no robot to try"):
        find_files([str(tmp_path)])
    for line, words in [("none.urdf", "list.txt:1"), ("a b", "number of legs")]:
        (tmp_path / "list.txt").write_text(line)
        with pytest.raises((FileProblem, InvalidInput), match=words):
            find_files([str(tmp_path / "list.txt")])


@pytest.mark.parametrize(
    "argv, words",
    [
        (["none.urdf"], "no such file"),
        (["--stages", "shwo"], "did you mean 'show'"),
        (["--jobs", "0"], "--jobs must be"),
        (["--time-limit", "-1"], "--time-limit must be"),
    ],
)
def test_bad_arguments(tmp_path, capsys, argv, words):
    """One line, before anything is tried."""
    with pytest.raises(SystemExit) as caught:
        load_script("zoo").main([*argv, "-o", str(tmp_path / "out")])
    assert caught.value.code == 2
    assert words in capsys.readouterr().err


def test_counts(tmp_path):
    """Feet count by what was expected; medians are of robots with as many legs."""
    (tmp_path / "list.txt").write_text("dog.urdf 4\nman.urdf 2\narm.urdf 0\n")
    for name in ("dog", "man", "arm"):
        (tmp_path / f"{name}.urdf").write_text(ROBOT)
    dog, man, arm = find_files([str(tmp_path / "list.txt")])
    show = Try("ok", facts={"feet": {k: {"body": k} for k in "abcd"}})
    tries = {"show": show, "plan": Try("ok", cpu=30.0)}
    late = tries | {"plan": Try("ok", cpu=90.0)}

    def tracked(share, strides=(1.0, 0.9)):
        return {"track": Try("ok", facts={"stride_share": share, "stride_m": strides})}

    found = counts(
        [
            row_of(dog, tries | tracked(0.81)),
            row_of(man, late | tracked(0.79)),
            row_of(arm, {"show": Try("ok")}),
        ]
    )
    soles = [{"foot": True, "joints": 6, "points": 4} for _ in "ab"]
    facts = {**show.facts, "contents": {"could be feet": soles}}
    for motors, walks in ((11, [0, 0]), (12, [1, 1])):
        shown = Try("ok", facts=facts | {"actuators": [""] * motors})
        told = counts([row_of(man, late | {"show": shown} | tracked(0.9))])
        assert told["planned_2"] == told["tracked_2"] == walks
    uneven = row_of(dog, tries | tracked(1.0, (0.5, 1.5)), ["track: it lies"])
    assert uneven.worst_stride == 0.5
    told = counts([uneven])
    assert (told["tracked"], told["false_success"], found["false_success"]) == (0, 1, 0)
    assert (found["loaded"], found["legged"], found["feet_found"]) == (3, 2, 1)
    assert (found["planned"], found["tracked"]) == (2, 1)
    assert (found["planned_4"], found["plan_median_s_4"]) == ([1, 1], 30.0)
    assert (found["tracked_4"], found["tracebacks"]) == ([1, 1], 0)
    assert found["planned_2"] == [0, 0]  # the man has no soles, as far as is known


ANT = """<mujoco><worldbody><body name="torso" pos="0 0 0.5">
  <geom type="sphere" size="0.1" mass="1"/>{}</body></worldbody></mujoco>"""
THIGH = """<body name="leg{0}" pos="0 {1} 0"><joint name="hip{0}" axis="0 1 0"/>
  <geom type="capsule" fromto="0 0 0 0 0 -0.3" size="0.02" mass="0.1"/></body>"""


@pytest.mark.long
def test_a_base_that_the_file_fixes(tmp_path, capsys):
    """It is freed where legs hang on it, and the row says so; a slide is kept."""
    ant = ANT.format(THIGH.format(1, 0.1) + THIGH.format(2, -0.1))
    slide = '<joint name="z" type="slide" axis="0 0 1"/><geom'
    (tmp_path / "ant.xml").write_text(ant)
    (tmp_path / "planar.xml").write_text(ant.replace("<geom", slide, 1))
    zoo, out = load_script("zoo"), tmp_path / "out"
    argv = (tmp_path / "ant.xml", tmp_path / "planar.xml", "-o", out)
    run(zoo, capsys, *argv, "--stages", "show", "--json")
    found = rows(out)
    assert {name: row["freed"] for name, row in found.items()} == {
        "ant": "True",
        "planar": "False",
    }
    assert {row["legs"] for row in found.values()} == {"2"}


# --- successes judged again -------------------------------------------------

CYCLES, PERIOD, STEP = 2, 1.0, 0.2
SHOW = {
    "mass_kg": 10.0,
    "free_bases": 1,
    "feet": {name: {"radius_m": 0.02} for name in ("left", "right")},
}


def walked(path, change=lambda data: data):
    """A walk on two feet of which one carries all the weight at a time, stored."""
    time = np.linspace(0.0, CYCLES * PERIOD, 41)
    ahead = STEP * time / PERIOD
    base = np.stack([ahead, 0 * time, 0.5 + 0 * time], 1)
    first = (time % PERIOD) < PERIOD / 2
    feet, force = np.zeros((41, 2, 3)), np.zeros((41, 2, 3))
    feet[..., 0], feet[..., 2] = ahead[:, None], 0.02
    force[first, 0, 2] = force[~first, 1, 2] = 10.0 * 9.81
    data = {
        "base_position": (("time", "axis"), base),
        "base_rpy": (("time", "angle"), 0 * base),
        "foot_position": (("time", "foot", "axis"), feet),
        "foot_force": (("time", "foot", "axis"), force),
    }
    data = xr.Dataset(data, {"time": time, "foot": list(SHOW["feet"])})
    data = change(data)
    data.attrs["drakebots_metrics"] = json.dumps({"friction": 0.7})
    data.to_netcdf(path, engine="h5netcdf")


def contradicted(folder, change):
    walked(folder / "plan.nc")
    walked(folder / "track.nc", change)
    run = {"period_s": PERIOD, "cycles_upright": CYCLES}
    tries = {"show": Try("ok", facts=SHOW), "plan": Try("ok")}
    tries["track"] = Try("ok", facts=run)
    return false_successes(folder, tries, CYCLES * STEP)


def shifted(name, at, by):
    """A change of what is stored under a name."""

    def change(data):
        values = data[name].values.copy()
        values[at] += by
        return data.assign({name: (data[name].dims, values)})

    return change


def test_a_success_that_its_arrays_bear_out(tmp_path):
    assert contradicted(tmp_path, lambda data: data) == []


@pytest.mark.parametrize(
    "change, said",
    [
        (shifted("foot_position", np.s_[5, 0, 2], -0.03), "0.03 m in the ground"),
        (shifted("foot_position", np.s_[2:5, 0, 2], 0.04), "a foot 0.04 m above it"),
        (shifted("foot_force", np.s_[2, 0, 1], 75.0), "leaves its cone by 0.065"),
        (shifted("foot_force", np.s_[2:9, 0, 2], -80.0), "carry 0.86 of the weight"),
        (shifted("base_rpy", np.s_[30, 1], 0.9), "it tilts by 52 deg, to 100%"),
        (shifted("base_position", np.s_[30, 2], -0.3), "it tilts by 0 deg, to 40%"),
        (shifted("base_position", np.s_[21:, 0], -0.2), "strides 0.200, 0.000 m"),
        (shifted("base_rpy", np.s_[3, 0], np.nan), "numbers that are not finite"),
        (lambda data: data.isel(time=slice(0, 30)), "it lasts 1.45 s, 2 cycles of 1.0"),
    ],
)
def test_a_success_that_its_arrays_contradict(tmp_path, change, said):
    (line,) = contradicted(tmp_path, change)
    assert line.startswith("track: ") and said in line


def test_a_plan_that_goes_elsewhere(tmp_path):
    walked(tmp_path / "plan.nc")
    tries = {"show": Try("ok", facts=SHOW), "plan": Try("ok")}
    (line,) = false_successes(tmp_path, tries, 1.0)
    assert line == "plan: it goes 0.4 m of 1"
    # What failed is none to contradict.
    assert false_successes(tmp_path, tries | {"plan": Try("failed")}, 1.0) == []
