"""The equations of a step, eq. (11), and its objective, eqs. (13)-(14).

Both are in the torques and the forces on the patches, w = [tau, f]. The change dq of
the coordinates in the step is affine in them, dq = dq_0 + Q w (:class:`StepMaps`), and
so the objective is quadratic:

    E = a_S |dq - dq-|^2 + a_F |dq - e|^2 + a_O sum_feet |psi+ - n|^2
        + a_tau |tau - tau-|^2 + a_C sum_standing |J_tip dq|^2

dq- and tau- are those of the previous step. e is q_ref - q in velocity coordinates (a
rotation vector for a floating base), or the part of it that :func:`settling_step`
removes in this step. psi+ = psi + J_psi dq is the normal of a sole after the step, n
that of the ground, and J_tip the Jacobian of a foot. Each term is |A w + b|^2.

The paper gives weights without units. In SI they would hardly let torques change: an
error of 1e-3 rad costs 1e-5, the 0.4 N m that correct it in 5 ms cost 0.08. Here angles
are measured in `angle`, lengths in `length` and torques in `torque_unit`. The unit of
torque is large, because a penalty on their changes delays the torques, and a trot on
two feet then falls behind; it is `settling_step` that keeps torques from jumping.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
from pydrake.common.eigen_geometry import Quaternion
from pydrake.math import RollPitchYaw, RotationMatrix
from pydrake.multibody.plant import MultibodyPlant
from pydrake.systems.framework import Context

from drakebots.core.checks import (
    array,
    non_negative,
    optional,
    positive,
)
from drakebots.core.errors import InvalidInput
from drakebots.core.fields import checked
from drakebots.model import joint_slices, joints_of, length_indices
from drakebots.robots.quads.robot import Feet, FeetKinematics
from drakebots.skin.coupled import ReducedSystem, SpringSystem, StepSolution

# --- a step as affine maps of torques and patch forces, eq. (11) -------------
#
# With w = [tau, f], f (P, 3) the forces on the links of the feet,
#
#     A dq = b + B tau + J_c' f      (skin condensed, see skin/coupled/equations.py)
#     dq = dq_0 + Q w
#
# The ground is compliant: a patch under the force f is displaced from its anchor by
#
#     y = p + J_c dq + c f - anchor = y_0 + Y w
#
# with f and y along two tangents of its ground and the normal. A sticking patch has
# y = 0, a sliding one moves its anchor by the tangential y, one in the air has f = 0
# and y_n > 0. c > 0 makes the forces of five patches on one rigid link unique and
# prevents drift.


@dataclass(frozen=True)
class StepMaps:
    """dq and y of a step as affine maps of w = [tau, f].

    Attributes:
        system: the factored system, perhaps with pairs of the skin as springs; its
            solver must not change before `solution` is called.
        torques: number of torques m.
        dq0, Q: change dq0 + Q w of the coordinates (nv,), (nv, m + 3 P) [m, rad].
        p: contact points (P, 3), in the world [m].
        y0, Y: displacement y0 + Y w (3 P,), (3 P, m + 3 P), on the ground's axes [m].
    """

    system: ReducedSystem | SpringSystem
    torques: int
    dq0: np.ndarray
    Q: np.ndarray
    p: np.ndarray
    y0: np.ndarray
    Y: np.ndarray

    def dq(self, w: np.ndarray) -> np.ndarray:
        """dq0 + Q w (nv,) [m, rad]."""
        return self.dq0 + self.Q @ w

    def solution(self, w: np.ndarray) -> StepSolution:
        """The whole solution of the step for w: one back substitution over the skin."""
        return self.system.solution(self.dq(w))


def step_maps(
    system: ReducedSystem | SpringSystem,
    feet: FeetKinematics,
    axes: np.ndarray,
    anchors: np.ndarray,
    compliance: float,
) -> StepMaps:
    """The maps of one factored step: one solve of the small system.

    Args:
        system: the factored system of the step.
        feet: kinematics of the feet at the same q.
        axes: tangents and normal of the ground of each contact, as rows (P, 3, 3).
        anchors: anchors of all contacts on the ground (P, 3), in the world [m].
        compliance: compliance c > 0 of a patch [m/N].
    """
    B, J = system.equations.skeleton.B, on_axes(axes, feet.J)
    m = B.shape[1]
    dq0, Q = system.back(system.right_side()), system.back(np.hstack([B, J.T]))
    y0, Y = on_axes(axes, feet.p - anchors).ravel() + J @ dq0, J @ Q
    Y[:, m:] += compliance * np.eye(len(J))
    return StepMaps(system, m, dq0, Q, feet.p, y0, Y)


def on_axes(axes: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Components along axes (P, 3, 3) of vectors of the world (P, 3), or of P stacked
    Jacobians (3 P, n)."""
    return (axes @ vectors.reshape(len(axes), 3, -1)).reshape(vectors.shape)


# --- the objective ----------------------------------------------------------

TERMS = ("smooth", "follow", "flat", "torque", "stand")


@checked("step weights")
class StepWeights:
    """Weights of eq. (13), by default the paper's, and the units of its terms.

    Raises:
        InvalidInput: for a weight < 0, or torque = 0, or a unit not > 0.
    """

    smooth: Annotated[float, non_negative()] = 1.0
    """Weight alpha_S of changes of the velocity."""
    follow: Annotated[float, non_negative()] = 10.0
    """Weight alpha_F of deviations from the motion."""
    flat: Annotated[float, non_negative()] = 2.0
    """Weight alpha_O of soles that are not parallel to the ground."""
    torque: Annotated[float, positive()] = 0.5
    """Weight alpha_tau of changes of the torques."""
    stand: Annotated[float, non_negative()] = 10.0
    """Weight alpha_C of the motion of standing feet."""
    angle: Annotated[float, positive("rad")] = np.pi / 180
    """Unit in which angles and psi - n are measured."""
    length: Annotated[float, positive("m")] = 0.01
    """Unit in which lengths are measured."""
    torque_unit: Annotated[float, positive("N m")] = 10.0
    """Unit in which torques are measured."""


@checked("step targets")
class StepTargets:
    """Targets of one step's objective.

    Raises:
        InvalidInput: for values that are not finite, and masks of no marks.
    """

    error: Annotated[np.ndarray, array((None,))]
    """Desired dq (nv,) [rad, m], e in eq. (14)."""
    before: Annotated[np.ndarray, array((None,))]
    """dq of the previous step (nv,) [rad, m]."""
    torques: Annotated[np.ndarray | None, optional(array((None,)))]
    """Torques of the previous step (m,) [N m]; None leaves them free except for a tiny
    weight that keeps them bounded."""
    flat: Annotated[np.ndarray, array((None,), of=bool)]
    """Mask of feet whose soles should be parallel to the ground (F,), of bool."""
    standing: Annotated[np.ndarray, array((None,), of=bool)]
    """Mask of feet that stand during the step (F,), of bool."""
    normals: Annotated[np.ndarray | None, optional(array((None, 3)))] = None
    """Normals of the ground under the feet (F, 3); level by default."""


@dataclass(frozen=True)
class Quadratic:
    """E = 1/2 w'H w + g'w + c, the sum of terms |A w + b|^2.

    Attributes:
        terms: A (r, n) and b (r,) of each term by name, including the root of its
            weight.
    """

    terms: dict[str, tuple[np.ndarray, np.ndarray]]

    @cached_property
    def H(self) -> np.ndarray:
        """Hessian (n, n)."""
        return sum(2 * A.T @ A for A, _ in self.terms.values())

    @cached_property
    def g(self) -> np.ndarray:
        """Gradient at 0 (n,)."""
        return sum(2 * A.T @ b for A, b in self.terms.values())

    @cached_property
    def c(self) -> float:
        """Value at 0."""
        return sum(float(b @ b) for _, b in self.terms.values())

    def __call__(self, w: np.ndarray) -> float:
        """E at w."""
        return sum(self.by_term(w).values())

    def by_term(self, w: np.ndarray) -> dict[str, float]:
        """Weighted terms at w."""
        return {k: float(np.sum((A @ w + b) ** 2)) for k, (A, b) in self.terms.items()}


def coordinate_units(plant: MultibodyPlant, angle: float, length: float) -> np.ndarray:
    """Unit in which each coordinate is measured (nv,) [rad, m]."""
    units = np.full(plant.num_velocities(), float(angle))
    for joint in joints_of(plant):
        own = units[joint_slices(joint)[1]]  # seen, not copied
        own[length_indices(joint, of_velocities=True)] = length
    return units


def position_error(
    plant: MultibodyPlant, context: Context, q_ref: np.ndarray
) -> np.ndarray:
    """Displacement (nv,) from the context's q to q_ref (nq,) [rad, m].

    The orientation of a floating base differs by the rotation vector of R_ref R', in
    the world.
    """
    q = plant.GetPositions(context)
    step = np.asarray(q_ref, float) - q
    e = plant.MapQDotToVelocity(context, step)
    for joint in joints_of(plant):
        if "floating" not in joint.type_name():
            continue
        at, start = joint.position_start(), joint.velocity_start()
        turn, here = (_rotation(joint, x[at:]) for x in (q_ref, q))
        axis_angle = RotationMatrix(turn.matrix() @ here.matrix().T).ToAngleAxis()
        e[start : start + 3] = axis_angle.angle() * axis_angle.axis()
        place = at + joint.num_positions() - 3
        e[start + 3 : start + 6] = step[place : place + 3]
    return e


def settling_step(
    error: np.ndarray,
    deviation: np.ndarray,
    before: np.ndarray | None,
    dt: float,
    settling: float,
) -> np.ndarray:
    """The dq (nv,) with which a deviation from the motion decays, critically damped.

    Let d be the deviation from the motion now, d- that of one step earlier and d+ the
    desired one after the step:

        d+ = 2 p d - p^2 d-,  p = exp(-dt/settling),  dq = e - d+

    This recurrence has a double root at p. p = 0 is eq. (14), which removes all of e in
    one step: at 5 ms a deviation of 1 mm then causes 0.2 m/s, and torques jump between
    their limits.

    Args:
        error: e, from q to the motion after the step (nv,) [rad, m].
        deviation: d, from q to the motion before the step (nv,) [rad, m].
        before: d of the previous step (nv,); by default as `deviation`.
        dt: length of a step [s].
        settling: time constant [s].
    """
    if settling == 0:
        return error
    p = np.exp(-dt / settling)
    before = deviation if before is None else before
    return error - 2 * p * deviation + p**2 * before


def _rotation(joint, q) -> RotationMatrix:
    """Orientation of a floating base from the joint's part of q."""
    if joint.type_name() == "quaternion_floating":
        return RotationMatrix(Quaternion(q[:4] / np.linalg.norm(q[:4])))
    return RotationMatrix(RollPitchYaw(q[:3]))


def step_objective(
    maps: StepMaps,
    feet: Feet,
    kinematics: FeetKinematics,
    targets: StepTargets,
    weights: StepWeights,
    units: np.ndarray,
) -> Quadratic:
    """The objective of a step.

    Args:
        maps: maps of the step.
        feet, kinematics: the feet and their kinematics.
        targets: targets of the step.
        weights: weights of the terms.
        units: units of the coordinates; see :func:`coordinate_units` (nv,).

    Raises:
        InvalidInput: for targets of another robot.
    """
    n, m = maps.Q.shape[1], maps.torques
    last = np.zeros(m) if targets.torques is None else targets.torques
    sizes = [len(x) for x in (targets.error, targets.before, last, targets.flat)]
    if sizes != [len(maps.dq0), len(maps.dq0), m, len(feet)]:
        raise InvalidInput(f"step objective: targets of sizes {sizes}")
    dq0, Q = maps.dq0, maps.Q
    scale = 1 / units
    rows, held = np.repeat(targets.flat, 3), np.repeat(targets.standing, 3)
    tau = np.eye(m, n) / weights.torque_unit
    trace = 1e-6 if targets.torques is None else 1.0
    up = [0.0, 0.0, 1.0] if targets.normals is None else targets.normals
    off = (kinematics.normal - up).ravel() / weights.angle
    lean = kinematics.J_normal / weights.angle
    step = kinematics.J_tip / weights.length
    parts = {
        "smooth": (weights.smooth, scale[:, None] * Q, scale * (dq0 - targets.before)),
        "follow": (weights.follow, scale[:, None] * Q, scale * (dq0 - targets.error)),
        "flat": (weights.flat, (lean @ Q)[rows], (lean @ dq0 + off)[rows]),
        "torque": (weights.torque * trace, tau, -last / weights.torque_unit),
        "stand": (weights.stand, (step @ Q)[held], (step @ dq0)[held]),
    }
    terms = {
        name: (np.sqrt(weight) * A, np.sqrt(weight) * b)
        for name, (weight, A, b) in parts.items()
    }
    return Quadratic(terms)
