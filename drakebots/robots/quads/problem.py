"""Motions of skinned quad-robots to plan.

problem = Problem(model="beetle", motion="walk", limits=Limits(friction=0.6))
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated

import numpy as np

from drakebots.core.checks import (
    finite,
    known,
    non_negative,
    one_of,
    positive,
    whole,
)
from drakebots.core.errors import InvalidInput
from drakebots.core.fields import checked
from drakebots.multibody import Flat, Terrain
from drakebots.results import Result
from drakebots.robots.quads.motion import (
    MOTIONS,
    MotionInput,
    library_motion,
    onto,
    read_motion,
)
from drakebots.robots.quads.robot import PlannedRobot, SkinInfluence, load_planned
from drakebots.robots.quads.space_time import SpaceTime, SpaceTimeOptions, Weights
from drakebots.robots.quads.steps import StepOptions
from drakebots.skin import COLLISIONS
from drakebots.trajopt import PlanProgram

GROWTH = 0.1
"""Relative growth of the weight `follow` per iteration (section 5.1)."""

FLAT = 100.0
"""Weight of E_O in the space-time program, in place of the paper's 10: lengths are
measured in cm there. With 10, loaded soles tilt by 6 degrees, their edges 5 mm below
the ground, which the step-by-step plan does not allow."""

SPARE_FRICTION = 0.85
"""Share of the friction that the space-time program uses; the step-by-step plan needs
some of the rest."""

MOTION_OPTIONS = ("speed", "turning_rate", "cycles", "lift")


@checked("limits", kw_only=True)
class Limits:
    """Limits that a plan keeps.

    Raises:
        InvalidInput: for a value out of range.
    """

    friction: Annotated[float, positive()] = 0.8
    """Coefficient of friction of the ground; the space-time program uses 85 % of it."""
    torque: Annotated[float | None, positive("N m")] = None
    """Torque limit of all joints, in place of the model's."""
    cop_margin: Annotated[float, non_negative("m")] = 0.0
    """Smallest distance of the COP from the edges of the support polygon in the
    step-by-step plan."""


@checked("alternation", kw_only=True)
class Alternation:
    """How space-time and step-by-step planning alternate, and when they stop.

    Raises:
        InvalidInput: for a value out of range.
    """

    tolerance: Annotated[float, non_negative()] = 0.02
    """Largest difference of both motions at which to stop."""
    max_iterations: Annotated[int, whole(1)] = 3
    """Largest number of iterations; not less than the minimum."""
    min_iterations: Annotated[int, whole(1)] = 1
    """Minimum number of iterations."""
    base: bool = False
    """Let the skin's forces also act on the momentum of the base in the space-time
    program."""
    ignore_skin: bool = False
    """Leave the skin out of the space-time program (Fig. 13c)."""

    @property
    def most(self) -> int:
        """Largest number of iterations."""
        return max(self.max_iterations, self.min_iterations)


@checked()
class Problem:
    """A motion of the library, or of a file, for one robot.

    Raises:
        InvalidInput: for a value out of range.
    """

    model: str | Path | PlannedRobot = "beetle"
    """Name of the robot, or path to a skeleton with a `.skin.yaml` beside it."""
    motion: Annotated[str | MotionInput, known(MOTIONS)] = "walk"
    """Name of a motion of the library, or a file (.yaml, .csv, .bvh)."""
    speed: Annotated[float | None, finite("m/s")] = None
    """Speed of the body."""
    turning_rate: Annotated[float | None, finite("rad/s")] = None
    """Turning rate of the body."""
    cycles: Annotated[int | None, whole(1)] = None
    """Number of cycles of a gait."""
    lift: Annotated[float | None, finite("m")] = None
    """Height of the lifted feet."""
    more: Mapping[str, float] = field(default_factory=dict)
    """Further options of the motion in SI, as the `duration` of a foot lift."""
    terrain: Terrain = field(default_factory=Flat)
    """Shape of the ground."""
    limits: Limits = Limits()
    """Friction, torques and COP that the plan keeps to."""
    alternation: Alternation = Alternation()
    """Iterations of space-time and step-by-step planning."""
    space_time: SpaceTimeOptions = SpaceTimeOptions(
        weights=Weights(flat=FLAT), cop_share=0.9
    )
    """Options of the space-time program."""
    steps: StepOptions = StepOptions()
    """Options of the step-by-step plan."""
    collisions: Annotated[str, one_of("kind of collisions", COLLISIONS)] = "none"
    """What the skin collides with in the step-by-step plan: "itself", "links", "all" of
    these, "bracing" (all, and bracing plates) or "none"."""
    time_limit: Annotated[float | None, positive("s")] = None
    """Limit of the wall time; the best plan so far is kept."""

    @cached_property
    def robot(self) -> PlannedRobot:
        """The robot in both forms, loaded when it is first asked for."""
        if isinstance(self.model, PlannedRobot):
            return self.model
        return load_planned(self.model)

    @cached_property
    def requested(self) -> MotionInput:
        """The requested motion of the robot.

        Raises:
            UnknownName, FileProblem, InvalidInput: for a motion that does not exist or
                does not fit the robot.
        """
        return onto(self._motion(), self.robot.quad, self.terrain)

    def _motion(self) -> MotionInput:
        """The motion as it was asked for, on flat ground or one that was made."""
        given = {name: getattr(self, name) for name in MOTION_OPTIONS}
        options = {k: v for k, v in given.items() if v is not None} | dict(self.more)
        if isinstance(self.motion, str) and not Path(self.motion).suffix:
            if "lift" in options and self.motion.startswith("lift"):
                options["height"] = options.pop("lift")
            return library_motion(self.motion, self.robot.quad, **options)
        if not isinstance(self.motion, MotionInput):
            return read_motion(self.motion, self.robot.quad, **options)
        if options:
            raise InvalidInput(
                f"{next(iter(options))} changes nothing: {self.motion.name} is made"
            )
        return self.motion

    def following(self, motion: MotionInput) -> Problem:
        """The same problem for a motion that is made already."""
        none = dict.fromkeys(MOTION_OPTIONS)
        return replace(self, model=self.robot, motion=motion, more={}, **none)

    def mathematical_program(
        self, *, start: Result | None = None
    ) -> PlanProgram[Result]:
        """The program of the first iteration; `start` as of
        :meth:`SpaceTime.mathematical_program`."""
        return self.program().mathematical_program(start=start)

    def program(
        self,
        iteration: int = 0,
        influence: SkinInfluence | None = None,
        follow: np.ndarray | None = None,
        *,
        stiff: bool = True,
    ) -> SpaceTime:
        """The space-time problem of an iteration, counted from 0.

        Args:
            iteration: number of the iteration.
            influence: effect of the deforming skin.
            follow: motion to follow (N, nv).
            stiff: whether the program knows the skin's stiffness.
        """
        skin = None if self.alternation.ignore_skin else self.robot.link_skin
        if skin is not None and not stiff:
            skin = replace(skin, stiffness=None)
        options = dict(vars(self.space_time))
        weights, limits = self.space_time.weights, {}
        rise = (1 + GROWTH) ** iteration
        options["weights"] = replace(weights, follow=weights.follow * rise)
        if self.limits.torque is not None:
            limits = dict.fromkeys(self.robot.quad.joints, self.limits.torque)
        options["friction"] = SPARE_FRICTION * self.limits.friction
        options |= {"influence": influence, "follow": follow, "torque_limits": limits}
        return SpaceTime(self.robot.quad, self.requested, skin, **options)
