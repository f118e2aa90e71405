"""Soft limbs that bend at constant curvature, as chains of joints for any robot.

A limb of length l that bends by alpha is a chain of N rigid segments of length
l/N and N + 1 revolute joints, of which joint j takes the share w_j of alpha:

    w = [1/(2N), 1/N, ..., 1/N, 1/(2N)],    sum w = 1.

Its end lies on the arc's chord, at (a/2N)/sin(a/2N) times its distance: an
error of second order in 1/N, and its direction is exact. Joints with stiffness
k_j = K/w_j and damping d_j = D/w_j in series make a limb of stiffness K and
damping D in bending that stays an arc under a moment at its end.

Softness and actuation are one: each joint has an actuator with a proportional
gain k_j (`PdControllerGains`, implicit under SAP), so that a limb asked for
alpha_ref pushes with k_j (w_j alpha_ref - q_j). Without a desired state Drake
leaves such actuators out, and the limb is limp but damped.

    limbs = read_limbs("tail.yaml")
    add_limbs(plant, limbs)                     # before plant.Finalize(), or:
    write_limbs("robot.urdf", limbs, "tailed.dmd.yaml")

Source: the discretisation is ours; constant curvature as in Schiller, Seibel,
Schlattmann, Front. Robot. AI 7:87 (2020), section 2.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import ModelInstanceIndex

from drakebots.errors import InvalidInput, UnknownName
from drakebots.multibody.limb import Limb, check_limbs
from drakebots.multibody.limbs_sdf import add_parsed, limbs_sdf, write_limbs
from drakebots.multibody.limbs_yaml import read_limbs

__all__ = [
    "Limb",
    "LimbMap",
    "add_limbs",
    "couple_joints",
    "limbs_sdf",
    "read_limbs",
    "write_limbs",
]


class LimbMap:
    """Bending angles of limbs to and from the coordinates of a plant.

    Args:
        plant: finalized, with the limbs' joints and actuators in it.
        limbs: of one model instance, in the order of every alpha.

    Raises:
        UnknownName: for a limb that is not in the plant.
        InvalidInput: when the limbs are of several model instances.
    """

    def __init__(self, plant: MultibodyPlant, limbs: Sequence[Limb]):
        self.limbs = check_limbs(limbs)
        for limb in self.limbs:
            if not plant.HasJointNamed(limb.joints[0]):
                names = [n.rpartition("_")[0] for n in plant.GetPositionNames()]
                raise UnknownName("limb in the plant", limb.name, set(names))
        joints = [[plant.GetJointByName(n) for n in x.joints] for x in self.limbs]
        instances = {joint.model_instance() for row in joints for joint in row}
        if len(instances) != 1:
            raise InvalidInput("the limbs must be of one model instance; make two maps")
        (self.instance,) = instances
        in_instance = [
            plant.get_joint_actuator(i).joint().index()
            for i in plant.GetJointActuatorIndices(self.instance)
        ]
        self.num_actuators = len(in_instance)
        self._shares = np.zeros((self.num_actuators, len(self.limbs)))
        self._sum = np.zeros((len(self.limbs), plant.num_positions()))
        self._low, self._high = np.array([x.range for x in self.limbs]).T
        for i, (limb, row) in enumerate(zip(self.limbs, joints)):
            for joint, w in zip(row, limb.weights):
                self._shares[in_instance.index(joint.index()), i] = w
                self._sum[i, joint.position_start()] = 1.0

    @property
    def desired_matrix(self) -> np.ndarray:
        """Takes alpha (L,) to x_d = [q_d, 0]: (2 num_actuators, L)."""
        return np.vstack([self._shares, np.zeros_like(self._shares)])

    @property
    def sum_matrix(self) -> np.ndarray:
        """Takes positions (nq,) to alpha: (L, nq) of 0 and 1."""
        return self._sum.copy()

    def clip(self, alpha) -> np.ndarray:
        """Angles (..., L) [rad] moved into the limbs' ranges."""
        return np.clip(alpha, self._low, self._high)

    def desired(self, alpha) -> np.ndarray:
        """x_d = [q_d, 0] (2 num_actuators,) for angles (L,) [rad], as asked.

        For `plant.get_desired_state_input_port(map.instance)`.
        """
        return self.desired_matrix @ np.asarray(alpha, float)

    def positions(self, q, alpha) -> np.ndarray:
        """The plant's positions q (nq,) with the limbs bent by alpha (L,)."""
        q = np.array(q, float)
        for i, limb in enumerate(self.limbs):
            q[self._sum[i] > 0] = limb.weights * alpha[i]
        return q

    def angles(self, q) -> np.ndarray:
        """alpha (..., L) [rad] of positions q (..., nq): sums of joint angles."""
        return np.asarray(q, float) @ self._sum.T


def add_limbs(plant: MultibodyPlant, limbs: Sequence[Limb], *, name: str = "limbs"):
    """Adds limbs to a parsed plant that is not finalized yet.

    The limbs become one model instance; make a :class:`LimbMap` of it after
    `plant.Finalize()`, and connect its `desired` to the instance's
    desired-state port.

    Args:
        plant: a discrete plant, with its robots in it.
        limbs: to add; a limb may grow from the tip of one that comes before it.
        name: of the model instance.

    Returns:
        The model instance.

    Raises:
        InvalidInput: for a plant that is finalized or continuous, two limbs of
            one name, a model instance that is there, or a link's name that
            several robots have.
        UnknownName: for a parent that is no link, listing the links.
    """
    limbs = check_limbs(limbs)
    if plant.is_finalized():
        raise InvalidInput("the plant is finalized; add limbs before Finalize()")
    if plant.time_step() == 0:
        raise InvalidInput(
            "limbs need a discrete plant (implicit PD gains); give it a time step"
        )
    if plant.HasModelInstanceNamed(name):
        raise InvalidInput(f"there is a model named {name!r}; give another name")
    instance: ModelInstanceIndex = add_parsed(plant, limbs, name)
    return instance


def couple_joints(plant: MultibodyPlant, limbs: Sequence[Limb]) -> None:
    """Keeps limbs arcs whatever pulls on them; before Finalize, for SAP.

    Each joint's angle is its share of alpha, by N coupler constraints a limb.
    Without them a force across the end also bends a limb into an S.
    """
    for limb in check_limbs(limbs):
        joints = [plant.GetJointByName(name) for name in limb.joints]
        pairs = zip(joints[1:], joints, limb.weights[1:] / limb.weights[:-1])
        for joint, before, ratio in pairs:
            plant.AddCouplerConstraint(joint, before, ratio, 0.0)
