"""Robots of USD stages, as MJCF, against plants that are built by hand."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydrake.math import RigidTransform, RollPitchYaw
from pydrake.multibody.plant import AddMultibodyPlantSceneGraph, MultibodyPlant
from pydrake.multibody.tree import (
    FixedOffsetFrame,
    PrismaticJoint,
    RevoluteJoint,
    RotationalInertia,
    SpatialInertia,
)
from pydrake.systems.framework import DiagramBuilder

from drakebots.core.errors import DrakebotsError, InvalidInput, ModelProblem
from drakebots.formats import load
from tests.helpers.scripts import load_script

pytest.importorskip("pxr")
write_mjcf, main = load_script("usd_to_mjcf", "write_mjcf", "main")

HEAD = """#usda 1.0
(
    defaultPrim = "robot"
    metersPerUnit = {unit}
    kilogramsPerUnit = {mass}
    upAxis = "{up}"
)
"""


def converted(path: Path):
    """The model of a stage, by way of its MJCF."""
    written = path.with_suffix(".xml")
    assert main([str(path), "-o", str(written)]) == 0
    return load(written)


def plant_of(model) -> MultibodyPlant:
    plant = MultibodyPlant(0.0)
    model.add_to(plant)
    plant.Finalize()
    return plant


def vector(values) -> str:
    return "(" + ", ".join(f"{value:.9g}" for value in values) + ")"


def placed(X: RigidTransform, unit: float = 1.0, scale=(1, 1, 1)) -> str:
    """The operations that put a prim where X says [m]."""
    q = X.rotation().ToQuaternion().wxyz()
    return f"""
        double3 xformOp:translate = {vector(X.translation() / unit)}
        quatd xformOp:orient = {vector(q)}
        double3 xformOp:scale = {vector(scale)}
        uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:orient",
            "xformOp:scale"]"""


def body(name: str, X: RigidTransform, inside="", mass="", **place) -> str:
    schemas = '["PhysicsRigidBodyAPI", "PhysicsMassAPI"]'
    return f"""
    def Xform "{name}" (prepend apiSchemas = {schemas})
    {{
        {placed(X, **place)}
        {mass}

        {inside}
    }}"""


def joint(kind: str, name: str, bodies, frames, more="", unit=1.0, api="") -> str:
    ends = ""
    for k, (owner, X) in enumerate(zip(bodies, frames)):
        if owner:
            ends += f"rel physics:body{k} = </robot/{owner}>\n"
        q = X.rotation().ToQuaternion().wxyz()
        ends += f"point3f physics:localPos{k} = {vector(X.translation() / unit)}\n"
        ends += f"quatf physics:localRot{k} = {vector(q)}\n"
    schemas = f"(prepend apiSchemas = [{api}])" if api else ""
    return f"""
    def Physics{kind}Joint "{name}" {schemas}
    {{
        {ends}
        {more}
    }}"""


def stage(path: Path, parts: str, unit=1.0, mass=1.0, up="Z") -> Path:
    """A file with a robot of these parts."""
    head = HEAD.format(unit=unit, mass=mass, up=up)
    path.write_text(f'{head}def Xform "robot"\n{{{parts}\n}}\n')
    return path


def cube(size: float, schemas='"PhysicsCollisionAPI"', more="", kind="Cube") -> str:
    return f"""
        def {kind} "shape" (prepend apiSchemas = [{schemas}])
        {{
            double size = {size}
            {more}
        }}"""


BALL = "float physics:mass = 1\nfloat3 physics:diagonalInertia = (0.01, 0.01, 0.01)\n"

# --- trees ---


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), unit=st.sampled_from([1.0, 0.01]))
def test_a_stage_moves_as_a_plant_of_the_same_joints(tmp_path_factory, seed, unit):
    """Mass matrix, gravity and poses agree with Drake's own joints between the frames.

    Bodies lie anywhere; every other joint names its bodies the other way round.
    """
    rng = np.random.default_rng(seed)

    def pose(size=0.3):
        turn = RollPitchYaw(rng.uniform(-3, 3, 3)).ToRotationMatrix()
        return RigidTransform(turn, rng.uniform(-size, size, 3))

    plant, text, made = MultibodyPlant(0.0), "", [None]
    joints = []
    for k in range(1, 5):
        mass, com = rng.uniform(0.5, 2), rng.uniform(-0.1, 0.1, 3)
        moments = 0.01 * rng.uniform(1, 1.5, 3)
        axes = pose().rotation()
        inertia = RotationalInertia(*moments).ReExpress(axes)
        about = SpatialInertia.MakeFromCentralInertia(mass, com, inertia)
        link = plant.AddRigidBody(f"b{k}", about)
        says = f"""float physics:mass = {mass / unit:.9g}
        point3f physics:centerOfMass = {vector(com / unit)}
        float3 physics:diagonalInertia = {vector(moments / unit**3)}
        quatf physics:principalAxes = {vector(axes.ToQuaternion().wxyz())}"""
        text += body(f"b{k}", pose(), mass=says, unit=unit)
        above = rng.integers(0, k)
        parent = made[above] or plant.world_body()
        X_PF, X_BM = pose(), pose()
        F = plant.AddFrame(FixedOffsetFrame(f"F{k}", parent.body_frame(), X_PF))
        M = plant.AddFrame(FixedOffsetFrame(f"M{k}", link.body_frame(), X_BM))
        letter = "XYZ"[rng.integers(3)]
        slides = rng.integers(2)
        kind = PrismaticJoint if slides else RevoluteJoint
        sign = -1 if k % 2 else 1
        axis = sign * np.eye(3)["XYZ".index(letter)]
        joints.append(plant.AddJoint(kind(f"j{k}", F, M, axis)))
        ends = [(f"b{above}" if above else None, X_PF), (f"b{k}", X_BM)][::sign]
        word = "Prismatic" if slides else "Revolute"
        limits = f"float physics:lowerLimit = {-1.5 / unit if slides else -90}"
        more = f'uniform token physics:axis = "{letter}"\n{limits}'
        text += joint(word, f"j{k}", *zip(*ends), more=more, unit=unit)
        made.append(link)
    plant.Finalize()
    path = tmp_path_factory.mktemp("usd") / "robot.usda"
    model = converted(stage(path, text, unit=unit, mass=unit))
    ours = plant_of(model)
    here, there = ours.CreateDefaultContext(), plant.CreateDefaultContext()
    matrices, weights = [], []
    q = rng.uniform(-1, 1, len(joints))
    for each, context in ((ours, here), (plant, there)):
        order = [each.GetJointByName(j.name()).velocity_start() for j in joints]
        each.SetPositions(context, q[np.argsort(order)])
        matrices.append(each.CalcMassMatrix(context)[np.ix_(order, order)])
        weights.append(each.CalcGravityGeneralizedForces(context)[order])
    np.testing.assert_allclose(*matrices, rtol=0, atol=2e-5)
    np.testing.assert_allclose(*weights, rtol=0, atol=2e-4)
    for link in made[1:]:
        X = ours.EvalBodyPoseInWorld(here, ours.GetBodyByName(link.name()))
        Y = plant.EvalBodyPoseInWorld(there, link)
        np.testing.assert_allclose(X.GetAsMatrix4(), Y.GetAsMatrix4(), atol=1e-5)
    for j in joints:
        lower = ours.GetJointByName(j.name()).position_lower_limits()[0]
        slides = isinstance(j, PrismaticJoint)
        assert lower == pytest.approx(-1.5 if slides else -np.pi / 2, rel=1e-5)


def test_the_pose_on_the_stage_is_one_of_the_model(tmp_path):
    """Positions are about the joint's frames; how the bodies lie is a pose."""
    free = RigidTransform()
    bent = RigidTransform(RollPitchYaw(0, 0.4, 0), [0, 0, -0.2])
    text = body("a", free, mass=BALL) + body("b", bent, mass=BALL)
    axis = 'uniform token physics:axis = "Y"'
    frames = RigidTransform([0, 0, -0.2]), free
    text += joint("Revolute", "knee", ("a", "b"), frames, axis)
    model = converted(stage(tmp_path / "leg.usda", text))
    assert model.poses["stage"] == pytest.approx({"knee": 0.4}, abs=1e-6)


def test_what_a_general_joint_lets_move(tmp_path):
    """Limits lock axes; two that are left are two hinges, three rotations a ball."""
    free = RigidTransform()
    text = "".join(body(name, free, mass=BALL) for name in "abc")
    locked = [f"{m}{a}" for m in ("trans", "rot") for a in "XYZ"]

    def held(names, more=""):
        for name in names:
            more += f"float limit:{name}:physics:low = 1\n"
            more += f"float limit:{name}:physics:high = -1\n"
        return more

    two = held([n for n in locked if n not in ("rotX", "rotZ")])
    two += "float limit:rotX:physics:high = 30\n"
    text += joint("", "two", ("a", "b"), (free, free), two)
    text += joint("", "ball", ("b", "c"), (free, free), held(locked[:3]))
    model = converted(stage(tmp_path / "arm.usda", text))
    assert set(model.summary.joints) == {
        *("two_rotX", "two_rotZ"),
        *("ball_qx", "ball_qy", "ball_qz"),
    }
    plant = plant_of(model)
    upper = plant.GetJointByName("two_rotX").position_upper_limits()
    assert upper == pytest.approx([np.pi / 6], rel=1e-5)


# --- loops ---


def four_bar(excluded: bool) -> str:
    """A square of four rods, 0.2 m, that hangs from the world by the first."""
    at = {"a": (0, 0, 0), "b": (0.1, 0, -0.1), "c": (0, 0, -0.2), "d": (-0.1, 0, -0.1)}
    text = "".join(
        body(name, RigidTransform(np.array(p, dtype=float)), mass=BALL)
        for name, p in at.items()
    )
    text += joint("Fixed", "root", (None, "a"), (RigidTransform(), RigidTransform()))
    corners = {"ab": (0.1, 0), "bc": (0.1, -0.2), "cd": (-0.1, -0.2), "da": (-0.1, 0)}
    for (one, other), (x, z) in corners.items():
        p = np.array([x, 0, z])
        frames = [RigidTransform(p - np.array(at[name])) for name in (one, other)]
        more = 'uniform token physics:axis = "Y"\n'
        more += "bool physics:excludeFromArticulation = 1" * (
            excluded and one + other == "bc"
        )
        text += joint("Revolute", one + other, (one, other), frames, more)
    return text


@pytest.mark.parametrize("excluded", [True, False])
def test_a_joint_that_closes_a_loop(tmp_path, excluded):
    """The excluded joint closes it, or the last; two rows are independent."""
    model = converted(stage(tmp_path / "bar.usda", four_bar(excluded)))
    assert {loop.rows for loop in model.loops} == {"ball"}  # two, on the hinge's axis
    name = "bc" if excluded else "da"
    assert [loop.name for loop in model.loops] == [f"{name}_0", f"{name}_1"]
    between = model.loops[1].p_AP - model.loops[0].p_AP
    np.testing.assert_allclose(np.abs(between), [0, 0.01, 0], atol=1e-9)
    assert model.summary.independent_rows == 2
    assert model.summary.loop_gap < 1e-6
    assert len(model.summary.joints) == 3


# --- shapes and masses ---


def lone(tmp_path, inside, mass="", **units):
    """Mass, moments about its axes, and pose of a body."""
    text = body("a", RigidTransform(), inside, mass)
    plant = plant_of(converted(stage(tmp_path / "lone.usda", text, **units)))
    link, context = plant.GetBodyByName("a"), plant.CreateDefaultContext()
    inertia = link.CalcSpatialInertiaInBodyFrame(context).CalcRotationalInertia()
    moments = np.diag(inertia.CopyToFullMatrix3())
    return link.default_mass(), moments, plant.EvalBodyPoseInWorld(context, link)


def test_masses_of_shapes(tmp_path):
    """A box of 0.2 m: of water, of a density, of the body's mass; none of one drawn."""
    boxed, dense = 0.2**2 / 6, "float physics:density = 500"
    schemas = '"PhysicsCollisionAPI", "PhysicsMassAPI"'
    drawn = 'def Cube "drawn" {}'
    for inside, mass, kg in (
        (cube(0.2), "", 8.0),
        (
            cube(0.2, schemas, dense),
            "",
            4.0,
        ),
        (cube(0.2), "float physics:mass = 3\n", 3.0),
        (drawn + cube(0.2), "", 8.0),
    ):
        found, moments, _ = lone(tmp_path, inside, mass)
        assert found == pytest.approx(kg)
        np.testing.assert_allclose(moments, kg * boxed, rtol=1e-5)
    found, moments, _ = lone(tmp_path, cube(20), unit=0.01)
    assert found == pytest.approx(8.0)
    np.testing.assert_allclose(moments, 8.0 * boxed, rtol=1e-5)


def test_a_stretched_sphere_is_an_ellipsoid_and_y_may_be_up(tmp_path):
    stretched = cube(
        1,
        kind="Sphere",
        more="""double radius = 0.1
        float3 xformOp:scale = (1, 2, 3)
        uniform token[] xformOpOrder = ["xformOp:scale"]""",
    )
    found, moments, X = lone(tmp_path, stretched, up="Y")
    a, b, c = 0.1, 0.2, 0.3
    kg = 1000 * 4 / 3 * np.pi * a * b * c
    assert found == pytest.approx(kg, rel=1e-5)
    of_axes = kg / 5 * np.array([b**2 + c**2, a**2 + c**2, a**2 + b**2])
    np.testing.assert_allclose(moments, of_axes, rtol=1e-5)
    np.testing.assert_allclose(X.rotation() @ [0, 1, 0], [0, 0, 1], atol=1e-12)


def test_a_mesh_of_quads(tmp_path):
    """A box of quads weighs what a box does; those of a left-handed mesh too."""
    corners = [(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)]
    quads = [0, 1, 3, 2, 4, 6, 7, 5, 0, 4, 5, 1, 2, 3, 7, 6, 0, 2, 6, 4, 1, 5, 7, 3]
    mesh = f"""
        def Mesh "shape" (prepend apiSchemas = ["PhysicsCollisionAPI"])
        {{
            point3f[] points = [{", ".join(map(vector, corners))}]
            int[] faceVertexCounts = [4, 4, 4, 4, 4, 4]
            int[] faceVertexIndices = {quads}
            float3 xformOp:scale = (0.1, 0.2, 0.3)
            uniform token[] xformOpOrder = ["xformOp:scale"]
        }}"""
    found, *_ = lone(tmp_path, mesh)
    assert found == pytest.approx(6.0, rel=1e-5)


# --- motors ---


def test_what_joints_have_is_in_the_stages_units(tmp_path):
    """Drives are motors, but for those that may not push; Newton damps by degrees."""
    free, unit, drive = RigidTransform(), 0.01, '"PhysicsDriveAPI:{}"'.format
    text = "".join(body(name, free, mass=BALL) for name in "abcde")
    kinds = {
        "hip": "Revolute",
        "rod": "Prismatic",
        "free": "Revolute",
        "off": "Revolute",
    }
    says = {
        "hip": "float drive:angular:physics:maxForce = 20000",
        "rod": "float drive:linear:physics:maxForce = 500",
        "free": "",
        "off": "float drive:angular:physics:maxForce = 0",
    }
    says["hip"] += "\nfloat physxJoint:armature = 200\nfloat newton:damping = 100"
    says["rod"] += "\nfloat newton:damping = 3"
    for (name, kind), one, other in zip(kinds.items(), "abcd", "bcde"):
        api = "" if name == "free" else drive("linear" if name == "rod" else "angular")
        text += joint(kind, name, (one, other), (free, free), says[name], api=api)
    plant = plant_of(converted(stage(tmp_path / "arm.usda", text, unit=unit)))
    every = map(plant.get_joint_actuator, plant.GetJointActuatorIndices())
    motors = {motor.joint().name(): motor for motor in every}
    assert motors.keys() == {"hip", "rod"}
    assert motors["hip"].effort_limit() == pytest.approx(2.0)  # of kg cm^2/s^2
    assert motors["rod"].effort_limit() == pytest.approx(5.0)
    assert motors["hip"].default_rotor_inertia() == pytest.approx(0.02)
    damping = [plant.GetJointByName(n).default_damping() for n in ("hip", "rod")]
    assert damping == pytest.approx([0.01 * 180 / np.pi, 3.0], rel=1e-5)


def test_a_joint_of_a_body_that_is_not_there(tmp_path):
    text = body("a", RigidTransform(), mass=BALL)
    frames = RigidTransform(), RigidTransform()
    text += joint("Revolute", "hip", ("a", "lost"), frames)
    with pytest.raises(ModelProblem, match="/robot/lost, which is not there"):
        write_mjcf(stage(tmp_path / "x.usda", text), tmp_path / "x.xml")


def test_links_that_do_not_touch_one_another(tmp_path):
    """Without self-collisions, no two links of an articulation do."""
    free = RigidTransform()
    apart = [RigidTransform([0.0, 0.0, 0.05 * k]) for k in range(3)]
    text = "".join(body(n, X, cube(0.2), BALL) for n, X in zip("abc", apart))
    for one, other in ("ab", "bc"):
        text += joint(
            "Revolute", one + other, (one, other), (RigidTransform([0, 0, 0.05]), free)
        )
    path = stage(tmp_path / "arm.usda", text)
    flag = "bool physxArticulation:enabledSelfCollisions = 0\n"
    pairs = []
    for more in ("", flag):
        stage(path, more + text)
        plant, scene_graph = AddMultibodyPlantSceneGraph(DiagramBuilder(), 0.0)
        converted(path).add_to(plant)
        plant.Finalize()
        pairs.append(len(scene_graph.model_inspector().GetCollisionCandidates()))
    assert pairs == [1, 0]


# --- files ---


def test_files_that_are_no_robot(tmp_path, capsys):
    path = tmp_path / "x.usda"
    path.write_text('#usda 1.0\ndef Xform "a" {}\n')
    with pytest.raises(ModelProblem, match="no rigid body"):
        write_mjcf(path, path.with_suffix(".xml"))
    path.write_text("#usda 1.0\ndef Xform (\n")
    with pytest.raises(ModelProblem, match="USD refuses it: line 2"):
        write_mjcf(path, path.with_suffix(".xml"))
    with pytest.raises(SystemExit):
        main([str(path), "-o", str(tmp_path / "x.xml")])
    assert not (tmp_path / "x.xml").exists()
    assert capsys.readouterr().err.count("\n") == 1
    with pytest.raises(ModelProblem, match="usd_to_mjcf"):
        load(path)


def test_a_layer_that_is_missing_is_noted(tmp_path):
    text = body("a", RigidTransform(), cube(0.1))
    text += '\ndef "visuals" (references = @./meshes/lost.usd@</a>) {}'
    notes = write_mjcf(stage(tmp_path / "x.usda", text), tmp_path / "x.xml")
    assert any("not found" in note and "lost.usd" in note for note in notes)


def test_without_the_package_the_command_to_type_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pxr", None)
    with pytest.raises(InvalidInput, match="pip install usd-core"):
        write_mjcf(stage(tmp_path / "x.usda", ""), tmp_path / "x.xml")


def test_a_path_in_place_of_a_number_counts_as_none(tmp_path):
    """The cube has the size that USD's cubes have by default, 2."""
    path = stage(tmp_path / "robot.usda", body("ball", RigidTransform(), cube(0.1)))
    text, count = re.subn("double size = 0.1", "double size = </nix>", path.read_text())
    assert count == 1
    path.write_text(text)
    write_mjcf(path, path.with_suffix(".xml"))
    model = mujoco.MjModel.from_xml_path(str(path.with_suffix(".xml")))
    np.testing.assert_allclose(model.geom_size[-1], 1.0)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_damaged_stage_is_read_or_refused(tmp_path_factory, data):
    """Numbers, names and lines that are changed end in a model or in one line."""
    path = tmp_path_factory.mktemp("usd") / "robot.usda"
    lines = stage(path, four_bar(True) + body("ball", RigidTransform(), cube(0.1)))
    lines = lines.read_text().splitlines()
    for _ in range(data.draw(st.integers(1, 3))):
        k = data.draw(st.integers(0, len(lines) - 1))
        words = ["nan", "inf", "0", "1e30", '"Q"', "</nix>", "PhysicsJoint", ""]
        word = data.draw(st.sampled_from(words))
        lines[k] = re.sub(r"-?\d+(\.\d+)?|</.*>|\"[XYZ]\"", word, lines[k], count=1)
    path.write_text("\n".join(lines))
    try:
        write_mjcf(path, path.with_suffix(".xml"))
    except DrakebotsError as error:
        assert "\n" not in str(error)
