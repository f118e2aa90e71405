"""Plans a motion of a skinned quad-robot by name, as `drakebots plan` does.

result = plan(QuadProblem(model="beetle", motion="walk"))
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from drakebots.core.checks import check, finite, non_negative, optional, positive, whole
from drakebots.core.errors import InvalidInput
from drakebots.core.run import Progress
from drakebots.core.stages import spent, timed
from drakebots.results import Result
from drakebots.robots.quads.alternate import alternate
from drakebots.robots.quads.alternation import Alternation, PlanOptions
from drakebots.robots.quads.frames import FrameOptions
from drakebots.robots.quads.motion import MotionInput, library_motion, read_motion
from drakebots.robots.quads.robot import PlannedRobot, load_planned

MOTION_OPTIONS = ("speed", "turning_rate", "cycles", "duration", "lift")

SPARE_FRICTION = 0.85
"""Share of the friction that the space-time program uses; the step-by-step plan needs
some of the rest."""


@dataclass(frozen=True)
class QuadProblem(PlanOptions):
    """A motion of the library, or of a file, for one robot.

    Attributes:
        model: name of the robot, or path to a skeleton with a `.skin.yaml` beside it.
        motion: name of a motion of the library, or a .yaml or .csv file.
        speed: speed of the body [m/s].
        turning_rate: turning rate of the body [rad/s].
        cycles: number of cycles of a gait.
        duration: duration of a foot lift [s].
        lift: height of the lifted feet [m].
        friction: coefficient of friction of the ground; the space-time program uses
            85 % of it.
        cop_margin: smallest distance of the COP from the edges of the support polygon
            in the step-by-step plan [m].
        torque_limit: torque limit of all joints, in place of the model's [N m].
        more: further options of the motion.

    Raises:
        InvalidInput: for a value out of range.
    """

    model: str = "beetle"
    motion: str = "walk"
    speed: float | None = None
    turning_rate: float | None = None
    cycles: int | None = None
    duration: float | None = None
    lift: float | None = None
    friction: float = 0.8
    cop_margin: float = 0.0
    torque_limit: float | None = None
    more: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self):
        super().__post_init__()
        check(
            self,
            "",
            speed=optional(finite("m/s")),
            turning_rate=optional(finite("rad/s")),
            cycles=optional(whole(1)),
            duration=optional(positive("s")),
            lift=optional(finite("m")),
            friction=positive(),
            cop_margin=non_negative("m"),
            torque_limit=optional(positive("N m")),
        )

    def motion_input(self, robot: PlannedRobot) -> MotionInput:
        """The requested motion of a robot.

        Raises:
            UnknownName, FileProblem, InvalidInput: for a motion that does not exist or
                does not fit the robot.
        """
        options = {
            name: getattr(self, name)
            for name in MOTION_OPTIONS
            if getattr(self, name) is not None
        } | dict(self.more)
        if Path(self.motion).suffix:
            if options:
                raise InvalidInput(
                    f"{next(iter(options))} is for motions of the library; write it "
                    f"into {Path(self.motion).name}"
                )
            return read_motion(self.motion, robot.quad)
        if "lift" in options and self.motion.startswith("lift"):
            options["height"] = options.pop("lift")
        return library_motion(self.motion, robot.quad, **options)

    def alternation(self, robot: PlannedRobot | None = None) -> Alternation:
        """The problem of the alternation.

        Raises:
            DrakebotsError: for a robot or a motion that cannot be planned.
        """
        robot = load_planned(self.model) if robot is None else robot
        limits = {}
        if self.torque_limit is not None:
            limits = dict.fromkeys(robot.quad.joints, self.torque_limit)
        names = [entry.name for entry in fields(PlanOptions)]
        options = {name: getattr(self, name) for name in names}
        options["max_iterations"] = max(self.max_iterations, self.min_iterations)
        return Alternation(
            robot,
            self.motion_input(robot),
            frames=FrameOptions(friction=self.friction, cop_margin=self.cop_margin),
            friction=SPARE_FRICTION * self.friction,
            torque_limits=limits,
            **options,
        )


@timed("load and check")
def plan(
    problem: QuadProblem = QuadProblem(),
    *,
    path: str | Path | None = None,
    progress: Progress | None = None,
) -> Result:
    """Plans a motion.

    Args:
        problem: the problem.
        path: file to save the result to, also after every iteration.
        progress: called with the stage, what is done of it, and its end.

    Returns:
        A result of kind "quads.plan"; see
        :mod:`~drakebots.robots.quads.alternation`.

    Raises:
        DrakebotsError: as from :func:`~drakebots.robots.quads.alternate.alternate`.
    """
    options = {
        name: getattr(problem, name)
        for name in ("motion", *MOTION_OPTIONS, "torque_limit", "cop_margin")
    }
    return replace(
        alternate(
            problem.alternation(), path=path, progress=progress, provenance=options
        ),
        timings=spent(),
    )
