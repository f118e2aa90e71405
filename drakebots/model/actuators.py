"""Motors for joints that have none in the model file.

Files of ROS name limits of effort but no motors; :func:`missing_actuators` puts one on
every joint that has such a limit.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass

from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import ModelInstanceIndex


@dataclass(frozen=True)
class Actuator:
    """A motor that the model file does not have, added to one of its joints.

    Attributes:
        joint: name of the joint, of one degree of freedom; the actuator has its name.
        effort: largest torque or force [N m, N]; inf for no limit.
    """

    joint: str
    effort: float = float("inf")


def add_actuators(
    plant: MultibodyPlant,
    actuators: Sequence[Actuator],
    instances: Sequence[ModelInstanceIndex],
) -> None:
    """Adds motors to joints of the instances, before Finalize."""
    for actuator in actuators:
        for instance in instances:
            if plant.HasJointNamed(actuator.joint, instance):
                joint = plant.GetJointByName(actuator.joint, instance)
                plant.AddJointActuator(actuator.joint, joint, actuator.effort)


def missing_actuators(root: ET.Element) -> tuple[Actuator, ...]:
    """A motor for every joint of a URDF that has a limit of effort.

    Args:
        root: the URDF's <robot>.
    """
    found = []
    for joint in root.iter("joint"):
        limit = joint.find("limit")
        effort = 0.0 if limit is None else float(limit.get("effort", 0.0))
        kinds = ("revolute", "continuous", "prismatic")
        if joint.get("type") in kinds and effort > 0 and joint.find("mimic") is None:
            found.append(Actuator(joint.get("name", ""), effort))
    return tuple(found)
