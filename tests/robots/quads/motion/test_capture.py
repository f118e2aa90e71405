"""Strides from motion capture: what was planted is found, on legs of another size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drakebots.core.errors import DrakebotsError, FileProblem
from drakebots.core.units import GRAVITY
from drakebots.robots.quads import Problem
from drakebots.robots.quads.motion import leg_height, read_motion, stride_length
from tests.helpers.captures import (
    HIP,
    LIFT,
    PERIOD,
    STRIDE,
    animal,
    write_bvh,
    write_capture,
)

WALK = {"rl": 0.1, "fl": 0.35, "rr": 0.6, "fr": 0.85}
TROT = {"fl": 0.15, "rr": 0.1, "fr": 0.62, "rl": 0.6}


def landings(motion):
    """First steps of the contacts of each foot, as shares of the motion."""
    n = len(motion) - 1
    down = motion.footfall.contact[:n]
    start = down & ~np.roll(down, 1, axis=0)
    feet = motion.footfall.feet
    return {foot: np.flatnonzero(start[:, j]) / n for j, foot in enumerate(feet)}


@pytest.fixture
def walking(tmp_path):
    return write_capture(tmp_path / "walk.csv", *animal(WALK, 0.8))


def test_a_walk_has_the_animals_footfall(walking, cow):
    motion = read_motion(walking, cow, speed=0.1)
    assert motion.speed == pytest.approx(0.1)
    assert motion.footfall.contact[:-1].mean(axis=0) == pytest.approx(0.8, abs=0.02)
    for foot, found in landings(motion).items():
        assert found == pytest.approx([WALK[foot]], abs=0.02)


def test_lengths_and_speeds_are_those_of_an_animal_of_the_robots_size(walking, cow):
    scale = leg_height(cow) / HIP
    motion = read_motion(walking, cow)
    # Periods are whole knots, of 25 ms.
    assert motion.duration == pytest.approx(np.sqrt(scale) * PERIOD, abs=0.013)
    assert motion.speed == pytest.approx(np.sqrt(scale) * STRIDE / PERIOD)
    lifts = motion.feet[..., 2].max(axis=0)
    assert lifts == pytest.approx(scale * LIFT, rel=0.05)
    froude = (motion.speed**2 / leg_height(cow), (STRIDE / PERIOD) ** 2 / HIP)
    assert froude[0] / GRAVITY == pytest.approx(froude[1] / GRAVITY)
    slow = read_motion(walking, cow, speed=0.2)
    longer = stride_length(0.2, leg_height(cow)) / stride_length(STRIDE / PERIOD, HIP)
    assert slow.duration == pytest.approx(longer * STRIDE / 0.2, abs=0.013)


def test_a_trots_pairs_land_together_and_it_flies(cow, tmp_path):
    path = write_capture(tmp_path / "trot.csv", *animal(TROT, 0.38))
    motion = read_motion(path, cow, speed=0.45)
    contact = dict(zip(motion.footfall.feet, motion.footfall.contact.T))
    assert (contact["fl"] == contact["rr"]).all()
    assert (contact["fr"] == contact["rl"]).all()
    # From the first landing to the last leaving of each pair.
    assert contact["fl"][:-1].mean() == pytest.approx(0.43, abs=0.03)
    flying = ~motion.footfall.contact[:-1].any(axis=1)
    assert flying.mean() == pytest.approx(0.17, abs=0.03)
    assert motion.flight and motion.period == "cycle"


TURNS = [np.eye(3)[list(order)] for order in ((0, 1, 2), (1, 2, 0), (2, 0, 1))]


@settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(axes=st.sampled_from(TURNS), heading=st.floats(-np.pi, np.pi))
def test_the_axes_of_a_capture_do_not_matter(cow, tmp_path, axes, heading):
    c, s = np.cos(heading), np.sin(heading)
    about = axes @ np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    up = "xyz"[int(np.abs(axes[:, 2]).argmax())]
    time, points = animal(WALK, 0.8)
    straight = read_motion(write_capture(tmp_path / "a.csv", time, points), cow)
    path = write_capture(tmp_path / "b.csv", time, points, about)
    turned = read_motion(path, cow, up=up)
    np.testing.assert_allclose(turned.feet, straight.feet, atol=1e-5)
    assert (turned.footfall.contact == straight.footfall.contact).all()


def test_bvh_is_read_by_forward_kinematics(walking, cow, tmp_path):
    table = read_motion(walking, cow)
    path = write_bvh(tmp_path / "walk.bvh", *animal(WALK, 0.8))
    np.testing.assert_allclose(read_motion(path, cow).feet, table.feet, atol=1e-5)


def test_a_yaml_names_what_a_file_does_not_say(cow, tmp_path):
    time, points = animal(WALK, 0.8, strides=2.5)
    points = {name: 100 * p for name, p in points.items()}
    write_capture(tmp_path / "long.csv", time, points)
    feet = ", ".join(f"{role}: {role}_ankle" for role in WALK)
    text = f"capture: long.csv\nunit: cm\nstart: 0.25\nend: 0.75\nfeet: {{{feet}}}\n"
    (tmp_path / "walk.yaml").write_text(text + "speed: 0.3\n")
    motion = read_motion(tmp_path / "walk.yaml", cow)
    assert motion.speed == pytest.approx(0.3)
    assert landings(motion)["rl"] == pytest.approx([0.6], abs=0.03)
    # Given besides, an option takes the place of that in the file.
    faster = Problem("small", motion=str(tmp_path / "walk.yaml"), speed=0.1)
    assert read_motion(faster.motion, cow, speed=faster.speed).speed < 0.11


def test_what_is_no_stride_is_refused_with_the_remedy(cow, tmp_path):
    time, points = animal(WALK, 0.8)
    path = tmp_path / "bad.csv"

    def refused(match, points=points, time=time, **options):
        write_capture(path, time, points)
        with pytest.raises(DrakebotsError, match=match):
            read_motion(path, cow, **options)

    refused("hips is 50 m high.*unit: cm", {k: 100 * p for k, p in points.items()})
    refused("no four feet", {k: p for k, p in points.items() if "rl" not in k})
    refused("no four feet", {k: points[k] for k in ("hips", "fl_foot")})
    refused("unknown foot 'paw'", feet=dict.fromkeys(WALK, "paw"))
    refused("name each point once", feet=dict.fromkeys(WALK, "hips"))
    refused("unknown axis", up="w")
    refused("3 frames; needs 8", start=0.0, end=0.02)
    refused("unexpected keyword argument 'sped'", sped=1)
    refused("goes 0 m ahead", {k: p * [0, 1, 1] for k, p in points.items()})
    for wrong in (np.r_[time[:-1], 1.0], -time, 0 * time):
        refused("increase in even steps", time=wrong)
    refused(
        r"lands 2 times; name start and end", *reversed(animal(WALK, 0.8, strides=2))
    )
    text = path.read_text()
    path.write_text(text.replace("hips_y", "hips_w", 1))
    with pytest.raises(FileProblem, match="lacks the column 'hips_y'"):
        read_motion(path, cow)
    bvh = write_bvh(tmp_path / "bad.bvh", time, points)
    whole = bvh.read_text()
    for old, new, match in (
        ("Frame Time:", "Time:", "is no whole BVH"),
        ("\n0.000000000 ", "\n", "is no whole BVH"),
        ("Frames: 61", "Frames: 60", r"\(61, 30\), not \(60, 30\)"),
        ("OFFSET 1 2 3", "OFSET 1 2 3", "has 'OFSET' in place of OFFSET"),
        ("OFFSET 1 2 3", "OFFSET 1 2 nan", "not finite"),
        ("}\nMOTION", "MOTION", "has 'its end' in place of JOINT or End or }"),
    ):
        bvh.write_text(whole.replace(old, new, 1))
        with pytest.raises(FileProblem, match=match):
            read_motion(bvh, cow)
