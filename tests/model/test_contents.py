"""What `show` lists: bodies, joints, motors, frames, loops and what could be feet."""

from __future__ import annotations

import json

import pytest

from drakebots import load
from drakebots.model import model_contents
from tests.formats.read.urdf.test_joined_frames import five_bar
from tests.model.feet.test_candidates import ball_end, quadruped


def test_a_quadruped_in_tables(tmp_path):
    path = quadruped(tmp_path, ball_end, '<frame name="eye" link="trunk" xyz="1 2 3"/>')
    contents = model_contents(load(path))
    assert json.loads(json.dumps(contents)) == contents
    bodies = {row["body"]: row for row in contents["bodies"]}
    assert len(bodies) == 13
    assert (bodies["trunk"]["mass_kg"], bodies["trunk"]["collision shapes"]) == (9, 1)
    joints = {row["joint"]: row for row in contents["joints"]}
    hip = joints["FL_thigh_joint"]
    assert (hip["parent"], hip["child"]) == ("trunk", "FL_thigh")
    assert (hip["lower"], hip["upper"], hip["default"]) == (-1, 1, 0)
    motors = contents["motors"]
    assert len(motors) == 8 and {row["effort"] for row in motors} == {9.0}
    assert {row["from"] for row in motors} == {"added"}
    frames = {row["frame"]: row for row in contents["frames"]}
    assert frames == {"eye": {"frame": "eye", "body": "trunk", "p_BF_m": [1, 2, 3]}}
    feet = contents["could be feet"]
    assert [row["link"] for row in feet if row["foot"]] == [
        f"{n}_end" for n in ("FL", "FR", "RL", "RR")
    ]
    assert all(row["height_m"] == pytest.approx(0, abs=1e-9) for row in feet)


def test_loops_in_a_table(tmp_path):
    contents = model_contents(load(five_bar(tmp_path, "6d")))
    (loop,) = contents["loops"]
    assert (loop["A"], loop["B"], loop["kind"]) == ("tip_b", "tip_d", "weld")
    assert loop["rows"] == 3


def test_feet_that_the_file_gives_are_ranked_too():
    contents = model_contents(load("skinned_leg"))
    assert [row["foot"] for row in contents["could be feet"]].count(True) == 1
