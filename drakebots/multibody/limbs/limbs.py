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

import re
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import numpy as np
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import ModelInstanceIndex

from drakebots.core.errors import DrakebotsError, FileProblem, InvalidInput, UnknownName
from drakebots.core.files import read_yaml
from drakebots.core.units import si_factor
from drakebots.multibody.limbs.limb import Limb, check_limbs
from drakebots.multibody.limbs.sdf import add_parsed, limbs_sdf, write_limbs

# Limbs from a YAML file, with their units checked.
#
#     limbs:
#     - name: tail
#       parent: chassis
#       length: {value: 100, unit: mm}
#       stiffness: {value: 0.1, unit: N m/rad}
#       mass: {value: 40, unit: g}
#       radius: {value: 8, unit: mm}
#       rpy: {value: [0, 0, 180], unit: deg}      # and p, damping, range, tip_mass
#       segments: 6                               # and axis, rgba, collide
#
# Keys are those of :class:`drakebots.multibody.limbs.limb.Limb`.

# Powers of length, mass, time.
_DIMENSIONS = {
    **dict.fromkeys(("m", "cm", "mm", "um"), (1, 0, 0)),
    **dict.fromkeys(("kg", "g", "mg"), (0, 1, 0)),
    **dict.fromkeys(("s", "ms", "us"), (0, 0, 1)),
    **dict.fromkeys(("rad", "deg", "1"), (0, 0, 0)),
    **dict.fromkeys(("N", "mN"), (1, 1, -2)),
    **dict.fromkeys(("J", "mJ"), (2, 1, -2)),
    **dict.fromkeys(("Pa", "kPa", "MPa", "GPa", "bar"), (-1, 1, -2)),
}

_QUANTITIES = {
    **dict.fromkeys(("length", "radius", "p"), ((1, 0, 0), "m")),
    **dict.fromkeys(("mass", "tip_mass"), ((0, 1, 0), "kg")),
    **dict.fromkeys(("rpy", "range"), ((0, 0, 0), "rad")),
    "stiffness": ((2, 1, -2), "N m/rad"),
    "damping": ((2, 1, -1), "N m s/rad"),
}


def read_limbs(path: str | Path) -> tuple[Limb, ...]:
    """The limbs of a file.

    Raises:
        FileProblem: naming the file, the limb and the entry, for a file that
            cannot be read or does not say what it must.
    """
    path = Path(path)
    tree = read_yaml(path)
    if not (isinstance(tree, dict) and isinstance(tree.get("limbs"), list)):
        raise FileProblem(path, "needs a list `limbs`")
    try:
        return check_limbs(
            _limb(node, f"limb {k + 1}") for k, node in enumerate(tree["limbs"])
        )
    except DrakebotsError as error:
        raise FileProblem(path, str(error)) from error


def _limb(node, where: str) -> Limb:
    if not isinstance(node, dict):
        raise InvalidInput(f"{where}: must be a mapping, got {node!r}")
    where = f"limb {node['name']!r}" if "name" in node else where
    known = [field.name for field in fields(Limb)]
    for key in node:
        if key not in known:
            raise UnknownName(f"entry of {where}", key, known)
    for key in ("name", "parent", "length", "stiffness", "mass", "radius"):
        if key not in node:
            raise InvalidInput(f"{where}: lacks {key!r}")
    values = {
        key: _quantity(value, *_QUANTITIES[key], f"{where}: {key}")
        if key in _QUANTITIES
        else value
        for key, value in node.items()
    }
    return Limb(**values)


def _quantity(node, dimension, example: str, where: str):
    if not (isinstance(node, dict) and set(node) >= {"value", "unit"}):
        raise InvalidInput(f"{where} needs {{value: ..., unit: {example}}}")
    factor = si_factor(node["unit"])
    if _dimension(str(node["unit"])) != dimension:
        raise InvalidInput(
            f"{where} cannot be in {node['unit']!r}; use a unit like {example!r}"
        )
    try:
        value = factor * np.array(node["value"], float)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{where}: {node['value']!r} is no number") from error
    return float(value) if value.ndim == 0 else value


def _dimension(unit: str) -> tuple[int, ...] | None:
    total = np.zeros(3, int)
    for index, part in enumerate(unit.split("/")):
        for symbol in re.sub(r"[()]", " ", part).split():
            name, _, power = symbol.partition("^")
            if name not in _DIMENSIONS:
                return None
            sign = 1 if index == 0 else -1
            total += sign * int(power or 1) * np.array(_DIMENSIONS[name])
    return tuple(int(x) for x in total)


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
