"""Forward, inverse and lateral kinematics of planes of motion in one call.

Inverse: for each pose, the controls u whose motion comes closest to the targets w,

    minimise |S u - w|^2,    |u_i| <= stroke_i,

where S holds the rows of J (eq. (1)) of the requested components. Forward: x = J u of
any other nodes, such as markers. Both together are what the paper calls lateral
kinematics. Source: Tebyani et al. (2022), sections 2.2 and 3.1, which solves the
square case only; least squares, bounds and the list of conflicts are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import lsq_linear

from drakebots.core.errors import InvalidInput
from drakebots.lattice.pom.pom import Control, PlanesOfMotion, table
from drakebots.lattice.shape import AXES, Lattice, Planes

TOLERANCE = 1e-9
"""A target counts as met within this share of the largest one."""


@dataclass(frozen=True)
class Conflict:
    """Why a target is not met.

    Attributes:
        kind: "unreachable", "over-determined", "stroke" or "undetermined" (a
            control that no target determines; it stays at rest).
        text: one line.
        pose: first pose in which it occurs; None when it holds for any pose.
    """

    kind: str
    text: str
    pose: int | None = None

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


@dataclass(frozen=True, eq=False)
class Kinematics:
    """Controls for the targets, and the motion that follows.

    Attributes:
        controls: displacements u of the actuators' lower nodes (T, M) [m].
        effectors: displacements of the effectors (T, E, 3) [m].
        reached: displacements of the targets (T, W) [m].
        conflicts: why targets are missed; empty when all are met.
    """

    controls: np.ndarray
    effectors: np.ndarray
    reached: np.ndarray
    conflicts: tuple[Conflict, ...]


def inverse_kinematics(
    lattice: Lattice,
    actuators: Sequence[Control],
    targets: Sequence[Control],
    values,
    effectors=None,
    *,
    stroke=np.inf,
) -> Kinematics:
    """Actuator displacements for requested node motions, and the motion that follows.

    Args:
        lattice: the voxels.
        actuators: M actuators, at most one for each plane.
        targets: components of node motions, W of them; two may share a node.
        values: displacements of the targets (T, W), or (W,) for one pose [m].
        effectors: nodes to report (E, 3) [half pitches]; by default all.
        stroke: largest |u| of all actuators, or of each (M,) [m].

    Raises:
        InvalidInput: for tables of another shape or not finite, a stroke < 0, or
            actuators that PlanesOfMotion refuses. Targets that cannot be met do not
            raise: they are in the conflicts.
    """
    model = PlanesOfMotion(lattice, actuators, effectors)
    nodes = [target.node for target in targets]
    at_targets = PlanesOfMotion(lattice, actuators, nodes, planes=model.planes)
    w = table(values, len(targets), "values", "target")
    S = at_targets.J[[3 * i + target.axis for i, target in enumerate(targets)]]
    unbounded, u, limit = bounded_controls(S, w, stroke)
    found = [
        *_unreachable(model.planes, S, targets, w),
        *_over_determined(model.planes, S, targets, w, unbounded),
        *stroke_conflicts(actuators, unbounded, limit),
        *_undetermined(model, S),
    ]
    return Kinematics(u, model.displacements(u), u @ S.T, tuple(found))


def bounded_controls(S: np.ndarray, w: np.ndarray, stroke):
    """Controls that come closest to w = S u, without bounds and within the strokes.

    Args:
        S: displacements of the targets per control (W, M).
        w: requested displacements (T, W).
        stroke: largest |u| of all controls, or of each (M,).

    Returns:
        Unbounded controls (T, M), the smallest of equally good ones; controls within
        the strokes (T, M); the strokes (M,).

    Raises:
        InvalidInput: for a stroke < 0, NaN or of another shape.
    """
    limit = np.asarray(stroke, float)
    if limit.shape not in ((), (S.shape[1],)) or not (limit >= 0).all():
        raise InvalidInput(f"stroke must be >= 0 m, one or one each, got {stroke}")
    limit = np.broadcast_to(limit, (S.shape[1],))
    unbounded = w @ np.linalg.pinv(S).T
    u, free = unbounded.copy(), limit > 0
    # Bounds matter in few poses: only those go through the slower solver.
    for pose in np.flatnonzero((np.abs(u) > limit).any(axis=1)):
        u[pose, ~free] = 0.0
        if free.any():
            box = (-limit[free], limit[free])
            u[pose, free] = lsq_linear(S[:, free], w[pose], box, method="bvls").x
    return unbounded, u, limit


def stroke_conflicts(actuators, u: np.ndarray, limit: np.ndarray) -> list[Conflict]:
    """Actuators whose controls (T, M) exceed their strokes (M,)."""
    found = []
    # Rounding, as of 5 mm read from a file, is no excess.
    over = np.abs(u) > limit * (1 + 1e-9) + 1e-15
    for i in np.flatnonzero(over.any(axis=0)):
        poses = np.flatnonzero(over[:, i])
        text = (
            f"actuator {actuators[i].name!r} needs {u[poses[0], i]:.6g} m at pose "
            f"{poses[0]}, its stroke is {limit[i]:.6g} m ({len(poses)} poses in all); "
            "request less"
        )
        found.append(Conflict("stroke", text, int(poses[0])))
    return found


def _small(w: np.ndarray) -> float:
    return TOLERANCE * max(float(np.abs(w).max(initial=0.0)), 1e-300)


def _unreachable(planes: Planes, S, targets, w) -> list[Conflict]:
    found = []
    for i, target in enumerate(targets):
        moving = np.flatnonzero(np.abs(w[:, i]) > _small(w))
        if S[i].any() or not len(moving):
            continue
        try:
            plane = planes.all[planes.driven(target.node, target.axis)]
            why = f"no actuator drives the plane {plane}; add one there"
        except InvalidInput as error:
            why = str(error)
        text = f"{AXES[target.axis]} of {target.name!r} cannot be reached: {why}"
        found.append(Conflict("unreachable", text, int(moving[0])))
    return found


def _over_determined(planes: Planes, S, targets, w, u) -> list[Conflict]:
    """Groups of targets on one plane that contradict each other."""
    groups: dict[int, list[int]] = {}
    for i, target in enumerate(targets):
        if S[i].any():
            plane = planes.driven(target.node, target.axis)
            groups.setdefault(plane, []).append(i)
    found = []
    for plane, members in groups.items():
        gap = np.abs(u @ S[members].T - w[:, members]).max(axis=1)
        worst = np.flatnonzero(gap > _small(w))
        if len(worst):
            names = " and ".join(repr(targets[i].name) for i in members)
            text = (
                f"targets {names} share the plane {planes.all[plane]} and contradict "
                f"each other at pose {worst[0]} (by {gap.max():.4g} m at most); "
                "keep one"
            )
            found.append(Conflict("over-determined", text, int(worst[0])))
    return found


def _undetermined(model: PlanesOfMotion, S: np.ndarray) -> list[Conflict]:
    return [
        Conflict(
            "undetermined",
            f"no target determines actuator {control.name!r}: it stays at rest",
        )
        for i, control in enumerate(model.controls)
        if not S[:, i].any()
    ]
