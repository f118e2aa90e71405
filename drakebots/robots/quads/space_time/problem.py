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
from dataclasses import field
from functools import cached_property
from typing import Annotated

import numpy as np
from scipy.ndimage import minimum_filter1d

from drakebots.core.checks import (
    array,
    between,
    check_value,
    instance,
    non_negative,
    optional,
    positive,
    whole,
)
from drakebots.core.errors import InvalidInput, check_names
from drakebots.core.fields import check, checked
from drakebots.core.lazy import late
from drakebots.core.units import GRAVITY
from drakebots.model import plane_rotation
from drakebots.results import Result
from drakebots.robots.quads.motion import MotionInput
from drakebots.robots.quads.robot import (
    LinkSkin,
    Quad,
    SkinInfluence,
    coupling_forces,
    inertia_at,
)
from drakebots.trajopt import PlanProgram

_plans = late("drakebots.robots.quads.space_time.solve")


@checked("weights")
class Weights:
    """Weights of the objective, eq. (3), by default the paper's.

    Raises:
        InvalidInput: for a weight < 0, or a length not > 0.
    """

    torque: Annotated[float, non_negative()] = 1e-2
    """Weight alpha_t of the torques."""
    smooth: Annotated[float, non_negative()] = 0.5
    """Weight alpha_s of second differences of the positions."""
    com: Annotated[float, non_negative()] = 1.0
    """Weight alpha_c of deviations of the COM."""
    feet: Annotated[float, non_negative()] = 1.0
    """Weight alpha_e of deviations of the feet."""
    follow: Annotated[float, non_negative()] = 1.0
    """Weight alpha_f of deviations from the motion to follow, if there is one; the
    alternation raises it by a tenth in each iteration."""
    flat: Annotated[float, non_negative()] = 10.0
    """Weight alpha_o of soles that are not parallel to the ground."""
    reference: Annotated[float, non_negative()] = 1.0
    """Weight of joints with a reference in the requested motion."""
    posture: Annotated[float, non_negative()] = 1e-3
    """Small weight of the distance from the poses of inverse kinematics; it determines
    what no other term does."""
    force: Annotated[float, non_negative()] = 1e-3
    """Small weight of (|F|^2 + |T|^2/r^2)/(m g)^2; it makes contact forces unique."""
    smooth_step: Annotated[float, non_negative("s")] = 0.025
    """Time step of the second differences of E_S. The paper does not give the
    spacing of its knots; a fixed time makes the term independent of the knot spacing.
    At 5 ms it would vanish."""
    length: Annotated[float, positive("m")] = 0.01
    """Unit of length of E_COM and E_EE. The paper gives none; with 1 m its weights
    let feet deviate by 0.1 m to save torque."""


@checked("space-time program", kw_only=True)
class SpaceTimeOptions:
    """Options of a space-time program, whatever the motion.

    Raises:
        InvalidInput: for a value out of range.
    """

    weights: Weights = Weights()
    """Weights of the objective, eq. (3)."""
    cop_share: Annotated[float, between(1e-3, 1)] = 1.0
    """Share of each sole that its COP may use."""
    tip: Annotated[float, positive()] = 1e-3
    """Force below which the friction cone is rounded [m g]; a foot in contact carries
    at least tip/mu."""
    knot_spacing: Annotated[int, whole(1)] = 5
    """Number of time steps from knot to knot."""
    flat_steps: Annotated[int, whole(0)] = 5
    """Number of steps before touch-down and after lift-off in which a sole shall be
    parallel to the ground."""


@checked()
class SpaceTime(SpaceTimeOptions):
    """A motion to optimize; see the module.

    Raises:
        InvalidInput, UnknownName: for values out of range and unknown names.
    """

    quad: Quad
    """The robot."""
    motion: Annotated[MotionInput, instance(MotionInput)]
    """The requested motion."""
    skin: LinkSkin | None = None
    """Mass of the skin on the links and its stiffness; None for the bare skeleton."""
    influence: SkinInfluence | None = None
    """Effect of the deforming skin at the N steps of the motion, from the last
    step-by-step plan, or None."""
    follow: np.ndarray | None = None
    """Motion of that plan in Euler coordinates (N, nv), or None."""
    friction: Annotated[float, positive()] = 0.8
    """Coefficient of friction mu."""
    torque_limits: Mapping[str, float] = field(default_factory=dict)
    """Torque limits of some joints, in place of the model's [N m]."""

    def __post_init__(self):
        super().__post_init__()
        N, n = len(self.motion), self.quad.nv
        if (N - 1) % self.knot_spacing or (N - 1) // self.knot_spacing < 4:
            raise InvalidInput(
                f"{self.motion.name}: {N} steps are not 1 + {self.knot_spacing} k with "
                "k >= 4 knots; change their number or knot_spacing"
            )
        check_names("foot", self.motion.footfall.feet, self.quad.feet)
        missing = set(self.quad.feet) - set(self.motion.footfall.feet)
        if missing:
            raise InvalidInput(
                f"{self.motion.name}: no path for foot {', '.join(sorted(missing))}"
            )
        check_names("joint", self.torque_limits, self.quad.joints)
        for name, limit in self.torque_limits.items():
            check_value(f"torque limit of {name}", limit, positive("N m"))
        check_names("joint", self.motion.reference, self.quad.coordinates[6:])
        check(self, "space-time program", follow=optional(array((N, n))))

    def mathematical_program(
        self, *, start: Result | None = None
    ) -> PlanProgram[Result]:
        """Its program; see :func:`.solve.mathematical_program`."""
        return _plans.mathematical_program(self, start=start)

    @property
    def knots(self) -> np.ndarray:
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
        return self.motion.footfall.contact[self.knots][:, self.order]

    @cached_property
    def loaded(self) -> np.ndarray:
        """Mask of the feet that may bear load at the knots (K, feet).

        Loads are linear between knots. If a foot bore load at the knot at which it
        lands or leaves, it would do so at steps at which it is in the air, and the COP
        would leave the standing feet. So a foot bears load only if it is on the ground
        from half an interval before the knot to half an interval after it. If no foot
        is, all feet on the ground bear load.
        """
        half = self.knot_spacing // 2
        mode = "wrap" if self.motion.period == "cycle" else "nearest"
        contact = self.motion.footfall.contact[:, self.order]
        # The last step of a cycle is its first.
        one = contact[:-1] if mode == "wrap" else contact
        steady = minimum_filter1d(one, 2 * half + 1, axis=0, mode=mode)
        steady = steady[self.knots % len(one)]
        return np.where(steady.any(axis=1, keepdims=True), steady, self.contact)

    @cached_property
    def ground(self) -> np.ndarray:
        """Planes [n, d] that the soles meet at the knots (K, feet, 4)."""
        return self.motion.ground[self.knots][:, self.order]

    @cached_property
    def desired_feet(self) -> np.ndarray:
        """Requested positions of the feet at the knots (K, feet, 3) [m]."""
        return self.motion.feet[self.knots][:, self.order]

    @cached_property
    def inertia(self) -> np.ndarray:
        """Inertias of the links with skin at the knots (K, links, 10)."""
        return inertia_at(self.quad, self.skin, self.influence, self.knots)

    @cached_property
    def delta(self) -> np.ndarray:
        """Constant part of :func:`coupling_forces` at the knots (K, nv)."""
        return coupling_forces(self.quad, self.skin, self.influence, self.knots)

    def skin_forces(self, q: np.ndarray, steps: np.ndarray) -> np.ndarray:
        """Generalized forces of the skin (n, nv) at poses q (n, nv) at some steps."""
        out = coupling_forces(self.quad, self.skin, self.influence, steps)
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
    R = plane_rotation(problem.motion.turn, q.shape[1])
    before = q[0] + R.T @ (q[-2] - q[-1])
    return np.vstack([before, q, q[-1] + R @ (q[1] - q[0])])
