"""Our time stepping with hard contact as a system of a diagram."""

from __future__ import annotations

import numpy as np
from pydrake.systems.framework import Context, DiscreteStateIndex, LeafSystem

from drakebots.core.errors import DrakebotsError
from drakebots.multibody.hard_contact.timestepping import TimeStepper
from drakebots.multibody.plant import Robot


class SteppedPlant(LeafSystem):
    """A robot moved by :class:`TimeStepper` in place of Drake's plant.

                            ┌──────────────┐──▶ state (nq+nv)
        actuation (nu) ────▶│ SteppedPlant │
                            └──────────────┘──▶ contact (nv), generalized

    All ports are in the plant's units and in the order of the plant's own ports, so
    that whatever is connected to a discrete `MultibodyPlant` can be connected to this
    system too. Two of that plant's queries are here as well, for monitors.

    Args:
        robot: robot with base "euler" or "fixed"; its plant stays outside the diagram.
        time_step: time step [s].
        friction: friction coefficient of the ground z = 0; None for no ground.

    Raises:
        InvalidInput: as :class:`TimeStepper` does. A step that fails raises
            RuntimeError from the simulator.
    """

    def __init__(
        self, robot: Robot, time_step: float, *, friction: float | None = None
    ):
        super().__init__()
        self.set_name("stepped_plant")
        plant, period = robot.plant, time_step / robot.scaling.time
        self._stepper = TimeStepper(robot, period, friction=friction)
        self._nq, self._nv = plant.num_positions(), plant.num_velocities()
        self._robot, self._plant = robot, plant
        self._default = plant.CreateDefaultContext()
        start = plant.GetPositionsAndVelocities(self._default)
        self.DeclareVectorInputPort("actuation", plant.num_actuators())
        self.DeclareDiscreteState(np.concatenate([start, np.zeros(self._nv)]))
        # Unrestricted, as Drake's plant steps: see Encoder.
        self.DeclarePeriodicUnrestrictedUpdateEvent(period, 0.0, self._step)
        held = {self.discrete_state_ticket(DiscreteStateIndex(0))}
        n = self._nq + self._nv
        self.DeclareVectorOutputPort("state", n, self._part(0, n), held)
        self.DeclareVectorOutputPort(
            "contact", self._nv, self._part(n, n + self._nv), held
        )

    def GetPositionsAndVelocities(self, context: Context) -> np.ndarray:
        """[q, v] of this system's context."""
        return context.get_discrete_state_vector().value()[: self._nq + self._nv].copy()

    def SetPositionsAndVelocities(self, context: Context, state: np.ndarray) -> None:
        """Sets [q, v] in this system's context, and the contact forces to zero."""
        context.SetDiscreteState(np.concatenate([state, np.zeros(self._nv)]))

    @staticmethod
    def _part(first: int, last: int):
        def calc(context, output):
            values = context.get_discrete_state_vector().value()
            output.SetFromVector(values[first:last])

        return calc

    def _step(self, context, state):
        nq = self._nq
        now = context.get_discrete_state_vector().value()
        q, v = now[:nq], now[nq : nq + self._nv]
        u = self.EvalVectorInput(context, 0).value()
        try:
            q_next, v_next, forces = self._stepper.step(q, v, u)
        except (DrakebotsError, ValueError, np.linalg.LinAlgError) as error:
            # No solution, or numbers that are no longer finite: raised as Drake's
            # own plant does.
            raise RuntimeError(str(error)) from error
        new = np.concatenate([q_next, v_next, self._contact(q, forces)])
        state.get_mutable_discrete_state().set_value(new)

    def _contact(self, q, forces) -> np.ndarray:
        """The generalized force of all contacts (nv,)."""
        if not np.any(forces.normal):
            return np.zeros(self._nv)
        self._plant.SetPositions(self._default, q)
        total = np.zeros(self._nv)
        jacobians = self._robot.feet_jacobian(self._default).reshape(-1, 3, self._nv)
        for J, friction, normal in zip(jacobians, forces.friction, forces.normal):
            total += J.T @ np.array([*friction, normal])
        return total
