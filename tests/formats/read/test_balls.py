"""Ball joints read as three hinges, against Drake's own joint."""

from __future__ import annotations

import numpy as np
import pytest
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import JacobianWrtVariable

from drakebots.formats import load

INERTIA = (
    '<inertia ixx="0.02" iyy="0.03" izz="0.04" ixy="0.001" ixz="0.002" iyz="-0.001"/>'
)
URDF = f"""<robot name="r"><link name="a"><inertial><mass value="1"/>{INERTIA}
</inertial></link><link name="b"><inertial><origin xyz="0.1 0 -0.2"/><mass value="2"/>
{INERTIA}</inertial></link><joint name="held" type="fixed"><parent link="world"/>
<child link="a"/></joint><drake:joint name="j" type="ball"><parent link="a"/>
<child link="b"/><origin xyz="0.1 0.2 0.3" rpy="0.3 0.1 -0.2"/></drake:joint></robot>"""
SDF_INERTIA = (
    "<inertia><ixx>0.02</ixx><iyy>0.03</iyy><izz>0.04</izz><ixy>0.001</ixy>"
    "<ixz>0.002</ixz><iyz>-0.001</iyz></inertia>"
)
SDF = f"""<sdf version="1.9"><model name="r"><link name="a"><inertial><mass>1</mass>
{SDF_INERTIA}</inertial></link><link name="b"><pose>0.1 0 0.5 0.3 0 0</pose><inertial>
<pose>0.1 0 -0.2 0 0 0</pose><mass>2</mass>{SDF_INERTIA}</inertial></link>
<joint name="held" type="fixed"><parent>world</parent><child>a</child></joint>
<joint name="j" type="ball"><pose>0 0.1 0.2 0 0.4 0</pose><parent>a</parent>
<child>b</child></joint><frame name="f" attached_to="j"/></model></sdf>"""


@pytest.mark.parametrize("text, ending", [(URDF, "urdf"), (SDF, "sdf")])
def test_hinges_move_a_link_as_a_ball_joint_does(tmp_path, text, ending):
    """The same pose, kinetic and potential energy, so the same equations of motion."""
    path = tmp_path / f"r.{ending}"
    path.write_text(text)
    ours, ball = MultibodyPlant(0.0), MultibodyPlant(0.0)
    model = load(path)
    model.add_to(ours)
    Parser(ball).AddModels(str(path))
    for plant in (ours, ball):
        plant.Finalize()
    assert any("read as three hinges: j" in note for note in model.notes)
    here, there = ours.CreateDefaultContext(), ball.CreateDefaultContext()
    hinges = [ours.GetJointByName(f"j_q{axis}") for axis in "xyz"]
    rng = np.random.default_rng(0)
    for angles, rates in rng.uniform(-1.2, 1.2, (5, 2, 3)):
        for hinge, angle, rate in zip(hinges, angles, rates):
            hinge.set_angle(here, angle)
            hinge.set_angular_rate(here, rate)
        ball.SetPositions(there, angles)
        X, Y = (
            plant.EvalBodyPoseInWorld(context, plant.GetBodyByName("b"))
            for plant, context in ((ours, here), (ball, there))
        )
        np.testing.assert_allclose(X.GetAsMatrix4(), Y.GetAsMatrix4(), atol=1e-14)
        body = ball.GetBodyByName("b").body_frame()
        w = ours.EvalBodySpatialVelocityInWorld(here, ours.GetBodyByName("b"))
        Jw = ball.CalcJacobianAngularVelocity(
            there, JacobianWrtVariable.kV, body, ball.world_frame(), ball.world_frame()
        )
        ball.SetVelocities(there, np.linalg.solve(Jw, w.rotational()))
        for energy in ("CalcKineticEnergy", "CalcPotentialEnergy"):
            one, other = getattr(ours, energy)(here), getattr(ball, energy)(there)
            assert one == pytest.approx(other, rel=1e-12)


def test_where_bushings_hold_turns_ball_joints_stay(tmp_path):
    frames = '<frame name="A" attached_to="a"/><frame name="B" attached_to="b"/>'
    parts = "".join(
        f"<drake:bushing_{kind}_{what}>0 0 0</drake:bushing_{kind}_{what}>"
        for kind in ("torque", "force")
        for what in ("stiffness", "damping")
    )
    ends = "".join(
        f"<drake:bushing_frame{end}>{frame}</drake:bushing_frame{end}>"
        for end, frame in (("A", "A"), ("C", "B"))
    )
    bushing = f"{ends}{parts}</drake:linear_bushing_rpy></model>"
    path = tmp_path / "r.sdf"
    path.write_text(
        SDF.replace("</model>", f"{frames}<drake:linear_bushing_rpy>{bushing}")
    )
    plant = MultibodyPlant(0.0)
    load(path).add_to(plant)
    assert plant.GetJointByName("j").type_name() == "ball_rpy"
