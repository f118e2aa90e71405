"""The feet of a stranger's robot, found from links, shapes and names."""

from __future__ import annotations

import numpy as np
import pytest

from drakebots import InvalidInput, UnknownName, load
from drakebots.model import split_names
from drakebots.multibody import find_posture
from tests.helpers.model_files import write

INERTIAL = """<inertial><mass value="{m}"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>"""
SPHERE = '<sphere radius="0.02"/>'
SHANK = '<cylinder radius="0.01" length="0.2"/>'


def link(name, *shapes, mass=1.0):
    """A link with collision shapes (geometry, xyz)."""
    shapes = "".join(
        f'<collision><origin xyz="{xyz}"/><geometry>{shape}</geometry></collision>'
        for shape, xyz in shapes
    )
    return f'<link name="{name}">{INERTIAL.format(m=mass)}{shapes}</link>'


def joint(parent, child, xyz, kind="revolute", limit='lower="-1" upper="1"'):
    return (
        f'<joint name="{child}_joint" type="{kind}"><parent link="{parent}"/>'
        f'<child link="{child}"/><origin xyz="{xyz}"/><axis xyz="0 1 0"/>'
        f'<limit effort="9" velocity="9" {limit}/></joint>'
    )


def urdf(folder, *parts):
    text = f'<?xml version="1.0"?><robot name="r">{"".join(parts)}</robot>'
    return write(folder, text, "robot.urdf")


def trunk():
    return link("trunk", ('<box size="0.4 0.2 0.1"/>', "0 0 0"), mass=9)


def leg(name, x, y, *, end, limit='lower="-1" upper="1"', hip="0.4", down="-0.2"):
    """A thigh and a shank of 0.2 m; `end` are the parts at the shank's end."""
    return "".join(
        [
            link(f"{name}_thigh", (SHANK, "0 0 -0.1")),
            joint("trunk", f"{name}_thigh", f"{x} {y} 0"),
            link(f"{name}_shank", (SHANK, "0 0 -0.1")),
            joint(f"{name}_thigh", f"{name}_shank", f"0 0 {down}", limit=limit),
            end(name),
        ]
    )


def ball_end(name):
    return link(f"{name}_end", (SPHERE, "0 0 0"), mass=0.1) + joint(
        f"{name}_shank", f"{name}_end", "0 0 -0.2", "fixed"
    )


def no_end(name):
    return ""


def sole_end(name):
    return link(
        f"{name}_tarsus", ('<box size="0.2 0.1 0.02"/>', "0.03 0 -0.04")
    ) + joint(f"{name}_shank", f"{name}_tarsus", "0 0 -0.2")


def empty_end(name, called="foot"):
    return f'<link name="{name}_{called}"/>' + joint(
        f"{name}_shank", f"{name}_{called}", "0 0 -0.21", "fixed"
    )


CORNERS = {"FL": (0.2, 0.1), "FR": (0.2, -0.1), "RL": (-0.2, 0.1), "RR": (-0.2, -0.1)}


def quadruped(folder, end, *more, **options):
    legs = [leg(n, x, y, end=end, **options) for n, (x, y) in CORNERS.items()]
    return urdf(folder, trunk(), *legs, *more)


def test_balls_at_the_ends_of_welded_links(tmp_path):
    model = load(quadruped(tmp_path, ball_end))
    assert [foot.name for foot in model.feet] == [f"{n}_end" for n in CORNERS]
    for foot in model.feet:
        np.testing.assert_allclose(foot.p_BF, 0, atol=1e-12)
        assert foot.radius == 0.02
    assert any(note.startswith("feet found by shape: FL_end") for note in model.notes)


def test_a_bare_shank_ends_in_a_point(tmp_path):
    model = load(quadruped(tmp_path, no_end))
    assert [foot.body for foot in model.feet] == [f"{n}_shank" for n in CORNERS]
    for foot in model.feet:
        np.testing.assert_allclose(foot.p_BF, [0, 0, -0.2], atol=1e-9)


def test_knees_that_cannot_be_straight_do_not_make_soles_of_shanks(tmp_path):
    """At its limit the shank is 57 degrees from the vertical: still its end counts."""
    path = quadruped(tmp_path, ball_end, limit='lower="-2" upper="-1"')
    assert [foot.name for foot in load(path).feet] == [f"{n}_end" for n in CORNERS]


def test_feet_by_name_count_where_a_pose_lifts_them(tmp_path):
    """As in a keyframe whose front legs are folded; unnamed ends up there are none."""
    for end, found in ((empty_end, [*CORNERS]), (no_end, ["RL", "RR"])):
        legs = [
            leg(n, x, y, end=end, down="0.15" if n.startswith("F") else "-0.2")
            for n, (x, y) in CORNERS.items()
        ]
        model = load(urdf(tmp_path, trunk(), *legs))
        assert sorted(foot.body[:2] for foot in model.feet) == found


def test_legs_that_point_up_at_zero_still_have_feet(tmp_path):
    """As in files whose legs are drawn folded over the back."""
    shank = '<cylinder radius="0.01" length="0.2"/>'
    legs = [
        link(f"{n}_a", (shank, "0 0 0.1"))
        + joint("trunk", f"{n}_a", f"{x} {y} 0.1")
        + link(f"{n}_b", (shank, "0 0 0.1"))
        + joint(f"{n}_a", f"{n}_b", "0 0 0.2")
        for n, (x, y) in CORNERS.items()
    ]
    model = load(urdf(tmp_path, trunk(), *legs))
    assert len(model.feet) == 4
    for foot in model.feet:
        np.testing.assert_allclose(foot.p_BF, [0, 0, 0.2], atol=1e-9)


def test_a_flat_foot_is_four_points(tmp_path):
    legs = [leg(n, 0, y, end=sole_end) for n, y in (("left", 0.1), ("right", -0.1))]
    model = load(urdf(tmp_path, trunk(), *legs))
    assert len(model.feet) == 8
    assert {foot.body for foot in model.feet} == {"left_tarsus", "right_tarsus"}
    assert [f.name for f in model.feet[:4]] == [
        f"left_tarsus_{k}" for k in (1, 2, 3, 4)
    ]
    expected = [[0.13, 0.05], [0.13, -0.05], [-0.07, 0.05], [-0.07, -0.05]]
    found = np.array([foot.p_BF for foot in model.feet[:4]])
    np.testing.assert_allclose(found[:, :2], expected, atol=1e-9)
    np.testing.assert_allclose(found[:, 2], -0.05, atol=1e-9)


def test_a_heel_and_toes_welded_to_an_ankle_are_one_foot(tmp_path):
    """From heel to toe, on one link: bodies of their own would be legs of their own."""

    def end(name):
        parts, ankle = link(f"{name}_tarsus"), f"{name}_tarsus"
        for part, size, x in (("toe", 0.08, 0.09), ("heel", 0.04, -0.05)):
            box = f'<box size="{size} 0.1 0.02"/>', f"{x} 0 -0.04"
            parts += link(f"{name}_{part}", box, mass=0.1)
            parts += joint(ankle, f"{name}_{part}", "0 0 0", "fixed")
        return parts + joint(f"{name}_shank", ankle, "0 0 -0.2")

    legs = [leg(n, 0, y, end=end) for n, y in (("left", 0.1), ("right", -0.1))]
    feet = load(urdf(tmp_path, trunk(), *legs)).feet
    assert len(feet) == 8 and len({foot.body for foot in feet}) == 2
    ahead = sorted(foot.p_BF[0] for foot in feet)
    np.testing.assert_allclose(ahead, 4 * [-0.07] + 4 * [0.13], atol=1e-9)


def test_hands_a_head_and_a_tail_are_no_feet(tmp_path):
    legs = [leg(n, 0, y, end=sole_end) for n, y in (("left", 0.1), ("right", -0.1))]
    arms = [
        link(f"{n}_upper", (SHANK, "0 0 -0.1"))
        + joint("trunk", f"{n}_upper", f"0 {y} 0.3")
        + link(f"{n}_fore", (SHANK, "0 0 -0.1"))
        + joint(f"{n}_upper", f"{n}_fore", "0 0 -0.2")
        for n, y in (("left", 0.2), ("right", -0.2))
    ]
    tail = link("tail", (SHANK, "0 0 -0.25")) + joint("trunk", "tail", "-0.2 0 0")
    head = link("head", (SPHERE, "0 0 0")) + joint("trunk", "head", "0 0 0.4")
    model = load(urdf(tmp_path, trunk(), *legs, *arms, tail, head))
    assert {foot.body for foot in model.feet} == {"left_tarsus", "right_tarsus"}
    by_name = {foot.name: foot for foot in model.candidates}
    assert set(by_name) == {
        *("left_tarsus", "right_tarsus", "left_fore", "right_fore", "tail", "head")
    }
    assert [foot.chosen for foot in model.candidates] == [True, True] + 4 * [False]
    assert by_name["left_fore"].mirrored and not by_name["tail"].mirrored
    assert by_name["head"].height > by_name["left_fore"].height > 0.05


@pytest.mark.parametrize(("below", "feet"), [(0.0, 4), (0.02, 4), (0.15, 2)])
def test_fingers_are_feet_where_the_robot_stands_on_them(tmp_path, below, feet):
    """A robot that lies, its fingers lower than its toes, does not stand on them."""
    legs = [leg(n, *CORNERS[n], end=sole_end) for n in ("RL", "RR")]
    legs = [text.replace("tarsus", "toe") for text in legs]
    for n in ("FL", "FR"):
        arm = leg(n, *CORNERS[n], end=no_end, down=f"{-0.25 - below}")
        legs.append(arm.replace(f"{n}_shank", f"{n}_finger"))
    bodies = {foot.body for foot in load(urdf(tmp_path, trunk(), *legs)).feet}
    assert {"RL_toe", "RR_toe"} <= bodies and len(bodies) == feet


def test_a_link_without_a_shape_counts_by_its_name_or_as_a_leaf_frame(tmp_path):
    model = load(quadruped(tmp_path, lambda n: empty_end(n, "FOOT")))
    assert len(model.feet) == 4
    bare = [
        _without_collision(leg(n, x, y, end=lambda n: empty_end(n, "tip")))
        for n, (x, y) in CORNERS.items()
    ]
    model = load(urdf(tmp_path, trunk(), *bare))
    assert [foot.body for foot in model.feet] == [f"{n}_tip" for n in CORNERS]
    words = " ".join(model.notes)
    assert "without a shape touch at their link's origin: FL_tip, FR_tip" in words
    for foot in model.feet:
        np.testing.assert_allclose(foot.p_BF, 0)


def test_a_robot_without_feet_is_told_how_to_name_them(tmp_path):
    head = link("head", ('<sphere radius="0.05"/>', "0 0 0.1"))
    path = urdf(tmp_path, trunk(), head, joint("trunk", "head", "0 0 0.2"))
    model = load(path, actuate="all", effort=9.0)
    assert not model.feet and "no feet are found: --feet names" in " ".join(model.notes)
    assert "no feet are known (--feet names them)" in find_posture(model).doubts


def _without_collision(text):
    start = text.find("<collision>")
    while start >= 0:
        end = text.find("</collision>", start) + len("</collision>")
        text = text[:start] + text[end:]
        start = text.find("<collision>")
    return text


def test_an_arm_on_a_table_has_no_feet(tmp_path):
    parts = [
        '<link name="world"/>',
        link("base", ('<box size="0.2 0.2 0.1"/>', "0 0 0")),
        joint("world", "base", "0 0 0", "fixed"),
        link("upper", (SHANK, "0 0 0.1")),
        joint("base", "upper", "0 0 0.1"),
        link("fore", (SHANK, "0 0 0.1")),
        joint("upper", "fore", "0 0 0.2"),
    ]
    model = load(urdf(tmp_path, *parts))
    assert model.feet == () and not any("feet" in note for note in model.notes)
    assert [foot.name for foot in model.candidates] == ["fore"]


def test_feet_that_a_user_names(tmp_path):
    path = quadruped(tmp_path, ball_end)

    def names(feet):
        return [foot.name for foot in load(path, feet=feet).feet]

    assert names(["FL_end", "RR_end"]) == ["FL_end", "RR_end"]
    assert names("FL_end,RR_end") == ["FL_end", "RR_end"]
    assert names("F*_end") == ["FL_end", "FR_end"]
    assert names(["trunk"]) == [f"trunk_{k}" for k in (1, 2, 3, 4)]
    model = load(path, feet="FL_shank:0.01,0,-0.2,FR_end")
    assert model.feet[0].body == "FL_shank"
    np.testing.assert_allclose(model.feet[0].p_BF, [0.01, 0, -0.2])
    assert model.feet[1].name == "FR_end"
    assert model.options == {"feet": "FL_shank:0.01,0,-0.2,FR_end"}
    assert not any("feet" in note for note in model.notes)


def test_a_geometry_and_a_frame_as_feet(tmp_path):
    text = quadruped(tmp_path, ball_end).read_text()
    text = text.replace("<collision>", '<collision name="belly">', 1)
    text = text.replace(
        "</robot>", '<frame name="toe" link="FL_end" xyz="0 0 1"/></robot>'
    )
    path = write(tmp_path, text, "named.urdf")
    assert len(load(path, feet=["belly"]).feet) == 4
    toe = load(path, feet=["toe"]).feet[0]
    assert (toe.name, toe.body) == ("toe", "FL_end")
    np.testing.assert_allclose(toe.p_BF, [0, 0, 1])


def test_unknown_feet_name_what_is_near(tmp_path):
    path = quadruped(tmp_path, ball_end)
    with pytest.raises(UnknownName, match="did you mean 'FL_end'"):
        load(path, feet=["FL_endd"])
    with pytest.raises(UnknownName, match="no_such"):
        load(path, feet=["no_such*"])
    with pytest.raises(UnknownName, match="link"):
        load(path, feet=["nolink:0,0,0"])
    with pytest.raises(InvalidInput, match="three numbers"):
        load(path, feet=["trunk:0,0"])


def test_split_names():
    assert split_names("a,b") == ["a", "b"]
    assert split_names("*_foot, m::b") == ["*_foot", "m::b"]
    assert split_names("link:0,-1e-3,.2,b") == ["link:0,-1e-3,.2", "b"]
    for wrong in ("", "a,,b", "a,"):
        with pytest.raises(InvalidInput, match="write names"):
            split_names(wrong)


def test_a_rod_that_ends_in_a_foot_leaves_the_foot(tmp_path):
    """A crank called after the foot that it moves by a rod, as Cassie's legs have."""
    leg = """<body name="{0}_thigh" pos="0 {1} 0"><joint axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 0 0 -.4" size=".03" mass="1"/>
      <body name="{0}_foot_crank" pos="0 0 -.1"><joint axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 .05 0 0" size=".01" mass=".1" contype="0"
      conaffinity="0"/><body name="{0}_rod" pos=".05 0 0"><joint axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 0 0 -.3" size=".005" mass=".05" contype="0"
      conaffinity="0"/></body></body><body name="{0}_end" pos="0 0 -.4">
      <joint axis="0 1 0"/><geom type="capsule" fromto="-.06 0 -.03 .1 0 -.03"
      size=".02" mass=".2"/></body></body>"""
    loops = "".join(
        f'<connect body1="{s}_rod" body2="{s}_end" anchor="0 0 -.3"/>' for s in "LR"
    )
    path = tmp_path / "legs.xml"
    path.write_text(
        '<mujoco><worldbody><body name="pelvis" pos="0 0 1"><freejoint/><geom size=".1"'
        f' mass="5"/>{leg.format("L", 0.1)}{leg.format("R", -0.1)}</body></worldbody>'
        f"<equality>{loops}</equality></mujoco>"
    )
    assert {foot.body for foot in load(path).feet} == {"L_end", "R_end"}
