"""The space-time problem of a skinned quad-robot, eq. (9) of the paper.

The knots are `knot_spacing` steps apart (5 of 5 ms: 25 ms), v and a are central
differences over three knots. The program is

    min   alpha_t E_tau + alpha_s E_S + alpha_c E_COM + alpha_e E_EE
          + alpha_f E_F + alpha_o E_O                                  eq. (3)
    s.t.  contact (4), COP (5), periodicity (6), momentum (7), friction (8),
          joint, speed and torque limits

in q, v, a, p (feet), c (COM), F, T, tau at every knot. Every term is the paper's sum
over steps, a knot counting for `knot_spacing` of them; second differences are
smooth_step^2 a, and the lengths of E_COM and E_EE are measured in `Weights.length`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from drakebots.core.checks import (
    check,
    check_types,
    instance,
    non_negative,
    positive,
    whole,
)
from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.core.units import GRAVITY
from drakebots.robots.quads.motion import MotionInput
from drakebots.robots.quads.robot import (
    LinkSkin,
    Quad,
    SkinInfluence,
    coupling_forces,
    frame_inertia,
)


@dataclass(frozen=True)
class Weights:
    """Weights of the objective, eq. (3), by default the paper's.

    Attributes:
        torque: weight alpha_t of the torques.
        smooth: weight alpha_s of second differences of the positions.
        com: weight alpha_c of deviations of the COM.
        feet: weight alpha_e of deviations of the feet.
        follow: weight alpha_f of deviations from the motion to follow, if there is
            one; the alternation raises it by a tenth in each iteration.
        flat: weight alpha_o of soles that are not parallel to the ground.
        reference: weight of joints with a reference in the requested motion.
        posture: small weight of the distance from the poses of inverse kinematics; it
            determines what no other term does.
        force: small weight of (|F|^2 + |T|^2/r^2)/(m g)^2; it makes contact forces
            unique.
        smooth_step: time step of the second differences of E_S [s]. The paper does not
            give the spacing of its knots; a fixed time makes the term independent of
            the knot spacing. At 5 ms it would vanish.
        length: unit of length of E_COM and E_EE [m]. The paper gives none; with 1 m
            its weights let feet deviate by 0.1 m to save torque.

    Raises:
        InvalidInput: for a weight < 0, or a length not > 0.
    """

    torque: float = 1e-2
    smooth: float = 0.5
    com: float = 1.0
    feet: float = 1.0
    follow: float = 1.0
    flat: float = 10.0
    reference: float = 1.0
    posture: float = 1e-3
    force: float = 1e-3
    smooth_step: float = 0.025
    length: float = 0.01

    def __post_init__(self):
        rules = dict.fromkeys(vars(self), non_negative())
        rules |= {"smooth_step": non_negative("s"), "length": positive("m")}
        check(self, "weights", **rules)


@dataclass(frozen=True)
class SpaceTime:
    """A motion to optimize; see the module.

    Attributes:
        quad: the robot.
        motion: the requested motion.
        skin: mass of the skin on the links and its stiffness; None for the bare
            skeleton.
        influence: effect of the deforming skin, from the last step-by-step plan, or
            None.
        follow: motion of that plan in Euler coordinates (N, nv), or None.
        weights: weights of the objective, eq. (3).
        friction: coefficient of friction mu.
        cop_share: share of each sole that its COP may use.
        tip: force below which the friction cone is rounded [m g]; a foot in contact
            carries at least tip/mu.
        knot_spacing: number of time steps from knot to knot.
        flat_frames: number of steps before touch-down and after lift-off in which a
            sole shall be parallel to the ground.
        torque_limits: torque limits of some joints, in place of the model's [N m].

    Raises:
        InvalidInput, UnknownName: for values out of range and unknown names.
    """

    quad: Quad
    motion: MotionInput
    skin: LinkSkin | None = None
    influence: SkinInfluence | None = None
    follow: np.ndarray | None = None
    weights: Weights = field(default_factory=Weights)
    friction: float = 0.8
    cop_share: float = 1.0
    tip: float = 1e-3
    knot_spacing: int = 5
    flat_frames: int = 5
    torque_limits: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self):
        check_types(self, "problem")
        check(self, "", friction=positive(), tip=positive(), knot_spacing=whole(1))
        check(self, "", flat_frames=whole(0), motion=instance(MotionInput))
        if not 0 < self.cop_share <= 1:
            raise InvalidInput(f"cop_share must be in (0, 1], got {self.cop_share}")
        N = len(self.motion)
        if (N - 1) % self.knot_spacing or (N - 1) // self.knot_spacing < 4:
            raise InvalidInput(
                f"{self.motion.name}: {N} steps are not 1 + {self.knot_spacing} k with "
                "k >= 4 knots; change their number or knot_spacing"
            )
        for foot in self.motion.footfall.feet:
            if foot not in self.quad.feet:
                raise UnknownName("foot", foot, self.quad.feet)
        missing = set(self.quad.feet) - set(self.motion.footfall.feet)
        if missing:
            raise InvalidInput(
                f"{self.motion.name}: no path for foot {', '.join(sorted(missing))}"
            )
        for name in self.torque_limits:
            if name not in self.quad.joints:
                raise UnknownName("joint", name, self.quad.joints)
        for name in self.motion.reference:
            if name not in self.quad.coordinates[6:]:
                raise UnknownName("joint", name, self.quad.coordinates[6:])
        if self.follow is not None and np.shape(self.follow) != (N, self.quad.nv):
            raise InvalidInput(
                f"motion to follow: shape {np.shape(self.follow)}, needs "
                f"{(N, self.quad.nv)}"
            )
        if self.influence is not None and len(self.influence.force) != N:
            raise InvalidInput(
                f"influence of the skin: {len(self.influence.force)} steps, the "
                f"motion has {N}"
            )

    @property
    def frames(self) -> np.ndarray:
        """Steps of the motion at which the knots are (K,)."""
        return np.arange(0, len(self.motion), self.knot_spacing)

    @property
    def step(self) -> float:
        """Time between knots [s]."""
        return self.knot_spacing * self.motion.dt

    @cached_property
    def order(self) -> list[int]:
        """Index in the motion of each of the robot's feet."""
        return [self.motion.footfall.feet.index(name) for name in self.quad.feet]

    @cached_property
    def contact(self) -> np.ndarray:
        """Contact by the footfall pattern at the knots (K, feet)."""
        return self.motion.footfall.at(self.frames)[:, self.order]

    @cached_property
    def loaded(self) -> np.ndarray:
        """Which feet may bear load at the knots (K, feet).

        Loads are linear between knots. If a foot bore load at the knot at which it
        lands or leaves, it would do so at steps at which it is in the air, and the COP
        would leave the standing feet. So a foot bears load only if it is on the ground
        from half an interval before the knot to half an interval after it. If no foot
        is, all feet on the ground bear load.
        """
        half = self.knot_spacing // 2
        mode = "wrap" if self.motion.period == "cycle" else "edge"
        contact = self.motion.footfall.contact[:, self.order]
        # The last step of a cycle is its first.
        one = contact[:-1] if mode == "wrap" else contact
        padded = np.pad(one, ((half, half + len(contact) - len(one)), (0, 0)), mode)
        around = np.lib.stride_tricks.sliding_window_view(padded, 2 * half + 1, axis=0)
        steady = around.all(axis=-1)[self.frames]
        return np.where(steady.any(axis=1, keepdims=True), steady, self.contact)

    @cached_property
    def desired_feet(self) -> np.ndarray:
        """Requested positions of the feet at the knots (K, feet, 3) [m]."""
        return self.motion.feet[self.frames][:, self.order]

    @cached_property
    def inertia(self) -> np.ndarray:
        """Inertias of the links with skin at the knots (K, links, 10)."""
        return frame_inertia(self.quad, self.skin, self.influence, self.frames)

    @cached_property
    def delta(self) -> np.ndarray:
        """Constant part of :func:`coupling_forces` at the knots (K, nv)."""
        return coupling_forces(self.quad, self.skin, self.influence, self.frames)

    def skin_forces(self, q: np.ndarray, frames: np.ndarray) -> np.ndarray:
        """Generalized forces of the skin (n, nv) at poses q (n, nv) at some steps."""
        out = coupling_forces(self.quad, self.skin, self.influence, frames)
        if self.skin is not None:
            out[:, 6:] += self.skin.elastic(q[:, 6:])
        return out

    @property
    def mass(self) -> float:
        """Mass of skeleton and skin [kg]."""
        return float(self.inertia[0, :, 0].sum())

    @property
    def weight(self) -> float:
        """Weight m g [N]."""
        return self.mass * GRAVITY

    @cached_property
    def limits(self) -> np.ndarray:
        """Torque limits of the actuators (m,) [N m]."""
        limits = self.quad.torque_limits.copy()
        for name, value in self.torque_limits.items():
            limits[self.quad.joints.index(name)] = value
        return limits


def widened(problem: SpaceTime, q: np.ndarray) -> np.ndarray:
    """Positions at the knots and one more at each end (K + 2, nv).

    They are those of the neighbouring cycles, or mirrored for a motion that starts and
    ends at rest.
    """
    if problem.motion.period != "cycle":
        return np.vstack([q[1], q, q[-2]])
    c, s = np.cos(problem.motion.turn), np.sin(problem.motion.turn)
    R = np.eye(q.shape[1])
    R[:2, :2] = [[c, -s], [s, c]]
    before = q[0] + R.T @ (q[-2] - q[-1])
    return np.vstack([before, q, q[-1] + R @ (q[1] - q[0])])
