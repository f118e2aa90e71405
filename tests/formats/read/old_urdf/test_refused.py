"""Old-Drake URDFs that are wrong: each is refused in one line, or mended and noted."""

from __future__ import annotations

import pytest

from drakebots import load
from drakebots.core.errors import ModelProblem
from tests.helpers.old_urdf_samples import (
    INERTIAL,
    TINY,
    loaded,
    one_link,
    read_old,
    written,
)


def swap(old: str, new: str) -> str:
    assert old in TINY
    return TINY.replace(old, new, 1)


def sphere(attribute: str = "", name: str = "") -> str:
    shape = f"<geometry><sphere {attribute}/></geometry>"
    return f"<visual {name}>{shape}</visual>"


BAD = {
    "unknown attribute": (swap('mass value="2"', 'mass valu="2"'), "link 'a': <mass>"),
    "no robot": ("<sdf/>", "<sdf>"),
    "empty name": (swap('link name="b"', 'link name=""'), "no name"),
    "reserved name": (swap('name="tiny"', 'name="__r__"'), "__r__"),
    "scoped name": (swap('name="tip"', 'name="a::tip"'), "a::tip"),
    "no link": ('<robot name="r"/>', "has no link"),
    "duplicate link": (swap('link name="b"', 'link name="a"'), "2 links are named 'a'"),
    "duplicate joint": (swap('joint name="bc"', 'joint name="ab"'), "'bc'"),
    "joint named as link": (swap('joint name="bc"', 'joint name="c"'), "'bc'"),
    "duplicate frame": (
        swap('frame name="tip"', 'frame name="a"'),
        "[a] detected 2 times",
    ),
    "missing link": (swap('child link="c"', 'child link="d"'), "'d'"),
    "missing link of frame": (swap('tip" link="c"', 'tip" link="d"'), "[d]"),
    "missing link of loop": (swap('link1 link="a"', 'link1 link="d"'), "'d'"),
    "loop on one link": (swap('link2 link="c"', 'link2 link="a"'), "itself"),
    "missing joint of spring": (swap('    <joint name="ab"', '<joint name="d"'), "'d'"),
    "spring on a loop": (swap('    <joint name="ab"', '<joint name="loop"'), "loop"),
    "hinge spring on a slide": (swap('    <joint name="ab"', '<joint name="bc"'), "bc"),
    "second parent": (swap('child link="c"', 'child link="b"'), "'bc'"),
    "own parent": (swap('child link="b"', 'child link="a"'), "'ab'"),
    "cycle": (
        swap('parent link="a"/><child link="b"', 'parent link="c"/><child link="b"'),
        "'ab'",
    ),
    "world moves": (swap('child link="b"', 'child link="world"'), "'world'"),
    "world has shape": (one_link().replace('"a"', '"world"'), "at least one link"),
    "no child": (swap('<child link="b"/>', ""), "'ab'"),
    "two parents": (swap('<child link="b"/>', '<parent link="b"/>'), "'ab'"),
    "negative mass": (swap('mass value="2"', 'mass value="-2"'), "<mass>"),
    "nan mass": (swap('mass value="2"', 'mass value="nan"'), "is nan"),
    "infinite mass": (swap('mass value="2"', 'mass value="1e999"'), "1e999"),
    "huge mass": (swap('mass value="2"', 'mass value="1e300"'), "mass = "),
    "no mass": (swap('<mass value="2"/>', ""), "'a'"),
    "negative inertia": (swap('ixx="1"', 'ixx="-1"'), "'a'"),
    "indefinite inertia": (swap('ixy="0"', 'ixy="3"'), "negative inertia"),
    "two numbers": (swap('xyz="0 0 3"', 'xyz="0 3"'), "<frame xyz='0 3'> needs 3"),
    "empty entry": (swap('xyz="0 0 3"', 'xyz="0,,3"'), "<frame xyz='0,,3'> needs 3"),
    "decimal comma": (swap('damping="0.3"', 'damping="0,3"'), "'0,3'"),
    "no number": (swap('damping="0.3"', 'damping="much"'), "'much'"),
    "code": (swap('damping="0.3"', 'damping="__import__(1)"'), "<dynamics damping="),
    "power": (swap('damping="0.3"', 'damping="9**9"'), "'9**9'"),
    "long": (swap('damping="0.3"', f'damping="{"9" * 9999}"'), "<dynamics>"),
    "division by zero": (swap('damping="0.3"', 'damping="1/0"'), "'1/0'"),
    "negative damping": (
        swap('damping="0.3"', 'damping="-0.3"'),
        "'ab' has negative damping",
    ),
    "negative stiffness": (swap('stiffness="3"', 'stiffness="-3"'), "stiffness"),
    "joint type": (swap('"revolute"', '"hinge"'), "'hinge'"),
    "planar joint": (swap('"revolute"', '"planar"'), "'planar'"),
    "loop type": (swap('loop" type="continuous"', 'loop" type="fixed"'), "'fixed'"),
    "no loop type": (swap('loop" type="continuous"', 'loop"'), "'loop'"),
    "zero axis": (swap('axis xyz="0 0 2"', 'axis xyz="0 0 0"'), "'ab'"),
    "two rests": (
        swap('<joint name="bc"/></prismatic', "<joint/></prismatic"),
        "prismatic",
    ),
    "negative radius": (one_link(sphere('radius="-1"')), "<sphere>"),
    "an ellipsoid": (
        one_link(
            f"{INERTIAL}<visual><geometry><drake:ellipsoid a='1' b='1' c='1'/>"
            "</geometry></visual>"
        ),
        "needs radii",
    ),
    "no radius": (one_link(sphere()), "needs radius"),
    "malformed": (TINY[:-10], "XML"),
    "duplicate attribute": (swap("<frame", '<frame name="x"'), "XML"),
    "binary": (bytes(range(256)) * 4, "UTF-8"),
    "zeros": (b"\0" * 100, "NUL"),
    "empty": ("", "not well-formed"),
    "latin-1": (TINY.replace("tiny", "k\xe4fer").encode("latin-1"), "UTF-8"),
    "utf-16": (TINY.encode("utf-16"), "UTF-8"),
    "bomb": (
        '<!DOCTYPE r [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><robot name="&b;"/>',
        "DOCTYPE",
    ),
    "unknown entity": (swap('name="tiny"', 'name="&tiny;"'), "XML"),
    "deep": ("<a>" * 100_000, "nested"),
}

MENDED = {
    "drake's own tag": (
        one_link(INERTIAL, beside="<drake:collision_filter_group name='g'/>"),
        "not read in a URDF of old Drake: <drake:collision_filter_group>",
    ),
    "unknown tag": (swap("<frame", "<fram"), "<fram>"),
    "unknown tag in link": (one_link("<sensor/>"), "Drake ignores: <sensor>"),
    "foreign namespace": (one_link('<x:mass xmlns:x="y"/>'), "Drake ignores: <x:mass>"),
    "inertia without mass": (
        swap('mass value="2"', 'mass value="0"'),
        "an inertia without a mass is not used: a",
    ),
    "triangle": (swap('izz="2"', 'izz="2.501"'), "replaced by the nearest one: a"),
    "nested": (swap('damping="0.3"', f'damping="{"(" * 90}1{")" * 90}"'), "oddly"),
    "lower > upper": (swap('lower="-.6"', 'lower=".7"'), "none is used: bc"),
    "transmission": (
        swap("SimpleTransmission", "GearBox"),
        "no SimpleTransmission is left out: ab",
    ),
    "reduction": (swap(">1</mech", ">5</mech"), "<mechanicalReduction>: ab"),
    "no box": (
        one_link('<visual><geometry><box size="0 1 1"/></geometry></visual>'),
        "a <box> without a size is left out: a",
    ),
    "no shape": (
        one_link("<collision><geometry/></collision>"),
        "without a shape is left out: a",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_wrong_files_are_refused_in_one_line(tmp_path, case):
    text, named = BAD[case]
    path = written(tmp_path, text)
    with pytest.raises(ModelProblem) as caught:
        load(path)
    message = str(caught.value)
    assert "\n" not in message and len(message) < 600
    assert message.startswith(str(path)) and named in message


@pytest.mark.parametrize("case", MENDED)
def test_what_is_mended_is_noted(tmp_path, case):
    text, named = MENDED[case]
    reading = read_old(written(tmp_path, text))
    loaded(reading.text)
    assert any(named in note for note in reading.notes)


@pytest.mark.parametrize("name", ["none.urdf", ".", "x" * 5000, "nul\0.urdf"])
def test_what_is_no_file_is_refused(tmp_path, name):
    with pytest.raises(ModelProblem):
        load(tmp_path / name)


def test_a_long_chain_is_no_problem(tmp_path):
    links = "".join(f'<link name="l{i}">{INERTIAL}</link>' for i in range(300))
    joints = "".join(
        f'<joint name="j{i}" type="revolute"><parent link="l{i + 1}"/>'
        f'<child link="l{i}"/></joint>'
        for i in range(299)
    )
    text = f'<robot name="r" xmlns="http://drake.mit.edu">{links}{joints}</robot>'
    plant, _ = loaded(read_old(written(tmp_path, text)).text)
    assert plant.num_velocities() == 299 + 6


def test_what_drake_refuses_names_the_file(tmp_path):
    """Old Drake has frames in the world; libsdformat has none."""
    text = one_link(
        beside='<link name="world"/><frame name="f" link="world"/>'
        '<joint name="j" type="fixed"><parent link="world"/><child link="a"/></joint>'
    )
    path = written(tmp_path, text)
    with pytest.raises(ModelProblem, match="Drake's parser refuses it: ") as caught:
        load(path)
    assert str(caught.value).startswith(str(path))
