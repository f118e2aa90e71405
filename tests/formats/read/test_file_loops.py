"""Loops that a file closes itself by Drake's ball constraints."""

from __future__ import annotations

import numpy as np
import pytest
from pydrake.multibody.plant import MultibodyPlant
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import DiagramBuilder

from drakebots import ModelProblem, build_robot, load
from drakebots.formats.read.findings import drake_tags
from tests.formats.read.urdf.test_joined_frames import FIVE_BAR
from tests.helpers.model_files import write
from tests.model.test_loops import FOUR_BAR

URDF = """<drake:ball_constraint>
<drake:ball_constraint_body_A name="tip_b"/><drake:ball_constraint_p_AP value="0 0 0"/>
<drake:ball_constraint_body_B name="tip_d"/><drake:ball_constraint_p_BQ value="0 0 0"/>
</drake:ball_constraint></robot>"""
SDF = """<drake:ball_constraint>
<drake:ball_constraint_body_A>rod</drake:ball_constraint_body_A>
<drake:ball_constraint_p_AP>2 {y} 0</drake:ball_constraint_p_AP>
<drake:ball_constraint_body_B>rocker</drake:ball_constraint_body_B>
<drake:ball_constraint_p_BQ>0 {y} 1</drake:ball_constraint_p_BQ>
</drake:ball_constraint>"""

ROD = """<joint name="weld" type="fixed">
<parent>world</parent><child>base</child></joint>
<drake:distance_constraint>
<drake:distance_constraint_body_A>rod</drake:distance_constraint_body_A>
<drake:distance_constraint_p_AP>2 0 0</drake:distance_constraint_p_AP>
<drake:distance_constraint_body_B>rocker</drake:distance_constraint_body_B>
<drake:distance_constraint_p_BQ>0 0 0</drake:distance_constraint_p_BQ>
<drake:distance_constraint_distance>1</drake:distance_constraint_distance>
<drake:distance_constraint_stiffness>inf</drake:distance_constraint_stiffness>
<drake:distance_constraint_damping>0</drake:distance_constraint_damping>
</drake:distance_constraint>"""


def urdf(folder):
    text = FIVE_BAR.replace("<robot ", '<robot xmlns:drake="http://drake.mit.edu" ')
    return write(folder, text.replace("</robot>", URDF), "five_bar.urdf")


def sdf(folder, constraints):
    text = FOUR_BAR.replace("<sdf ", '<sdf xmlns:drake="http://drake.mit.edu" ')
    return write(folder, text.replace("</model>", constraints + "</model>"), "bar.sdf")


def test_a_urdf(tmp_path):
    """The loop is in the table, closed in the default pose, and closed once by SAP."""
    model = load(urdf(tmp_path))
    (loop,) = model.loops
    assert (loop.body_A, loop.body_B, loop.rows) == ("tip_b", "tip_d", "ball")
    assert loop.in_file and model.summary.loop_gap < 1e-9
    assert model.summary.independent_rows == 2
    plant = MultibodyPlant(1e-3)
    model.add_to(plant)
    assert plant.num_constraints() == 1


@pytest.mark.parametrize("points", [[0.0], [-0.1, 0.1]])
def test_an_sdf(tmp_path, points):
    """One ball, or two along the axis: in a plane both say the same two rows."""
    model = load(sdf(tmp_path, "".join(SDF.format(y=y) for y in points)))
    assert [loop.p_AP.tolist() for loop in model.loops] == [[2, y, 0] for y in points]
    assert len({loop.name for loop in model.loops}) == len(points)
    assert model.summary.loop_rows == 3 * len(points)
    assert model.summary.independent_rows == 2
    np.testing.assert_allclose(model.summary.loop_gap, 0, atol=1e-12)


@pytest.mark.skipif(
    "distance_constraint" not in drake_tags(), reason="Drake 1.51 has no distances"
)
def test_a_rod_of_newer_drakes(tmp_path):
    """In place of the rocker, it carries the rod's end about the rocker's hinge."""
    path = sdf(tmp_path, ROD)
    model = load(path)
    assert model.loops == () and model.summary.constraints == 1
    (note,) = (n for n in model.notes if "distance_constraint" in n)
    assert "not in plans" in note
    builder = DiagramBuilder()
    robot = build_robot(model, builder, time_step=1e-3)
    diagram = builder.Build()
    simulator, plant = Simulator(diagram), robot.plant
    context = plant.GetMyMutableContextFromRoot(simulator.get_mutable_context())
    plant.GetJointByName("j1").set_angular_rate(context, 1.0)
    simulator.AdvanceTo(0.3)
    rod, rocker = (plant.GetBodyByName(n).body_frame() for n in ("rod", "rocker"))
    p_QP = plant.CalcPointsPositions(context, rod, [2, 0, 0], rocker).ravel()
    assert plant.GetJointByName("j1").get_angle(context) > 0.2
    assert np.linalg.norm(p_QP) == pytest.approx(1.0, abs=1e-3)


def test_a_sidecar_counts_before_the_file(tmp_path):
    path = sdf(tmp_path, SDF.format(y=0))
    write(
        tmp_path,
        "loops: {cut: {A: rod, B: rocker, p_A: [2, 0, 0], p_B: [0, 0, 1], "
        "axis: [0, 1, 0], rows: planar, in_file: true}}",
        "bar.drakebots.yaml",
    )
    assert [loop.name for loop in load(path).loops] == ["cut"]


def test_a_sidecar_with_a_misspelt_body_is_used_all_the_same(tmp_path):
    """What is of that body is left out, with a note; the file is refused if strict."""
    path = sdf(tmp_path, SDF.format(y=0))
    write(
        tmp_path,
        "points: {tip: {body: rod, p: [1, 0, 0]}, eye: {body: rockr, p: [0, 0, 1]}}",
        "bar.drakebots.yaml",
    )
    model = load(path)
    assert [point.name for point in model.points] == ["tip"] and len(model.loops) == 1
    (note,) = [note for note in model.notes if "yaml" in note]
    assert note == (
        "left out of bar.drakebots.yaml: eye, unknown body 'rockr' (did you mean "
        "'rocker'?)"
    )
    with pytest.raises(ModelProblem, match="eye, unknown body"):
        load(path, strict=True)
