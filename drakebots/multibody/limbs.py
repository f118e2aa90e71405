"""Soft limbs of constant curvature: their equations, their file, their coordinates.

A limb of length l that bends by alpha is a chain of N rigid segments of length
l/N and N + 1 revolute joints, of which joint j takes the share w_j of alpha:

    w = [1/(2N), 1/N, ..., 1/N, 1/(2N)],    sum w = 1.

Its end lies on the arc's chord, at (a/2N)/sin(a/2N) times its distance: an
error of second order in 1/N, and its direction is exact. Joints with stiffness
k_j = K/w_j and damping d_j = D/w_j in series make a limb of stiffness K and
damping D in bending that stays an arc under a moment at its end.

Stiffness and actuation are one: each joint has an actuator with a proportional gain
k_j (`PdControllerGains`, implicit under SAP), so that a limb with the desired angle
alpha_d exerts the torque k_j (w_j alpha_d - q_j). Without a desired state Drake leaves
such actuators out, and the limb is limp but damped.

Source: the discretisation is ours; constant curvature as in Schiller, Seibel,
Schlattmann, Front. Robot. AI 7:87 (2020), section 2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydrake.multibody.plant import MultibodyPlant

from drakebots.core.checks import (
    array,
    between,
    interval,
    non_negative,
    positive,
    text,
    whole,
)
from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.core.fields import checked, declared
from drakebots.core.files import TOP, Fields, read_yaml, reading
from drakebots.core.units import quantity
from drakebots.model import actuators_of

MOST_SEGMENTS = 100

_BENT = between(-2 * np.pi, 2 * np.pi, "rad")


@checked("limb {name!r}", eq=False)
class Limb:
    """A soft limb on a link of a robot, along +x of its root when straight.

    Raises:
        InvalidInput: for a value out of range.
    """

    name: Annotated[str, text(r"[\w:]+", "of letters, digits and _")]
    """Name of the limb, its links and joints: letters, digits and _."""
    parent: Annotated[str, text(r"[\w:]+", "of letters, digits and _")]
    """Link that it grows from: one of the robot, or "<limb>_tip"."""
    length: Annotated[float, positive("m")]
    """Length l of its centre line."""
    stiffness: Annotated[float, positive("N m/rad")]
    """Stiffness K of the whole limb in bending."""
    mass: Annotated[float, positive("kg")]
    """Mass of the limb without `tip_mass`."""
    radius: Annotated[float, positive("m")]
    """Radius of its cross section, for its drawing and inertia."""
    p: Annotated[Sequence[float], array((3,), "m")] = (0.0, 0.0, 0.0)
    """Position p_PL of the root on the parent link (3,)."""
    rpy: Annotated[Sequence[float], array((3,), "rad")] = (0.0, 0.0, 0.0)
    """Roll, pitch and yaw of R_PL (3,)."""
    axis: Annotated[Sequence[float], array((3,))] = (0.0, 0.0, 1.0)
    """Axis about which it bends, right-handed, in the root's frame (3,); stored
    perpendicular to x and of unit length."""
    segments: Annotated[int, whole(1, MOST_SEGMENTS)] = 6
    """Number N of segments."""
    damping: Annotated[float, non_negative("N m s/rad")] = 0.0
    """Damping D of the whole limb in bending."""
    range: Annotated[Sequence[float], interval("rad", _BENT)] = (-np.pi, np.pi)
    """Smallest and largest desired bending angle (2,), within -2 pi..2 pi."""
    tip_mass: Annotated[float, non_negative("kg")] = 0.0
    """Mass at its end, e.g. of a foot or a gripper."""
    rgba: Annotated[Sequence[float], array((4,))] = (0.85, 0.55, 0.25, 1.0)
    """Colour of its drawing (4,)."""

    def __post_init__(self):
        who = f"limb {self.name!r}"
        across = self.axis * [0.0, 1.0, 1.0]
        if np.linalg.norm(across) < 1e-6 * max(1.0, np.linalg.norm(self.axis)):
            raise InvalidInput(
                f"{who}: axis {self.axis} lies along the limb; give one across x"
            )
        object.__setattr__(self, "axis", across / np.linalg.norm(across))
        self.axis.setflags(write=False)

    @property
    def weights(self) -> np.ndarray:
        """Shares w of alpha, one for each joint (N + 1,)."""
        w = np.full(self.segments + 1, 1.0 / self.segments)
        w[[0, -1]] /= 2
        return w

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the joints and actuators from the root on, N + 1 of them."""
        return tuple(f"{self.name}_bend_{j}" for j in range(self.segments + 1))

    @property
    def links(self) -> tuple[str, ...]:
        """Names of the links from the root on: N segments and the tip."""
        return (*(f"{self.name}_{k}" for k in range(self.segments)), self.tip)

    @property
    def tip(self) -> str:
        """The link at its end: its origin is the end, x goes on outward."""
        return f"{self.name}_tip"

    @property
    def root(self) -> str:
        """The flange that is welded to the parent."""
        return f"{self.name}_root"

    def end(self, alpha: float) -> np.ndarray:
        """Position of the chain's end in the root's bending plane (2,) [m].

        Along x, and in the direction in which a positive angle bends.
        """
        turn = np.cumsum(self.weights)[:-1] * alpha
        step = self.length / self.segments
        return step * np.array([np.cos(turn).sum(), np.sin(turn).sum()])


def check_limbs(limbs: Iterable[Limb]) -> tuple[Limb, ...]:
    """The limbs as a tuple, if there are any and their names differ.

    Raises:
        InvalidInput: otherwise.
    """
    limbs = tuple(limbs)
    if not limbs:
        raise InvalidInput("limbs: give at least one limb")
    for name, count in Counter(limb.name for limb in limbs).items():
        if count > 1:
            raise InvalidInput(f"two limbs are named {name!r}; rename one")
    return limbs


# --- limbs from a YAML file -------------------------------------------------


def read_limbs(path: str | Path) -> tuple[Limb, ...]:
    """The limbs of a YAML file, whose entries are the fields of :class:`Limb`.

        limbs:
        - name: tail
          parent: chassis
          length: {value: 100, unit: mm}
          stiffness: {value: 0.1, unit: N m/rad}
          mass: {value: 40, unit: g}
          radius: {value: 8, unit: mm}
          rpy: {value: [0, 0, 180], unit: deg}      # so p, damping, range, tip_mass
          segments: 6                               # so axis, rgba

    Raises:
        FileProblem: naming the file, the limb and the entry, for a file that
            cannot be read, or an entry that is missing, unknown or wrong.
    """
    path = Path(path)
    with reading(path):
        rows = Fields(read_yaml(path), TOP).items("limbs")
        return check_limbs(_limb(row, f"limb {k}") for k, row in enumerate(rows, 1))


def _limb(node: Any, where: str) -> Limb:
    if isinstance(node, Mapping) and "name" in node:
        where = f"limb {node['name']!r}"
    known = declared(Limb)
    row = Fields(node, where, known)
    for key, entry in known.items():
        if entry.required:
            row.get(key)
    values = row.raw.items()
    measured = {k: known[k].unit for k, _ in values if known[k].unit}
    return Limb(
        **{k: v for k, v in values if k not in measured},
        **{k: quantity(row.get(k), f"{where}: {k}", u) for k, u in measured.items()},
    )


# --- limbs in a plant -------------------------------------------------------


class LimbMap:
    """Converts bending angles of limbs to coordinates of a plant and back.

    Args:
        plant: finalized, with the limbs' joints and actuators in it.
        limbs: limbs of one model instance, in the order of the entries of alpha.

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
        motors = actuators_of(plant, self.instance)
        in_instance = [motor.joint().index() for motor in motors]
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
        """The matrix of x_d = [q_d, 0] = A alpha, (2 num_actuators, L)."""
        return np.vstack([self._shares, np.zeros_like(self._shares)])

    @property
    def sum_matrix(self) -> np.ndarray:
        """The matrix of alpha = S q, (L, nq), of 0 and 1."""
        return self._sum.copy()

    def clip(self, alpha) -> np.ndarray:
        """Angles (..., L) [rad] moved into the limbs' ranges."""
        return np.clip(alpha, self._low, self._high)

    def desired(self, alpha) -> np.ndarray:
        """x_d = [q_d, 0] (2 num_actuators,) for angles (L,) [rad], not clipped.

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

    def joint_angles(self, q) -> np.ndarray:
        """Angles of the joints (..., L, N + 1) [rad] of positions (..., nq), from each
        limb's root on; for limbs of equal numbers of segments."""
        q = np.asarray(q, float)
        return np.stack([q[..., row > 0] for row in self._sum], axis=-2)


def couple_joints(plant: MultibodyPlant, limbs: Sequence[Limb]) -> None:
    """Keeps limbs in the shape of arcs under any load; before Finalize, for SAP.

    Each joint's angle is its share of alpha, by N coupler constraints for each limb.
    Without them a force across its end also bends a limb into an S.
    """
    for limb in check_limbs(limbs):
        joints = [plant.GetJointByName(name) for name in limb.joints]
        pairs = zip(joints[1:], joints, limb.weights[1:] / limb.weights[:-1])
        for joint, before, ratio in pairs:
            plant.AddCouplerConstraint(joint, before, ratio, 0.0)
