"""What is read from MJCF beside bodies: motors, loops, keyframes, shapes, notes."""

import numpy as np
import pytest
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import AddMultibodyPlantSceneGraph
from pydrake.multibody.tree import JointActuatorIndex
from pydrake.systems.framework import DiagramBuilder

from drakebots import build_robot
from drakebots.core.errors import ModelProblem
from drakebots.formats import load
from drakebots.formats.read.mjcf import read_mjcf
from drakebots.model import Coupler, LoopClosure
from tests.helpers.model_files import assert_problem, write
from tests.helpers.mujoco_peer import plant_of

ARM = """<worldbody><body name="upper" pos="0 0 1"><joint name="a" axis="0 1 0"
    range="-90 90"/><geom name="u" type="capsule" size=".02" fromto="0 0 0 0 0 -.3"/>
  <body name="lower" pos="0 0 -.3"><joint name="b" axis="0 1 0" armature=".02"/>
    <joint name="c" axis="1 0 0" actuatorfrcrange="-4 4"/><site name="tool"/>
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
        # A servo's gain says how it is controlled, and not how strong it is.
        ('<position joint="a" kp="1" ctrlrange="-2 2" forcerange="-30 30"/>', 30),
        ('<position joint="c" kp="1" ctrlrange="-2 2"/>', {"c": 4}),
        ('<motor joint="a" ctrlrange="-2 2" forcerange="-30 30"/>', 2),
        ('<velocity joint="a" kv="3" ctrlrange="-2 2"/>', {"a": 6}),
        ('<general joint="a" gainprm="20" ctrlrange="-1 1"/>', {"a": 20}),
        ('<muscle joint="a" force="30"/>', {"a": 30}),
        ('<motor joint="c" ctrlrange="-9 9"/>', {"c": 4}),
        ('<motor joint="a" ctrlrange="0 2"/><motor joint="a" ctrlrange="-1 0"/>', 3),
        ('<motor tendon="t" ctrlrange="-2 2" gear="3"/>', {"a": 3, "b": 12}),
        ('<motor site="tool"/>', {}),
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
        'site1="s" site2="tool"',
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
    home = f"0 0 1 1 0 0 0 {np.cos(0.2)} 0 0 {np.sin(0.2)} 0.7 0.6"
    mjcf = read(
        tmp_path,
        f'<keyframe><key name="home" qpos="{home}"/><key time="1"/></keyframe>',
        body=body,
    )
    assert list(mjcf.poses) == ["home"]
    pose = {"x": 0.7 - np.pi / 6, "y": 0.1}
    pose |= {"ball_qz": 0.4, "ball_qy": 0.0, "ball_qx": 0.0}
    assert mjcf.poses["home"] == pytest.approx(pose)


# --- shapes -----------------------------------------------------------------


def test_what_collides_and_what_is_drawn(tmp_path):
    """Masks of zero only draw; groups above 2 only collide; planes are the world's."""
    body = """<worldbody><geom type="plane" size="1 1 1"/><body name="a"><joint/>
      <geom name="seen" size=".1" contype="0" conaffinity="0" rgba="1 0 0 1"/>
      <geom name="felt" size=".1" group="3" material="lost" friction=".3"/></body>
      </worldbody>"""
    mjcf = read(tmp_path, "", body=body)
    plant = plant_of(mjcf)
    a = plant.GetBodyByName("a")
    assert len(plant.GetVisualGeometriesForBody(a)) == 1
    assert len(plant.GetCollisionGeometriesForBody(a)) == 1
    assert plant.GetCollisionGeometriesForBody(plant.world_body()) == []
    assert "1 x shapes of the world" in mjcf.notes[0]
    assert "<drake:mu_static>0.3" in mjcf.text


def colliding(mjcf) -> set[str]:
    """Pairs of links, by their letters, that Drake would let collide."""
    builder = DiagramBuilder()
    plant, scene_graph = AddMultibodyPlantSceneGraph(builder, 1e-3)
    Parser(plant).AddModelsFromString(mjcf.text, "sdf")
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
        (("1 1", "1 1", "1 1"), 2 * '<exclude body1="c" body2="a"/>', set()),
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
        """<sensor><jointpos joint="a"/><gyro site="tool"/></sensor><worldbody>
        <camera/><geom type="hfield" hfield="h"/><body mocap="true"><geom size="1"/>
        </body></worldbody><asset><hfield name="h" file="none.png" size="1 1 1 1"/>
        </asset>""",
    )
    (note,) = mjcf.notes
    for what in ("2 x <sensor>", "1 x <camera>", "type hfield", "1 x mocap bodies"):
        assert what in note


@pytest.mark.parametrize(
    "inside, what",
    [
        ('<option gravity="0 0 -1.62"/>', "gravity, (0.0, 0.0, -1.62), becomes"),
        ('<option><flag gravity="disable"/></option>', "gravity, (0.0, 0.0, 0.0)"),
        ('<option><flag damper="disable"/></option>', "1 x <flag> damper"),
        ('<option density="1.2" wind="1 0 0"/>', "1 x <option> wind"),
        ('<default><geom condim="6"/></default>', "contacts of other than 3 dim"),
        ('<default><geom solref=".1 1"/></default>', "contacts with a solref"),
        ('<default><joint damping="1 2"/></default>', "dampers that are no lines"),
        ('<default><joint stiffness="1 2"/></default>', "springs that are no lines"),
        ('<actuator><position joint="a" kv="2"/></actuator>', "1 x gains of motors"),
        ('<actuator><intvelocity joint="a"/></actuator>', "1 x states of motors"),
        ('<actuator><motor joint="a" forcerange="0 2"/></actuator>', "to one side"),
        (
            """<worldbody><body name="d" gravcomp="1"><joint type="ball" range="0 40"/>
            <geom size=".1"/></body></worldbody>""",
            "1 x limits, springs, dampers of ball joints",
        ),
        (
            """<worldbody><body name="d" gravcomp="1"><freejoint/><geom size=".1"/>
            </body></worldbody>""",
            "1 x bodies with gravcomp",
        ),
        (
            """<worldbody><body name="d"><freejoint/><geom size=".1"/><geom size=".2"
            contype="2" conaffinity="2"/></body></worldbody>""",
            "contact masks of single shapes",
        ),
    ],
)
def test_what_would_move_it_otherwise_is_said(tmp_path, inside, what):
    """And nothing is of a file without it."""
    assert any(what in note for note in read(tmp_path, inside).notes)
    plain = read(tmp_path, "").notes
    assert plain == ("left out of the MJCF: 1 x armature of joints without a motor",)


def test_rotors_and_dampers_of_motors_are_those_of_their_joints(tmp_path):
    """By the squares of their gears: a_J = a + g^2 a_m, and so for dampers."""
    motor = '<motor joint="b" gear="5" armature=".001" damping=".2"/>'
    plant = plant_of(read(tmp_path, f"<actuator>{motor}</actuator>"))
    (index,) = plant.GetJointActuatorIndices()
    rotor = plant.get_joint_actuator(index).default_rotor_inertia()
    assert rotor == pytest.approx(0.02 + 25 * 0.001)
    assert plant.GetJointByName("b").default_damping() == pytest.approx(25 * 0.2)


def test_warnings_of_mujoco_are_notes(tmp_path, monkeypatch):
    """It would write them to a file in the folder in which it runs."""
    monkeypatch.chdir(tmp_path)
    text = f'<mujoco><compiler settotalmass="2"/>{ARM}</mujoco>'
    mjcf = read_mjcf(write(tmp_path, text, "m.xml"))
    assert any("settotalmass" in note for note in mjcf.notes)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.xml"]


def test_the_ending_and_the_encoding_are_no_matter(tmp_path):
    """MuJoCo itself reads UTF-8 in files that end in .xml."""
    write(tmp_path, "<mujoco><option/></mujoco>", "part.xml")
    text = f'<mujoco><include file="part.xml"/>{ARM}</mujoco>'
    text = '<?xml version="1.0" encoding="ISO-8859-1"?>' + text
    text = text.replace('body name="upper"', 'body name="fü\xdf"')
    mjcf = read_mjcf(write(tmp_path, text.encode("latin-1"), "arm.mjcf"))
    assert plant_of(mjcf).HasBodyNamed("fü\xdf")


@pytest.mark.parametrize(
    "inside, words",
    [
        ('<replicate count="3000"><body/></replicate>', "more than 2000 links"),
        (
            "<replicate count='99'><replicate count='99'><replicate count='99'/>"
            "</replicate></replicate>",
            "more than 50000 elements",
        ),
        ('<composite type="cable" count="9999 1 1"/>', "more than 2000 links"),
        ('<replicate count="9"><include file="a.xml"/></replicate>', "move it out"),
        ('<body><flexcomp name="f" type="grid"/></body>', "<flexcomp>.*remove it"),
    ],
)
def test_copies_without_end(tmp_path, inside, words):
    """They are counted before MuJoCo makes them."""
    text = f"<mujoco><worldbody>{inside}</worldbody></mujoco>"
    with pytest.raises(ModelProblem, match=words):
        read_mjcf(write(tmp_path, text, "m.xml"))


def test_models_that_attach_each_other(tmp_path):
    text = """<mujoco><asset><model name="b" file="{}"/></asset><worldbody>
        <body name="c"><geom size="1"/><attach model="b" body="c" prefix="d"/></body>
        </worldbody></mujoco>"""
    write(tmp_path, text.format("b.xml"), "a.xml")
    path = write(tmp_path, text.format("a.xml"), "b.xml")
    with pytest.raises(ModelProblem, match="includes itself"):
        read_mjcf(path)


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
        ("<joint axis='0 0 0'/>", ["compiler", "axis too small"]),
        ("<joint type='screw'/>", ["parser", "'screw'", "'joint', line 1"]),
        ("<joint name='j' limited='true' range='2 1'/>", ["range[0]", "'j', line 1"]),
        ("<joint pos='1 2'/>", ["'pos'", "not have enough data"]),
        ("<joint/><freejoint/>", ["more than 6 dofs", "'x'"]),
        ("<geom type='cone'/>", ["'cone'"]),
        ("<geom size='-1'/>", ["size 0 must be positive"]),
        ("<geom size='1e300' mass='2'/>", ["geom 1: size", "beyond all numbers"]),
        ("<geom size='1e5' density='1e300'/>", ["body x", "beyond all numbers"]),
        ("<geom size='a'/>", ["bad format", "'size'"]),
        ("<geom size='1' mass='-1'/>", ["negative"]),
        ("<geom type='mesh' mesh='m'/>", ["mesh 'm' not found"]),
        ("<geom class='c' size='1'/>", ["class name 'c'"]),
        ("<geom size='1' quat='0 0 0 0'/>", ["zero quaternion"]),
        ("<inertial pos='0 0 0' mass='1' diaginertia='1 1 3'/>", ["A + B >= C", "'x'"]),
        ("<inertial pos='0 0 0'/>", ["missing: 'mass'"]),
    ],
)
def test_what_no_body_can_be(tmp_path, inside, words):
    """MuJoCo's words in one line, with what refuses it and the place."""
    text = "<mujoco><worldbody><body name='x'><geom size='1'/>{}</body></worldbody>"
    path = write(tmp_path, text.format(inside) + "</mujoco>", "m.xml")
    with pytest.raises(ModelProblem) as caught:
        read_mjcf(path)
    assert_problem(caught, path, *words)


@pytest.mark.parametrize(
    "text, words",
    [
        ("<mujoco/>", ["no <body>"]),
        ("<mujoco><compiler angle='turn'/></mujoco>", ["'turn'", "'compiler'"]),
        ("<mujoco><compiler coordinate='global'/></mujoco>", ["global", "2.3.3"]),
        ("<mujoco><default><default/></default></mujoco>", ["empty class name"]),
        (f"<mujoco>{ARM}<actuator><motor joint='z'/></actuator></mujoco>", ["'z'"]),
        (
            f"<mujoco>{ARM}<keyframe><key qpos='1 2 3 4'/></keyframe></mujoco>",
            ["invalid qpos size", "got 4"],
        ),
        (
            f"<mujoco>{ARM}<equality><connect site1='p'/></equality></mujoco>",
            ["site2"],
        ),
        ("<mujoco><include file='none.xml'/></mujoco>", ["none.xml"]),
    ],
)
def test_what_no_file_can_be(tmp_path, text, words):
    path = write(tmp_path, text, "m.xml")
    with pytest.raises(ModelProblem) as caught:
        read_mjcf(path)
    assert_problem(caught, path, *words)
