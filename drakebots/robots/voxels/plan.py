"""From requested node motions to actuator displacements.

    minimise |J_w u - w|^2,   |u_i| <= stroke

where J_w holds the rows of the planes-of-motion map (eq. (1)) of the requested
components w. Source: Tebyani et al. (2022), section 3.1; bounds and least squares are
ours.

    plan(ReachProblem([Target("foot", "x", 5e-3)]))            # the walking robot
    plan(ReachProblem([Target((1, 3, 4), "x", 5e-3)], lattice=load_lattice(path)))
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import xarray as xr

from drakebots.core.checks import check, check_value, finite, optional, positive
from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.core.run import Progress, Verdict
from drakebots.lattice.pom import (
    Control,
    Kinematics,
    inverse_kinematics,
    place_actuators,
    place_of,
)
from drakebots.lattice.shape import AXES, LatticeSpec, axis_number, require_connected
from drakebots.model import parameters_of
from drakebots.results import Result, provenance
from drakebots.robots.voxels.model import (
    ACTUATORS,
    FEET,
    FRONT,
    MARKERS,
    MODEL,
    VoxelRobot,
)

ALIASES = {"foot": "BL"}
"""Shorter names; the back left foot moves along x and y."""


def effectors() -> dict[str, tuple[int, int, int]]:
    """The robot's named nodes [half pitches]: feet, markers, front attachments."""
    attached = {f"{name} node": at for name, (_, at) in FRONT.items()}
    named = {**FEET, **MARKERS, **attached}
    return named | {alias: named[name] for alias, name in ALIASES.items()}


@dataclass(frozen=True)
class Target:
    """The requested displacement of a node along an axis.

    Attributes:
        node: the node's place (x, y, z) [half pitches], also as text "x,y,z"; or one of
            the walking robot's `effectors` by its name.
        axis: direction of the displacement, "x", "y" or "z".
        displacement: requested displacement [m].

    Raises:
        InvalidInput: for a place that is not three whole numbers, or a displacement
            that is not finite.
        UnknownName: for an unknown effector or axis.
    """

    node: str | tuple[int, int, int]
    axis: str
    displacement: float

    def __post_init__(self):
        self.control  # noqa: B018  refuses a bad node or axis now
        check_value("an effector's displacement", self.displacement, finite("m"))

    @property
    def control(self) -> Control:
        """The component of the node's motion, by its place."""
        axis = AXES[axis_number(self.axis)]
        if not isinstance(self.node, str):
            return Control(place_of(self.node), axis)
        named = effectors()
        if self.node in named:
            return Control(named[self.node], axis, f"{self.node}:{axis}")
        try:
            place = tuple(map(int, self.node.split(",")))
        except ValueError:
            raise UnknownName("effector", self.node, named) from None
        return Control(place_of(place), axis, f"{self.node}:{axis}")


@dataclass(frozen=True, eq=False)
class ReachProblem:
    """Requested node motions of the walking robot, or of any lattice.

    Attributes:
        targets: the requested displacements, at least one.
        lattice: the lattice; None for the walking robot.
        actuators: the lattice's actuators; left out, the fewest that meet the targets
            are placed. The walking robot has its own.
        stroke: largest displacement of an actuator's lower node in either direction
            [m]; None for the walking robot's own, and for no limit in a lattice.
        path: file of the lattice, for the provenance.

    Raises:
        InvalidInput: for no target, actuators of the walking robot, or a stroke that
            is not > 0.
    """

    targets: Sequence[Target]
    lattice: LatticeSpec | None = None
    actuators: Sequence[Control] = ()
    stroke: float | None = None
    path: Path | None = None

    def __post_init__(self):
        object.__setattr__(self, "targets", tuple(self.targets))
        object.__setattr__(self, "actuators", tuple(self.actuators))
        check(self, "", stroke=optional(positive("m")))
        if not self.targets:
            raise InvalidInput("say what is to move: at least one effector")
        if self.lattice is None and self.actuators:
            raise InvalidInput("the walking robot has its own actuators; give none")


def plan(problem: ReachProblem, *, progress: Progress | None = None) -> Result:
    """Plans actuator displacements by planes of motion.

    Args:
        problem: what is to move.
        progress: called while actuators are placed.

    Returns:
        A result of kind "voxels.plan". Row 0 of its data is the lattice at rest, row 1
        the planned pose. It is failed where a target is missed or a stroke exceeded.

    Raises:
        InvalidInput: for a lattice in pieces, or a node that is not in it.
        NoSolution: when no small set of actuators meets the targets.
    """
    began = time.perf_counter()
    targets = [target.control for target in problem.targets]
    values = np.array([target.displacement for target in problem.targets], float)
    if problem.lattice is None:
        robot = VoxelRobot()
        if problem.stroke is not None:
            robot = replace(robot, stroke=problem.stroke)
        found = robot.reach(targets, values)
        lattice, actuators, stroke = robot.lattice, ACTUATORS, robot.stroke
    else:
        lattice, actuators = problem.lattice.lattice, problem.actuators
        require_connected(lattice)
        stroke = np.inf if problem.stroke is None else problem.stroke
        if not actuators:
            actuators = place_actuators(
                lattice, targets, values, stroke=stroke, progress=progress
            ).actuators
        found = inverse_kinematics(lattice, actuators, targets, values, stroke=stroke)
    seconds = time.perf_counter() - began
    return _result(problem, lattice, actuators, targets, found, stroke, seconds)


def _result(
    problem: ReachProblem,
    lattice,
    actuators,
    targets,
    found: Kinematics,
    stroke: float,
    seconds: float,
) -> Result:
    u, moved = found.controls[0], found.effectors[0]
    names, requested = [a.name for a in actuators], [t.name for t in targets]
    lines = [str(c) for c in found.conflicts if c.kind != "undetermined"]
    data = xr.Dataset(
        {
            "control": (("time", "actuator"), np.vstack([0 * u, u]), {"units": "m"}),
            "node_position": (
                ("time", "node", "axis"),
                lattice.positions + np.stack([0 * moved, moved]),
                {"units": "m"},
            ),
        },
        {
            "time": ("time", np.array([0.0, 1.0]), {"units": "s"}),
            "actuator": names,
            "actuator_node": (
                ("actuator", "axis"),
                np.array([a.node for a in actuators]),
                {"units": "1"},
            ),
            "actuator_axis": ("actuator", [AXES[a.axis] for a in actuators]),
            "axis": list(AXES),
        },
    )
    missed = found.reached[0] - found.requested[0]
    count = f"{len(u)} actuator" + "s" * (len(u) != 1)
    robot = problem.lattice is None
    return Result(
        kind="voxels.plan",
        model=MODEL if robot else "lattice",
        verdict=Verdict.FAILED if lines else Verdict.SUCCESS,
        message="; ".join(lines) if lines else count,
        data=data,
        residuals=dict(zip(requested, map(float, missed))),
        timings={"plan": seconds},
        metrics={
            "actuator_mm": {name: _mm(v) for name, v in zip(names, u)},
            "length_change_mm": {name: _mm(-2 * v) for name, v in zip(names, u)},
            "reached_mm": {n: _mm(v) for n, v in zip(requested, found.reached[0])},
            "stroke_mm": _mm(stroke) if np.isfinite(stroke) else None,
        },
        provenance=provenance(
            parameters_of(MODEL).path if robot else problem.path,
            {"targets": dict(zip(requested, map(float, found.requested[0])))},
        ),
    )


def _mm(value: float) -> float:
    """In mm, rounded to the picometre, without -0."""
    return round(1e3 * float(value), 9) + 0.0
