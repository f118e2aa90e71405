"""From requested node motions to actuator displacements.

    minimise |J_w u - w|^2,   |u_i| <= stroke

where J_w holds the rows of the planes-of-motion map (eq. (1)) of the requested
components w. Source: Tebyani et al. (2022), section 3.1; bounds and least squares are
ours.

    plan(ReachProblem([Target("foot", "x", 5e-3)]))            # the walking robot
    plan(ReachProblem([Target((1, 3, 4), "x", 5e-3)], lattice=load_lattice(path)))

What a plan reaches is said by the beam frame, seen from the body's mean pose: the
rigid motion that fits all nodes best (those of the core in the walking robot) is taken
out. Planes of motion plan where they are all the mechanisms that the lattice has and
the frame confirms the plan. Elsewhere the elastic model with all mechanisms places the
actuators, and J_w is the frame's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import xarray as xr

from drakebots.core.checks import (
    check,
    check_types,
    check_value,
    finite,
    optional,
    positive,
)
from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.core.run import Progress, Verdict
from drakebots.core.stages import spent, timed
from drakebots.lattice.pom import (
    Control,
    ElasticPOM,
    bounded_controls,
    frame_response,
    inverse_kinematics,
    place_actuators,
    place_of,
    stroke_conflicts,
    without_rigid_motion,
)
from drakebots.lattice.shape import (
    AXES,
    Lattice,
    LatticeSpec,
    axis_number,
    find_mechanisms,
    require_connected,
)
from drakebots.model import parameters_of
from drakebots.results import Result, provenance
from drakebots.robots.voxels.model import (
    ACTUATORS,
    FEET,
    FRONT,
    MARKERS,
    MODEL,
    VoxelRobot,
    walker,
)

TOLERANCE = 0.05
"""A target counts as met if the frame misses it by at most this share of the largest
one."""

LONGEST_STROKE = 0.2
"""Largest stroke of an actuator's node in pitches; its length changes by twice that."""

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
            [m]; None for the walking robot's own, and for 0.2 pitches in a lattice.
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
        check_types(self, "")
        object.__setattr__(self, "targets", tuple(self.targets))
        object.__setattr__(self, "actuators", tuple(self.actuators))
        check(self, "", stroke=optional(positive("m")))
        if not self.targets:
            raise InvalidInput("say what is to move: at least one effector")
        if self.lattice is None and self.actuators:
            raise InvalidInput("the walking robot has its own actuators; give none")


@dataclass(frozen=True, eq=False)
class _Plan:
    """Actuators, their displacements and what comes of them.

    Attributes:
        lattice: the voxels.
        actuators: M of them.
        u: displacements of their lower nodes (M,) [m].
        stroke: the largest allowed [m].
        planner: the model that u comes from.
        predicted: displacements of the nodes by the reduced model (N, 3) [m].
        moved: the same by the frame (N, 3) [m].
        force: forces of the actuators by the frame (M,) [N].
        conflicts: why targets cannot be met, one line each.
    """

    lattice: Lattice
    actuators: tuple[Control, ...]
    u: np.ndarray
    stroke: float
    planner: str
    predicted: np.ndarray
    moved: np.ndarray
    force: np.ndarray
    conflicts: tuple[str, ...] = ()

    def at(self, targets: Sequence[Control], motion: np.ndarray) -> np.ndarray:
        """The targets' components of a motion (N, 3)."""
        return np.array([motion[self.lattice.node(t.node), t.axis] for t in targets])

    @property
    def worst(self) -> tuple[float, tuple[int, int, int]]:
        """Largest error of the prediction at a node [m], and that node's voxel."""
        seen = without_rigid_motion(self.lattice, self.moved, self.predicted)
        off = np.linalg.norm(seen - self.predicted, axis=1)
        node = int(np.argmax(off))
        voxel = self.lattice.voxels[self.lattice.voxel_of(node)[0]]
        return float(off[node]), tuple(voxel.tolist())


@timed("plan")
def plan(problem: ReachProblem, *, progress: Progress | None = None) -> Result:
    """Plans actuator displacements, and checks them by the beam frame.

    Args:
        problem: what is to move.
        progress: called while actuators are placed.

    Returns:
        A result of kind "voxels.plan". Row 0 of its data is the lattice at rest, row 1
        the planned pose, as the frame takes it. It is failed where the frame misses a
        target by more than `TOLERANCE`, or a stroke is exceeded.

    Raises:
        InvalidInput: for a lattice in pieces, or a node that is not in it.
        NoSolution: when no small set of actuators meets the targets.
    """
    targets = [target.control for target in problem.targets]
    w = np.array([target.displacement for target in problem.targets], float)
    if problem.lattice is None:
        found = _of_the_robot(problem, targets, w)
    else:
        found = _of_a_lattice(problem, targets, w, progress)
    return _result(problem, found, targets, w)


def _of_the_robot(problem: ReachProblem, targets, w: np.ndarray) -> _Plan:
    robot = VoxelRobot()
    if problem.stroke is not None:
        robot = replace(robot, stroke=problem.stroke)
    lattice = robot.lattice
    core = [lattice.node(place) for place in robot.core.nodes.tolist()]
    response = frame_response(lattice, ACTUATORS, walker().strut, nodes=core)
    reach = robot.reach(targets, w)
    u, text = reach.controls[0], _texts(reach.conflicts)
    if not (text or _met(_components(lattice, targets, response[0]) @ u, w)):
        return _by_frame(
            *(lattice, ACTUATORS, targets, w, robot.stroke, response),
            lambda u: robot.displacements(u)[0],
        )
    predicted = reach.effectors[0]
    return _Plan(
        *(lattice, ACTUATORS, u, robot.stroke, "planes of motion", predicted),
        *(np.tensordot(u, response[0], 1), u @ response[1], text),
    )


def _of_a_lattice(problem: ReachProblem, targets, w: np.ndarray, progress) -> _Plan:
    lattice, strut = problem.lattice.lattice, problem.lattice.strut
    require_connected(lattice)
    for target in targets:
        lattice.node(target.node)
    most = LONGEST_STROKE * lattice.pitch
    stroke = most if problem.stroke is None else problem.stroke
    mechanisms = find_mechanisms(lattice)
    if mechanisms.complete:
        found = _by_planes(problem, targets, w, stroke, progress)
        if found.conflicts or _met(found.at(targets, found.moved), w):
            return found
    model = ElasticPOM(lattice, strut, mechanisms)
    actuators = problem.actuators
    if not actuators:
        actuators = place_actuators(
            *(model, targets, w),
            stroke=stroke,
            mean_pose=True,
            progress=progress,
        ).actuators
    held = ElasticPOM(lattice, strut, mechanisms, mounts=actuators)

    def predict(u: np.ndarray) -> np.ndarray:
        motion = held.move(actuators, u).displacement[0]
        return without_rigid_motion(lattice, motion, 0 * motion)

    response = frame_response(lattice, actuators, strut)
    return _by_frame(lattice, actuators, targets, w, stroke, response, predict)


def _by_planes(problem: ReachProblem, targets, w, stroke, progress) -> _Plan:
    lattice, actuators = problem.lattice.lattice, problem.actuators
    if not actuators:
        actuators = place_actuators(
            lattice, targets, w, stroke=stroke, progress=progress
        ).actuators
    found = inverse_kinematics(lattice, actuators, targets, w, stroke=stroke)
    u = found.controls[0]
    moved, force = frame_response(lattice, actuators, problem.lattice.strut)
    return _Plan(
        *(lattice, actuators, u, stroke, "planes of motion", found.effectors[0]),
        *(np.tensordot(u, moved, 1), u @ force, _texts(found.conflicts)),
    )


def _by_frame(lattice, actuators, targets, w, stroke, response, predict) -> _Plan:
    """Controls that the frame itself asks for.

    Args:
        lattice, actuators, targets, w, stroke: as elsewhere.
        response: motions (M, N, 3) and forces (M, M) per unit of each control.
        predict: displacements (N, 3) of the reduced model for controls (M,).
    """
    S = _components(lattice, targets, response[0])
    unbounded, u, limit = bounded_controls(S, w[None], stroke)
    found = _Plan(
        *(lattice, tuple(actuators), u[0], stroke, "frame", predict(u[0])),
        *(np.tensordot(u[0], response[0], 1), u[0] @ response[1]),
    )
    if _met(S @ u[0], w):
        return found
    return replace(
        found, conflicts=_texts(stroke_conflicts(actuators, unbounded, limit))
    )


def _components(lattice, targets, moved: np.ndarray) -> np.ndarray:
    """The targets' components (W, M) of motions (M, N, 3)."""
    return np.array([moved[:, lattice.node(t.node), t.axis] for t in targets])


def _met(reached: np.ndarray, w: np.ndarray) -> bool:
    return bool((np.abs(reached - w) <= TOLERANCE * np.abs(w).max()).all())


def _texts(conflicts) -> tuple[str, ...]:
    return tuple(str(c) for c in conflicts if c.kind != "undetermined")


def _result(problem: ReachProblem, found: _Plan, targets, w: np.ndarray) -> Result:
    lattice, actuators, u = found.lattice, found.actuators, found.u
    names, requested = [a.name for a in actuators], [t.name for t in targets]
    reached = found.at(targets, found.moved)
    predicted = found.at(targets, found.predicted)
    off, voxel = found.worst
    lines = list(found.conflicts)
    allowed = TOLERANCE * np.abs(w).max()
    if not lines:
        lines = [
            f"the frame moves {name!r} by {_mm(got):.4g} mm instead of "
            f"{_mm(asked):.4g} mm; add an actuator or choose others"
            for name, got, asked in zip(requested, reached, w)
            if abs(got - asked) > allowed
        ]
    data = xr.Dataset(
        {
            "control": (("time", "actuator"), np.vstack([0 * u, u]), {"units": "m"}),
            "node_position": (
                ("time", "node", "axis"),
                lattice.positions + np.stack([0 * found.moved, found.moved]),
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
    missed = reached - w
    count = f"{len(u)} actuator" + "s" * (len(u) != 1)
    robot = problem.lattice is None
    error = np.abs(missed).max() / max(np.abs(w).max(), 1e-300)
    return Result(
        kind="voxels.plan",
        model=MODEL if robot else "lattice",
        verdict=Verdict.FAILED if lines else Verdict.SUCCESS,
        message="; ".join(lines)
        if lines
        else f"{count}, by the frame within {error:.1%}",
        data=data,
        residuals=dict(zip(requested, map(float, missed))),
        timings=spent(),
        metrics={
            "actuator_mm": {name: _mm(v) for name, v in zip(names, u)},
            "length_change_mm": {name: _mm(-2 * v) for name, v in zip(names, u)},
            "actuator_force_N": dict(zip(names, map(float, found.force))),
            "reached_mm": {n: _mm(v) for n, v in zip(requested, reached)},
            "predicted_mm": {n: _mm(v) for n, v in zip(requested, predicted)},
            "planned_by": found.planner,
            "prediction_worst_mm": _mm(off),
            "prediction_worst_voxel": list(voxel),
            "stroke_mm": _mm(found.stroke),
        },
        provenance=provenance(
            parameters_of(MODEL).path if robot else problem.path,
            {"targets": dict(zip(requested, map(float, w)))},
        ),
    )


def _mm(value: float) -> float:
    """In mm, rounded to the picometre, without -0."""
    return round(1e3 * float(value), 9) + 0.0
