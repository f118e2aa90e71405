"""Closed-chain kinematics: the loops solved for the dependent coordinates.

The positions of a closed chain split into independent ones (the actuators)
and dependent ones (the rest); c(q_i, q_d) = 0 gives q_d by Newton's method,
and the velocities follow as v = T v_i with

    T = [ 1 ; -C_d^-1 C_i ]        (RSS 2018, eq. (19))
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated

import numpy as np
from pydrake.systems.framework import Context

from drakebots.core.checks import each, instance, text
from drakebots.core.errors import InvalidInput, NoSolution, UnknownName
from drakebots.core.fields import checked
from drakebots.model import joints_of
from drakebots.multibody.plant import Robot

TOLERANCE = 1e-12
"""Largest |c(q)| of closed loops, in the plant's unit of length."""


@checked("closed chain")
class ClosedChain:
    """Solves a robot's loops for given positions of some joints."""

    robot: Annotated[Robot, instance(Robot)]
    """Robot on base "fixed" or "euler", so that its velocities are the rates of its
    positions."""
    joints: Annotated[tuple[str, ...], each(text(), "names of joints")]
    """Names of the independent joints (single-coordinate)."""

    def __post_init__(self):
        self._split  # noqa: B018  a wrong choice of joints must be found now

    @cached_property
    def _split(self) -> tuple[np.ndarray, np.ndarray]:
        """Indices of the independent and of the dependent coordinates."""
        plant, closure = self.robot.plant, self.robot.closure
        index = []
        for name in self.joints:
            if not plant.HasJointNamed(name):
                known = (joint.name() for joint in joints_of(plant))
                raise UnknownName("joint", name, known)
            index.append(plant.GetJointByName(name).position_start())
        if plant.num_positions() != plant.num_velocities():
            raise InvalidInput("closed chains need base 'euler' or 'fixed'")
        C = closure.jacobian(plant.CreateDefaultContext())
        in_loops = np.flatnonzero(np.abs(C).max(axis=0) > 0)
        dependent = np.setdiff1d(in_loops, index)
        if len(dependent) != closure.num_rows:
            raise InvalidInput(
                f"{len(self.joints)} joints leave {len(dependent)} coordinates to "
                f"{closure.num_rows} loop rows; choose as many joints as the loops "
                "have degrees of freedom"
            )
        return np.array(index), dependent

    def solve(self, context: Context, values: Mapping[str, float]) -> np.ndarray:
        """Closes the loops in `context` and returns its positions (nq,).

        Args:
            context: context of the plant. Its positions are the first guess;
                coordinates outside the loops stay as they are.
            values: position of each independent joint, in plant units.

        Raises:
            NoSolution: when Newton's method does not converge (out of reach).
        """
        independent, dependent = self._split
        plant, closure = self.robot.plant, self.robot.closure
        q = plant.GetPositions(context).copy()
        q[independent] = [values[name] for name in self.joints]
        for _ in range(50):
            plant.SetPositions(context, q)
            c, C = closure.evaluate(context)
            if np.abs(c).max() < TOLERANCE:
                return q
            q[dependent] -= np.linalg.solve(C[:, dependent], c)
        worst = dict(zip(closure.row_names, np.abs(c)))
        top = dict(sorted(worst.items(), key=lambda item: -item[1])[:3])
        raise NoSolution("the loops do not close at these joint positions", top)

    def tangent(self, context: Context) -> np.ndarray:
        """T (nv, num_joints) with v = T v_i; other coordinates at rest."""
        independent, dependent = self._split
        C = self.robot.closure.jacobian(context)
        T = np.zeros((self.robot.plant.num_velocities(), len(self.joints)))
        T[independent] = np.eye(len(self.joints))
        T[dependent] = -np.linalg.solve(C[:, dependent], C[:, independent])
        return T
