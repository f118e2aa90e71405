"""Old-Drake URDFs for tests: a small one, and what was made of it."""

from __future__ import annotations

from pathlib import Path

from pydrake.geometry import SceneGraph
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import (
    ForceElementIndex,
    JointActuatorIndex,
    PrismaticSpring,
    RevoluteSpring,
)

from drakebots.core.units import SI, Scaling
from drakebots.formats.read.findings import Options
from drakebots.formats.read.read import read_robot
from drakebots.model import Reading

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
    old = 'xmlns="http://drake.mit.edu"'
    return f'<robot name="r" {old}><link name="a">{inside}</link>{beside}</robot>'


def read_old(path: Path, units: Scaling = SI) -> Reading:
    return read_robot(Path(path), Options(units=units))


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
