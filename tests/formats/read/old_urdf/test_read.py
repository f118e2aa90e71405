"""Old-Drake URDFs, one feature at a time."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from pydrake.math import RollPitchYaw, RotationMatrix
from pydrake.multibody.tree import LinearSpringDamper, RevoluteSpring

from drakebots.core.units import MM_G_MS, SI
from tests.helpers.old_urdf_samples import (
    INERTIAL,
    TINY,
    actuator_joints,
    force_elements,
    loaded,
    one_link,
    read_old,
    springs_of,
    total_mass,
    written,
)


def test_every_feature_of_a_small_model(tmp_path):
    path = written(tmp_path, TINY)
    urdf = read_old(path)
    plant, _ = loaded(urdf.text)
    joint = plant.GetJointByName("ab")
    assert joint.position_lower_limits() == pytest.approx(-math.pi / 4)
    assert joint.position_upper_limits() == pytest.approx(2 * math.pi)
    assert joint.default_damping() == 0.3
    assert actuator_joints(plant) == ["ab"]
    X_PF = joint.frame_on_parent().GetFixedPoseInBodyFrame()
    np.testing.assert_allclose(X_PF.translation(), [1, 0, 0], atol=1e-15)
    R = RollPitchYaw(0, 0, math.pi / 2).ToRotationMatrix()
    np.testing.assert_allclose(X_PF.rotation().matrix(), R.matrix(), atol=1e-15)
    assert plant.GetJointByName("bc").position_lower_limits() == [-0.6]
    tip = plant.GetFrameByName("tip").GetFixedPoseInBodyFrame()
    np.testing.assert_allclose(tip.translation(), [0, 0, 3], atol=1e-15)
    (foot,) = urdf.feet
    body, p = foot.body, foot.p_BF
    assert body == "a" and p.tolist() == [0, 1, 2] and not p.flags.writeable
    (loop,) = urdf.loops
    assert (loop.body_A, loop.body_B, loop.rows) == ("a", "c", "hinge")
    np.testing.assert_allclose(loop.p_AP, [1, 2, 3])
    np.testing.assert_allclose(loop.axis_A, [0, -1, 0], atol=1e-15)  # Rx(90) z
    np.testing.assert_allclose(loop.axis_B, [1, 0, 0], atol=1e-15)  # Ry(90) z
    assert "Drake ignores: collision group" in urdf.notes


@pytest.mark.parametrize("units", [SI, MM_G_MS])
def test_spring_energy_is_half_k_x_squared(tmp_path, units):
    plant, _ = loaded(read_old(written(tmp_path, TINY), units=units).text)
    plant.mutable_gravity_field().set_gravity_vector(np.zeros(3))
    context = plant.CreateDefaultContext()
    plant.GetJointByName("ab").set_angle(context, 0.4)
    plant.GetJointByName("bc").set_translation(context, 0.3 * units.length)
    hinge = 0.5 * 3 * (0.4 - math.pi / 6) ** 2
    slide = 0.5 * 5 * (0.3 - 0.1) ** 2
    energy = plant.CalcPotentialEnergy(context)
    assert energy == pytest.approx((hinge + slide) * units.torque, rel=1e-12)


def test_springs_of_one_joint_add_up(tmp_path):
    """Also those of one name, which old Drake takes, and of different rest angles."""
    more = """<force_element name="k1"><torsional_spring stiffness="4"
      rest_angle="pi/2"><joint name="ab"/></torsional_spring></force_element></robot>"""
    urdf = read_old(written(tmp_path, TINY.replace("</robot>", more)))
    plant = loaded(urdf.text)[0]
    assert springs_of(plant) == {"ab": 7.0, "bc": 5.0}
    (hinge,) = [f for f in force_elements(plant) if isinstance(f, RevoluteSpring)]
    for angle in (0.2, 1.1):
        wanted = 3 * (angle - math.pi / 6) + 4 * (angle - math.pi / 2)
        torque = 7 * (angle - hinge.default_nominal_angle())
        assert torque == pytest.approx(wanted, rel=1e-12)


def test_a_continuous_joint_keeps_its_limits(tmp_path):
    """As in old Drake; SDF's continuous joints have none."""
    urdf = read_old(written(tmp_path, TINY.replace("revolute", "continuous", 1)))
    joint = loaded(urdf.text)[0].GetJointByName("ab")
    assert joint.position_lower_limits() == pytest.approx([-math.pi / 4])
    assert joint.position_upper_limits() == pytest.approx([2 * math.pi])
    assert "a continuous joint keeps its limits, unlike in ROS: ab" in urdf.notes


def test_spring_damper_between_two_links(tmp_path):
    more = """<force_element name="d"><linear_spring_damper rest_length="2"
      stiffness="3" damping="4"><link1 link="a" xyz="1 0 0"/><link2 link="c"/>
      </linear_spring_damper></force_element></robot>"""
    path = written(tmp_path, TINY.replace("</robot>", more))
    plant, _ = loaded(read_old(path, units=MM_G_MS).text)
    (last,) = [f for f in force_elements(plant) if isinstance(f, LinearSpringDamper)]
    assert last.free_length() == pytest.approx(2e-3)
    assert last.stiffness() == pytest.approx(3e3)  # g/ms^2 is kN/m
    assert last.damping() == pytest.approx(4.0)  # g/ms is kg/s
    np.testing.assert_allclose(last.p_AP(), [1e-3, 0, 0])


def test_fixed_floating_and_world_joints(tmp_path):
    text = f"""<robot name="r" xmlns="http://drake.mit.edu">
      <link name="world"/><link name="a">{INERTIAL}</link>
      <link name="b">{INERTIAL}</link><link name="c">{INERTIAL}</link>
      <joint name="wa" type="fixed"><parent link="world"/><child link="a"/>
        <origin xyz="0 0 1"/><axis xyz="0 0 0"/></joint>
      <joint name="ab" type="continuous"><parent link="a"/><child link="b"/></joint>
      <joint name="bc" type="floating"><parent link="b"/><child link="c"/>
        <origin xyz="0 1 0"/></joint></robot>"""
    urdf = read_old(written(tmp_path, text))
    plant, _ = loaded(urdf.text)
    assert plant.num_velocities() == 1 + 6
    context = plant.CreateDefaultContext()
    X_WC = plant.EvalBodyPoseInWorld(context, plant.GetBodyByName("c"))
    np.testing.assert_allclose(X_WC.translation(), [0, 1, 1], atol=1e-15)
    np.testing.assert_allclose(plant.GetJointByName("ab").revolute_axis(), [1, 0, 0])
    assert "a floating joint leaves its link free: bc" in urdf.notes


def test_links_without_mass_stay_without(tmp_path):
    zero = '<inertial><mass value="0"/><inertia ixx="0" iyy="0" izz="0"/></inertial>'
    beside = f"""<link name="b"/><link name="c">{zero}</link>
      <joint name="ab" type="fixed"><parent link="a"/><child link="b"/></joint>
      <joint name="ac" type="fixed"><parent link="a"/><child link="c"/></joint>"""
    urdf = read_old(written(tmp_path, one_link(beside=beside)))
    plant, _ = loaded(urdf.text)
    assert total_mass(plant) == 2.0  # libsdformat would make b 1 kg


@pytest.mark.parametrize("moments", [(1, 1, 0), (1, 2, 3), (1, 1, 1e-9), (0, 0, 0)])
def test_thin_bodies_at_any_angle_keep_their_inertia(tmp_path, moments):
    rng = np.random.default_rng(1)
    for rpy in rng.uniform(-3, 3, (5, 3)):
        R = RotationMatrix(RollPitchYaw(rpy)).matrix()
        wanted = R @ np.diag(moments) @ R.T
        wanted = (wanted + wanted.T) / 2
        keys = {"ixx": 0, "ixy": 1, "ixz": 2, "iyy": 4, "iyz": 5, "izz": 8}
        inertia = " ".join(f'{k}="{wanted.flat[i]!r}"' for k, i in keys.items())
        inertia = re.sub(r"np\.float64\((.*?)\)", r"\1", inertia)
        inside = f'<inertial><mass value="2"/><inertia {inertia}/></inertial>'
        plant, _ = loaded(read_old(written(tmp_path, one_link(inside))).text)
        spatial = plant.GetBodyByName("a").default_spatial_inertia()
        found = spatial.CalcRotationalInertia().CopyToFullMatrix3()
        np.testing.assert_allclose(found, wanted, atol=1e-11)


def test_meshes_are_kept_where_they_exist(tmp_path):
    (tmp_path / "t.obj").write_text(
        "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
    )
    mesh = '<geometry><mesh filename="{}" scale="1000"/></geometry>'
    inside = (
        f"{INERTIAL}<visual>{mesh.format('t.obj')}</visual>"
        f"<collision>{mesh.format('none.obj')}</collision>"
    )
    urdf = read_old(written(tmp_path, one_link(inside)), units=MM_G_MS)
    _, scene_graph = loaded(urdf.text)
    inspector = scene_graph.model_inspector()
    (shape,) = [inspector.GetShape(i) for i in inspector.GetAllGeometryIds()]
    np.testing.assert_allclose(shape.scale3(), [1, 1, 1])
    assert "a collision mesh is not found and left out: none.obj" in urdf.notes


def test_materials_by_name(tmp_path):
    sphere = '<geometry><sphere radius="1"/></geometry>'
    inside = f"""{INERTIAL}
      <visual>{sphere}<material name="k"><color rgba="0.1 0.2 0.3 1"/></material>
      </visual><visual>{sphere}<material name="k"/></visual>
      <visual>{sphere}<material name="unheard"/></visual>"""
    urdf = read_old(written(tmp_path, one_link(inside)))
    assert urdf.text.count("<diffuse>0.1 0.2 0.3 1.0</diffuse>") == 2
    assert "a material is never defined: unheard" in urdf.notes


def test_ignored_friction_is_noted(tmp_path):
    text = TINY.replace('damping="0.3"', 'damping="0.3" friction="1"')
    notes = read_old(written(tmp_path, text)).notes
    assert "Drake ignores joint friction: ab" in notes


def test_actuators_in_another_order_are_noted(tmp_path):
    more = '<transmission type="SimpleTransmission"><actuator/><joint name="{}"/>'
    text = TINY.replace(
        "<transmission ", more.format("bc") + "</transmission><transmission "
    )
    urdf = read_old(written(tmp_path, text))
    assert actuator_joints(loaded(urdf.text)[0]) == ["ab", "bc"]
    assert any("order of the joints" in note for note in urdf.notes)


PLAIN = one_link().replace('xmlns="http://drake.mit.edu"', "")


@pytest.mark.parametrize(
    ("text", "old"), [(TINY, True), (one_link(), True), (PLAIN, False)]
)
def test_old_files_are_told_from_others(tmp_path, text, old):
    assert (read_old(written(tmp_path, text)).kind == "old Drake") is old
