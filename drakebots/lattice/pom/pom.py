"""Planes of Motion: displacements of lattice nodes from those of a few controls.

    x_j(t) = sum_i A^(d_i)_(n_j) C_ij u_i(t)                                 (1)

with u_i the displacement of control i along its push axis, x_j that of node j,
d_i the normal of the plane that control i drives, n_j the number 0..5 of node j in
its voxel and C_ij in {-1, 0, 1}. The column n of A^(p) is e_p x r_n, with r_n the
unit vector from the voxel's centre to node n. Source: Tebyani et al., "A Geometric
Kinematic Model for Flexible Voxel-Based Robots" (2022), section 2.2.

Here x = J u with the constant J built from the unit fields of
:class:`drakebots.lattice.shape.Planes`.

Forward, inverse and lateral kinematics are one call, :func:`inverse_kinematics`:
Inverse: for each pose, the controls u whose motion comes closest to the targets w,

    minimise |S u - w|^2,    |u_i| <= stroke_i,

where S holds the rows of J (eq. (1)) of the requested components. Forward: x = J u of
any other nodes, such as markers. Both together are what the paper calls lateral
kinematics. Source: Tebyani et al. (2022), sections 2.2 and 3.1, which solves the
square case only; least squares, bounds and the list of conflicts are ours.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy.optimize import lsq_linear

from drakebots.core.checks import array, between, check_value, numeric, positive, text
from drakebots.core.errors import InvalidInput
from drakebots.core.fields import checked
from drakebots.lattice.shape import AXES, OFFSETS, Lattice, Plane, Planes, axis_number

_ZERO = 1e-9

ACTUATION = np.array([np.cross(e, OFFSETS).T for e in np.eye(3, dtype=int)])
"""A_x, A_y, A_z: displacement of nodes 0..5 when a voxel tilts (3, 3, 6)."""


@checked("actuator")
class Control:
    """One component of a node's motion: what an actuator drives, or a target.

    An actuator connects the node to the one a pitch further along the axis and moves
    that one the opposite way: it changes its length by -2 u.

    Raises:
        InvalidInput: when node is not three whole numbers.
        UnknownName: for another axis.
    """

    node: Annotated[tuple[int, int, int], place_of]
    """Place of the (lower) node (x, y, z) [half pitches]."""
    axis: Annotated[int | str, axis_number] = 2
    """Direction of the motion, 0..2 or a letter."""
    name: Annotated[str, text(".*", "a text")] = ""
    """Name for reports; by default node and axis."""

    def __post_init__(self):
        if not self.name:
            object.__setattr__(self, "name", f"{self.node} {AXES[self.axis]}")

    word = "X,Y,Z:AXIS"

    @classmethod
    def from_word(cls, text: str, what: str) -> Control:
        """The component that "2,1,1:z" names.

        Raises:
            InvalidInput: for text of another form.
        """
        found = re.fullmatch(r"(-?\d+),(-?\d+),(-?\d+):([xyz])", text)
        if found is None:
            raise InvalidInput(f"{what}: {text!r} must be X,Y,Z:AXIS, e.g. 2,1,1:z")
        *node, axis = found.groups()
        return cls(tuple(map(int, node)), axis)

    @property
    def other(self) -> tuple[int, int, int]:
        """The actuator's other node [half pitches]."""
        return tuple(n + 2 * (k == self.axis) for k, n in enumerate(self.node))


def place_of(node) -> tuple[int, int, int]:
    """A node's place as three ints [half pitches].

    Raises:
        InvalidInput: when it is anything else.
    """
    try:
        given = np.asarray(node, float)
    except (TypeError, ValueError):
        given = np.empty(0)
    if given.shape != (3,) or not np.isfinite(given).all() or (given % 1).any():
        raise InvalidInput(f"a node is three whole half pitches (x, y, z), got {node}")
    return tuple(int(n) for n in given)


def table(values, columns: int, name: str, per: str) -> np.ndarray:
    """Values as a finite array (T, columns); one row may be given alone.

    Args:
        values: the table.
        columns: its number of columns.
        name: of the table, for messages.
        per: meaning of each column, for messages.

    Raises:
        InvalidInput: naming the table, or the first row that is not finite.
    """
    name = f"{name}, one column per {per},"
    rows = check_value(name, values, numeric())
    rows = rows[None] if rows.ndim == 1 else rows
    return check_value(name, rows, array((None, columns))).copy()


class PlanesOfMotion:
    """The model x = J u of a lattice, its controls and the nodes of interest.

    Args:
        lattice: the voxels.
        controls: the driven components, at most one per plane.
        effectors: places of the nodes of interest (E, 3) [half pitches]; by
            default all nodes, in the lattice's order.
        ideality: share of the motion that arrives at nodes which belong to no
            control, > 0 and <= 1; 1 in the paper.
        planes: the lattice's planes, when already at hand.

    Attributes:
        planes: the lattice's planes of motion.
        driven: the plane of each control.
        effector_nodes: rows of the effectors among the lattice's nodes (E,).
        J: (3 E, M); row 3 e + k for direction k of effector e. Entries 0, +-1
            (times ideality).

    Raises:
        InvalidInput: for no control, two on one plane, a node not in the lattice,
            a push along the node's even axis, an ideality outside (0, 1].
        UnknownName: for an axis other than x, y, z.
    """

    def __init__(
        self,
        lattice: Lattice,
        controls: Sequence[Control],
        effectors=None,
        *,
        ideality: float = 1.0,
        planes: Planes | None = None,
    ):
        if not len(controls):
            raise InvalidInput("planes of motion need at least one control")
        check_value("ideality", ideality, positive())
        check_value("ideality", ideality, between(0, 1))
        self.lattice, self.controls = lattice, tuple(controls)
        self.ideality = float(ideality)
        self.planes = planes or Planes(lattice)
        driven = [self.planes.driven(c.node, c.axis) for c in controls]
        self._refuse_shared(driven)
        self.driven: tuple[Plane, ...] = tuple(self.planes.all[d] for d in driven)
        if effectors is None:
            nodes = np.arange(len(lattice.nodes))
        else:
            nodes = np.array([lattice.node(place_of(e)) for e in effectors], int)
        self.effector_nodes = nodes
        self.J = self._jacobian(driven, nodes)
        self._columns = len(controls), "u", "control"

    def _refuse_shared(self, driven: list[int]) -> None:
        first: dict[int, Control] = {}
        for control, plane in zip(self.controls, driven):
            if plane in first:
                a, b = first[plane], control
                raise InvalidInput(
                    f"controls {a.name!r} at node {a.node} and {b.name!r} at node "
                    f"{b.node} both drive the plane {self.planes.all[plane]}; keep one"
                )
            first[plane] = control

    def _jacobian(self, driven: list[int], nodes: np.ndarray) -> np.ndarray:
        fields = self.planes.fields[:, driven].toarray()
        fields = fields.reshape(-1, 3, len(driven))
        gain = np.full(len(fields), self.ideality)
        places = {tuple(p): row for row, p in enumerate(self.lattice.nodes.tolist())}
        for i, control in enumerate(self.controls):
            held = places[control.node]
            # A unit of u is a unit of the control's own motion.
            fields[:, :, i] *= fields[held, control.axis, i]
            gain[held] = gain[places.get(control.other, held)] = 1.0
        return (gain[:, None, None] * fields)[nodes].reshape(-1, len(driven))

    def displacements(self, u) -> np.ndarray:
        """Displacements of the effectors, eq. (1).

        Args:
            u: displacements of the controls (..., M) [m].

        Returns:
            (..., E, 3) [m].

        Raises:
            InvalidInput: when u's last size is not M, or u is not finite.
        """
        u = np.asarray(u, float)
        table(u.reshape(-1, u.shape[-1]) if u.ndim else u, *self._columns)
        return (u @ self.J.T).reshape(*u.shape[:-1], -1, 3)

    def positions(self, u) -> np.ndarray:
        """Positions of the effectors (..., E, 3) [m]; see `displacements`."""
        return self.lattice.positions[self.effector_nodes] + self.displacements(u)


# --- actuators between nodes ------------------------------------------------
#
# The change of length of each actuator follows from the amplitudes a of the
# mechanisms, e = G a. With M actuators, M - rank(G) of them cannot be set freely.
# Source: ours; the paper refuses two controls on one plane only.


def actuator_nodes(lattice: Lattice, actuators: Sequence[Control]) -> np.ndarray:
    """Rows of the lower and the upper node of each actuator (M, 2).

    Raises:
        InvalidInput: when one of them is not in the lattice, naming the actuator.
    """
    rows = []
    for actuator in actuators:
        try:
            rows.append([lattice.node(actuator.node), lattice.node(actuator.other)])
        except InvalidInput as error:
            raise InvalidInput(f"actuator {actuator.name!r}: {error}") from None
    return np.array(rows, int).reshape(-1, 2)


def extension_rows(
    lattice: Lattice, actuators: Sequence[Control], basis: np.ndarray
) -> np.ndarray:
    """G (M, m): extension of each actuator per unit of each mechanism."""
    nodes, axes = actuator_nodes(lattice, actuators), [a.axis for a in actuators]
    along = basis.reshape(len(lattice.nodes), 3, -1)
    return along[nodes[:, 1], axes] - along[nodes[:, 0], axes]


def check_independent(actuators: Sequence[Control], G: np.ndarray) -> None:
    """Refuses an actuator whose extension the ones before it determine.

    Raises:
        InvalidInput: naming it, and those others.
    """
    for i, row in enumerate(G):
        what, size = f"actuator {actuators[i].name!r}", np.abs(row).max(initial=0.0)
        if size < _ZERO:
            raise InvalidInput(f"{what} moves no mechanism; place it elsewhere")
        share = np.linalg.lstsq(G[:i].T, row, rcond=None)[0]
        if np.abs(share @ G[:i] - row).max() < 1e-7 * size:
            others = [repr(a.name) for a, s in zip(actuators, share) if abs(s) > 1e-7]
            others = " and ".join(others)
            raise InvalidInput(f"{what} is determined by {others}; leave one out")


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


def bounded_controls(S: np.ndarray, w: np.ndarray, stroke, rcond: float = 1e-15):
    """Controls that come closest to w = S u, without bounds and within the strokes.

    Args:
        S: displacements of the targets per control (W, M).
        w: requested displacements (T, W).
        stroke: largest |u| of all controls, or of each (M,).
        rcond: least singular value of S that counts, as a share of the largest.

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
    unbounded = w @ np.linalg.pinv(S, rcond=rcond).T
    u, free = unbounded.copy(), limit > 0
    # Bounds matter in few poses: only those go through the slower solver.
    for pose in np.flatnonzero((np.abs(u) > limit).any(axis=1)):
        u[pose, ~free] = 0.0
        if free.any():
            box = (-limit[free], limit[free])
            u[pose, free] = lsq_linear(S[:, free], w[pose], box, method="bvls").x
    return unbounded, u, limit


def linear_c(name: str, A: np.ndarray) -> str:
    """A C99 function `void name(const double *in, double *out)` of out = A in."""
    lines = [f"void {name}(const double *in, double *out) {{"]
    for i, row in enumerate(A.tolist()):
        terms = (f"{a!r} * in[{k}]" for k, a in enumerate(row) if a)
        lines.append(f"    out[{i}] = {' + '.join(terms) or '0.0'};")
    return "\n".join([*lines, "}", ""])


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
    found = []
    for i, control in enumerate(model.controls):
        if not S[:, i].any():
            text = f"no target determines actuator {control.name!r}: it stays at rest"
            found.append(Conflict("undetermined", text))
    return found
