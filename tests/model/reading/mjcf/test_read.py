"""What is read from MJCF beside bodies: motors, loops, keyframes, shapes, notes."""

import numpy as np
import pytest
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import AddMultibodyPlantSceneGraph
from pydrake.multibody.tree import JointActuatorIndex
from pydrake.systems.framework import DiagramBuilder

from drakebots import build_robot
from drakebots.core.errors import ModelProblem
from drakebots.model import Coupler, LoopClosure, load
from drakebots.model.reading.mjcf import read_mjcf
from tests.helpers.model_files import assert_problem, write
from tests.helpers.mujoco_peer import assert_as_mujoco, plant_of

ARM = """<worldbody><body name="upper" pos="0 0 1"><joint name="a" axis="0 1 0"
    range="-90 90"/><geom name="u" type="capsule" size=".02" fromto="0 0 0 0 0 -.3"/>
  <body name="lower" pos="0 0 -.3"><joint name="b" axis="0 1 0" armature=".02"/>
    <joint name="c" axis="1 0 0" actuatorfrcrange="-4 4"/>
    <geom name="l" type="capsule" size=".02" fromto="0 0 0 0 0 -.2"/></body></body>
  </worldbody>"""


def read(tmp_path, inside, *, body=ARM):
    text = f"<mujoco model='arm'>{body}{inside}</mujoco>"
    return read_mjcf(write(tmp_path, text, "arm.xml"))


def efforts_of(mjcf):
    plant = plant_of(mjcf)
    motors = map(JointActuatorIndex, range(plant.num_actuators()))
    motors = map(plant.get_joint_actuator, motors)
    return {motor.joint().name(): motor.effort_limit() for motor in motors}


# --- motors -----------------------------------------------------------------


@pytest.mark.parametrize(
    "actuator, efforts",
    [
        ('<motor joint="a"/>', {"a": np.inf}),
        ('<motor joint="a" ctrlrange="-2 3" gear="-10"/>', {"a": 30}),
        ('<motor joint="a" ctrlrange="-2 3" ctrllimited="false"/>', {"a": np.inf}),
        ('<motor joint="a" ctrlrange="-9 9" forcerange="-2 2" gear="5"/>', {"a": 10}),
        ('<position joint="a" kp="50" ctrlrange="-1 1"/>', {"a": 50}),
        ('<position joint="a" kp="50" forcerange="-7 7"/>', {"a": 7}),
        ('<position joint="a" kp="50"/>', {"a": np.inf}),
        ('<position joint="a" kp="2" inheritrange="1"/>', {"a": np.pi}),
        ('<velocity joint="a" kv="3" ctrlrange="-2 2"/>', {"a": 6}),
        ('<general joint="a" gainprm="20" ctrlrange="-1 1"/>', {"a": 20}),
        ('<muscle joint="a" force="30"/>', {"a": 30}),
        ('<motor joint="c" ctrlrange="-9 9"/>', {"c": 4}),
        ('<motor joint="a" ctrlrange="0 2"/><motor joint="a" ctrlrange="-1 0"/>', 3),
        ('<motor tendon="t" ctrlrange="-2 2" gear="3"/>', {"a": 3, "b": 12}),
        ('<motor site="s"/>', {}),
    ],
)
def test_the_effort_of_motors(tmp_path, actuator, efforts):
    tendon = """<tendon><fixed name="t"><joint joint="a" coef=".5"/>
      <joint joint="b" coef="-2"/></fixed></tendon>"""
    found = efforts_of(read(tmp_path, f"{tendon}<actuator>{actuator}</actuator>"))
    efforts = {"a": efforts} if isinstance(efforts, int) else efforts
    assert found == pytest.approx(efforts)


def test_motors_share_defaults_and_keep_their_rotors(tmp_path):
    mjcf = read(
        tmp_path,
        """<default><motor ctrlrange="-1 1"/><default class="strong">
        <general gear="100"/></default></default>
        <actuator><motor joint="a"/><motor class="strong" joint="b"/></actuator>""",
    )
    assert efforts_of(mjcf) == {"a": 1, "b": 100}
    plant = plant_of(mjcf)
    rotors = {
        plant.get_joint_actuator(index).joint().name(): plant.get_joint_actuator(
            index
        ).default_rotor_inertia()
        for index in map(JointActuatorIndex, range(2))
    }
    assert rotors == {"a": 0, "b": 0.02}


# --- loops ------------------------------------------------------------------


def test_a_connect_is_a_loop_that_is_closed(tmp_path):
    path = write(
        tmp_path,
        f"""<mujoco>{ARM}<equality><connect name="tip" body1="lower" anchor="0 0 -.2"/>
        <connect body1="lower" body2="upper" anchor=".1 0 0" active="false"/>
        <joint joint1="a" joint2="b" polycoef="0 1 2"/></equality></mujoco>""",
        "arm.xml",
    )
    model = load(path)
    (loop,) = model.loops
    assert (loop.name, loop.body_A, loop.body_B) == ("tip", "lower", "world")
    np.testing.assert_allclose(loop.p_BQ, [0, 0, 0.5], atol=1e-15)
    assert model.summary.loop_gap < 1e-15
    assert model.summary.loop_rows == 3
    (note,) = (note for note in model.notes if "left out" in note)
    assert "1 x <equality> of joints by a curve" in note and "not active" in note


def test_an_equality_of_joints_couples_them(tmp_path):
    """About the reference configuration, where Drake's positions are zero: MuJoCo's
    own rows vanish where ours do. Drake holds it by one constraint."""
    body = ARM.replace('name="a"', 'name="a" ref="20"')
    body = body.replace('name="b"', 'name="b" ref="-30"')
    text = f"""<mujoco>{body}<actuator><motor joint="a"/></actuator><equality>
        <joint joint1="b" joint2="a" polycoef="0.2 -1.5"/>
        <joint joint1="c" joint2="a" active="false"/><joint joint1="c"/>
        <joint joint1="b" joint2="c"/></equality></mujoco>"""
    path = write(tmp_path, text, "arm.xml")
    model = load(path)
    assert model.couplers == (Coupler("b", "a", -1.5, 0.2),)
    assert model.summary.constraints == 1
    assert model.summary.actuators == ("a",)
    (note,) = (note for note in model.notes if "left out of the MJCF" in note)
    assert all(x in note for x in ("not active", "fixes a joint", "follows another"))

    mujoco = pytest.importorskip("mujoco")
    peer = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(peer)
    robot = build_robot(model, time_step=0, base="fixed")
    q = robot.closure.followed(np.array([0.4, 0, 0]))
    data.qpos[:] = peer.qpos0 + q
    mujoco.mj_forward(peer, data)
    assert abs(data.efc_pos[0]) < 1e-14
    assert q[1] == pytest.approx(0.2 - 1.5 * 0.4)


def closure(path):
    """Rows and gaps of the loops of an MJCF file at q = 0."""
    mjcf = read_mjcf(path)
    plant = plant_of(mjcf)
    closed = LoopClosure(plant, mjcf.loops)
    return closed.residual(plant.CreateDefaultContext())


@pytest.mark.parametrize(
    "weld",
    [
        'body1="lower"',
        'body1="lower" body2="upper" anchor=".1 .2 .3"',
        'body1="upper" body2="lower" relpose="0 0 -.3 1 0 0 0"',
        'site1="s" site2="s"',
    ],
)
def test_a_weld_is_closed_where_the_file_says(tmp_path, weld):
    body = ARM.replace('<geom name="l"', '<site name="s"/><geom name="l"')
    text = f"<mujoco>{body}<equality><weld {weld}/></equality></mujoco>"
    residual = closure(write(tmp_path, text, "m.xml"))
    np.testing.assert_allclose(residual, np.zeros(6), atol=1e-15)


def test_a_weld_turns_and_moves_a_body(tmp_path):
    """relpose is the pose of body 2 in body 1; rows are positions, then sines."""
    relpose = f"0 0 -.2 {np.cos(0.05)} 0 0 {np.sin(0.05)}"
    weld = f'<weld body1="upper" body2="lower" relpose="{relpose}"/>'
    text = f"<mujoco>{ARM}<equality>{weld}</equality></mujoco>"
    residual = closure(write(tmp_path, text, "m.xml"))
    np.testing.assert_allclose(residual[:3], [0, 0, 0.1], atol=1e-15)
    np.testing.assert_allclose(np.abs(residual[3:]), [0, 0, np.sin(0.1)], atol=1e-15)


def test_a_connect_of_sites(tmp_path):
    body = ARM.replace(
        "</body></body>", '<site name="s" pos="0 .1 -.2"/></body></body>'
    ).replace("</worldbody>", '<site name="w" pos="1 2 3"/></worldbody>')
    equality = '<equality><connect site1="s" site2="w"/></equality>'
    (loop,) = read(tmp_path, equality, body=body).loops
    assert (loop.body_A, loop.body_B) == ("lower", "world")
    np.testing.assert_allclose(loop.p_AP, [0, 0.1, -0.2])
    np.testing.assert_allclose(loop.p_BQ, [1, 2, 3])


# --- keyframes --------------------------------------------------------------


def test_keyframes_are_poses(tmp_path):
    """qpos counts free and ball joints, and starts at a joint's `ref`."""
    body = """<worldbody><body name="a"><freejoint/><geom size=".1"/>
      <body name="b"><joint name="ball" type="ball"/><geom size=".1"/>
      <body name="c"><joint name="x" ref="30" axis="0 1 0"/><joint name="y"
      type="slide" ref=".5"/><geom size=".1"/></body></body></body></worldbody>"""
    home = "0 0 1 1 0 0 0 1 0 0 0 0.7 0.6"
    mjcf = read(
        tmp_path,
        f'<keyframe><key name="home" qpos="{home}"/><key ctrl="1"/></keyframe>',
        body=body,
    )
    assert list(mjcf.poses) == ["home"]
    pose = {"x": 0.7 - np.pi / 6, "y": 0.1}
    assert mjcf.poses["home"] == pytest.approx(pose)


# --- shapes -----------------------------------------------------------------


def test_what_collides_and_what_is_drawn(tmp_path):
    """Masks of zero only draw; groups above 2 only collide; planes are the world's."""
    body = """<worldbody><geom type="plane" size="1 1 1"/><body name="a"><joint/>
      <geom name="seen" size=".1" contype="0" conaffinity="0" rgba="1 0 0 1"/>
      <geom name="felt" size=".1" group="3" friction=".3"/>
      <geom type="plane" size="1 1 1"/></body></worldbody>"""
    mjcf = read(tmp_path, "", body=body)
    plant = plant_of(mjcf)
    a = plant.GetBodyByName("a")
    assert len(plant.GetVisualGeometriesForBody(a)) == 1
    assert len(plant.GetCollisionGeometriesForBody(a)) == 1
    assert plant.GetCollisionGeometriesForBody(plant.world_body()) == []
    assert "1 x shapes of type plane" in mjcf.notes[0]
    assert "<drake:mu_static>0.3" in mjcf.sdf


def colliding(mjcf) -> set[str]:
    """Pairs of links, by their letters, that Drake would let collide."""
    builder = DiagramBuilder()
    plant, scene_graph = AddMultibodyPlantSceneGraph(builder, 1e-3)
    Parser(plant).AddModelsFromString(mjcf.sdf, "sdf")
    plant.Finalize()
    inspector = scene_graph.model_inspector()

    def link(geometry):
        return plant.GetBodyFromFrameId(inspector.GetFrameId(geometry)).name()

    return {
        "".join(sorted((link(a), link(b))))
        for a, b in inspector.GetCollisionCandidates()
    }


@pytest.mark.parametrize(
    "masks, contact, pairs",
    [
        (("1 1", "1 1", "1 1"), "", {"ac"}),
        (("1 0", "1 0", "1 0"), "", set()),
        (("1 0", "1 1", "0 1"), "", {"ac"}),
        (("2 2", "1 1", "1 1"), "", set()),
        (("1 1", "1 1", "1 1"), '<exclude body1="c" body2="a"/>', set()),
    ],
)
def test_which_links_collide(tmp_path, masks, contact, pairs):
    """Not those of one joint, though massless links stand between; then by masks."""
    geoms = [
        '<geom size=".1" contype="{}" conaffinity="{}"/>'.format(*mask.split())
        for mask in masks
    ]
    body = f"""<worldbody><body name="a"><joint name="i"/>{geoms[0]}
      <body name="b"><joint name="j"/><joint name="k" axis="1 0 0"/>{geoms[1]}
      <body name="c"><joint name="l"/>{geoms[2]}</body></body></body></worldbody>"""
    mjcf = read(tmp_path, f"<contact>{contact}</contact>", body=body)
    assert colliding(mjcf) == pairs


# --- names, notes, problems -------------------------------------------------


def test_names_that_sdf_takes_once_only(tmp_path):
    body = """<worldbody><body name="hip"><joint name="hip"/><geom size=".1"/>
      <site name="hip"/><body><joint/><geom size=".1"/></body></body></worldbody>"""
    mjcf = read(tmp_path, '<actuator><motor joint="hip"/></actuator>', body=body)
    assert efforts_of(mjcf) == {"hip_joint": np.inf}
    plant = plant_of(mjcf)
    assert plant.HasBodyNamed("hip") and plant.HasFrameNamed("hip_site")
    assert mjcf.notes == ("names that SDF takes once only: 'hip' is 'hip_joint'",)


def test_what_is_left_out_is_counted(tmp_path):
    mjcf = read(
        tmp_path,
        """<option gravity="0 0 -3"/><sensor><jointpos joint="a"/><gyro site="s"/>
        </sensor><statistic extent="2"/>""",
    )
    (note,) = mjcf.notes
    assert "2 x <sensor>" in note and "1 x <statistic>" in note


def test_a_base_that_is_welded_is_said(tmp_path):
    path = write(tmp_path, f"<mujoco>{WELDED}</mujoco>", "m.xml")
    fixed, free = load(path), load(path, free_base=True)
    assert any("'base' is welded" in note for note in fixed.notes)
    assert not any("welded" in note for note in free.notes)
    assert len(fixed.summary.velocities) == 1
    assert len(free.summary.velocities) == 7
    assert free.options == {"free_base": True}


def test_a_joint_of_type_fixed_is_a_weld(tmp_path):
    """MuJoCo has no such joint; PyBullet's files do."""
    body = ARM.replace('<joint name="a"', '<joint name="a" type="fixed"')
    plant = plant_of(read(tmp_path, "", body=body))
    assert plant.num_velocities() == 2


WELDED = """<worldbody><body name="base" pos="0 0 1"><geom size=".1"/><body name="leg">
  <joint name="hip"/><geom size=".1" pos=".1 0 0"/></body></body>
  <body name="table"><geom size=".1"/></body></worldbody>"""


@pytest.mark.parametrize(
    "inside, words",
    [
        ("<joint axis='0 0 0'/>", ["axis has length zero"]),
        ("<joint type='screw'/>", ["screw", "hinge"]),
        ("<joint range='2 1'/>", ["range goes from 2 to 1"]),
        ("<joint pos='1 2'/>", ["pos='1 2'", "3 numbers"]),
        ("<joint damping='-1'/>", ["damping", ">= 0"]),
        ("<joint/><freejoint/>", ["moves freely"]),
        ("<geom type='cone'/>", ["cone", "capsule"]),
        ("<geom size='-1'/>", ["size='-1'", "> 0"]),
        ("<geom size='1e300' mass='2'/>", ["size 1e+300", "larger than 1e+06 m"]),
        ("<geom size='1e5' density='1e300'/>", ["beyond all numbers"]),
        ("<geom size='a'/>", ["size='a'", "numbers"]),
        ("<geom size='1' mass='-1'/>", ["mass is negative"]),
        ("<geom type='capsule' size='1'/>", ["2 numbers"]),
        ("<geom type='mesh' mesh='m'/>", ["no mesh 'm'"]),
        ("<geom class='c' size='1'/>", ["'c'", "no such default"]),
        ("<geom size='1' quat='0 0 0 0'/>", ["length zero"]),
        ("<inertial mass='1' diaginertia='1 1 3'/>", ["principal moments 1, 1, 3"]),
        ("<inertial mass='1' diaginertia='-1 1 1'/>", ["negative", "-1, 1, 1"]),
        ("<inertial pos='0 0 0'/>", ["needs a mass"]),
    ],
)
def test_what_no_body_can_be(tmp_path, inside, words):
    text = f"<mujoco><worldbody><body name='x'>{inside}</body></worldbody></mujoco>"
    path = write(tmp_path, text, "m.xml")
    with pytest.raises(ModelProblem) as caught:
        read_mjcf(path)
    assert_problem(caught, path, *words)


def test_all_problems_of_bodies_in_one_message(tmp_path):
    text = """<mujoco><worldbody><body><joint type="screw"/><geom size="-1"/>
      </body></worldbody></mujoco>"""
    path = write(tmp_path, text, "m.xml")
    with pytest.raises(ModelProblem) as caught:
        read_mjcf(path)
    assert_problem(caught, path, "screw", "size='-1'")


@pytest.mark.parametrize(
    "text, words",
    [
        ("<mujoco/>", ["no <body>"]),
        ("<mujoco><compiler angle='turn'/></mujoco>", ["angle='turn'", "degree"]),
        ("<mujoco><compiler eulerseq='xya'/></mujoco>", ["eulerseq='xya'"]),
        ("<mujoco><default><default/></default></mujoco>", ["needs a class"]),
        (f"<mujoco>{ARM}<actuator><motor joint='z'/></actuator></mujoco>", ["'z'"]),
        (
            f"<mujoco>{ARM}<keyframe><key qpos='1 2'/></keyframe></mujoco>",
            ["qpos has 2 numbers", "have 3"],
        ),
        (
            f"<mujoco>{ARM}<equality><connect site1='p'/></equality></mujoco>",
            ["no site 'p'"],
        ),
        ("<mujoco><include file='none.xml'/></mujoco>", ["none.xml", "add it"]),
    ],
)
def test_what_no_file_can_be(tmp_path, text, words):
    path = write(tmp_path, text, "m.xml")
    with pytest.raises(ModelProblem) as caught:
        read_mjcf(path)
    assert_problem(caught, path, *words)


# --- global coordinates -----------------------------------------------------

LOCAL = """<mujoco><worldbody><body name="a" pos="0 0 1"><joint name="x" type="slide"
    axis="1 0 0"/><joint name="y" axis="0 1 0" pos="0 0 .1"/>
    <geom type="capsule" fromto="0 0 0 0 0 .4" size=".05"/><site name="s" pos=".1 0 0"/>
  <body name="b" pos=".2 0 .1"><joint name="k" axis="0 1 0"/>
    <geom type="box" size=".1 .2 .3" pos="0 .1 -.2" euler="10 0 0"/></body>
  <body name="c" pos=".1 0 -.1"><geom size=".1" pos="0 0 .1"/></body></body>
  </worldbody>
  <equality><connect body1="b" body2="c" anchor="0 .1 0"/></equality></mujoco>"""
GLOBAL = """<mujoco><compiler coordinate="global"/><worldbody><body name="a"
    pos="0 0 1"><joint name="x" type="slide" axis="1 0 0"/>
    <joint name="y" axis="0 1 0" pos="0 0 1.1"/>
    <geom type="capsule" fromto="0 0 1 0 0 1.4" size=".05"/>
    <site name="s" pos=".1 0 1"/>
  <body name="b"><joint name="k" axis="0 1 0" pos=".2 0 1.1"/>
    <geom type="box" size=".1 .2 .3" pos=".2 .1 .9" euler="10 0 0"/></body>
  <body name="c" pos=".1 0 .9"><geom size=".1" pos=".1 0 1"/></body></body></worldbody>
  <equality><connect body1="b" body2="c" anchor=".2 .1 1.1"/></equality></mujoco>"""


def test_global_coordinates(tmp_path):
    """An old file with all poses in the world moves as one with local poses."""
    assert_as_mujoco(write(tmp_path, LOCAL, "local.xml"))
    found = []
    for text in (LOCAL, GLOBAL):
        mjcf = read_mjcf(write(tmp_path, text, "m.xml"))
        plant = plant_of(mjcf)
        context = plant.CreateDefaultContext()
        plant.SetPositions(context, [0.3, -0.4, 0.5])
        plant.SetVelocities(context, [0.1, 0.2, -0.3])
        found.append(
            [
                plant.CalcMassMatrix(context),
                plant.CalcCenterOfMassPositionInWorld(context),
                plant.GetFrameByName("s").CalcPoseInWorld(context).GetAsMatrix4(),
                LoopClosure(plant, mjcf.loops).gaps(context),
                plant.GetBodyByName("b").EvalPoseInWorld(context).GetAsMatrix4(),
            ]
        )
    for local, world in zip(*found):
        np.testing.assert_allclose(world, local, atol=1e-14)
