"""Old-Drake URDFs that are wrong: each is refused in one line."""

from __future__ import annotations

import pytest

from drakebots.core.errors import ModelProblem
from drakebots.formats.read.old_urdf import read_old_urdf
from tests.helpers.old_urdf_samples import INERTIAL, TINY, loaded, one_link, written


def swap(old: str, new: str) -> str:
    assert old in TINY
    return TINY.replace(old, new, 1)


def sphere(attribute: str = "", name: str = "") -> str:
    shape = f"<geometry><sphere {attribute}/></geometry>"
    return f"<visual {name}>{shape}</visual>"


BAD = {
    "unknown tag": (swap("<frame", "<fram"), "<fram name='tip'>"),
    "unknown attribute": (swap('mass value="2"', 'mass valu="2"'), "'valu'"),
    "unknown tag in link": (one_link("<sensor/>"), "<sensor>"),
    "foreign namespace": (one_link('<x:mass xmlns:x="y"/>'), "<x:mass>"),
    "mimic": (swap("<axis", '<mimic joint="bc"/><axis'), "<mimic>"),
    "collision filter": (one_link(beside="<collision_filter_group/>"), "collision_f"),
    "no robot": ("<sdf/>", "<sdf>"),
    "no name": ("<robot><link name='a'/></robot>", "'name'"),
    "empty name": (swap('link name="b"', 'link name=""'), "<link name=''>"),
    "reserved name": (swap('name="tiny"', 'name="__r__"'), "__r__"),
    "scoped name": (swap('name="tip"', 'name="a::tip"'), "a::tip"),
    "no link": ('<robot name="r"/>', "<link>"),
    "duplicate link": (swap('link name="b"', 'link name="a"'), "<link name='a'>"),
    "duplicate joint": (swap('joint name="bc"', 'joint name="ab"'), "name='ab'"),
    "joint named as link": (swap('joint name="bc"', 'joint name="c"'), "name='c'"),
    "duplicate frame": (swap('frame name="tip"', 'frame name="a"'), "name='a'"),
    "duplicate loop": (swap('name="loop"', 'name="ab"'), "name='ab'"),
    "missing link": (swap('child link="c"', 'child link="d"'), "'d'"),
    "missing link of frame": (swap('tip" link="c"', 'tip" link="d"'), "'d'"),
    "missing link of loop": (swap('link1 link="a"', 'link1 link="d"'), "'d'"),
    "loop on one link": (swap('link2 link="c"', 'link2 link="a"'), "itself"),
    "missing joint of spring": (swap('    <joint name="ab"', '<joint name="d"'), "'d'"),
    "spring on a loop": (swap('    <joint name="ab"', '<joint name="loop"'), "loop"),
    "hinge spring on a slide": (swap('    <joint name="ab"', '<joint name="bc"'), "bc"),
    "second parent": (swap('child link="c"', 'child link="b"'), "'b'"),
    "own parent": (swap('child link="b"', 'child link="a"'), "'a'"),
    "cycle": (
        swap('parent link="a"/><child link="b"', 'parent link="c"/><child link="b"'),
        "'b'",
    ),
    "two roots": (one_link(beside=f'<link name="z">{INERTIAL}</link>'), "a, z"),
    "world moves": (swap('child link="b"', 'child link="world"'), "'world'"),
    "world has shape": (one_link().replace('"a"', '"world"'), "<link name='world'>"),
    "no child": (swap('<child link="b"/>', ""), "<child>"),
    "two parents": (swap('<child link="b"/>', '<parent link="b"/>'), "<parent>"),
    "negative mass": (swap('mass value="2"', 'mass value="-2"'), "<mass>"),
    "nan mass": (swap('mass value="2"', 'mass value="nan"'), "'nan'"),
    "infinite mass": (swap('mass value="2"', 'mass value="1e999"'), "'1e999'"),
    "huge mass": (swap('mass value="2"', 'mass value="1e300"'), "<mass>"),
    "no mass": (swap('<mass value="2"/>', ""), "<mass>"),
    "inertia without mass": (swap('mass value="2"', 'mass value="0"'), "'a'"),
    "negative inertia": (swap('ixx="1"', 'ixx="-1"'), "'a'"),
    "indefinite inertia": (swap('ixy="0"', 'ixy="3"'), "not positive"),
    "triangle": (swap('izz="2"', 'izz="2.501"'), "exceeds the sum"),
    "no izz": (swap('izz="2"', ""), "'izz'"),
    "two numbers": (swap('xyz="0 0 3"', 'xyz="0 3"'), "<frame name='tip'>"),
    "empty entry": (swap('xyz="0 0 3"', 'xyz="0,,3"'), "<frame name='tip'>"),
    "decimal comma": (swap('damping="0.3"', 'damping="0,3"'), "'0,3'"),
    "no number": (swap('damping="0.3"', 'damping="much"'), "'much'"),
    "code": (swap('damping="0.3"', 'damping="__import__(1)"'), "<dynamics>"),
    "power": (swap('damping="0.3"', 'damping="9**9"'), "'9**9'"),
    "nested": (swap('damping="0.3"', f'damping="{"(" * 90}1{")" * 90}"'), "((("),
    "long": (swap('damping="0.3"', f'damping="{"9" * 9999}"'), "<dynamics>"),
    "division by zero": (swap('damping="0.3"', 'damping="1/0"'), "'1/0'"),
    "negative damping": (swap('damping="0.3"', 'damping="-0.3"'), "<dynamics>"),
    "negative stiffness": (swap('stiffness="3"', 'stiffness="-3"'), "stiffness=-3"),
    "lower > upper": (swap('lower="-.6"', 'lower=".7"'), "'bc'"),
    "infinite limit": (swap('lower="-.6"', 'lower="-1e16"'), "<limit>"),
    "joint type": (swap('"revolute"', '"hinge"'), "'hinge'"),
    "planar joint": (swap('"revolute"', '"planar"'), "'planar'"),
    "loop type": (swap('loop" type="continuous"', 'loop" type="fixed"'), "'fixed'"),
    "no loop type": (swap('loop" type="continuous"', 'loop"'), "'type'"),
    "zero axis": (swap('axis xyz="0 0 2"', 'axis xyz="0 0 0"'), "'ab'"),
    "two rests": (swap('<joint name="bc"/></prismatic', "<joint/></prismatic"), "name"),
    "no force": (one_link(beside='<force_element name="f"/>'), "name='f'"),
    "transmission": (swap("SimpleTransmission", "GearBox"), "'GearBox'"),
    "reduction": (swap(">1</mech", ">5</mech"), "'ab'"),
    "no box": (
        one_link('<visual><geometry><box size="0 1 1"/></geometry></visual>'),
        "<box>",
    ),
    "negative radius": (
        one_link(sphere('radius="-1"')),
        "<sphere>",
    ),
    "no radius": (one_link(sphere()), "'radius'"),
    "no shape": (one_link("<collision><geometry/></collision>"), "<geometry>"),
    "two of a name": (
        one_link(2 * sphere('radius="1"', 'name="v"')),
        "'v'",
    ),
    "color": (
        one_link(beside='<material name="m"><color rgba="2 0 0 1"/></material>'),
        "<color>",
    ),
    "malformed": (TINY[:-10], "XML"),
    "duplicate attribute": (swap("<frame", '<frame name="x"'), "XML"),
    "binary": (bytes(range(256)) * 4, "UTF-8"),
    "zeros": (b"\0" * 100, "NUL"),
    "empty": ("", "empty"),
    "latin-1": (TINY.replace("tiny", "k\xe4fer").encode("latin-1"), "UTF-8"),
    "utf-16": (TINY.encode("utf-16"), "UTF-8"),
    "bomb": (
        '<!DOCTYPE r [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><robot name="&b;"/>',
        "DOCTYPE",
    ),
    "unknown entity": (swap('name="tiny"', 'name="&tiny;"'), "XML"),
    "deep": ("<a>" * 100_000, "nested"),
}


@pytest.mark.parametrize("case", BAD)
def test_wrong_files_are_refused_in_one_line(tmp_path, case):
    text, named = BAD[case]
    path = written(tmp_path, text)
    with pytest.raises(ModelProblem) as caught:
        read_old_urdf(path)
    message = str(caught.value)
    assert "\n" not in message and len(message) < 600
    assert message.startswith(str(path)) and named in message
    assert "refuses it" not in message  # found before Drake sees it


@pytest.mark.parametrize("name", ["none.urdf", ".", "x" * 5000, "nul\0.urdf"])
def test_what_is_no_file_is_refused(tmp_path, name):
    with pytest.raises(ModelProblem):
        read_old_urdf(tmp_path / name)


def test_an_error_names_the_line(tmp_path):
    path = written(tmp_path, swap('lower="-.6"', 'lower=".7"'))
    with pytest.raises(ModelProblem, match=r"<limit> \(line 12\)"):
        read_old_urdf(path)


def test_a_long_chain_is_no_problem(tmp_path):
    links = "".join(f'<link name="l{i}">{INERTIAL}</link>' for i in range(300))
    joints = "".join(
        f'<joint name="j{i}" type="revolute"><parent link="l{i + 1}"/>'
        f'<child link="l{i}"/></joint>'
        for i in range(299)
    )
    text = f'<robot name="r">{links}{joints}</robot>'
    plant, _ = loaded(read_old_urdf(written(tmp_path, text)).text)
    assert plant.num_velocities() == 299 + 6


def test_what_drake_refuses_names_the_file(tmp_path):
    """Old Drake has frames in the world; libsdformat has none."""
    text = one_link(
        beside='<link name="world"/><frame name="f" link="world"/>'
        '<joint name="j" type="fixed"><parent link="world"/><child link="a"/></joint>'
    )
    path = written(tmp_path, text)
    with pytest.raises(ModelProblem, match="Drake's parser refuses it: ") as caught:
        read_old_urdf(path)
    assert str(caught.value).startswith(str(path))
