"""Space-time optimization of a skinned quad-robot: paper, section 5.1, eq. (9).

Over knots every `stride` frames (5 of 5 ms: 25 ms), with central differences over
three knots for v and a, the program is

    min   alpha_t E_tau + alpha_s E_S + alpha_c E_COM + alpha_e E_EE
          + alpha_f E_F + alpha_o E_O                                  eq. (3)
    s.t.  contact (4), COP (5), periodicity (6), momentum (7), friction (8),
          joint, speed and torque limits

in q, v, a, p (feet), c (COM), F, T, tau of every knot. Every term is the paper's
sum over frames, a knot standing for `stride` of them; second differences are
smooth_step^2 a, and lengths of E_COM and E_EE count in `Weights.length`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.robots.quads.motion import GRAVITY, MotionInput
from drakebots.robots.quads.robot import (
    LinkSkin,
    Quad,
    SkinInfluence,
    coupling_forces,
    frame_inertia,
)
from drakebots.trajopt.program import Program


@dataclass(frozen=True)
class Weights:
    """Of eq. (3), the paper's by default.

    Attributes:
        torque, smooth, com, feet, follow, flat: alpha_t, alpha_s, alpha_c,
            alpha_e, alpha_f, alpha_o. alpha_f counts once there is a motion to
            follow, and the alternation raises it by a tenth an iteration.
        reference: of joints with a reference in the input, as alpha_f.
        posture: of the distance to the poses of inverse kinematics; it decides
            what nothing else does.
        force: of (|F|^2 + |T|^2/r^2)/(m g)^2; it decides between contact forces
            that do the same.
        smooth_step: over which E_S takes second differences [s]: the paper does not
            say which frames it optimizes; a fixed one makes the term the same
            for any stride, and 5 ms makes it vanish.
        length: in which E_COM and E_EE measure [m]. The paper does not say; with
            1 m its weights let feet stray by a hand's breadth to save torque.
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
        for name, value in vars(self).items():
            if not (np.isfinite(value) and value >= 0):
                raise InvalidInput(f"weight {name} = {value} must be >= 0")
        if self.length == 0:
            raise InvalidInput("weight length must be > 0 m, e.g. 0.01")


@dataclass(frozen=True)
class SpaceTime:
    """A motion to optimize; see the module.

    Attributes:
        quad: the robot.
        motion: what the user asks.
        skin: weight on the links; None for the bare skeleton.
        influence: of the skin at the last frame-by-frame pass, or None.
        follow: the motion that pass came to (N, nv), Euler coordinates, or None.
        weights: of eq. (3).
        friction: mu.
        cop_share: of each sole that the COP may use.
        tip: force below which the friction cone is rounded [m g]: a foot in
            contact carries at least tip/mu.
        stride: frames from knot to knot.
        flat_frames: before landing and after leaving in which a foot is to be flat.
        torque_limits: by joint, over the model's [N m].

    Raises:
        InvalidInput, UnknownName: for values and names that cannot be.
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
    stride: int = 5
    flat_frames: int = 5
    torque_limits: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self):
        for what, value in (("friction", self.friction), ("tip", self.tip)):
            if not (np.isfinite(value) and value > 0):
                raise InvalidInput(f"{what} = {value} must be > 0")
        if not 0 < self.cop_share <= 1:
            raise InvalidInput(f"cop_share = {self.cop_share} must be in (0, 1]")
        N = len(self.motion)
        if int(self.stride) != self.stride or self.stride < 1:
            raise InvalidInput(f"stride = {self.stride} must be a whole number >= 1")
        if (N - 1) % self.stride or (N - 1) // self.stride < 4:
            raise InvalidInput(
                f"{self.motion.name}: {N} frames are not 1 + {self.stride} k with "
                f"k >= 4 knots; change their number or the stride"
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
                f"influence of the skin: {len(self.influence.force)} frames, the "
                f"motion has {N}"
            )

    @property
    def frames(self) -> np.ndarray:
        """Of the knots (K,)."""
        return np.arange(0, len(self.motion), self.stride)

    @property
    def step(self) -> float:
        """Between knots [s]."""
        return self.stride * self.motion.dt

    @cached_property
    def order(self) -> list[int]:
        """Columns of the motion's feet in the robot's order."""
        return [self.motion.footfall.feet.index(name) for name in self.quad.feet]

    @cached_property
    def contact(self) -> np.ndarray:
        """At the knots (K, feet)."""
        return self.motion.footfall.at(self.frames)[:, self.order]

    @cached_property
    def loaded(self) -> np.ndarray:
        """Feet that bear load at the knots (K, feet).

        Loads go straight from knot to knot: a foot that lands or leaves at a knot
        would bear load in frames in which it is in the air, and the COP leave the
        feet that stand. So these are on the ground from half an interval before a
        knot to half of one after it; where none is, those on the ground.
        """
        half = self.stride // 2
        mode = "wrap" if self.motion.period == "cycle" else "edge"
        contact = self.motion.footfall.contact[:, self.order]
        # A cycle's last frame is its first.
        one = contact[:-1] if mode == "wrap" else contact
        padded = np.pad(one, ((half, half + len(contact) - len(one)), (0, 0)), mode)
        around = np.lib.stride_tricks.sliding_window_view(padded, 2 * half + 1, axis=0)
        steady = around.all(axis=-1)[self.frames]
        return np.where(steady.any(axis=1, keepdims=True), steady, self.contact)

    @cached_property
    def desired_feet(self) -> np.ndarray:
        """e at the knots (K, feet, 3) [m]."""
        return self.motion.feet[self.frames][:, self.order]

    @cached_property
    def inertia(self) -> np.ndarray:
        """Of links with skin at the knots (K, links, 10)."""
        return frame_inertia(self.quad, self.skin, self.influence, self.frames)

    @cached_property
    def delta(self) -> np.ndarray:
        """Of :func:`coupling_forces` at the knots (K, nv)."""
        return coupling_forces(self.quad, self.skin, self.influence, self.frames)

    @property
    def mass(self) -> float:
        """With skin [kg]."""
        return float(self.inertia[0, :, 0].sum())

    @property
    def weight(self) -> float:
        """m g [N]."""
        return self.mass * GRAVITY

    @cached_property
    def limits(self) -> np.ndarray:
        """Torque limits (m,) [N m]."""
        limits = self.quad.torque_limits.copy()
        for name, value in self.torque_limits.items():
            limits[self.quad.joints.index(name)] = value
        return limits

    def program(self, posture: np.ndarray | None = None) -> Program:
        """The nonlinear program.

        Args:
            posture: poses at the knots (K, nv) that `Weights.posture` draws to;
                the rest pose by default.
        """
        # Here, because that module needs this one.
        from drakebots.robots.quads.space_time.program import SpaceTimeBuilder

        return SpaceTimeBuilder(self, posture).build()


def widened(problem: SpaceTime, q: np.ndarray) -> np.ndarray:
    """Positions at the knots with one before and one after (K + 2, nv): those of
    the cycle next to it, or mirrored at rest."""
    if problem.motion.period != "cycle":
        return np.vstack([q[1], q, q[-2]])
    c, s = np.cos(problem.motion.turn), np.sin(problem.motion.turn)
    R = np.eye(q.shape[1])
    R[:2, :2] = [[c, -s], [s, c]]
    before = q[0] + R.T @ (q[-2] - q[-1])
    return np.vstack([before, q, q[-1] + R @ (q[1] - q[0])])
