"""A driven skeleton: what the steppers of full and reduced skins share.

The plant in a context, the joints that torques act on, their limits, the patches under
its links; and, a frame, the laws these bring and how the small system is solved with
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pydrake.multibody.plant import MultibodyPlant
from pydrake.systems.framework import Context

from drakebots.core.errors import InvalidInput
from drakebots.model import find_body
from drakebots.skin.file import Patches
from drakebots.skin.frame.contact import PatchContact, PatchLaw, find_friction
from drakebots.skin.frame.coupled import as_vector
from drakebots.skin.frame.laws import Law, SmallFrame, minimise
from drakebots.skin.frame.skeleton import Servo, torque_map

# Joint servos whose torque saturates, implicit in the frame.


@dataclass(frozen=True)
class ServoLaw(Law):
    """tau = clip(a - g y, -limit, limit), y the joints' change over the frame.

    a = k (q_d - q) + d v_d + tau_0 and g = k + d/dt: the servo's torque at the end
    of the frame, a given torque tau_0 beside it, both within the limit.

    Attributes:
        rows: B' (m, nv).
        constant: a (m,) [N m].
        gain: g (m,) [N m/rad].
        limit: (m,) [N m]; inf without.
    """

    rows: np.ndarray
    constant: np.ndarray
    gain: np.ndarray
    limit: np.ndarray

    def _wish(self, y):
        return self.constant - self.gain * y

    def force(self, y: np.ndarray) -> np.ndarray:
        """Torques (m,) [N m]."""
        return np.clip(self._wish(y), -self.limit, self.limit)

    def energy(self, y: np.ndarray) -> float:
        """Quadratic within the limits, linear beyond [J]."""
        wish, force = self._wish(y), self.force(y)
        free = self.gain == 0
        gain = np.where(free, 1.0, self.gain)
        spring = force * (wish - force / 2) / gain
        return float(np.where(free, -force * y, spring).sum())

    def stiffness(self, y: np.ndarray) -> np.ndarray:
        """g where the limit is not reached (m, m)."""
        return np.diag(np.where(np.abs(self._wish(y)) < self.limit, self.gain, 0.0))


def servo_law(
    B: np.ndarray,
    servo: Servo,
    q: np.ndarray,
    dt: float,
    limit: np.ndarray,
    torques: np.ndarray | None = None,
) -> ServoLaw:
    """The law of a servo.

    Args:
        B: torques to generalized forces (nv, m).
        servo: gains and targets.
        q: joint positions at the frame's start (m,) [rad].
        dt: [s].
        limit: largest torque (m,) [N m].
        torques: beside the servo's, within the same limit (m,) [N m].

    Raises:
        InvalidInput: for sizes that do not fit.
    """
    m = B.shape[1]
    if len(servo.position) != m:
        raise InvalidInput(f"servo: {len(servo.position)} targets for {m} torques")
    a = servo.stiffness * (servo.position - q) + servo.damping * servo.velocity
    if torques is not None:
        a = a + torques
    return ServoLaw(B.T, a, servo.stiffness + servo.damping / dt, limit)


def check_limits(limits: np.ndarray, torques: int) -> np.ndarray:
    """Effort limits (m,), inf for none.

    Raises:
        InvalidInput: for another shape, or a limit that is not >= 0.
    """
    try:
        limits = np.broadcast_to(np.asarray(limits, float), (torques,))
    except ValueError as error:
        raise InvalidInput(f"effort limits: needs {torques}, one a torque") from error
    if not (limits >= 0).all():
        raise InvalidInput(f"effort limits {limits.tolist()}: must be >= 0 N m")
    return limits


@dataclass(frozen=True)
class Drive:
    """What moves the joints in one frame, and what their links stand on.

    Attributes:
        servo: torque of servos and given ones as one law, without limits where the
            frame's matrix holds the servos; None without either.
        implicit: whether `servo` is still to be solved for.
        torques: given (m,) [N m].
        patch: the ground under contact points, or None.
        dt: [s].
    """

    servo: ServoLaw | None
    implicit: bool
    torques: np.ndarray
    patch: PatchLaw | None
    dt: float

    @property
    def laws(self) -> list[Law]:
        """To solve for beside the ground."""
        return [self.servo] if self.implicit else []

    def right_side(self, system: SmallFrame, forces=None) -> np.ndarray:
        """r of a frame, torques in it that are in no law (nv + 3 p,)."""
        return system.right_side(None if self.implicit else self.torques, forces)

    def solve(
        self,
        system: SmallFrame,
        r: np.ndarray,
        z: np.ndarray | None = None,
        ground: PatchLaw | None = None,
    ) -> tuple[np.ndarray, PatchLaw | None]:
        """z of the small system, and the patches with their friction.

        Args:
            system: of the frame.
            r: its right-hand side.
            z: to start from; R^-1 r by default.
            ground: patches whose friction is known; else it is searched for.

        Raises:
            NoSolution: as :func:`~drakebots.skin.frame.laws.minimise`.
        """
        if self.patch is not None and ground is None:
            return find_friction(system, self.laws, self.patch, r, self.dt, z)
        laws = self.laws if ground is None else [*self.laws, ground]
        # Without laws this is the solution already.
        z = z if laws and z is not None else system.back(r)
        return minimise(system, laws, r, z), ground

    def applied(self, B: np.ndarray, dq: np.ndarray) -> np.ndarray:
        """Torques of servos and given, within the limits (m,) [N m]."""
        return self.torques if self.servo is None else self.servo.force(B.T @ dq)


def feet(ground: PatchLaw | None, dq: np.ndarray) -> np.ndarray:
    """Forces of the ground on the links at the patches (k, 3) [N]."""
    return np.zeros((0, 3)) if ground is None else ground.on_links(dq)


class DrivenSkeleton:
    """A skeleton with torques on its joints.

    Args:
        plant: finalized, in SI, a tree.
        dt: [s].
        context: of the plant, for parameters and, in a diagram, its ports. Its q and v
            are overwritten; those it has now are home.
        joints: that torques act on; see
        :func:`~drakebots.skin.frame.skeleton.torque_map`.
        effort_limits: largest torques (m,) [N m], of servos and given together;
            none by default.
        patches, patch_contact: contact points of links, and the ground under them.

    Raises:
        InvalidInput, UnknownName: for what cannot be.
    """

    def __init__(
        self,
        plant: MultibodyPlant,
        dt: float,
        context: Context,
        *,
        joints: Sequence[str] | None = None,
        effort_limits: np.ndarray | None = None,
        patches: Sequence[Patches] = (),
        patch_contact: PatchContact | None = None,
    ):
        if not (np.isfinite(dt) and dt > 0):
            raise InvalidInput(f"time step dt = {dt} s must be > 0; the paper's: 0.005")
        self._at = torque_map(plant, joints)[1]
        if effort_limits is not None:
            effort_limits = check_limits(effort_limits, len(self._at))
        self.effort_limits = effort_limits
        self.patches, self.patch_contact = tuple(patches), patch_contact
        for patch in self.patches:
            find_body(plant, patch.body)
        # pydrake keeps the root of a diagram alive as long as its plant's context.
        self.plant, self.context, self.dt = plant, context, float(dt)
        self.joints = joints
        self.gravity = plant.gravity_field().gravity_vector()
        self.home = (
            plant.GetPositions(context).copy(),
            plant.GetVelocities(context).copy(),
        )

    @property
    def actuated(self) -> np.ndarray:
        """The position each torque acts on (m,)."""
        return self._at

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Joints that torques act on, in their order."""
        plant, start = self.plant, {}
        for index in plant.GetJointIndices():
            joint = plant.get_joint(index)
            if joint.num_positions():
                start[joint.position_start()] = joint.name()
        return tuple(start[k] for k in self._at.tolist())

    def pose(self, q: np.ndarray, v: np.ndarray) -> None:
        """Puts the plant's context at q, v; InvalidInput where they do not fit."""
        plant = self.plant
        for name, value, size, put in (
            ("q", q, plant.num_positions(), plant.SetPositions),
            ("v", v, plant.num_velocities(), plant.SetVelocities),
        ):
            value = np.asarray(value, float)
            if value.shape != (size,) or not np.isfinite(value).all():
                raise InvalidInput(
                    f"skeleton's {name}: needs {size} finite numbers, got "
                    f"{value.tolist()}"
                )
            put(self.context, value)

    def in_matrix(self, servo: Servo | None) -> Servo | None:
        """The servos that enter the frame's matrix: those without limits."""
        return servo if self.effort_limits is None else None

    def drive(
        self, q: np.ndarray, B: np.ndarray, torques: np.ndarray, servo: Servo | None
    ) -> Drive:
        """What drives a frame from the context's pose, as the frame left it.

        Args:
            q: positions of the plant (nq,).
            B: torques to generalized forces (nv, m).
            torques: given (m,) [N m].
            servo: implicit, one a torque.
        """
        q, limit, law = q[self._at], self.effort_limits, None
        limited = limit is not None
        if limited or servo is not None:
            none = np.zeros(len(q))
            servo = Servo(none, none, q) if servo is None else servo
            limit = limit if limited else np.full(len(q), np.inf)
            law = servo_law(B, servo, q, self.dt, limit, torques)
        patch = None
        if self.patch_contact is not None and self.patches:
            patch = self.patch_contact.law(
                self.plant, self.context, self.patches, self.dt
            )
        return Drive(law, limited, torques, patch, self.dt)

    def given_torques(self, torques) -> np.ndarray:
        """torques as (m,), zeros for None; InvalidInput when they do not fit."""
        return as_vector("torques", torques, len(self._at))
