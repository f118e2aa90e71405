"""Lengths that cannot be in metres, inertia that no link of its size has."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from pydrake.math import RollPitchYaw
from pydrake.multibody.plant import MultibodyPlant

from drakebots import ModelProblem, load
from drakebots.core.units import MM_G_MS
from drakebots.formats.inspect import SLENDER, WATER
from drakebots.model import available_models, central_inertia
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


# --- inertia for the size of a link ---

TOO_LARGE = "inertia too large for the link's size"


def rod(inertia: float, shape: str) -> str:
    """A free link of 0.3 kg, its centre of mass 0.1 m down, with moments [kg m^2]."""
    moments = " ".join(f'{k}="{inertia}"' for k in ("ixx", "iyy", "izz"))
    return (
        '<robot name="rod"><link name="rod"><inertial><origin xyz="0 0 -0.1" '
        f'rpy="0.5 0 0"/><mass value="0.3"/><inertia {moments} ixy="0" ixz="0" '
        f'iyz="0"/></inertial>{shape}</link></robot>'
    )


def central(model) -> tuple[float, np.ndarray, np.ndarray]:
    plant = MultibodyPlant(1e-3)
    model.add_to(plant)
    return central_inertia(plant.GetBodyByName("rod").default_spatial_inertia())


BAR = (
    '<visual><origin xyz="0 0 -0.1" rpy="0 0 1.2"/><geometry>'
    '<box size="0.02 0.04 0.2"/></geometry></visual>'
)
BALLS = "".join(
    f'<visual><origin xyz="0 0 {z}"/><geometry><sphere radius="0.01"/></geometry>'
    "</visual>"
    for z in (0, -0.2)
)


@pytest.mark.parametrize(("share", "is_told"), [(1.0, False), (4.2, True)])
def test_mass_lies_within_twice_the_reach_of_a_link(tmp_path, share, is_told):
    """I <= m (2 R)^2 with R from the centre of mass to the farthest corner."""
    R = np.linalg.norm([0.01, 0.02, 0.1])
    path = write(tmp_path, rod(share * 0.3 * R**2, BAR), "rod.urdf")
    notes = [note for note in load(path).notes if TOO_LARGE in note]
    assert len(notes) == is_told
    if is_told:
        assert f"rod ({np.sqrt(share) * R:.2g} m)" in notes[0]
        with pytest.raises(ModelProblem, match=TOO_LARGE):
            load(path, strict=True)


def test_repair_takes_the_inertia_of_the_shape(tmp_path):
    """Of a box turned in its link; of two balls, 0.1 m from their middle each."""
    path = write(tmp_path, rod(100.0, BAR), "rod.urdf")
    mass, p_BC, I_C = central(load(path))
    assert mass == 0.3 and np.linalg.eigvalsh(I_C) == pytest.approx(100.0)
    model = load(path, repair=True)
    (note,) = [note for note in model.notes if TOO_LARGE in note]
    assert note.endswith("replaced by its shape's: rod")
    mass, p_BC, I_C = central(model)
    assert mass == 0.3 and p_BC == pytest.approx([0, 0, -0.1])
    x, y, z = 0.02**2, 0.04**2, 0.2**2
    R = RollPitchYaw(0, 0, 1.2).ToRotationMatrix().matrix()
    wanted = 0.3 / 12 * R @ np.diag([y + z, x + z, x + y]) @ R.T
    np.testing.assert_allclose(I_C, wanted, atol=1e-9)
    path = write(tmp_path, rod(100.0, BALLS), "balls.urdf")
    _, _, I_C = central(load(path, repair=True))
    ball = 0.4 * 0.3 * 0.01**2
    across = ball + 0.3 * 0.1**2
    np.testing.assert_allclose(I_C, np.diag([across, across, ball]), atol=1e-9)


def test_a_link_without_a_shape_is_as_large_as_the_robot_at_most(tmp_path):
    """And gets the inertia of a ball of water."""
    text = (EXAMPLES / "my_robot.urdf").read_text()
    light = '<link name="tag"><inertial><mass value="0.01"/><inertia ixx="{0}" '
    light += 'iyy="{0}" izz="{0}" ixy="0" ixz="0" iyz="0"/></inertial></link><joint '
    light += 'name="to_tag" type="fixed"><parent link="world"/><child link="tag"/>'
    light = light.replace('"fixed"', '"revolute"').replace('"world"', '"trunk"')
    light += '<axis xyz="0 0 1"/></joint></robot>'
    for moment, is_told in ((0.01 * 0.4**2, False), (1.0, True)):
        more = text.replace("</robot>", light.format(moment))
        path = write(tmp_path, more, "tagged.urdf")
        assert any("tag (" in x for x in load(path).notes) == is_told
    model = load(path, repair=True)
    plant = MultibodyPlant(1e-3)
    model.add_to(plant)
    tag = plant.GetBodyByName("tag").default_spatial_inertia()
    radius = (0.01 / 1000 / (4 / 3 * np.pi)) ** (1 / 3)
    np.testing.assert_allclose(central_inertia(tag)[2], 4e-3 * radius**2 * np.eye(3))
