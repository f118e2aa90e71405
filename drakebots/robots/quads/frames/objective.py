"""The objective of a frame, eqs. (13)-(14), quadratic in torques and patch forces.

    E = a_S |dq - dq-|^2 + a_F |dq - e|^2 + a_O sum_feet |psi+ - n|^2
        + a_tau |tau - tau-|^2 + a_C sum_standing |J_tip dq|^2

e = q_ref - q in velocity coordinates (a rotation vector for a floating base), or what
`settling_step` leaves of it, psi+ = psi + J_psi dq the sole's direction. Each term is
|A w + b|^2 with dq = dq_0 + Q w.

The paper gives weights without units. In SI they let torques hardly change: 1e-3 rad
of error is worth 1e-5, the 0.4 N m that mend it in 5 ms cost 0.08. Here angles count
in `angle`, lengths in `length` and torques in `torque_unit`. The last is large: a
torque held back is a torque that comes late, and a trot on two feet then falls
behind. What keeps torques from jumping is `settling_step`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from pydrake.common.eigen_geometry import Quaternion
from pydrake.math import RollPitchYaw, RotationMatrix
from pydrake.multibody.plant import MultibodyPlant
from pydrake.systems.framework import Context

from drakebots.core.errors import InvalidInput
from drakebots.robots.quads.robot import Feet, FeetFrame
from drakebots.skin.frame import FrameSolution, ReducedSystem

# A frame as affine maps of torques and patch forces, eq. (11).
#
# With w = [tau, f], f (P, 3) forces on the feet's links,
#
#     A dq = b + B tau + J_c' f      (skin condensed, see skin/coupled.py)
#     dq = dq_0 + Q w
#
# and the ground is soft: a patch under force f stands at an anchor shifted by c f,
#
#     y = p + J_c dq + c f - anchor = y_0 + Y w
#
# For a patch that holds y = 0, one that slides moves its anchor by the tangential y,
# one in the air has f = 0 and y_n > 0. c > 0 makes forces of five patches on one rigid
# link unique and leaves nothing to drift. Contacts at vertices of the skin (kept by the
# solver) follow those of the links in f.

COMPLIANCE = 1e-6
"""Of a patch [m/N]: 20 patches under 40 N sink by 2 um."""


@dataclass(frozen=True)
class FrameMaps:
    """dq and y of a frame.

    Attributes:
        system: where they come from; its solver must stay as it is until
            `solution` is called.
        torques: m.
        z0, Z: the small system's unknowns [dq, skin contacts].
        p: contact points, links' first, then the skin's (P, 3) [m].
        y0, Y: (3 P,), (3 P, m + 3 P) [m].
        compliance: c [m/N].
    """

    system: ReducedSystem
    torques: int
    z0: np.ndarray
    Z: np.ndarray
    p: np.ndarray
    y0: np.ndarray
    Y: np.ndarray
    compliance: float

    @property
    def dq0(self) -> np.ndarray:
        """(nv,) [m, rad]."""
        return self.z0[: self.system.nv]

    @property
    def Q(self) -> np.ndarray:
        """(nv, m + 3 P)."""
        return self.Z[: self.system.nv]

    @property
    def contacts(self) -> int:
        """P."""
        return len(self.p)

    def solution(self, w: np.ndarray) -> FrameSolution:
        """The whole frame for w: one backward sweep over the skin."""
        u_k = self.system.kept(self.z0 + self.Z @ w)
        nv = self.system.nv
        return FrameSolution(
            (self.z0 + self.Z @ w)[:nv],
            self.system.displacement(u_k).reshape(-1, 3),
            self.system.glue_forces(u_k).reshape(-1, 3),
        )


def frame_maps(
    system: ReducedSystem,
    feet: FeetFrame,
    anchors: np.ndarray,
    *,
    skin_contacts: np.ndarray | None = None,
    compliance: float = COMPLIANCE,
) -> FrameMaps:
    """The maps of one factored frame: one solve of the small system.

    Args:
        system: factored.
        feet: at the same q.
        anchors: on the ground, of every contact (P, 3) [m].
        skin_contacts: where the solver's contact vertices are (s, 3) [m].
        compliance: c > 0 [m/N].

    Raises:
        InvalidInput: for a compliance not > 0, or shapes that do not fit.
    """
    if not (np.isfinite(compliance) and compliance > 0):
        raise InvalidInput(f"contact compliance = {compliance} m/N must be > 0")
    p = feet.p
    if system.contacts:
        skin = np.zeros((0, 3)) if skin_contacts is None else skin_contacts
        if np.shape(skin) != (system.contacts // 3, 3):
            raise InvalidInput(
                f"skin contacts: positions {np.shape(skin)}, needs "
                f"({system.contacts // 3}, 3)"
            )
        p = np.concatenate([p, skin])
    anchors = np.asarray(anchors, float)
    if anchors.shape != p.shape:
        raise InvalidInput(f"anchors: shape {anchors.shape}, needs {p.shape}")
    B, J = system.frame.skeleton.B, feet.J
    (nv, m), c, k = B.shape, system.contacts, len(J)
    W = np.zeros((nv + c, m + k + c))
    W[:nv, :m], W[:nv, m : m + k], W[nv:, m + k :] = B, J.T, np.eye(c)
    z0, Z = system.back(system.right_side()), system.back(W)
    y0 = (p - anchors).ravel() + np.concatenate([J @ z0[:nv], z0[nv:]])
    Y = np.concatenate([J @ Z[:nv], Z[nv:]])
    Y[:, m:] += compliance * np.eye(k + c)
    return FrameMaps(system, m, z0, Z, p, y0, Y, compliance)


TERMS = ("smooth", "follow", "flat", "torque", "stand")


@dataclass(frozen=True)
class FrameWeights:
    """Weights of eq. (13), the paper's, and the units its terms are taken in.

    Attributes:
        smooth, follow, flat, torque, stand: alpha_S, _F, _O, _tau, _C.
        angle: unit of angles, and of psi - n [rad].
        length: unit of lengths [m].
        torque_unit: of torques [N m].

    Raises:
        InvalidInput: for a weight < 0, or torque = 0, or a unit not > 0.
    """

    smooth: float = 1.0
    follow: float = 10.0
    flat: float = 2.0
    torque: float = 0.5
    stand: float = 10.0
    angle: float = np.pi / 180
    length: float = 0.01
    torque_unit: float = 10.0

    def __post_init__(self):
        for field in fields(self):
            value = getattr(self, field.name)
            free = field.name in ("smooth", "follow", "flat", "stand")
            if not (np.isfinite(value) and (value > 0 or (free and value == 0))):
                raise InvalidInput(
                    f"frame weight {field.name} = {value}: must be finite and "
                    f"{'>= 0' if free else '> 0'}"
                )


@dataclass(frozen=True)
class FrameTargets:
    """What a frame is compared with.

    Attributes:
        error: e (nv,) [rad, m].
        before: dq of the frame before (nv,) [rad, m].
        torques: of the frame before (m,) [N m]; None leaves them free, but for a
            trace of the term that keeps them bounded.
        flat: feet whose soles shall face the ground (F,).
        standing: feet that bear the robot (F,).
    """

    error: np.ndarray
    before: np.ndarray
    torques: np.ndarray | None
    flat: np.ndarray
    standing: np.ndarray


@dataclass(frozen=True)
class Quadratic:
    """E = 1/2 w'H w + g'w + c, and its terms |A w + b|^2 by name.

    Attributes:
        H, g, c: (n, n), (n,), a number.
        terms: A (r, n) and b (r,), the weight's root included.
    """

    H: np.ndarray
    g: np.ndarray
    c: float
    terms: dict[str, tuple[np.ndarray, np.ndarray]]

    def __call__(self, w: np.ndarray) -> float:
        """E at w."""
        return sum(self.by_term(w).values())

    def by_term(self, w: np.ndarray) -> dict[str, float]:
        """Weighted terms at w."""
        return {
            name: float(np.sum((A @ w + b) ** 2)) for name, (A, b) in self.terms.items()
        }


def coordinate_units(plant: MultibodyPlant, angle: float, length: float) -> np.ndarray:
    """The unit of each velocity's coordinate (nv,) [rad, m].

    Raises:
        InvalidInput: for a joint whose coordinates are not known to be either.
    """
    units = np.empty(plant.num_velocities())
    kinds = {
        "revolute": [angle],
        "prismatic": [length],
        "quaternion_floating": [angle] * 3 + [length] * 3,
        "rpy_floating": [angle] * 3 + [length] * 3,
        "ball_rpy": [angle] * 3,
        "universal": [angle] * 2,
        "planar": [length, length, angle],
    }
    for index in plant.GetJointIndices():
        joint = plant.get_joint(index)
        start, n = joint.velocity_start(), joint.num_velocities()
        if n and joint.type_name() not in kinds:
            raise InvalidInput(
                f"joint {joint.name()!r}: {joint.type_name()} joints are not known to "
                "the frame objective; use revolute or prismatic ones"
            )
        if n:
            units[start : start + n] = kinds[joint.type_name()]
    return units


def position_error(
    plant: MultibodyPlant, context: Context, q_ref: np.ndarray
) -> np.ndarray:
    """e (nv,) that takes the context's q to q_ref (nq,) [rad, m].

    A floating base by the rotation vector of R_ref R', in the world.
    """
    q = plant.GetPositions(context)
    step = np.asarray(q_ref, float) - q
    e = plant.MapQDotToVelocity(context, step)
    for index in plant.GetJointIndices():
        joint = plant.get_joint(index)
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
    away: np.ndarray,
    before: np.ndarray | None,
    dt: float,
    settling: float,
) -> np.ndarray:
    """The dq (nv,) by which a deviation from a motion dies away, critically damped.

    With d the deviation from the motion at its own time, the next frame's is to be

        d+ = 2 p d - p^2 d-,  p = exp(-dt/settling),  dq = e - d+

    a double root at p; p = 0 is eq. (14), which asks all of e of one frame. With
    steps of 5 ms that answers 1 mm with 0.2 m/s, and torques jump between limits.

    Args:
        error: e, to where the motion is after the frame (nv,) [rad, m].
        away: d, to where it is before it (nv,) [rad, m].
        before: d of the frame before (nv,); as `away` by default.
        dt, settling: [s].
    """
    if settling == 0:
        return error
    p = np.exp(-dt / settling)
    return error - 2 * p * away + p**2 * (away if before is None else before)


def _rotation(joint, q):
    if joint.type_name() == "quaternion_floating":
        return RotationMatrix(Quaternion(q[:4] / np.linalg.norm(q[:4])))
    return RotationMatrix(RollPitchYaw(q[:3]))


def frame_objective(
    maps: FrameMaps,
    feet: Feet,
    frame: FeetFrame,
    targets: FrameTargets,
    weights: FrameWeights,
    units: np.ndarray,
) -> Quadratic:
    """E of a frame.

    Args:
        maps: of the frame.
        feet, frame: the feet, and where they are.
        targets: of the frame.
        weights: of the terms.
        units: of the coordinates; see :func:`coordinate_units` (nv,).

    Raises:
        InvalidInput: for targets of another shape or not finite.
    """
    n, m = maps.Q.shape[1], maps.torques
    nv, count = len(maps.dq0), len(feet)
    last = np.zeros(m) if targets.torques is None else targets.torques
    for name, value, size in (
        ("error", targets.error, nv),
        ("motion of the frame before", targets.before, nv),
        ("torques of the frame before", last, m),
        ("flat feet", targets.flat, count),
        ("standing feet", targets.standing, count),
    ):
        if np.shape(value) != (size,) or not np.isfinite(value).all():
            raise InvalidInput(f"frame objective: {name} need {size} finite numbers")
    dq0, Q = maps.dq0, maps.Q
    scale = 1 / units
    rows = np.repeat(np.asarray(targets.flat, bool), 3)
    held = np.repeat(np.asarray(targets.standing, bool), 3)
    tau = np.eye(m, n) / weights.torque_unit
    trace = 1e-6 if targets.torques is None else 1.0
    off = (frame.normal - [0.0, 0.0, 1.0]).ravel()
    lean = frame.J_normal / weights.angle
    step = frame.J_tip / weights.length
    parts = {
        "smooth": (weights.smooth, scale[:, None] * Q, scale * (dq0 - targets.before)),
        "follow": (weights.follow, scale[:, None] * Q, scale * (dq0 - targets.error)),
        "flat": (
            weights.flat,
            (lean @ Q)[rows],
            (lean @ dq0 + off / weights.angle)[rows],
        ),
        "torque": (weights.torque * trace, tau, -last / weights.torque_unit),
        "stand": (weights.stand, (step @ Q)[held], (step @ dq0)[held]),
    }
    terms = {
        name: (np.sqrt(weight) * A, np.sqrt(weight) * b)
        for name, (weight, A, b) in parts.items()
    }
    H, g, c = np.zeros((n, n)), np.zeros(n), 0.0
    for A, b in terms.values():
        H += 2 * A.T @ A
        g += 2 * A.T @ b
        c += float(b @ b)
    return Quadratic(H, g, c, terms)
