"""From wished node motions to actuator displacements, as a result.

    minimise |J_w u - w|^2,   |u_i| <= stroke

with J_w the rows of the planes-of-motion map (eq. (1)) that were wished for. Source:
Tebyani et al. (2022), section 3.1; bounds and least squares are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import xarray as xr

from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.core.run import Verdict
from drakebots.lattice.pom import Control, Kinematics, solve
from drakebots.lattice.pom import place as place_actuators
from drakebots.lattice.shape import AXES, Lattice, LatticeSpec, require_connected
from drakebots.model import package_root
from drakebots.results import Result, provenance
from drakebots.robots.voxels.model import ACTUATORS, FEET, FRONT, MARKERS, VoxelRobot

ALIASES = {"foot": "BL"}
"""Shorter names; the back left foot moves along x and y."""


def effectors() -> dict[str, tuple[int, int, int]]:
    """The robot's named nodes [half pitches]: feet, markers, front attachments."""
    held = {f"{name} node": at for name, (_, at) in FRONT.items()}
    named = {**FEET, **MARKERS, **held}
    return named | {alias: named[name] for alias, name in ALIASES.items()}


def node_of(name: str) -> tuple[int, int, int]:
    """A node by its name, or by "x,y,z" [half pitches].

    Raises:
        UnknownName: listing the names.
    """
    named = effectors()
    if name in named:
        return named[name]
    try:
        x, y, z = map(int, name.split(","))
    except ValueError:
        raise UnknownName("effector", name, named) from None
    return x, y, z


def plan_robot(
    wishes: Sequence[tuple[str, str, float]],
    *,
    stroke: float | None = None,
    robot: VoxelRobot | None = None,
) -> Result:
    """Actuator displacements of the walking robot.

    Args:
        wishes: (name, axis, displacement [m]) of nodes.
        stroke: most of an actuator's node either way [m]; the robot's by default.
        robot: the paper's by default.

    Raises:
        UnknownName: for an effector that is none.
        InvalidInput: for no wish, values not finite, or no such node.
    """
    robot = robot or VoxelRobot()
    if stroke is not None:
        robot = replace(robot, stroke=_positive(stroke))
    values = _values([w[2] for w in wishes])
    aims = [Control(node_of(n), axis, f"{n}:{axis}") for n, axis, _ in wishes]
    found = robot.reach(aims, values)
    return _result(
        "voxel",
        robot.lattice,
        ACTUATORS,
        found,
        aims,
        robot.stroke,
        package_root() / "voxel" / "params.yaml",
    )


def plan_lattice(
    spec: LatticeSpec,
    wishes: Sequence[tuple[tuple[int, int, int], str, float]],
    actuators: Sequence[Control] = (),
    *,
    stroke: float | None = None,
    path=None,
) -> Result:
    """Actuator displacements of any lattice, by its planes of motion.

    Without actuators, the fewest that do it are looked for.

    Raises:
        InvalidInput: for a lattice in pieces, no wish, or no such node.
        NoSolution: when no few actuators do it.
    """
    lattice = spec.lattice
    require_connected(lattice)
    stroke = np.inf if stroke is None else _positive(stroke)
    values = _values([w[2] for w in wishes])
    aims = [Control(node, axis) for node, axis, _ in wishes]
    if not actuators:
        actuators = place_actuators(lattice, aims, values, stroke=stroke).actuators
    found = solve(lattice, actuators, aims, values, stroke=stroke)
    return _result("lattice", lattice, actuators, found, aims, stroke, path)


def _values(values) -> np.ndarray:
    values = np.array(values, float)
    if not len(values):
        raise InvalidInput("say what is to move: at least one effector")
    if not np.isfinite(values).all():
        raise InvalidInput(f"an effector's displacement is not finite: {values}")
    return values


def _positive(stroke: float) -> float:
    if not (np.isfinite(stroke) and stroke > 0):
        raise InvalidInput(f"stroke must be > 0 m, got {stroke}")
    return float(stroke)


def _result(
    model: str,
    lattice: Lattice,
    actuators: Sequence[Control],
    found: Kinematics,
    aims: Sequence[Control],
    stroke: float,
    path,
) -> Result:
    """Row 0 of the data is the lattice at rest, row 1 what was planned."""
    u, moved = found.controls[0], found.effectors[0]
    names, wishes = [a.name for a in actuators], [aim.name for aim in aims]
    lines = [str(c) for c in found.conflicts if c.kind != "undetermined"]
    data = xr.Dataset(
        {
            "control": (
                ("time", "actuator"),
                np.vstack([0 * u, u]),
                {"units": "m"},
            ),
            "node_position": (
                ("time", "node", "axis"),
                lattice.positions + np.stack([0 * moved, moved]),
                {"units": "m"},
            ),
        },
        {
            "time": ("time", np.array([0.0, 1.0]), {"units": "s"}),
            "actuator": names,
            "axis": list(AXES),
        },
    )
    missed = found.reached[0] - found.wished[0]
    count = f"{len(u)} actuator" + "s" * (len(u) != 1)
    return Result(
        kind="voxels.plan",
        model=model,
        verdict=Verdict.FAILED if lines else Verdict.SUCCESS,
        message="; ".join(lines) if lines else count,
        data=data,
        residuals=dict(zip(wishes, map(float, missed))),
        timings={},
        metrics={
            "actuator_mm": {name: _mm(v) for name, v in zip(names, u)},
            "length_change_mm": {name: _mm(-2 * v) for name, v in zip(names, u)},
            "reached_mm": {n: _mm(v) for n, v in zip(wishes, found.reached[0])},
            "stroke_mm": _mm(stroke) if np.isfinite(stroke) else None,
        },
        provenance=provenance(
            path, {"wishes": dict(zip(wishes, map(float, found.wished[0])))}
        ),
    )


def _mm(value: float) -> float:
    """In mm, to the picometre: no -0, no rounding's dust."""
    return round(1e3 * float(value), 9) + 0.0
