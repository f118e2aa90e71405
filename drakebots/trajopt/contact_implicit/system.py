"""A robot on its ground, as the CasADi expressions of a contact-implicit program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import casadi as ca
import numpy as np

from drakebots.core.checks import check_types
from drakebots.core.errors import InvalidInput
from drakebots.multibody import Robot
from drakebots.multibody.twin import Twin
from drakebots.trajopt.terrain import Flat

AppliedForce = Callable[[Twin, ca.SX, ca.SX, ca.SX], ca.SX]
"""(twin, q, v, u) -> generalized force of the inputs (nv,), plant units."""

_SIGNS = ((1, 0), (0, -1), (-1, 0), (0, 1))
"""Friction directions as multiples of the tangents (t1, t2)."""

DIRECTIONS = ("+x", "-y", "-x", "+y")
"""Names of the friction directions on flat ground."""


def joint_inputs(twin: Twin, q: ca.SX, v: ca.SX, u: ca.SX) -> ca.SX:
    """B u, for inputs that are the plant's actuators."""
    return ca.SX(twin.actuation_matrix()) @ u


@dataclass(frozen=True)
class ContactSystem:
    """A robot, its terrain and the forces of its inputs.

    Attributes:
        robot: the robot, on a base whose velocities are position rates ("euler" or
            "fixed"), in plant units.
        terrain: the ground under its feet, in SI.
        inputs: from twin, q, v, u to the generalized force of the inputs.
        input_names: names of the inputs; None for those of the actuators.

    Raises:
        InvalidInput: for a base of another kind, or a model that includes files whose
            joints follow others.
    """

    robot: Robot
    terrain: object = field(default_factory=Flat)
    inputs: AppliedForce = joint_inputs
    input_names: tuple[str, ...] | None = None

    def __post_init__(self):
        check_types(self, "system")
        if not self.twin.velocities_are_rates:
            raise InvalidInput(
                "planning needs velocities that are the rates of the positions; build "
                "the robot with base 'euler' or 'fixed'"
            )
        model = self.robot.model
        if model.uncoupled:
            raise InvalidInput(
                f"{model.name}: joints of {model.uncoupled[0]}, which it includes, "
                "follow others (<mimic>); plans and control know that of a file that "
                "is loaded itself only"
            )

    @cached_property
    def twin(self) -> Twin:
        """The plant as CasADi expressions."""
        return Twin(self.robot.plant)

    @cached_property
    def blocks(self) -> dict:
        """Blocks of its mechanics that were made, see `dynamics`."""
        return {}

    @property
    def nq(self) -> int:
        """Number of coordinates."""
        return self.twin.nq

    @cached_property
    def inputs_labels(self) -> tuple[str, ...]:
        """Names of the inputs."""
        if self.input_names is not None:
            return self.input_names
        plant = self.robot.plant
        return tuple(
            plant.get_joint_actuator(i).name() for i in plant.GetJointActuatorIndices()
        )

    @property
    def nu(self) -> int:
        """Number of inputs."""
        return len(self.inputs_labels)

    @property
    def num_feet(self) -> int:
        """Number of feet."""
        return len(self.robot.model.feet)

    @property
    def num_loop_rows(self) -> int:
        """Number of rows of c(q)."""
        return self.robot.closure.num_rows

    @cached_property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the positions, from their joints."""
        plant = self.robot.plant
        names = [""] * self.nq
        for index in plant.GetJointIndices():
            joint = plant.get_joint(index)
            for i in range(joint.num_positions()):
                single = joint.num_positions() == 1
                suffix = "" if single else f"_{joint.position_suffix(i)}"
                names[joint.position_start() + i] = joint.name() + suffix
        return tuple(names)

    @cached_property
    def _gradients(self) -> ca.Function:
        q, v = ca.SX.sym("q", self.nq), ca.SX.sym("v", self.nq)
        L = self.twin.lagrangian(q, v)
        return ca.Function("L", [q, v], [ca.gradient(L, q), ca.gradient(L, v)])

    def lagrangian_gradients(self, q: ca.SX, v: ca.SX) -> tuple[ca.SX, ca.SX]:
        """D1L and D2L."""
        return self._gradients(q, v)

    @cached_property
    def _loops(self) -> ca.Function:
        q, lam = ca.SX.sym("q", self.nq), ca.SX.sym("lam", self.num_loop_rows)
        c = self.twin.closure(q, self.robot.closure)
        force = (
            ca.jtimes(c, q, lam, True) if self.num_loop_rows else ca.SX.zeros(self.nq)
        )
        return ca.Function("loops", [q, lam], [c, force])

    def loop_force(self, q: ca.SX, lam: ca.SX) -> tuple[ca.SX, ca.SX]:
        """c(q) and C(q)'lam."""
        return self._loops(q, lam)

    def applied_force(self, q: ca.SX, v: ca.SX, u: ca.SX) -> ca.SX:
        """Generalized force of the inputs and of damping (nq,)."""
        return self.inputs(self.twin, q, v, u) + self.twin.damping_force(q, v)

    @cached_property
    def _terrain(self):
        return self.terrain.scaled(self.robot.scaling.length)

    def feet(self, q: ca.SX) -> list[ca.SX]:
        """p_WF of every foot's centre (3,)."""
        unit = self.robot.scaling.length
        return [
            self.twin.point(q, f.body, f.p_BF / unit) for f in self.robot.model.feet
        ]

    def _contacts(self, q: ca.SX):
        """phi, n, D (3, 4) and the contact point of every foot.

        The point is fixed in its body: the derivative of p_WC(q) is the motion of
        the material point in contact, for round feet too.
        """
        unit = self.robot.scaling.length
        for foot in self.robot.model.feet:
            radius = foot.radius / unit
            X_WB = self.twin.pose(q, foot.body)
            p_WF = X_WB.point(foot.p_BF / unit)
            n, t1, t2 = self._terrain.frame(p_WF)
            D = ca.horzcat(*(a * t1 + b * t2 for a, b in _SIGNS))
            if radius == 0:
                yield self._terrain.distance(p_WF), n, D, p_WF, None, None
                continue
            fixed = ca.SX.sym("p_BC", 3)
            p_BC = X_WB.R.T @ (p_WF - radius * n - X_WB.p)
            phi = self._terrain.distance(p_WF) - radius
            yield phi, n, D, X_WB.point(fixed), fixed, p_BC

    def contact_force(self, q: ca.SX, gam: ca.SX, beta: ca.SX) -> ca.SX:
        """N'gam + P'beta (nq,): forces at the feet as generalized forces."""
        total = ca.SX.zeros(self.nq)
        for i, (_, n, D, point, fixed, p_BC) in enumerate(self._contacts(q)):
            force = ca.SX.sym("f", 3)
            pull = ca.jtimes(point, q, force, True)
            actual = n * gam[i] + D @ beta[4 * i : 4 * i + 4]
            pull = ca.substitute(pull, force, actual)
            total += pull if fixed is None else ca.substitute(pull, fixed, p_BC)
        return total

    def contact_motion(self, q: ca.SX, v: ca.SX) -> tuple[ca.SX, ca.SX]:
        """phi (nc,) and D'p_dot (4 nc,) of the feet."""
        distance, speed = [], []
        for phi, _, D, point, fixed, p_BC in self._contacts(q):
            motion = ca.jtimes(point, q, v)
            if fixed is not None:
                motion = ca.substitute(motion, fixed, p_BC)
            distance.append(phi)
            speed.append(D.T @ motion)
        return ca.vertcat(*distance), ca.vertcat(*speed)

    def motion_of_intervals(
        self, q: np.ndarray, h: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """phi (K, nc) and D'p_dot (K, 4 nc) at the ends of intervals.

        Args:
            q: positions at their knots (K + 1, nq).
            h: their lengths (K, 1).
        """
        symbols = ca.SX.sym("q", self.nq), ca.SX.sym("v", self.nq)
        motion = ca.Function("motion", symbols, list(self.contact_motion(*symbols)))
        v = np.diff(q, axis=0) / h
        phi, speed = (np.array(a).T for a in motion.map(len(v))(q[1:].T, v.T))
        return phi, speed

    def contact_frames(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Normals (T, 3) and friction directions (T, 3, 4) at points (T, 3)."""
        p = ca.SX.sym("p", 3)
        n, t1, t2 = self._terrain.frame(p)
        D = ca.horzcat(*(a * t1 + b * t2 for a, b in _SIGNS))
        function = ca.Function("frames", [p], [ca.densify(n), ca.densify(ca.vec(D))])
        normals, directions = (
            np.array(o).T for o in function.map(len(points))(points.T)
        )
        return normals, directions.reshape(-1, 4, 3).transpose(0, 2, 1)

    def foot_positions(self, q: np.ndarray) -> np.ndarray:
        """p_WF (T, num_feet, 3) of positions (T, nq), plant units."""
        symbol = ca.SX.sym("q", self.nq)
        stacked = ca.vertcat(*self.feet(symbol))
        function = ca.Function("feet", [symbol], [stacked])
        q = np.atleast_2d(q)
        return np.asarray(function.map(len(q))(q.T)).T.reshape(len(q), -1, 3)
