"""A robot in its skin as a plant that takes commands step by step."""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Sequence

import numpy as np

from drakebots.control import Command
from drakebots.core.errors import NoSolution
from drakebots.robots.quads.robot import PlannedRobot
from drakebots.skin import SkinRecord
from drakebots.skin.coupled import CoupledResult, CoupledState, CoupledStepper

HAND = 0.03
"""Radius of the skin that a push acts on [m]."""

SUBSTEPS = 4
"""Number of parts into which a time step is divided that has no solution as a whole."""


class SkinnedPlant:
    """Skeleton and skin on their ground; commands act through the robot's servos.

    Efforts become angles by the servos' own law; a command's targets are sent as they
    are, the angles and where there are any the speeds.

    Args:
        robot: the robot.
        stepper: its steps, with all tetrahedra or a reduced skin.
        begins: state in which it begins.
        target: targets of the servos before the first command (m,) [rad].
        finer: makes a stepper of a time step [s], for steps that have no solution as a
            whole; by default these end the run.

    Attributes:
        sent: angles that the servos were sent, by time step (m,) [rad].
        refined: number of time steps that were divided.
        spent: processor time of all steps [s].
    """

    def __init__(
        self,
        robot: PlannedRobot,
        stepper,
        begins: CoupledState,
        target: np.ndarray,
        finer: Callable[[float], CoupledStepper] | None = None,
    ):
        self.robot, self.stepper, self.time_step = robot, stepper, stepper.dt
        self._gains = robot.skinned.skin.servos
        self._state, self._target, self.sent = begins, target, []
        self._result: CoupledResult | None = None
        self._finer, self._part = finer, None
        self.refined, self.spent = 0, 0.0

    @property
    def positions(self) -> np.ndarray:
        """Positions of the skeleton in the skin's plant (nq,)."""
        return self._state.q

    def state(self) -> tuple[np.ndarray, np.ndarray]:
        """q and v of the skeleton in the coordinates of the nominal robot."""
        convert, state = self.robot.coordinates, self._state
        q = convert.from_positions(state.q[None])
        return q[0], convert.from_velocities(state.q[None], state.v[None])[0]

    def advance(self, command: Command, forces: Sequence[np.ndarray] = ()) -> None:
        """One time step under a command and forces (3,) of hands on the trunk's skin.

        Raises:
            NoSolution: when the step has no solution.
        """
        count = len(self.robot.skinned.joints)
        if command.targets is None:
            q, v = self.state()
            load = command.efforts + self._gains.damping * v[6:]
            self._target, speeds = q[6:] + load / self._gains.stiffness, None
        else:
            self._target = command.targets[:count]
            speeds = command.targets[count:] if len(command.targets) > count else None
        self.sent.append(self._target)
        given = {"servo": self.robot.skinned.servo(self._target, speeds)}
        if len(forces):
            given["skin_forces"] = self._on_skin(forces)
        began = clock.thread_time()
        result = self.stepper.step(self._state, **given)
        if not result.converged and self._finer is not None:
            result = self._in_parts(given)
        self.spent += clock.thread_time() - began
        if not result.converged:
            raise NoSolution(result.message)
        self._state, self._result = result.state, result

    def _in_parts(self, given: dict) -> CoupledResult:
        """The result of a time step in SUBSTEPS parts."""
        self.refined += 1
        if self._part is None:
            self._part = self._finer(self.time_step / SUBSTEPS)
        state = self._state
        for _ in range(SUBSTEPS):
            result = self._part.step(state, **given)
            if not result.converged:
                break
            state = result.state
        return result

    def add_to(self, record: SkinRecord, last: bool) -> None:
        """Records the state and the result of the last step."""
        state, lift = self._state, getattr(self.stepper, "lift", None)
        state = state if lift is None else lift(state)
        record.add(state, self._target, self._result, last=last)

    def _on_skin(self, forces: Sequence[np.ndarray]) -> np.ndarray:
        """Forces on the nodes of the skin (N, 3) [N]."""
        total = np.zeros_like(self.robot.skinned.fem.rest)
        for force in forces:
            total[self._under(force / np.linalg.norm(force))] += force
        touched = np.flatnonzero(total.any(axis=1))
        total[touched] /= len(touched)
        return total

    def _under(self, along: np.ndarray) -> np.ndarray:
        """Nodes under a hand that pushes along a line through the centre of mass."""
        rest = self.robot.skinned.fem.rest
        arm = rest - self.robot.quad.rest_com(self.robot.link_skin)
        reach = arm @ along
        aside = np.linalg.norm(arm - reach[:, None] * along, axis=1)
        near = aside < HAND
        if not near.any():
            near = aside < aside.min() + HAND
        first = rest[near][np.argmin(reach[near])]
        return np.flatnonzero(np.linalg.norm(rest - first, axis=1) < HAND)
