"""Closed kinematic loops: the table of cut joints, its residual, its constraints.

Every loop is cut at one joint, which is a :class:`Loop`. The same table closes the
loops in three ways: in a Drake simulation by SAP ball constraints, in programs by
`c(q) = 0`, and in time stepping with hard contact by the velocity rows `C(q) v = 0`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import BodyIndex, JacobianWrtVariable, ModelInstanceIndex
from pydrake.systems.framework import Context

from drakebots.core.checks import Refused, array, check, one_of
from drakebots.core.errors import InvalidInput, UnknownName

ROWS = {"ball": 3, "planar": 2, "hinge": 5}
"""Number of rows of a loop, by kind: a ball joint closes three positions, a planar one
the two positions across its axis, a hinge three positions and the two directions across
its axis."""


def _direction(value: Sequence[float]) -> np.ndarray:
    """A rule: a vector (3,) that is not zero, stored as a unit vector."""
    vector = array((3,))(value)
    norm = np.linalg.norm(vector)
    if norm < 1e-9:
        raise Refused("a direction, not zero")
    return array((3,))(vector / norm)


@dataclass(frozen=True)
class Loop:
    """A cut joint between point P of body A and point Q of body B.

    Attributes:
        name: name of the cut joint.
        body_A, body_B: names of the two bodies.
        p_AP, p_BQ: the joint's point in body A and in body B (3,) [m].
        axis_A, axis_B: the joint's axis in body A and in body B (3,), unit vectors.
        rows: "ball", "planar" or "hinge"; see :data:`ROWS`.
        in_file: whether the model file itself closes the loop for SAP.
    """

    name: str
    body_A: str
    body_B: str
    p_AP: np.ndarray
    p_BQ: np.ndarray
    axis_A: np.ndarray = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))
    axis_B: np.ndarray = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))
    rows: str = "hinge"
    in_file: bool = False

    def __post_init__(self):
        check(
            self,
            f"loop {self.name}",
            rows=one_of(f"`rows` of loop {self.name}", ROWS),
            p_AP=array((3,), "m"),
            p_BQ=array((3,), "m"),
            axis_A=_direction,
            axis_B=_direction,
        )

    @property
    def num_rows(self) -> int:
        """The number of rows of c(q) this loop contributes."""
        return ROWS[self.rows]

    def across(self) -> np.ndarray:
        """Two unit vectors across `axis_B`, in B (2, 3).

        For an axis along a coordinate they are the other two coordinates.
        """
        order = np.argsort(np.abs(self.axis_B), kind="stable")[:2]
        first, second = np.eye(3)[np.sort(order)]
        first = first - self.axis_B * (self.axis_B @ first)
        first /= np.linalg.norm(first)
        second = second - self.axis_B * (self.axis_B @ second)
        second -= first * (first @ second)
        return np.array([first, second / np.linalg.norm(second)])


class LoopClosure:
    """c(q) and C(q) of the loops of one plant.

    With X_BA the pose of A in B, the rows of a loop are

        p = X_BA p_AP - p_BQ            all three (ball, hinge), or those
                                        across the axis (planar)
        n' R_BA axis_A                  for the two n across axis_B (hinge)

    and C = dc/dt = C v by Drake's Jacobians. All rows vanish when the loop is
    closed. Source: the row convention of the authors' HAMR code.

    Args:
        plant: a finalized plant.
        loops: with body names that the plant knows.
        length_unit: the plant's unit of length [m].
        instance: the model instance of the bodies.

    Attributes:
        num_rows: number of rows of c and C.
        row_names: their names, "<loop>.<k>".

    Raises:
        UnknownName: for a body that the plant does not have.
    """

    def __init__(
        self,
        plant: MultibodyPlant,
        loops: Sequence[Loop],
        *,
        length_unit: float = 1.0,
        instance: ModelInstanceIndex | None = None,
    ):
        self.plant, self.loops = plant, tuple(loops)
        self.length_unit = length_unit
        self._frames = [
            (
                find_body(plant, loop.body_A, instance).body_frame(),
                find_body(plant, loop.body_B, instance).body_frame(),
            )
            for loop in self.loops
        ]
        self.num_rows = sum(loop.num_rows for loop in self.loops)
        self.row_names = tuple(
            f"{loop.name}.{k}" for loop in self.loops for k in range(loop.num_rows)
        )

    def residual(self, context: Context) -> np.ndarray:
        """c(q), (num_rows,); lengths in the plant's unit, directions in rad."""
        rows = [self._residual(context, *loop)[0] for loop in self._placed()]
        return np.concatenate([np.zeros(0), *rows])

    def jacobian(self, context: Context) -> np.ndarray:
        """C(q) with dc/dt = C v, (num_rows, nv)."""
        return self.evaluate(context)[1]

    def evaluate(self, context: Context) -> tuple[np.ndarray, np.ndarray]:
        """c(q) and C(q) together."""
        c, C = [np.zeros(0)], [np.zeros((0, self.plant.num_velocities()))]
        for loop in self._placed():
            value, a_B = self._residual(context, *loop)
            c.append(value)
            C.append(self._gradient(context, *loop, a_B))
        return np.concatenate(c), np.vstack(C)

    def gaps(self, context: Context) -> np.ndarray:
        """|X_BA p_AP - p_BQ| of every loop, (num_loops,), in the plant's unit."""
        offsets = [self._offset(context, *loop) for loop in self._placed()]
        return np.array([np.linalg.norm(offset) for offset in offsets])

    def _placed(self):
        return ((loop, *frames) for loop, frames in zip(self.loops, self._frames))

    def _offset(self, context, loop, frame_A, frame_B) -> np.ndarray:
        p_AP = loop.p_AP / self.length_unit
        p_BP = self.plant.CalcPointsPositions(context, frame_A, p_AP, frame_B).ravel()
        return p_BP - loop.p_BQ / self.length_unit

    def _residual(self, context, loop, frame_A, frame_B):
        """The rows of one loop, and the axis of A in B where it is a hinge."""
        n_B = loop.across()
        select = n_B if loop.rows == "planar" else np.eye(3)
        value, a_B = select @ self._offset(context, loop, frame_A, frame_B), None
        if loop.rows == "hinge":
            a_B = frame_A.CalcRotationMatrix(context, frame_B).matrix() @ loop.axis_A
            value = np.concatenate([value, n_B @ a_B])
        return value, a_B

    def _gradient(self, context, loop, frame_A, frame_B, a_B) -> np.ndarray:
        n_B, p_AP = loop.across(), loop.p_AP / self.length_unit
        select = n_B if loop.rows == "planar" else np.eye(3)
        Jv = select @ self.plant.CalcJacobianTranslationalVelocity(
            context, JacobianWrtVariable.kV, frame_A, p_AP, frame_B, frame_B
        )
        if a_B is None:
            return Jv
        Jw = self.plant.CalcJacobianAngularVelocity(
            context, JacobianWrtVariable.kV, frame_A, frame_B, frame_B
        )
        return np.vstack([Jv, np.cross(a_B, n_B) @ Jw])


def add_ball_constraints(
    plant: MultibodyPlant,
    loops: Sequence[Loop],
    *,
    half_length: float,
    length_unit: float = 1.0,
    instance: ModelInstanceIndex | None = None,
) -> int:
    """Closes loops in a discrete SAP plant before it is finalized.

    A ball loop gets one ball constraint, a hinge (or planar) loop two, at
    +-`half_length` along its axis.

    Args:
        plant: not finalized yet.
        loops: to close.
        half_length: half the distance of a hinge's two balls [m].
        length_unit: the plant's unit of length [m].
        instance: the model instance of the bodies.

    Returns:
        The number of constraints added.
    """
    before = plant.num_constraints()
    for loop in loops:
        body_A = find_body(plant, loop.body_A, instance)
        body_B = find_body(plant, loop.body_B, instance)
        signs = (0.0,) if loop.rows == "ball" else (-1.0, 1.0)
        for sign in signs:
            plant.AddBallConstraint(
                body_A,
                (loop.p_AP + sign * half_length * loop.axis_A) / length_unit,
                body_B,
                (loop.p_BQ + sign * half_length * loop.axis_B) / length_unit,
            )
    return plant.num_constraints() - before


def find_body(
    plant: MultibodyPlant, name: str, instance: ModelInstanceIndex | None = None
):
    """The body called `name`, or "model::body" where models share names.

    Raises:
        UnknownName: listing the bodies that exist.
    """
    if "::" in name:
        model, _, name = name.rpartition("::")
        if not plant.HasModelInstanceNamed(model):
            raise UnknownName("model", model, dict(_models(plant)))
        instance = plant.GetModelInstanceByName(model)
    if instance is not None and plant.HasBodyNamed(name, instance):
        return plant.GetBodyByName(name, instance)
    if plant.NumBodiesWithName(name) == 1:
        return plant.GetBodyByName(name)
    if plant.NumBodiesWithName(name) > 1:
        models = (m for m in _models(plant) if plant.HasBodyNamed(name, m[1]))
        scoped = ", ".join(f"{model}::{name}" for model, _ in models)
        raise InvalidInput(f"body {name!r} is in several models; write one of {scoped}")
    bodies = (plant.get_body(BodyIndex(i)).name() for i in range(plant.num_bodies()))
    raise UnknownName("body", name, bodies)


def _models(plant: MultibodyPlant) -> list[tuple[str, ModelInstanceIndex]]:
    indices = map(ModelInstanceIndex, range(plant.num_model_instances()))
    return [(plant.GetModelInstanceName(index), index) for index in indices]
