"""Lengths that cannot be in metres: who is warned, who is not, and of what."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from drakebots import ModelProblem, load
from drakebots.core.units import MM_G_MS
from drakebots.formats.inspect import SLENDER, WATER
from drakebots.model import available_models
from tests.helpers.model_files import write

EXAMPLES = Path(__file__).parents[2] / "examples"
WORDS = "a rod of water a thousandth as thick"


def in_units(text: str, per_metre: float) -> str:
    """A URDF with its lengths, not its axes, in other units."""

    def changed(match):
        values = [repr(float(x) * per_metre) for x in match[2].split()]
        return f'{match[1]}="{" ".join(values)}"'

    return re.sub(r'(?<!axis )(xyz|size|radius|length)="([^"]*)"', changed, text)


def doubts(path: Path, **options) -> list[str]:
    return [note for note in load(path, **options).notes if WORDS in note]


@pytest.mark.parametrize("per_metre", [1e2, 1e3, 1e6])
def test_lengths_that_are_not_in_metres_are_told_in_one_line(tmp_path, per_metre):
    text = (EXAMPLES / "my_robot.urdf").read_text()
    assert not doubts(EXAMPLES / "my_robot.urdf")
    path = write(tmp_path, in_units(text, per_metre), "mm.urdf")
    (note,) = doubts(path)
    length = float(re.search(r"it is (\S+) m long", note)[1])
    assert length == pytest.approx(0.697 * per_metre, rel=1e-3)
    assert "12 kg" in note and "divide them by 1000" in note and "\n" not in note
    with pytest.raises(ModelProblem, match=WORDS):
        load(path, strict=True)


def test_one_shape_in_millimetres_is_named(tmp_path):
    """As of a mesh without its scale: joints, and all else, are in metres."""
    text = (EXAMPLES / "my_robot.urdf").read_text()
    big = text.replace('size="0.40 0.20 0.10"', 'size="400 200 100"')
    (note,) = doubts(write(tmp_path, big, "big.urdf"))
    assert "a shape of link 'trunk' is 458 m long" in note and "by 0.001" in note


def test_an_old_urdf_is_told_of_its_option():
    (note,) = doubts(EXAMPLES / "four_bar.urdf")
    assert note.endswith("--units mm-g-ms")
    assert not doubts(EXAMPLES / "four_bar.urdf", units=MM_G_MS)


@pytest.mark.parametrize("share", [0.9, 1.1])
def test_the_lightest_is_a_rod_of_water(tmp_path, share):
    """Of a box of length l, the diagonal; the world it stands on does not count."""
    length = 7.0
    mass = share * WATER * np.pi / 4 * SLENDER**2 * length**3
    side = length / np.sqrt(3)
    text = f"""<robot name="r"><link name="world"/><link name="floor"><collision>
    <geometry><box size="900 900 1"/></geometry></collision></link>
    <joint name="f" type="fixed"><parent link="world"/><child link="floor"/></joint>
    <link name="b"><inertial><mass value="{mass}"/><inertia ixx="1" iyy="1" izz="1"
    ixy="0" ixz="0" iyz="0"/></inertial><collision><geometry>
    <box size="{side} {side} {side}"/></geometry></collision></link></robot>"""
    assert len(doubts(write(tmp_path, text, "box.urdf"))) == (share < 1)


def test_none_of_our_models_is_in_doubt():
    for name in available_models():
        assert not [note for note in load(name).notes if WORDS in note], name
