"""Closed kinematic loops: the table of cut joints, its residual, its constraints.

Every loop is cut at one joint, which is a :class:`Loop`. The same table closes the
loops in three ways: in a Drake simulation by SAP constraints, in programs by
`c(q) = 0`, and in time stepping with hard contact by the velocity rows `C(q) v = 0`.
A joint that follows another closes a loop, too, whose linkage is not drawn: each
:class:`~drakebots.model.couplers.Coupler` is one more row of c(q).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Annotated

import numpy as np
import scipy.linalg
from pydrake.math import RigidTransform, RotationMatrix
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import JacobianWrtVariable, RigidBody
from pydrake.systems.framework import Context

from drakebots.core.checks import Refused, array, direction, one_of, optional
from drakebots.core.errors import InvalidInput, some
from drakebots.core.fields import check, checked
from drakebots.model.couplers import Coupled, Coupler, coupled_positions
from drakebots.model.views import bodies_of, joint_slices, joints_of, one_named

ROWS = {"ball": 3, "planar": 2, "hinge": 5, "weld": 6}
"""Number of rows of a loop, by kind: a ball joint closes three positions, a planar one
the two positions across its axis, a hinge three positions and the two directions across
its axis, a weld all of these and the turn about the axis."""

_RANK = 1e-7
"""Rows whose share of the largest pivot is less depend on the others."""


@checked("loop {name}")
class Loop:
    """A cut joint between point P of body A and point Q of body B."""

    name: str
    """Name of the cut joint."""
    body_A: str
    """Name of body A."""
    body_B: str
    """Name of body B."""
    p_AP: Annotated[np.ndarray, array((3,), "m")]
    """The joint's point P in body A (3,)."""
    p_BQ: Annotated[np.ndarray, array((3,), "m")]
    """The joint's point Q in body B (3,)."""
    axis_A: Annotated[np.ndarray, direction()] = field(
        default_factory=lambda: np.array([0.0, 0.0, 1.0])
    )
    """The joint's axis in body A (3,), a unit vector."""
    axis_B: Annotated[np.ndarray, direction()] = field(
        default_factory=lambda: np.array([0.0, 0.0, 1.0])
    )
    """The joint's axis in body B (3,), a unit vector."""
    side_A: Annotated[np.ndarray | None, direction()] = None
    """For a weld, a direction across the axis in body A (3,), a unit vector; where the
    loop is closed, that of `side_B`. By default the one that :meth:`across` gives."""
    side_B: Annotated[np.ndarray | None, direction()] = None
    """For a weld, a direction across the axis in body B (3,), a unit vector; where the
    loop is closed, that of `side_A`. By default the one that :meth:`across` gives."""
    rows: str = "hinge"
    """Rows that close it: "ball", "planar", "hinge" or "weld"; see :data:`ROWS`."""
    kept: tuple[int, ...] | None = None
    """Indices of its rows that count, where others depend on those of this and the
    other loops; None for all."""
    in_file: bool = False
    """Whether the model file itself closes the loop for SAP."""

    def __post_init__(self):
        rows = one_of(f"`rows` of loop {self.name}", ROWS)
        kept = optional(_kept(ROWS.get(self.rows, 0)))
        check(self, f"loop {self.name}", rows=rows, kept=kept)

    @classmethod
    def of_frames(
        cls,
        name: str,
        bodies: Sequence[str],
        frames: Sequence[RigidTransform],
        axis: Sequence[float] = (0.0, 0.0, 1.0),
        *,
        rows: str,
    ) -> Loop:
        """The joint whose frames X_AP and X_BQ [m] coincide where it is closed.

        Args:
            name: of the joint.
            bodies: names of A and B.
            frames: X_AP and X_BQ.
            axis: the joint's axis in both frames (3,).
            rows: rows that close it.
        """
        side = np.eye(3)[np.argmin(np.abs(axis))]
        points = (X.translation() for X in frames)
        axes = (X.rotation() @ axis for X in frames)
        sides = (X.rotation() @ side for X in frames)
        return cls(name, *bodies, *points, *axes, *sides, rows=rows)

    @property
    def row_numbers(self) -> tuple[int, ...]:
        """The rows of its kind that count."""
        return tuple(range(ROWS[self.rows])) if self.kept is None else self.kept

    @property
    def num_rows(self) -> int:
        """The number of rows of c(q) this loop contributes."""
        return len(self.row_numbers)

    def across(self) -> np.ndarray:
        """Two unit vectors across `axis_B`, in B (2, 3).

        For an axis along a coordinate they are the other two coordinates.
        """
        return _across(self.axis_B)

    def select(self, offset: np.ndarray) -> np.ndarray:
        """The rows of an offset in B (3, ...) that the loop closes.

        For a planar loop they are those across the axis, for others all three.
        """
        return self.across() @ offset if self.rows == "planar" else offset

    def direction_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """The directions n in B and a in A of the rows n' R_BA a, (k, 3) each."""
        if self.rows == "hinge":
            return self.across(), np.array([self.axis_A, self.axis_A])
        if self.rows == "weld":
            R_AP, R_BQ = (X.rotation().matrix() for X in self.frames())
            return R_BQ[:, [0, 1, 1]].T, R_AP[:, [2, 2, 0]].T
        return np.zeros((0, 3)), np.zeros((0, 3))

    def frames(self) -> tuple[RigidTransform, RigidTransform]:
        """X_AP and X_BQ, which coincide when a weld is closed: z is the axis [m]."""
        return (
            _frame(self.p_AP, self.axis_A, self.side_A),
            _frame(self.p_BQ, self.axis_B, self.side_B),
        )


def _kept(number: int):
    """A rule: row numbers below `number` that rise."""

    def rule(value: Sequence[int]) -> tuple[int, ...]:
        rows = tuple(int(row) for row in value)
        if list(rows) != sorted(set(rows)) or not all(0 <= r < number for r in rows):
            raise Refused(f"row numbers that rise, within 0..{number - 1}")
        return rows

    return rule


def _across(axis: np.ndarray) -> np.ndarray:
    """Two unit vectors across a unit vector and each other (2, 3)."""
    order = np.argsort(np.abs(axis), kind="stable")[:2]
    first, second = np.eye(3)[np.sort(order)]
    first = first - axis * (axis @ first)
    first /= np.linalg.norm(first)
    second = second - axis * (axis @ second)
    second -= first * (first @ second)
    return np.array([first, second / np.linalg.norm(second)])


def _frame(p, axis, side) -> RigidTransform:
    """A frame with z along the axis, and x along the side as far as it is across."""
    x = _across(axis)[0] if side is None else side - axis * (axis @ side)
    norm = np.linalg.norm(x)
    if norm < 1e-6:
        raise InvalidInput("the side of a weld must not be along its axis")
    R = np.column_stack([x / norm, np.cross(axis, x / norm), axis])
    return RigidTransform(RotationMatrix.ProjectToRotationMatrix(R), p)


class LoopClosure:
    """c(q) and C(q) of the loops and couplers of one plant.

    With X_BA the pose of A in B, the rows of a loop are

        p = X_BA p_AP - p_BQ            all three (ball, hinge, weld), or
                                        those across the axis (planar)
        n' R_BA axis_A                  for the two n across axis_B (hinge, weld)
        y_B' R_BA side_A                for y_B = axis_B x side_B (weld)

    those that are kept, and dc/dt = C v by Drake's Jacobians. After the rows of all
    loops comes one row of every coupler that is kept,

        q_follower - gear q_leader - offset

    All rows vanish when the loop is closed. Source: the row convention of the authors'
    HAMR code.

    Args:
        plant: a finalized plant.
        loops: with body names that the plant knows.
        couplers: with joint names that the plant knows.
        length_unit: the plant's unit of length [m].

    Attributes:
        coupled: the couplers whose rows are kept, in the plant's coordinates.
        num_rows: number of rows of c and C.
        row_names: their names, "<loop>.<k>" and "<follower>.<leader>".

    Raises:
        UnknownName: for a body or a joint that the plant does not have.
    """

    def __init__(
        self,
        plant: MultibodyPlant,
        loops: Sequence[Loop],
        *,
        couplers: Sequence[Coupler] = (),
        length_unit: float = 1.0,
    ):
        self.plant, self.loops = plant, tuple(loops)
        self.couplers, self.length_unit = tuple(couplers), length_unit
        self._frames = [
            [find_body(plant, name).body_frame() for name in (loop.body_A, loop.body_B)]
            for loop in self.loops
        ]
        self._all_coupled = coupled_positions(plant, self.couplers, length_unit)
        kept = [coupler.kept for coupler in self.couplers]
        self.coupled = tuple(x for x, keep in zip(self._all_coupled, kept) if keep)
        self.num_rows = sum(loop.num_rows for loop in self.loops) + len(self.coupled)
        self.row_names = (
            *(f"{loop.name}.{k}" for loop in self.loops for k in loop.row_numbers),
            *(coupler.name for coupler in self.couplers if coupler.kept),
        )

    def with_loops(
        self, loops: Sequence[Loop], couplers: Sequence[Coupler] | None = None
    ) -> LoopClosure:
        """The same plant with other loops, and other couplers where they are given."""
        couplers = self.couplers if couplers is None else couplers
        unit = self.length_unit
        return LoopClosure(self.plant, loops, couplers=couplers, length_unit=unit)

    def residual(self, context: Context) -> np.ndarray:
        """c(q), (num_rows,); lengths in the plant's unit, directions in rad."""
        rows = [self._residual(context, *loop)[0] for loop in self._placed()]
        return np.concatenate([*rows, self._slips(context, self.coupled)])

    def jacobian(self, context: Context) -> np.ndarray:
        """C(q) with dc/dt = C v, (num_rows, nv)."""
        return self.evaluate(context)[1]

    def evaluate(self, context: Context) -> tuple[np.ndarray, np.ndarray]:
        """c(q) and C(q) together."""
        c, C = [np.zeros(0)], [np.zeros((0, self.plant.num_velocities()))]
        for placed in self._placed():
            value, turned = self._residual(context, *placed)
            c.append(value)
            C.append(self._gradient(context, *placed, turned))
        c.append(self._slips(context, self.coupled))
        C.append(self._slopes(self.coupled))
        return np.concatenate(c), np.vstack(C)

    def gaps(self, context: Context) -> np.ndarray:
        """|X_BA p_AP - p_BQ| of every loop, (num_loops,), in the plant's unit."""
        offsets = [self._offset(context, *loop) for loop in self._placed()]
        return np.array([np.linalg.norm(offset) for offset in offsets])

    def most_open(self, context: Context) -> str:
        """Text on the loop that is most open: its name, by how much, its joints."""
        unit, found = self.length_unit, []
        for loop in self.loops:
            alone = LoopClosure(self.plant, [loop], length_unit=unit)
            e, J = alone.errors(context, 1 / unit)
            found.append((float(np.abs(e).max()), loop.name, np.abs(J).max(axis=0)))
        most, name, moved = max(found, key=lambda one: one[0])
        names = [
            joint.name()
            for joint in joints_of(self.plant)
            if moved[joint_slices(joint)[1]].max(initial=0.0) > 1e-9
        ]
        return (
            f"most open is {name}, by {most:.2g} m or rad, which the joints "
            f"{some(names, 8)} close"
        )

    def slips(self, context: Context) -> np.ndarray:
        """|q_follower - gear q_leader - offset| of every coupler, (num_couplers,).

        In rad, or in the plant's unit of length where the follower slides.
        """
        return np.abs(self._slips(context, self._all_coupled))

    def followed(self, q: np.ndarray) -> np.ndarray:
        """Positions (nq,) with every joint that follows where its leader has it."""
        q = np.array(q, float)
        for _ in self._all_coupled:  # a leader may follow, too
            for x in self._all_coupled:
                q[x.follower] = x.gear * q[x.leader] + x.offset
        return q

    def leading(self) -> np.ndarray:
        """T with v = T v_l, where v_l are the velocities that follow no other.

        (nv, number of those); the identity without couplers.
        """
        T = np.eye(self.plant.num_velocities())
        for _ in self._all_coupled:  # a leader may follow, too
            for x in self._all_coupled:
                T[x.follower_rate] = x.gear * T[x.leader_rate]
        followers = [x.follower_rate for x in self._all_coupled]
        return np.delete(T, followers, axis=1)

    def errors(self, context: Context, length: float) -> tuple[np.ndarray, np.ndarray]:
        """Opening of all loops, without the false zeros of c at half a turn.

        Positions over a length, and the rotation vector from one frame of a weld, or
        one axis of a hinge, to the other; then the rows of all couplers.

        Args:
            context: of the plant.
            length: in the plant's unit.

        Returns:
            e and J with de/dt = J v near closed loops.
        """
        e, J = [np.zeros(0)], [np.zeros((0, self.plant.num_velocities()))]
        for loop, frame_A, frame_B in self._placed():
            offset = self._offset(context, loop, frame_A, frame_B)
            rates = self._offset_rates(context, loop, frame_A, frame_B)
            e.append(loop.select(offset) / length)
            J.append(loop.select(rates) / length)
            if loop.rows in ("hinge", "weld"):
                R_BA = frame_A.CalcRotationMatrix(context, frame_B).matrix()
                turn, project = _turn(loop, R_BA)
                e.append(turn)
                J.append(project @ self._turning_rates(context, frame_A, frame_B))
        unit = np.array([length if x.slides else 1.0 for x in self._all_coupled])
        e.append(self._slips(context, self._all_coupled) / unit)
        J.append(self._slopes(self._all_coupled) / unit[:, None])
        return np.concatenate(e), np.vstack(J)

    def _slips(self, context: Context, coupled: Sequence[Coupled]) -> np.ndarray:
        """q_follower - gear q_leader - offset of each (len(coupled),)."""
        q = self.plant.GetPositions(context)
        return np.array(
            [q[x.follower] - x.gear * q[x.leader] - x.offset for x in coupled]
        )

    def _slopes(self, coupled: Sequence[Coupled]) -> np.ndarray:
        """Their derivatives along v (len(coupled), nv)."""
        rows = np.zeros((len(coupled), self.plant.num_velocities()))
        for row, x in zip(rows, coupled):
            row[x.follower_rate], row[x.leader_rate] = 1.0, -x.gear
        return rows

    def _placed(self):
        return ((loop, *frames) for loop, frames in zip(self.loops, self._frames))

    def _offset(self, context, loop, frame_A, frame_B) -> np.ndarray:
        p_AP = loop.p_AP / self.length_unit
        p_BP = self.plant.CalcPointsPositions(context, frame_A, p_AP, frame_B).ravel()
        return p_BP - loop.p_BQ / self.length_unit

    def _offset_rates(self, context, loop, frame_A, frame_B) -> np.ndarray:
        """The derivatives of the offset along v (3, nv)."""
        p_AP = loop.p_AP / self.length_unit
        return self.plant.CalcJacobianTranslationalVelocity(
            context, JacobianWrtVariable.kV, frame_A, p_AP, frame_B, frame_B
        )

    def _turning_rates(self, context, frame_A, frame_B) -> np.ndarray:
        """The derivatives along v of A's turn in B, written in B (3, nv)."""
        return self.plant.CalcJacobianAngularVelocity(
            context, JacobianWrtVariable.kV, frame_A, frame_B, frame_B
        )

    def _residual(self, context, loop, frame_A, frame_B):
        """The rows of one loop that are kept, and R_BA times its directions in A."""
        value = loop.select(self._offset(context, loop, frame_A, frame_B))
        normals, directions = loop.direction_rows()
        turned = None
        if len(normals):
            R_BA = frame_A.CalcRotationMatrix(context, frame_B).matrix()
            turned = directions @ R_BA.T
            value = np.concatenate([value, np.sum(normals * turned, axis=1)])
        return value[list(loop.row_numbers)], turned

    def _gradient(self, context, loop, frame_A, frame_B, turned) -> np.ndarray:
        rows = loop.select(self._offset_rates(context, loop, frame_A, frame_B))
        if turned is not None:
            # d/dt n' R_BA a = n' (w x R_BA a) = (R_BA a x n)' w
            Jw = self._turning_rates(context, frame_A, frame_B)
            rows = np.vstack([rows, np.cross(turned, loop.direction_rows()[0]) @ Jw])
        return rows[list(loop.row_numbers)]


def _turn(loop: Loop, R_BA: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rotation vector by which a loop's frames differ (3,), and its d/dw (3, 3)."""
    if loop.rows == "weld":
        X_AP, X_BQ = loop.frames()
        R = R_BA @ X_AP.rotation().matrix() @ X_BQ.rotation().matrix().T
        axis_angle = RotationMatrix.ProjectToRotationMatrix(R).ToAngleAxis()
        turn = axis_angle.angle() * axis_angle.axis()
        # The inverse of the left Jacobian of SO(3).
        angle, x, y, z = axis_angle.angle(), *turn
        K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        if angle < 1e-4:
            return turn, np.eye(3) - K / 2
        share = 1 / angle**2 - (1 + np.cos(angle)) / (2 * angle * np.sin(angle))
        return turn, np.eye(3) - K / 2 + share * K @ K
    a_B, b_B = R_BA @ loop.axis_A, loop.axis_B
    cross, cosine = np.cross(b_B, a_B), float(b_B @ a_B)
    sine = float(np.linalg.norm(cross))
    axis = cross / sine if sine > 1e-9 else loop.across()[0]
    angle = np.arctan2(sine, cosine)
    return angle * axis, np.eye(3) - np.outer(b_B, b_B)


def ball_points(loop: Loop, half_length: float):
    """The points in A and in B of the balls by which SAP closes a loop [m].

    A ball loop has one, a hinge (or planar) loop two, at +-`half_length` along its
    axis, a weld three, at its point and `half_length` away along two axes: on links
    much lighter than those beyond, Drake's own weld constraint is softer by three
    orders of magnitude (a biped of 26 kg on rods of 20 g hangs with gaps of 0.3 mm by
    welds and 0.3 um by balls, at steps of 1 ms).

    Args:
        loop: to close.
        half_length: half the distance of a hinge's two balls [m].
    """
    if loop.rows == "weld":
        X_AP, X_BQ = loop.frames()
        for p in half_length * np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]]):
            yield X_AP @ p, X_BQ @ p
        return
    for sign in (0.0,) if loop.rows == "ball" else (-1.0, 1.0):
        offset = sign * half_length
        yield loop.p_AP + offset * loop.axis_A, loop.p_BQ + offset * loop.axis_B


def find_body(plant: MultibodyPlant, name: str) -> RigidBody:
    """The body called `name`, or "model::body" where models share names.

    Raises:
        UnknownName: listing the bodies that exist.
        InvalidInput: for a name that several models have.
    """
    if "::" not in name and plant.NumBodiesWithName(name) == 1:
        return plant.GetBodyByName(name)
    return one_named(plant, "body", name, bodies_of(plant))


def independent_rows(C: np.ndarray, least: float = _RANK) -> np.ndarray:
    """The rows of a Jacobian that do not depend on the others, by rising number.

    QR with pivoting of the rows, each scaled to unit length; columns are scaled first,
    so that the answer does not depend on metres or radians.

    Args:
        C: of closed loops, or of feet that stand (m, nv).
        least: share of the largest pivot below which a row depends on the others.
    """
    columns = np.linalg.norm(C, axis=0)
    C = C / np.where(columns > 0, columns, 1.0)
    lengths = np.linalg.norm(C, axis=1)
    if not lengths.any():
        return np.zeros(0, int)
    C = C / np.where(lengths > _RANK * lengths.max(), lengths, np.inf)[:, None]
    R, order = scipy.linalg.qr(C.T, mode="r", pivoting=True)
    pivots = np.abs(np.diag(R))
    return np.sort(order[: int((pivots > least * pivots[0]).sum())])
