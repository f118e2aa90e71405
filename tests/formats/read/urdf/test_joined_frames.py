"""The YAML beside a URDF that names the frames of its loops."""

from __future__ import annotations

import numpy as np
import pytest
from pydrake.math import RotationMatrix
from pydrake.multibody.plant import MultibodyPlant
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import DiagramBuilder

from drakebots import DrakebotsError, ModelProblem, build_robot, load
from drakebots.core.errors import NoSolution
from drakebots.trajopt.contact_implicit import ContactSystem
from tests.helpers.model_files import write
from tests.helpers.scripts import DATA, load_script

VariationalStepper = load_script("variational_stepper").VariationalStepper

FOLDER = DATA / "closed_loops"
ROBOTS = sorted(path.parent.name for path in FOLDER.glob("*/robot.yaml"))
DISAGREE = {"kangaroo_like": "the dimensions of 11 loops disagree"}
"""Robots whose file cannot be closed as it says."""

LINK = """<link name="{}"><inertial><origin xyz="0 0 -0.1"/><mass value="0.3"/>
<inertia ixx="2e-3" iyy="2e-3" izz="1e-3" ixy="0" ixz="0" iyz="0"/></inertial></link>"""
JOINT = """<joint name="{}" type="revolute"><parent link="{}"/><child link="{}"/>
<origin xyz="{}"/><axis xyz="0 1 0"/><limit effort="9" velocity="20"/></joint>"""
FRAME = """<link name="{0}"/><joint name="{0}_frame" type="fixed"><parent link="{1}"/>
<child link="{0}"/><origin xyz="{2}"/></joint>"""

# Two legs of two links each that meet in one point: a five-bar linkage, 0.3 m wide;
# its second hinges are 20 cm below the first, so that it hangs open by 0.3 m.
FIVE_BAR = "".join(
    [
        '<?xml version="1.0"?><robot name="five_bar">',
        *(LINK.format(name) for name in ("base", "a", "b", "c", "d")),
        JOINT.format("hip_a", "base", "a", "0.15 0 0"),
        JOINT.format("knee_a", "a", "b", "0 0 -0.2"),
        JOINT.format("hip_c", "base", "c", "-0.15 0 0"),
        JOINT.format("knee_c", "c", "d", "0 0 -0.2"),
        FRAME.format("tip_b", "b", "0 0 -0.25"),
        FRAME.format("tip_d", "d", "0 0 -0.25"),
        "</robot>",
    ]
)
YAML = """closed_loop: [["tip_b", "tip_d"]]
type: ["{}"]
name_mot: ["hip_a", "hip_c"]
"""


def five_bar(folder, kind="3d", more=""):
    write(folder, YAML.format(kind) + more, "five_bar.yaml")
    return write(folder, FIVE_BAR, "five_bar.urdf")


def test_loops_and_motors_are_those_of_the_yaml(tmp_path):
    model = load(five_bar(tmp_path))
    assert [(x.body_A, x.body_B, x.rows) for x in model.loops] == [
        ("tip_b", "tip_d", "ball")
    ]
    assert [motor.joint for motor in model.actuators] == ["hip_a", "hip_c"]
    assert model.summary.independent_rows == 2  # of 3: it is planar
    assert "knee_a, knee_c without" in " ".join(model.notes)


def test_open_loops_are_closed_at_load(tmp_path):
    """Within 1e-9 m, and the motors have moved less than the knees."""
    model = load(five_bar(tmp_path))
    assert model.summary.loop_gap < 1e-9
    assert "open by 0.3 m" in " ".join(model.notes)
    moved = {name: abs(q[0]) for name, q in model.closed.items()}
    assert max(moved["hip_a"], moved["hip_c"]) < min(moved["knee_a"], moved["knee_c"])
    robot = build_robot(model, base="fixed", time_step=0)
    context = robot.plant.CreateDefaultContext()
    assert robot.closure.gaps(context)[0] < 1e-9


def test_joints_that_a_urdf_cannot_express(tmp_path):
    more = "joint_name: [knee_a, knee_c]\njoint_type: [SPHERICAL, UJOINT_XY]\n"
    model = load(five_bar(tmp_path, "6d", more))
    hinges = [name for name in model.summary.joints if name.startswith("knee")]
    assert hinges == ["knee_a_x", "knee_a_y", "knee_a_z", "knee_c_x", "knee_c_y"]
    assert "3 massless links between hinges given" in " ".join(model.notes)
    assert model.summary.loop_gap < 1e-9
    plant = MultibodyPlant(0.0)
    model.add_to(plant)
    plant.Finalize()
    context = plant.CreateDefaultContext()
    assert np.linalg.eigvalsh(plant.CalcMassMatrix(context)).min() > 0
    fixed = "joint_name: [knee_a]\njoint_type: [FIXED]\n"
    assert "knee_a" not in load(five_bar(tmp_path, "3d", fixed)).summary.joints


@pytest.mark.parametrize("turns", [(0.3, -0.2, 0.5), (1.0, 0.4, -0.7)])
def test_three_hinges_turn_like_a_ball_joint(tmp_path, turns):
    """R = Rx Ry Rz of the angles, and no shift of the joint's point."""
    more = "joint_name: [knee_a]\njoint_type: [SPHERICAL]\n"
    model = load(five_bar(tmp_path, "3d", more))
    plant = MultibodyPlant(0.0)
    model.add_to(plant)
    plant.Finalize()
    context = plant.CreateDefaultContext()
    for axis, turn in zip("xyz", turns):
        plant.GetJointByName(f"knee_a_{axis}").set_angle(context, turn)
    a, b = (plant.GetFrameByName(name) for name in "ab")
    X_AB = b.CalcPose(context, a)
    x, y, z = turns
    expected = (
        RotationMatrix.MakeXRotation(x)
        @ RotationMatrix.MakeYRotation(y)
        @ RotationMatrix.MakeZRotation(z)
    )
    np.testing.assert_allclose(X_AB.rotation().matrix(), expected.matrix(), atol=1e-12)
    np.testing.assert_allclose(X_AB.translation(), [0, 0, -0.2], atol=1e-12)


@pytest.mark.parametrize(
    "text, words",
    [
        ("closed_loop: [[tip_b]]", "pairs of frames"),
        ("closed_loop: [[tip_b, tip_d]]\ntype: ['4d']", "4d"),
        ("closed_loop: [[tip_b, tip_d]]\ntype: ['6d', '6d']", "2 entries"),
        (
            "closed_loop: [[tip_b, tip_d]]\njoint_name: [hip_a]\njoint_type: [CONE]",
            "CONE",
        ),
    ],
)
def test_wrong_entries_are_named(tmp_path, text, words):
    path = five_bar(tmp_path)
    write(tmp_path, text, "five_bar.yaml")
    with pytest.raises(DrakebotsError, match=words):
        load(path)


def test_misspelt_names_cost_what_they_are_of(tmp_path):
    """One line names all with those that are near; the rest of the file counts."""
    path = five_bar(tmp_path)
    text = "closed_loop: [[tip_b, tip_d], [tip_b, tip_x]]\nname_mot: [hip_a, hipp_c]\n"
    text += "joint_name: [kne_a, knee_c]\njoint_type: [SPHERICAL, UJOINT_XY]\n"
    write(tmp_path, text, "five_bar.yaml")
    model = load(path)
    (note,) = [note for note in model.notes if "five_bar.yaml" in note]
    assert note.startswith("left out of five_bar.yaml: unknown frame 'tip_x' (did you ")
    for word in ("tip_x", "hip_c", "knee_a"):
        assert f"{word}'" in note
    assert [loop.name for loop in model.loops] == ["tip_b-tip_d"]
    assert [motor.joint for motor in model.actuators] == ["hip_a"]
    assert {"knee_a", "knee_c_x", "knee_c_y"} <= set(model.summary.joints)
    with pytest.raises(ModelProblem, match="left out of five_bar"):
        load(path, strict=True)


@pytest.mark.parametrize("text", ["a: 1", "- 1", "[", ""])
def test_a_yaml_of_something_else_is_left_alone(tmp_path, text):
    path = five_bar(tmp_path)
    write(tmp_path, text, "five_bar.yaml")
    assert load(path).loops == ()


def test_a_wrong_entry_names_the_yaml(tmp_path):
    path = five_bar(tmp_path)
    write(tmp_path, "closed_loop: [[tip_b]]", "five_bar.yaml")
    with pytest.raises(ModelProblem) as caught:
        load(path)
    assert str(caught.value).startswith(str(tmp_path / "five_bar.yaml"))


def hangs(model, time_step, seconds):
    """The largest gap while a model hangs from its base, in SAP [m]."""
    builder = DiagramBuilder()
    robot = build_robot(model, builder, time_step=time_step, base="fixed")
    simulator = Simulator(builder.Build())
    context = robot.plant.GetMyMutableContextFromRoot(simulator.get_mutable_context())
    robot.plant.get_actuation_input_port().FixValue(
        context, np.zeros(robot.plant.num_actuators())
    )
    gaps = []
    for time in np.linspace(0, seconds, 11)[1:]:
        simulator.AdvanceTo(time)
        gaps.append(robot.closure.gaps(context).max())
    return max(gaps)


@pytest.mark.parametrize("kind", ["3d", "6d"])
def test_sap_keeps_the_loop_closed(tmp_path, kind):
    gap = hangs(load(five_bar(tmp_path, kind)), 2e-4, 0.3)
    assert gap < 2e-6  # of half a metre


@pytest.mark.parametrize("kind", ["3d", "6d"])
def test_variational_steps_keep_the_loop_closed(tmp_path, kind):
    model = load(five_bar(tmp_path, kind))
    assert stepped(model, 100) < 1e-9


def stepped(model, steps):
    """The largest |c| of steps of 1 ms from rest, hanging from the base."""
    robot = build_robot(model, base="fixed", time_step=0)
    context = robot.plant.CreateDefaultContext()
    q = robot.plant.GetPositions(context)
    stepper = VariationalStepper(ContactSystem(robot), 1e-3, integrator="euler")
    run = stepper.run(q, np.zeros(len(q)), steps=steps)
    worst = []
    for q in run.q:
        robot.plant.SetPositions(context, q)
        worst.append(np.abs(robot.closure.residual(context)).max())
    return max(worst)


@pytest.mark.skipif(not DATA.is_dir(), reason=f"the public URDFs are not in {DATA}")
def test_public_robots_are_found():
    """An empty list would test none and pass."""
    assert len(ROBOTS) == 8


@pytest.mark.slow
@pytest.mark.parametrize("name", ROBOTS)
def test_public_robots_load_closed(name):
    model = load(FOLDER / name / "robot.urdf")
    assert model.summary.loop_gap < 1e-9
    assert model.loops and len(model.actuators) >= 2
    assert model.summary.independent_rows <= model.summary.loop_rows


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in ROBOTS if name not in DISAGREE])
def test_public_robots_step_closed(name):
    """Hanging limp from the base; c(q) to rounding after every step of 1 ms."""
    assert stepped(load(FOLDER / name / "robot.urdf"), 100) < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in ROBOTS if name in DISAGREE])
def test_public_robots_whose_dimensions_disagree(name):
    """They close with ball joints, where hardly a row is independent of the others.

    So a note says what is wrong with the file, and limp steps diverge.
    """
    model = load(FOLDER / name / "robot.urdf")
    balls = [loop.name for loop in model.loops if loop.rows == "ball"]
    (note,) = (note for note in model.notes if "disagree" in note)
    assert DISAGREE[name] in note and note.endswith("close as ball joints only")
    assert all(ball in note for ball in balls) and 0 < len(balls) < len(model.loops)
    robot = build_robot(model, base="fixed", time_step=0)
    C = robot.closure.jacobian(robot.plant.CreateDefaultContext())
    values = np.linalg.svd(C, compute_uv=False)
    assert values[-1] < 1e-4 * values[0]
    with pytest.raises(NoSolution, match=r"diverged|was not solved"):
        stepped(model, 100)
