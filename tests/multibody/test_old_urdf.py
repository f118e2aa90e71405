"""Old-Drake URDFs: the public robots, every tag, and files that are wrong."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydrake.geometry import Capsule, SceneGraph, Sphere
from pydrake.math import RollPitchYaw, RotationMatrix
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import (
    ForceElementIndex,
    JointActuatorIndex,
    JointIndex,
    LinearSpringDamper,
    PrismaticSpring,
    RevoluteSpring,
)

from drakebots import build_robot, load
from drakebots.errors import InvalidInput, ModelProblem
from drakebots.multibody.arithmetic import arithmetic
from drakebots.multibody.loops import LoopClosure
from drakebots.multibody.old_urdf import is_old_urdf, read_old_urdf
from drakebots.multibody.timestepping import TimeStepper
from drakebots.units import MM_G_MS, SI

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data"
HAMR = DATA / "hamr" / "HAMR_scaledV2_TYM_rss.urdf"
with_data = pytest.mark.skipif(
    not DATA.is_dir(), reason=f"the public URDFs are not in {DATA}"
)

INERTIAL = (
    '<inertial><mass value="2"/><inertia ixx="1" ixy="0" ixz="0" iyy="1.5" iyz="0" '
    'izz="2"/></inertial>'
)
TINY = f"""<robot name="tiny">
  <link name="a">{INERTIAL}
    <collision group="feet"><origin xyz="0 1, 2"/>
      <geometry><sphere radius="0"/></geometry></collision>
  </link>
  <link name="b">{INERTIAL}</link>
  <link name="c">{INERTIAL}</link>
  <joint name="ab" type="revolute"><parent link="a"/><child link="b"/>
    <origin xyz="1 0 0" rpy="0 0 pi/2"/><axis xyz="0 0 2"/>
    <limit lower="-pi/4" upper="(1+1)*pi"/><dynamics damping="0.3"/></joint>
  <joint name="bc" type="prismatic"><parent link="b"/><child link="c"/>
    <axis xyz="0 1 0"/><limit lower="-.6" upper=".6"/></joint>
  <frame name="tip" link="c" xyz="0 0 3" rpy="pi/2 0 0"/>
  <loop_joint name="loop" type="continuous"><axis xyz="0 0 1"/>
    <link1 link="a" xyz="1 2 3" rpy="pi/2 0 0"/>
    <link2 link="c" xyz="1, 0, 0" rpy="0 pi/2 0"/></loop_joint>
  <force_element name="k1"><torsional_spring stiffness="3" rest_angle="pi/6">
    <joint name="ab"/></torsional_spring></force_element>
  <force_element name="k2"><prismatic_spring stiffness="5" rest_length="0.1">
    <joint name="bc"/></prismatic_spring></force_element>
  <transmission type="SimpleTransmission" name="t"><actuator name="m"/>
    <joint name="ab"/><mechanicalReduction>1</mechanicalReduction></transmission>
</robot>
"""


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "model.urdf"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def one_link(inside: str = INERTIAL, beside: str = "") -> str:
    return f'<robot name="r"><link name="a">{inside}</link>{beside}</robot>'


def loaded(sdf: str) -> tuple[MultibodyPlant, SceneGraph]:
    plant, scene_graph = MultibodyPlant(0.0), SceneGraph()
    plant.RegisterAsSourceForSceneGraph(scene_graph)
    parser = Parser(plant)
    parser.SetStrictParsing()
    parser.AddModelsFromString(sdf, "sdf")
    plant.Finalize()
    return plant, scene_graph


def total_mass(plant: MultibodyPlant) -> float:
    return plant.CalcTotalMass(plant.CreateDefaultContext())


def actuator_joints(plant: MultibodyPlant) -> list[str]:
    actuators = map(JointActuatorIndex, range(plant.num_actuators()))
    return [plant.get_joint_actuator(i).joint().name() for i in actuators]


# -- the public robots -------------------------------------------------------


@with_data
def test_hamr_is_the_published_robot():
    urdf = read_old_urdf(HAMR, units=MM_G_MS)
    plant, _ = loaded(urdf.sdf)
    assert urdf.name == "Hamr" and is_old_urdf(HAMR)
    assert abs(total_mass(plant) - 1.474991e-3) < 5e-10
    assert plant.num_velocities() == 38
    legs = ("FL", "RL", "FR", "RR")
    driven = [f"{leg}{q}" for leg in legs for q in ("qsact", "qlact")]
    assert actuator_joints(plant) == driven
    springs = HAMR.read_text().count("<force_element")
    assert springs == 32 and plant.num_force_elements() == springs + 1  # gravity
    assert all(loop.rows == "hinge" and not loop.in_file for loop in urdf.loops)
    closure = LoopClosure(plant, urdf.loops)
    context = plant.CreateDefaultContext()
    assert closure.gaps(context).shape == (12,)
    # The file's own digits leave 1.44e-7 mm in two coordinates of the qfb2 loops.
    assert closure.gaps(context).max() < 2.1e-10
    assert np.abs(closure.residual(context)).max() < 1.5e-10
    assert sorted(urdf.feet) == ["FLL4", "FRL4", "RLL4", "RRL4"]
    np.testing.assert_allclose(urdf.feet["FLL4"][1], [0, 7.58e-3, -11.35e-3])
    assert sum("stray text '/'" in note for note in urdf.notes) == 2


def force_elements(plant: MultibodyPlant) -> list:
    return [
        plant.get_force_element(ForceElementIndex(i))
        for i in range(plant.num_force_elements())
    ]


def springs_of(plant: MultibodyPlant) -> dict[str, float]:
    found = {}
    for force in force_elements(plant):
        if isinstance(force, RevoluteSpring):
            found[force.joint().name()] = force.default_stiffness()
        elif isinstance(force, PrismaticSpring):
            found[force.joint().name()] = force.stiffness()
    return found


@with_data
def test_hamr_springs_damping_and_limits_are_in_si():
    plant, _ = loaded(read_old_urdf(HAMR, units=MM_G_MS).sdf)
    stiffness = springs_of(plant)
    assert len(stiffness) == 32
    assert stiffness["FLqs1"] == pytest.approx(0.092e-3)  # N mm/rad
    assert stiffness["RLql1"] == pytest.approx(0.2e-3)
    assert stiffness["FRqfb1"] == pytest.approx(0.06e-3)
    assert stiffness["FLqsact"] == pytest.approx(1155.6)  # N/mm
    assert stiffness["RRqlact"] == pytest.approx(1694.6)
    slide, hinge = plant.GetJointByName("FLqsact"), plant.GetJointByName("FLqs1")
    assert slide.position_upper_limits() == pytest.approx(0.3e-3)
    assert hinge.position_lower_limits() == pytest.approx(-math.pi / 4)
    assert slide.default_damping() == pytest.approx(0.01)  # N/(mm/ms)
    assert hinge.default_damping() == pytest.approx(0.02804e-6)  # N mm ms/rad


def velocity_order(plant: MultibodyPlant) -> list[str]:
    joints = [plant.get_joint(JointIndex(i)) for i in range(plant.num_joints())]
    moving = [joint for joint in joints if joint.num_velocities() > 0]
    moving.sort(key=lambda joint: joint.velocity_start())
    return [j.name() for j in moving for _ in range(j.num_velocities())]


@with_data
def test_hamr_mass_matrix_is_that_of_our_model():
    theirs, _ = loaded(read_old_urdf(HAMR, units=MM_G_MS).sdf)
    ours = MultibodyPlant(0.0)
    Parser(ours).AddModels(str(ROOT / "models" / "hamr" / "hamr.sdf"))
    ours.Finalize()
    assert velocity_order(theirs) == velocity_order(ours)
    rng = np.random.default_rng(0)
    for _ in range(5):
        q = rng.uniform(-0.5, 0.5, theirs.num_positions())
        q[:4] /= np.linalg.norm(q[:4])
        v = rng.normal(size=theirs.num_velocities())
        values = []
        for plant in (theirs, ours):
            context = plant.CreateDefaultContext()
            plant.SetPositions(context, q)
            plant.SetVelocities(context, v)
            values.append((plant.CalcMassMatrix(context), plant.CalcBiasTerm(context)))
        for ours_value, theirs_value in zip(*values):
            scale = np.abs(theirs_value).max()
            assert np.abs(ours_value - theirs_value).max() < 1e-9 * scale


@with_data
def test_one_hamr_leg_with_twist():
    urdf = read_old_urdf(DATA / "hamr" / "FLwithtwist.urdf", units=MM_G_MS)
    plant, _ = loaded(urdf.sdf)
    assert plant.num_velocities() == 6 + 10 and plant.num_actuators() == 2
    assert len(urdf.loops) == 3 and list(urdf.feet) == ["FLL4"]
    assert len(springs_of(plant)) == 8
    closure = LoopClosure(plant, urdf.loops)
    assert closure.gaps(plant.CreateDefaultContext()).max() < 2.1e-10
    twist = plant.GetJointByName("FLqs2_twist")
    assert twist.default_damping() == pytest.approx(0.0249e-6)


@with_data
def test_littledog():
    path = DATA / "littledog" / "LittleDog2_LittleDog.urdf"
    urdf = read_old_urdf(path)
    plant, scene_graph = loaded(urdf.sdf)
    assert is_old_urdf(path)
    assert plant.num_velocities() == 18 and plant.num_actuators() == 12
    assert total_mass(plant) == pytest.approx(1.8 + 4 * (0.0623 + 0.1279 + 0.0464))
    assert actuator_joints(plant)[:2] == ["front_left_hip_roll", "front_left_hip_pitch"]
    assert sorted(urdf.feet) == [
        f"{end}_{side}_lower_leg"
        for end in ("back", "front")
        for side in ("left", "right")
    ]
    frame = plant.GetFrameByName("back_left_foot_center")
    p = frame.GetFixedPoseInBodyFrame().translation()
    np.testing.assert_allclose(p, urdf.feet["back_left_lower_leg"][1])
    inspector = scene_graph.model_inspector()
    shapes = [inspector.GetShape(i) for i in inspector.GetAllGeometryIds()]
    assert sum(isinstance(shape, Capsule) for shape in shapes) == 4
    radii = [shape.radius() for shape in shapes if isinstance(shape, Sphere)]
    assert radii == [1e-9] * 4


@with_data
def test_falling_brick_has_eight_feet():
    urdf = read_old_urdf(DATA / "littledog" / "FallingBrickContactPoints.urdf")
    plant, _ = loaded(urdf.sdf)
    assert plant.num_velocities() == 6 and total_mass(plant) == 1.0
    assert list(urdf.feet) == [f"brick_{i}" for i in range(8)]
    corners = np.abs([p for _, p in urdf.feet.values()])
    np.testing.assert_allclose(corners, np.tile([1, 0.25, 0.5], (8, 1)))


# -- one feature at a time ---------------------------------------------------


def test_every_feature_of_a_small_model(tmp_path):
    path = written(tmp_path, TINY)
    urdf = read_old_urdf(path)
    plant, _ = loaded(urdf.sdf)
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
    body, p = urdf.feet["a"]
    assert body == "a" and p.tolist() == [0, 1, 2] and not p.flags.writeable
    (loop,) = urdf.loops
    assert (loop.body_A, loop.body_B, loop.rows) == ("a", "c", "hinge")
    np.testing.assert_allclose(loop.p_AP, [1, 2, 3])
    np.testing.assert_allclose(loop.axis_A, [0, -1, 0], atol=1e-15)  # Rx(90) z
    np.testing.assert_allclose(loop.axis_B, [1, 0, 0], atol=1e-15)  # Ry(90) z
    assert urdf.notes == ("<collision> (line 3): collision group 'feet' ignored",)


@pytest.mark.parametrize("units", [SI, MM_G_MS])
def test_spring_energy_is_half_k_x_squared(tmp_path, units):
    plant, _ = loaded(read_old_urdf(written(tmp_path, TINY), units=units).sdf)
    plant.mutable_gravity_field().set_gravity_vector(np.zeros(3))
    context = plant.CreateDefaultContext()
    plant.GetJointByName("ab").set_angle(context, 0.4)
    plant.GetJointByName("bc").set_translation(context, 0.3 * units.length)
    hinge = 0.5 * 3 * (0.4 - math.pi / 6) ** 2
    slide = 0.5 * 5 * (0.3 - 0.1) ** 2
    energy = plant.CalcPotentialEnergy(context)
    assert energy == pytest.approx((hinge + slide) * units.torque, rel=1e-12)


def test_springs_of_one_joint_add_up(tmp_path):
    more = """<force_element name="k3"><torsional_spring stiffness="4"
      rest_angle="pi/6"><joint name="ab"/></torsional_spring></force_element></robot>"""
    urdf = read_old_urdf(written(tmp_path, TINY.replace("</robot>", more)))
    assert springs_of(loaded(urdf.sdf)[0]) == {"ab": 7.0, "bc": 5.0}


def test_spring_damper_between_two_links(tmp_path):
    more = """<force_element name="d"><linear_spring_damper rest_length="2"
      stiffness="3" damping="4"><link1 link="a" xyz="1 0 0"/><link2 link="c"/>
      </linear_spring_damper></force_element></robot>"""
    path = written(tmp_path, TINY.replace("</robot>", more))
    plant, _ = loaded(read_old_urdf(path, units=MM_G_MS).sdf)
    (last,) = [f for f in force_elements(plant) if isinstance(f, LinearSpringDamper)]
    assert last.free_length() == pytest.approx(2e-3)
    assert last.stiffness() == pytest.approx(3e3)  # g/ms^2 is kN/m
    assert last.damping() == pytest.approx(4.0)  # g/ms is kg/s
    np.testing.assert_allclose(last.p_AP(), [1e-3, 0, 0])


def test_fixed_floating_and_world_joints(tmp_path):
    text = f"""<robot name="r"><link name="world"/><link name="a">{INERTIAL}</link>
      <link name="b">{INERTIAL}</link><link name="c">{INERTIAL}</link>
      <joint name="wa" type="fixed"><parent link="world"/><child link="a"/>
        <origin xyz="0 0 1"/><axis xyz="0 0 0"/></joint>
      <joint name="ab" type="continuous"><parent link="a"/><child link="b"/></joint>
      <joint name="bc" type="floating"><parent link="b"/><child link="c"/>
        <origin xyz="0 1 0"/></joint></robot>"""
    urdf = read_old_urdf(written(tmp_path, text))
    plant, _ = loaded(urdf.sdf)
    assert plant.num_velocities() == 1 + 6
    context = plant.CreateDefaultContext()
    X_WC = plant.EvalBodyPoseInWorld(context, plant.GetBodyByName("c"))
    np.testing.assert_allclose(X_WC.translation(), [0, 1, 1], atol=1e-15)
    np.testing.assert_allclose(plant.GetJointByName("ab").revolute_axis(), [1, 0, 0])
    assert len(urdf.notes) == 1 and "free body" in urdf.notes[0]


def test_links_without_mass_stay_without(tmp_path):
    zero = '<inertial><mass value="0"/><inertia ixx="0" iyy="0" izz="0"/></inertial>'
    beside = f"""<link name="b"/><link name="c">{zero}</link>
      <joint name="ab" type="fixed"><parent link="a"/><child link="b"/></joint>
      <joint name="ac" type="fixed"><parent link="a"/><child link="c"/></joint>"""
    urdf = read_old_urdf(written(tmp_path, one_link(beside=beside)))
    plant, _ = loaded(urdf.sdf)
    assert total_mass(plant) == 2.0  # libsdformat would make b 1 kg
    assert [n.partition(": ")[2] for n in urdf.notes] == [
        "link 'b' has no mass",
        "link 'c' has no mass",
    ]


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
        plant, _ = loaded(read_old_urdf(written(tmp_path, one_link(inside))).sdf)
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
    urdf = read_old_urdf(written(tmp_path, one_link(inside)), units=MM_G_MS)
    _, scene_graph = loaded(urdf.sdf)
    inspector = scene_graph.model_inspector()
    (shape,) = [inspector.GetShape(i) for i in inspector.GetAllGeometryIds()]
    np.testing.assert_allclose(shape.scale3(), [1, 1, 1])
    assert urdf.notes == (
        "<mesh> (line 1): mesh 'none.obj' not found, collision dropped",
    )


def test_materials_by_name(tmp_path):
    sphere = '<geometry><sphere radius="1"/></geometry>'
    inside = f"""{INERTIAL}
      <visual>{sphere}<material name="k"><color rgba="0.1 0.2 0.3 1"/></material>
      </visual><visual>{sphere}<material name="k"/></visual>
      <visual>{sphere}<material name="unheard"/></visual>"""
    urdf = read_old_urdf(written(tmp_path, one_link(inside)))
    assert urdf.sdf.count("<diffuse>0.1 0.2 0.3 1.0</diffuse>") == 2
    assert len(urdf.notes) == 1 and "unheard" in urdf.notes[0]


def test_ignored_friction_and_stray_text_are_noted(tmp_path):
    text = TINY.replace('damping="0.3"', 'damping="0.3" friction="1"')
    text = text.replace("</link>", "/</link>", 1)
    notes = read_old_urdf(written(tmp_path, text)).notes
    assert any("friction of joint 'ab'" in note for note in notes)
    assert any("stray text '/'" in note for note in notes)


def test_actuators_in_another_order_are_noted(tmp_path):
    more = '<transmission type="SimpleTransmission"><actuator/><joint name="{}"/>'
    text = TINY.replace(
        "<transmission ", more.format("bc") + "</transmission><transmission "
    )
    urdf = read_old_urdf(written(tmp_path, text))
    assert actuator_joints(loaded(urdf.sdf)[0]) == ["ab", "bc"]
    assert any("order of the joints" in note for note in urdf.notes)


@pytest.mark.parametrize(
    ("text", "old"),
    [
        (TINY, True),
        (one_link(), False),
        (one_link().replace("<robot", '<robot xmlns="http://drake.mit.edu"'), True),
        (one_link(f'{INERTIAL}<visual><origin xyz="0, 1 2"/></visual>'), True),
        (one_link(f'{INERTIAL}<visual><origin rpy="0 pi 2"/></visual>'), True),
        (one_link('<visual><geometry><sphere radius="0."/></geometry></visual>'), True),
        ("<sdf/>", False),
        ("no XML", False),
    ],
)
def test_is_old_urdf(tmp_path, text, old):
    assert is_old_urdf(written(tmp_path, text)) is old


def test_is_old_urdf_of_no_file(tmp_path):
    assert not is_old_urdf(tmp_path) and not is_old_urdf(tmp_path / "none.urdf")


# -- wrong files -------------------------------------------------------------


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
    "foreign namespace": (one_link('<x:mass xmlns:x="y"/>'), "<y}mass>"),
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
    "duplicate spring": (swap('name="k2"', 'name="k1"'), "name='k1'"),
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
    "limits of continuous": (swap('"revolute"', '"continuous"'), "'ab'"),
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
    "zeros": (b"\0" * 100, "XML"),
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
    assert "Drake refuses" not in message  # found before Drake sees it


def test_springs_of_different_rests_are_refused(tmp_path):
    more = """<force_element name="k3"><torsional_spring stiffness="4"
      rest_angle="0"><joint name="ab"/></torsional_spring></force_element></robot>"""
    with pytest.raises(ModelProblem, match="'ab' has springs of different rest_angle"):
        read_old_urdf(written(tmp_path, TINY.replace("</robot>", more)))


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
    plant, _ = loaded(read_old_urdf(written(tmp_path, text)).sdf)
    assert plant.num_velocities() == 299 + 6


# -- anything at all ---------------------------------------------------------

_numbers = st.one_of(
    st.just("pi"),
    st.integers(0, 999).map(str),
    st.floats(0, 1e6, allow_subnormal=False).map(repr),
    st.sampled_from([".5", "3.", "2E-1", "1e+3"]),
)
_expressions = st.recursive(
    _numbers,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/", " - "]), inner).map(
            "".join
        ),
        inner.map(lambda text: f"({text})"),
        inner.map(lambda text: f"-{text}"),
    ),
    max_leaves=8,
)


@given(_expressions)
def test_arithmetic_agrees_with_python(text):
    try:
        expected = float(eval(text, {"pi": math.pi}))
    except (ZeroDivisionError, OverflowError):
        expected = math.nan
    if math.isfinite(expected) and len(text) <= 200:
        assert arithmetic(text) == pytest.approx(expected, rel=1e-12)
    else:
        with pytest.raises(InvalidInput):
            arithmetic(text)


@given(st.text(alphabet="0123456789.eE+-*/() pi", max_size=30))
def test_arithmetic_never_fails_otherwise(text):
    try:
        assert math.isfinite(arithmetic(text))
    except InvalidInput as error:
        assert "\n" not in str(error)


_PIECES = re.findall(r"<[^>]*>|[^<]+", TINY)


@st.composite
def mutated(draw) -> bytes:
    """TINY with pieces or bytes deleted, doubled, exchanged or overwritten."""
    pieces = list(_PIECES)
    for _ in range(draw(st.integers(0, 2))):
        i, j = (draw(st.integers(0, len(pieces) - 1)) for _ in range(2))
        match draw(st.sampled_from(["delete", "double", "swap"])):
            case "delete":
                pieces.pop(i)
            case "double":
                pieces.insert(j, pieces[i])
            case "swap":
                pieces[i], pieces[j] = pieces[j], pieces[i]
    data = bytearray("".join(pieces).encode())
    for _ in range(draw(st.integers(0, 3))):
        i = draw(st.integers(0, len(data) - 1))
        match draw(st.sampled_from(["delete", "overwrite", "digit"])):
            case "delete":
                del data[i : i + draw(st.integers(1, 4))]
            case "overwrite":
                data[i] = draw(st.integers(0, 255))
            case "digit":
                digits = [k for k, byte in enumerate(data) if chr(byte).isdigit()]
                data[draw(st.sampled_from(digits))] = ord(
                    draw(st.sampled_from("09-e."))
                )
        if not data:
            break
    return bytes(data)


def loads_or_refuses(folder: Path, data: bytes) -> None:
    path = written(folder, data)
    assert is_old_urdf(path) in (True, False)
    try:
        urdf = read_old_urdf(path)
    except ModelProblem as error:
        assert "\n" not in str(error)
    else:
        loaded(urdf.sdf)


_settings = settings(
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@settings(_settings, max_examples=50)
@given(data=mutated())
def test_mutated_files_load_or_are_refused(tmp_path, data):
    loads_or_refuses(tmp_path, data)


@pytest.mark.slow
@settings(_settings, max_examples=1000)
@given(data=mutated())
def test_many_mutated_files_load_or_are_refused(tmp_path, data):
    loads_or_refuses(tmp_path, data)


@with_data
def test_public_hamr_steps_like_ours():
    """The public URDF, loaded by path, has 24 independent rows and falls onto the
    ground in hard contact exactly as the project's own model does."""
    steps = []
    for model in (load(HAMR, units=MM_G_MS), load("hamr")):
        assert (model.summary.loop_rows, model.summary.independent_rows) == (24, 24)
        robot = build_robot(model, scaling=MM_G_MS, base="euler", time_step=0)
        stepper = TimeStepper(robot, 0.1, friction=0.51)
        q, v = np.zeros(38), np.zeros(38)
        q[2] = 12.6
        for _ in range(100):
            q, v, _ = stepper.step(q, v, np.zeros(8))
        steps.append(q)
    assert np.abs(steps[0] - steps[1]).max() < 1e-7


def test_redundant_rows_are_named():
    """All five rows of every hinge depend on each other: a clear refusal."""
    model = load("hamr")
    hinges = tuple(replace(loop, rows="hinge") for loop in model.loops)
    model = replace(model, loops=hinges)
    robot = build_robot(model, scaling=MM_G_MS, base="fixed", time_step=0)
    stepper = TimeStepper(robot, 0.1)
    with pytest.raises(InvalidInput, match="rows: planar"):
        stepper.step(np.zeros(32), np.zeros(32), np.zeros(8))
