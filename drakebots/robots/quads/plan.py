"""Plan a motion of a skinned quad-robot by name: what `drakebots plan` does.

result = plan_quad(QuadProblem(model="beetle", motion="walk"))
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from drakebots.core.errors import InvalidInput
from drakebots.results import Result
from drakebots.robots.quads.alternate import Alternation, Progress, alternate
from drakebots.robots.quads.frames import FrameOptions
from drakebots.robots.quads.motion import MotionInput, library_motion, read_motion
from drakebots.robots.quads.robot import PlannedRobot, load_planned

MOTION_OPTIONS = ("speed", "turning_rate", "cycles", "duration", "lift")


@dataclass(frozen=True)
class QuadProblem:
    """A motion of the library, or of a file, for one robot.

    Attributes:
        model: a name, or a path to a skeleton with a `.skin.yaml` beside it.
        motion: of the library, or a .yaml or .csv file.
        speed: of the body [m/s].
        turning_rate: [rad/s].
        cycles: of a gait.
        duration: of a foot lift [s].
        lift: of the feet [m].
        friction: of the ground, in the frames; the space-time program uses a
            little less.
        cop_share: of each sole, in the space-time program.
        cop_margin: of the COP from the support polygon's edges, in the frames [m].
        torque_limit: of all joints, in place of the model's [N m].
        tolerance: of the difference of both motions.
        max_iterations: of the alternation.
        min_iterations: made in any case.
        ignore_skin: leave the skin out of the space-time program.
        base: whether the skin's forces count in the base's rows as well; see
            :class:`~drakebots.robots.quads.robot.links_skin.SkinInfluence`.
        stride: frames from knot to knot.
        threads: of the sparse solver.
        time_limit: of wall time [s].
        more: options of the motion beside those.

    Raises:
        InvalidInput: for a value that cannot be.
    """

    model: str = "beetle"
    motion: str = "walk"
    speed: float | None = None
    turning_rate: float | None = None
    cycles: int | None = None
    duration: float | None = None
    lift: float | None = None
    friction: float = 0.8
    cop_share: float = 0.9
    cop_margin: float = 0.0
    torque_limit: float | None = None
    tolerance: float = 0.02
    max_iterations: int = 3
    min_iterations: int = 1
    ignore_skin: bool = False
    base: bool = False
    stride: int = 5
    threads: int = 1
    time_limit: float | None = None
    more: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self):
        for name in (*MOTION_OPTIONS, "torque_limit"):
            value = getattr(self, name)
            if value is not None and not np.isfinite(value):
                raise InvalidInput(f"{name} must be finite, got {value}")
        for name in ("torque_limit", "duration", "time_limit", "friction"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InvalidInput(f"{name} must be > 0, got {value}")

    def motion_input(self, robot: PlannedRobot) -> MotionInput:
        """What is asked of the robot.

        Raises:
            UnknownName, FileProblem, InvalidInput: for what cannot be.
        """
        options = {
            name: getattr(self, name)
            for name in MOTION_OPTIONS
            if getattr(self, name) is not None
        } | dict(self.more)
        if Path(self.motion).suffix:
            if options:
                raise InvalidInput(
                    f"{next(iter(options))} is for a motion of the library; write it "
                    f"into {Path(self.motion).name}"
                )
            return read_motion(self.motion, robot.quad)
        if "lift" in options and self.motion.startswith("lift"):
            options["height"] = options.pop("lift")
        return library_motion(self.motion, robot.quad, **options)

    def alternation(self, robot: PlannedRobot | None = None) -> Alternation:
        """The problem to solve.

        Raises:
            DrakebotsError: for a robot or a motion that cannot be.
        """
        robot = load_planned(self.model) if robot is None else robot
        limits = {}
        if self.torque_limit is not None:
            limits = dict.fromkeys(robot.quad.joints, self.torque_limit)
        return Alternation(
            robot,
            self.motion_input(robot),
            frames=FrameOptions(friction=self.friction, cop_margin=self.cop_margin),
            friction=SPARE_FRICTION * self.friction,
            cop_share=self.cop_share,
            torque_limits=limits,
            tolerance=self.tolerance,
            max_iterations=max(self.max_iterations, self.min_iterations),
            min_iterations=self.min_iterations,
            ignore_skin=self.ignore_skin,
            base=self.base,
            stride=self.stride,
            threads=self.threads,
            time_limit=self.time_limit,
        )


SPARE_FRICTION = 0.85
"""Share of mu that the space-time program may use; frames need some of the rest."""


def plan_quad(
    problem: QuadProblem = QuadProblem(),
    *,
    path: str | Path | None = None,
    progress: Progress | None = None,
) -> Result:
    """Plans a motion; see :func:`~drakebots.robots.quads.alternate.alternate`."""
    options = {
        name: getattr(problem, name)
        for name in ("motion", *MOTION_OPTIONS, "torque_limit", "cop_margin")
    }
    return alternate(
        problem.alternation(), path=path, progress=progress, provenance=options
    )
