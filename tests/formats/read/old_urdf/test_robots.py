"""The public robots in the old-Drake format, as their authors published them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from pydrake.geometry import Capsule, Sphere
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import JointIndex

from drakebots import build_robot, load
from drakebots.core.errors import InvalidInput
from drakebots.core.units import MM_G_MS
from drakebots.model import LoopClosure
from drakebots.multibody import TimeStepper
from tests.helpers.old_urdf_samples import (
    actuator_joints,
    loaded,
    read_old,
    springs_of,
    total_mass,
)
from tests.helpers.scripts import ROOT

DATA = ROOT.parent / "shared" / "data"
HAMR = DATA / "hamr" / "HAMR_scaledV2_TYM_rss.urdf"
with_data = pytest.mark.skipif(
    not DATA.is_dir(), reason=f"the public URDFs are not in {DATA}"
)


@with_data
def test_hamr_is_the_published_robot():
    urdf = read_old(HAMR, units=MM_G_MS)
    plant, _ = loaded(urdf.text)
    assert 'name="Hamr"' in urdf.text and urdf.kind == "old Drake"
    assert abs(total_mass(plant) - 1.474991e-3) < 5e-10
    assert plant.num_velocities() == 38
    legs = ("FL", "RL", "FR", "RR")
    driven = [f"{leg}{q}" for leg in legs for q in ("qsact", "qlact")]
    assert actuator_joints(plant) == driven
    springs = HAMR.read_text().count("<force_element")
    assert springs == 32 and plant.num_force_elements() == springs + 1  # gravity
    assert all(loop.rows == "planar" and not loop.in_file for loop in urdf.loops)
    closure = LoopClosure(plant, urdf.loops)
    context = plant.CreateDefaultContext()
    assert closure.gaps(context).shape == (12,)
    # The file's own digits leave 1.44e-7 mm in two coordinates of the qfb2 loops.
    assert closure.gaps(context).max() < 2.1e-10
    assert np.abs(closure.residual(context)).max() < 1.5e-10
    assert sorted(foot.name for foot in urdf.feet) == ["FLL4", "FRL4", "RLL4", "RRL4"]
    np.testing.assert_allclose(foot_of(urdf, "FLL4"), [0, 7.58e-3, -11.35e-3])


@with_data
def test_hamr_springs_damping_and_limits_are_in_si():
    plant, _ = loaded(read_old(HAMR, units=MM_G_MS).text)
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


def foot_of(urdf, name: str) -> np.ndarray:
    return next(foot.p_BF for foot in urdf.feet if foot.name == name)


def velocity_order(plant: MultibodyPlant) -> list[str]:
    joints = [plant.get_joint(JointIndex(i)) for i in range(plant.num_joints())]
    moving = [joint for joint in joints if joint.num_velocities() > 0]
    moving.sort(key=lambda joint: joint.velocity_start())
    return [j.name() for j in moving for _ in range(j.num_velocities())]


@with_data
def test_hamr_mass_matrix_is_that_of_our_model():
    theirs, _ = loaded(read_old(HAMR, units=MM_G_MS).text)
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
    urdf = read_old(DATA / "hamr" / "FLwithtwist.urdf", units=MM_G_MS)
    plant, _ = loaded(urdf.text)
    assert plant.num_velocities() == 6 + 10 and plant.num_actuators() == 2
    assert len(urdf.loops) == 3 and [foot.name for foot in urdf.feet] == ["FLL4"]
    assert len(springs_of(plant)) == 8
    closure = LoopClosure(plant, urdf.loops)
    assert closure.gaps(plant.CreateDefaultContext()).max() < 2.1e-10
    twist = plant.GetJointByName("FLqs2_twist")
    assert twist.default_damping() == pytest.approx(0.0249e-6)


@with_data
def test_littledog():
    path = DATA / "littledog" / "LittleDog2_LittleDog.urdf"
    urdf = read_old(path)
    plant, scene_graph = loaded(urdf.text)
    assert urdf.kind == "old Drake"
    assert plant.num_velocities() == 18 and plant.num_actuators() == 12
    assert total_mass(plant) == pytest.approx(1.8 + 4 * (0.0623 + 0.1279 + 0.0464))
    assert actuator_joints(plant)[:2] == ["front_left_hip_roll", "front_left_hip_pitch"]
    assert sorted(foot.name for foot in urdf.feet) == [
        f"{end}_{side}_lower_leg"
        for end in ("back", "front")
        for side in ("left", "right")
    ]
    frame = plant.GetFrameByName("back_left_foot_center")
    p = frame.GetFixedPoseInBodyFrame().translation()
    np.testing.assert_allclose(p, foot_of(urdf, "back_left_lower_leg"))
    inspector = scene_graph.model_inspector()
    shapes = [inspector.GetShape(i) for i in inspector.GetAllGeometryIds()]
    # Its meshes are not there, so what collides is drawn.
    assert sum(isinstance(shape, Capsule) for shape in shapes) == 2 * 4
    radii = [shape.radius() for shape in shapes if isinstance(shape, Sphere)]
    assert radii == [1e-9] * 8


@with_data
def test_falling_brick_has_eight_feet():
    urdf = read_old(DATA / "littledog" / "FallingBrickContactPoints.urdf")
    plant, _ = loaded(urdf.text)
    assert plant.num_velocities() == 6 and total_mass(plant) == 1.0
    assert [foot.name for foot in urdf.feet] == [f"brick_{i}" for i in range(8)]
    corners = np.abs([foot.p_BF for foot in urdf.feet])
    np.testing.assert_allclose(corners, np.tile([1, 0.25, 0.5], (8, 1)))


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
