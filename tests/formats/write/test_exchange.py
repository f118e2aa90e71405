"""MJCF, URDF and SDF of our models beside Drake: flights, contacts, names, refusals."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from itertools import combinations

import numpy as np
import pytest
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import MultibodyPlant
from pydrake.systems.analysis import Simulator

from drakebots import build_robot, load
from drakebots.core.errors import DrakebotsWarning, FileProblem, InvalidInput
from drakebots.formats import plain_robot, write_mjcf, write_sdf, write_urdf
from drakebots.formats.read.tree import add
from drakebots.model import available_models
from tests.helpers.coupled_robots import linkage
from tests.helpers.scripts import load_script
from tests.helpers.standing_robots import nested_quadruped

mujoco = pytest.importorskip("mujoco", minversion="3.3")
# By default MuJoCo writes its warnings to a file in the folder of the tests.
mujoco.set_mju_user_warning(lambda text: None)
bench = load_script("exchange")


@pytest.mark.parametrize("name", available_models())
def test_models_fly_alike(name, tmp_path):
    """0.1 s in the air in MuJoCo, and in Drake from URDF and SDF: bodies stay together.

    The robot's joints move by much more than they differ.
    """
    row = bench.compare(name, tmp_path)
    assert row["mujoco"] < bench.TARGET
    assert row["urdf"] < 1e-6 and row["sdf"] < 1e-6
    assert row["moved"] > 0.05
    assert row["bodies"] == 1 or row["turned_or_bent"] > 100 * row["mujoco"]
    assert row["missing_in_mujoco"] == []


def test_a_loop_that_is_forgotten_is_seen(tmp_path):
    """Without its constraints HAMR flies elsewhere: the comparison can fail."""
    model, throw = load("hamr"), bench.make_throw(load("hamr"))
    path = write_mjcf(model, tmp_path / "hamr.xml", time_step=bench.STEP)
    tree = ET.parse(path)
    tree.getroot().remove(tree.find("equality"))
    tree.write(path)
    ours = bench.drake_flight(model, throw, 0.02)
    theirs = bench.mujoco_flight(path, throw, 0.02)
    assert bench.distance(ours, theirs) > 1e-4 * 0.04


@pytest.mark.parametrize("name", ["beetle", "cow"])
def test_it_stands_on_mujocos_ground(name, tmp_path):
    """Under its own weight with stiff joints; contact forces carry all of it."""
    path = write_mjcf(load(name), tmp_path / "robot.xml", time_step=5e-4, ground=0.8)
    model = mujoco.MjModel.from_xml_path(str(path))
    hinges = model.jnt_type == mujoco.mjtJoint.mjJNT_HINGE
    model.jnt_stiffness[hinges], model.dof_damping[6:] = 200.0, 5.0
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    model.qpos_spring[:] = data.qpos
    for _ in range(3000):
        mujoco.mj_step(model, data)
    assert np.abs(data.qvel).max() < 1e-3
    force, total = np.zeros(6), 0.0
    for i in range(data.ncon):
        mujoco.mj_contactForce(model, data, i, force)
        total += force[0] * abs(data.contact[i].frame[2])
    assert total == pytest.approx(9.81 * load(name).summary.mass, rel=1e-3)


FOOT = """<sdf version="1.9"><model name="r"><link name="trunk">{inertial}{ball}</link>
  <link name="shank"><pose>0 0 -.2 0 0 0</pose>{inertial}</link>
  <link name="foot"><pose>0 0 -.4 0 0 0</pose><inertial><mass>0</mass><inertia><ixx>0
  </ixx><iyy>0</iyy><izz>0</izz></inertia></inertial>{ball}</link>
  <joint name="knee" type="revolute"><parent>trunk</parent><child>shank</child><axis>
  <xyz>0 1 0</xyz><limit><lower>{0}</lower><upper>{1}</upper></limit></axis></joint>
  <joint name="sole" type="fixed"><parent>shank</parent><child>foot</child></joint>
  </model></sdf>"""


def foot(folder, lower=-1, upper=1):
    """A leg whose foot has a shape and no mass, and may touch the trunk."""
    inertial = "<inertial><mass>1</mass></inertial>"
    ball = """<collision name="c"><geometry><sphere><radius>.03</radius></sphere>
      </geometry></collision>"""
    text = FOOT.format(lower, upper, inertial=inertial, ball=ball)
    (folder / "foot.sdf").write_text(text)
    return load(folder / "foot.sdf")


def test_shapes_have_no_mass(tmp_path):
    """MuJoCo gives a body without an inertia that of its shapes."""
    path = write_mjcf(foot(tmp_path), tmp_path / "foot.xml")
    theirs = mujoco.MjModel.from_xml_path(str(path))
    assert theirs.body_mass == pytest.approx([0, 1, 1, 0])
    assert load(path).summary.mass == pytest.approx(2)


def test_constraints_that_are_not_written_are_said(tmp_path):
    tag = "drake:tendon_constraint"
    said = {"offset": 0, "lower_limit": -1, "upper_limit": 1, "stiffness": 9}
    said["damping"] = 1
    values = "".join(f"<{tag}_{k}>{v}</{tag}_{k}>" for k, v in said.items())
    tendon = f'<{tag}><{tag}_joint name="knee" a="1"/>{values}</{tag}></model>'
    path = foot(tmp_path).path
    path.write_text(path.read_text().replace("</model>", tendon))
    with pytest.warns(DrakebotsWarning, match=r"not written:.*tendon_constraint"):
        write_mjcf(path, tmp_path / "foot.xml")
    with pytest.warns(DrakebotsWarning, match=r"not written:.*tendon_constraint"):
        write_urdf(path, tmp_path / "foot.urdf")


@pytest.mark.parametrize("angle", [0.0, 0.3])
def test_a_locked_joint_stays_locked(angle, tmp_path):
    """MuJoCo takes a range without width for none."""
    path = write_mjcf(foot(tmp_path, angle, angle), tmp_path / "foot.xml")
    theirs = mujoco.MjModel.from_xml_path(str(path))
    assert theirs.jnt_limited[theirs.joint("knee").id]
    found = theirs.jnt_range[theirs.joint("knee").id]
    np.testing.assert_allclose(found, angle, atol=1e-8)


@pytest.mark.parametrize("name", ["beetle", "minitaur", "foot"])
def test_the_same_bodies_may_touch(name, tmp_path):
    """Drake's filters and MuJoCo's exclusions and families leave the same pairs."""
    given = foot(tmp_path) if name == "foot" else load(name)
    path = write_mjcf(given, tmp_path / "robot.xml")
    model = mujoco.MjModel.from_xml_path(str(path))
    solid = [i for i in range(model.ngeom) if model.geom_contype[i]]
    bodies = {int(model.geom_bodyid[i]) for i in solid} - {0}
    excluded = {int(signature) for signature in model.exclude_signature}

    flag = mujoco.mjtDisableBit.mjDSBL_FILTERPARENT

    def may_touch(a: int, b: int) -> bool:
        a, b = sorted((a, b))
        family = model.body_weldid[model.body_parentid[model.body_weldid[b]]]
        above = model.body_weldid[model.body_parentid[model.body_weldid[a]]]
        same = model.body_weldid[a] == model.body_weldid[b]
        related = model.body_weldid[a] == family or model.body_weldid[b] == above
        related = related and not model.opt.disableflags & flag
        return not (same or related or (a << 16) + b in excluded)

    robot = plain_robot(given)
    inspector = robot.scene_graph.model_inspector()
    again = plain_robot(load(path)).scene_graph.model_inspector()
    pairs = [len(x.GetCollisionCandidates()) for x in (inspector, again)]
    assert pairs[0] == pairs[1] and len(bodies) >= 2
    for a, b in combinations(sorted(bodies), 2):
        first, second = (
            robot.plant.GetCollisionGeometriesForBody(
                robot.plant.GetBodyByName(model.body(i).name)
            )
            for i in (a, b)
        )
        filtered = all(inspector.CollisionFiltered(x, y) for x in first for y in second)
        assert may_touch(a, b) == (not filtered), (
            model.body(a).name,
            model.body(b).name,
        )


def test_a_urdf_has_all_that_urdf_can_say(tmp_path):
    """Names, feet, limits, motors, loops; Drake reads it strictly, MuJoCo reads it."""
    model = load("hamr")
    path = write_urdf(model, tmp_path / "hamr.urdf")
    back = load(path)
    assert back.summary.actuators == model.summary.actuators
    assert [foot.name for foot in back.feet] == [foot.name for foot in model.feet]
    assert [p.name for p in back.points] == [p.name for p in model.points]
    assert back.summary.independent_rows == 24
    plant = MultibodyPlant(1e-3)
    parser = Parser(plant)
    parser.SetStrictParsing()
    parser.AddModels(str(path))
    plant.Finalize()
    for name in ("FLqsact", "FLqs2"):
        ours = plain_robot(model).plant.GetJointByName(name)
        theirs = plant.GetJointByName(name)
        assert theirs.position_lower_limits() == ours.position_lower_limits()
        assert theirs.default_damping() == ours.default_damping()
    peer = mujoco.MjModel.from_xml_path(str(path))
    assert peer.nv == 32  # MuJoCo holds the root of a URDF
    assert peer.body_mass.sum() == pytest.approx(model.summary.mass, rel=1e-6)


BASE = """<robot name="base"><link name="root"/>
<link name="trunk"><inertial><mass value="2"/><inertia ixx="0.01" iyy="0.02" izz="0.02"
 ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="fix" type="fixed"><parent link="root"/><child link="trunk"/>
<origin xyz="0.1 0 0.2" rpy="0.3 0 0"/></joint></robot>"""


def test_inertia_survives_a_turned_joint(tmp_path):
    """A URDF's link stands in its joint's frame, an SDF's in its own: the mass matrix
    is the same there."""
    (tmp_path / "turned.sdf").write_text(
        """<sdf version="1.9"><model name="turned">
        <link name="a"><inertial><mass>1</mass></inertial></link>
        <link name="b"><inertial><pose>0.2 0.1 0 0.3 0 0</pose><mass>2</mass><inertia>
        <ixx>0.1</ixx><ixy>0</ixy><ixz>0</ixz><iyy>0.2</iyy><iyz>0</iyz><izz>0.25</izz>
        </inertia></inertial></link>
        <joint name="j" type="revolute"><pose>0.1 0 0 0.5 0.4 0.3</pose>
        <parent>a</parent><child>b</child><axis><xyz>0 1 0</xyz></axis></joint>
        </model></sdf>"""
    )
    model = load(tmp_path / "turned.sdf")
    matrices = []
    urdf = write_urdf(model, tmp_path / "again.urdf")
    sdf = write_sdf(model, tmp_path / "again.sdf")
    for one in (model, load(urdf), load(sdf)):
        plant = build_robot(one, time_step=0).plant
        context = plant.CreateDefaultContext()
        plant.GetJointByName("j").set_angle(context, 0.7)
        matrices.append(plant.CalcMassMatrix(context))
    for matrix in matrices[1:]:
        np.testing.assert_allclose(matrix, matrices[0], atol=1e-9)


def test_a_free_base_without_mass_stays_free(tmp_path):
    """What is welded to it carries it; nothing else is, it is refused."""
    (tmp_path / "base.urdf").write_text(BASE)
    model = load(tmp_path / "base.urdf")
    throw = bench.make_throw(model)
    path = write_mjcf(model, tmp_path / "base.xml", time_step=bench.STEP)
    theirs = bench.mujoco_flight(path, throw, 0.1)["trunk"]
    ours = bench.drake_flight(model, throw, 0.1)["trunk"]
    np.testing.assert_allclose(theirs, ours, atol=1e-7)
    assert np.ptp(ours[:, 2]) > 0.01


def test_what_is_refused(tmp_path):
    with pytest.raises(FileProblem, match=r"needs the ending \.xml"):
        write_mjcf("brick", tmp_path / "brick.urdf")
    with pytest.raises(FileProblem, match=r"needs the ending \.urdf"):
        write_urdf("brick", tmp_path / "brick.xml")
    with pytest.raises(FileProblem, match=r"needs the ending \.sdf"):
        write_sdf("brick", tmp_path / "brick.urdf")
    with pytest.raises(InvalidInput, match="time step must be > 0"):
        write_mjcf("brick", tmp_path / "brick.xml", time_step=0)
    assert not list(tmp_path.iterdir())


def test_a_half_space_that_moves_is_refused(tmp_path):
    """MuJoCo has none."""
    model = foot(tmp_path)
    shape = "<geometry><plane><normal>0 0 1</normal></plane></geometry>"
    plane = f'<collision name="p">{shape}</collision></link>'
    model.path.write_text(model.path.read_text().replace("</link>", plane, 1))
    with pytest.raises(InvalidInput, match="'p': MuJoCo has half spaces only on"):
        write_mjcf(model.path, tmp_path / "foot.xml")


_LINK = """<link name="{}"><inertial><origin xyz="0 0 0.1"/><mass value="1"/>
<inertia ixx="0.01" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>"""


def test_springs_between_points_and_ball_joints(tmp_path):
    """They fly in MuJoCo as in Drake, where a bushing keeps ball joints what they are;
    in the URDF and the SDF, too."""
    tag, links = "drake:linear_spring_damper", "".join(map(_LINK.format, "abcd"))
    ends = {"body_A": 'name="a"', "body_B": 'name="b"'}
    says = {"p_AP": "0.1 0 0", "p_BQ": "0 0.1 0", "free_length": 0.2}
    says |= {"stiffness": 30, "damping": 0.5}
    values = ends | {key: f'value="{value}"' for key, value in says.items()}
    spring = "".join(f"<{tag}_{key} {value}/>" for key, value in values.items())
    joints = """<joint name="hinge" type="continuous"><parent link="a"/>
        <child link="b"/><origin xyz="0 0 0.3"/><axis xyz="0 1 0"/></joint>"""
    for above, below in ("bc", "cd"):
        joints += f"""<drake:joint name="ball_{below}" type="ball">
            <parent link="{above}"/><child link="{below}"/><origin xyz="0 0 0.3"/>
            </drake:joint>"""
    frames = {"A": 'link="b" xyz="0 0 0.3"', "C": 'link="c"'}
    bushing = "".join(f"<drake:bushing_frame{end} name='{end}'/>" for end in frames)
    law = {"torque_stiffness": 2, "torque_damping": 0.1, "force_stiffness": 0}
    for key, value in (law | {"force_damping": 0}).items():
        bushing += f'<drake:bushing_{key} value="{value} {value} {value}"/>'
    parts = "".join(f'<frame name="{name}" {at}/>' for name, at in frames.items())
    parts += f"<drake:linear_bushing_rpy>{bushing}</drake:linear_bushing_rpy>"
    (tmp_path / "chain.urdf").write_text(
        f'<robot name="chain">{links}{joints}<{tag}>{spring}</{tag}>{parts}</robot>'
    )
    model = load(tmp_path / "chain.urdf")
    throw = bench.Throw(spin=np.array([1.0, 2.0, 3.0]), rates={"hinge": 2.0})
    ours = bench.drake_flight(model, throw, 0.1)
    path = write_mjcf(model, tmp_path / "chain.xml", time_step=bench.STEP)
    by_mujoco = bench.mujoco_flight(path, throw, 0.1)
    assert bench.distance(ours, by_mujoco) < 1e-4
    for again in (
        write_urdf(model, tmp_path / "again.urdf"),
        write_sdf(model, tmp_path / "again.sdf"),
    ):
        assert bench.distance(ours, bench.drake_flight(load(again), throw, 0.1)) < 1e-6
    theirs = mujoco.MjModel.from_xml_path(str(path))
    assert list(theirs.jnt_type).count(mujoco.mjtJoint.mjJNT_BALL) == 1
    assert theirs.ntendon == 1


def test_joints_that_follow_others(tmp_path):
    """The linkage swings by its weight in MuJoCo as in Drake, and its URDF and SDF say
    the same couplers."""
    model = linkage(tmp_path)
    for again in (
        load(write_urdf(model, tmp_path / "again.urdf")),
        load(write_sdf(model, tmp_path / "again.sdf")),
    ):
        assert again.couplers == model.couplers
        assert again.summary.actuators == ("j",)
    path = write_mjcf(model, tmp_path / "linkage.xml", time_step=1e-4)
    theirs = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(theirs)
    mujoco.mj_resetDataKeyframe(theirs, data, 0)
    for _ in range(1000):
        mujoco.mj_step(theirs, data)
    robot = build_robot(model, time_step=1e-4)
    simulator = Simulator(robot.plant)
    robot.plant.get_actuation_input_port().FixValue(
        simulator.get_mutable_context(), [0.0]
    )
    simulator.AdvanceTo(0.1)
    ours = robot.plant.GetPositions(simulator.get_context())
    found = [data.joint(name).qpos[0] for name in "jkst"]
    assert abs(ours[0]) > 0.02
    np.testing.assert_allclose(found, ours, atol=1e-2 * abs(ours[0]))


def test_names_that_models_share(tmp_path):
    """Legs that are models of their own get names of their own."""
    model = load(nested_quadruped(tmp_path))
    again = load(write_urdf(model, tmp_path / "again.urdf"))
    assert len(set(again.summary.actuators)) == 12
    assert again.summary.actuators[:2] == ("dog_FL_hip_y", "dog_FL_knee")
    assert [foot.body for foot in again.feet] == [
        foot.body.replace("::", "_") for foot in model.feet
    ]
    theirs = mujoco.MjModel.from_xml_path(str(write_mjcf(model, tmp_path / "dog.xml")))
    assert theirs.nu == 12 and theirs.body("dog_RR_shank").id > 0
    assert theirs.body_mass.sum() == pytest.approx(model.summary.mass)


def test_values_of_elements():
    """Numbers read back exactly, NaN too; none are subnormal, which Drake refuses."""
    x = np.array([1 / 3, -0.0, 5e-324, np.nan])
    child = add(ET.Element("link"), "a", x, class_="b", size=0.1, rgba=None)
    assert child.attrib == {"class": "b", "size": "0.1"}
    read = [float(word) for word in child.text.split()]
    np.testing.assert_array_equal(read, [1 / 3, 0.0, 0.0, np.nan])


@pytest.mark.parametrize("name", ["minitaur", "hamr"])
def test_loops_by_frames_that_meet(name, tmp_path):
    """The YAML alone closes what Drake's tags close, on the same motors."""
    model = load(name)
    path = write_urdf(model, tmp_path / "robot.urdf", loops="gepetto")
    (tmp_path / "robot.drakebots.yaml").unlink()
    tree = ET.parse(path)
    tags = [x for x in tree.getroot() if x.tag.endswith("ball_constraint")]
    assert tags
    for tag in tags:
        tree.getroot().remove(tag)
    tree.write(path)
    again = load(path)
    assert len(again.loops) == len(tags)
    assert {loop.rows for loop in again.loops} == {"ball"}
    assert again.summary.independent_rows == model.summary.independent_rows
    assert again.summary.loop_gap < 1e-9
    assert set(again.summary.actuators) == set(model.summary.actuators)


def test_an_sdf_keeps_what_stands_in_the_world(tmp_path):
    """Shapes of the world, a link that its joint calls the parent, servos, rotors, and
    a joint with the name of a link, which SDF does not take."""
    (tmp_path / "arm.urdf").write_text(
        """<robot name="arm"><link name="world"><collision name="floor"><geometry>
        <box size="1 1 0.1"/></geometry></collision></link>
        <link name="a"><inertial><mass value="1"/><inertia ixx="0.1" iyy="0.1" izz="0.1"
        ixy="0" ixz="0" iyz="0"/></inertial></link>
        <joint name="a" type="revolute"><parent link="world"/><child link="a"/>
        <origin xyz="0 0 1"/><axis xyz="0 1 0"/><limit lower="-1" upper="2" effort="3"
        velocity="4"/><dynamics damping="0.5"/></joint>
        <transmission name="t"><type>transmission_interface/SimpleTransmission</type>
        <joint name="a"><hardwareInterface>EffortJointInterface</hardwareInterface>
        </joint><actuator name="m"><mechanicalReduction>1</mechanicalReduction>
        <drake:gear_ratio value="10"/><drake:rotor_inertia value="0.01"/>
        <drake:controller_gains p="20" d="2"/></actuator></transmission></robot>"""
    )
    with pytest.warns(DrakebotsWarning, match="other names in SDF: a -> a_2"):
        again = load(write_sdf(tmp_path / "arm.urdf", tmp_path / "arm.sdf"))
    plant = plain_robot(again).plant
    joint, motor = plant.GetJointByName("a_2"), plant.GetJointActuatorByName("a_2")
    assert joint.position_lower_limits() == [-1] and joint.position_upper_limits() == [
        2
    ]
    assert joint.velocity_upper_limits() == [4] and joint.default_damping() == 0.5
    assert motor.effort_limit() == 3
    gains = motor.get_controller_gains()
    assert (gains.p, gains.d) == (20, 2)
    reflected = motor.default_rotor_inertia() * motor.default_gear_ratio() ** 2
    assert reflected == pytest.approx(1.0)
    floor = plant.GetBodyByName("surroundings")
    assert len(plant.GetCollisionGeometriesForBody(floor)) == 1
    assert plant.IsAnchored(floor)


@pytest.mark.parametrize("kind", ["revolute", "prismatic"])
def test_a_joint_may_name_what_it_carries_as_its_parent(tmp_path, kind):
    """Drake turns it round, and so does who writes it: the motion is the same."""
    links = "".join(map(_LINK.format, "abcd"))
    joints = "".join(
        f"""<joint name="{name}" type="{kind}"><parent link="{parent}"/>
        <child link="{child}"/><origin xyz="0.1 0 0.2" rpy="0.3 0.2 0.1"/>
        <axis xyz="0 1 1"/><limit lower="-1" upper="2" velocity="9"/></joint>"""
        for name, parent, child in (("first", "a", "b"), ("turned", "c", "b"))
    )
    joints += """<joint name="weld" type="fixed"><parent link="d"/><child link="c"/>
        <origin xyz="0 0.1 0" rpy="0 0.4 0.2"/></joint>"""
    (tmp_path / "four.urdf").write_text(f'<robot name="t">{links}{joints}</robot>')
    model = load(tmp_path / "four.urdf")
    throw = bench.Throw(
        spin=np.array([1.0, 2.0, 3.0]), rates={"first": 2.0, "turned": -1.0}
    )
    ours = bench.drake_flight(model, throw, 0.1)
    path = write_mjcf(model, tmp_path / "t.xml", time_step=bench.STEP)
    assert set(ours) == set("abcd")
    assert bench.distance(ours, bench.mujoco_flight(path, throw, 0.1)) < 1e-5
    for again in (
        write_urdf(model, tmp_path / "again.urdf"),
        write_sdf(model, tmp_path / "again.sdf"),
    ):
        assert bench.distance(ours, bench.drake_flight(load(again), throw, 0.1)) < 1e-9


def test_robots_of_others_are_compared(tmp_path, capsys):
    """A file, a list of files, and one that does not load."""
    (tmp_path / "broken.urdf").write_text("<robot/>")
    arm = foot(tmp_path).path
    (tmp_path / "list.txt").write_text(f"{arm}\n{tmp_path / 'broken.urdf'}\n")
    found = bench.main([str(tmp_path / "list.txt")])
    assert found["robots_same"]["value"] == found["robots_loaded"] == 1
    first, broken = found["robots"]
    assert first["differs"] == [] and first["mass_matrix"] < 1e-9
    assert not broken["loaded"]
    model = load(arm)
    assert (bench.dynamics(model)["mass_matrix"] != 0).any()
