"""Poses that an SRDF beside a model names."""

from __future__ import annotations

import numpy as np
import pytest

from drakebots import load
from drakebots.model import find_srdf, read_srdf, standing
from tests.helpers.model_files import write
from tests.model.test_actuators import leg

SRDF = """<?xml version="1.0"?><robot name="leg">
<group name="all"><joint name="hip"/></group>
<group_state name="standing" group="all">
<joint name="root_joint" value="0 0 0.3 0 0 0 1"/>
<joint name="hip" value="0.4"/><joint name="knee" value="-0.8"/></group_state>
<group_state name="of_another" group="all">
<joint name="a" value="1"/><joint name="b" value="1"/><joint name="hip" value="1"/>
</group_state></robot>"""


@pytest.mark.parametrize("place", ["", "srdf/", "../srdf/"])
def test_poses_beside_the_model(place, tmp_path):
    folder = tmp_path / "urdf"
    (folder / place).mkdir(parents=True, exist_ok=True)
    write(folder / place, SRDF, "leg.srdf")
    model = load(leg(folder))
    assert model.poses == {"standing": {"hip": 0.4, "knee": -0.8}}
    assert any("leg.srdf: standing" in note for note in model.notes)


def test_feet_are_found_in_the_standing_pose(tmp_path):
    """At zero the leg points up; the pose turns it down, and its end is the foot."""
    shape = '<collision><origin xyz="0 0 0.05"/><geometry><box size="{}"/></geometry>'
    text = (
        leg(tmp_path)
        .read_text()
        .replace(
            '<link name="shank">',
            '<link name="shank">' + shape.format("0.3 0.2 0.02") + "</collision>",
        )
    )
    path = write(tmp_path, text, "leg.urdf")
    upright = load(path).feet
    write(
        tmp_path, SRDF.replace('"0.4"', '"0.9"').replace('"-0.8"', '"0.99"'), "leg.srdf"
    )
    turned = load(path).feet
    assert len(upright) == 4
    assert {round(f.p_BF[2], 9) for f in upright} != {
        round(f.p_BF[2], 9) for f in turned
    }


def test_which_file_belongs_to_a_model(tmp_path):
    for name in ("dog", "dog_arm", "cat"):
        write(tmp_path, SRDF, f"{name}.srdf")

    def found(name, robots=()):
        srdf = find_srdf(tmp_path / name, robots)
        return srdf and srdf.name

    assert found("dog.urdf") == "dog.srdf"
    assert found("dog_arm.urdf") == "dog_arm.srdf"
    assert found("dog_reduced.urdf") == "dog.srdf"
    assert found("doggy.urdf") is None
    assert found("other.urdf", ["Cat"]) == "cat.srdf"


def test_an_srdf_that_cannot_be_read_is_a_note(tmp_path):
    for text in ("<robot>", "", b"\0\1"):
        write(tmp_path, text, "leg.srdf")
        model = load(leg(tmp_path))
        assert model.poses == {}
        assert any("leg.srdf beside it" in note for note in model.notes)
    write(tmp_path, SRDF.replace("0.4", "nan").replace("-0.8", "x"), "leg.srdf")
    assert load(leg(tmp_path)).poses == {}


def test_standing_goes_by_name(tmp_path):
    poses = {"folded": {"a": 0.0}, "half_sitting": {"a": 1.0}, "Stand_up": {"a": 2.0}}
    assert standing(poses) == {"a": 2.0}
    assert standing({"folded": {"a": 0.0}}) == {}
    poses, _ = read_srdf(write(tmp_path, SRDF, "x.srdf"), ["hip", "knee"])
    np.testing.assert_allclose(list(standing(poses).values()), [0.4, -0.8])
