"""Limbs on any model, from files, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import (
    MultibodyPlant,
)

from drakebots.core.errors import FileProblem, InvalidInput, ModelProblem, UnknownName
from drakebots.formats import add_limbs, load, write_limbs
from drakebots.model import package_root
from drakebots.multibody import read_limbs
from tests.helpers.limb_samples import limb, plant_with

URDF = """<robot name="cart"><link name="cart"><inertial><mass value="0.5"/>
<inertia ixx="1e-3" iyy="1e-3" izz="1e-3" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="rail" type="prismatic"><parent link="world"/><child link="cart"/>
<axis xyz="1 0 0"/><limit effort="0" lower="-1" upper="1" velocity="1"/></joint>
</robot>
"""


@pytest.mark.parametrize("model", ["brick", "cart", "hamr"])
def test_any_model(model, tmp_path):
    parent = {"brick": "brick", "cart": "cart", "hamr": "Chassis"}[model]
    path = model
    if model == "cart":
        path = tmp_path / "cart.urdf"
        path.write_text(URDF)
    limbs = (
        limb(parent=parent, segments=4, tip_mass=0.01),
        limb(parent=parent, name="arm", rpy=[0, 0, np.pi], segments=2),
        limb(parent="tail_tip", name="hand", length=0.02, segments=1),
    )
    before = load(path).summary
    plant = plant_with(limbs, path)
    context = plant.CreateDefaultContext()
    joints = 5 + 3 + 2
    assert plant.num_velocities() == len(before.velocities) + joints
    assert plant.num_actuators() == len(before.actuators) + joints
    mass = plant.CalcTotalMass(context)
    assert mass == pytest.approx(before.mass + 3 * 0.04 + 0.01, rel=1e-12)
    gains = [
        plant.GetJointActuatorByName(name).get_controller_gains().p
        for name in limbs[0].joints
    ]
    assert 1 / sum(1 / np.array(gains)) == pytest.approx(0.2)
    # And through files, by the stock parser.
    out = write_limbs(path, limbs, tmp_path / "with_limbs.dmd.yaml")
    again = MultibodyPlant(1e-3)
    parser = Parser(again)
    parser.SetStrictParsing()
    parser.package_map().AddPackageXml(str(package_root() / "package.xml"))
    parser.AddModels(str(out))
    again.Finalize()
    assert again.num_velocities() == plant.num_velocities()
    assert again.num_actuators() == plant.num_actuators()
    total = again.CalcTotalMass(again.CreateDefaultContext())
    assert total == pytest.approx(mass, rel=1e-12)
    for name in ("tail_tip", "arm_tip", "hand_tip"):
        # A scene's default pose may differ; relative to the parent it may not.
        p = [
            x.CalcRelativeTransform(
                x.CreateDefaultContext(),
                x.GetFrameByName(parent),
                x.GetFrameByName(name),
            ).translation()
            for x in (plant, again)
        ]
        np.testing.assert_allclose(*p, atol=1e-12)
    assert load(out).summary.mass == pytest.approx(mass)


@pytest.mark.parametrize(
    "changes, word",
    [
        ({"length": 0.0}, "length"),
        ({"length": np.nan}, "length"),
        ({"length": "long"}, "length"),
        ({"stiffness": -1.0}, "stiffness"),
        ({"mass": 0.0}, "mass"),
        ({"radius": np.inf}, "radius"),
        ({"damping": -1e-9}, "damping"),
        ({"tip_mass": -1.0}, "tip_mass"),
        ({"segments": 0}, "segments"),
        ({"segments": 2.5}, "segments"),
        ({"segments": True}, "segments"),
        ({"segments": 10**6}, "segments"),
        ({"range": (1.0, 1.0)}, "range"),
        ({"range": (1.0, -1.0)}, "range"),
        ({"range": (-9.0, 9.0)}, "range"),
        ({"axis": (1.0, 0.0, 0.0)}, "axis"),
        ({"axis": (0.0, 0.0, 0.0)}, "axis"),
        ({"p": (0.0, 0.0)}, "p must"),
        ({"rpy": (0.0, 0.0, np.nan)}, "rpy"),
        ({"name": "a b"}, "name"),
        ({"name": ""}, "name"),
        ({"parent": None}, "parent"),
    ],
)
def test_bad_limbs_are_refused(changes, word):
    with pytest.raises(InvalidInput, match=word) as caught:
        limb(**changes)
    assert "\n" not in str(caught.value)


def test_bad_places_are_refused(tmp_path):
    plant = MultibodyPlant(1e-3)
    load("brick").add_to(plant)
    with pytest.raises(UnknownName, match="brick"):
        add_limbs(plant, [limb(parent="brik")])
    with pytest.raises(InvalidInput, match="two limbs"):
        add_limbs(plant, [limb(), limb()])
    with pytest.raises(InvalidInput, match="at least one limb"):
        add_limbs(plant, [])
    add_limbs(plant, [limb()])
    with pytest.raises(InvalidInput, match="another name"):
        add_limbs(plant, [limb(name="other")])
    plant.Finalize()
    with pytest.raises(InvalidInput, match="finalized"):
        add_limbs(plant, [limb()], name="more")
    with pytest.raises(InvalidInput, match="discrete"):
        add_limbs(MultibodyPlant(0.0), [limb()])
    with pytest.raises(ModelProblem, match=r"dmd\.yaml"):
        write_limbs("brick", [limb()], tmp_path / "a.sdf")
    scene = package_root() / "brick" / "scene.dmd.yaml"
    with pytest.raises(ModelProblem, match="own URDF"):
        write_limbs(scene, [limb()], tmp_path / "a.dmd.yaml")
    with pytest.raises(UnknownName, match="brick"):
        write_limbs("brick", [limb(parent="head")], tmp_path / "a.dmd.yaml")
    assert not list(tmp_path.iterdir())


def test_same_link_in_two_robots_needs_its_scope():
    plant = MultibodyPlant(1e-3)
    parser = Parser(plant)
    parser.SetAutoRenaming(True)
    for _ in range(2):
        parser.AddModels(str(package_root() / "brick" / "brick.sdf"))
    with pytest.raises(InvalidInput, match="brick::brick"):
        add_limbs(plant, [limb()])
    add_limbs(plant, [limb(parent="brick::brick")])


YAML = """limbs:
- name: tail
  parent: brick
  length: {value: 100, unit: mm}
  stiffness: {value: 200, unit: N mm/rad}
  mass: {value: 40, unit: g}
  radius: {value: 8, unit: mm}
  rpy: {value: [0, 0, 180], unit: deg}
  damping: {value: 0.01, unit: N m s/rad}
  range: {value: [-10, 90], unit: deg}
  segments: 4
"""


def test_yaml(tmp_path):
    path = tmp_path / "limbs.yaml"
    path.write_text(YAML)
    (found,) = read_limbs(path)
    assert (found.length, found.stiffness, found.mass) == pytest.approx(
        (0.1, 0.2, 0.04)
    )
    np.testing.assert_allclose(found.rpy, [0, 0, np.pi])
    np.testing.assert_allclose(found.range, np.radians([-10, 90]))
    assert found.segments == 4
    assert plant_with([found]).num_actuators() == 5


@pytest.mark.parametrize(
    "old, new, word",
    [
        ("unit: g}", "unit: mm}", "mass"),
        ("unit: N mm/rad", "unit: N/m", "stiffness"),
        ("unit: N mm/rad", "unit: furlong", "furlong"),
        ("{value: 40, unit: g}", "40", "mass"),
        ("value: 40", "value: heavy", "heavy"),
        ("  parent: brick\n", "", "parent"),
        ("segments: 4", "segmets: 4", "segments"),
        ("segments: 4", "segments: 0", "segments"),
        ("limbs:", "legs:", "limbs"),
        ("limbs:", "limbs: [", "YAML"),
        ("limbs:", "limbs: " + 3000 * "[", "YAML"),
        ("name: tail", "name: 2024-99-99", "YAML"),
        ("value: 40", "value: " + 5000 * "9", "YAML"),
        ("- name: tail\n", "- name: [1]\n", "name"),
        ("value: 100,", "value: [1, 2],", "length"),
    ],
)
def test_bad_yaml(old, new, word, tmp_path):
    path = tmp_path / "limbs.yaml"
    assert old in YAML
    path.write_text(YAML.replace(old, new))
    with pytest.raises(FileProblem, match=word) as caught:
        read_limbs(path)
    assert "limbs.yaml" in str(caught.value) and "\n" not in str(caught.value)


def test_missing_yaml(tmp_path):
    with pytest.raises(FileProblem):
        read_limbs(tmp_path / "none.yaml")


anything = st.one_of(
    st.floats(), st.integers(-5, 200), st.text(max_size=3), st.none(), st.booleans()
)


@settings(max_examples=150, deadline=None)
@given(
    key=st.sampled_from(
        "length stiffness mass radius damping segments range p".split()
    ),
    value=st.one_of(anything, st.lists(anything, max_size=4)),
)
def test_any_value_makes_a_limb_or_one_line(key, value):
    try:
        made = limb(**{key: value})
    except InvalidInput as error:
        assert "\n" not in str(error)
    else:
        assert made.weights.sum() == pytest.approx(1.0)
        assert np.isfinite(made.end(1.0)).all()
        assert len(made.joints) == made.segments + 1
