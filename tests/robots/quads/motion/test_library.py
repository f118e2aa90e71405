"""Motions: the library, gait synthesis, files, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drakebots.core.errors import DrakebotsError, FileProblem, InvalidInput, UnknownName
from drakebots.robots.quads.motion import (
    MOTIONS,
    MotionInput,
    library_motion,
    read_motion,
    stride_length,
)
from drakebots.robots.quads.motion.gait import (
    Gait,
    horse_swing,
    smooth_swing,
    synthesize,
)
from drakebots.robots.quads.motion.library import (
    CROUCH,
    leg_height,
    lift,
    motion_from_csv,
    roles,
    trot,
    walk,
)
from drakebots.robots.quads.motion.motion import Footfall
from drakebots.robots.quads.robot import skin_on_links
from drakebots.robots.quads.space_time import SpaceTime, check_motion
from drakebots.robots.quads.space_time.check import static_torques
from tests.helpers.motion_files import write_motion
from tests.helpers.quad_skeletons import nearest_links, upright


def test_roles_and_heights_come_from_the_rest_pose(quads):
    for quad in quads.values():
        assert roles(quad) == {name: name for name in ("fl", "fr", "rl", "rr")}
        assert np.abs(quad.rest_feet[:, 2]).max() < 1e-12
    assert leg_height(quads["sprawled"]) == pytest.approx(0.17)
    assert leg_height(quads["upright"]) == pytest.approx(0.30)


@pytest.mark.parametrize("name", MOTIONS)
def test_library_motions_can_be_done(quads, name):
    """In reach, ZMP in the support, torques within limits: check_motion raises
    otherwise. The ZMP may leave only where nothing is left of the margin."""
    for quad in quads.values():
        motion = library_motion(name, quad)
        report = check_motion(SpaceTime(quad, motion))
        assert report.poses.miss.max() < 5e-3
        assert not any("ZMP" in note for note in report.notes)


@pytest.mark.parametrize(
    ("name", "speed"), [("walk_long", 0.11), ("walk_short", 0.06), ("trot", 0.45)]
)
def test_library_speeds_are_the_papers(cow, name, speed):
    motion = library_motion(name, cow)
    assert motion.speed == pytest.approx(speed, rel=1e-6)
    # Feet advance with the body over a cycle.
    moved = motion.feet[-1, :, 0] - motion.feet[0, :, 0]
    assert moved.mean() == pytest.approx(speed * motion.duration, rel=1e-6)


def test_long_and_low_is_longer_and_lower(cow):
    long, short = (library_motion(n, cow) for n in ("walk_long", "walk_short"))
    step = [m.speed * m.duration for m in (long, short)]
    rise = [m.feet[..., 2].max() for m in (long, short)]
    assert step[0] > 1.5 * step[1] and rise[1] > 1.5 * rise[0]


@settings(max_examples=15, deadline=None)
@given(speed=st.floats(-0.06, 0.06), rate=st.floats(-0.15, 0.15))
def test_synthesis_follows_speed_and_turning_rate(cow, speed, rate):
    motion = walk(cow, speed, rate, period=2.0)
    T = motion.duration
    assert motion.turn == pytest.approx(rate * T, abs=1e-12)
    # The COM of a cycle moves by the arc's chord.
    chord = speed * T * np.sinc(rate * T / (2 * np.pi))
    moved = motion.com[-1, :2] - motion.com[0, :2]
    c, s = np.cos(rate * T), np.sin(rate * T)
    start = motion.com[0, :2] - cow.com(cow.rest)[0, :2]
    turned = np.array([[c, -s], [s, c]]) @ start - start
    expected = chord * np.array([np.cos(rate * T / 2), np.sin(rate * T / 2)]) + turned
    # To what the knots' spline leaves at its ends.
    assert np.abs(moved - expected).max() < 2e-3


def test_swings_start_and_end_at_rest():
    for swing in (smooth_swing, horse_swing(0.5), horse_swing(0.4)):
        advance, rise = swing(np.array([0.0, 1.0]))
        assert advance == pytest.approx([0, 1], abs=1e-12)
        assert rise == pytest.approx([0, 0], abs=1e-12)
        e = 1e-6
        for at in (0.0, 1.0 - e):
            ahead, up = swing(np.array([at, at + e]))
            assert abs(np.diff(ahead)[0]) / e < 1e-4
            assert abs(np.diff(up)[0]) / e < 1e-4
        assert swing(np.linspace(0, 1, 101))[1].max() == pytest.approx(1, abs=0.02)


def test_strides_scale_with_froude_number():
    """At one Froude number stride over leg is one number, whatever the size."""
    relative = [stride_length(np.sqrt(0.3 * 9.81 * h), h) / h for h in (0.1, 0.5, 1.5)]
    assert np.ptp(relative) < 1e-12
    assert relative[0] == pytest.approx(2.4 * 0.3**0.34)


def test_a_flying_trot_must_be_meant(cow):
    motion = trot(cow, duty=0.44)
    assert motion.flight and motion.footfall.unsupported()
    contact = motion.footfall.contact
    with pytest.raises(InvalidInput, match="no foot is on the ground at steps"):
        MotionInput(motion.footfall, motion.com, motion.feet)
    assert not contact.any(axis=1).all()


def test_a_lift_holds_the_others(cow):
    motion = lift(cow, ["fl", "rr"], height=0.05)
    assert motion.feet[..., 2].max(axis=0) == pytest.approx([0.05, 0, 0, 0.05])
    assert motion.com[0] == pytest.approx(motion.com[-1], abs=5e-3)
    with pytest.raises(UnknownName, match="tail"):
        lift(cow, ["tail"])
    with pytest.raises(InvalidInput, match="not all"):
        lift(cow, cow.feet)
    with pytest.raises(InvalidInput, match=r"a lift of 1e.09 s needs"):
        lift(cow, ["fl"], duration=1e9)


def test_a_skin_counts_in_the_requested_com(cow):
    point = np.array([[0.0, 0.0, 0.1]])
    skin = skin_on_links(cow, point, nearest_links(cow, point, np.array([1.0])))
    bare, both = lift(cow, ["fl"]), lift(cow, ["fl"], skin=skin)
    height = cow.com(cow.rest)[0, 2]
    expected = (cow.mass * height + 0.1) / (cow.mass + 1)
    assert bare.com[0, 2] == pytest.approx(height)
    assert both.com[0, 2] == pytest.approx(expected)
    stepping = walk(cow, 0.05, period=1.0, skin=skin)
    crouched = expected - CROUCH * leg_height(cow)
    assert stepping.com[0, 2] == pytest.approx(crouched)


# ------------------------------------------------------------------ refused
def _standing(quad, steps=41, **changes):
    contact = np.ones((steps, 4), bool)
    fields = {
        "footfall": Footfall(quad.feet, contact, 5e-3),
        "com": np.repeat(quad.com(quad.rest), steps, axis=0),
        "feet": np.repeat(quad.rest_feet[None], steps, axis=0),
    }
    return MotionInput(**(fields | changes))


def test_feet_that_slide_or_hover_in_contact_are_named(cow):
    feet = np.repeat(cow.rest_feet[None], 41, axis=0)
    feet[:, 1, 0] += np.linspace(0, 0.02, 41)
    with pytest.raises(InvalidInput, match=r"foot fr .* slide 20\.0 mm by step 40"):
        _standing(cow, feet=feet)
    feet = np.repeat(cow.rest_feet[None], 41, axis=0)
    feet[7, 2, 2] = 0.03
    with pytest.raises(InvalidInput, match=r"foot rl .* step 7 but 30\.0 mm"):
        _standing(cow, feet=feet)


def test_values_that_are_no_numbers_are_named(cow):
    com = np.repeat(cow.com(cow.rest), 41, axis=0)
    com[5, 1] = np.nan
    with pytest.raises(InvalidInput, match=r"com must be .* also at \[5, 1\]"):
        _standing(cow, com=com)
    with pytest.raises(InvalidInput, match="must be 41x3"):
        _standing(cow, com=com[:-1])


def test_out_of_reach_names_foot_frame_and_distance(cow):
    feet = np.repeat(cow.rest_feet[None], 41, axis=0)
    contact = np.ones((41, 4), bool)
    contact[15:26, 3] = False
    feet[20, 3] += [0.9, 0, 0.1]
    motion = _standing(cow, feet=feet, footfall=Footfall(cow.feet, contact, 5e-3))
    with pytest.raises(InvalidInput, match=r"foot rr at step 20 .* \d+ mm out of"):
        check_motion(SpaceTime(cow, motion))


def test_a_com_beside_the_feet_is_named(cow):
    com = np.repeat(cow.com(cow.rest), 41, axis=0) + np.array([0, 0.2, 0])
    with pytest.raises(InvalidInput, match=r"ZMP \d+ mm outside"):
        check_motion(SpaceTime(cow, _standing(cow, com=com)), reach=1.0)


def test_motors_too_weak_for_the_weight_are_named(tmp_path):
    weak = upright(tmp_path, effort=0.02)
    with pytest.raises(InvalidInput, match=r"cannot hold the weight.*takes at least"):
        check_motion(SpaceTime(weak, _standing(weak)))


def test_least_static_torques_scale_with_the_weight(tmp_path):
    """A linear program: twice the mass takes twice the torques."""
    share = []
    for mass in (4.3, 8.6):
        folder = tmp_path / str(mass)
        folder.mkdir()
        quad = upright(folder, mass=mass)
        problem = SpaceTime(quad, _standing(quad))
        found = static_torques(problem, quad.rest + 0.01, 0)
        share.append(found[0])
    assert share[1] == pytest.approx(2 * share[0], rel=1e-4)
    assert share[0] > 0


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"friction": 0.0}, "friction"),
        ({"knot_spacing": 7}, "steps are not"),
        ({"cop_share": 1.5}, "cop_share"),
        ({"follow": np.zeros((3, 3))}, "follow"),
    ],
)
def test_bad_problems_are_refused(cow, options, text):
    with pytest.raises(InvalidInput, match=text):
        SpaceTime(cow, _standing(cow), **options)
    with pytest.raises(UnknownName, match="elbow"):
        SpaceTime(cow, _standing(cow), torque_limits={"elbow": 1.0})
    with pytest.raises(InvalidInput, match=r"torque limit of \w+ must be > 0 N m"):
        SpaceTime(cow, _standing(cow), torque_limits={cow.joints[0]: -1.0})


# -------------------------------------------------------------------- files
def test_csv_reads_back_what_was_written(cow, tmp_path):
    motion = walk(cow, 0.05, 0.1, period=1.0)
    read = read_motion(write_motion(tmp_path / "walk.csv", motion), cow)
    assert np.array_equal(read.com, motion.com)
    assert np.array_equal(read.feet, motion.feet)
    assert np.array_equal(read.footfall.contact, motion.footfall.contact)
    assert np.array_equal(read.heading, motion.heading)
    assert read.dt == pytest.approx(motion.dt)


def test_yaml_names_a_motion_a_gait_or_a_lift(cow, tmp_path):
    path = tmp_path / "m.yaml"
    path.write_text("motion: walk_long\nspeed: 0.1\n")
    assert read_motion(path, cow).speed == pytest.approx(0.1, rel=1e-6)
    path.write_text(
        "gait: {period: 2.0, duty: 0.8, lift: 2e-2, "
        "phases: {rl: 0, fl: 0.25, rr: 0.5, fr: 0.75}}\nspeed: 0.04\n"
    )
    motion = read_motion(path, cow)
    assert motion.feet[..., 2].max() == pytest.approx(0.02, rel=1e-3)
    path.write_text("lift: [fl, rr]\nheight: 0.03\n")
    assert read_motion(path, cow).feet[:, 3, 2].max() == pytest.approx(0.03)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("speed: 1", "needs one of motion, gait, lift"),
        ("motion: fly", "unknown motion 'fly'"),
        ("motion: walk\nspeeed: 1", "speeed"),
        ("gait: {period: 1}", "gait"),
        ("gait: {period: x, duty: 0.8, lift: 0.1, phases: {}}", "gait.period"),
        ("lift: [tail]", "unknown foot 'tail'"),
        ("[1, 2", "not YAML"),
        ("motion: walk\nspeed: .nan", "speed|period|number"),
        ("motion: walk\ndt: 0", "dt must be > 0 s"),
        ("motion: walk\nskin: 3", "skin must be a LinkSkin"),
        ("motion: walk\nname: 3", "name must be of type str"),
        ("motion: walk\nmake: 3", "make"),
        ("motion: trot\nduty: 0", "duty must be within"),
        ("lift: fl\nheight: high", "height must be a finite number"),
        ("lift: fl\nduration: long", "duration must be within"),
    ],
)
def test_bad_yaml_is_named(cow, tmp_path, text, named):
    path = tmp_path / "m.yaml"
    path.write_text(text)
    with pytest.raises(FileProblem, match=named):
        read_motion(path, cow)


def test_bad_csv_is_named(cow, tmp_path):
    good = write_motion(tmp_path / "m.csv", walk(cow, 0.05, period=1.0)).read_text()
    lines = good.splitlines()
    cases = {
        "lacks the column 'fl.z'": good.replace("fl.z", "heading2", 1),
        "line 4, column com.y": "\n".join(
            [*lines[:3], lines[3].replace(lines[3].split(",")[2], "x", 1), *lines[4:]]
        ),
        "evenly": "\n".join([*lines[:5], *lines[8:]]),
        "values for": good + "1,2\n",
        "fl.contact: must be 0 or 1": good.replace(",1,", ",2,", 1),
    }
    for named, text in cases.items():
        with pytest.raises(DrakebotsError, match=named):
            motion_from_csv(text, cow)
    with pytest.raises(FileProblem, match="cannot be read"):
        read_motion(tmp_path / "none.csv", cow)
    (tmp_path / "good.csv").write_text(good)
    with pytest.raises(FileProblem, match="steps are given; leave out speed"):
        read_motion(tmp_path / "good.csv", cow, speed=0.1)


def test_gaits_that_cannot_be_are_refused(cow):
    gait = Gait(dict.fromkeys(cow.feet, 0.0), duty=0.5, period=1.0, lift=0.02)
    with pytest.raises(InvalidInput, match="no foot is on the ground"):
        synthesize(cow, gait, speed=0.1)
    with pytest.raises(InvalidInput, match="speed"):
        walk(cow, np.inf)
    with pytest.raises(InvalidInput, match="cycles"):
        walk(cow, 0.1, cycles=0)
