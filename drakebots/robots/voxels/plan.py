"""Actuator displacements for requested node motions.

    minimise |J_w u - w|^2,   |u_i| <= stroke

where J_w holds the rows of the planes-of-motion map (eq. (1)) of the requested
components w. Source: Tebyani et al. (2022), section 3.1; bounds and least squares are
ours.

    plan(Problem([Target("foot", "x", 5e-3)]))            # the walking robot
    plan(Problem([Target((1, 3, 4), "x", 5e-3)], lattice=load_lattice(path)))

What a plan reaches is said by the beam frame, seen from the body's mean pose: the
rigid motion that fits all nodes best (those of the core in the walking robot) is taken
out. Planes of motion plan where they are all the mechanisms that the lattice has and
the frame confirms the plan. Elsewhere the elastic model with all mechanisms places the
actuators, and J_w is the frame's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import casadi as ca
import numpy as np
import xarray as xr

from drakebots.core.checks import check_value, each, finite, instance, positive
from drakebots.core.convert import finite_word
from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.core.fields import checked
from drakebots.core.run import Progress, Verdict
from drakebots.core.stages import spent, timed
from drakebots.lattice.pom import (
    Conflict,
    Control,
    ElasticPOM,
    Gains,
    PlanesOfMotion,
    bounded_controls,
    error_bound,
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
from drakebots.robots.voxels.search import SearchProblem, search_gait
from drakebots.trajopt import PlanProgram
from drakebots.trajopt.program import ProgramBuilder
from drakebots.trajopt.solvers import Solution

TOLERANCE = 0.05
"""A target counts as met if the frame misses it by at most this share of the largest
one."""

LONGEST_STROKE = 0.2
"""Largest stroke of an actuator's node in pitches; its length changes by twice that."""

SMALLEST = 1e-3
"""Weight of the squared controls in the program: the smallest of equally good ones."""


def effectors() -> dict[str, tuple[int, int, int]]:
    """The robot's named nodes [half pitches]: feet, markers, front attachments.

    The foot is the back left one, which moves along x and y.
    """
    attached = {f"{name} node": at for name, (_, at) in FRONT.items()}
    return {**FEET, **MARKERS, **attached, "foot": FEET["BL"]}


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

    word = "NAME:AXIS=LENGTH"

    @classmethod
    def from_word(cls, text: str, what: str) -> Target:
        """The target that "BL:x=5mm" or "1,3,4:x=5mm" names.

        Raises:
            InvalidInput: for text of another form, or a length that is none.
            UnknownName: for an unknown effector.
        """
        found = re.fullmatch(r"(.+):([xyz])=(.+)", text)
        if found is None:
            raise InvalidInput(
                f"{what}: {text!r} must be NAME:AXIS=LENGTH, e.g. BL:x=5mm"
            )
        node, axis, size = found.groups()
        return cls(node, axis, finite_word(size, f"{what} {node}", "m"))

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
            places = [*named, "x,y,z in half pitches"]
            raise UnknownName("effector", self.node, places) from None
        return Control(place_of(place), axis, f"{self.node}:{axis}")


@checked(eq=False)
class Problem:
    """Requested node motions of the walking robot, or of any lattice.

    Raises:
        InvalidInput: for no target, actuators of the walking robot, or a stroke that
            is not > 0.
    """

    targets: Annotated[Sequence[Target], each(instance(Target), "targets", 1)]
    """The requested displacements, at least one."""
    lattice: LatticeSpec | None = None
    """The lattice; None for the walking robot."""
    actuators: Annotated[Sequence[Control], each(instance(Control), "actuators")] = ()
    """The lattice's actuators; left out, the fewest that meet the targets are placed.
    The walking robot has its own."""
    stroke: Annotated[float | None, positive("m")] = None
    """Largest displacement of an actuator's lower node in either direction; None for
    the walking robot's own, and for 0.2 pitches in a lattice."""
    gains: Gains | None = None
    """Shares of its commands that each actuator moves, from a calibration (.json)."""

    def __post_init__(self):
        if self.lattice is None and self.actuators:
            raise InvalidInput("the walking robot has its own actuators; give none")

    def mathematical_program(self) -> PlanProgram[Result]:
        """Its program; see :func:`mathematical_program`."""
        return mathematical_program(self)


@dataclass(frozen=True, eq=False)
class _Plan:
    """Actuators and their displacements.

    Attributes:
        lattice: the voxels.
        actuators: M of them.
        stroke: the largest displacement allowed [m].
        response: motions (M, N, 3) and forces (M, M) by the frame, per unit of each u.
        u: displacements of the lower nodes (M,) [m].
        predict: function of u that gives the displacements of the nodes by the reduced
            model (N, 3) [m].
        planner: the model that u comes from.
        conflicts: why targets cannot be met.
    """

    lattice: Lattice
    actuators: tuple[Control, ...]
    stroke: float
    response: tuple[np.ndarray, np.ndarray]
    u: np.ndarray
    predict: Callable[[np.ndarray], np.ndarray]
    planner: str = "planes of motion"
    conflicts: Sequence[Conflict] = ()

    @property
    def moved(self) -> np.ndarray:
        """Displacements of the nodes by the frame (N, 3) [m]."""
        return np.tensordot(self.u, self.response[0], 1)

    @property
    def predicted(self) -> np.ndarray:
        """Displacements of the nodes by the reduced model (N, 3) [m]."""
        return self.predict(self.u)

    @property
    def lines(self) -> list[str]:
        """The conflicts, one line each."""
        return [str(c) for c in self.conflicts if c.kind != "undetermined"]

    def at(self, targets: Sequence[Control], motion: np.ndarray) -> np.ndarray:
        """The targets' components (W, ...) of motions (..., N, 3)."""
        node = self.lattice.node
        return np.array([motion[..., node(t.node), t.axis] for t in targets])

    def geared(self, gains: np.ndarray) -> _Plan:
        """The same where actuators move shares (M,) of their commands."""
        response = tuple((gains * each.T).T for each in self.response)
        how = {"response": response, "predict": lambda u: self.predict(gains * u)}
        return replace(self, **how)

    def settles(self, targets: Sequence[Control], w: np.ndarray) -> bool:
        """Whether it needs no better model: in conflict, or the frame meets w."""
        return bool(self.lines) or _met(self.at(targets, self.moved), w)


@timed("plan")
def plan(
    problem: Problem | SearchProblem, *, progress: Progress | None = None
) -> Result:
    """Plans actuator displacements, and checks them by the beam frame; or a gait.

    Args:
        problem: the motion asked for, or the search for a gait (:func:`search_gait`).
        progress: called while actuators are placed, and gaits are tried.

    Returns:
        A result of kind "voxels.plan". Row 0 of its data is the lattice at rest, row 1
        the planned pose, as the frame takes it. It is failed where the frame misses a
        target by more than `TOLERANCE`, or a stroke is exceeded. Of a search, one of
        kind "voxels.gait_search".

    Raises:
        InvalidInput: for a lattice in pieces, or a node that is not in it.
        NoSolution: when no small set of actuators meets the targets.
    """
    if isinstance(problem, SearchProblem):
        return search_gait(problem, progress=progress)
    return _result(problem, *_found(problem, progress))


def _found(problem: Problem, progress: Progress | None):
    """The plan, its targets and their displacements."""
    targets = [target.control for target in problem.targets]
    w = np.array([target.displacement for target in problem.targets], float)
    if problem.lattice is None:
        found = _of_the_robot(problem, targets, w)
    else:
        found = _of_a_lattice(problem, targets, w, progress)
    if problem.gains is not None:
        found = _by_frame(found.geared(problem.gains.of(found.actuators)), targets, w)
    return found, targets, w


def mathematical_program(problem: Problem) -> PlanProgram[Result]:
    """The program of the actuators' displacements, by the frame, from those planned.

    Its names are "control" (1, actuators) and "target" (1, targets), what the targets'
    components move by [m].

    Raises:
        As :func:`plan`.
    """
    found, targets, w = _found(problem, None)
    # A miss by a thousandth of the largest target costs 1.
    S, size = found.at(targets, found.response[0]), 1e-3 * np.abs(w).max(initial=1e-6)
    b = ProgramBuilder("actuators of a lattice")
    names, most = [a.name for a in found.actuators], found.stroke
    bounds = {"lower": -most, "upper": most, "scale": most, "units": "m"}
    u = b.add_variables("u", 1, names, **bounds).indices
    b.cost("missed", {"u": u}, lambda u: ca.sumsqr((ca.DM(S) @ u - w) / size))
    b.cost("smallest", {"u": u}, lambda u: SMALLEST * ca.sumsqr(u / most))
    program = b.build()

    def finish(solution: Solution) -> Result:
        u = solution.parts["u"][0]
        result = _result(problem, replace(found, u=u, conflicts=()), targets, w)
        if solution.ok:
            return result
        return replace(result, verdict=solution.verdict, message=solution.message)

    def moved(given: Callable[[str], np.ndarray]) -> np.ndarray:
        return given("u") @ S.T

    derived = {"target": ([t.name for t in targets], moved)}
    how = {"names": {"control": "u"}, "derived": derived}
    return PlanProgram(program, program.pack({"u": found.u}), {}, finish, **how)


def _of_the_robot(problem: Problem, targets, w: np.ndarray) -> _Plan:
    robot = VoxelRobot()
    if problem.stroke is not None:
        robot = replace(robot, stroke=problem.stroke)
    lattice = robot.lattice
    core = [lattice.node(place) for place in robot.core.nodes.tolist()]
    response = frame_response(lattice, ACTUATORS, walker().strut, nodes=core)
    reach = robot.reach(targets, w)
    found = _Plan(
        *(lattice, ACTUATORS, robot.stroke, response, reach.controls[0]),
        lambda u: robot.displacements(u)[0],
        conflicts=reach.conflicts,
    )
    if found.settles(targets, w):
        return found
    return _by_frame(found, targets, w)


def _of_a_lattice(problem: Problem, targets, w: np.ndarray, progress) -> _Plan:
    lattice, strut = problem.lattice.lattice, problem.lattice.strut
    require_connected(lattice)
    for target in targets:
        lattice.node(target.node)
    most = LONGEST_STROKE * lattice.pitch
    stroke = most if problem.stroke is None else problem.stroke
    mechanisms = find_mechanisms(lattice)

    def placed(model: Lattice | ElasticPOM, **options) -> tuple[Control, ...]:
        """The given actuators, or the fewest by a model."""
        if problem.actuators:
            return problem.actuators
        how = {"stroke": stroke, "progress": progress} | options
        return place_actuators(model, targets, w, **how).actuators

    if mechanisms.complete:
        actuators = placed(lattice)
        planes = PlanesOfMotion(lattice, actuators)
        reach = inverse_kinematics(lattice, actuators, targets, w, stroke=stroke)
        found = _Plan(
            *(lattice, actuators, stroke, frame_response(lattice, actuators, strut)),
            *(reach.controls[0], planes.displacements),
            conflicts=reach.conflicts,
        )
        if found.settles(targets, w):
            return found
    actuators = placed(ElasticPOM(lattice, strut, mechanisms), mean_pose=True)
    held = ElasticPOM(lattice, strut, mechanisms, mounts=actuators)

    def predict(u: np.ndarray) -> np.ndarray:
        motion = held.move(actuators, u).displacement[0]
        return without_rigid_motion(lattice, motion, 0 * motion)

    response = frame_response(lattice, actuators, strut)
    none = np.zeros(len(actuators))
    found = _Plan(lattice, actuators, stroke, response, none, predict)
    return _by_frame(found, targets, w)


def _by_frame(before: _Plan, targets, w: np.ndarray) -> _Plan:
    """A plan with the controls that the frame itself asks for.

    Args:
        before: actuators, their stroke and response.
        targets, w: as elsewhere.
    """
    S = before.at(targets, before.response[0])
    unbounded, (u,), limit = bounded_controls(S, w[None], before.stroke)
    short = stroke_conflicts(before.actuators, unbounded, limit)
    conflicts = () if _met(S @ u, w) else short
    return replace(before, u=u, planner="frame", conflicts=conflicts)


def _met(reached: np.ndarray, w: np.ndarray) -> bool:
    return bool((np.abs(reached - w) <= TOLERANCE * np.abs(w).max()).all())


def _result(problem: Problem, found: _Plan, targets, w: np.ndarray) -> Result:
    actuators, u, moved = found.actuators, found.u, found.moved
    names, requested = [a.name for a in actuators], [t.name for t in targets]
    reached = found.at(targets, moved)
    lines = found.lines or [
        f"the frame moves {name!r} by {_mm(got):.4g} mm instead of "
        f"{_mm(asked):.4g} mm; add an actuator or choose others"
        for name, got, asked in zip(requested, reached, w)
        if abs(got - asked) > TOLERANCE * np.abs(w).max()
    ]
    missed = reached - w
    error = np.abs(missed).max() / max(np.abs(w).max(), 1e-300)
    count = f"{len(u)} actuator" + "s" * (len(u) != 1)
    done = f"{count}, by the frame within {error:.1%}"
    worst = error_bound(found.lattice, found.predicted[None], moved[None])
    robot = problem.lattice is None

    def in_mm(keys: Sequence[str], lengths) -> dict[str, float]:
        return {key: _mm(length) for key, length in zip(keys, lengths)}

    return Result(
        kind="voxels.plan",
        model=MODEL if robot else "lattice",
        verdict=Verdict.FAILED if lines else Verdict.SUCCESS,
        message="; ".join(lines) or done,
        data=lattice_dataset(
            *(found.lattice, actuators, np.array([0.0, 1.0])),
            np.stack([0 * u, u]),
            np.stack([0 * moved, moved]),
        ),
        residuals=dict(zip(requested, map(float, missed))),
        timings=spent(),
        metrics={
            "actuator_mm": in_mm(names, u),
            "length_change_mm": in_mm(names, -2 * u),
            "actuator_force_N": dict(zip(names, map(float, u @ found.response[1]))),
            "reached_mm": in_mm(requested, reached),
            "predicted_mm": in_mm(requested, found.at(targets, found.predicted)),
            "planned_by": found.planner,
            "prediction_worst_mm": _mm(worst.error),
            "prediction_worst_voxel": list(worst.voxel),
            "stroke_mm": _mm(found.stroke),
        },
        provenance=provenance(
            parameters_of(MODEL).path if robot else problem.lattice.path,
            {"targets": dict(zip(requested, map(float, w)))},
        ),
    )


def lattice_dataset(lattice: Lattice, actuators, times, u, moved) -> xr.Dataset:
    """Nodes that moved (T, N, 3) [m] with their actuators u (T, M) [m] at times [s]."""
    metre, by_actuator = {"units": "m"}, ("time", "actuator")
    places = lattice.positions + moved
    nodes = np.array([a.node for a in actuators])
    return xr.Dataset(
        {
            "control": (by_actuator, u, metre),
            "node_position": (("time", "node", "axis"), places, metre),
        },
        {
            "time": ("time", times, {"units": "s"}),
            "actuator": [a.name for a in actuators],
            "actuator_node": (("actuator", "axis"), nodes, {"units": "1"}),
            "actuator_axis": ("actuator", [AXES[a.axis] for a in actuators]),
            "axis": list(AXES),
        },
    )


def _mm(value: float) -> float:
    """Length in mm, rounded to the picometre, without -0."""
    return round(1e3 * float(value), 9) + 0.0
