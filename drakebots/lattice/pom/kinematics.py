"""Forward, inverse and lateral kinematics of planes of motion in one call.

Inverse: for each pose, the controls u that come closest to the wishes w,

    minimise |S u - w|^2,    |u_i| <= stroke_i,

S being the rows of J (eq. (1)) that were wished for. Forward: x = J u of any
further nodes, such as markers. Both together are what the paper calls lateral
kinematics. Source: Tebyani et al. (2022), sections 2.2 and 3.1, which solves the
square case only; least squares, bounds and the list of conflicts are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import lsq_linear

from drakebots.core.errors import InvalidInput
from drakebots.lattice.pom.pom import Control, PlanesOfMotion
from drakebots.lattice.shape import AXES, Lattice, Planes

TOLERANCE = 1e-9
"""Of a wish, as a share of the largest one."""


@dataclass(frozen=True)
class Conflict:
    """Why something wished for does not come about.

    Attributes:
        kind: "unreachable", "over-determined", "stroke" or "undetermined" (a
            control that no wish settles; it rests).
        text: one line.
        pose: first pose it shows in, or None when it lies in the set-up.
    """

    kind: str
    text: str
    pose: int | None = None

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


@dataclass(frozen=True, eq=False)
class Kinematics:
    """What the controls do for the wishes, and what follows.

    Attributes:
        controls: u (T, M) [m].
        effectors: displacements (T, E, 3) [m].
        wished, reached: components asked for and obtained (T, W) [m].
        conflicts: what stands in the way, empty when all wishes come true.
    """

    controls: np.ndarray
    effectors: np.ndarray
    wished: np.ndarray
    reached: np.ndarray
    conflicts: tuple[Conflict, ...]

    @property
    def residual(self) -> float:
        """Largest |reached - wished| [m]."""
        return float(np.abs(self.reached - self.wished).max(initial=0.0))

    def check(self) -> Kinematics:
        """Itself, when every wish comes true.

        Raises:
            InvalidInput: with the first conflict.
        """
        for conflict in self.conflicts:
            if conflict.kind != "undetermined":
                raise InvalidInput(conflict.text)
        return self


def solve(
    lattice: Lattice,
    actuators: Sequence[Control],
    wishes: Sequence[Control],
    values,
    effectors=None,
    *,
    stroke=np.inf,
    ideality: float = 1.0,
) -> Kinematics:
    """Actuator motions for wished node motions, and all that moves with them.

    Args:
        lattice: the voxels.
        actuators: M of them.
        wishes: components of node motions, W of them; two may share a node.
        values: of the wishes (T, W), or (W,) for one pose [m].
        effectors: further nodes (E, 3) [half pitches]; by default all.
        stroke: most |u| of every actuator, or of each (M,) [m].
        ideality: see PlanesOfMotion.

    Raises:
        InvalidInput: for tables of another shape or not finite, a stroke < 0, or
            actuators that PlanesOfMotion refuses. Wishes never raise: they are
            in the conflicts.
    """
    model = PlanesOfMotion(lattice, actuators, effectors, ideality=ideality)
    aims = PlanesOfMotion(
        lattice,
        actuators,
        [w.node for w in wishes],
        ideality=ideality,
        planes=model.planes,
    )
    w = table(values, len(wishes), "values", "wish")
    rows = [3 * i + wish.axis for i, wish in enumerate(wishes)]
    S = aims.J[rows]
    wanted, u, limit = bounded(S, w, stroke)
    found = [
        *_unreachable(model.planes, S, wishes, w),
        *_over_determined(model.planes, S, wishes, w, wanted),
        *stroke_conflicts(actuators, wanted, limit),
        *_undetermined(model, S),
    ]
    return Kinematics(u, model.displacements(u), w, u @ S.T, tuple(found))


def bounded(S: np.ndarray, w: np.ndarray, stroke):
    """Controls that come closest to wishes, w = S u, without bounds and within.

    Args:
        S: (W, M).
        w: (T, W).
        stroke: most |u|, of all or of each (M,).

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
    wanted = w @ np.linalg.pinv(S).T
    u, free = wanted.copy(), limit > 0
    # Bounds matter in few poses: only those go through the slower solver.
    for pose in np.flatnonzero((np.abs(u) > limit).any(axis=1)):
        u[pose, ~free] = 0.0
        if free.any():
            box = (-limit[free], limit[free])
            u[pose, free] = lsq_linear(S[:, free], w[pose], box, method="bvls").x
    return wanted, u, limit


def table(values, columns: int, name: str, per: str) -> np.ndarray:
    """Values as (T, columns), finite.

    Raises:
        InvalidInput: naming the table, or the first pose that is not finite.
    """
    try:
        w = np.asarray(values, float)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{name} must be a table of numbers: {error}") from None
    w = w[None] if w.ndim == 1 else w
    if w.ndim != 2 or w.shape[1] != columns:
        raise InvalidInput(
            f"{name} must be (T, {columns}), one column per {per}, got {w.shape}"
        )
    bad = np.flatnonzero(~np.isfinite(w).all(axis=1))
    if len(bad):
        raise InvalidInput(f"{name}: pose {bad[0]} holds a value that is not finite")
    return w.copy()


def _small(w: np.ndarray) -> float:
    return TOLERANCE * max(float(np.abs(w).max(initial=0.0)), 1e-300)


def _unreachable(planes: Planes, S, wishes, w) -> list[Conflict]:
    found = []
    for i, wish in enumerate(wishes):
        asked = np.flatnonzero(np.abs(w[:, i]) > _small(w))
        if S[i].any() or not len(asked):
            continue
        try:
            plane = planes.all[planes.driven(wish.node, wish.axis)]
            why = f"no actuator drives the plane {plane}; add one there"
        except InvalidInput as error:
            why = str(error)
        text = f"{AXES[wish.axis]} of {wish.name!r} cannot be reached: {why}"
        found.append(Conflict("unreachable", text, int(asked[0])))
    return found


def _over_determined(planes: Planes, S, wishes, w, u) -> list[Conflict]:
    """Groups of wishes on one plane that contradict each other."""
    groups: dict[int, list[int]] = {}
    for i, wish in enumerate(wishes):
        if S[i].any():
            plane = planes.driven(wish.node, wish.axis)
            groups.setdefault(plane, []).append(i)
    found = []
    for plane, members in groups.items():
        gap = np.abs(u @ S[members].T - w[:, members]).max(axis=1)
        worst = np.flatnonzero(gap > _small(w))
        if len(worst):
            names = " and ".join(repr(wishes[i].name) for i in members)
            text = (
                f"wishes {names} share the plane {planes.all[plane]} and contradict "
                f"each other at pose {worst[0]} (by {gap.max():.4g} m at most); "
                "keep one"
            )
            found.append(Conflict("over-determined", text, int(worst[0])))
    return found


def stroke_conflicts(actuators, u: np.ndarray, limit: np.ndarray) -> list[Conflict]:
    """Actuators that controls (T, M) ask for more than their strokes (M,)."""
    found = []
    # A hair over is rounding, such as 5 mm read from a file.
    over = np.abs(u) > limit * (1 + 1e-9) + 1e-15
    for i in np.flatnonzero(over.any(axis=0)):
        poses = np.flatnonzero(over[:, i])
        text = (
            f"actuator {actuators[i].name!r} needs {u[poses[0], i]:.6g} m at pose "
            f"{poses[0]}, its stroke is {limit[i]:.6g} m ({len(poses)} poses in all); "
            "ask for less"
        )
        found.append(Conflict("stroke", text, int(poses[0])))
    return found


def _undetermined(model: PlanesOfMotion, S: np.ndarray) -> list[Conflict]:
    found = []
    for i, control in enumerate(model.controls):
        if not S[:, i].any():
            text = f"no wish settles actuator {control.name!r}: it rests"
            found.append(Conflict("undetermined", text))
    return found
